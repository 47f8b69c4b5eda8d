"""Where a part comes to rest: the same rules for a running cell and for the offline check.

A part at rest has one of its axes upright. It stands on what is below it: objects of the
environment and other parts, each taken as an upright prism. Boxes and cylinders with an upright
axis are exact; a cylinder on its side and every other shape count as the box around them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.simulation.workpieces.config import WorkpieceRules, WorkpieceValue
from understudy.space.flat import (
    Disc,
    Footprint,
    Polygon,
    carries,
    common_area,
    hull,
    middle,
    overlap,
)
from understudy.space.model.robot import Box, Cylinder
from understudy.space.model.shapes import CollisionObject, ObjectType, bounds_of, box_corners
from understudy.space.transform import Array, rotation_about
from understudy.units import DEG, MM

UPRIGHT = 1e-6
"""Sine of the angle up to which an axis counts as upright."""
SAME_HEIGHT = 1e-9
FALLS_OVER = 10.0 * DEG
"""A part that is released with a larger tilt falls over."""
MOST_TIPS = 100
"""Times that one part may tip over before it is put down beside everything."""


@dataclass(frozen=True)
class Prism:
    """What a shape covers: its outline from above, and its heights."""

    name: str
    outline: Footprint
    bottom: float
    top: float

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Lowest x and y, highest x and y."""
        reach = self.outline.reach
        return -reach(-1.0, 0.0), -reach(0.0, -1.0), reach(1.0, 0.0), reach(0.0, 1.0)

    def covers(self, other: "Prism", slack: float) -> bool:
        """Whether two prisms overlap by more than ``slack``, seen from above."""
        a, b = self.bounds, other.bounds
        if a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]:
            return False
        return overlap(self.outline, other.outline) > max(slack, SAME_HEIGHT)


@dataclass(frozen=True)
class Landing:
    """The place where a released part comes to rest. `tipped`: it was not supported under its
    centre, or tilted, and fell over."""

    place: Array
    tipped: bool = False


def solid(part: WorkpieceValue, place: Array, margin: float = 0.0) -> CollisionObject:
    """A part as an object for collision checks, ``margin`` thinner on every side."""
    x, y, z = (max(side - 2.0 * margin, 0.1 * side) for side in part.size)
    if part.type == "cylinder":
        return CollisionObject(
            type=ObjectType.CYLINDER, name=part.name, transform=place, radius=x / 2.0, height=z
        )
    return CollisionObject(
        type=ObjectType.BOX, name=part.name, transform=place, dimensions=(x, y, z)
    )


def inertia(part: WorkpieceValue) -> Array:
    """The inertia tensor of a homogeneous part about its centre, along its own axes."""
    x, y, z = part.size
    if part.type == "cylinder":
        across = (0.75 * x * x + z * z) / 12.0
        return part.mass * np.diag([across, across, x * x / 8.0])
    return part.mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


# ── prisms ──────────────────────────────────────────────────────────────────────────────────────


def prism_of(thing: CollisionObject) -> Prism:
    """What an object covers."""
    at, shape = thing.place, thing.shape
    x, y, z = at[:3, 3].tolist()
    if isinstance(shape, Cylinder) and abs(at[2, 2]) >= 1.0 - UPRIGHT:
        half = shape.length / 2.0
        return Prism(thing.name, Disc(x, y, shape.radius), z - half, z + half)
    points = box_corners(*bounds_of(shape)) @ at[:3, :3].T + at[:3, 3]
    bottom, top = float(points[:, 2].min()), float(points[:, 2].max())
    if isinstance(shape, Box) and not np.any(np.abs(at[2, :3]) >= 1.0 - UPRIGHT):
        low, high = points.min(axis=0), points.max(axis=0)
        points = np.array([(a, b, 0.0) for a in (low[0], high[0]) for b in (low[1], high[1])])
    outline = Polygon(tuple(hull((float(a), float(b)) for a, b, _ in points.round(12))))
    return Prism(thing.name, outline, bottom, top)


# ── rest ────────────────────────────────────────────────────────────────────────────────────────


