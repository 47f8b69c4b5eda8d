"""Distance of any two shapes.

The result is never larger than the true distance: kernels for segments, boxes and cylinders are
exact to rounding, searches return a proven lower bound. Overlapping shapes have a negative
distance, which only accounts for their skins; `contact` computes the penetration depth.
"""

import math

import numpy as np

from understudy.space.collision.solids import (
    CLOSED,
    COUNT,
    CYLINDER,
    FAR,
    FIRST,
    HALF_X,
    HALF_Y,
    HALF_Z,
    HULL,
    KIND,
    MESH,
    ROOT,
    SEGMENT,
    SIMPLEX,
    SKIN,
    Ints,
    Shapes,
    Solids,
    core_distance,
)
from understudy.space.compiled import borrowed, compiled, inlined
from understudy.space.transform import Array

# ── line segments ─────────────────────────────────────────────────────────────────────────────────
#
# Squared distances of a segment to segments, boxes, cylinders and triangles, in closed form. The
# distance from a point on the segment to a convex shape is a convex function of the segment's
# parameter. The nearest point is where its slope changes sign; it is searched between the few
# parameters at which the formula of the slope changes.
#
# Points are tuples of plain numbers, because passing arrays would cost more than the arithmetic.
# Selections are written without branches where possible, because mispredicted branches are slow.


Vector = tuple[float, float, float]
CLOSE_ENOUGH = 1e-11
"""Accuracy (m) along the segment of the nearest point to a cylinder."""
MOST_STEPS = 60
"""Limit of the search; bisection alone would need about 40 steps on a segment of some metres."""
TINY = 1e-300
"""In place of a divisor of 0: the quotient is huge, and clamping it to 0…1 gives a valid place."""


@compiled
def segment_segment(  # kernel
    p: Vector,
    u: Vector,
    q: Vector,
    v: Vector,
) -> tuple[float, float, float]:
    """Squared distance of p…p+u to q…q+v, and the parameters 0…1 of both nearest points."""
    px, py, pz = p
    ux, uy, uz = u
    qx, qy, qz = q
    vx, vy, vz = v
    rx, ry, rz = px - qx, py - qy, pz - qz
    a = ux * ux + uy * uy + uz * uz
    b = ux * vx + uy * vy + uz * vz
    c = ux * rx + uy * ry + uz * rz
    e = vx * vx + vy * vy + vz * vz
    f = vx * rx + vy * ry + vz * rz
    # For parallel lines any s is valid: t is optimal for it, and then s for t.
    s = min(max((b * f - c * e) / max(a * e - b * b, TINY), 0.0), 1.0)
    t = min(max((b * s + f) / max(e, TINY), 0.0), 1.0)
    s = min(max((b * t - c) / max(a, TINY), 0.0), 1.0)
    dx = rx + s * ux - t * vx
    dy = ry + s * uy - t * vy
    dz = rz + s * uz - t * vz
    return dx * dx + dy * dy + dz * dz, s, t


@compiled
def _outside(x: float, h: float) -> float:
    """Signed distance of x outside ±h; 0 inside."""
    # Half the derivative of the squared distance along this axis.
    return x - min(max(x, -h), h)


@compiled
def _box_slope(
    t: float,
    p: Vector,
    u: Vector,
    h: Vector,
) -> float:
    px, py, pz = p
    ux, uy, uz = u
    hx, hy, hz = h
    return (
        ux * _outside(px + t * ux, hx)
        + uy * _outside(py + t * uy, hy)
        + uz * _outside(pz + t * uz, hz)
    )


