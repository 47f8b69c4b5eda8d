"""Dialects: the letters of the axes, and the codes and pins that a controller has.

`arm`: A B C U V W are the joints of an arm, X Y Z (with A B C as rx ry rz) its tool.
`grblhal`: X Y Z A B C are six axes: the joints of an arm, or mm and deg of a plain machine.
"""

import math
import struct
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from understudy.units import DEG, MM

Axes = tuple[float, float, float, float, float, float]
"""One number per axis in axis units: mm where the axis is linear, deg where it is rotary."""

Frame = Literal["axes", "tool"]
"""The meaning of the six numbers of a target: axis positions, or the pose of the tool."""

ZERO: Axes = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
AXIS_LETTERS = "XYZABC"
JOINT_LETTERS = "ABCUVW"
MM_PER_INCH = 25.4
LONGEST_WIRE_LINE = 256
DELAYS_PER_SECOND = 20
"""Steps of 50 ms in which the firmware waits."""
_SINGLE = struct.Struct("f")
_ALL_ROTARY = (True, True, True, True, True, True)
_TOOL_ROTARY = (False, False, False, True, True, True)


class Spelling(Struct, frozen=True):
    """How a controller reads text.

    `single`: numbers in single precision, as the firmware's own reader makes them.
    `checksum`: a ``*71`` at the end, as some senders add, is ignored.
    `block_delete`: lines that begin with ``/`` are skipped.
    `longest`: characters in a line (0: any).
    """

    single: bool = False
    checksum: bool = False
    block_delete: bool = False
    longest: int = 0


class Dialect(Struct, frozen=True):
    """The dialect of a controller.

    `arm`: requests are in SI for an arm, otherwise in axis units for a machine. `without`: codes
    that this controller refuses with error 20. `digital_inputs` …: the number of pins for M62 …
    M68. `feed_per_second`: F is per second instead of per minute. `chip_break_mm`: how far G73
    retracts. `accepted_only`: canned cycles that the controller accepts without any motion.
    `settings`: the numbers of the controller's settings.
    Not `changes_tools`: M6 has no effect, and T sets the number of the tool in the spindle.
    """

    name: Literal["arm", "grblhal"]
    arm: bool
    rotary: tuple[bool, ...]
    without: frozenset[str] = frozenset()
    spelling: Spelling = Spelling()
    feed_per_second: bool = False
    digital_inputs: int = 32
    digital_outputs: int = 32
    analog_inputs: int = 8
    analog_outputs: int = 8
    chip_break_mm: float = 0.1
    accepted_only: frozenset[str] = frozenset()
    changes_tools: bool = True
    settings: frozenset[int] = frozenset()

    @property
    def two_frames(self) -> bool:
        return self.name == "arm"

    @property
    def letters(self) -> str:
        """All letters that are axis words."""
        return "XYZABCUVW" if self.two_frames else AXIS_LETTERS

    def index(self, frame: Frame) -> dict[str, int]:
        """Letter → index of its axis."""
        return _JOINT_INDEX if self.two_frames and frame == "axes" else _AXIS_INDEX

    def is_rotary(self, frame: Frame) -> tuple[bool, ...]:
        return self.rotary if frame == "axes" else _TOOL_ROTARY

    @property
    def units(self) -> tuple[float, ...]:
        """Size of each axis unit in SI: a degree, or a millimetre of an axis that is not rotary."""
        return tuple(DEG if rotary else MM for rotary in self.rotary)

    def exact(self, value: float) -> float:
        """The number as this controller keeps it: the firmware computes in single precision."""
        return single(value) if self.spelling.single else value

    def dwell_seconds(self, seconds: float) -> float:
        """The time of a dwell of this length on this controller."""
        return seconds if self.two_frames else firmware_delay(seconds)


def firmware_delay(seconds: float) -> float:
    """The time that the firmware waits: whole steps, counted in single precision."""
    return math.ceil(single(single(seconds) * DELAYS_PER_SECOND)) / DELAYS_PER_SECOND


def single(value: float) -> float:
    """The nearest single-precision number."""
    (nearest,) = _SINGLE.unpack(_SINGLE.pack(value))
    return float(nearest)


_AXIS_INDEX = {letter: index for index, letter in enumerate(AXIS_LETTERS)}
_JOINT_INDEX = {letter: index for index, letter in enumerate(JOINT_LETTERS)}
_NOT_IN_FIRMWARE = frozenset({"G43", "G43.2", "G61.1", "G64", "M428", "M429"})
TABLE_CODES = frozenset({"G43"})
"""Codes that the firmware has only with a tool table."""
_WITHOUT_MOTION = frozenset({"G85", "G86", "G89"})
"""The firmware reads these cycles, answers ok, and does not drill."""
_WIRE_SPELLING = Spelling(single=True, longest=LONGEST_WIRE_LINE)

ARM = Dialect(
    "arm",
    arm=True,
    rotary=_ALL_ROTARY,
    spelling=Spelling(checksum=True),
    without=frozenset({"G43.2", "G51", "G65", "G66", "G66.1", "G67", "M98"}),
)
"""The own dialect of an arm: joints, and lines of the tool."""

GRBLHAL_ARM = Dialect(
    "grblhal",
    arm=True,
    rotary=_ALL_ROTARY,
    without=_NOT_IN_FIRMWARE,
    spelling=_WIRE_SPELLING,
    accepted_only=_WITHOUT_MOTION,
)
"""An arm behind a grblHAL wire: X Y Z A B C are J1 … J6 in degrees."""

GRBLHAL_MACHINE = Dialect(
    "grblhal",
    arm=False,
    rotary=_TOOL_ROTARY,
    without=_NOT_IN_FIRMWARE,
    spelling=_WIRE_SPELLING,
    digital_inputs=8,
    digital_outputs=8,
    analog_inputs=4,
    analog_outputs=4,
    accepted_only=_WITHOUT_MOTION,
)
"""A six-axis machine: X Y Z in mm, A B C in deg."""


def with_pins(
    dialect: Dialect,
    *,
    digital_inputs: int,
    digital_outputs: int,
    analog_inputs: int,
    analog_outputs: int,
) -> Dialect:
    """The dialect of a controller with these pins; without pins it has no codes for them."""
    counts = (
        (digital_outputs, "M62 M63 M64 M65"),
        (digital_inputs + analog_inputs, "M66"),
        (analog_outputs, "M67 M68"),
    )
    missing = {code for count, codes in counts if count == 0 for code in codes.split()}
    return replace(
        dialect,
        without=dialect.without | missing,
        digital_inputs=digital_inputs,
        digital_outputs=digital_outputs,
        analog_inputs=analog_inputs,
        analog_outputs=analog_outputs,
    )


def rotary_axes(mask: int) -> tuple[bool, ...]:
    """The rotary axes of grblHAL's $376: bit 0 is A; X Y Z are never rotary."""
    return (False, False, False, *(bool(mask >> bit & 1) for bit in range(3)))
