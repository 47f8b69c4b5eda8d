"""Inverse kinematics: all configurations for a pose of the tool, or the reason why there are none.

Anthropomorphic arms with a spherical wrist are solved in closed form here, other six-axis arms with
a closed form by ``eaik`` if it is installed, all others by search.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import Refused
from understudy.space.compiled import borrowed, compiled
from understudy.space.kinematics.chain import (
    FOOT_AND_FLANGE,
    Chain,
    Frames,
    arctan2,
    flange_frames,
    jacobians,
    joint_frames,
)
from understudy.space.transform import Array, inverse, rotation_about
from understudy.units import MM, digits_apart

# ── closed form: anthropomorphic arms, the usual six-axis robots ──────────────────────────────────
#
# Such an arm has a rotating column, two parallel joints and a spherical wrist. It is recognised
# by its geometry at zero, for any joint names and any frames in the file: axis 2 is perpendicular
# to axis 1, axis 3 parallel to 2, axis 4 perpendicular to 3; axes 4, 5, 6 meet in one point and
# each is perpendicular to the next. All offsets along and across the axes are allowed.
#
# The column frame has z along axis 1, y along axis 2 and its origin on axis 1 at the height of
# axis 2. In it the upper arm and the forearm swing in a plane at the lateral distance ``side``;
# their directions are pitch angles, measured from z towards x.
#
# An arm reaches a pose in up to eight branches. Branch number = 4·shoulder + 2·elbow + wrist. The
# two shoulders put the wrist centre on either side of axis 1, the two elbows bend to either side
# of the line from axis 2 to the wrist centre, wrist 1 has the negative angle of joint 5. A branch
# that does not exist is NaN. Angles are in -π…π.
#
# An undetermined angle is taken from ``near``: joint 1 if the wrist centre is on axis 1; joints 4
# and 6 if joint 5 is straight, where only their sum is determined and both move by the same
# amount.


Y = (0.0, 1.0, 0.0)
Z = (0.0, 0.0, 1.0)

EXACT = 1e-9
"""Largest deviation from an ideal geometry for which the closed form is exact."""
ROUNDED = 2e-5
"""Up to this deviation (a file that writes π/2 as 1.5708) the closed form is refined."""


@dataclass(frozen=True, eq=False)
class Anthropomorphic:
    """Dimensions of an anthropomorphic arm."""

    geometry: Array
    """reach1, side, upper, fore, pitch2, pitch3 - pitch2, cos and sin of the pitch from forearm to
    wrist, sign of joint 3, offset 4, offset 5."""
    column: Array
    """Foot → column frame, 4×4."""
    hand: Array
    """Inverse rotation of the flange at zero, and the wrist centre in the flange frame, 4×4."""
    exact: bool

    def ends(self, frames: Frames = FOOT_AND_FLANGE) -> tuple[Array, Array]:
        """The matrices by which the kernels multiply a target, from the left and from the right."""
        if frames is FOOT_AND_FLANGE:
            return self.column, self.hand
        return self.column @ frames.base, inverse(frames.tool) @ self.hand

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest distance of the wrist centre from axis 2, in the arm's plane."""
        upper, fore = self.geometry[2], self.geometry[3]
        return abs(upper - fore), upper + fore


@lru_cache(maxsize=64)
def closed_form(chain: Chain) -> Anthropomorphic | None:
    """The arm's dimensions if it is anthropomorphic, else None; computed once per chain."""
    if chain.dof != 6 or chain.slides.any():
        return None
    axes = chain.axes_of(np.zeros((1, 6)))[0, 1:]
    u, p = axes[:, :3, 2], axes[:, :3, 3]
    center = _meeting(u[3:], p[3:])
    off = max(
        abs(u[0] @ u[1]),
        float(np.linalg.norm(np.cross(u[1], u[2]))),
        abs(u[2] @ u[3]),
        abs(u[3] @ u[4]),
        abs(u[4] @ u[5]),
        max(float(np.linalg.norm(np.cross(u[i], center - p[i]))) for i in (3, 4, 5)),
    )
    if off > ROUNDED:
        return None
    found = _measure(u, p, center, chain.flange(np.zeros(6)), exact=off < EXACT)
    return found if min(found.geometry[2:4]) > 1e-6 else None