@compiled
def segment_box(  # kernel
    p: Vector,
    u: Vector,
    h: Vector,
) -> tuple[float, float]:
    """Squared distance of p…p+u to the box ±h, and the parameter of the nearest point."""
    px, py, pz = p
    ux, uy, uz = u
    hx, hy, hz = h
    # The slope grows along the segment, in straight pieces: it bends where the segment crosses
    # one of the six planes of the box. Between the last bend with a slope of at most 0 and the
    # first one with a positive slope it is a line, whose zero is exact.
    low, high = 0.0, 1.0
    first = below = _box_slope(0.0, p, u, h)
    last = above = _box_slope(1.0, p, u, h)
    for k in range(6):
        x, way, half = (px, ux, hx) if k < 2 else ((py, uy, hy) if k < 4 else (pz, uz, hz))
        bend = ((half if k & 1 else -half) - x) / (way if way != 0.0 else TINY)
        bend = min(max(bend, 0.0), 1.0)
        slope = _box_slope(bend, p, u, h)
        nearer = slope > 0.0 and bend < high
        high, above = (bend if nearer else high), (slope if nearer else above)
        further = slope <= 0.0 and bend > low
        low, below = (bend if further else low), (slope if further else below)
    t = low - below * (high - low) / max(above - below, TINY)
    t = 0.0 if first >= 0.0 else (1.0 if last <= 0.0 else min(max(t, low), high))
    x = _outside(px + t * ux, hx)
    y = _outside(py + t * uy, hy)
    z = _outside(pz + t * uz, hz)
    return x * x + y * y + z * z, t


@compiled
def _cylinder_slope(
    t: float,
    p: Vector,
    u: Vector,
    radius: float,
    half: float,
) -> float:
    px, py, pz = p
    ux, uy, uz = u
    x, y = px + t * ux, py + t * uy
    away = math.sqrt(x * x + y * y)
    slope = uz * _outside(pz + t * uz, half)
    if away > radius:
        slope += (1.0 - radius / away) * (x * ux + y * uy)
    return slope


@compiled
def segment_cylinder(  # kernel
    p: Vector,
    u: Vector,
    radius: float,
    half: float,
) -> tuple[float, float]:
    """Squared distance of p…p+u to the cylinder about z, and the parameter of the nearest point."""
    px, py, pz = p
    ux, uy, uz = u
    low, high = 0.0, 1.0
    below = _cylinder_slope(0.0, p, u, radius, half)
    above = _cylinder_slope(1.0, p, u, radius, half)
    t = 0.0
    if below < 0.0 and above <= 0.0:
        t = 1.0
    elif below < 0.0:
        # As for the box: the formula of the slope changes at both end planes and where the line
        # enters and leaves the infinite cylinder. Between two of these places it is smooth, but no
        # straight line (it has a square root): its zero is searched.
        a = ux * ux + uy * uy
        b = px * ux + py * uy
        inside = b * b - a * (px * px + py * py - radius * radius)
        root = math.sqrt(inside) if inside > 0.0 else 0.0
        for k in range(4):
            if k < 2:
                if uz == 0.0:
                    continue
                bend = ((half if k & 1 else -half) - pz) / uz
            else:
                if inside <= 0.0 or a == 0.0:
                    continue
                bend = (-b + (root if k & 1 else -root)) / a
            if low < bend < high:
                slope = _cylinder_slope(bend, p, u, radius, half)
                if slope > 0.0:
                    high, above = bend, slope
                else:
                    low, below = bend, slope
        enough = CLOSE_ENOUGH / math.sqrt(ux * ux + uy * uy + uz * uz)
        last = 0
        for _ in range(MOST_STEPS):
            if high - low <= enough or below == 0.0:
                break
            t = low - below * (high - low) / (above - below)
            if not low < t < high:
                t = 0.5 * (low + high)
            slope = _cylinder_slope(t, p, u, radius, half)
            # Illinois method: an end that stays twice gets half its value: both ends move.
            if slope > 0.0:
                high, above = t, slope
                below *= 0.5 if last == 1 else 1.0
                last = 1
            else:
                low, below = t, slope
                above *= 0.5 if last == -1 else 1.0
                last = -1
        t = low if below == 0.0 else low - below * (high - low) / (above - below)
    x, y, z = px + t * ux, py + t * uy, _outside(pz + t * uz, half)
    away = max(math.sqrt(x * x + y * y) - radius, 0.0)
    return away * away + z * z, t


