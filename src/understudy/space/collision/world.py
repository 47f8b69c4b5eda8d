"""The world of a collision check: an arm and the objects around it, as arrays for the kernels.

The shapes of the arm come first, grouped by body, then the objects. The foot never moves: its
contacts with objects are checked once when the world is built, and not here.

A world can be packed into two flat arrays (`packed`), apart from the geometry of hulls and meshes,
which many worlds share. Passing each array to a kernel costs time, and for a check of a single
configuration about twenty of them cost more than the check itself.
"""

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.space.collision.distance import Scratch, distance, lent, scratch
from understudy.space.collision.gjk import SIMPLEX
from understudy.space.collision.meshes import DEPTH
from understudy.space.collision.solids import BODY, FAR, ROUND, SIZES, Ints, Solids
from understudy.space.compiled import borrowed, compiled, table
from understudy.space.transform import Array

NEAR = 1e-6
"""Contact checks ignore shapes further apart than this (m)."""


class World(NamedTuple):
    """Everything that does not change while the arm moves."""

    solids: Solids
    rest: Array
    slides: Array
    moving: int
    """Shapes 0…moving - 1 belong to the arm, the others are fixed objects."""
    foot: int
    """Shapes 0…foot - 1 belong to the foot."""
    boxes: Array
    """(objects, 6): middle and half extents of each object's bounding box."""
    partners: Ints
    """(k, 2): pairs of shapes of the arm that must not touch."""


class Placement(NamedTuple):
    """Frames of all joints and shapes in one configuration; written by ``pose``."""

    frames: Array
    """(dof + 1, 12): the foot, then the frames of the joints, z along their axes."""
    placed: Array
    """(shapes, 12): frames of the shapes."""
    ends: Array
    """(shapes, 6): axes of the bounding capsules."""


def placement(world: World) -> Placement:
    """A new Placement in which the frames of the objects are already set."""
    placed = world.solids.local.copy()
    frames = np.zeros((len(world.slides) + 1, 12))
    frames[:, 0] = frames[:, 4] = frames[:, 8] = 1.0
    turns, shifts = placed[:, :9].reshape(-1, 3, 3), placed[:, None, 9:]
    axes = world.solids.axes.reshape(-1, 2, 3) @ np.swapaxes(turns, 1, 2) + shifts
    return Placement(frames, placed, axes.reshape(-1, 6))


@compiled
def joint_rows(q: Array, rest: Array, slides: Array, frames: Array) -> None:  # kernel
    """frames[k + 1] = the moved frame of joint k; frames[0], the foot, is given."""
    for j in range(len(slides)):
        turning = slides[j] == 0.0
        sin = math.sin(q[j]) if turning else 0.0
        cos = math.cos(q[j]) if turning else 1.0
        for row in range(3):
            u, v, w = frames[j, 3 * row], frames[j, 3 * row + 1], frames[j, 3 * row + 2]
            x = u * rest[j, 0] + v * rest[j, 3] + w * rest[j, 6]
            y = u * rest[j, 1] + v * rest[j, 4] + w * rest[j, 7]
            z = u * rest[j, 2] + v * rest[j, 5] + w * rest[j, 8]
            frames[j + 1, 3 * row] = x * cos + y * sin
            frames[j + 1, 3 * row + 1] = y * cos - x * sin
            frames[j + 1, 3 * row + 2] = z
            shift = u * rest[j, 9] + v * rest[j, 10] + w * rest[j, 11] + frames[j, 9 + row]
            frames[j + 1, 9 + row] = shift if turning else shift + z * q[j]


@compiled
def carry(  # kernel
    traits: Ints, local: Array, axes: Array, count: int, frames: Array, placed: Array, ends: Array
) -> None:
    """Sets the frames of the first ``count`` shapes from the frames of their bodies."""
    for i in range(count):
        b = traits[i, BODY]
        for row in range(3):
            u, v, w = frames[b, 3 * row], frames[b, 3 * row + 1], frames[b, 3 * row + 2]
            x = u * local[i, 0] + v * local[i, 3] + w * local[i, 6]
            y = u * local[i, 1] + v * local[i, 4] + w * local[i, 7]
            z = u * local[i, 2] + v * local[i, 5] + w * local[i, 8]
            shift = u * local[i, 9] + v * local[i, 10] + w * local[i, 11] + frames[b, 9 + row]
            placed[i, 3 * row], placed[i, 3 * row + 1], placed[i, 3 * row + 2] = x, y, z
            placed[i, 9 + row] = shift
            ends[i, row] = x * axes[i, 0] + y * axes[i, 1] + z * axes[i, 2] + shift
            ends[i, 3 + row] = x * axes[i, 3] + y * axes[i, 4] + z * axes[i, 5] + shift


