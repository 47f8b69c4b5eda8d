"""A world in two arrays, for questions that are asked one at a time.

A compiled function is handed every array by itself, and with a score of them that takes longer than
the answer. So all there is to know stands in one row of numbers and one of whole numbers; the
arrays of the world are stretches of them, and so is what the kernels write on.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.space.collision.gjk import SIMPLEX
from understudy.space.collision.meshes import DEPTH
from understudy.space.collision.pairs import Scratch, scratch
from understudy.space.collision.solids import SIZES, Ints, Solids
from understudy.space.collision.world import Stand, World, contact_at, stand
from understudy.space.compiled import borrowed, compiled, table
from understudy.space.transform import Array

Number = TypeVar("Number", np.float64, np.int64)

COUNTS = 8
"""Whole numbers at the head: shapes, joints, moving, foot, objects, points, nodes, partners."""


class Packed(NamedTuple):
    """`q`, `world`, `at` and `scratch` lie in `numbers` and `wholes`."""

    numbers: Array
    wholes: Ints
    q: Array
    """Where the configuration to be looked at is written."""
    world: World
    at: Stand
    scratch: Scratch


def packed(world: World) -> Packed:
    """The same world, side by side with a place to stand in it."""
    solids, at, (stack, near, simplex) = world.solids, stand(world), scratch()
    counts = np.array(
        [
            len(solids.sizes), len(world.slides), world.moving, world.foot,
            len(world.boxes), len(solids.points), len(solids.nodes), len(world.partners),
        ],
        dtype=np.int64,
    )  # fmt: skip
    numbers, floats = _side_by_side(
        np.zeros(len(world.slides)), solids.sizes, solids.axes, solids.local, solids.points,
        solids.nodes, world.rest, world.slides, world.boxes, *at, near, simplex,
    )  # fmt: skip
    wholes, ints = _side_by_side(counts, solids.traits, solids.children, world.partners, stack)
    q, sizes, axes, local, points, nodes, rest, slides, boxes, *placed, near, simplex = floats
    _, traits, children, partners, stack = ints
    return Packed(
        numbers, wholes, q,
        World(
            Solids(traits, sizes, axes, local, points, nodes, children),
            rest, slides, world.moving, world.foot, boxes, partners,
        ),
        Stand(*placed), (stack, near, simplex),
    )  # fmt: skip


def _side_by_side(*arrays: NDArray[Number]) -> tuple[NDArray[Number], list[NDArray[Number]]]:
    """All in one row, and where each of them is in it."""
    row = np.concatenate([array.reshape(-1) for array in arrays])
    ends = np.cumsum([array.size for array in arrays])
    parts = np.split(row, ends[:-1])
    return row, [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


@compiled
def unpacked(numbers: Array, wholes: Ints) -> tuple[World, Stand, Scratch]:  # kernel
    """What `packed` has put side by side."""
    shapes, joints, moving, foot = wholes[0], wholes[1], wholes[2], wholes[3]
    objects, points, nodes, partners = wholes[4], wholes[5], wholes[6], wholes[7]
    a = joints
    sizes = table(numbers, a, shapes, SIZES)
    a += SIZES * shapes
    axes = table(numbers, a, shapes, 6)
    a += 6 * shapes
    local = table(numbers, a, shapes, 12)
    a += 12 * shapes
    corners = table(numbers, a, points, 3)
    a += 3 * points
    boughs = table(numbers, a, nodes, 7)
    a += 7 * nodes
    rest = table(numbers, a, joints, 12)
    a += 12 * joints
    slides = numbers[a : a + joints]
    a += joints
    boxes = table(numbers, a, objects, 6)
    a += 6 * objects
    frames = table(numbers, a, joints + 1, 12)
    a += 12 * (joints + 1)
    placed = table(numbers, a, shapes, 12)
    a += 12 * shapes
    ends = table(numbers, a, shapes, 6)
    a += 6 * shapes
    near = numbers[a : a + DEPTH]
    simplex = table(numbers, a + DEPTH, SIMPLEX[0], SIMPLEX[1])
    traits = table(wholes, COUNTS, shapes, 6)
    a = COUNTS + 6 * shapes
    children = table(wholes, a, nodes, 2)
    a += 2 * nodes
    pairs = table(wholes, a, partners, 2)
    a += 2 * partners
    solids = Solids(traits, sizes, axes, local, corners, boughs, children)
    world = World(solids, rest, slides, moving, foot, boxes, pairs)
    return world, Stand(frames, placed, ends), (wholes[a:], near, simplex)


@compiled
def contact_in(numbers: Array, wholes: Ints) -> int:
    """The pair that touches in the configuration written in front, as i·shapes + j; or -1."""
    numbers, wholes = borrowed(numbers), borrowed(wholes)
    world, at, scratch = unpacked(numbers, wholes)
    i, j = contact_at(world, numbers[: wholes[1]], at, scratch)
    return i * wholes[0] + j if i >= 0 else -1
