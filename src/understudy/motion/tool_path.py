"""Tool paths in space: lines and arcs that rotate the tool at a constant rate; and their kernels.

A tool path is parametrised by the share 0…1 of its length. The length is that of the tip's path in
metres; if the tip does not move it is the rotation angle in radians.

`with_tip_speed` keeps the tip below a speed on any path of the joints, lines of the joints
included. The speed of the tip is |J(q(s))·q'(s)| times the speed along the path. It is sampled on
every piece. Between two samples that are h apart, |v|² exceeds the larger of them by at most h²/8
times the bound of its second derivative, which follows from the length of the arm; this is added,
so that the limit holds everywhere and not at the samples only.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.arcs import swept_angle
from understudy.motion.path import TOOL, Floats, Ints, Path
from understudy.motion.plan import Columns, positions_at
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain, tip_points
from understudy.space.transform import angle_between, axis_angle, line, rotation_about

IN_PLACE = 1e-9
"""A tip that moves less than this (m) counts as not moving."""


class ToolPath(Protocol):
    """Poses (4×4) of the tool along a path, and their derivatives with respect to its length."""

    @property
    def length(self) -> float: ...

    @property
    def angle(self) -> float:
        """Rotation of the tool in radians."""
        ...

    def poses(self, shares: Floats) -> Floats:
        """(n, 4, 4)"""
        ...

    def rates(self, shares: Floats) -> Floats:
        """(n, 6): linear and angular velocity per unit of length, in the base's axes."""
        ...


@dataclass(frozen=True, eq=False)
class ToolLine:
    """A straight line from one pose to another."""

    start: Floats
    end: Floats

    @cached_property
    def distance(self) -> float:
        return float(np.linalg.norm(self.end[:3, 3] - self.start[:3, 3]))

    @cached_property
    def angle(self) -> float:
        return angle_between(self.start, self.end)

    @cached_property
    def length(self) -> float:
        return self.distance if self.distance > IN_PLACE else self.angle

    def poses(self, shares: Floats) -> Floats:
        return line(self.start, self.end, shares)

    def rates(self, shares: Floats) -> Floats:
        rate = np.concatenate([self.end[:3, 3] - self.start[:3, 3], _turning(self.start, self.end)])
        return np.broadcast_to(rate / self.length, (len(shares), 6)).copy()


@dataclass(frozen=True, eq=False)
class ToolArc:
    """An arc about an axis through the centre, or a helix that climbs along the axis."""

    start: Floats
    end: Floats
    centre: Floats
    axis: Floats
    swept: float

    @cached_property
    def radius(self) -> float:
        spoke = self.start[:3, 3] - self.centre
        return float(np.linalg.norm(spoke - (spoke @ self.axis) * self.axis))

    @cached_property
    def climb(self) -> float:
        return float((self.end[:3, 3] - self.start[:3, 3]) @ self.axis)

    @cached_property
    def angle(self) -> float:
        return angle_between(self.start, self.end)

    @cached_property
    def length(self) -> float:
        return float(np.hypot(self.radius * self.swept, self.climb))

    def poses(self, shares: Floats) -> Floats:
        out = line(self.start, self.end, shares)
        spoke = self.start[:3, 3] - self.centre
        turned = rotation_about(self.axis, np.asarray(shares) * self.swept) @ spoke
        out[:, :3, 3] = self.centre + turned + np.outer(shares, self.climb * self.axis)
        return out

    def rates(self, shares: Floats) -> Floats:
        spoke = self.poses(shares)[:, :3, 3] - self.centre
        moved = np.cross(self.axis, spoke) * self.swept + self.climb * self.axis
        turning = np.broadcast_to(_turning(self.start, self.end), moved.shape)
        return np.hstack([moved, turning]) / self.length


