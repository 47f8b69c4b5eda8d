"""Jogging: every axis by itself towards a velocity, within its acceleration, stopping at its limits.

A jog is a plan like any other: its pieces are polynomials of time, run at one second per second.
Change of speed, a second axis, stop: a new jog from the state of the running one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from ruckig import ControlInterface, InputParameter, Result, Ruckig, Trajectory

from understudy.motion.law import Law
from understudy.motion.path import AXES, Floats, Limits, Path
from understudy.motion.plan import Motion, Plan

Phase = tuple[float, float, float, float, float]
"""Seconds; position, velocity, acceleration and jerk at its beginning."""

LONG = 1e6
"""Seconds that a jog without a limit in its way goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Between which positions each axis may be; infinite where it may go on."""

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
    jerk_limited: bool = False,
) -> Plan:
    """From a state towards a velocity per axis, clamped to what the axes can do; 0 is a stop."""
    axes = len(state.position)
    wanted = np.broadcast_to(np.asarray(velocity, dtype=np.float64), axes)
    wanted = np.clip(wanted, -limits.velocity, limits.velocity)
    space = within or Range.of(np.full(axes, -np.inf), np.full(axes, np.inf))
    phases = []
    for i in range(axes):
        end = space.upper[i] if wanted[i] > 0.0 else space.lower[i]
        if jerk_limited:
            phases.append(_ramped(_row(state, i), wanted[i], end, limits, i))
        else:
            phases.append(_stepped(_row(state, i), wanted[i], end, float(limits.acceleration[i])))
    return polynomials(phases, at=at)


def stop_jog(state: Motion, limits: Limits, *, at: float, jerk_limited: bool = False) -> Plan:
    """Every axis to rest as fast as it can."""
    return jog(state, 0.0, limits, at=at, jerk_limited=jerk_limited)


def _row(state: Motion, axis: int) -> tuple[float, float, float]:
    return (
        float(state.position[axis]),
        float(state.velocity[axis]),
        float(state.acceleration[axis]),
    )


def _stepped(state: tuple[float, float, float], wanted: float, end: float, a: float) -> list[Phase]:
    """One axis with steps of acceleration: to the wanted velocity, cruise, brake onto the end."""
    q, v, _ = state
    if wanted == 0.0:
        return [_change(q, v, 0.0, a)]
    sign = np.sign(wanted)
    phases = []
    if v * sign < 0.0:
        phases.append(_change(q, v, 0.0, a))
        q, v = _after(phases[-1]), 0.0
    top, v, way = abs(wanted), abs(v), max((end - q) * sign, 0.0)
    # The highest speed from which the end can still be reached at rest.
    peak = min(top, np.sqrt(0.5 * v * v + a * way)) if v <= top else top
    spent = (abs(peak * peak - v * v) + peak * peak) / (2.0 * a)
    if v > top and spent > way or peak < v <= top:
        return [*phases, _change(q, sign * v, 0.0, a)]
    phases.append(_change(q, sign * v, sign * peak, a))
    cruise = min((way - spent) / peak, LONG) if peak > 0.0 else 0.0
    phases.append((max(cruise, 0.0), _after(phases[-1]), sign * peak, 0.0, 0.0))
    phases.append(_change(_after(phases[-1]), sign * peak, 0.0, a))
    return phases


def _change(q: float, v0: float, v1: float, a: float) -> Phase:
    return abs(v1 - v0) / a, q, v0, float(np.sign(v1 - v0)) * a, 0.0


def _after(phase: Phase) -> float:
    x, q, v, a, j = phase
    return q + x * (v + x * (0.5 * a + x * j / 6.0))


def _ramped(
    state: tuple[float, float, float], wanted: float, end: float, limits: Limits, axis: int
) -> list[Phase]:
    """One axis with ramps of acceleration, by ruckig."""
    task, found = InputParameter(1), Trajectory(1)
    q, v, a = state
    task.current_position, task.current_velocity, task.current_acceleration = [q], [v], [a]
    task.max_acceleration = [max(float(limits.acceleration[axis]), abs(a))]
    task.max_jerk = [float(limits.jerk[axis])]
    task.max_velocity = [max(abs(wanted), 1e-12)]
    if wanted == 0.0 or not np.isfinite(end):
        task.control_interface = ControlInterface.Velocity
        task.target_velocity = [wanted]
    else:
        task.target_position = [float(end)]
    if Ruckig(1).calculate(task, found) not in (Result.Working, Result.Finished):
        raise RuntimeError(f"no jog from {state} to {wanted} within {limits}")
    profile = found.profiles[0][0]
    phases = [
        (float(row[0]), *(float(value) for value in row[1:]))
        for part in (profile.brake, profile)
        for row in zip(part.t, part.p, part.v, part.a, part.j, strict=False)
        if row[0] > 0.0
    ] or [(0.0, q, v, a, 0.0)]
    if task.control_interface == ControlInterface.Velocity and wanted != 0.0:
        phases.append((LONG, _after(phases[-1]), wanted, 0.0, 0.0))
    return phases


# ── polynomials of time as a plan ───────────────────────────────────────────────────────────────


def polynomials(phases: list[list[Phase]], *, at: float) -> Plan:
    """Axes with phases of their own, as one plan: cut wherever any axis changes its phase."""
    edges = [np.concatenate([[0.0], np.cumsum([p[0] for p in axis])]) for axis in phases]
    cuts = np.unique(np.concatenate(edges))
    starts, seconds = cuts[:-1], np.diff(cuts)
    shape = np.zeros((len(starts), 4, len(phases)))
    target = np.array([_after(axis[-1]) for axis in phases])
    for i, (axis, edge) in enumerate(zip(phases, edges, strict=True)):
        for k, begin in enumerate(starts):
            shape[k, :, i] = _expanded(axis, edge, float(begin))
    count = len(starts)
    one, none = np.ones(count), np.zeros(count)
    path = Path(
        shape=shape,
        end=np.vstack([shape[1:, 0], target[None]])[:count],
        length=seconds,
        acceleration=one,
        jerk=one,
        fastest=one,
        feed=one,
        rapid=np.zeros(count, dtype=np.bool_),
        junction=none,
        dwell=none,
        measure=np.full(count, AXES, dtype=np.int8),
        block=np.zeros(count, dtype=np.int64),
        line=np.zeros(count, dtype=np.int64),
    )
    law = Law(at + cuts, np.arange(count), none, one, none, none)
    return Plan(path, law, target)


def _expanded(axis: list[Phase], edge: Floats, t: float) -> tuple[float, float, float, float]:
    """The polynomial of one axis from a time on; at rest when its phases are over."""
    k = int(np.searchsorted(edge, t, side="right")) - 1
    if k >= len(axis):
        return _after(axis[-1]), 0.0, 0.0, 0.0
    _, q, v, a, j = axis[k]
    x = t - edge[k]
    moved = q + x * (v + x * (0.5 * a + x * j / 6.0))
    return moved, v + x * (a + 0.5 * x * j), 0.5 * (a + x * j), j / 6.0
