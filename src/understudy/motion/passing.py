"""When a plan comes by a place of its path."""

import numpy as np

from understudy.motion.plan import Plan

HALVINGS = 60
SHORT = 1e-9
"""The share of a piece that rounding may leave out at its end."""


def passes(plan: Plan, piece: int, s: float) -> float | None:
    """The moment at which it goes through the place at the distance s along a piece.

    To stand there first does not count. None: it comes to rest before, as after a hold.
    """
    law = plan.law
    first, beyond = np.searchsorted(law.piece, [piece, piece + 1])
    for k in range(int(first), int(beyond)):
        if (at := _on_segment(plan, k, s)) is not None:
            return at
    if beyond < len(law):
        return float(law.begins[beyond])
    at_end = first < beyond and s >= plan.path.length[piece] * (1.0 - SHORT)
    return plan.ends if at_end and _has_run_out(plan, piece) else None


def _on_segment(plan: Plan, k: int, s: float) -> float | None:
    law = plan.law
    begins, lasts = float(law.begins[k]), float(law.begins[k + 1] - law.begins[k])
    if law.v[k] == law.a[k] == law.j[k] == 0.0 and not plan.path.dwell[law.piece[k]]:
        return None
    if s <= law.s[k]:
        return begins
    if _run(plan, k, lasts) < s:
        return None
    low, high = 0.0, lasts
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _run(plan, k, middle) < s else (low, middle)
    return begins + high


def _run(plan: Plan, k: int, x: float) -> float:
    """How far along its piece a segment is after some of its time."""
    law = plan.law
    if plan.path.dwell[law.piece[k]] > 0.0:
        return float(law.s[k])
    return float(law.s[k] + x * (law.v[k] + x * (0.5 * law.a[k] + x * law.j[k] / 6.0)))


def _has_run_out(plan: Plan, piece: int) -> bool:
    """The plan rests at the very end of this piece."""
    return bool(np.array_equal(plan.target, plan.path.end[piece]))
