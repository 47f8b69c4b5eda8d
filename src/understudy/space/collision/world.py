"""The world of a collision check: an arm and the objects around it, as arrays for the kernels.

The shapes of the arm come first, grouped by body, then the objects. The foot never moves: its
contacts with objects are checked once when the world is built, and not here.

A world can be packed into two flat arrays (`packed`), apart from the geometry of hulls and meshes,
which many worlds share. Passing each array to a kernel costs time, and for a check of a single
configuration about twenty of them cost more than the check itself.
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
from understudy.space.compiled import borrowed, compiled, table
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, Hull, Meshes, TriangleMesh, shape_of
from understudy.space.transform import Array, inverse, matrix

NEAR = 1e-6
"""ShapeContact checks ignore shapes further apart than this (m)."""


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

NOT_FINITE = -2
"""Result of `contact_in` for a configuration with nan or infinite values."""

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
            len(solids.sizes),
            len(world.slides),
            world.moving,
            world.foot,
            len(world.boxes),
            len(world.partners),
        ],
        dtype=np.int64,
    )
    numbers, floats = _side_by_side(
        np.zeros(len(world.slides)),
        solids.sizes,
        solids.axes,
        solids.local,
        world.rest,
        world.slides,
        world.boxes,
        *at,
        near,
        simplex,
    )
    wholes, ints = _side_by_side(counts, solids.traits, world.partners, stack)
    q, sizes, axes, local, rest, slides, boxes, *placed, near, simplex = floats
    _, traits, partners, stack = ints
    geometry = solids.points, solids.nodes, solids.children
    return Packed(
        (numbers, wholes, *geometry),
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
        Placement(*placed),
        (stack, near, simplex),
    )


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
    """Some pair that touches in the configuration at the beginning, as i·shapes + j; or -1.

    NOT_FINITE for a configuration that is none: asking here costs nothing.
    """
    for k in range(wholes[1]):
        if not math.isfinite(numbers[k]):
            return NOT_FINITE
    numbers, wholes, children = borrowed(numbers), borrowed(wholes), borrowed(children)
    world, at, scratch = unpacked(numbers, wholes, borrowed(corners), borrowed(boughs), children)
    i, j = contact_at(world, numbers[: wholes[1]], at, scratch)
    return i * wholes[0] + j if i >= 0 else -1


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
