"""The world of a collision check: an arm and the objects around it, as arrays for the kernels.

The shapes of the arm come first, grouped by body, then the objects. The foot never moves: its
contacts with objects are checked once when the world is built, and not here.

A world can be packed into two flat arrays (`packed`), apart from the geometry of hulls and meshes,
which many worlds share. Passing an array to a kernel costs time, and for a check of a single
configuration about twenty of them cost more than the check itself: it gets one, with the addresses
of the others.

Such a check (`contact_at`) mostly compares boxes: of ten moving shapes and twenty objects, one or
two pairs are near enough for a distance. It therefore places the axes of the moving shapes only,
and compares the box of a shape with those of all objects without a branch.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.space.collision.distance import (
    DEPTH,
    Scratch,
    distance,
    lent,
    line_distance,
    scratch,
    segment_segment,
)
from understudy.space.collision.solids import (
    BODY,
    CYLINDER,
    FAR,
    KIND,
    MESH,
    ROUND,
    SEGMENT,
    SIMPLEX,
    SIZES,
    SKIN,
    Ints,
    Part,
    Solids,
    core_depth,
    core_distance,
    nearest_point,
    solids,
)
from understudy.space.compiled import (
    borrowed,
    compiled,
    floats_at,
    inlined,
    table,
    whole_numbers_at,
)
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, Hull, Meshes, TriangleMesh, shape_of
from understudy.space.transform import Array, inverse, matrix

NEAR = 1e-6
"""Checks of contacts ignore shapes further apart than this (m)."""


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
    carry(solids.traits, solids.local, solids.axes, world.moving, at.frames, at.placed, at.ends)


@compiled
def gap_to_box(ends: Array, i: int, around: float, boxes: Array, o: int) -> float:
    """Lower bound of the distance of shape i to object o, from their bounding boxes.

    The box of the shape is that of its axis, around it the radius of the bounding capsule.
    """
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
    traits = solids.traits
    scratch = (borrowed(scratch[0]), borrowed(scratch[1]), borrowed(scratch[2]))
    for i in range(world.foot, world.moving):
        # The boxes are compared axis by axis before anything is computed: in most configurations
        # one axis alone shows that a pair is further apart than the nearest one so far.
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
            if traits[i, KIND] == SEGMENT and traits[b, KIND] <= CYLINDER:
                # The most common shapes in place, because a call that takes this many arrays costs
                # as much as the distance.
                d = (
                    line_distance(traits, sizes, placed, ends, i, b)
                    - sizes[i, SKIN]
                    - sizes[b, SKIN]
                )
            else:
                d, _ = distance(
                    solids, placed, ends, i, b, max(least, 0.0), math.inf, -1, True, scratch
                )
            if d < least:
                least, first, second = d, i, b
                if d <= until:
                    return least, first, second
    for k in range(len(partners)):
        i, b = partners[k, 0], partners[k, 1]
        if gap_between(ends, i, b, sizes[i, ROUND] + sizes[b, ROUND]) >= least:
            continue
        if traits[i, KIND] == SEGMENT and traits[b, KIND] == SEGMENT:
            px, py, pz = ends[i, 0], ends[i, 1], ends[i, 2]
            qx, qy, qz = ends[b, 0], ends[b, 1], ends[b, 2]
            square, _, _ = segment_segment(
                (px, py, pz),
                (ends[i, 3] - px, ends[i, 4] - py, ends[i, 5] - pz),
                (qx, qy, qz),
                (ends[b, 3] - qx, ends[b, 4] - qy, ends[b, 5] - qz),
            )
            d = math.sqrt(square) - (sizes[i, SKIN] + sizes[b, SKIN])
        else:
            d, _ = distance(
                solids, placed, ends, i, b, max(least, 0.0), math.inf, -1, True, scratch
            )
        if d < least:
            least, first, second = d, i, b
            if d <= until:
                return least, first, second
    return least, first, second


# ── contact or none ───────────────────────────────────────────────────────────────────────────────


LANES = 32
"""Objects compared at once; `Enclosures.columns` is filled up to a multiple of it."""


class Enclosures(NamedTuple):
    """What encloses shapes, in the layout that a check of one configuration reads."""

    axes: Array
    """(moving, 6): axes of the bounding capsules of moving shapes, in their carriers' frames."""
    columns: Array
    """(6, n): boxes of the objects, one row for each coordinate; behind them empty boxes."""
    boxes: Array
    """(moving, 6): middle and half extents of the moving shapes; written by `enclose`."""


