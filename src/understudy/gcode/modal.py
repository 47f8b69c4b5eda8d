"""The modal state of a controller, from line to line: an immutable value."""

import math

from msgspec import Struct
from msgspec.structs import replace

from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.gcode.dialect import AXIS_LETTERS, ZERO, Axes


class Tool(Struct, frozen=True):
    """A row of the tool table; offsets in axis units.

    `built_in`: the part of the offset that the controller's kinematics has while this tool is
    mounted; G43 does not add it again.
    """

    number: int
    offset: Axes = ZERO
    radius: float = 0.0
    built_in: Axes = ZERO


class DrillCycle(Struct, frozen=True):
    """The values that a canned cycle keeps from line to line, in axis units.

    `retract` is a position of the drilling axis; `peck` is the depth of one plunge. `words` has one
    number per axis: the depth of the hole along the drilling axis, the way to the next hole along
    the others.
    """

    retract: float = 0.0
    peck: float = 0.0
    dwell_s: float = 0.0
    words: Axes = ZERO


class Scaling(Struct, frozen=True):
    """G51: the factor of each axis about the program's zero. `active` also with factors of 1."""

    factors: Axes = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    active: bool = False

    @property
    def letters(self) -> str:
        """The axes whose factor is not 1."""
        pairs = zip(AXIS_LETTERS, self.factors, strict=True)
        return "".join(letter for letter, factor in pairs if factor != 1.0)


class SavedModes(Struct, frozen=True):
    """The modes that M70 and M73 save and M72 restores. The active motion is not one of them."""

    plane: str
    units: str
    distance: str
    feed_mode: str
    tool_offset: str
    tool_length: Axes
    retract: str
    coordinates: int
    spindle: str
    speed: float
    mist: bool
    flood: bool
    feed_override: bool
    speed_override: bool
    hold_allowed: bool
    feed: float


class ModalCall(Struct, frozen=True):
    """A macro that G66 calls after every G0 and G1: its number, repeats and values."""

    name: str
    number: float
    repeats: int
    values: tuple[tuple[str, float], ...] = ()


class Modal(Struct, frozen=True, omit_defaults=True):
    """Active codes and numbers. Lengths in mm, angles in deg, F as programmed but in mm.

    `g92_kept`: the offset that G92.3 restores. `tool`: the present tool; `selected`: the tool for
    the next M6. `tool_length` is the offset that G43 … G49 set, per axis. `calls`: the macros of
    G66, the active one last. `cycle_left`: M2 or M30 ended a program in a canned cycle; until a
    line has a motion code the firmware still checks straight lines as those of a cycle.
    """

    motion: str = "G0"
    coordinates: int = 0
    plane: str = "G17"
    units: str = "G21"
    distance: str = "G90"
    feed_mode: str = "G94"
    tool_offset: str = "G49"
    retract: str = "G98"
    path: str = "G61"
    path_tolerance: float = 0.0
    kinematics: str = "M428"
    spindle: str = "M5"
    mist: bool = False
    flood: bool = False
    feed_override: bool = True
    speed_override: bool = True
    hold_allowed: bool = True
    feed: float = 0.0
    speed: float = 0.0
    tool: int = 0
    selected: int = 0
    line: int = 0
    tool_length: Axes = ZERO
    offsets: tuple[Axes, ...] = (ZERO,) * len(COORDINATE_SYSTEMS)
    g92: Axes = ZERO
    g92_kept: Axes = ZERO
    g28: Axes = ZERO
    g30: Axes = ZERO
    tools: tuple[Tool, ...] = ()
    cycle: DrillCycle = DrillCycle()
    cycle_left: bool = False
    scaling: Scaling = Scaling()
    saved: SavedModes | None = None
    calls: tuple[ModalCall, ...] = ()

    def offset(self, axis: int) -> tuple[float, float, float]:
        """The offsets from the program's zero to the machine's: work, G92, tool length."""
        return self.offsets[self.coordinates][axis], self.g92[axis], self.tool_length[axis]

    def built_in_length(self, tool: float) -> Axes:
        """The offset that the kinematics has while this tool is mounted."""
        row = self.tool_in_table(tool)
        return row.built_in if row else ZERO

    def tool_in_table(self, number: float) -> Tool | None:
        return next((tool for tool in self.tools if tool.number == number), None)


def work_offset(modal: Modal) -> Axes:
    """The sum of all offsets per axis (grblHAL's WCO)."""
    x, y, z, a, b, c = (sum(modal.offset(axis)) for axis in range(6))
    return x, y, z, a, b, c


def after_reset(modal: Modal, *, stopped: bool = False) -> Modal:
    """The state after a soft reset, which keeps offsets, stored positions, tools, tool length.

    The reset clears an active G43.1 but keeps its length. A controller that was only `stopped`
    (0x19) keeps G43.1, the coordinate system and M48 … M53.
    """
    allowed = modal if stopped else Modal()
    return Modal(
        feed_override=allowed.feed_override,
        speed_override=allowed.speed_override,
        hold_allowed=allowed.hold_allowed,
        coordinates=modal.coordinates if stopped else 0,
        tool_offset=modal.tool_offset if stopped else "G49",
        tool_length=modal.tool_length,
        offsets=modal.offsets,
        g92=modal.g92,
        g92_kept=modal.g92_kept,
        g28=modal.g28,
        g30=modal.g30,
        tool=modal.tool,
        selected=modal.tool,
        tools=modal.tools,
    )


def after_refusal(modal: Modal) -> Modal:
    """The state after a line that was refused: G66 ends."""
    return replace(modal, calls=()) if modal.calls else modal


def active_codes(modal: Modal) -> tuple[str, ...]:
    """The active codes, in the order in which grblHAL reports them."""
    coolant = [code for code, on in (("M7", modal.mist), ("M8", modal.flood)) if on] or ["M9"]
    overrides = (
        ("M50", modal.feed_override),
        ("M51", modal.speed_override),
        ("M53", modal.hold_allowed),
    )
    return (
        modal.motion,
        COORDINATE_SYSTEMS[modal.coordinates],
        *(("G92",) if any(modal.g92) else ()),
        modal.plane,
        modal.units,
        *(("G66",) if modal.calls else ()),
        modal.distance,
        modal.feed_mode,
        "G40",
        modal.tool_offset,
        modal.retract,
        f"G51:{modal.scaling.letters}" if modal.scaling.active else "G50",
        modal.spindle,
        *coolant,
        *(code for code, allowed in overrides if not allowed),
    )


def modes_report(modal: Modal) -> str:
    """grblHAL's answer to `$G`: ``[GC:G0 G54 … T0 F0 S0.]``."""
    numbers = f"T{modal.tool} F{int(modal.feed)} S{math.floor(modal.speed + 0.5)}."
    return f"[GC:{' '.join(active_codes(modal))} {numbers}]"