def _measure(u: Array, p: Array, center: Array, flange: Array, *, exact: bool) -> Anthropomorphic:
    column = np.eye(4)
    z = u[0]
    y = u[1] - (u[1] @ z) * z
    y /= np.linalg.norm(y)
    column[:3, :3] = np.column_stack([np.cross(y, z), y, z])
    column[:3, 3] = p[0] + z * ((p[1] - p[0]) @ z)
    turn = column[:3, :3].T
    shoulder, elbow, wrist = (turn @ (point - column[:3, 3]) for point in (p[1], p[2], center))
    upper, fore = elbow - shoulder, wrist - elbow
    pitch2 = math.atan2(upper[0], upper[2])
    pitch3 = math.atan2(fore[0], fore[2])
    u4, u5, u6 = (turn @ u[i] for i in (3, 4, 5))
    wrist_pitch = math.atan2(u4[0], u4[2])
    offset4 = _angle(np.array(Y), u5, axis=u4)
    offset5 = _angle(u4, u6, axis=u5)
    bend = wrist_pitch - pitch3
    hand = np.eye(4)
    hand[:3, :3] = (
        (turn @ flange[:3, :3]).T
        @ rotation_about(Y, wrist_pitch)
        @ rotation_about(Z, offset4)
        @ rotation_about(Y, offset5)
    )
    hand[:3, 3] = flange[:3, :3].T @ (center - flange[:3, 3])
    geometry = [
        shoulder[0],
        wrist[1],
        math.hypot(upper[0], upper[2]),
        math.hypot(fore[0], fore[2]),
        pitch2,
        pitch3 - pitch2,
        math.cos(bend),
        math.sin(bend),
        math.copysign(1.0, u[1] @ u[2]),
        offset4,
        offset5,
    ]
    return Anthropomorphic(np.array(geometry), inverse(column), hand, exact)


def _meeting(u: Array, p: Array) -> Array:
    """The point nearest to all the lines p + t·u, in the least squares sense."""
    across = [np.eye(3) - np.outer(d, d) for d in u]
    right = sum((a @ q for a, q in zip(across, p, strict=True)), np.zeros(3))
    return np.linalg.solve(sum(across, np.zeros((3, 3))), right)


def _angle(start: Array, end: Array, *, axis: Array) -> float:
    """Angle about an axis from start to end, both perpendicular to it."""
    return math.atan2(float(np.cross(start, end) @ axis), float(start @ end))


# ── kernels of the closed form ────────────────────────────────────────────────────────────────────


BRANCHES = 8
STRETCHED_WRIST = 1e-6
"""Sine of joint 5 below which joints 4 and 6 count as one: 0.25 µm at the tip of a long tool."""
ON_COLUMN = 1e-7
"""Distance of the wrist centre from axis 1 below which joint 1 is undetermined."""
GRAZING = 1e-9
"""Relative tolerance by which a target may be out of reach or a joint outside its limit."""
TURN = 2.0 * math.pi
PER_TURN = 1.0 / TURN

Row = tuple[float, float, float]

SCRATCH = (4, 20)
"""Rows: numerators, denominators, angles, marks (wrist undetermined: 0, ±1; arm reaches: 0, 1).

Angles: 0…1 joint 1 per shoulder, 2…3 elbow per shoulder, 4…7 pitch of the upper arm per
shoulder and elbow, 8…19 joints 4, 5, 6 per shoulder and elbow.
"""


@compiled
def wrapped(angle: float) -> float:
    """The angle reduced to -π…π, upper end included."""
    turns: float = np.ceil(angle * PER_TURN - 0.5)
    return angle - TURN * turns


