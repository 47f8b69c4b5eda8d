"""Squared distances of a line segment to segments, boxes, cylinders and triangles, in closed form.

The distance from a point on the segment to a convex shape is a convex function of the segment's
parameter. The nearest point is where its slope changes sign; it is searched between the few
parameters at which the formula of the slope changes.

Arguments are plain numbers, because passing arrays would cost more than the arithmetic. Selections
are written without branches where possible, because mispredicted branches are slow.
"""

import math

from understudy.space.compiled import compiled

CLOSE_ENOUGH = 1e-11
"""Accuracy (m) along the segment of the nearest point to a cylinder."""
MOST_STEPS = 60
"""Limit of the search; bisection alone would need about 40 steps on a segment of some metres."""
TINY = 1e-300
"""In place of a divisor of 0: the quotient is huge, and clamping it to 0…1 gives a valid place."""


@compiled
def segment_segment(  # kernel
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    qx: float,
    qy: float,
    qz: float,
    vx: float,
    vy: float,
    vz: float,
) -> tuple[float, float, float]:
    """Squared distance of p…p+u to q…q+v, and the parameters 0…1 of both nearest points."""
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
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    hx: float,
    hy: float,
    hz: float,
) -> float:
    return (
        ux * _outside(px + t * ux, hx)
        + uy * _outside(py + t * uy, hy)
        + uz * _outside(pz + t * uz, hz)
    )


@compiled
def segment_box(  # kernel
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    hx: float,
    hy: float,
    hz: float,
) -> tuple[float, float]:
    """Squared distance of p…p+u to the box ±h, and the parameter of the nearest point."""
    # The slope grows along the segment, in straight pieces: it bends where the segment crosses
    # one of the six planes of the box. Between the last bend with a slope of at most 0 and the
    # first one with a positive slope it is a line, whose zero is exact.
    low, high = 0.0, 1.0
    first = below = _box_slope(0.0, px, py, pz, ux, uy, uz, hx, hy, hz)
    last = above = _box_slope(1.0, px, py, pz, ux, uy, uz, hx, hy, hz)
    for k in range(6):
        x, u, h = (px, ux, hx) if k < 2 else ((py, uy, hy) if k < 4 else (pz, uz, hz))
        bend = ((h if k & 1 else -h) - x) / (u if u != 0.0 else TINY)
        bend = min(max(bend, 0.0), 1.0)
        slope = _box_slope(bend, px, py, pz, ux, uy, uz, hx, hy, hz)
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
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    radius: float,
    half: float,
) -> float:
    x, y = px + t * ux, py + t * uy
    away = math.sqrt(x * x + y * y)
    slope = uz * _outside(pz + t * uz, half)
    if away > radius:
        slope += (1.0 - radius / away) * (x * ux + y * uy)
    return slope


@compiled
def segment_cylinder(  # kernel
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    radius: float,
    half: float,
) -> tuple[float, float]:
    """Squared distance of p…p+u to the cylinder about z, and the parameter of the nearest point."""
    low, high = 0.0, 1.0
    below = _cylinder_slope(0.0, px, py, pz, ux, uy, uz, radius, half)
    above = _cylinder_slope(1.0, px, py, pz, ux, uy, uz, radius, half)
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
                slope = _cylinder_slope(bend, px, py, pz, ux, uy, uz, radius, half)
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
            slope = _cylinder_slope(t, px, py, pz, ux, uy, uz, radius, half)
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
    px: float,
    py: float,
    pz: float,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    cx: float,
    cy: float,
    cz: float,
    nx: float,
    ny: float,
    nz: float,
) -> bool:
    """Whether the projection of p on the triangle's plane (normal n, any length) is inside it."""
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
    px: float,
    py: float,
    pz: float,
    ux: float,
    uy: float,
    uz: float,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    cx: float,
    cy: float,
    cz: float,
    limit: float,
) -> float:
    """Squared distance of p…p+u to the triangle; ``limit`` if it is not smaller than that."""
    e1x, e1y, e1z = bx - ax, by - ay, bz - az
    e2x, e2y, e2z = cx - ax, cy - ay, cz - az
    nx, ny, nz = e1y * e2z - e1z * e2y, e1z * e2x - e1x * e2z, e1x * e2y - e1y * e2x
    nn = nx * nx + ny * ny + nz * nz
    best = limit
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
            x, y, z = px + t * ux, py + t * uy, pz + t * uz
            if _over_triangle(x, y, z, ax, ay, az, bx, by, bz, cx, cy, cz, nx, ny, nz):
                return near
        elif along != 0.0:
            t = -first / along
            x, y, z = px + t * ux, py + t * uy, pz + t * uz
            if _over_triangle(x, y, z, ax, ay, az, bx, by, bz, cx, cy, cz, nx, ny, nz):
                return 0.0
        elif _over_triangle(px, py, pz, ax, ay, az, bx, by, bz, cx, cy, cz, nx, ny, nz):
            return 0.0
    # Otherwise the nearest point of the triangle is on one of its edges.
    d = segment_segment(px, py, pz, ux, uy, uz, ax, ay, az, e1x, e1y, e1z)[0]
    best = min(best, d)
    d = segment_segment(px, py, pz, ux, uy, uz, ax, ay, az, e2x, e2y, e2z)[0]
    best = min(best, d)
    d = segment_segment(px, py, pz, ux, uy, uz, bx, by, bz, cx - bx, cy - by, cz - bz)[0]
    return min(best, d)