def enclosures(world: World) -> Enclosures:
    """The enclosures of a world; the boxes of its moving shapes are not yet set."""
    count = len(world.boxes)
    columns = np.zeros((6, -(-count // LANES) * LANES))
    columns[3:] = -np.inf
    columns[:, :count] = world.boxes.T
    # The carriers are at the origin here, so that the ends are those in their frames.
    axes = placement(world).ends[: world.moving]
    return Enclosures(axes, columns, np.zeros((world.moving, 6)))


@inlined
def enclose(  # kernel
    traits: Ints, sizes: Array, frames: Array, around: Enclosures, ends: Array
) -> None:
    """Sets the axes of the moving shapes' bounding capsules, and the boxes of these capsules."""
    axes, boxes = around.axes, around.boxes
    for i in range(len(axes)):
        b, radius = traits[i, BODY], sizes[i, FAR]
        for row in range(3):
            u, v, w = frames[b, 3 * row], frames[b, 3 * row + 1], frames[b, 3 * row + 2]
            shift = frames[b, 9 + row]
            first = u * axes[i, 0] + v * axes[i, 1] + w * axes[i, 2] + shift
            last = u * axes[i, 3] + v * axes[i, 4] + w * axes[i, 5] + shift
            ends[i, row], ends[i, 3 + row] = first, last
            boxes[i, row] = 0.5 * (first + last)
            boxes[i, 3 + row] = 0.5 * abs(first - last) + radius


@inlined
def boxes_at(boxes: Array, i: int, columns: Array) -> int:  # kernel
    """The number of objects whose box overlaps that of moving shape i."""
    x, y, z = boxes[i, 0], boxes[i, 1], boxes[i, 2]
    hx, hy, hz = boxes[i, 3] + NEAR, boxes[i, 4] + NEAR, boxes[i, 5] + NEAR
    near = 0
    for o in range(columns.shape[1]):
        near += (
            (abs(x - columns[0, o]) < columns[3, o] + hx)
            & (abs(y - columns[1, o]) < columns[4, o] + hy)
            & (abs(z - columns[2, o]) < columns[5, o] + hz)
        )
    return near


@inlined
def contact_at(  # kernel
    world: World, around: Enclosures, q: Array, at: Placement, scratch: Scratch
) -> tuple[int, int]:
    """Some pair that touches in configuration q, or -1, -1.

    Sets the whole placement if there is one, and otherwise the parts of it that were needed.
    """
    solids, boxes, partners, fixed = world.solids, around.boxes, world.partners, world.moving
    traits, sizes, frames = solids.traits, solids.sizes, at.frames
    placed, ends, objects = at.placed, at.ends, world.boxes
    joint_rows(q, world.rest, world.slides, frames)
    enclose(traits, sizes, frames, around, ends)
    complete = False
    i, j, found = -1, -1, False
    # The pairs of a moving shape and an object, then those of two moving shapes.
    inner = len(objects)
    for outer in range(world.foot, fixed + len(partners)):
        of_objects = outer < fixed
        if of_objects and boxes_at(boxes, outer, around.columns) == 0:
            continue
        for o in range(inner if of_objects else 1):
            if of_objects:
                i, j = outer, fixed + o
                if gap_to_box(ends, i, sizes[i, FAR], objects, o) >= NEAR:
                    continue
            else:
                i, j = partners[outer - fixed, 0], partners[outer - fixed, 1]
                near = (
                    (abs(boxes[i, 0] - boxes[j, 0]) - boxes[i, 3] - boxes[j, 3] < NEAR)
                    & (abs(boxes[i, 1] - boxes[j, 1]) - boxes[i, 4] - boxes[j, 4] < NEAR)
                    & (abs(boxes[i, 2] - boxes[j, 2]) - boxes[i, 5] - boxes[j, 5] < NEAR)
                )
                if not near or gap_between(ends, i, j, sizes[i, ROUND] + sizes[j, ROUND]) >= NEAR:
                    continue
            if traits[i, KIND] > traits[j, KIND]:
                i, j = j, i
            # The frames of the objects and of the foot never change.
            flat = CYLINDER if j >= fixed or j < world.foot else SEGMENT
            if traits[i, KIND] == SEGMENT and traits[j, KIND] <= flat:
                d = line_distance(traits, sizes, placed, ends, i, j)
                d -= sizes[i, SKIN] + sizes[j, SKIN]
            else:
                if not complete:
                    carry(traits, solids.local, solids.axes, fixed, frames, placed, ends)
                    complete = True
                d, _ = distance(solids, placed, ends, i, j, NEAR, math.inf, -1, True, scratch)
            if d <= 0.0:
                found = True
                break
        if found:
            break
    if found and not complete:
        carry(traits, solids.local, solids.axes, fixed, frames, placed, ends)
    return (i, j) if found else (-1, -1)


# ── the world in two arrays ───────────────────────────────────────────────────────────────────────


Number = TypeVar("Number", np.float64, np.int64)

(
    SHAPES,
    JOINTS,
    MOVING,
    FOOT,
    OBJECTS,
    PARTNERS,
    LENGTH,
    NUMBERS,
    POINTS,
    POINTS_AT,
    NODES,
    NODES_AT,
    CHILDREN_AT,
) = range(COUNTS := 13)
"""Integers at the beginning: counts, and the addresses of the other arrays."""

NOT_FINITE = -2
"""Result of `contact_in` for a configuration with nan or infinite values."""


class Packed(NamedTuple):
    """A world in flat arrays; the rest are views of them."""

    wholes: Ints
    """Its integers, with the addresses of `numbers` and of the geometry that many worlds share."""
    numbers: Array
    q: Array
    """The configuration to be checked is written here."""
    world: World
    around: Enclosures
    at: Placement
    scratch: Scratch


def packed(world: World) -> Packed:
    """Packs a world, a placement and the working memory into flat arrays."""
    solids, at, (stack, near, simplex) = world.solids, placement(world), scratch()
    around = enclosures(world)
    numbers, floats = _side_by_side(
        np.zeros(len(world.slides)),
        solids.sizes,
        solids.axes,
        solids.local,
        world.rest,
        world.slides,
        world.boxes,
        *around,
        *at,
        near,
        simplex,
    )
    geometry = solids.points, solids.nodes, solids.children
    counts = np.array(
        [
            len(solids.sizes),
            len(world.slides),
            world.moving,
            world.foot,
            len(world.boxes),
            len(world.partners),
            len(numbers),
            numbers.ctypes.data,
            len(solids.points),
            solids.points.ctypes.data,
            len(solids.nodes),
            solids.nodes.ctypes.data,
            solids.children.ctypes.data,
        ],
        dtype=np.int64,
    )
    wholes, ints = _side_by_side(counts, solids.traits, world.partners, stack)
    q, sizes, axes, local, rest, slides, boxes, *rest_of_floats = floats
    lines, columns, extents, *placed, near, simplex = rest_of_floats
    _, traits, partners, stack = ints
    return Packed(
        wholes,
        numbers,
        q,
        World(
            Solids(traits, sizes, axes, local, *geometry),
            rest,
            slides,
            world.moving,
            world.foot,
            boxes,
            partners,
        ),
        Enclosures(lines, columns, extents),
        Placement(*placed),
        (stack, near, simplex),
    )


def _side_by_side(*arrays: NDArray[Number]) -> tuple[NDArray[Number], list[NDArray[Number]]]:
    """All arrays concatenated, and a view of each."""
    row = np.concatenate([array.reshape(-1) for array in arrays])
    ends = np.cumsum([array.size for array in arrays])
    parts = np.split(row, ends[:-1])
    return row, [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


@inlined
def unpacked(wholes: Ints) -> tuple[World, Enclosures, Placement, Scratch]:  # kernel
    """The views of a packed world, inside a kernel."""
    shapes, joints, moving, foot = wholes[SHAPES], wholes[JOINTS], wholes[MOVING], wholes[FOOT]
    objects, partners = wholes[OBJECTS], wholes[PARTNERS]
    numbers = floats_at(wholes[NUMBERS], 1, wholes[LENGTH])[0]
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
    lines = table(numbers, a, moving, 6)
    a += 6 * moving
    lanes = (objects + LANES - 1) // LANES * LANES
    columns = table(numbers, a, 6, lanes)
    a += 6 * lanes
    extents = table(numbers, a, moving, 6)
    a += 6 * moving
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
    corners = floats_at(wholes[POINTS_AT], wholes[POINTS], 3)
    boughs = floats_at(wholes[NODES_AT], wholes[NODES], 7)
    children = whole_numbers_at(wholes[CHILDREN_AT], wholes[NODES], 2)
    solids = Solids(traits, sizes, axes, local, corners, boughs, children)
    world = World(solids, rest, slides, moving, foot, boxes, pairs)
    around, at = Enclosures(lines, columns, extents), Placement(frames, placed, ends)
    return world, around, at, (wholes[a:], near, simplex)


@compiled
def contact_in(wholes: Ints) -> int:  # kernel
    """Some pair that touches in the configuration of a packed world, as i·shapes + j; or -1.

    NOT_FINITE for a configuration that is none: asking here costs nothing.
    """
    wholes = borrowed(wholes)
    q = floats_at(wholes[NUMBERS], 1, wholes[JOINTS])[0]
    for k in range(len(q)):
        if not math.isfinite(q[k]):
            return NOT_FINITE
    world, around, at, scratch = unpacked(wholes)
    i, j = contact_at(world, around, q, at, scratch)
    return i * wholes[SHAPES] + j if i >= 0 else -1


@compiled
def contacts(wholes: Ints, Q: Array, out: NDArray[np.bool_]) -> None:  # kernel
    """out[k] = whether there is a contact in configuration Q[k] of a packed world."""
    Q, out = borrowed(Q), borrowed(out)
    world, around, at, scratch = unpacked(borrowed(wholes))
    for k in range(len(Q)):
        out[k] = contact_at(world, around, Q[k], at, scratch)[0] >= 0


# ── building a world ──────────────────────────────────────────────────────────────────────────────


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


# ── bounds of motion ──────────────────────────────────────────────────────────────────────────────
#
# The speed of a point is at most the sum of each joint's speed times the point's distance from that
# joint's axis. Only the joints after k change the distance from axis k. So, from the tip inwards,
# with V the travel of each joint and r the distances at the beginning of the motion:
#
#     ρₖ = rₖ + Σ_{m>k} Vₘ·ρₘ        (never more than the arm's length allows: `furthest`)
#     moved ≤ Σ Vₖ·ρₖ
#
# The bound holds however the joints travel these amounts, at any speeds and in any order. It grows
# with every Vₖ, so that upper bounds of the travels may stand for the travels.


def furthest(chain: Chain, solids: Solids, moving: int) -> Array:
    """(moving, dof): each shape's largest distance from each axis in any configuration."""
    # From the shape inwards, the arm stretched out: the length of each link is added to the next.
    out = np.zeros((moving, chain.dof))
    travel = np.where(chain.slides > 0, np.maximum(np.abs(chain.lower), np.abs(chain.upper)), 0.0)
    for i in range(moving):
        turn, shift = solids.local[i, :9].reshape(3, 3), solids.local[i, 9:]
        ends = solids.axes[i].reshape(2, 3) @ turn.T + shift
        far = float(np.linalg.norm(ends, axis=1).max() + solids.sizes[i, FAR])
        for k in range(int(solids.traits[i, BODY]) - 1, -1, -1):
            out[i, k] = far
            far += float(np.linalg.norm(chain.rest[k, 9:]) + travel[k])
    return out


@compiled
def distances_from_axes(  # kernel
    frames: Array, ends: Array, slides: Array, around: float, i: int, body: int, out: Array
) -> None:
    """out[i, k] = largest distance of shape i, carried by ``body``, from the axis of joint k."""
    for k in range(body):
        if slides[k] != 0.0:
            out[i, k] = 1.0  # a prismatic joint moves every point by its own travel
            continue
        zx, zy, zz = frames[k + 1, 2], frames[k + 1, 5], frames[k + 1, 8]
        ox, oy, oz = frames[k + 1, 9], frames[k + 1, 10], frames[k + 1, 11]
        most = 0.0
        for e in range(2):
            x, y, z = ends[i, 3 * e] - ox, ends[i, 3 * e + 1] - oy, ends[i, 3 * e + 2] - oz
            cx, cy, cz = y * zz - z * zy, z * zx - x * zz, x * zy - y * zx
            most = max(most, cx * cx + cy * cy + cz * cz)
        out[i, k] = math.sqrt(most) + around


@compiled
def moved_at_most(  # kernel
    radii: Array, caps: Array, slides: Array, i: int, low: int, high: int, travel: Array
) -> float:
    """Upper bound of the motion of shape i relative to body ``low``; joint k moves by travel[k].

    ``high`` is the body that carries the shape: joints low…high - 1 count.
    """
    # From the tip inwards: ``moved`` is what the joints after k do, which may carry the shape
    # further from axis k than it was, but never further than the arm reaches (caps).
    moved = 0.0
    for k in range(high - 1, low - 1, -1):
        rho = 1.0 if slides[k] != 0.0 else min(radii[i, k] + moved, caps[i, k])
        moved += travel[k] * rho
    return moved


# ── contact of two shapes ─────────────────────────────────────────────────────────────────────────


class ShapeContact(NamedTuple):
    distance: float
    """Negative if the shapes overlap."""
    depth: float
    """0 if they do not overlap; for meshes a lower bound."""
    point: Array
    """In the middle between both surfaces, in the world frame."""


def shape_contact(solids: Solids, at: Placement, a: int, b: int, scratch: Scratch) -> ShapeContact:
    """Distance, depth and contact point of shapes a and b."""
    if solids.traits[a, KIND] > solids.traits[b, KIND]:
        a, b = b, a
    far, triangle = distance(solids, at.placed, at.ends, a, b, np.inf, np.inf, -1, True, scratch)
    shapes = (solids.traits, solids.sizes, at.placed, solids.points)
    if solids.traits[b, KIND] != MESH:
        triangle = -1
    if solids.traits[a, KIND] == MESH:
        # For two meshes the contact point is a corner of the nearest triangle.
        return ShapeContact(far, max(-far, 0.0), _corner_of(solids, at.placed, b, triangle))
    _, apart = core_distance(shapes, a, b, -1, triangle, np.inf, scratch[2])
    skin_a, skin_b = solids.sizes[a, SKIN], solids.sizes[b, SKIN]
    if apart <= 0.0:
        depth, _, point = core_depth(shapes, a, b, triangle)
        depth += skin_a + skin_b
        return ShapeContact(-depth, depth, np.array(point))
    on_a = np.array(nearest_point(scratch[2]))
    connection = scratch[2][:, 6] @ scratch[2][:, :3]
    outwards = connection / np.linalg.norm(connection)
    point = on_a - 0.5 * connection + 0.5 * (skin_b - skin_a) * outwards
    return ShapeContact(far, max(-far, 0.0), point)


def _corner_of(solids: Solids, placed: Array, i: int, triangle: int) -> Array:
    """The first corner of a triangle, in the world frame."""
    corner = solids.points[3 * max(triangle, 0)]
    return np.asarray(placed[i, :9].reshape(3, 3) @ corner + placed[i, 9:])
