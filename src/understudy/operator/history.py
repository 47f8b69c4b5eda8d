"""Record of joints, speeds, torques and device values of the last ten minutes, for plots.

The cell is read on its own time, twenty times per simulated second while something moves or a
device value changes, whether or not a page is open. Nothing is read while nothing changes: the
values of the last row hold until the next one. A row after a time without values (another mode, a
real robot that did not answer) or after a jump (joints were set) is marked as a gap. Robots that
have nothing to plot but their pose (mobile robots) are read as the others if there are at most
`MOST_FOLLOWED` of them. Each robot of a larger fleet is read from its first query on, and what was
before is a gap, so that a fleet costs nothing. If simulated time runs so fast that reading would
take more than a tenth of the wall time, rows are a second apart.
"""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import dist, inf
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import Meta

from understudy.errors import Refused
from understudy.operator.background import Slices, Work
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, commands_of, query
from understudy.ports import Component, TimedComponent
from understudy.ports.device import PlotRow, Plotted
from understudy.ports.operation import AxisReading
from understudy.simulation.cell import Cell
from understudy.space.pose import pose_mm_deg
from understudy.units import DEG, MM, NS_PER_MS, NS_PER_SECOND, nanoseconds, seconds
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

PERIOD = 50 * NS_PER_MS
COARSE_PERIOD = NS_PER_SECOND
NEVER = 1 << 62
KEPT = 12_000
"""Rows per robot: ten minutes of motion, some 3 MB for an arm with a welder."""
MOST_FOLLOWED = 20
"""Robots without joints that are read before their first query."""
SHARE = 0.1
"""Part of the wall time that reading may take in the long run."""
BURST_SECONDS = 0.25
"""Wall time of reading that is always allowed: some thousand rows."""
AT_ONCE = 600
"""Rows that are answered at once; more of them are written in slices."""
LONGEST_READING_SECONDS = 0.01
"""A reading that takes longer counts as this: the first one loads kernels."""


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.history)


class History:
    """A ring of rows per robot; `Recorder` of the cell's pump."""

    def __init__(
        self,
        robots: Robots,
        cell: Cell,
        pump: Pump,
        slices: Slices,
    ) -> None:
        self._robots = robots
        self._cell = cell
        self._now = pump.now
        self._slices = slices
        self._loop = asyncio.get_running_loop()
        self._records = {
            each.name: RobotHistory(each, robots.components[each.name].values()) for each in robots
        }
        plain = [name for name, each in self._records.items() if not each.is_plotted]
        skipped = frozenset(plain if len(plain) > MOST_FOLLOWED else ())
        self._watched = {n: each for n, each in self._records.items() if n not in skipped}
        """Records that are kept up to date: all but those of a large fleet, which begin with their
        first query."""
        self._unseen = dict(self._records)
        """Records of robots that were not seen at rest since their last change; of a robot that is
        not watched the first reading is enough."""
        self._budget = Budget(time.perf_counter)
        self._last = -COARSE_PERIOD
        self.due = 0
        self._timer: asyncio.TimerHandle | None = None
        pump.record(self)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ── the cell's time ──

    def next_reading(self, to: int) -> int | None:
        now = self._cell.now
        at = max(self.due, now)
        due = at <= to and any(record.changing(now) for record in self._to_read())
        return at if due else None

    def read(self, now: int) -> None:
        with self._budget:
            changing = [record for record in self._to_read() if record.changing(now)]
            for record in changing:
                record.add(now)
        if changing:
            self._last = now
        self._unseen = {
            name: each
            for name, each in self._watched.items()
            if name in self._unseen and not each.settled
        }
        self._set_due()

    def acted(self, now: int) -> None:
        for record in self._watched.values():
            if record.robot.real is None:
                record.acted(now)
        self._unseen |= self._watched

    def _set_due(self) -> None:
        """Sets the next reading: never before the period has passed, or without a record."""
        some = self._watched or self._unseen
        self.due = self._last + self._budget.period() if some else NEVER

    def _to_read(self) -> Iterator["RobotHistory"]:
        """Records of simulated robots that may have changed since their last reading."""
        records = chain(
            self._watched.values(),
            (each for name, each in self._unseen.items() if name not in self._watched),
        )
        return (record for record in records if record.robot.real is None)

    # ── REAL robots, on wall time ──

    def follow_real(self) -> None:
        """A robot has become REAL or simulated."""
        for record in self._records.values():
            record.interrupt()
        self._unseen = dict(self._records)
        self._set_due()
        if self._timer is None:
            self._read_real()

    def _read_real(self) -> None:
        self._timer = None
        real = self._robots.real()
        for robot in real:
            record = self._records[robot.name]
            if robot.condition().connected:
                record.add(self._now())
            else:
                record.interrupt()
        if real:
            self._timer = self._loop.call_later(seconds(PERIOD), self._read_real)

    # ── the query ──

    @query(large=True)
    def sample(
        self,
        robot: str,
        seconds_back: Annotated[float, Meta(gt=0, le=86_400)] = 60.0,
        after_s: float | None = None,
        count: Annotated[int, Meta(ge=1, le=KEPT)] = 600,
    ) -> Any:
        """Rows of joints, speeds, torques and device values of the last ten minutes.

        Rows of the last `seconds_back` of the cell's time, or those later than `after_s`; at most
        `count` of them, evenly thinned.
        """
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        now, record = self._now(), self._records[robot]
        if robot not in self._watched:
            self._watched[robot] = record
            record.interrupt()  # what it did until now is not known
            self._set_due()
        if found.real is None:
            record.add(now)
        if after_s is None:
            rows = record.span(record.newest - nanoseconds(seconds_back), count)
        else:
            rows = record.rows(nanoseconds(after_s), count)
        answer = {
            "robot": robot,
            "axes": record.axes(),
            "vehicle": found.model.vehicle is not None,
            "plots": [{"name": each.name, "unit": each.unit} for each in record.plots],
            "newest_s": seconds(record.newest),
        }
        first = list(islice(rows, AT_ONCE))
        if len(first) < AT_ONCE:
            return {**answer, "rows": first}
        return self._slices.do(_written(answer, chain(first, rows)))


