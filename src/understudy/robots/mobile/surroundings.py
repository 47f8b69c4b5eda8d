"""The objects of a cell as mobile robots meet them: their outlines at the height of the robot.

A robot meets what reaches into the space between the floor (z = 0) and its own height. What ends
below `FLOOR` is driven over; what begins above the robot is driven under. Zones are no obstacles.

A box, a hull and each connected piece of a mesh is met as the convex outline of the part that is in
this space; an upright cylinder and a sphere are circles.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.world import Circle, Polygon, Solid
from understudy.space.flat import hull
from understudy.space.model.environment import Environment
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, Hull, bounds_of, box_corners

Points = NDArray[np.float64]
FLOOR = 0.02
"""Metres: a robot drives over what is lower."""
UPRIGHT = 1.0 - 1e-9
MOST_CUT = 1000
"""Points of a thing that is cut at the height of the robot; of a larger one all of it counts."""
SIDES = 32
"""Corners of the outline of a round thing that does not stand upright; it is never smaller."""


def solids_for(environment: Environment, height: float) -> tuple[Solid, ...]:
    """What a robot of this height can meet."""
    return tuple(solid for thing in environment.objects for solid in _solids(thing, height))


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