@compiled
def _wrist(s: int, e: int, scratch: Array, row0: Row, row1: Row, row2: Row) -> None:
    """Prepares joints 4, 5, 6 from the rows of Rz(q4)·Ry(q5)·Rz(q6)."""
    y, x, mark = scratch[0], scratch[1], scratch[3]
    at = 8 + 3 * (2 * s + e)
    bent = math.sqrt(row0[2] * row0[2] + row1[2] * row1[2])
    y[at + 1], x[at + 1] = bent, row2[2]
    if bent > STRETCHED_WRIST:
        mark[2 * s + e] = 0.0
        y[at], x[at] = row1[2], row0[2]
        y[at + 2], x[at + 2] = row2[1], -row2[0]
    else:
        sign = 1.0 if row2[2] > 0.0 else -1.0
        mark[2 * s + e] = sign
        y[at], x[at] = sign * row1[0], sign * row0[0]
        y[at + 1] = 0.0
        y[at + 2], x[at + 2] = 0.0, 1.0


@compiled
def _prepare(  # kernel
    T: Array, left: Array, right: Array, geo: Array, near: Array, scratch: Array
) -> None:
    """Fills numerators and denominators of all angles of all branches, without arctangents."""
    y, x, mark = scratch[0], scratch[1], scratch[3]
    wx = T[0, 0] * right[0, 3] + T[0, 1] * right[1, 3] + T[0, 2] * right[2, 3] + T[0, 3]
    wy = T[1, 0] * right[0, 3] + T[1, 1] * right[1, 3] + T[1, 2] * right[2, 3] + T[1, 3]
    wz = T[2, 0] * right[0, 3] + T[2, 1] * right[1, 3] + T[2, 2] * right[2, 3] + T[2, 3]
    px = left[0, 0] * wx + left[0, 1] * wy + left[0, 2] * wz + left[0, 3]
    py = left[1, 0] * wx + left[1, 1] * wy + left[1, 2] * wz + left[1, 3]
    pz = left[2, 0] * wx + left[2, 1] * wy + left[2, 2] * wz + left[2, 3]
    a0, a1, a2 = _product(T, right, 0), _product(T, right, 1), _product(T, right, 2)
    g0, g1, g2 = (
        _blend(left, 0, a0, a1, a2),
        _blend(left, 1, a0, a1, a2),
        _blend(left, 2, a0, a1, a2),
    )
    side, upper, fore = geo[1], geo[2], geo[3]
    r2 = px * px + py * py
    ahead2 = r2 - side * side
    for s in range(2):
        ahead = math.sqrt(max(ahead2, 0.0)) * (1.0 - 2.0 * s)
        X = ahead - geo[0]
        d2 = X * X + pz * pz
        bend = (d2 - upper * upper - fore * fore) / (2.0 * upper * fore)
        mark[4 + s] = 0.0
        reaches = ahead2 >= -2.0 * GRAZING * abs(side) and abs(bend) <= 1.0 + GRAZING
        if not reaches or d2 == 0.0:
            continue
        mark[4 + s] = 1.0
        if r2 > ON_COLUMN * ON_COLUMN:
            y[s], x[s] = py * ahead - px * side, px * ahead + py * side
            c1, s1 = x[s] / r2, y[s] / r2
        else:
            s1, c1 = math.sin(near[0] + s * math.pi), math.cos(near[0] + s * math.pi)
            y[s], x[s] = s1, c1
        h0 = (c1 * g0[0] + s1 * g1[0], c1 * g0[1] + s1 * g1[1], c1 * g0[2] + s1 * g1[2])
        h1 = (c1 * g1[0] - s1 * g0[0], c1 * g1[1] - s1 * g0[1], c1 * g1[2] - s1 * g0[2])
        bend = min(max(bend, -1.0), 1.0)
        aside = math.sqrt(1.0 - bend * bend)
        y[2 + s], x[2 + s] = aside, bend
        k1 = upper + fore * bend
        scale = 1.0 / math.sqrt(d2 * (k1 * k1 + fore * fore * aside * aside))
        for e in range(2):
            sin_bend = aside * (1.0 - 2.0 * e)
            k2 = fore * sin_bend
            sin2, cos2 = (k1 * X - k2 * pz) * scale, (k1 * pz + k2 * X) * scale
            y[4 + 2 * s + e], x[4 + 2 * s + e] = sin2, cos2
            sin3, cos3 = sin2 * bend + cos2 * sin_bend, cos2 * bend - sin2 * sin_bend
            so, co = sin3 * geo[6] + cos3 * geo[7], cos3 * geo[6] - sin3 * geo[7]
            m0 = (co * h0[0] - so * g2[0], co * h0[1] - so * g2[1], co * h0[2] - so * g2[2])
            m2 = (so * h0[0] + co * g2[0], so * h0[1] + co * g2[1], so * h0[2] + co * g2[2])
            _wrist(s, e, scratch, m0, h1, m2)


