"""Cycle time of a program, line by line, without running it.

A job, unlike a program, has rows of its own: how long each workpiece takes, how long each state of
its cycle lasts. The report offers the place (`JobRows`), the job's module fills it.
"""

from abc import abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args, overload

import numpy as np
from msgspec import Struct

from understudy.gcode.program import ProgramLine
from understudy.motion.dynamics import Dynamics, Overload
from understudy.motion.path import Floats, Ints
from understudy.motion.plan import Plan
from understudy.offline.json_stream import Listed
from understudy.offline.setup import Setup
from understudy.offline.walk import (
    Event,
    OutputSet,
    PlannedMotion,
    PoseMotion,
    Standstill,
    Violation,
    spans_of,
    walk,
)
from understudy.offline.waypoints import Waypoint, follow
from understudy.space.given import shown
from understudy.units import MM


class JobTable(NamedTuple):
    """A table for the terminal. `columns`: those with a ">" in front of their name are figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class JobRows(Protocol):
    """The rows of a job in its report."""

    def document(self) -> dict[str, Any]:
        """Keys and plain values for the JSON document."""
        ...

    def summary(self) -> str:
        """One line that follows the cycle time in the report of a validation."""
        ...

    def tables(self) -> Sequence[JobTable]:
        """Tables that follow the times in the report of the cycle time."""
        ...


# ── lines with their times, in columns: some dozen bytes for each line ────────────────────────────


Item = TypeVar("Item", covariant=True)
RowKind = Literal["motion", "process", "dwell", "io", "refused", ""]
KINDS: tuple[RowKind, ...] = get_args(RowKind)
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


class Row(Struct, frozen=True, gc=False):
    """A line of the program, and when it is run.

    `kind`: what most of its time is; empty if the line only sets modes.
    """

    line: int
    text: str
    start_s: float
    end_s: float
    kind: RowKind

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


class ReadOnDemand(Sequence[Item]):
    """Items in columns; each is made when it is read. Equal to any sequence of equal items."""

    @abstractmethod
    def _item(self, k: int) -> Item:
        """The item at index ``k``, which is in range."""

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(k) for k in range(*index.indices(len(self)))]
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[Item]:
        return (self._item(k) for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} lines>"


class Rows(ReadOnDemand[Row]):
    """Rows in the order of the program."""

    def __init__(self) -> None:
        self._line = array("q")
        self._start = array("d")
        self._end = array("d")
        self._kind = bytearray()
        self._text = bytearray()
        self._text_ends = array("q", [0])

    def append(self, line: int, text: str, start_s: float, end_s: float, kind: RowKind) -> None:
        self._line.append(line)
        self._start.append(start_s)
        self._end.append(end_s)
        self._kind.append(NUMBERS[kind])
        self._text += text.encode("utf-8", "surrogatepass")
        self._text_ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._line)

    @property
    def numbers(self) -> Ints:
        """The line numbers."""
        return np.frombuffer(self._line, dtype=np.int64)

    def run_texts(self) -> Iterator[str]:
        """The texts of the lines that were not refused."""
        refused = NUMBERS["refused"]
        return (self._text_of(k) for k, kind in enumerate(self._kind) if kind != refused)

    def start_of(self, line: int) -> float:
        """When a line begins; 0 if there is no such line."""
        k = int(np.searchsorted(self.numbers, line))
        return self._start[k] if k < len(self) and self._line[k] == line else 0.0

    def _item(self, k: int) -> Row:
        kind = KINDS[self._kind[k]]
        return Row(self._line[k], self._text_of(k), self._start[k], self._end[k], kind)

    def _text_of(self, k: int) -> str:
        text = self._text[self._text_ends[k] : self._text_ends[k + 1]]
        return text.decode("utf-8", "surrogatepass")


# ── cycle time ────────────────────────────────────────────────────────────────────────────────────


EFFORT_STEP_S = 0.01
SAMPLES_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Wait:
    """A line that waits for an input for an unknown time, at most `timeout_s`."""

    line: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CycleTime:
    """Seconds of motion, process (arc on), dwells and I/O, and the lines they consist of."""

    motion_s: float
    process_s: float
    dwell_s: float
    io_s: float
    blocks: int
    lines: Sequence[Row]
    waits: tuple[Wait, ...] = ()
    violations: tuple[Violation, ...] = ()
    overloads: tuple[Overload, ...] = ()
    """Overloaded joints, each at its worst time."""
    job: JobRows | None = None
    """What a job adds, if it is not a program that was timed."""
    interval_s: tuple[float, float] | None = None
    """Where the total lies if the cell has intervals from a fit to a real robot."""

    @property
    def total_s(self) -> float:
        return self.motion_s + self.process_s + self.dwell_s + self.io_s


class CycleTimeEstimator:
    """Plans a program as the controller does, and adds up the times."""

    def __init__(self, setup: Setup, start: Floats | None = None) -> None:
        self._setup = setup
        self._start = start

    def estimate(self, program: str | bytes) -> CycleTime:
        """Lines that cannot be run are left out, and listed.

        A wait for an input (M66) counts 0 s: without a scenario its time is unknown.
        """
        if not isinstance(program, str | bytes):
            raise ValueError(f"program: a text is needed, got {shown(program)}")
        return cycle_time_of(walk(program, self._setup, self._start), self._setup.dynamics)

    def estimate_waypoints(
        self,
        waypoints: Sequence[Waypoint],
        travel_speed_mm_s: float,
        process_speed_mm_s: float,
    ) -> CycleTime:
        """Speeds of the tool where a waypoint has none of its own."""
        speeds = (travel_speed_mm_s * MM, process_speed_mm_s * MM)
        return cycle_time_of(
            follow(waypoints, self._setup, speeds, self._start), self._setup.dynamics
        )


class _Open(Struct, gc=False):
    """A row whose times are not all known yet."""

    line: int
    text: str
    start: float
    end: float
    kind: RowKind = ""
    longest: float = -1.0

    def took(self, kind: RowKind, start: float, end: float) -> None:
        if self.longest < 0.0:
            self.start = start
        self.end = end
        if end - start > self.longest:
            self.longest = end - start
            self.kind = "refused" if self.kind == "refused" else kind


class Ledger:
    """Adds events up: how long a program takes, line by line."""

    def __init__(self, dynamics: Dynamics | None = None) -> None:
        self._dynamics = dynamics
        self._overloads: dict[str, Overload] = {}
        self.seconds: dict[str, float] = dict.fromkeys(("motion", "process", "dwell", "io"), 0.0)
        self.blocks = 0
        self.rows = Rows()
        self.waits: list[Wait] = []
        self.violations: list[Violation] = []
        self._open: list[_Open] = []
        self._now = 0.0

    def add(self, event: Event) -> None:
        if isinstance(event, ProgramLine):
            if text := event.text.strip():
                self._open.append(_Open(event.number, text, self._now, self._now))
        elif isinstance(event, PlannedMotion):
            self._run(event)
        elif isinstance(event, PoseMotion):
            self._took("motion", float(event.times[0]), float(event.times[-1]))
            self.blocks += 1
        elif isinstance(event, Standstill):
            self._stand(event)
        elif isinstance(event, OutputSet):
            self._open[-1].kind = "io"
        elif isinstance(event, Violation):
            self.violations.append(event)
            self._open[-1].kind = "refused"

    def result(self) -> CycleTime:
        self._close(len(self._open))
        return CycleTime(
            self.seconds["motion"],
            self.seconds["process"],
            self.seconds["dwell"],
            self.seconds["io"],
            self.blocks,
            self.rows,
            tuple(self.waits),
            tuple(self.violations),
            tuple(self._overloads.values()),
        )

    def _weigh(self, plan: Plan) -> None:
        """What the joints need along a run, looked at every 10 ms."""
        if self._dynamics is None or plan.duration <= 0.0:
            return
        count = int(np.ceil(plan.duration / EFFORT_STEP_S))
        for first in range(0, count, SAMPLES_AT_ONCE):
            steps = np.arange(first, min(first + SAMPLES_AT_ONCE, count))
            times = plan.begins + steps * EFFORT_STEP_S
            torques = self._dynamics.torques(plan.sample(times))
            for found in self._dynamics.overloads(times, torques):
                known = self._overloads.get(found.joint)
                if known is None or abs(found.torque) > abs(known.torque):
                    self._overloads[found.joint] = found

    def _run(self, run: PlannedMotion) -> None:
        kind: RowKind = "process" if run.process else "motion"
        plan = run.plan
        self.seconds[kind] += plan.duration
        self.blocks += int(plan.path.block[-1] - plan.path.block[0]) + 1
        spans = spans_of(plan)
        here = plan.begins
        for row in self._open:
            if row.line in spans:
                begin, here = spans[row.line]
                row.took(kind, begin, here)
            elif row.longest < 0.0:
                row.start = row.end = here
        self._now = plan.ends
        self._weigh(plan)
        self._close(self._lines_before(plan) if run.goes_on else len(self._open) - 1)

    def _lines_before(self, plan: Plan) -> int:
        """The number of open rows before the last line of a plan, which may go on."""
        last = int(plan.path.line[-1])
        return bisect_left(self._open, last, key=lambda row: row.line)

    def _stand(self, stand: Standstill) -> None:
        self._took(stand.kind, stand.begins, stand.ends)
        if stand.timeout is not None:
            self.waits.append(Wait(stand.line, stand.timeout))

    def _took(self, kind: RowKind, begins: float, ends: float) -> None:
        """Adds time to the current line."""
        self._close(len(self._open) - 1)
        self.seconds[kind] += ends - begins
        self._now = ends
        self._open[-1].took(kind, begins, ends)

    def _close(self, count: int) -> None:
        for row in self._open[:count]:
            self.rows.append(row.line, row.text, row.start, row.end, row.kind)
        del self._open[:count]


def cycle_time_of(events: Iterable[Event], dynamics: Dynamics | None = None) -> CycleTime:
    """Cycle time of the events of a program."""
    total = Ledger(dynamics)
    for event in events:
        total.add(event)
    return total.result()


def as_document(cycle: CycleTime) -> dict[str, Any]:
    """Plain values for JSON; the long lists as `Listed`, to be written piece by piece."""
    times = ("motion_s", "process_s", "dwell_s", "io_s", "total_s", "blocks")
    return (
        {name: getattr(cycle, name) for name in times}
        | ({"interval_s": cycle.interval_s} if cycle.interval_s else {})
        | (cycle.job.document() if cycle.job else {})
        | {
            "lines": Listed(cycle.lines, _fields),
            "waits": Listed(cycle.waits, _fields),
            "violations": Listed(cycle.violations, _fields),
            "overloads": [_fields(overload) for overload in cycle.overloads],
        }
    )


def _fields(value: Any) -> dict[str, Any]:
    names = getattr(value, "__struct_fields__", None) or value.__slots__
    return {name: getattr(value, name) for name in names}