def _written(answer: dict[str, Any], rows: Iterator[dict[str, Any]]) -> Work[dict[str, Any]]:
    """The answer with its rows as JSON text, so that the door need not write them at once."""
    components = []
    for row in rows:
        components.append(msgspec.json.encode(row))
        yield
    return {**answer, "rows": msgspec.Raw(b"[" + b",".join(components) + b"]")}


class Budget:
    """Limits the share of wall time that reading takes; `with budget:` measures a reading."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._at = wall()
        self._left = BURST_SECONDS

    def period(self) -> int:
        """Simulated time between two rows."""
        return PERIOD if self._left > 0.0 else COARSE_PERIOD

    def __enter__(self) -> None:
        now = self._wall()
        self._left = min(self._left + SHARE * (now - self._at), BURST_SECONDS)
        self._at = now

    def __exit__(self, *problem: object) -> None:
        self._left -= min(self._wall() - self._at, LONGEST_READING_SECONDS)


class Reading(NamedTuple):
    """The values of a robot at a time, as one array: joints, velocities and torques (`axes` of
    each), pose (6), tool speed, device values. `gap`: not joined with the reading before."""

    at: int
    axes: int
    gap: bool
    values: "array[float]"


@runtime_checkable
class Works(Protocol):
    """A component that says whether a ticket, command or program is under way."""

    def busy(self) -> bool: ...


class RobotHistory:
    """The readings of one robot, oldest first."""

    def __init__(self, robot: Robot, components: Iterable[Component]) -> None:
        """``components``: those of the robot."""
        self.robot = robot
        self.plots = plots_of(robot)
        self._units = [MM if kind == "prismatic" else DEG for _, kind in joint_kinds(robot)]
        self._workers = [each for each in components if isinstance(each, Works)]
        timed = any(isinstance(each, TimedComponent) for each in self._workers)
        self.is_plotted = bool(self.plots or self._units or timed)
        """Whether it has more to plot than its pose."""
        self._readings: deque[Reading] = deque(maxlen=KEPT)
        self._interrupted = False
        self.settled = False  # the last two readings are equal
        self._held = False  # a command came while the robot was at rest

    @property
    def newest(self) -> int:
        return self._readings[-1].at if self._readings else 0

    def changing(self, now: int) -> bool:
        """Whether readings are needed: something moves, or has not been seen at rest since."""
        if not self.settled or any(component.busy() for component in self._workers):
            return True
        shown = self._readings[-1].values[-len(self.plots) :] if self.plots else ()
        return any(plot.value(now) != value for plot, value in zip(self.plots, shown, strict=True))

    def interrupt(self) -> None:
        """The next reading is not joined with the last one."""
        self._interrupted = True
        self.settled = False

    def acted(self, now: int) -> None:
        """A command came, which may have changed a robot at rest at once (its joints were set, its
        tool was measured): the values held until now."""
        if self.settled:
            self._readings[-1] = self._readings[-1]._replace(at=now)
            self.settled, self._held = False, True

    def add(self, now: int) -> None:
        """Reads the robot. A reading of the same time is replaced: commands may have come since.
        Of several equal readings the first and the last are kept."""
        readings, side = self._readings, self.robot.side
        read = side.actions.axis_reading(now if side is self.robot.simulated else side.time.now())
        at = now if read.at is None else read.at
        if readings and at < self.newest:
            readings.clear()  # a snapshot was restored
            self._held = False
        if readings and at == self.newest and not self._held:
            self._interrupted |= readings.pop().gap
        last = None if self._interrupted or not readings else readings[-1]
        reading = self._reading(read, at, last)
        same = last is not None and last.values == reading.values
        if self._held and not same:
            reading = self._reading(read, at, None)  # a jump
        if same and (self.settled or self._held):
            readings.pop()
        readings.append(reading)
        self.settled, self._held, self._interrupted = same, False, False

    def _reading(self, read: AxisReading, at: int, last: Reading | None) -> Reading:
        """The values as they are kept. Speeds that the robot does not report are means since
        ``last``."""
        joints = self._in_units(read.joints)
        count, pose = len(joints), pose_mm_deg(read.pose)
        elapsed = (seconds(at - last.at) if last else 0.0) or inf
        before = last.values if last and last.axes == count else None
        velocities = self._in_units(read.velocities)
        if not velocities:
            from_ = before[:count] if before else joints
            velocities = [(v - b) / elapsed for v, b in zip(joints, from_, strict=True)]
        tip = before[3 * count : 3 * count + 3] if before else pose[:3]
        speed = dist(pose[:3], tip) / elapsed if read.speed is None else read.speed / MM
        torques = read.torques or [0.0] * count
        devices = [plot.value(at) for plot in self.plots]
        row = array("d", [*joints, *velocities, *torques, *pose, speed, *devices])
        return Reading(at, count, before is None, row)

    def _in_units(self, values: Sequence[float]) -> list[float]:
        units = self._units or [DEG] * len(values)
        return [value / unit for value, unit in zip(values, units, strict=False)]

    # ── rows for clients ──

    def axes(self) -> list[dict[str, str]]:
        """Name and unit of each joint."""
        kinds = joint_kinds(self.robot)
        return [
            {"name": name, "unit": "mm" if kind == "prismatic" else "°"} for name, kind in kinds
        ]

    def span(self, since: int, count: int) -> Iterator[dict[str, Any]]:
        """As `rows`, beginning with a row at ``since``: the reading before holds until then."""
        before = next((each for each in reversed(self._readings) if each.at <= since), None)
        if before is None or count < 2:
            return self.rows(since, count)
        held = self._as_dict(before._replace(at=since), gap=False)
        return chain([held], self.rows(since, count - 1))

    def rows(self, since: int, count: int) -> Iterator[dict[str, Any]]:
        """At most ``count`` rows later than ``since``, evenly thinned, the last one included; of
        the readings that there are when the first row is taken."""
        found = [reading for reading in self._readings if reading.at > since]
        kept = thinned(range(len(found)), count)
        before = -1
        for number in kept:
            gap = any(found[n].gap for n in range(before + 1, number + 1))
            yield self._as_dict(found[number], gap=gap)
            before = number

    def _as_dict(self, reading: Reading, *, gap: bool) -> dict[str, Any]:
        values, count = reading.values.tolist(), reading.axes
        row: dict[str, Any] = {
            "time_s": seconds(reading.at),
            "joints_deg": values[:count],
            "velocities_deg_s": values[count : 2 * count],
            "torques_nm": values[2 * count : 3 * count],
            "pose_mm_deg": values[3 * count : 3 * count + 6],
            "tool_speed_mm_s": values[3 * count + 6],
        }
        if gap:
            row["gap"] = True
        devices = values[3 * count + 7 :]
        return row | {plot.name: value for plot, value in zip(self.plots, devices, strict=True)}


def joint_kinds(robot: Robot) -> list[tuple[str, str]]:
    """Name and kind (`prismatic`, `revolute`) of each joint."""
    model = robot.model
    if model.chain is None:
        return [(axis.name, axis.kind) for axis in model.axes]
    chain = model.chain
    kinds = ("prismatic" if slides else "revolute" for slides in chain.slides)
    return list(zip(chain.names, kinds, strict=True))


def plots_of(robot: Robot) -> list[PlotRow]:
    """The curves of a robot's devices."""
    plotted = (each for each in robot.devices.values() if isinstance(each, Plotted))
    return [plot for device in plotted for plot in device.plots()]


def thinned(rows: Sequence[Any], count: int) -> list[Any]:
    """At most ``count`` of the rows, evenly spaced; the last row is one of them."""
    step = -(-len(rows) // count) if rows else 1
    return list(rows)[::-1][::step][::-1]
