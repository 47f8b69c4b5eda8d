"""Inverse kinematics: all configurations for a pose of the tool, or the reason why there are none.

Anthropomorphic arms with a spherical wrist are solved by the kernels of `closed_form`, other
six-axis arms with a closed form by ``eaik`` if it is installed, all others by search (`refine`).
"""

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import Refused
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.closed_form import (
    BRANCHES,
    TURN,
    Anthropomorphic,
    all_branches,
    closed_form,
    limited_branches,
)
from understudy.space.kinematics.refine import distinct, refined, searched
from understudy.space.transform import Array
from understudy.units import MM, digits_apart

ON_LIMIT = 1e-9
"""A joint outside its limit by no more than this (rad or m) is set to the limit."""


# ── solving ─────────────────────────────────────────────────────────────────────────────────────


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