@compiled
def _over_triangle(
    p: Vector,
    a: Vector,
    b: Vector,
    c: Vector,
    n: Vector,
) -> bool:
    """Whether the projection of p on the triangle's plane (normal n, any length) is inside it."""
    px, py, pz = p
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    nx, ny, nz = n
    x, y, z = px - ax, py - ay, pz - az
    ux, uy, uz = bx - ax, by - ay, bz - az
    if nx * (uy * z - uz * y) + ny * (uz * x - ux * z) + nz * (ux * y - uy * x) < 0.0:
        return False
    wx, wy, wz = ax - cx, ay - cy, az - cz
    if nx * (wy * z - wz * y) + ny * (wz * x - wx * z) + nz * (wx * y - wy * x) < 0.0:
        return False
    ux, uy, uz = cx - bx, cy - by, cz - bz
    x, y, z = px - bx, py - by, pz - bz
    return nx * (uy * z - uz * y) + ny * (uz * x - ux * z) + nz * (ux * y - uy * x) >= 0.0


@compiled
def segment_triangle(  # kernel
    p: Vector,
    u: Vector,
    a: Vector,
    b: Vector,
    c: Vector,
    limit: float,
) -> float:
    """Squared distance of p…p+u to the triangle; ``limit`` if it is not smaller than that."""
    px, py, pz = p
    ux, uy, uz = u
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    e1x, e1y, e1z = bx - ax, by - ay, bz - az
    e2x, e2y, e2z = cx - ax, cy - ay, cz - az
    nx, ny, nz = e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x
    n, nn = (nx, ny, nz), nx * nx + ny * ny + nz * nz
    if nn > 0.0:
        first = nx * (px - ax) + ny * (py - ay) + nz * (pz - az)
        along = nx * ux + ny * uy + nz * uz
        last = first + along
        if first * last > 0.0:
            # Both ends on one side of the plane. The end nearer to the plane is the nearest point
            # if it is above the triangle; else the nearest point of the triangle is on an edge.
            near = min(first * first, last * last) / nn
            if near >= limit:
                return limit
            t = 0.0 if first * first <= last * last else 1.0
            if _over_triangle((px + t * ux, py + t * uy, pz + t * uz), a, b, c, n):
                return near
        elif along != 0.0:
            t = -first / along
            if _over_triangle((px + t * ux, py + t * uy, pz + t * uz), a, b, c, n):
                return 0.0
        elif _over_triangle(p, a, b, c, n):
            return 0.0
    # Otherwise the nearest point of the triangle is on one of its edges.
    best = min(limit, segment_segment(p, u, a, (e1x, e1y, e1z))[0])
    best = min(best, segment_segment(p, u, a, (e2x, e2y, e2z))[0])
    return min(best, segment_segment(p, u, b, (cx - bx, cy - by, cz - bz))[0])


# ── triangle meshes ───────────────────────────────────────────────────────────────────────────────
#
# A search descends the tree of a mesh, nearer child first, and skips nodes that cannot be nearer
# than the best distance so far. Its first value is an argument: larger distances are not searched.


DEPTH = 128
"""Size of the stack of nodes still to be searched."""
DIRECTIONS = np.array(
    [
        (0.5377, 0.6180, 0.5735),
        (-0.7103, 0.3847, 0.5894),
        (0.2113, -0.8411, 0.4978),
        (0.4231, 0.3019, -0.8543),
        (-0.3571, -0.5523, -0.7533),
        (0.8831, -0.2617, -0.3894),
    ]
)
"""Ray directions for counting crossings; the next one is used if a ray touches an edge."""
BLUR = 0.25
"""Relative error allowed for distances above ``exact``: a proof far from contact need not be tight,
and a search that may end earlier visits far fewer nodes."""
ON_EDGE = 1e-9
"""Relative to the triangle: a ray this close to an edge could count for both triangles, or none."""

Segment = tuple[float, float, float, float, float, float]
Stacks = tuple[Ints, Array]