@compiled
def _product(T: Array, right: Array, row: int) -> Row:
    u, v, w = T[row, 0], T[row, 1], T[row, 2]
    return (
        u * right[0, 0] + v * right[1, 0] + w * right[2, 0],
        u * right[0, 1] + v * right[1, 1] + w * right[2, 1],
        u * right[0, 2] + v * right[1, 2] + w * right[2, 2],
    )


@compiled
def _blend(left: Array, row: int, a0: Row, a1: Row, a2: Row) -> Row:
    u, v, w = left[row, 0], left[row, 1], left[row, 2]
    return (
        u * a0[0] + v * a1[0] + w * a2[0],
        u * a0[1] + v * a1[1] + w * a2[1],
        u * a0[2] + v * a1[2] + w * a2[2],
    )


@compiled
def branches_at(  # kernel
    T: Array, left: Array, right: Array, geo: Array, near: Array, out: Array, scratch: Array
) -> None:
    """out (8×6) = the branches for one target T (4×4); left, right as Anthropomorphic.ends()."""
    T, left, right, geo = borrowed(T), borrowed(left), borrowed(right), borrowed(geo)
    near, out, scratch = borrowed(near), borrowed(out), borrowed(scratch)
    _prepare(T, left, right, geo, near, scratch)
    arctan2(scratch[0], scratch[1], scratch[2])
    angle, mark = scratch[2], scratch[3]
    for s in range(2):
        if mark[4 + s] == 0.0:
            for b in range(4 * s, 4 * s + 4):
                for j in range(6):
                    out[b, j] = np.nan
            continue
        for e in range(2):
            c = 2 * s + e
            at = 8 + 3 * c
            q2 = wrapped(angle[4 + c] - geo[4])
            elbow = angle[2 + s] if e == 0 else -angle[2 + s]
            q3 = wrapped(geo[8] * (elbow - geo[5]))
            q4, q6 = angle[at], angle[at + 2]
            if mark[c] != 0.0:
                rest = wrapped(q4 - (near[3] + geo[9] + mark[c] * near[5]))
                q4 = near[3] + geo[9] + 0.5 * rest
                q6 = near[5] + 0.5 * mark[c] * rest
            for w in range(2):
                b = 2 * c + w
                flip = w * math.pi
                out[b, 0] = angle[s]
                out[b, 1] = q2
                out[b, 2] = q3
                out[b, 3] = wrapped(q4 + flip - geo[9])
                out[b, 4] = wrapped((1 - 2 * w) * angle[at + 1] - geo[10])
                out[b, 5] = wrapped(q6 + flip)


