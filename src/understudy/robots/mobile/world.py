"""What stands around robots: obstacles of the cell, and those of each robot's profile.

The obstacles of all robots are rows of two tables, circles and lines, as the kernels of the sensors
read them; a robot sees a span of rows of each. Robots with the same obstacles share their rows; a
robot whose profile has a timeline of obstacles has rows of its own. The tables are built again when
an obstacle appears or is taken away; a moving obstacle changes its rows in place.

An obstacle moves in closed form: its place is a function of the time.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.robots.mobile.config.profile import Obstacle, ObstacleChange, SimulationProfile
from understudy.robots.mobile.hardware_interface import Bounds
from understudy.space.flat import hull
from understudy.space.model.environment import Environment
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, Hull, bounds_of, box_corners
from understudy.units import nanoseconds

Floats = NDArray[np.float64]
Point = tuple[float, float]
CircleRow = tuple[float, float, float]
LineRow = tuple[float, float, float, float]


class Circle(Struct, frozen=True):
    """A round obstacle of the cell."""

    name: str
    x: float
    y: float
    radius: float


class Polygon(Struct, frozen=True):
    """An obstacle of the cell with straight sides; the last corner is joined to the first one."""

    name: str
    corners: tuple[Point, ...]


Solid = Circle | Polygon


class ObstacleMotion(Struct, frozen=True):
    """Where an obstacle of a profile is: on the way from one point to another, between two times
    (nanoseconds)."""

    obstacle: Obstacle
    start: Point
    goal: Point
    begins: int = 0
    ends: int = 0

    def at(self, now: int) -> Point:
        if now >= self.ends:
            return self.goal
        share = (now - self.begins) / (self.ends - self.begins)
        (x1, y1), (x2, y2) = self.start, self.goal
        return x1 + (x2 - x1) * share, y1 + (y2 - y1) * share


Places = dict[str, list[ObstacleMotion]]
"""Places of obstacles by the row of their robot."""


class ObstacleRows:
    """Circles and lines that are being collected."""

    def __init__(self) -> None:
        self.circles: list[CircleRow] = []
        self.lines: list[LineRow] = []

    def add_solid(self, solid: Solid) -> None:
        if isinstance(solid, Circle):
            self.circles.append((solid.x, solid.y, solid.radius))
        else:
            self.add_ring(solid.corners)

    def add_ring(self, corners: Sequence[Point]) -> None:
        closed = [*corners, corners[0]] if len(corners) > 2 else corners
        self.lines += [(*one, *other) for one, other in pairwise(closed)]

    def add_obstacle(self, obstacle: Obstacle, x: float, y: float) -> None:
        if obstacle.shape == "circle":
            self.circles.append((x, y, obstacle.radius_meters or 0.0))
        elif obstacle.shape == "box":
            self.add_ring(_box(obstacle, x, y))
        else:
            dx, dy = (obstacle.x2 or 0.0) - obstacle.x, (obstacle.y2 or 0.0) - obstacle.y
            self.lines.append((x, y, x + dx, y + dy))


def _box(obstacle: Obstacle, x: float, y: float) -> list[Point]:
    along, across = (obstacle.length_meters or 0.0) / 2.0, (obstacle.width_meters or 0.0) / 2.0
    c, s = math.cos(obstacle.yaw), math.sin(obstacle.yaw)
    corners = (along, across), (-along, across), (-along, -across), (along, -across)
    return [(x + a * c - b * s, y + a * s + b * c) for a, b in corners]


class Scene:
    """The obstacles of one robot, or of several that share them."""

    def __init__(self, solids: Sequence[Solid], profile: SimulationProfile) -> None:
        self._fixed = ObstacleRows()
        for solid in solids:
            self._fixed.add_solid(solid)
        for wall in profile.world.boundaries:
            self._fixed.add_ring(wall)
        self.places: dict[str, ObstacleMotion] = {}
        for obstacle in profile.world.obstacles:
            self._put(obstacle)
        self.scripted = bool(profile.scripts.obstacles)
        self.robots: list[int] = []
        self.moves_until = 0

    def change(self, change: ObstacleChange, at: int) -> None:
        """``at``: the time of the change, in nanoseconds."""
        if change.action == "spawn" and change.obstacle is not None:
            self._put(change.obstacle)
        elif change.action == "remove":
            self.places.pop(change.id or "", None)
        elif place := self.places.get(change.id or ""):
            ends = at + nanoseconds(change.over_seconds)
            goal = change.x or 0.0, change.y or 0.0
            self.places[place.obstacle.id] = ObstacleMotion(
                place.obstacle, place.at(at), goal, at, ends
            )
            self.moves_until = max(self.moves_until, ends)

    def rows_at(self, now: int) -> tuple[Floats, Floats]:
        """Circles and lines at a time."""
        moving = ObstacleRows()
        for place in self.places.values():
            moving.add_obstacle(place.obstacle, *place.at(now))
        circles = self._fixed.circles + moving.circles
        lines = self._fixed.lines + moving.lines
        return (
            np.array(circles, dtype=np.float64).reshape(-1, 3),
            np.array(lines, dtype=np.float64).reshape(-1, 4),
        )

    def _put(self, obstacle: Obstacle) -> None:
        here = obstacle.x, obstacle.y
        self.places[obstacle.id] = ObstacleMotion(obstacle, here, here)


class Worlds:
    """The obstacles of all robots. ``solids``: those of the cell that each robot can meet."""

    def __init__(
        self, solids: Sequence[Sequence[Solid]], profiles: Sequence[SimulationProfile]
    ) -> None:
        self._profiles = profiles
        self.circle_spans = np.zeros((len(profiles), 2), dtype=np.int64)
        self.line_spans = np.zeros((len(profiles), 2), dtype=np.int64)
        self._arrange(solids)
        self._build(0)

    def _arrange(self, solids: Sequence[Sequence[Solid]]) -> None:
        """The obstacles as they are at the start."""
        shared: dict[object, Scene] = {}
        self._scenes: list[Scene] = []
        for robot, (around, profile) in enumerate(zip(solids, self._profiles, strict=True)):
            world = profile.world
            key = (
                tuple(around),
                world.obstacles,
                world.boundaries,
                robot if profile.scripts.obstacles else None,
            )
            scene = shared.get(key) or shared.setdefault(key, Scene(around, profile))
            scene.robots.append(robot)
            self._scenes.append(scene)
        self._distinct = list(shared.values())
        self._moving: list[Scene] = []
        self._stale = False

    def set_solids(self, solids: Sequence[Sequence[Solid]], now: int) -> None:
        """The cell has other objects."""
        places = self.save()
        self._arrange(solids)
        self.load(places, now)

    def change(self, robot: int, change: ObstacleChange, at: int) -> None:
        """An obstacle appears, begins to move or is taken away."""
        scene = self._scenes[robot]
        scene.change(change, at)
        if change.action == "move":
            if scene not in self._moving:
                self._moving.append(scene)
        else:
            self._stale = True

    def changes(self) -> bool:
        """Whether the rows are out of date: an obstacle has appeared, was removed or moves."""
        return self._stale or bool(self._moving)

    def refresh(self, now: int) -> None:
        """Brings the rows up to date."""
        if self._stale:
            self._build(now)
        for scene in self._moving:
            robot = scene.robots[0]
            circles, lines = scene.rows_at(now)
            self.circles[slice(*self.circle_spans[robot])] = circles
            self.lines[slice(*self.line_spans[robot])] = lines
        if self._moving:
            self._moving = [scene for scene in self._moving if now < scene.moves_until]

    def _build(self, now: int) -> None:
        """Makes the tables anew."""
        parts = [scene.rows_at(now) for scene in self._distinct]
        self.circles = np.concatenate([np.zeros((0, 3)), *(part[0] for part in parts)])
        self.lines = np.concatenate([np.zeros((0, 4)), *(part[1] for part in parts)])
        circle = line = 0
        for scene, (circles, lines) in zip(self._distinct, parts, strict=True):
            self.circle_spans[scene.robots] = circle, circle + len(circles)
            self.line_spans[scene.robots] = line, line + len(lines)
            circle, line = circle + len(circles), line + len(lines)
        self._stale = False

    def moving(self) -> bool:
        """Whether an obstacle moves."""
        return bool(self._moving)

    def around(self, robot: int) -> tuple[Floats, Floats]:
        """The circles and lines that a robot sees."""
        return (
            self.circles[slice(*self.circle_spans[robot])].copy(),
            self.lines[slice(*self.line_spans[robot])].copy(),
        )

    # ── snapshot ──

    def save(self) -> Places:
        """The places of the obstacles of robots with a timeline, by the row of the robot."""
        return {str(scene.robots[0]): list(scene.places.values()) for scene in self._scripted()}

    def load(self, found: Places, now: int) -> None:
        self._moving = []
        for scene in self._scripted():
            places = found.get(str(scene.robots[0]), [])
            scene.places = {place.obstacle.id: place for place in places}
            scene.moves_until = max((place.ends for place in scene.places.values()), default=0)
            if now < scene.moves_until:
                self._moving.append(scene)
        self._build(now)

    def _scripted(self) -> list[Scene]:
        return [scene for scene in self._distinct if scene.scripted]


# ── the objects of a cell ─────────────────────────────────────────────────────────────────────────

# The objects of a cell as mobile robots meet them: their outlines at the height of the robot.
#
# A robot meets what reaches into the space between the floor (z = 0) and its own height. What ends
# below `FLOOR` is driven over; what begins above the robot is driven under. Zones are no obstacles.
#
# A box, a hull and each connected piece of a mesh is met as the convex outline of the part that is
# in this space; an upright cylinder and a sphere are circles.

Points = NDArray[np.float64]
FLOOR = 0.02
"""Metres: a robot drives over what is lower."""
LEVEL = 0.005
"""Metres: an object whose top is this near to z = 0 is a floor."""
UPRIGHT = 1.0 - 1e-9
MOST_CUT = 1000
"""Points of a thing that is cut at the height of the robot; of a larger one all of it counts."""
SIDES = 32
"""Corners of the outline of a round thing that does not stand upright; it is never smaller."""


def solids_for(environment: Environment, height: float) -> tuple[Solid, ...]:
    """What a robot of this height can meet."""
    return tuple(solid for thing in environment.objects for solid in _solids(thing, height))


def floor_of(environment: Environment) -> Bounds | None:
    """The rectangle around the objects whose top is at z = 0; None if there is none."""
    boxes = []
    for thing in environment.objects:
        corners = box_corners(*bounds_of(thing.shape)) @ thing.place[:3, :3].T + thing.place[:3, 3]
        if abs(corners[:, 2].max()) <= LEVEL:
            boxes.append(np.hstack([corners.min(axis=0)[:2], corners.max(axis=0)[:2]]))
    if not boxes:
        return None
    low, high = np.min(boxes, axis=0)[:2].tolist(), np.max(boxes, axis=0)[2:].tolist()
    return Bounds(*low, *high)


def map_of(floor: Bounds | None, profile: SimulationProfile) -> Bounds | None:
    """The map of a robot: within the outermost walls (`boundaries`) around its start, else the
    floor of the cell, if the robot starts on it."""
    start = profile.initial_state.pose
    rings = [tuple(zip(*wall, strict=True)) for wall in profile.world.boundaries]
    rooms = [Bounds(min(xs), min(ys), max(xs), max(ys)) for xs, ys in rings]
    around = [room for room in rooms if room.has(start.x, start.y)]
    if floor is not None and floor.has(start.x, start.y):
        around = around or [floor]
    return max(around, key=_area, default=None)


def _area(bounds: Bounds) -> float:
    return (bounds.high_x - bounds.low_x) * (bounds.high_y - bounds.low_y)


def _solids(thing: CollisionObject, height: float) -> Iterator[Solid]:
    shape, place = thing.shape, thing.place
    match shape:
        case Box():
            yield from _outline(thing.name, [box_corners(*bounds_of(shape))], place, height)
        case Sphere(radius=radius):
            yield from _ball(thing.name, place, radius, height)
        case Cylinder(radius=radius, length=length) if abs(place[2, 2]) > UPRIGHT:
            yield from _column(thing.name, place, radius, length / 2.0, height)
        case Capsule(radius=radius, length=length) if abs(place[2, 2]) > UPRIGHT:
            yield from _column(thing.name, place, radius, length / 2.0 + radius, height)
        case Cylinder(radius=radius, length=length):
            yield from _outline(thing.name, [_round(radius, length / 2.0)], place, height)
        case Capsule(radius=radius, length=length):
            yield from _outline(thing.name, [_round(radius, length / 2.0 + radius)], place, height)
        case Hull(points=points):
            yield from _outline(thing.name, [points], place, height)
        case _:
            pieces = _pieces(shape.vertices, shape.triangles)
            yield from _outline(thing.name, pieces, place, height)


def _column(name: str, place: Points, radius: float, half: float, height: float) -> Iterator[Solid]:
    x, y, z = (float(value) for value in place[:3, 3])
    if z + half > FLOOR and z - half < height:
        yield Circle(name, x, y, radius)


def _ball(name: str, place: Points, radius: float, height: float) -> Iterator[Solid]:
    """The largest circle that the sphere has in the space of the robot."""
    x, y, z = (float(value) for value in place[:3, 3])
    outside = max(FLOOR - z, z - height, 0.0)
    if outside < radius:
        yield Circle(name, x, y, math.sqrt(radius * radius - outside * outside))


def _outline(
    name: str, pieces: Sequence[Points], place: Points, height: float
) -> Iterator[Polygon]:
    for points in pieces:
        seen = _between(points @ place[:3, :3].T + place[:3, 3], height)
        corners = hull((float(x), float(y)) for x, y in seen)
        if len(corners) > 1:
            yield Polygon(name, tuple(corners))


def _round(radius: float, half: float) -> Points:
    """Corners of a prism around a cylinder."""
    around = radius / math.cos(math.pi / SIDES)
    angles = [2.0 * math.pi * n / SIDES for n in range(SIDES)]
    return np.array(
        [(around * math.cos(a), around * math.sin(a), z) for a in angles for z in (-half, half)]
    )


def _between(points: Points, height: float) -> Points:
    """Points whose hull is the part of the hull of ``points`` between the floor and a height; of a
    thing with very many points all of them."""
    if points[:, 2].max() <= FLOOR or points[:, 2].min() >= height:
        return np.zeros((0, 2))
    if len(points) > MOST_CUT:
        return points[:, :2]
    found = [points[(points[:, 2] >= FLOOR) & (points[:, 2] <= height)]]
    for level in (FLOOR, height):
        below, above = points[points[:, 2] < level], points[points[:, 2] > level]
        if len(below) and len(above):
            share = (level - below[:, None, 2]) / (above[None, :, 2] - below[:, None, 2])
            cut = below[:, None, :] + share[..., None] * (above[None, :, :] - below[:, None, :])
            found.append(cut.reshape(-1, 3))
    return np.concatenate(found)[:, :2]


def _pieces(vertices: Points, triangles: NDArray[np.int64]) -> list[Points]:
    """The points of each part of a mesh whose triangles hang together."""
    _, same = np.unique(np.asarray(vertices), axis=0, return_inverse=True)
    corners = same.reshape(-1)[np.asarray(triangles)]
    label = np.arange(int(corners.max()) + 1)
    while True:
        lowest = label.copy()
        least = label[corners].min(axis=1)
        for column in range(3):
            np.minimum.at(lowest, corners[:, column], least)
        lowest = lowest[lowest]
        if (lowest == label).all():
            break
        label = lowest
    of_triangle = label[corners[:, 0]]
    return [
        np.asarray(vertices)[np.unique(np.asarray(triangles)[of_triangle == piece])]
        for piece in np.unique(of_triangle)
    ]