def flat(part: WorkpieceValue, place: Array) -> tuple[Array, bool]:
    """The place turned until the nearest axis is upright, and whether that was a fall."""
    turn = place[:3, :3]
    steepest = int(np.argmax(np.abs(turn[2])))
    if part.type == "cylinder" and steepest != 2:
        axis = turn[:, 2]
        level = np.array([axis[0], axis[1], 0.0])
        target, moved = level / np.linalg.norm(level), axis
    else:
        moved = turn[:, steepest]
        target = np.array([0.0, 0.0, math.copysign(1.0, moved[2])])
    about = np.cross(moved, target)
    sine = float(np.linalg.norm(about))
    if sine <= 1e-12:
        return place, False
    angle = math.atan2(sine, float(moved @ target))
    out = place.copy()
    out[:3, :3] = rotation_about(about / sine, angle) @ turn
    return out, angle > FALLS_OVER


def floor_of(obstacles: Iterable[Prism]) -> float:
    """The height on which everything rests that nothing supports: 0, or the lowest object."""
    return min((0.0, *(prism.top for prism in obstacles)))


def landing(
    part: WorkpieceValue,
    place: Array,
    obstacles: Sequence[Prism],
    rules: WorkpieceRules,
    floor: float,
) -> Landing:
    """Where a part comes to rest that is let go at ``place``. A part that overlaps another one
    sideways is lifted until it is free; overlaps up to the margin are ignored."""
    here, tipped = flat(part, place)
    for _ in range(MOST_TIPS):
        prism = prism_of(solid(part, here))
        here = here.copy()
        height = rest_height(prism, obstacles, rules, floor)
        here[2, 3] += height - prism.bottom
        push = _push(prism, here, _supporters(prism, height, obstacles, rules), height, floor)
        if push is None:
            return Landing(here, tipped)
        here[:2, 3] += push
        tipped = True
    beyond = max(prism.outline.reach(1.0, 0.0) for prism in obstacles)
    prism = prism_of(solid(part, here))
    here[0, 3] += beyond + prism.outline.reach(-1.0, 0.0)
    here[2, 3] += floor - prism.bottom
    return Landing(here, True)


def _below_or_beside(
    prism: Prism, obstacles: Sequence[Prism], rules: WorkpieceRules
) -> list[Prism]:
    """The obstacles on which a prism would come down."""
    slack = rules.margin_mm * MM
    return [other for other in obstacles if prism.covers(other, slack)]


def rest_height(
    prism: Prism, obstacles: Sequence[Prism], rules: WorkpieceRules, floor: float
) -> float:
    """The height of its bottom when it rests."""
    over = _below_or_beside(prism, obstacles, rules)
    reach = prism.bottom + rules.settle_mm * MM + SAME_HEIGHT
    height = max((floor, *(other.top for other in over if other.top <= reach)))
    tall = prism.top - prism.bottom
    while blocking := [
        other.top
        for other in over
        if other.top > height + SAME_HEIGHT and other.bottom < height + tall - SAME_HEIGHT
    ]:
        height = min(blocking)
    return height


def _supporters(
    prism: Prism, height: float, obstacles: Sequence[Prism], rules: WorkpieceRules
) -> list[Prism]:
    slack = rules.margin_mm * MM
    over = _below_or_beside(prism, obstacles, rules)
    return [other for other in over if abs(other.top - height) <= slack + SAME_HEIGHT]


def _push(
    prism: Prism, place: Array, under: Sequence[Prism], height: float, floor: float
) -> tuple[float, float] | None:
    """The shift by which an unsupported part falls off its support; None if it stands."""
    if height <= floor + SAME_HEIGHT:
        return None
    points = [point for other in under for point in common_area(prism.outline, other.outline)]
    centre = float(place[0, 3]), float(place[1, 3])
    if points and carries(points, centre):
        return None
    x, y = middle(points) if points else (centre[0] - 1.0, centre[1])
    dx, dy = centre[0] - x, centre[1] - y
    away = math.hypot(dx, dy)
    dx, dy = (dx / away, dy / away) if away > 1e-9 else (1.0, 0.0)
    edge = max((other.outline.reach(dx, dy) for other in under), default=0.0)
    shift = max(edge + prism.outline.reach(-dx, -dy), 1e-3)
    return dx * shift, dy * shift


def rests_on(prism: Prism, below: Prism, rules: WorkpieceRules) -> bool:
    """Whether one prism stands on another."""
    slack = rules.margin_mm * MM
    on_top = abs(below.top - prism.bottom) <= slack + SAME_HEIGHT
    return on_top and prism.covers(below, slack)
