"""State of a real controller as its driver knows it: last report, settings, pins."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from understudy.errors import Refused, unknown
from understudy.gcode import GRBLHAL_ARM, Block, parse
from understudy.ports import AnalogIO, DigitalIO, Joints, JointState
from understudy.robots.grblhal.driver.messages import (
    Info,
    Report,
    Setting,
    decimal,
    numbers,
    whole,
)
from understudy.robots.grblhal.numbers import RX_SIZE, SettingNumber
from understudy.robots.grblhal.setting_table import SETTINGS
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, seconds

AXES = 6
NOWHERE: Joints = (math.nan,) * AXES
AT_REST: Joints = (0.0,) * AXES
STANDING = ("Idle", "Alarm", "Check", "Sleep")
"""States in which a line is answered at once, and every `$` line is accepted."""
MOVING = ("Run", "Jog", "Home")
WAITING = ("Hold", "Door", "Tool")
MOST_SETTINGS = 4096
BLOCKS = int(SETTINGS[SettingNumber.PLANNER_BLOCKS].default)
MOST_PINS = 256
DIGITAL_OUT, ANALOG_IN, ANALOG_OUT = 1, 2, 3
"""Positions of the counts in `[AUX IO:…]`."""

ToolPose = Callable[[Joints], Pose]
"""Pose of the tool for joint positions."""


DEGREES = (DEG,) * AXES
"""Units of the axes of an arm whose joints all turn."""


@dataclass
class ControllerInfo:
    """Answers to `$I` and `$$`: sizes of the buffers, options, settings. `units`: size of each
    axis unit in rad, or in m if the joint slides."""

    blocks: int = BLOCKS
    rx_bytes: int = RX_SIZE
    options: str = ""
    settings: dict[int, float] = field(default_factory=dict)
    units: Joints = DEGREES

    def update(self, word: Info | Setting) -> None:
        if isinstance(word, Setting):
            value = numbers(word.text)
            if value is not None and len(self.settings) < MOST_SETTINGS:
                self.settings[word.number] = value[0]
        elif word.name == "OPT":
            sizes = numbers(",".join(word.text.split(",")[1:])) or ()
            self.blocks = int(sizes[0]) if sizes and sizes[0] >= 1 else BLOCKS
            self.rx_bytes = int(sizes[1]) if len(sizes) > 1 and sizes[1] >= 128 else RX_SIZE
        elif word.name == "NEWOPT":
            self.options = word.text

    def top_speed(self, axis: int) -> float:
        """rad/s (m/s); infinite if it is not known."""
        rate = self.settings.get(SettingNumber.MAXIMUM_RATE + axis, 0.0)
        return (rate / MINUTE or math.inf) * self.units[axis]

    def acceleration(self, axis: int) -> float:
        """rad/s² (m/s²); infinite if it is not known."""
        known = self.settings.get(SettingNumber.ACCELERATION + axis, 0.0)
        return (known or math.inf) * self.units[axis]


class ControllerState:
    """The controller as its reports describe it."""

    def __init__(
        self,
        pins: "ReportedPins",
        tool_pose: ToolPose | None = None,
        units: Joints = DEGREES,
        *,
        fewer_axes: bool = False,
    ) -> None:
        self.pins = pins
        self.axis_count = AXES
        self._fewer_axes = fewer_axes
        self._tool_pose = tool_pose
        self.info = ControllerInfo(units=units)
        self.distance = 0.0
        self.homed = False
        self.forget()

    def forget(self) -> None:
        """Discard all reported values; the state is Unknown."""
        self.state = "Unknown"
        self.strange_state = ""
        """The word of the last report, if it is no known state."""
        self.substate = 0
        self.reported_at: int | None = None
        self.position: Joints = NOWHERE
        self.velocity: Joints = AT_REST
        self.free_blocks: int | None = None
        self._most_free = 0
        self.line = 0
        self.overrides: tuple[int, ...] = ()
        self.optional_stop: bool | None = None
        self._shift: Joints | None = None

    def note(self, word: Info | Setting) -> None:
        """Note a part of the answer to `$I` or `$$`."""
        if isinstance(word, Info) and word.name == "AUX IO":
            self.pins.counts = tuple(int(count) for count in numbers(word.text) or ())
        else:
            self.info.update(word)

    # ── reports ──

    def apply(self, report: Report, now: int) -> None:
        if report.state not in (*STANDING, *MOVING, *WAITING):
            self.forget()
            self.strange_state = report.state
            return
        fields = report.fields
        self.strange_state = ""
        self.state, self.substate = report.state, report.substate
        self.optional_stop = "T" not in fields.get("Pn", "")
        self.line = whole(fields.get("Ln", "0")) or 0
        self._shift = self._all_axes(numbers(fields.get("WCO", ""))) or self._shift
        if free := numbers(fields.get("Bf", "")):
            self.free_blocks = int(free[0])
            if report.state in STANDING:
                self._most_free = max(self._most_free, self.free_blocks)
        if homed := numbers(fields.get("H", "")):
            self.homed = homed[0] == 1
        if overrides := numbers(fields.get("Ov", "")):
            self.overrides = tuple(int(percent) for percent in overrides)
        if result := numbers(fields.get("In", "")):
            self.pins.note_input(result[0], now)
        self._move(self._machine_position(fields), numbers(fields.get("FS", "")), now)

    def _machine_position(self, fields: dict[str, str]) -> Joints | None:
        """Machine position in axis units; None if the report has none."""
        place, shift = numbers(fields.get("MPos", "")), AT_REST
        if place is None:
            place, shift = numbers(fields.get("WPos", "")), self._shift or NOWHERE
        position = self._all_axes(place)
        if place is None or position is None:
            return None
        self.axis_count = len(place)
        return tuple(value + more for value, more in zip(position, shift, strict=True))

    def _all_axes(self, values: Joints | None) -> Joints | None:
        """The values of six axes; those that the controller does not have are at 0."""
        count = len(values or ())
        if values is None or not (count == AXES or (self._fewer_axes and 0 < count < AXES)):
            return None
        return (*values, *AT_REST[count:])

    def _move(self, figures: Joints | None, speeds: Joints | None, now: int) -> None:
        """Note the position; compute the velocity from the last two positions and FS."""
        before, at, self.reported_at = self.position, self.reported_at, now
        if figures is None:
            return
        units = self.info.units
        self.position = tuple(value * unit for value, unit in zip(figures, units, strict=True))
        step = [b - a for a, b in zip(before, self.position, strict=True)]
        length = math.hypot(*step)
        if not self.moves or not length > 0.0 or at is None or at >= now:
            self.velocity = AT_REST if not self.moves else self.velocity
        else:
            way = math.hypot(*(part / unit for part, unit in zip(step, units, strict=True)))
            speed = speeds[0] / MINUTE * length / way if speeds else length / seconds(now - at)
            self.velocity = tuple(part / length * speed for part in step)
        if self._tool_pose is not None and length > 0.0:
            self.distance += math.dist(
                self._tool_pose(before)[:3], self._tool_pose(self.position)[:3]
            )

    @property
    def known(self) -> bool:
        """Whether a report has given the position."""
        return not math.isnan(self.position[0])

    @property
    def moves(self) -> bool:
        """The axes move."""
        return self.state in MOVING or (self.state in ("Hold", "Door") and self.substate > 0)

    @property
    def waits_for_operator(self) -> bool:
        return self.state in (*WAITING, "Sleep", "Alarm") and not self.moves

    @property
    def drained(self) -> bool:
        """Whether nothing moves and the planner is empty."""
        free = self.free_blocks
        return self.state in STANDING and (free is None or free >= self._most_free)

    @property
    def used_blocks(self) -> int:
        free = self.info.blocks if self.free_blocks is None else self.free_blocks
        return max(0, self.info.blocks - free)

    def stand_still(self) -> None:
        """Set the velocity to zero: the drives are off before a report shows it."""
        self.velocity = AT_REST

    def joints(self) -> JointState:
        return JointState(self.position, self.velocity, AT_REST, AT_REST)

    def tool_pose(self) -> Pose:
        """Pose of the tool; NaN if it is not known."""
        if self._tool_pose is None or not self.known:
            return Pose(*NOWHERE)
        return self._tool_pose(self.position)


class ReportedPins:
    """Pins of a real controller, as far as the wire reports them.

    Inputs are the values that M66 read last, outputs the values that accepted lines have set.
    Names may replace the numbers of outputs.
    """

    def __init__(self, digital_names: Mapping[str, int], analog_names: Mapping[str, int]) -> None:
        self._digital_names, self._analog_names = digital_names, analog_names
        self.counts: tuple[int, ...] = ()
        self.result = 0.0
        """Value that the last M66 read; -1 after its timeout."""
        self._read: tuple[float | None, int] | None = None
        self.last_read: tuple[Literal["DI", "AI"], int] | None = None
        """The input that the last M66 has read."""
        self.listeners: list[Callable[[int], None]] = []
        """Called with the time when an output was set or an input was read."""
        self._inputs = self._outputs = 0
        self._volts_in: dict[int, float] = {}
        self._volts_out: dict[int, float] = {}

    def digital(self) -> DigitalIO:
        return DigitalIO(self._inputs, self._outputs)

    def analog(self) -> AnalogIO:
        inputs = range(self._count(ANALOG_IN, 0))
        outputs = range(self._count(ANALOG_OUT, 0))
        return AnalogIO(
            tuple(self._volts_in.get(channel, 0.0) for channel in inputs),
            tuple(self._volts_out.get(channel, 0.0) for channel in outputs),
        )

    def volts_in(self, channel: int) -> float:
        return self._volts_in.get(channel, 0.0)

    def volts_out(self, channel: int) -> float:
        return self._volts_out.get(channel, 0.0)

    # ── lines that set outputs ──

    def set_digital(self, pin: int | str, value: bool) -> str | Refused:
        number = self._number(pin, self._digital_names, DIGITAL_OUT)
        return number if isinstance(number, Refused) else f"M{64 if value else 65}P{number}"

    def set_analog(self, channel: int | str, value: float) -> str | Refused:
        number = self._number(channel, self._analog_names, ANALOG_OUT)
        if isinstance(number, Refused):
            return number
        if not math.isfinite(value):
            return Refused(f"{value} is not a voltage")
        return f"M68E{number}Q{decimal(value)}"

    def _number(self, pin: int | str, names: Mapping[str, int], kind: int) -> int | Refused:
        number = names.get(pin) if isinstance(pin, str) else pin
        count = self._count(kind, MOST_PINS)
        if number is None:
            return Refused(str(unknown("output", str(pin), names)))
        if not 0 <= number < count:
            return Refused(f"there is no output {number}; there are 0…{count - 1}")
        return number

    def _count(self, kind: int, default: int) -> int:
        return self.counts[kind] if len(self.counts) > kind else default

    # ── values ──

    def note_line(self, line: str, now: int) -> None:
        """Note the outputs that an accepted line sets."""
        block = parse(line, GRBLHAL_ARM) if "M6" in line.upper() else None
        if not isinstance(block, Block):
            return
        name, values = block.commands.get("io"), block.values
        pin = int(values.get("E" if name in ("M67", "M68") else "P", 0))
        if not 0 <= pin < MOST_PINS:
            return
        if name in ("M62", "M64"):
            self._outputs |= 1 << pin
        elif name in ("M63", "M65"):
            self._outputs &= ~(1 << pin)
        elif name in ("M67", "M68"):
            self._volts_out[pin] = values.get("Q", 0.0)
        elif name == "M66":
            self._read = values.get("E"), pin
            return
        self._notify(now)

    def note_input(self, value: float, now: int) -> None:
        """Note the value that the last accepted M66 has read."""
        self.result = value
        read, self._read = self._read, None
        if read is None or value < 0:
            return
        channel, pin = read
        if channel is not None and 0 <= channel < MOST_PINS:
            self._volts_in[int(channel)] = value
            self.last_read = "AI", int(channel)
        elif channel is None:
            self._inputs = self._inputs | 1 << pin if value else self._inputs & ~(1 << pin)
            self.last_read = "DI", pin
        self._notify(now)

    def _notify(self, now: int) -> None:
        for listener in self.listeners:
            listener(now)