@compiled
def pose(world: World, q: Array, at: Placement) -> None:
    """Sets the placement of the arm for configuration q."""
    solids = world.solids
    joint_rows(q, world.rest, world.slides, at.frames)
    carry(
        solids.traits, solids.local, solids.axes, world.moving, at.frames, at.placed, at.ends
    )  # fmt: skip


@compiled
def gap_to_box(ends: Array, i: int, around: float, boxes: Array, o: int) -> float:
    """Lower bound of the distance of shape i to object o, from their bounding boxes."""
    x = abs(0.5 * (ends[i, 0] + ends[i, 3]) - boxes[o, 0]) - boxes[o, 3]
    y = abs(0.5 * (ends[i, 1] + ends[i, 4]) - boxes[o, 1]) - boxes[o, 4]
    z = abs(0.5 * (ends[i, 2] + ends[i, 5]) - boxes[o, 2]) - boxes[o, 5]
    x = max(x - 0.5 * abs(ends[i, 0] - ends[i, 3]), 0.0)
    y = max(y - 0.5 * abs(ends[i, 1] - ends[i, 4]), 0.0)
    z = max(z - 0.5 * abs(ends[i, 2] - ends[i, 5]), 0.0)
    return math.sqrt(x * x + y * y + z * z) - around


@compiled
def gap_between(ends: Array, i: int, j: int, around: float) -> float:
    """Lower bound of the distance of shapes i and j, from their bounding spheres."""
    x = ends[i, 0] + ends[i, 3] - ends[j, 0] - ends[j, 3]
    y = ends[i, 1] + ends[i, 4] - ends[j, 1] - ends[j, 4]
    z = ends[i, 2] + ends[i, 5] - ends[j, 2] - ends[j, 5]
    return 0.5 * math.sqrt(x * x + y * y + z * z) - around


@compiled
def least_distance(  # kernel
    world: World, at: Placement, below: float, until: float, scratch: Scratch
) -> tuple[float, int, int]:
    """Smallest distance of all pairs, and the pair; distances above ``below`` are not computed.

    Ends as soon as the distance of a pair is not greater than ``until``.
    """
    least, first, second = below, -1, -1
    solids, boxes, partners = lent(world.solids), borrowed(world.boxes), world.partners
    sizes, ends, placed = solids.sizes, borrowed(at.ends), borrowed(at.placed)
    scratch = (borrowed(scratch[0]), borrowed(scratch[1]), borrowed(scratch[2]))
    for i in range(world.foot, world.moving):
        around = sizes[i, FAR]
        x, y, z = ends[i, 0] + ends[i, 3], ends[i, 1] + ends[i, 4], ends[i, 2] + ends[i, 5]
        x, y, z = 0.5 * x, 0.5 * y, 0.5 * z
        hx = 0.5 * abs(ends[i, 0] - ends[i, 3]) + around
        hy = 0.5 * abs(ends[i, 1] - ends[i, 4]) + around
        hz = 0.5 * abs(ends[i, 2] - ends[i, 5]) + around
        for o in range(len(boxes)):
            if abs(x - boxes[o, 0]) - boxes[o, 3] - hx >= least:
                continue
            if abs(y - boxes[o, 1]) - boxes[o, 4] - hy >= least:
                continue
            if abs(z - boxes[o, 2]) - boxes[o, 5] - hz >= least:
                continue
            if gap_to_box(ends, i, around, boxes, o) >= least:
                continue
            b = world.moving + o
            d, _ = distance(
                solids, placed, ends, i, b, max(least, 0.0), math.inf, -1, True, scratch
            )  # fmt: skip
            if d < least:
                least, first, second = d, i, b
                if d <= until:
                    return least, first, second
    for k in range(len(partners)):
        i, b = partners[k, 0], partners[k, 1]
        if gap_between(ends, i, b, sizes[i, ROUND] + sizes[b, ROUND]) >= least:
            continue
        d, _ = distance(solids, placed, ends, i, b, max(least, 0.0), math.inf, -1, True, scratch)
        if d < least:
            least, first, second = d, i, b
            if d <= until:
                return least, first, second
    return least, first, second