@compiled
def all_branches(
    targets: Array, left: Array, right: Array, geo: Array, near: Array, out: Array
) -> None:
    """out (m×8×6) for m targets (m×4×4)."""
    scratch = np.zeros(SCRATCH)
    for k in range(targets.shape[0]):
        branches_at(targets[k], left, right, geo, near, out[k], scratch)


@compiled
def turned_within(q: float, near: float, lower: float, upper: float) -> float:
    """q plus the whole turns that bring it nearest to ``near`` inside the limits, or NaN."""
    value = near + wrapped(q - near)
    if value > upper + GRAZING:
        value -= TURN * np.ceil((value - upper - GRAZING) / TURN)
    elif value < lower - GRAZING:
        value += TURN * np.ceil((lower - GRAZING - value) / TURN)
    if value > upper + GRAZING or value < lower - GRAZING:
        return np.nan
    return min(max(value, lower), upper)


@compiled
def limited_branches(
    targets: Array,
    left: Array,
    right: Array,
    geo: Array,
    near: Array,
    lower: Array,
    upper: Array,
    out: Array,
) -> None:
    """Like all_branches, but NaN for branches outside the limits; turns nearest to ``near``."""
    scratch = np.zeros(SCRATCH)
    for k in range(targets.shape[0]):
        branches_at(targets[k], left, right, geo, near, out[k], scratch)
        for b in range(BRANCHES):
            for j in range(6):
                out[k, b, j] = turned_within(out[k, b, j], near[j], lower[j], upper[j])
                if np.isnan(out[k, b, j]):
                    for i in range(6):
                        out[k, b, i] = np.nan
                    break


# ── all configurations for a pose ─────────────────────────────────────────────────────────────────


ON_LIMIT = 1e-9
"""A joint outside its limit by no more than this (rad or m) is set to the limit."""


def solve(
    chain: Chain,
    target: Array,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    near: ArrayLike | None = None,
) -> Array | Refused:
    """All configurations (k×dof) inside the limits that bring the tool to the target (4×4).

    Configurations that differ by whole turns are listed separately. ``near`` (zeros if not given)
    sets the joints that a singular pose leaves free, and the start of a search.
    """
    near = np.zeros(chain.dof) if near is None else np.asarray(near, dtype=np.float64)
    raw = unlimited(chain, target, frames=frames, near=near)
    if len(raw) == 0:
        return Refused(_out_of_reach(chain, target, frames))
    found = [turned for q in raw for turned in _turns(chain, q)]
    if not found:
        return Refused(_outside_limits(chain, raw))
    return np.array(found)


def nearest(solutions: Array, q: ArrayLike) -> Array:
    """The solution with the least motion from q; of two equal ones the one with larger angles."""
    moves = solutions - np.asarray(q)
    effort = np.round(np.einsum("ij,ij->i", moves, moves), 9)
    best = np.flatnonzero(effort == effort.min())
    return np.asarray(solutions[max(best, key=lambda i: tuple(np.round(solutions[i], 6)))])


def unlimited(chain: Chain, target: Array, *, frames: Frames, near: Array) -> Array:
    """All configurations without regard to limits, revolute joints within ±180°."""
    arm = closed_form(chain)
    if arm is not None:
        found = _branches(chain, arm, target[None], frames, near)[0]
        return distinct(found[np.isfinite(found).all(axis=1)])
    flange = frames.flange(target)
    robot = _eaik(chain)
    if robot is not None:
        return _by_eaik(chain, robot, flange)
    found = searched(chain, flange, near)
    return found if len(found) else _in_one_turn(chain, searched(chain, flange, near, limits=False))


