"""Builds a World from an arm, the objects attached to its flange and the objects around it."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from understudy.space.collision.solids import Ints, Part, solids
from understudy.space.collision.world import World
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import (
    CollisionObject,
    Hull,
    Meshes,
    TriangleMesh,
    shape_of,
)
from understudy.space.transform import Array, inverse, matrix

NO_PAIRS: Ints = np.zeros((0, 2), dtype=np.int64)


def arm_parts(chain: Chain, meshes: Meshes) -> tuple[Part, ...]:
    """The shapes of all bodies of an arm, in the axis frames of their joints."""
    return _parts(chain, meshes) if meshes else _plain_parts(chain)


@lru_cache(maxsize=16)
def _plain_parts(chain: Chain) -> tuple[Part, ...]:
    """The same parts for the same chain, so that results cached per part are found again."""
    return _parts(chain, {})


def _parts(chain: Chain, meshes: Meshes) -> tuple[Part, ...]:
    return tuple(
        Part(
            body.name,
            shape_of(solid.geometry, meshes, body.name),
            _on_axis(chain, b) @ matrix(solid.origin),
            b,
            body.index,
        )
        for b, body in enumerate(chain.bodies)
        for solid in body.collision
    )


def _on_axis(chain: Chain, body: int) -> Array:
    turn = np.eye(4)
    if body > 0:
        turn[:3, :3] = chain.align[body - 1]
    return turn


def carried_part(chain: Chain, thing: CollisionObject) -> Part:
    """An object attached to the flange (tool, held part); its pose is in the flange frame."""
    link = chain.bodies[-1].index
    return Part(thing.name, thing.shape, chain.tip @ thing.place, chain.dof, link)


def standing_part(thing: CollisionObject, foot: Array) -> Part:
    """An object of the environment, in the frame of the foot (4×4 in the world)."""
    return Part(thing.name, thing.shape, inverse(foot) @ thing.place)


def assembled(
    chain: Chain | None,
    arm: Sequence[Part],
    objects: Sequence[Part],
    partners: Ints = NO_PAIRS,
) -> World:
    """Builds a world; ``arm``: shapes of the foot, of the arm and of what it carries, by body."""
    rest = np.zeros((0, 12)) if chain is None else chain.rest
    slides = np.zeros(0) if chain is None else chain.slides
    parts = (*arm, *objects)
    packed = solids(parts)
    boxes = np.array([bounding_box(part) for part in objects]).reshape(-1, 6)
    foot = sum(part.body == 0 for part in arm)
    return World(packed, rest, slides, len(arm), foot, boxes, partners)


def bounding_box(part: Part) -> Array:
    """Middle and half extents of a part's bounding box, in the frame of its carrier."""
    turn, shift = part.place[:3, :3], part.place[:3, 3]
    match part.shape:
        case Box(size=size):
            half = np.abs(turn) @ np.array(size) / 2
        case Sphere(radius=r):
            half = np.full(3, r)
        case Capsule(radius=r, length=length):
            half = np.abs(turn[:, 2]) * length / 2 + r
        case Cylinder(radius=r, length=length):
            aside = np.sqrt(np.maximum(1.0 - turn[:, 2] ** 2, 0.0))
            half = np.abs(turn[:, 2]) * length / 2 + aside * r
        case Hull(points=points):
            return _around(points @ turn.T + shift)
        case TriangleMesh():
            low, high = part.shape.turned_bounds(turn)
            low, high = low + shift, high + shift
            return np.concatenate([(low + high) / 2, (high - low) / 2])
    return np.concatenate([shift, half])


def _around(points: Array) -> Array:
    low, high = points.min(axis=0), points.max(axis=0)
    return np.concatenate([(low + high) / 2, (high - low) / 2])