def tool_arc(
    start: Floats,
    end: Floats,
    centre: ArrayLike,
    *,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    turns: int = 1,
) -> ToolArc:
    """An arc in the plane perpendicular to ``normal`` (G17: z), counter-clockwise for turns > 0."""
    axis = np.asarray(normal, dtype=np.float64) / np.linalg.norm(normal)
    middle = np.asarray(centre, dtype=np.float64)
    spoke = start[:3, 3] - middle
    x = spoke - (spoke @ axis) * axis
    frame = np.stack([x, np.cross(axis, x)])
    first, last = (frame @ (pose[:3, 3] - middle) for pose in (start, end))
    swept = swept_angle(first, last, np.zeros(2), turns=turns)
    return ToolArc(start, end, middle, axis, swept)


def _turning(start: Floats, end: Floats) -> Floats:
    """Rotation from start to end as axis times angle, in the base's axes."""
    axis, angle = axis_angle(start[:3, :3].T @ end[:3, :3])
    return np.asarray(start[:3, :3] @ axis * angle)


# ── kernels ───────────────────────────────────────────────────────────────────────────────────────


Vector = tuple[float, float, float]
Turn = tuple[float, float, float, float]
"""A unit axis and an angle."""


class ArcShape(NamedTuple):
    """An arc about ``axis`` through ``centre``; ``swept`` is 0 for a straight line."""

    centre: tuple[float, float, float]
    axis: tuple[float, float, float]
    swept: float
    climb: float