def solve_all(
    chain: Chain,
    targets: Array,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    near: ArrayLike | None = None,
) -> Array:
    """(m, 4, 4) targets → (m, k, dof): the branches inside the limits, NaN for all others.

    If a joint's range allows several turns, the one nearest to ``near`` is returned.
    """
    near = np.zeros(chain.dof) if near is None else np.asarray(near, dtype=np.float64)
    targets = np.ascontiguousarray(targets, dtype=np.float64)
    arm = closed_form(chain)
    if arm is not None and arm.exact:
        left, right = arm.ends(frames)
        out = np.empty((len(targets), BRANCHES, 6))
        limited_branches(targets, left, right, arm.geometry, near, chain.lower, chain.upper, out)
        return out
    rows = [solve(chain, target, frames=frames, near=near) for target in targets]
    most = max((len(row) for row in rows if not isinstance(row, Refused)), default=1)
    out = np.full((len(targets), most, chain.dof), math.nan)
    for k, row in enumerate(rows):
        if not isinstance(row, Refused):
            out[k, : len(row)] = row
    return out


def _branches(
    chain: Chain, arm: Anthropomorphic, targets: Array, frames: Frames, near: Array
) -> Array:
    left, right = arm.ends(frames)
    out = np.empty((len(targets), BRANCHES, 6))
    all_branches(np.ascontiguousarray(targets), left, right, arm.geometry, near, out)
    if arm.exact:
        return out
    goals = np.repeat(frames.flange(targets), BRANCHES, axis=0)
    return refined(chain, goals, out.reshape(-1, 6)).reshape(out.shape)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────


def _turns(chain: Chain, q: Array) -> list[Array]:
    """The configuration in all combinations of whole turns within the limits, smallest first."""
    choices = [_values(chain, j, float(q[j])) for j in range(chain.dof)]
    return [np.array(values) for values in itertools.product(*choices)]


def _values(chain: Chain, j: int, value: float) -> list[float]:
    low, high = float(chain.lower[j]), float(chain.upper[j])
    if chain.slides[j] or not (math.isfinite(low) and math.isfinite(high)):
        return [value] if low - ON_LIMIT <= value <= high + ON_LIMIT else []
    first = math.ceil((low - ON_LIMIT - value) / TURN)
    last = math.floor((high + ON_LIMIT - value) / TURN)
    values = (min(max(value + k * TURN, low), high) for k in range(first, last + 1))
    return sorted(values, key=abs)


def excess(chain: Chain, q: Array) -> Array:
    """Distance of each joint outside its limits; 0 inside."""
    return np.maximum(0.0, np.maximum(chain.lower - q, q - chain.upper))


def outside(chain: Chain, j: int, value: float) -> str:
    """``A3 = 161.2° is outside -120.0°…158.0°``"""
    unit, sign = float(chain.units[j]), " mm" if chain.slides[j] else "°"
    low, high = chain.lower[j] / unit, chain.upper[j] / unit
    shown = digits_apart(value / unit, high if value / unit > high else low, digits=1)
    return f"{chain.names[j]} = {shown}{sign} is outside {low:.1f}{sign}…{high:.1f}{sign}"


# ── reasons ─────────────────────────────────────────────────────────────────────────────────────


def _outside_limits(chain: Chain, raw: Array) -> str:
    """Reason: the joints outside their limits, for the configuration closest to the limits."""
    over = np.array([excess(chain, q) for q in raw])
    best = int(np.argmin(over.max(axis=1)))
    named = (
        outside(chain, j, float(raw[best, j])) for j in range(chain.dof) if over[best, j] > ON_LIMIT
    )
    return "outside joint limits: " + ", ".join(named)


def _out_of_reach(chain: Chain, target: Array, frames: Frames) -> str:
    arm = closed_form(chain)
    if arm is None:
        return "out of reach: no configuration was found"
    left, right = arm.ends(frames)
    x, y, z = (left @ target @ right)[:3, 3]
    side = abs(arm.geometry[1])
    if math.hypot(x, y) < side:
        return f"out of reach: closer than {side / MM:.1f} mm to the axis of {chain.names[0]}"
    ahead = math.sqrt(x * x + y * y - side * side)
    low, high = arm.reach
    both = (math.hypot(side_of * ahead - arm.geometry[0], z) for side_of in (1, -1))
    distance = min(both, key=lambda d: max(low - d, d - high))
    return (
        f"out of reach: the wrist would be {distance / MM:.1f} mm from the axis of "
        f"{chain.names[1]}, the arm spans {low / MM:.1f}…{high / MM:.1f} mm"
    )


