"""Joint configurations along a Cartesian path, and the reason where the arm cannot follow it.

The targets must be close together: the path between two of them is not checked. In a singular pose
the arm cannot move in some direction; `distances` says how far away it is.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import Refused
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.ik import (
    BRANCHES,
    GRAZING,
    SCRATCH,
    Anthropomorphic,
    branches_at,
    closed_form,
    excess,
    nearest,
    outside,
    refined,
    solve,
    unlimited,
    wrapped,
)
from understudy.space.transform import Array

# ── singular poses ────────────────────────────────────────────────────────────────────────────────


def kinds(chain: Chain) -> tuple[str, ...]:
    """Names of the kinds of singular poses of this arm: one per column of ``distances``."""
    return ("arm",) if closed_form(chain) is None else ("shoulder", "elbow", "wrist")


def distances(chain: Chain, Q: Array) -> Array:
    """(m, dof) → one column per kind: 0 in the singular pose, 1 at the greatest distance from it.

    shoulder: distance of the wrist centre from axis 1 in the arm's plane, as a share of the reach;
    elbow: sine of the angle between upper arm and forearm; wrist: sine of joint 5.
    Arms without a closed form: smallest singular value of the Jacobian over the largest.
    """
    arm = closed_form(chain)
    if arm is None:
        values = np.linalg.svd(chain.jacobians(Q), compute_uv=False)
        return np.asarray(values[:, -1:] / values[:, :1])
    return np.abs(_signed(arm.geometry, Q))


def branch(chain: Chain, q: ArrayLike) -> tuple[bool, ...]:
    """Side of each singular pose a configuration is on; empty for arms without a closed form."""
    arm = closed_form(chain)
    if arm is None:
        return ()
    signed = _signed(arm.geometry, np.asarray(q, dtype=np.float64)[None])[0]
    return tuple(bool(side < 0.0) for side in signed)


def _signed(geometry: Array, Q: Array) -> Array:
    """Shoulder, elbow, wrist: negative in the branches numbered 1."""
    reach1, _, upper, fore, pitch2, bend, _, _, sign3, _, offset5 = geometry
    pitch = Q[:, 1] + pitch2
    elbow = sign3 * Q[:, 2] + bend
    ahead = reach1 + upper * np.sin(pitch) + fore * np.sin(pitch + elbow)
    return np.column_stack([ahead / (upper + fore), np.sin(elbow), np.sin(Q[:, 4] + offset5)])


JUMP = 0.5
"""A joint that moves more than this (rad) between two targets jumps."""
CLOSE = 0.02
"""Singular poses nearer than this are reported: about one degree of joint 5."""


class FailureKind(StrEnum):
    """Why an arm cannot follow a path."""

    UNREACHABLE = "unreachable"
    LIMIT = "limit"
    FLIP = "flip"
    SINGULAR = "singular"


@dataclass(frozen=True, slots=True)
class FollowFailure:
    """Index of the first target that was not reached, and the reason."""

    kind: FailureKind
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class NearSingularity:
    """Smallest distance of a path from a singular pose of one kind; see `distances`."""

    kind: str
    index: int
    distance: float


@dataclass(frozen=True, eq=False)
class FollowResult:
    """Configurations (k×dof) up to the first failure; without a failure all targets are reached."""

    q: Array
    failure: FollowFailure | None
    close: tuple[NearSingularity, ...]


def follow(
    chain: Chain,
    start: ArrayLike,
    targets: Array,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    jump: float = JUMP,
) -> FollowResult:
    """Configurations for targets (m×4×4), each the nearest to the one before it."""
    start = np.asarray(start, dtype=np.float64)
    targets = np.ascontiguousarray(targets, dtype=np.float64)
    arm = closed_form(chain)
    if arm is None:
        q = _step_by_step(chain, start, frames.flange(targets), jump)
    else:
        q = _in_closed_form(chain, arm, start, targets, frames, jump)
    failure = None
    if len(q) < len(targets):
        before = q[-1] if len(q) else start
        failure = _failure(chain, before, targets, index=len(q), frames=frames, jump=jump)
    return FollowResult(q, failure, _close(chain, q))


def _in_closed_form(
    chain: Chain,
    arm: Anthropomorphic,
    start: Array,
    targets: Array,
    frames: Frames,
    jump: float,
) -> Array:
    left, right = arm.ends(frames)
    q = np.empty((len(targets), 6))
    reached = follow_branches(
        targets, start, left, right, arm.geometry, chain.lower, chain.upper, jump, q
    )
    if arm.exact:
        return q[:reached]
    return refined(chain, frames.flange(targets[:reached]), q[:reached])


@compiled
def follow_branches(  # kernel
    targets: Array,
    start: Array,
    left: Array,
    right: Array,
    geo: Array,
    lower: Array,
    upper: Array,
    jump: float,
    out: Array,
) -> int:
    """Fills out (m×6) with the branch nearest to the previous one; returns how many were reached.

    A branch is valid if it is inside the limits and no joint moves more than ``jump``.
    """
    scratch = np.zeros(SCRATCH)
    found = np.empty((BRANCHES, 6))
    before = start
    for k in range(targets.shape[0]):
        branches_at(targets[k], left, right, geo, before, found, scratch)
        if not nearest_branch(found, before, lower, upper, jump, out[k]):
            return k
        before = out[k]
    return len(targets)


@compiled
def nearest_branch(
    found: Array, before: Array, lower: Array, upper: Array, jump: float, out: Array
) -> bool:
    """Sets out (6) to the branch (8×6) nearest to ``before``; whether there is one."""
    best, least = -1, np.inf
    for b in range(BRANCHES):
        motion = 0.0
        for j in range(6):
            move = wrapped(found[b, j] - before[j])
            value = before[j] + move
            inside = lower[j] - GRAZING <= value <= upper[j] + GRAZING
            if not inside or not abs(move) <= jump:
                motion = np.inf
                break
            motion += move * move
            found[b, j] = min(max(value, lower[j]), upper[j])
        if motion < least:
            best, least = b, motion
    for j in range(6 if best >= 0 else 0):
        out[j] = found[best, j]
    return best >= 0


def _step_by_step(chain: Chain, start: Array, flanges: Array, jump: float) -> Array:
    path: list[Array] = []
    before = start
    for flange in flanges:
        q = refined(chain, flange[None], before[None], iterations=50)[0]
        if not np.abs(q - before).max() <= jump or excess(chain, q).max() > 0.0:
            break
        path.append(q)
        before = q
    return np.array(path).reshape(-1, chain.dof)


# ── reasons ─────────────────────────────────────────────────────────────────────────────────────


def _failure(
    chain: Chain, before: Array, targets: Array, *, index: int, frames: Frames, jump: float
) -> FollowFailure:
    """Classifies the first target that was not reached: unreachable, joint limit or jump."""
    target = targets[index]
    raw = unlimited(chain, target, frames=frames, near=before)
    if len(raw) == 0:
        refused = solve(chain, target, frames=frames, near=before)
        reason = refused.reason if isinstance(refused, Refused) else "out of reach"
        return FollowFailure(FailureKind.UNREACHABLE, index, reason)
    moves = raw - before
    moves = np.where(chain.slides > 0, moves, moves - 2 * math.pi * np.round(moves / 2 / math.pi))
    q = before + nearest(moves, np.zeros(chain.dof))
    if np.abs(q - before).max() <= jump:
        j = int(np.argmax(excess(chain, q)))
        return FollowFailure(FailureKind.LIMIT, index, outside(chain, j, float(q[j])))
    return _jump(chain, before, q, index)


def _jump(chain: Chain, before: Array, q: Array, index: int) -> FollowFailure:
    j = int(np.argmax(np.abs(q - before)))
    sign = " mm" if chain.slides[j] else "°"
    what = f"{chain.names[j]} would jump by {abs(q[j] - before[j]) / chain.units[j]:.1f}{sign}"
    share = distances(chain, np.array([before, q])).min(axis=0)
    sides = zip(kinds(chain), branch(chain, before), branch(chain, q), strict=False)
    flips = [kind for kind, one, other in sides if one != other]
    if share.min() < CLOSE or not flips:
        kind = kinds(chain)[int(np.argmin(share))]
        return FollowFailure(
            FailureKind.SINGULAR, index, f"close to the {kind} singularity: {what}"
        )
    return FollowFailure(FailureKind.FLIP, index, f"{' and '.join(flips)} flip: {what}")


def _close(chain: Chain, q: Array) -> tuple[NearSingularity, ...]:
    if len(q) == 0:
        return ()
    share = distances(chain, q)
    at = share.argmin(axis=0)
    return tuple(
        NearSingularity(kind, int(at[c]), float(share[at[c], c]))
        for c, kind in enumerate(kinds(chain))
        if share[at[c], c] < CLOSE
    )
