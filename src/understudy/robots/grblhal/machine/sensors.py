"""Sensors of a machine: its limit switches, and a probe with what it can touch.

Positions are those of the machine: the coordinates that the axes have after homing. The
probe is the tip of the tool in the spindle: below the axes by the length of the tool in the tool
table, at the axes without one.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.errors import ConfigError
from understudy.gcode.dialect import Axes
from understudy.motion.path import Floats, Path
from understudy.ports.faults import Fault, Faults, Figure
from understudy.robots.grblhal.settings import Settings

# ── limit switches ────────────────────────────────────────────────────────────────────────────────


AxisLetter = Literal["X", "Y", "Z", "A", "B", "C"]
EDGE = 1e-6
"""Tolerance of a switch in mm or deg."""


class SwitchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The limit switches of an axis: where they are, in mm or deg. Both are wired to the limit
    input of the axis.

    `normally_closed`: the input is on while no switch is pressed; $5 has to have the bit of the
    axis.
    """

    min: float | None = None
    max: float | None = None
    normally_closed: bool = False


class SwitchFaults(Struct, frozen=True):
    """Masks of the axes whose switch is `stuck`, as if always pressed, or `dead`: never pressed."""

    stuck: int = 0
    dead: int = 0


_AXIS = {"axis": Figure(0.0, 0.0, 5.0)}
SENSOR_FAULTS: Faults = {
    "limit_switch_stuck": Fault("brought", "a limit switch stays pressed; axis 0 … 5", _AXIS),
    "limit_switch_dead": Fault("brought", "a limit switch is never pressed; axis 0 … 5", _AXIS),
    "probe_dead": Fault("brought", "the probe touches nothing"),
    "probe_stuck": Fault("brought", "the probe is on, as if it always touched"),
    "sensors_repaired": Fault("brought", "limit switches and probe work again"),
}


class LimitSwitches:
    """The limit inputs as functions of the position."""

    def __init__(self, config: Mapping[AxisLetter, SwitchConfig]) -> None:
        rows = [config.get(letter, SwitchConfig()) for letter in get_args(AxisLetter)]
        self._low = np.array([-np.inf if row.min is None else row.min for row in rows])
        self._high = np.array([np.inf if row.max is None else row.max for row in rows])
        self._closed = _mask(np.array([row.normally_closed for row in rows]))
        self.faults = SwitchFaults()

    def fail(self, fault: str, axis: int) -> None:
        """Let the switches of an axis be stuck or dead."""
        bit, faults = 1 << axis, self.faults
        if fault == "limit_switch_stuck":
            self.faults = SwitchFaults(faults.stuck | bit, faults.dead & ~bit)
        else:
            self.faults = SwitchFaults(faults.stuck & ~bit, faults.dead | bit)

    def levels(self, position: Floats) -> int:
        """Levels of the limit inputs, one bit for each axis."""
        pressed = _mask((position <= self._low + EDGE) | (position >= self._high - EDGE))
        return (pressed | self.faults.stuck) & ~self.faults.dead ^ self._closed

    def edges(self, axis: int) -> tuple[float, ...]:
        """Positions of an axis at which its input changes."""
        both = (float(self._low[axis]), float(self._high[axis]))
        return tuple(edge for edge in both if np.isfinite(edge))


def check_switches(config: Mapping[AxisLetter, SwitchConfig]) -> None:
    """Refuse a row without a switch, and switches that leave an axis no room."""
    for letter, row in config.items():
        if row.min is None and row.max is None:
            raise ConfigError(
                "the axis has no switch",
                key=f"limit_switches.{letter}",
                allowed="min, max or both; leave the axis out if it has none",
            )
        if row.min is not None and row.max is not None and not row.min < row.max:
            raise ConfigError(
                "the switches leave the axis no room",
                key=f"limit_switches.{letter}",
                value=f"min {row.min:g}, max {row.max:g}",
                allowed="min below max",
            )


def axes_of(values: Mapping[AxisLetter, float]) -> Axes:
    """Values of the six axes; 0 where none is given."""
    x, y, z, a, b, c = (float(values.get(letter, 0.0)) for letter in get_args(AxisLetter))
    return x, y, z, a, b, c


def _mask(flags: NDArray[np.bool_]) -> int:
    return int(flags.astype(np.int64) @ (1 << np.arange(len(flags))))


# ── probe ─────────────────────────────────────────────────────────────────────────────────────────


Millimetres3 = tuple[float, float, float]
COMMITTED_S = 0.03
"""Seconds between the touch and the begin of the braking: step segments that the firmware keeps."""
ProbeFault = Literal["", "dead", "stuck"]
PROBE_FAULTS: dict[str, ProbeFault] = {"probe_dead": "dead", "probe_stuck": "stuck"}
ON_SURFACE = 1e-6
"""Tolerance of a surface in mm."""


class BoxConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A box that the probe can touch, between two corners."""

    low_mm: Millimetres3
    high_mm: Millimetres3
    name: str = ""


class ToolSetterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool setter: a round plate, wired to the probe input."""

    position_mm: tuple[float, float]
    top_mm: float
    radius_mm: Annotated[float, Meta(gt=0.0)] = 10.0


class ProbeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the probe can touch: everything below `table_mm`, `boxes`, and the `tool_setter`.

    `normally_closed`: the input is on while the probe touches nothing; $6 has to be 1.
    """

    table_mm: float | None = None
    boxes: Annotated[tuple[BoxConfig, ...], Meta(max_length=1000)] = ()
    tool_setter: ToolSetterConfig | None = None
    normally_closed: bool = False


class Surfaces:
    """The solids that the probe can touch, and the level of the probe input.

    ``fault``: the probe is dead and touches nothing, or stuck as if it always touched.
    """

    def __init__(self, config: ProbeConfig) -> None:
        self._config = config
        self.fault: ProbeFault = ""

    def level(self, tip: Floats) -> bool:
        """Level of the probe input with the tip at a position."""
        touches = self._touches(tip) if not self.fault else self.fault == "stuck"
        return touches != self._config.normally_closed

    def crossings(self, start: Floats, end: Floats) -> Iterator[float]:
        """Shares of a straight line at which its end may enter or leave a solid."""
        config, line = self._config, end - start
        planes = [(2, config.table_mm)] if config.table_mm is not None else []
        for box in config.boxes:
            planes += [
                (axis, side[axis]) for side in (box.low_mm, box.high_mm) for axis in range(3)
            ]
        if config.tool_setter is not None:
            planes.append((2, config.tool_setter.top_mm))
            yield from _round(config.tool_setter, start, line)
        for axis, at in planes:
            if line[axis] != 0.0:
                yield float((at - start[axis]) / line[axis])

    def _touches(self, tip: Floats) -> bool:
        config, setter = self._config, self._config.tool_setter
        if config.table_mm is not None and tip[2] <= config.table_mm + ON_SURFACE:
            return True
        if setter is not None and tip[2] <= setter.top_mm + ON_SURFACE:
            x, y = setter.position_mm
            if math.hypot(tip[0] - x, tip[1] - y) <= setter.radius_mm + ON_SURFACE:
                return True
        return any(
            bool((tip >= np.array(box.low_mm) - ON_SURFACE).all())
            and bool((tip <= np.array(box.high_mm) + ON_SURFACE).all())
            for box in config.boxes
        )


def _round(setter: ToolSetterConfig, start: Floats, line: Floats) -> Iterator[float]:
    """Shares of a line at which it enters or leaves the cylinder of a tool setter."""
    off, way = start[:2] - np.array(setter.position_mm), line[:2]
    a, b = float(way @ way), float(off @ way)
    inside = b * b - a * (float(off @ off) - setter.radius_mm**2)
    if a > 0.0 and inside >= 0.0:
        yield from ((-b - math.sqrt(inside)) / a, (-b + math.sqrt(inside)) / a)


def check_boxes(config: ProbeConfig) -> None:
    """Refuse boxes without volume."""
    for number, box in enumerate(config.boxes):
        if not all(low < high for low, high in zip(box.low_mm, box.high_mm, strict=True)):
            raise ConfigError(
                "a box needs a volume",
                key=f"probe.boxes.{number}",
                value=f"low {box.low_mm}, high {box.high_mm}",
                allowed="low_mm below high_mm in X, Y and Z",
            )


class MachineProbe:
    """`Probe` of a machine: its positions are those that the firmware counts.

    ``tip`` returns the position of the tip on the machine for a counted one, ``settings`` those in
    force.
    """

    def __init__(
        self,
        surfaces: Surfaces,
        *,
        tip: Callable[[Floats], Floats],
        settings: Callable[[], Settings],
    ) -> None:
        self._surfaces = surfaces
        self._tip = tip
        self._settings = settings

    def touches(self, q: Floats) -> bool:
        return self._surfaces.level(self._tip(q)) != self._settings().probe_inverted

    def trigger_place(self, path: Path, *, toward: bool) -> tuple[int, float] | None:
        """The first whole step of a path at which the input changes."""
        steps, start = self._settings().steps, path.start
        for piece in range(len(path)):
            end = path.end[piece]
            count = max(1.0, float(np.abs((end - start) * steps).max()))
            ends = (self._tip(start), self._tip(end))
            for share in sorted(self._surfaces.crossings(*ends)):
                first = math.ceil(share * count - ON_SURFACE)
                for on_step in (first / count, (first + 1) / count):
                    if not 0.0 < on_step <= 1.0:
                        continue
                    if self.touches(start + on_step * (end - start)) == toward:
                        return piece, on_step * float(path.length[piece])
            start = end
        return None

    def rest_place(self, path: Path, place: tuple[int, float]) -> tuple[int, float]:
        """Where the axes come to rest after the touch: the firmware goes on for a few step segments
        and then brakes."""
        piece, touch = place
        top, a = float(path.nominal()[piece]), float(path.acceleration[piece])
        ramp = top * top / (2.0 * a)
        speed = min(math.sqrt(2.0 * a * touch), top)
        rising = min(COMMITTED_S, (top - speed) / a) if touch < ramp else 0.0
        faster = speed + a * rising
        run = 0.5 * (speed + faster) * rising + faster * (COMMITTED_S - rising)
        rest = touch + run + faster * faster / (2.0 * a)
        return piece, min(rest, float(path.length[piece]))


# ── both ──────────────────────────────────────────────────────────────────────────────────────────


class MachineSensors:
    """Limit switches and probe, by the position of the axes on the machine; ``tip`` returns the tip
    of the tool for it. `limits` are the levels of the limit inputs, one bit for each axis."""

    def __init__(
        self, switches: LimitSwitches, surfaces: Surfaces, tip: Callable[[Floats], Floats]
    ) -> None:
        self.limits = switches.levels
        self.limit_edges = switches.edges
        self._surfaces = surfaces
        self._tip = tip

    def contact(self, position: Floats) -> bool:
        """Level of the probe input."""
        return self._surfaces.level(self._tip(position))