# ── arms with another closed form ───────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)
def _eaik(chain: Chain) -> Any | None:
    """eaik's model of the arm; None if it has no closed form, or eaik is not installed."""
    if chain.dof != 6 or chain.slides.any():
        return None
    try:
        from eaik.IK_HP import HPRobot
    except ImportError:
        return None
    axes = chain.axes_of(np.zeros((1, 6)))[0, 1:]
    points = np.vstack([np.zeros(3), axes[:, :3, 3], chain.flange(np.zeros(6))[:3, 3]])
    robot = HPRobot(axes[:, :3, 2], np.diff(points, axis=0))
    return robot if robot.hasKnownDecomposition() else None


def _by_eaik(chain: Chain, robot: Any, flange: Array) -> Array:
    posed = flange.copy()
    posed[:3, :3] = flange[:3, :3] @ chain.flange(np.zeros(6))[:3, :3].T
    found = np.array(robot.IK(posed).Q).reshape(-1, 6)
    found = found[np.isfinite(found).all(axis=1)]
    close = refined(chain, np.repeat(flange[None], len(found), axis=0), found)
    close = close[~np.isnan(close[:, 0])]
    return distinct(_in_one_turn(chain, close))


def _in_one_turn(chain: Chain, Q: Array) -> Array:
    """Reduces revolute joints to -180°…180°."""
    return np.where(chain.slides > 0.0, Q, Q - TURN * np.ceil(Q / TURN - 0.5))


# ── search: damped least squares, for arms without a closed form ──────────────────────────────────


CONVERGED = 1e-9
"""Remaining error (norm over m and rad) at which a search ends."""
ACCEPTED = 1e-7
"""Largest remaining error of an accepted result."""
STARTS = 48
ITERATIONS = 120
LONGEST_STEP = 0.5
SAME = 1e-4
"""Configurations closer than this (rad or m per joint) count as the same."""


@compiled
def search(  # kernel
    targets: Array,
    Q: Array,
    rest: Array,
    slides: Array,
    tip: Array,
    lower: Array,
    upper: Array,
    iterations: int,
    error: Array,
) -> None:
    """Moves every start Q[k] towards targets[k] inside the limits; error[k] is the remaining error.

    Levenberg-Marquardt steps with Sugihara's damping: half the squared error. Far from the target
    the damping keeps the steps short where the arm is singular; near it the damping vanishes, and
    the search converges as fast as Newton's.
    """
    n = Q.shape[1]
    frames = np.empty((1, n + 1, 4, 4))
    T = np.empty((1, 4, 4))
    point = np.empty((1, 3))
    J = np.empty((1, 6, n))
    A = np.empty((6, 6))
    e = np.empty(6)
    for k in range(Q.shape[0]):
        goal = targets[k]
        for step in range(iterations + 1):
            flange_frames(Q[k : k + 1], rest, slides, tip, T)
            difference(T[0], goal, e)
            rest2 = 0.0
            for i in range(6):
                rest2 += e[i] * e[i]
            error[k] = math.sqrt(rest2)
            if error[k] < CONVERGED or step == iterations:
                break
            joint_frames(Q[k : k + 1], rest, slides, frames)
            point[0] = T[0, :3, 3]
            jacobians(frames, slides, point, J)
            for r in range(6):
                for c in range(6):
                    total = 0.5 * rest2 + 1e-12 if r == c else 0.0
                    for j in range(n):
                        total += J[0, r, j] * J[0, c, j]
                    A[r, c] = total
            cholesky_solve(A, e)
            largest = 0.0
            for j in range(n):
                move = 0.0
                for r in range(6):
                    move += J[0, r, j] * e[r]
                largest = max(largest, abs(move))
            shrink = min(1.0, LONGEST_STEP / largest) if largest > 0.0 else 1.0
            for j in range(n):
                move = 0.0
                for r in range(6):
                    move += J[0, r, j] * e[r]
                Q[k, j] = min(max(Q[k, j] + shrink * move, lower[j]), upper[j])