NO_ARC = ArcShape((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0, 0.0)


@compiled
def turn_between(start: Floats, end: Floats) -> Turn:  # kernel
    """Axis and angle of the rotation from one pose to another, in the axes of the first."""
    r = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            r[i, j] = start[0, i] * end[0, j] + start[1, i] * end[1, j] + start[2, i] * end[2, j]
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    q = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    w = 1.0 + trace
    big, most = -1, trace
    for i in range(3):
        if 2.0 * r[i, i] - trace > most:
            big, most = i, 2.0 * r[i, i] - trace
    if big >= 0:
        w = q[big]
        for j in range(3):
            q[j] = r[big, j] + r[j, big]
        q[big] = 1.0 + most
    if w < 0.0:
        w, q = -w, -q
    length = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    if length < 1e-15 * math.sqrt(w * w + length * length):
        return 0.0, 0.0, 1.0, 0.0
    return q[0] / length, q[1] / length, q[2] / length, 2.0 * math.atan2(length, w)


@compiled
def turned_about(axis: Vector, angle: float, out: Floats) -> None:
    """out (3×3) = the rotation about a unit axis."""
    x, y, z = axis
    s, v = math.sin(angle), 1.0 - math.cos(angle)
    out[0, 0], out[0, 1], out[0, 2] = (
        1.0 - v * (y * y + z * z),
        v * x * y - s * z,
        v * x * z + s * y,
    )
    out[1, 0], out[1, 1], out[1, 2] = (
        v * x * y + s * z,
        1.0 - v * (x * x + z * z),
        v * y * z - s * x,
    )
    out[2, 0], out[2, 1], out[2, 2] = (
        v * x * z - s * y,
        v * y * z + s * x,
        1.0 - v * (x * x + y * y),
    )


@compiled
def pose_between(
    start: Floats, end: Floats, turn: Turn, share: float, R: Floats, out: Floats
) -> None:
    """out (4×4) = the pose at a share of a line; ``R`` (3×3) is overwritten."""
    turned_about((turn[0], turn[1], turn[2]), share * turn[3], R)
    for i in range(3):
        for j in range(3):
            out[i, j] = start[i, 0] * R[0, j] + start[i, 1] * R[1, j] + start[i, 2] * R[2, j]
        out[i, 3] = start[i, 3] + share * (end[i, 3] - start[i, 3])
        out[3, i] = 0.0
    out[3, 3] = 1.0


@compiled
def poses_on(
    start: Floats, end: Floats, turn: Turn, arc: ArcShape, shares: Floats
) -> Floats:  # kernel
    """Poses (n×4×4) at shares of a tool path."""
    out, R = np.empty((len(shares), 4, 4)), np.empty((3, 3))
    for k in range(len(shares)):
        share = shares[k]
        pose_between(start, end, turn, share, R, out[k])
        if arc.swept != 0.0:
            turned_about(arc.axis, share * arc.swept, R)
            for i in range(3):
                out[k, i, 3] = arc.centre[i] + share * arc.climb * arc.axis[i]
                for j in range(3):
                    out[k, i, 3] += R[i, j] * (start[j, 3] - arc.centre[j])
    return out


@compiled
def rates_on(  # kernel
    start: Floats, end: Floats, turn: Turn, arc: ArcShape, poses: Floats, length: float
) -> Floats:
    """(n×6): linear and angular velocity per unit of length, at poses of a tool path."""
    ax, ay, az, angle = turn
    out = np.empty((len(poses), 6))
    u, v, w = arc.axis
    for k in range(len(poses)):
        for i in range(3):
            out[k, i] = end[i, 3] - start[i, 3]
            out[k, 3 + i] = (start[i, 0] * ax + start[i, 1] * ay + start[i, 2] * az) * angle
        if arc.swept != 0.0:
            x = poses[k, 0, 3] - arc.centre[0]
            y = poses[k, 1, 3] - arc.centre[1]
            z = poses[k, 2, 3] - arc.centre[2]
            out[k, 0] = (v * z - w * y) * arc.swept + arc.climb * u
            out[k, 1] = (w * x - u * z) * arc.swept + arc.climb * v
            out[k, 2] = (u * y - v * x) * arc.swept + arc.climb * w
        for i in range(6):
            out[k, i] /= length
    return out


@compiled
def path_length(start: Floats, end: Floats, arc: ArcShape) -> float:  # kernel
    """Length of the tip's path in metres."""
    x, y, z = end[0, 3] - start[0, 3], end[1, 3] - start[1, 3], end[2, 3] - start[2, 3]
    if arc.swept == 0.0:
        return math.sqrt(x * x + y * y + z * z)
    u, v, w = arc.axis
    x, y, z = start[0, 3] - arc.centre[0], start[1, 3] - arc.centre[1], start[2, 3] - arc.centre[2]
    high = x * u + y * v + z * w
    x, y, z = x - high * u, y - high * v, z - high * w
    return math.hypot(math.sqrt(x * x + y * y + z * z) * arc.swept, arc.climb)


LOOKS = 64
"""Samples that are computed at once: few enough for the L1 cache."""


@compiled
def tip_way(  # kernel
    times: Floats,
    law: Columns,
    shape: Floats,
    target: Floats,
    arm: tuple[Floats, Floats, Floats],
) -> float:
    """Length of the polyline through the tip at each time of a plan; ``arm``: rest and slides of a
    chain, and the tip in the frame of its last joint."""
    rest, slides, tip = arm
    q, points = np.empty((LOOKS, shape.shape[2])), np.empty((LOOKS, 3))
    way = x = y = z = 0.0
    for first in range(0, len(times), LOOKS):
        count = min(LOOKS, len(times) - first)
        positions_at(times[first : first + count], law, shape, target, q)
        tip_points(q[:count], rest, slides, tip, points)
        for k in range(count):
            u, v, w = points[k, 0] - x, points[k, 1] - y, points[k, 2] - z
            if first + k > 0:
                way += math.sqrt(u * u + v * v + w * w)
            x, y, z = points[k, 0], points[k, 1], points[k, 2]
    return way


# ── the speed of the tip ──────────────────────────────────────────────────────────────────────────


SPACING = 0.01
"""Distance of two samples on a line of the joints, rad or m."""
MOST_SAMPLES = 2000
SAMPLES = 5
"""On a piece that follows the tool: it is short, and its tip moves evenly."""
MARGIN = 1.002
"""Share by which a piece that follows the tool may differ from its samples."""


def with_tip_speed(path: Path, limit: float, chain: Chain, tool: Floats) -> Path:
    """The path with the tip of the tool at ``limit`` m/s at most, whatever the overrides are."""
    if math.isinf(limit) or not len(path):
        return path
    moving = path.length > 0.0
    short = moving & ((path.measure == TOOL) | (path.length <= SPACING * (SAMPLES - 1)))
    per_unit = np.zeros(len(path))
    per_unit[short] = _tip_speeds(path, np.flatnonzero(short), SAMPLES, chain, tool)
    for piece in np.flatnonzero(moving & ~short).tolist():
        count = min(math.ceil(path.length[piece] / SPACING) + 1, MOST_SAMPLES)
        per_unit[piece] = _tip_speeds(path, np.array([piece]), count, chain, tool)[0]
    return replace(path, fastest=np.minimum(path.fastest, _most(limit, per_unit)))


def axis_speeds(q: Floats, limit: float, chain: Chain, tool: Floats) -> Floats:
    """The speed of each joint, alone, at which the tip moves at ``limit`` m/s: the distance of the
    tip from the axis of a joint does not change while only that joint moves."""
    per_unit = np.linalg.norm(chain.jacobian(q, tool)[:3], axis=0)
    return _most(limit, per_unit)


def _most(limit: float, per_unit: Floats) -> Floats:
    """The limit per unit; infinite where the tip does not move."""
    still = np.full(len(per_unit), np.inf)
    return np.asarray(np.divide(limit, per_unit, out=still, where=per_unit > 0.0))


def _tip_speeds(path: Path, pieces: Ints, count: int, chain: Chain, tool: Floats) -> Floats:
    """The largest speed of the tip on each piece, travelled at speed 1, by ``count`` samples."""
    shape, length = path.shape[pieces], path.length[pieces]
    degree, axes = shape.shape[1] - 1, shape.shape[2]
    s = np.linspace(0.0, 1.0, count)[None, :] * length[:, None]
    powers = s[:, :, None] ** np.arange(degree + 1)
    places = (powers @ shape).reshape(-1, axes)
    tangents = ((np.arange(1, degree + 1) * powers[:, :, :-1]) @ shape[:, 1:]).reshape(-1, axes)
    moved = np.einsum("nij,nj->ni", chain.jacobians(places, tool)[:, :3], tangents)
    largest = np.linalg.norm(moved, axis=1).reshape(len(pieces), count).max(axis=1, initial=0.0)
    step = length / (count - 1)
    curvature = _curvature(chain, tool, np.abs(shape[:, 1]))
    between = np.sqrt(largest**2 + step**2 / 8.0 * curvature)
    return np.asarray(np.where(path.measure[pieces] == TOOL, largest * MARGIN, between))


def _curvature(chain: Chain, tool: Floats, directions: Floats) -> Floats:
    """Bound of the second derivative of |v|² along lines of the joints in these directions."""
    slides = np.asarray(chain.slides) > 0
    turning, sliding = directions[:, ~slides].sum(axis=1), directions[:, slides].sum(axis=1)
    reach = _reach(chain, tool)
    first, second, third = (
        reach * turning**k + k * sliding * turning ** (k - 1) for k in (1, 2, 3)
    )
    return np.asarray(2.0 * (second**2 + first * third))


def _reach(chain: Chain, tool: Floats) -> float:
    """Bound of the distance of the tip from every axis of the arm."""
    places = chain.axes_of(np.zeros((1, chain.dof)))[0, :, :3, 3]
    links = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    low, high = chain.sampling_range
    slides = np.asarray(chain.slides) > 0
    strokes = float(np.maximum(np.abs(low), np.abs(high))[slides].sum())
    return links + strokes + float(np.linalg.norm((chain.tip @ tool)[:3, 3]))
