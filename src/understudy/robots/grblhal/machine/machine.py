"""A plain six-axis machine under grblHAL: X Y Z in mm, A B C in deg, and its pins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct, structs
from numpy.typing import NDArray

from understudy.devices.io.pins import Config as IoConfig
from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import ConfigError, Refused
from understudy.gcode import GRBLHAL_MACHINE, ZERO, Dialect, Modal
from understudy.gcode.actions import LAST_TOOL
from understudy.gcode.blocks import number_text
from understudy.gcode.dialect import AXIS_LETTERS, Axes, with_pins
from understudy.gcode.modal import Tool
from understudy.gcode.requests import AxisArc, AxisMove, Move
from understudy.motion.arcs import CHORDS_AT_ONCE, MOST_CHORDS
from understudy.motion.lines import lines
from understudy.motion.odometer import Odometer, OdometerState
from understudy.motion.path import Floats, Limits, Path
from understudy.motion.stream import FIRMWARE_COMMIT, Queue, Stream
from understudy.ports import Deps, Part, Tally
from understudy.ports.faults import EMERGENCY_STOP, Faults
from understudy.ports.hmi import Pins, RobotView
from understudy.robots.grblhal.controller import FirmwareReading
from understudy.robots.grblhal.firmware import ControlledAxes, Firmware, SettingValues
from understudy.robots.grblhal.firmware import State as SavedFirmware
from understudy.robots.grblhal.machine.arcs import (
    chord_count,
    chord_ends,
    chord_stretches,
    segments,
    turns,
)
from understudy.robots.grblhal.machine.switches import (
    AxisLetter,
    LimitSwitches,
    SwitchConfig,
    SwitchFaults,
    axes_of,
    check_switches,
)
from understudy.robots.grblhal.numbers import ALL_AXES, AlarmCode, ErrorCode, SettingNumber
from understudy.robots.grblhal.settings import DEFAULTS, Settings
from understudy.simulation.program.runner import Runner
from understudy.simulation.program.steps import ControllerOptions, ProgramHooks
from understudy.simulation.program.steps import State as SavedProgram
from understudy.units import DEG, MINUTE, MM, nanoseconds

LINEAR_AXES = 3
TABLE_CODES = frozenset({"G43"})
"""Codes that the firmware has only with a tool table."""
_SETTING_NUMBERS = frozenset(DEFAULTS)
UNITS = (MM, MM, MM, DEG, DEG, DEG)


ToolNumber = Annotated[int, Meta(ge=1, le=LAST_TOOL)]


class ToolConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the tool table: its offset of X Y Z (mm), the length being that of Z."""

    name: str = ""
    offset_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius_mm: float = 0.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The machine in a cell file.

    `settings`: by grblHAL's numbers, where they differ from the firmware's defaults. They are what
    the machine's builder has stored: `$RST=$` restores the firmware's own defaults.
    `tools`: the tool table for G43; without it the firmware has none, and G43 is error 20.
    `wired`: each input is wired to the output of the same number.
    `limit_switches`: of each axis that has one, by its letter. `starts_at`: where the axes stand at
    power-on, in mm and deg; the firmware counts from zero there until it is homed.
    """

    settings: dict[int, float] = {}
    tools: dict[ToolNumber, ToolConfig] = {}
    limit_switches: dict[AxisLetter, SwitchConfig] = {}
    starts_at: dict[AxisLetter, float] = {}
    wired: bool = True
    io: IoConfig = IoConfig(
        digital_inputs=8,
        digital_outputs=8,
        analog_inputs=4,
        analog_outputs=4,
        analog_range_v=None,
        digital_input_names={},
        digital_output_names={},
        analog_input_names={},
        analog_output_names={},
    )


class Saved(Struct):
    """Snapshot of a machine."""

    firmware: SavedFirmware
    program: SavedProgram
    odometer: OdometerState
    switch_faults: SwitchFaults = SwitchFaults()


class MachineSensors:
    """`Sensors` of a machine."""

    def __init__(self, switches: LimitSwitches) -> None:
        self.limits = switches.levels
        self.limit_edges = switches.edges

    def contact(self, position: Floats) -> bool:
        return False


class Machine:
    """`Part` and `GrblRobot`."""

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.io = pins_of(config)
        self.parts: dict[str, Part] = {"io": self.io}
        self._config = config
        self._homed = 0
        self._mover = TravelMover.of(Settings(), self._homed)
        self._switches = LimitSwitches(config.limit_switches)
        self._blocks = Settings(config.settings).planner_blocks
        axes = ControlledAxes(
            unit=1.0,
            defaults=DEFAULTS,
            stored=tuple(config.settings.items()),
            change=_changed,
            build=self._rebuild,
            on_steps=lambda position: self._mover.on_steps(position),
            sensors=MachineSensors(self._switches),
            origin=axes_of(config.starts_at),
            homed=self._note_homed,
        )
        self._odometer = Odometer(self._tip_positions)
        self.firmware = Firmware(axes, self._runner)

    # ── part ──

    def next_wake(self) -> int | None:
        return self.firmware.next_wake()

    def wake(self, now: int) -> None:
        self.firmware.wake(now)

    def postponed(self) -> bool:
        return self.firmware.runner.postponed

    def busy(self) -> bool:
        return self.next_wake() is not None

    def status(self, now: int) -> FirmwareReading:
        return self.firmware.reading(now)

    def view(self, now: int) -> RobotView:
        reading, digital = self.firmware.reading(now), self.io.digital()
        plan = self.firmware.runner.queue.plan
        axes = _si(reading.position)
        return RobotView(
            q=axes,
            tcp=axes,
            state=reading.state,
            moving=self.firmware.moving(now),
            tool=reading.tool,
            line=reading.line,
            ghost=_si(plan.target.tolist()) if nanoseconds(plan.ends) > now else None,
            io=Pins(digital.inputs, digital.outputs),
            linear=tuple(range(LINEAR_AXES)),
        )

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each command, from a client, an operator or a program."""
        self.firmware.runner.command_listeners.append(listener)

    def faults(self) -> Faults:
        return EMERGENCY_STOP

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "emergency_stop":
            self.firmware.emergency_stop(AlarmCode.ESTOP, now)
        else:
            self.firmware.release(now)
        return None

    # ── counters ──

    def tally(self, now: int) -> Tally:
        """Executed blocks, and the path of X Y Z."""
        runner = self.firmware.runner
        distance = self._odometer.at(now, runner.queue.plan.ends)
        return Tally(gcode_executed=runner.state.executed, distance=distance)

    def _mark(self, now: int) -> None:
        self._odometer.mark(now, self.firmware.runner.queue.plan.ends)

    def _tip_positions(self, times: Floats) -> Floats:
        return self.firmware.runner.queue.plan.positions(times)[:, :LINEAR_AXES] * MM

    # ── supervised ──

    def inhibit_motion(self, now: int) -> None:
        self.firmware.inhibit(now)

    def permit_motion(self, now: int) -> None:
        self.firmware.permit(now)

    def reset(self, now: int) -> None:
        """Releases the emergency stop, unlocks the firmware and clears the pins."""
        self.firmware.release(now, unlock=True)
        self.io.reset(now)

    def fault(self, now: int) -> Refused | None:
        return self.firmware.fault()

    # ── snapshots ──

    def save(self) -> Saved:
        return Saved(
            self.firmware.save(),
            self.firmware.runner.save(),
            self._odometer.state,
            self._switches.faults,
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self.firmware.load(saved.firmware)
        self._switches.faults = saved.switch_faults
        self._homed = saved.firmware.homed
        settings = self.firmware.storage.settings()
        self.firmware.runner.adopt(*self._rebuild(settings, np.zeros(6), 0.0))
        self.firmware.runner.load(saved.program)
        self._odometer.state = saved.odometer

    # ── inside ──

    def _runner(self, hooks: ProgramHooks) -> Runner:
        options, queue = self._rebuild(self._config.settings, np.zeros(6), 0.0)
        mount = lambda tool: self._mover  # noqa: E731
        return Runner(options, io=self.io, queue=queue, mount=mount, hooks=hooks)

    def _note_homed(self, axes: int) -> None:
        """Soft limits act on homed axes."""
        self._homed = axes
        self._mover = TravelMover.of(Settings(self.firmware.storage.settings()), axes)
        self.firmware.runner.remount()

    def _rebuild(
        self, values: SettingValues, position: Floats, at: float
    ) -> tuple[ControllerOptions, Queue]:
        settings = Settings(dict(values))
        self._mover = TravelMover.of(settings, self._homed)
        dialect = dialect_of(self._config, settings)
        options = ControllerOptions(
            dialect=dialect,
            modal=modal_of(self._config),
            home=ZERO,
            homing_share=1.0,
            deviation=settings.junction_deviation,
            wire=dialect,
            rests_at_offsets=settings.rests_at_offsets,
            probes_overridden=settings.probes_overridden,
            switch_seconds=settings.switch_seconds,
        )
        stream = Stream(
            position,
            settings.limits,
            window=self._blocks,
            commit=FIRMWARE_COMMIT,
            at=at,
        )
        queue = Queue(stream)
        queue.before_change = self._mark
        return options, queue


def build(name: str, config: Config, deps: Deps) -> Machine:
    settings_of(config)
    check_switches(config.limit_switches)
    return Machine(name, config)


def settings_of(config: Config) -> Settings:
    """Settings of the cell file; a value that the firmware refuses is a ConfigError."""
    settings = Settings()
    homing_first = sorted(config.settings, key=lambda number: number != SettingNumber.HOMING_CYCLE)
    for number in homing_first:
        text = number_text(config.settings[number])
        after = settings.changed(number, text)
        if isinstance(after, Refused):
            raise ConfigError(after.reason, key=f"settings.{number}", value=f"${number}={text}")
        settings = after
    return Settings(config.settings)


def modal_of(config: Config) -> Modal:
    """The modal state after power-on, with the tool table."""
    rows = sorted(config.tools.items())
    return Modal(
        tools=tuple(
            Tool(number, (*tool.offset_mm, 0.0, 0.0, 0.0), tool.radius_mm) for number, tool in rows
        )
    )


def dialect_of(config: Config, settings: Settings) -> Dialect:
    """The firmware's dialect, with the axes and pins of this machine."""
    machine = structs.replace(
        GRBLHAL_MACHINE,
        without=GRBLHAL_MACHINE.without - TABLE_CODES if config.tools else GRBLHAL_MACHINE.without,
        rotary=settings.rotary,
        chip_break_mm=settings.chip_break_mm,
        settings=_SETTING_NUMBERS,
    )
    return with_pins(
        machine,
        digital_inputs=config.io.digital_inputs,
        digital_outputs=config.io.digital_outputs,
        analog_inputs=config.io.analog_inputs,
        analog_outputs=config.io.analog_outputs,
    )


def pins_of(config: Config) -> VirtualIO:
    """The machine's pins; if they are wired, input n follows output n."""
    io = VirtualIO(config.io)
    if not config.wired:
        return io
    for pin in range(min(io.di.count, io.do.count)):
        io.link(pin, pin, 0.0, 0)
    for channel in range(min(io.ai.count, io.ao.count)):
        io.drive_analog(channel, lambda now, at=channel: io.analog_output(at))  # type: ignore[misc]
    return io


def _changed(values: SettingValues, number: int, text: str) -> SettingValues | Refused:
    changed = Settings(dict(values)).changed(number, text)
    return changed if isinstance(changed, Refused) else dict(changed.given)


def _si(position: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * unit for value, unit in zip(position, UNITS, strict=True))


# ── moves as paths of the axes, in mm and deg ───────────────────────────────────────────────────


SLOWEST = 1.0 / MINUTE
"""Least feed of the firmware: 1 unit per minute."""
TINY = 1e-300
ON_LIMIT = 1e-6
"""Tolerance of a soft limit in mm or deg."""


@dataclass(frozen=True)
class MachineMover:
    """`Mover` of the machine that settings describe, without soft limits."""

    settings: Settings
    limits: Limits
    deviation: float
    steps: Floats
    linear: NDArray[np.bool_]
    arc_tolerance: float
    feed_is_linear: bool

    @staticmethod
    def of(settings: Settings) -> "MachineMover":
        return MachineMover(
            settings,
            settings.limits,
            settings.junction_deviation,
            settings.steps,
            ~np.array(settings.rotary),
            settings.arc_tolerance,
            settings.feed_is_linear,
        )

    def axes(self, position: Floats) -> Axes:
        x, y, z, a, b, c = (float(value) for value in position)
        return x, y, z, a, b, c

    def pose(self, position: Floats) -> Axes:
        """The position of the axes: a machine has no other frame."""
        return self.axes(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        """Path from ``start``; ``line`` is its line number, ``exact`` stops at its end."""
        if isinstance(move, AxisMove):
            return self.straight([move], start, line=[line], exact=exact)
        if not isinstance(move, AxisArc):
            reason = "a machine has linear and rotary axes, not joints"
            return Refused(reason, ErrorCode.UNSUPPORTED)
        if refused := self._too_many_chords(move):
            return refused
        through = self.on_steps(chord_ends(move, start, self.arc_tolerance))
        feed, inverse = self._arc_feed(move)
        return self._lines(
            start, through, feed, inverse=inverse, line=line, exact=exact, chords=True
        )

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool = False
    ) -> Iterator[Path] | Refused | None:
        """An arc of many chords as consecutive paths, with the same result as `path`."""
        if not isinstance(move, AxisArc) or chord_count(move, self.arc_tolerance) <= CHORDS_AT_ONCE:
            return None
        return self._too_many_chords(move) or self._stretches(move, start, line=line, exact=exact)

    def _stretches(self, arc: AxisArc, start: Floats, *, line: int, exact: bool) -> Iterator[Path]:
        feed, inverse = self._arc_feed(arc)
        here = self.on_steps(start)
        for ends in chord_stretches(arc, start, self.arc_tolerance):
            through = self.on_steps(ends)
            yield self._lines(
                here, through, feed, inverse=inverse, line=line, exact=exact, chords=True
            )
            if self.feed_is_linear:
                mixed, length = self._mixed(here, through)
                feed /= float(np.prod(length[mixed & (not inverse)]))
            here = through[-1]

    def _too_many_chords(self, arc: AxisArc) -> Refused | None:
        count = chord_count(arc, self.arc_tolerance)
        if count <= MOST_CHORDS:
            return None
        reason = f"{count} chords are too many for an arc: {MOST_CHORDS} at most"
        return Refused(reason, ErrorCode.RANGE)

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool = False
    ) -> Path:
        """Path of many lines; none of them is refused."""
        through = self.on_steps(np.array([move.target for move in moves]))
        rapid = np.array([move.rapid for move in moves])
        feed = np.array([move.feed for move in moves])
        return self._lines(
            start,
            through,
            np.where(rapid, np.inf, feed),
            inverse=np.array([move.inverse_time for move in moves]),
            line=line,
            exact=exact,
            rapid=rapid,
        )

    def on_steps(self, position: Floats) -> Floats:
        """Round to whole steps, half away from zero, in the firmware's single precision."""
        scaled = position.astype(np.float32) * self.steps.astype(np.float32)
        whole = np.copysign(np.floor(np.abs(scaled.astype(np.float64)) + 0.5), scaled)
        return np.asarray(whole / self.steps)

    def _arc_feed(self, arc: AxisArc) -> tuple[float, bool]:
        """Feed, and whether it is inverse time.

        Under G93 the firmware multiplies F by the chords of the first turn and uses the product as
        a plain feed.
        """
        count = segments(turns(arc)[0], arc.radius, self.arc_tolerance)
        if arc.inverse_time and count:
            return arc.feed * count, False
        return arc.feed, arc.inverse_time

    def _lines(
        self,
        start: Floats,
        through: Floats,
        feed: Floats | float,
        *,
        inverse: NDArray[np.bool_] | bool,
        line: Sequence[int] | int,
        exact: bool,
        rapid: NDArray[np.bool_] | bool = False,
        chords: bool = False,
    ) -> Path:
        """Path of lines; ``feed`` is per minute, ``chords``: the lines are those of one arc."""
        begin = self.on_steps(start)
        if self.feed_is_linear:
            mixed, length = self._mixed(begin, through)
            mixed &= ~(np.asarray(inverse) | rapid)
            share = np.where(mixed, length, 1.0)
            # The firmware divides the feed of an arc again at each chord and keeps the quotient.
            feed = np.asarray(feed) / (np.cumprod(share) if chords else share)
            inverse = mixed | inverse
        found = lines(
            begin,
            through,
            self.limits,
            feed=np.maximum(np.asarray(feed) / MINUTE, TINY),
            rapid=rapid,
            inverse_time=inverse,
            deviation=self.deviation,
            exact=exact,
            line=line,
        )
        return replace(found, feed=np.maximum(found.feed, SLOWEST))

    def _mixed(self, start: Floats, through: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Lines of linear and rotary axes together, and the length of the linear part.

        With $701 the feed of such a line is that of its linear axes.
        """
        difference = np.diff(through, axis=0, prepend=start[None])
        length = np.linalg.norm(difference[:, self.linear], axis=1)
        return (difference[:, ~self.linear] != 0.0).any(axis=1) & (length > 0.0), length


@dataclass(frozen=True)
class TravelMover:
    """`Mover` of a machine with soft limits ($20, $130 …).

    A path that leaves the range ``lower`` … ``upper`` is refused. Axes that are not homed have no
    range; ``limited`` is false if none has one.
    """

    mover: MachineMover
    lower: Floats
    upper: Floats
    limited: bool

    @staticmethod
    def of(settings: Settings, homed: int = ALL_AXES) -> "TravelMover":
        """The mover of a machine of which these axes are homed, as a mask."""
        free = np.array([not homed >> axis & 1 for axis in range(len(AXIS_LETTERS))])
        free |= (settings.travel == 0.0) | (not settings.soft_limits)
        lower, upper = settings.travel_range
        return TravelMover(
            MachineMover.of(settings),
            np.where(free, -np.inf, lower),
            np.where(free, np.inf, upper),
            not bool(free.all()),
        )

    @property
    def limits(self) -> Limits:
        return self.mover.limits

    @property
    def deviation(self) -> float:
        return self.mover.deviation

    def axes(self, position: Floats) -> Axes:
        return self.mover.axes(position)

    def pose(self, position: Floats) -> Axes:
        return self.mover.pose(position)

    def on_steps(self, position: Floats) -> Floats:
        return self.mover.on_steps(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        path = self.mover.path(move, start, line=line, exact=exact)
        if isinstance(path, Refused):
            return path
        return self._beyond(path) or path

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool = False
    ) -> Iterator[Path] | Refused | None:
        """Like `MachineMover.stretches`; the whole arc is checked before its first stretch."""
        found = self.mover.stretches(move, start, line=line, exact=exact)
        if found is None or isinstance(found, Refused) or not self.limited:
            return found
        for path in found:
            if refused := self._beyond(path):
                return refused
        return self.mover.stretches(move, start, line=line, exact=exact)

    def _beyond(self, path: Path) -> Refused | None:
        """The refusal of a path that leaves the travel; None if it stays within."""
        if not self.limited or not len(path):
            return None
        over = (path.end > self.upper + ON_LIMIT) | (path.end < self.lower - ON_LIMIT)
        if not over.any():
            return None
        row, axis = np.argwhere(over)[0]
        within = f"{self.lower[axis]:g}…{self.upper[axis]:g}"
        reason = f"{AXIS_LETTERS[axis]} {path.end[row, axis]:g} is outside {within}"
        return Refused(reason, AlarmCode.SOFT_LIMIT)