@compiled
def difference(T: Array, goal: Array, e: Array) -> None:
    """Difference of T and goal: translation, then rotation as axis times angle."""
    x = y = z = 0.0
    trace = 0.0
    for c in range(3):
        e[c] = goal[c, 3] - T[c, 3]
        x += T[1, c] * goal[2, c] - T[2, c] * goal[1, c]
        y += T[2, c] * goal[0, c] - T[0, c] * goal[2, c]
        z += T[0, c] * goal[1, c] - T[1, c] * goal[0, c]
        trace += T[0, c] * goal[0, c] + T[1, c] * goal[1, c] + T[2, c] * goal[2, c]
    sin2 = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(sin2, trace - 1.0)
    scale = angle / sin2 if sin2 > 1e-9 else 0.5
    e[3], e[4], e[5] = x * scale, y * scale, z * scale


@compiled
def cholesky_solve(A: Array, b: Array) -> None:
    """b ← A⁻¹·b for a symmetric positive definite A, which is overwritten."""
    n = b.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i == j:
                A[i, i] = math.sqrt(max(total, 1e-300))
            else:
                A[i, j] = total / A[j, j]
    for i in range(n):
        for k in range(i):
            b[i] -= A[i, k] * b[k]
        b[i] /= A[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= A[k, i] * b[k]
        b[i] /= A[i, i]


def refined(chain: Chain, targets: Array, starts: Array, *, iterations: int = 8) -> Array:
    """Moves the starts onto their targets (m×4×4), ignoring limits; NaN where that fails."""
    Q = np.array(starts, dtype=np.float64)
    error = np.empty(len(Q))
    free = np.full(chain.dof, math.inf)
    search(
        np.ascontiguousarray(targets),
        Q,
        chain.rest,
        chain.slides,
        chain.tip,
        -free,
        free,
        iterations,
        error,
    )
    Q[~(error < ACCEPTED)] = math.nan
    return Q


def searched(chain: Chain, target: Array, near: Array, *, limits: bool = True) -> Array:
    """The distinct solutions (k×dof) found from ``near`` and from evenly spread starts."""
    Q = np.vstack([np.clip(near, chain.lower, chain.upper), spread(chain, STARTS - 1)])
    targets = np.repeat(target[None], len(Q), axis=0)
    error = np.empty(len(Q))
    search(
        targets,
        Q,
        chain.rest,
        chain.slides,
        chain.tip,
        chain.lower if limits else np.full(chain.dof, -math.inf),
        chain.upper if limits else np.full(chain.dof, math.inf),
        ITERATIONS,
        error,
    )
    return distinct(Q[error < ACCEPTED])


def distinct(Q: Array) -> Array:
    """Removes duplicates; the order is kept."""
    kept: list[Array] = []
    for q in Q:
        if all(np.abs(q - other).max() > SAME for other in kept):
            kept.append(q)
    return np.array(kept).reshape(-1, Q.shape[1])


def spread(chain: Chain, count: int) -> Array:
    """Halton points between the limits; one turn for a joint without limits."""
    low, high = chain.sampling_range
    primes = [p for p in range(2, 100) if all(p % d for d in range(2, p))]
    share = np.array([[_halton(i + 1, p) for p in primes[: chain.dof]] for i in range(count)])
    return np.asarray(low + share * (high - low))


def _halton(index: int, base: int) -> float:
    share, weight = 0.0, 1.0
    while index:
        weight /= base
        index, digit = divmod(index, base)
        share += weight * digit
    return share
