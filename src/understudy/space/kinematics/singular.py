"""Distances of an arm from its singular poses, in which it cannot move in some direction."""

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.kinematics.chain import Chain
from understudy.space.kinematics.ik import closed_form
from understudy.space.transform import Array


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