@compiled
def into_frame(placed: Array, i: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Converts a point from the world frame to the frame of shape i."""
    x, y, z = x - placed[i, 9], y - placed[i, 10], z - placed[i, 11]
    return (
        placed[i, 0] * x + placed[i, 3] * y + placed[i, 6] * z,
        placed[i, 1] * x + placed[i, 4] * y + placed[i, 7] * z,
        placed[i, 2] * x + placed[i, 5] * y + placed[i, 8] * z,
    )


@compiled
def _node_gap(nodes: Array, n: int, line: Segment, square: float) -> float:
    """Lower bound of the distance of node n to the segment p…p+u; ``square`` = u·u."""
    px, py, pz, ux, uy, uz = line
    x, y, z = nodes[n, 0] - px, nodes[n, 1] - py, nodes[n, 2] - pz
    gx = max(abs(x - 0.5 * ux) - 0.5 * abs(ux) - nodes[n, 3], 0.0)
    gy = max(abs(y - 0.5 * uy) - 0.5 * abs(uy) - nodes[n, 4], 0.0)
    gz = max(abs(z - 0.5 * uz) - 0.5 * abs(uz) - nodes[n, 5], 0.0)
    t = min(max((x * ux + y * uy + z * uz) / square, 0.0), 1.0) if square > 0.0 else 0.0
    x, y, z = x - t * ux, y - t * uy, z - t * uz
    around = math.sqrt(x * x + y * y + z * z) - nodes[n, 6]
    return float(max(around, math.sqrt(gx * gx + gy * gy + gz * gz)))


@compiled
def _push_children(
    nodes: Array,
    children: Ints,
    n: int,
    line: Segment,
    square: float,
    best: float,
    stacks: Stacks,
    top: int,
) -> int:
    """Pushes the children nearer than ``best`` on the stack, the nearest on top."""
    stack, gaps = stacks
    left, right = children[n, 0], children[n, 1]
    near, far = _node_gap(nodes, left, line, square), _node_gap(nodes, right, line, square)
    if near > far:
        left, right, near, far = right, left, far, near
    if far < best:
        stack[top], gaps[top] = right, far
        top += 1
    if near < best:
        stack[top], gaps[top] = left, near
        top += 1
    return top


@compiled
def line_mesh(  # kernel
    points: Array,
    nodes: Array,
    children: Ints,
    root: int,
    line: Segment,
    best: float,
    hint: int,
    exact: float,
    stacks: Stacks,
) -> tuple[float, int]:
    """Lower bound of the distance of a segment (in the mesh's frame) to a mesh; nearest triangle.

    Returns (best, -1) if nothing is nearer than ``best``. ``hint``: a triangle that may be near, or
    -1. Beyond ``exact`` the bound may be up to the share ``BLUR`` below the true distance.
    """
    px, py, pz, ux, uy, uz = line
    square = ux * ux + uy * uy + uz * uz
    stack, gaps = stacks
    nearest = -1
    stack[0], gaps[0] = root, _node_gap(nodes, root, line, square)
    top = 1
    if gaps[0] >= best:
        return best, -1
    least, skipped = best * best, best
    first, count = hint, 1 if hint >= 0 else 0
    while True:
        for t in range(first, first + count):
            d = segment_triangle(
                (px, py, pz),
                (ux, uy, uz),
                (points[3 * t, 0], points[3 * t, 1], points[3 * t, 2]),
                (points[3 * t + 1, 0], points[3 * t + 1, 1], points[3 * t + 1, 2]),
                (points[3 * t + 2, 0], points[3 * t + 2, 1], points[3 * t + 2, 2]),
                least,
            )
            if d < least:
                least, nearest = d, t
                best = math.sqrt(d)
        first, count = 0, 0
        if top == 0 or least == 0.0:
            return min(best, skipped), nearest
        top -= 1
        n = stack[top]
        # What is skipped is no nearer than its gap: the smallest gap skipped bounds the result.
        if gaps[top] >= best - BLUR * max(best - exact, 0.0):
            skipped = min(skipped, gaps[top])
            continue
        if children[n, 0] < 0:
            first, count = -1 - children[n, 0], children[n, 1]
        else:
            top = _push_children(nodes, children, n, line, square, best, stacks, top)


@compiled
def core_mesh(  # kernel
    shapes: Shapes,
    nodes: Array,
    children: Ints,
    a: int,
    b: int,
    line: Segment,
    around: float,
    best: float,
    exact: float,
    stacks: Stacks,
    simplex: Array,
) -> tuple[float, int]:
    """Lower bound of the distance of core a to mesh b, and the nearest triangle; see line_mesh.

    ``line`` and ``around``: axis and radius of the core's bounding capsule, in the mesh's frame.
    """
    traits = shapes[0]
    square = line[3] * line[3] + line[4] * line[4] + line[5] * line[5]
    stack, gaps = stacks
    stack[0], gaps[0] = traits[b, ROOT], 0.0
    top, nearest, skipped = 1, -1, best
    while top > 0:
        top -= 1
        n = stack[top]
        if gaps[top] - around >= best - BLUR * max(best - exact, 0.0):
            skipped = min(skipped, gaps[top] - around)
            continue
        if children[n, 0] < 0:
            first = -1 - children[n, 0]
            for t in range(first, first + children[n, 1]):
                proven, _ = core_distance(shapes, a, b, -1, t, best, simplex)
                if proven < best:
                    best, nearest = proven, t
            if best == 0.0:
                break
        else:
            top = _push_children(nodes, children, n, line, square, best + around, stacks, top)
    return min(best, skipped), nearest


@compiled
def _apart(placed: Array, nodes: Array, a: int, n: int, b: int, m: int) -> float:
    """Lower bound of the distance of node n of mesh a to node m of mesh b."""
    x, y, z = nodes[n, 0], nodes[n, 1], nodes[n, 2]
    wx = placed[a, 0] * x + placed[a, 1] * y + placed[a, 2] * z + placed[a, 9]
    wy = placed[a, 3] * x + placed[a, 4] * y + placed[a, 5] * z + placed[a, 10]
    wz = placed[a, 6] * x + placed[a, 7] * y + placed[a, 8] * z + placed[a, 11]
    x, y, z = into_frame(placed, b, wx, wy, wz)
    gx = max(abs(x - nodes[m, 0]) - nodes[m, 3], 0.0)
    gy = max(abs(y - nodes[m, 1]) - nodes[m, 4], 0.0)
    gz = max(abs(z - nodes[m, 2]) - nodes[m, 5], 0.0)
    return float(math.sqrt(gx * gx + gy * gy + gz * gz) - nodes[n, 6])


@compiled
def mesh_mesh(  # kernel
    shapes: Shapes,
    nodes: Array,
    children: Ints,
    a: int,
    b: int,
    best: float,
    exact: float,
    simplex: Array,
) -> tuple[float, int, int]:
    """Lower bound of the distance of two meshes' surfaces, and their nearest triangles."""
    traits, _, placed, _ = shapes
    pairs, gaps = np.empty((8 * DEPTH, 2), dtype=np.int64), np.empty(8 * DEPTH)
    pairs[0, 0], pairs[0, 1], gaps[0] = traits[a, ROOT], traits[b, ROOT], 0.0
    top, of_a, of_b, skipped = 1, -1, -1, best
    while top > 0 and best > 0.0:
        top -= 1
        n, m = pairs[top, 0], pairs[top, 1]
        if gaps[top] >= best - BLUR * max(best - exact, 0.0):
            skipped = min(skipped, gaps[top])
            continue
        n_leaf, m_leaf = children[n, 0] < 0, children[m, 0] < 0
        if n_leaf and m_leaf:
            first, other = -1 - children[n, 0], -1 - children[m, 0]
            for t in range(first, first + children[n, 1]):
                for o in range(other, other + children[m, 1]):
                    proven, _ = core_distance(shapes, a, b, t, o, best, simplex)
                    if proven < best:
                        best, of_a, of_b = proven, t, o
            continue
        # The larger node is divided: two nodes of about the same size separate soonest.
        divide_first = m_leaf or (not n_leaf and nodes[n, 6] >= nodes[m, 6])
        split = n if divide_first else m
        for k in range(2):
            half = children[split, k]
            pairs[top + k, 0] = half if divide_first else n
            pairs[top + k, 1] = m if divide_first else half
            p, q = pairs[top + k, 0], pairs[top + k, 1]
            # Sphere of one node against the box of the other, both ways: the better bound counts.
            there, back = _apart(placed, nodes, a, p, b, q), _apart(placed, nodes, b, q, a, p)
            gaps[top + k] = max(there, back)
        if gaps[top] < gaps[top + 1]:  # the nearer one is searched first
            p, q, gap = pairs[top, 0], pairs[top, 1], gaps[top]
            pairs[top, 0], pairs[top, 1] = pairs[top + 1, 0], pairs[top + 1, 1]
            gaps[top] = gaps[top + 1]
            pairs[top + 1, 0], pairs[top + 1, 1], gaps[top + 1] = p, q, gap
        top += 2
    return min(best, skipped), of_a, of_b


# ── inside ──────────────────────────────────────────────────────────────────────────────────────


@compiled
def _misses_box(
    nodes: Array, n: int, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> bool:
    """Whether the ray from (x, y, z) along d misses node n."""
    ax, ay, az = (nodes[n, 0] - x) / dx, (nodes[n, 1] - y) / dy, (nodes[n, 2] - z) / dz
    hx, hy, hz = nodes[n, 3] / abs(dx), nodes[n, 4] / abs(dy), nodes[n, 5] / abs(dz)
    enters = max(ax - hx, ay - hy, az - hz)
    leaves = min(ax + hx, ay + hy, az + hz)
    # With a tolerance: a ray that grazes the box does not miss it.
    return bool(leaves < -ON_EDGE or enters > leaves + ON_EDGE)


@compiled
def _crossing(
    points: Array, t: int, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> int:
    """±1 if the ray crosses triangle t, 0 if not, 2 if it is too close to an edge to decide."""
    # u, v, w: six-fold volumes of the ray's direction with each edge. The ray passes inside the
    # triangle if all have the same sign; two neighbours compute the same number for
    # their edge, but for the sign.
    ax, ay, az = points[3 * t, 0] - x, points[3 * t, 1] - y, points[3 * t, 2] - z
    bx, by, bz = points[3 * t + 1, 0] - x, points[3 * t + 1, 1] - y, points[3 * t + 1, 2] - z
    cx, cy, cz = points[3 * t + 2, 0] - x, points[3 * t + 2, 1] - y, points[3 * t + 2, 2] - z
    u = dx * (cy * bz - cz * by) + dy * (cz * bx - cx * bz) + dz * (cx * by - cy * bx)
    v = dx * (ay * cz - az * cy) + dy * (az * cx - ax * cz) + dz * (ax * cy - ay * cx)
    w = dx * (by * az - bz * ay) + dy * (bz * ax - bx * az) + dz * (bx * ay - by * ax)
    low, high = min(u, v, w), max(u, v, w)
    scale = ON_EDGE * max(high, -low)
    if low < -scale and high > scale:
        return 0
    total = u + v + w
    if abs(total) <= 3.0 * scale:
        return 2 if high > 0.0 or low < 0.0 else 0
    away = (
        u * (dx * ax + dy * ay + dz * az)
        + v * (dx * bx + dy * by + dz * bz)
        + w * (dx * cx + dy * cy + dz * cz)
    ) / total
    if away < 0.0:
        return 0
    if (low >= -scale and low <= scale) or -scale <= high <= scale:
        return 2
    return 1 if total > 0.0 else -1


@compiled
def _windings(points: Array, first: int, count: int, x: float, y: float, z: float) -> float:
    """Winding number about the point: sum of the triangles' solid angles over 4π."""
    total = 0.0
    for t in range(first, first + count):
        ax, ay, az = points[3 * t, 0] - x, points[3 * t, 1] - y, points[3 * t, 2] - z
        bx, by, bz = points[3 * t + 1, 0] - x, points[3 * t + 1, 1] - y, points[3 * t + 1, 2] - z
        cx, cy, cz = points[3 * t + 2, 0] - x, points[3 * t + 2, 1] - y, points[3 * t + 2, 2] - z
        a = math.sqrt(ax * ax + ay * ay + az * az)
        b = math.sqrt(bx * bx + by * by + bz * bz)
        c = math.sqrt(cx * cx + cy * cy + cz * cz)
        volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
        below = (
            a * b * c
            + (ax * bx + ay * by + az * bz) * c
            + (bx * cx + by * cy + bz * cz) * a
            + (cx * ax + cy * ay + cz * az) * b
        )
        total += 2.0 * math.atan2(volume, below)
    return total / (4.0 * math.pi)


@compiled
def inside_mesh(  # kernel
    traits: Ints,
    points: Array,
    nodes: Array,
    children: Ints,
    i: int,
    x: float,
    y: float,
    z: float,
    stack: Ints,
) -> bool:
    """Whether the point (in the mesh's frame) is inside mesh i, not on its surface.

    An open mesh has no inside.
    """
    root = traits[i, ROOT]
    if (
        not traits[i, CLOSED]
        or abs(x - nodes[root, 0]) > nodes[root, 3]
        or abs(y - nodes[root, 1]) > nodes[root, 4]
        or abs(z - nodes[root, 2]) > nodes[root, 5]
    ):
        return False
    for k in range(len(DIRECTIONS)):
        dx, dy, dz = DIRECTIONS[k, 0], DIRECTIONS[k, 1], DIRECTIONS[k, 2]
        windings, clear = 0, True
        stack[0] = root
        top = 1
        while top > 0 and clear:
            top -= 1
            n = stack[top]
            if _misses_box(nodes, n, x, y, z, dx, dy, dz):
                continue
            if children[n, 0] >= 0:
                stack[top], stack[top + 1] = children[n, 0], children[n, 1]
                top += 2
                continue
            first = -1 - children[n, 0]
            for t in range(first, first + children[n, 1]):
                crossing = _crossing(points, t, x, y, z, dx, dy, dz)
                clear &= crossing != 2
                windings += crossing
        if clear:
            return windings != 0
    # Every ray touched an edge. The winding number needs all triangles, but no direction.
    first, count = traits[i, FIRST] // 3, traits[i, COUNT] // 3
    return abs(_windings(points, first, count, x, y, z)) > 0.5


# ── any two shapes ────────────────────────────────────────────────────────────────────────────────


Scratch = tuple[Ints, Array, Array]


def scratch() -> Scratch:
    """Working memory of the kernels: stack of nodes, their distances, a simplex."""
    return np.zeros(DEPTH, dtype=np.int64), np.zeros(DEPTH), np.zeros(SIMPLEX)


@compiled
def lent(solids: Solids) -> Solids:
    """The solids without reference counting; see `compiled.borrowed`."""
    return Solids(
        borrowed(solids.traits),
        borrowed(solids.sizes),
        borrowed(solids.axes),
        borrowed(solids.local),
        borrowed(solids.points),
        borrowed(solids.nodes),
        borrowed(solids.children),
    )


@compiled
def core_point(solids: Solids, placed: Array, i: int) -> Vector:
    """Some point of core i, in the world frame."""
    x = y = z = 0.0
    if solids.traits[i, KIND] >= HULL:
        k = solids.traits[i, FIRST]
        x, y, z = solids.points[k, 0], solids.points[k, 1], solids.points[k, 2]
    return (
        placed[i, 0] * x + placed[i, 1] * y + placed[i, 2] * z + placed[i, 9],
        placed[i, 3] * x + placed[i, 4] * y + placed[i, 5] * z + placed[i, 10],
        placed[i, 6] * x + placed[i, 7] * y + placed[i, 8] * z + placed[i, 11],
    )


@compiled
def encloses(solids: Solids, placed: Array, mesh: int, other: int, stack: Ints) -> bool:
    """Whether some point of the other core is inside the mesh."""
    x, y, z = core_point(solids, placed, other)
    x, y, z = into_frame(placed, mesh, x, y, z)
    return inside_mesh(
        solids.traits, solids.points, solids.nodes, solids.children, mesh, x, y, z, stack
    )


@inlined
def line_distance(  # kernel
    traits: Ints, sizes: Array, placed: Array, ends: Array, i: int, j: int
) -> float:
    """Distance of the cores of segment i and of j: a segment, a box or a cylinder."""
    px, py, pz = ends[i, 0], ends[i, 1], ends[i, 2]
    ux, uy, uz = ends[i, 3] - px, ends[i, 4] - py, ends[i, 5] - pz
    if traits[j, KIND] == SEGMENT:
        qx, qy, qz = ends[j, 0], ends[j, 1], ends[j, 2]
        vx, vy, vz = ends[j, 3] - qx, ends[j, 4] - qy, ends[j, 5] - qz
        square, _, _ = segment_segment((px, py, pz), (ux, uy, uz), (qx, qy, qz), (vx, vy, vz))
    else:
        px, py, pz = px - placed[j, 9], py - placed[j, 10], pz - placed[j, 11]
        a, b, c = placed[j, 0], placed[j, 3], placed[j, 6]
        x, u = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        a, b, c = placed[j, 1], placed[j, 4], placed[j, 7]
        y, v = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        a, b, c = placed[j, 2], placed[j, 5], placed[j, 8]
        z, w = a * px + b * py + c * pz, a * ux + b * uy + c * uz
        hx, hy, hz = sizes[j, HALF_X], sizes[j, HALF_Y], sizes[j, HALF_Z]
        if traits[j, KIND] == CYLINDER:
            square, _ = segment_cylinder((x, y, z), (u, v, w), hx, hz)
        else:
            square, _ = segment_box((x, y, z), (u, v, w), (hx, hy, hz))
    return math.sqrt(square)


@compiled
def _axis_in_mesh(placed: Array, ends: Array, a: int, b: int) -> Segment:
    """Axis of shape a's bounding capsule, in the frame of mesh b."""
    px, py, pz = into_frame(placed, b, ends[a, 0], ends[a, 1], ends[a, 2])
    qx, qy, qz = into_frame(placed, b, ends[a, 3], ends[a, 4], ends[a, 5])
    return px, py, pz, qx - px, qy - py, qz - pz


@compiled
def _to_mesh(
    solids: Solids,
    placed: Array,
    ends: Array,
    a: int,
    b: int,
    best: float,
    exact: float,
    hint: int,
    scratch: Scratch,
) -> tuple[float, int]:
    """Lower bound of the distance of any core a to mesh b, and the nearest triangle."""
    shapes = (solids.traits, solids.sizes, placed, solids.points)
    points, nodes, children = solids.points, solids.nodes, solids.children
    stacks, simplex = (scratch[0], scratch[1]), scratch[2]
    if solids.traits[a, KIND] == MESH:
        d, _, triangle = mesh_mesh(shapes, nodes, children, a, b, best, exact, simplex)
        return d, triangle
    line = _axis_in_mesh(placed, ends, a, b)
    if solids.traits[a, KIND] == SEGMENT:
        root = solids.traits[b, ROOT]
        return line_mesh(points, nodes, children, root, line, best, hint, exact, stacks)
    around = solids.sizes[a, FAR]
    return core_mesh(shapes, nodes, children, a, b, line, around, best, exact, stacks, simplex)


@compiled
def distance(  # kernel
    solids: Solids,
    placed: Array,
    ends: Array,
    a: int,
    b: int,
    enough: float,
    exact: float,
    hint: int,
    look_inside: bool,
    scratch: Scratch,
) -> tuple[float, int]:
    """Lower bound of the distance of shapes a and b, exact if below ``enough`` and ``exact``.

    ``hint``: nearest triangle of the last call, or -1; the new one is returned. ``look_inside``:
    check whether one shape is completely inside the other's mesh.
    """
    traits, sizes = solids.traits, solids.sizes
    if traits[a, KIND] > traits[b, KIND]:
        a, b = b, a
    skins = sizes[a, SKIN] + sizes[b, SKIN]
    first, second = traits[a, KIND], traits[b, KIND]
    if second == MESH:
        d, hint = _to_mesh(solids, placed, ends, a, b, enough + skins, exact + skins, hint, scratch)
    elif first == SEGMENT and second != HULL:
        d = line_distance(traits, sizes, placed, ends, a, b)
    else:
        shapes = (traits, sizes, placed, solids.points)
        d, _ = core_distance(shapes, a, b, -1, -1, enough + skins, scratch[2])
    if look_inside and second == MESH and d > 0.0:
        hidden = encloses(solids, placed, b, a, scratch[0])
        if not hidden and first == MESH:
            hidden = encloses(solids, placed, a, b, scratch[0])
        if hidden:
            return -d - skins, hint
    return d - skins, hint
