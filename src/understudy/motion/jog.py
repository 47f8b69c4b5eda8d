"""Jogging: each axis moves independently towards a velocity and stops at the end of its range.

A jog is a `Plan`: its pieces are polynomials of time, with s in seconds. A change of speed, another
axis and a stop are new jogs from the state of the running one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.path import Floats, Limits, path_of
from understudy.motion.plan import Motion, Plan, TimeLaw
from understudy.motion.profile import Profile
from understudy.motion.smooth import Bounds, Phase, State, fastest_phases

LONG = 1e6
"""Longest duration of a jog (s)."""
ON_THE_END = 1e-10
"""Largest error (units) of a stop at the end of the range. If the stop alone leads there, ruckig
may return a motion that ends up to 1e-8 off on either side; the stop is used instead."""
SLOWEST = 1e-9
"""Velocities below this (units per second) count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Allowed range of each axis; infinite for no limit."""

    lower: Floats
    upper: Floats

    @staticmethod
    def of(lower: ArrayLike, upper: ArrayLike) -> "Range":
        return Range(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64))


def jog(
    state: Motion,
    velocity: ArrayLike,
    limits: Limits,
    *,
    at: float,
    within: Range | None = None,
    profile: Profile = "trapezoid",
) -> Plan:
    """Plan from a state to a velocity per axis, clamped to the limits; 0 is a stop."""
    axes = len(state.position)
    wanted = np.broadcast_to(np.asarray(velocity, dtype=np.float64), axes)
    wanted = np.clip(wanted, -limits.velocity, limits.velocity)
    wanted[np.abs(wanted) < SLOWEST] = 0.0
    space = within or Range.of(np.full(axes, -np.inf), np.full(axes, np.inf))
    phases = []
    for i in range(axes):
        end = float(space.upper[i] if wanted[i] > 0.0 else space.lower[i])
        bounds = Bounds(abs(wanted[i]), float(limits.acceleration[i]), float(limits.jerk[i]))
        moves = _ramped if profile == "jerk_limited" else _stepped
        begin = State(*(float(part[i]) for part in state))
        phases.append(moves(begin, float(wanted[i]), end, bounds))
    return polynomial_plan(phases, at=at)


def stop_jog(state: Motion, limits: Limits, *, at: float, profile: Profile = "trapezoid") -> Plan:
    """Plan that stops every axis as fast as it can."""
    return jog(state, 0.0, limits, at=at, profile=profile)


def _stepped(state: State, wanted: float, end: float, bounds: Bounds) -> list[Phase]:
    """One axis, trapezoidal: change to the wanted velocity, cruise, brake at the range's end."""
    q, v, a = state.s, state.v, bounds.a
    if wanted == 0.0:
        return [_change(q, v, 0.0, a)]
    sign = math.copysign(1.0, wanted)
    phases = []
    if v * sign < 0.0:
        phases.append(_change(q, v, 0.0, a))
        q, v = phases[-1].end, 0.0
    top, v, room = abs(wanted), abs(v), max((end - q) * sign, 0.0)
    # The highest speed from which the axis can still stop at the end of the range.
    peak = min(top, math.sqrt(0.5 * v * v + a * room)) if v <= top else top
    spent = (abs(peak * peak - v * v) + peak * peak) / (2.0 * a)
    if v > peak and spent > room:
        return [*phases, _change(q, sign * v, 0.0, a)]
    phases.append(_change(q, sign * v, sign * peak, a))
    cruise = min((room - spent) / peak, LONG) if peak > 0.0 else 0.0
    phases.append(Phase(max(cruise, 0.0), phases[-1].end, sign * peak, 0.0, 0.0))
    phases.append(_change(phases[-1].end, sign * peak, 0.0, a))
    return phases


def _change(q: float, v0: float, v1: float, a: float) -> Phase:
    return Phase(abs(v1 - v0) / a, q, v0, math.copysign(a, v1 - v0), 0.0)


def _ramped(state: State, wanted: float, end: float, bounds: Bounds) -> list[Phase]:
    """One axis, jerk-limited: change to the wanted velocity, cruise, brake at the range's end."""
    change = fastest_phases(state, bounds, speed=wanted) or [Phase(0.0, *state, 0.0)]
    if wanted == 0.0:
        return change
    brake = fastest_phases(State(0.0, wanted, 0.0), bounds, speed=0.0) or []
    room = end - change[-1].end - (brake[-1].end if brake else 0.0)
    if room * wanted < 0.0:
        # Too close for that speed: ruckig finds a motion to the end, or the axis just stops.
        stop = _ramped(state, 0.0, end, bounds)
        if abs(stop[-1].end - end) <= ON_THE_END:
            return stop
        return fastest_phases(state, bounds, speed=0.0, position=end) or stop
    cruise = Phase(min(room / wanted, LONG), change[-1].end, wanted, 0.0, 0.0)
    return [*change, cruise, *(phase._replace(s=phase.s + cruise.end) for phase in brake)]


# ── polynomials of time as a plan ───────────────────────────────────────────────────────────────


def polynomial_plan(phases: list[list[Phase]], *, at: float) -> Plan:
    """One plan from the phases of each axis; a new piece begins where an axis changes its phase."""
    edges = [
        np.concatenate([[0.0], np.cumsum([phase.seconds for phase in axis])]) for axis in phases
    ]
    cuts = np.unique(np.concatenate(edges))
    starts, seconds = cuts[:-1], np.diff(cuts)
    shape = np.zeros((len(starts), 4, len(phases)))
    target = np.array([axis[-1].end for axis in phases])
    for i, (axis, edge) in enumerate(zip(phases, edges, strict=True)):
        for k, begin in enumerate(starts):
            shape[k, :, i] = _expanded(axis, edge, float(begin))
    count = len(starts)
    one, none = np.ones(count), np.zeros(count)
    path = path_of(
        shape=shape,
        end=np.vstack([shape[1:, 0], target[None]])[:count],
        length=seconds,
        acceleration=one,
        jerk=one,
        fastest=one,
        feed=one,
    )
    law = TimeLaw(at + cuts, np.arange(count), none, one, none, none)
    return Plan(path, law, target)


def _expanded(axis: list[Phase], edge: Floats, t: float) -> tuple[float, float, float, float]:
    """Polynomial of one axis from a time on; at rest after its phases."""
    k = int(np.searchsorted(edge, t, side="right")) - 1
    if k >= len(axis):
        return axis[-1].end, 0.0, 0.0, 0.0
    phase, x = axis[k], t - edge[k]
    v = phase.v + x * (phase.a + 0.5 * x * phase.j)
    return phase.moved(x), v, 0.5 * (phase.a + x * phase.j), phase.j / 6.0
