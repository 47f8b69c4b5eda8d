"""Upper bound of how far a shape of the arm moves while the joints move by given amounts.

The speed of a point is at most the sum of each joint's speed times the point's distance from that
joint's axis. Only the joints after k change the distance from axis k. So, from the tip inwards,
with V the travel of each joint and r the distances at the beginning of the motion:

    ρₖ = rₖ + Σ_{m>k} Vₘ·ρₘ        (never more than the arm's length allows)
    moved ≤ Σ Vₖ·ρₖ
"""

import math

import numpy as np

from understudy.space.collision.solids import BODY, FAR, Solids
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain
from understudy.space.transform import Array


def furthest(chain: Chain, solids: Solids, moving: int) -> Array:
    """(moving, dof): each shape's largest distance from each axis in any configuration."""
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
            out[i, k] = 1.0
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
    moved = 0.0
    for k in range(high - 1, low - 1, -1):
        rho = 1.0 if slides[k] != 0.0 else min(radii[i, k] + moved, caps[i, k])
        moved += travel[k] * rho
    return moved