@compiled
def contact_at(world: World, q: Array, at: Placement, scratch: Scratch) -> tuple[int, int]:
    """Some pair that touches in configuration q, or -1, -1."""
    pose(world, q, at)
    d, i, j = least_distance(world, at, NEAR, 0.0, scratch)
    # Without a pair below NEAR the distance is NEAR, which is not a contact.
    return (i, j) if d <= 0.0 else (-1, -1)


@compiled
def contacts(world: World, Q: Array, at: Placement, scratch: Scratch, out: Ints) -> None:
    """out[k] = some pair that touches in configuration Q[k], or -1, -1."""
    for k in range(len(Q)):
        out[k, 0], out[k, 1] = contact_at(world, Q[k], at, scratch)


# ── the world in two arrays ───────────────────────────────────────────────────────────────────────


Number = TypeVar("Number", np.float64, np.int64)

COUNTS = 6
"""Integers at the beginning: shapes, joints, moving, foot, objects, partners."""

Arrays = tuple[Array, Ints, Array, Array, Ints]
"""A packed world: its own numbers and integers; points, nodes and children of all geometry."""


class Packed(NamedTuple):
    """A world in flat arrays; `q`, `world`, `at` and `scratch` are views of them."""

    arrays: Arrays
    q: Array
    """The configuration to be checked is written here."""
    world: World
    at: Placement
    scratch: Scratch


def packed(world: World) -> Packed:
    """Packs a world, a placement and the working memory into flat arrays."""
    solids, at, (stack, near, simplex) = world.solids, placement(world), scratch()
    counts = np.array(
        [
            len(solids.sizes), len(world.slides), world.moving, world.foot,
            len(world.boxes), len(world.partners),
        ],
        dtype=np.int64,
    )  # fmt: skip
    numbers, floats = _side_by_side(
        np.zeros(len(world.slides)), solids.sizes, solids.axes, solids.local,
        world.rest, world.slides, world.boxes, *at, near, simplex,
    )  # fmt: skip
    wholes, ints = _side_by_side(counts, solids.traits, world.partners, stack)
    q, sizes, axes, local, rest, slides, boxes, *placed, near, simplex = floats
    _, traits, partners, stack = ints
    geometry = solids.points, solids.nodes, solids.children
    return Packed(
        (numbers, wholes, *geometry), q,
        World(
            Solids(traits, sizes, axes, local, *geometry),
            rest, slides, world.moving, world.foot, boxes, partners,
        ),
        Placement(*placed), (stack, near, simplex),
    )  # fmt: skip


def _side_by_side(*arrays: NDArray[Number]) -> tuple[NDArray[Number], list[NDArray[Number]]]:
    """All arrays concatenated, and a view of each."""
    row = np.concatenate([array.reshape(-1) for array in arrays])
    ends = np.cumsum([array.size for array in arrays])
    parts = np.split(row, ends[:-1])
    return row, [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


@compiled
def unpacked(  # kernel
    numbers: Array, wholes: Ints, corners: Array, boughs: Array, children: Ints
) -> tuple[World, Placement, Scratch]:
    """The views of a packed world, inside a kernel."""
    shapes, joints, moving, foot = wholes[0], wholes[1], wholes[2], wholes[3]
    objects, partners = wholes[4], wholes[5]
    a = joints
    sizes = table(numbers, a, shapes, SIZES)
    a += SIZES * shapes
    axes = table(numbers, a, shapes, 6)
    a += 6 * shapes
    local = table(numbers, a, shapes, 12)
    a += 12 * shapes
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
    pairs = table(wholes, a, partners, 2)
    a += 2 * partners
    solids = Solids(traits, sizes, axes, local, corners, boughs, children)
    world = World(solids, rest, slides, moving, foot, boxes, pairs)
    return world, Placement(frames, placed, ends), (wholes[a:], near, simplex)


@compiled
def contact_in(numbers: Array, wholes: Ints, corners: Array, boughs: Array, children: Ints) -> int:
    """Some pair that touches in the configuration at the beginning, as i·shapes + j; or -1."""
    numbers, wholes, children = borrowed(numbers), borrowed(wholes), borrowed(children)
    world, at, scratch = unpacked(numbers, wholes, borrowed(corners), borrowed(boughs), children)
    i, j = contact_at(world, numbers[: wholes[1]], at, scratch)
    return i * wholes[0] + j if i >= 0 else -1
