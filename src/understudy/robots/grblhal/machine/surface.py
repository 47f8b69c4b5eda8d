"""What the probe of a machine can touch: a table, boxes and a tool setter.

Positions are those of the machine, as for limit switches. The probe is the tip of the tool in the
spindle: below the axes by the length of the tool in the tool table, at the axes without one.
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.motion.path import Floats, Path
from understudy.robots.grblhal.settings import Settings

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
