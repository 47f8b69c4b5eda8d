"""Limits of the joints: do they suffice for the programmed feed, and are they kept in a stop?

Where the joints cannot follow, the planner slows down, so nothing breaks; but the weld, the glue
bead or the cut is not the one that the feed was programmed for. Rapid moves ask for no speed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.motion.cartesian import greatest_bends
from understudy.motion.path import TOOL, Floats, Ints, Path
from understudy.motion.plan import Motion
from understudy.offline.validate.clearance import Contacts, Stretch
from understudy.offline.validate.report import Finding, Kind
from understudy.offline.validate.subject import Arm, Machine
from understudy.space.collision.sweep import Verdict, greatest_slopes
from understudy.space.kinematics.singular import distances, kinds
from understudy.units import digits_apart

NEAR = 0.1
"""Distance from a singular pose (6° of joint 5) below which it explains a high joint speed."""
INSIDE = 1e-3
"""Distance from a singular pose below which a line begins or ends in it: 0.06° of joint 5, what the
rounding of a pose in a program can take it away from the singular pose."""
NEAR_RATIO = 0.2
"""Factor on the thresholds for arms without a known structure, whose measure is small
everywhere."""
ROUNDING = 1.0 + 1e-6


class FeedFindings(NamedTuple):
    """Lines whose feed the joints cannot follow: violations; and warnings, where a line begins or
    ends in a singular pose and the controller slows down next to it, and for every line of a
    machine, whose firmware limits the feed to what its axes can do."""

    violations: list[Finding]
    warnings: list[Finding]


def feed_findings(stretch: Stretch, arm: Arm | Machine) -> FeedFindings:
    """At most one violation and one warning per line, at its worst place."""
    findings = FeedFindings([], [])
    path = stretch.path
    asked = ~path.rapid & np.isfinite(path.feed) & (path.dwell == 0.0)
    if not asked.any():
        return findings
    slope = greatest_slopes(path.shape, path.length)
    speed = np.where(asked, path.feed, 0.0)[:, None] * slope / arm.limits.velocity
    turn = np.zeros_like(speed)
    if path.shape.shape[1] == 4:
        bend = greatest_bends(path.shape, path.length[:, None])
        along = asked & (path.measure == TOOL)
        turn = np.where(along, path.feed, 0.0)[:, None] ** 2 * bend / arm.limits.acceleration
    over = np.flatnonzero((speed.max(axis=1) > ROUNDING) | (turn.max(axis=1) > ROUNDING))
    need = _Need(stretch, path, speed, turn, arm)
    for line in np.unique(path.line[over]).tolist():
        first, last = np.searchsorted(path.line, [line, line + 1])
        pieces = np.arange(first, last)
        near = _nearness(path, pieces, arm)
        allowed = near.at_ends | arm.limits_feed
        if found := _worst(need, pieces, near, ~allowed):
            findings.violations.append(_finding(need, found, line))
        if found := _worst(need, pieces, near, allowed):
            findings.warnings.append(_finding(need, found, line, slowed=True))
    return findings


@dataclass(frozen=True, slots=True, eq=False)
class _Need:
    """Needed speed and acceleration as shares of the limits, per piece and joint."""

    stretch: Stretch
    path: Path
    speed: Floats
    turn: Floats
    arm: Arm | Machine


@dataclass(frozen=True, slots=True)
class _Excess:
    """The worst place of a line: piece, joint, share of its limit, and the singular pose that
    causes it."""

    kind: Kind
    piece: int
    joint: int
    share: float
    singularity: str = ""


def _worst(need: _Need, pieces: Ints, near: "_Near", counted: NDArray[np.bool_]) -> _Excess | None:
    """The worst excess on the counted pieces of a line; None if there is none."""
    rows = np.flatnonzero(counted)
    if not len(rows):
        return None
    shares: tuple[tuple[Kind, Floats], ...] = (
        ("velocity", need.speed[pieces[rows]]),
        ("acceleration", need.turn[pieces[rows]]),
    )
    for kind, share in shares:
        row, joint = divmod(int(np.argmax(share)), share.shape[1])
        if share[row, joint] > ROUNDING:
            singularity = near.singularity[rows[row]]
            named: Kind = "singularity" if singularity and kind == "velocity" else kind
            return _Excess(
                named, int(pieces[rows[row]]), joint, float(share[row, joint]), singularity
            )
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """Per piece of a line: the singular pose it is near, if any; and whether the line begins or
    ends in that singular pose."""

    singularity: list[str]
    at_ends: NDArray[np.bool_]


def _nearness(path: Path, pieces: Ints, arm: Arm | Machine) -> _Near:
    """Nearness to singular poses; matters for Cartesian moves only."""
    if isinstance(arm, Machine) or path.measure[pieces[0]] != TOOL:
        return _Near([""] * len(pieces), np.zeros(len(pieces), dtype=np.bool_))
    names = kinds(arm.chain)
    scale = NEAR_RATIO if names == ("arm",) else 1.0
    corners = np.vstack([path.shape[pieces[:1], 0], path.end[pieces]])
    middle = [path.position(piece, 0.5 * float(path.length[piece])) for piece in pieces.tolist()]
    at_corners, at_middle = (distances(arm.chain, q) / scale for q in (corners, np.array(middle)))
    share = np.minimum.reduce([at_corners[:-1], at_middle, at_corners[1:]])
    near = share.min(axis=1) < NEAR
    which = share.argmin(axis=1).tolist()
    begins, ends = (bool(at_corners[k].min() < INSIDE) for k in (0, -1))
    singularity = [names[k] if close else "" for k, close in zip(which, near.tolist(), strict=True)]
    return _Near(singularity, _at_ends(near, begins, ends))


def _at_ends(near: NDArray[np.bool_], begins: bool, ends: bool) -> NDArray[np.bool_]:
    """Pieces that are near a singular pose without interruption from the start, or to the end."""
    from_start = np.logical_and.accumulate(near) & begins
    to_end = np.logical_and.accumulate(near[::-1])[::-1] & ends
    return np.asarray(from_start | to_end)


def _finding(need: _Need, found: _Excess, line: int, *, slowed: bool = False) -> Finding:
    arm = need.arm
    name, axis = arm.names[found.joint], arm.unit_of(found.joint)
    limits, time, sign = arm.limits.velocity, axis.seconds, f"{axis.name}/{axis.per}"
    if found.kind == "acceleration":
        limits, time, sign = arm.limits.acceleration, axis.seconds**2, sign + "2"
    has = float(limits[found.joint]) / axis.unit * time
    factor = digits_apart(found.share, 1.0, digits=1)
    wanted = digits_apart(found.share * has, has, digits=0)
    needs = (
        f"{name} would need {wanted} {sign} at this feed, {has:.0f} are allowed ({factor} times)"
    )
    if found.singularity:
        needs = f"close to the {found.singularity} singularity: {needs}"
    if slowed:
        needs += f"; {arm.slowed_text(float(need.path.fastest[found.piece]), found.joint)}"
    when = need.stretch.time_at(found.piece, 0.0)
    message = f"line {line}: {needs}"
    return Finding(line, found.kind, message, when, joint=name, factor=found.share)


ABRUPT = 0.05
"""Share of a joint's acceleration above which the ends of a segment are looked at."""


class Samples(NamedTuple):
    """Samples of a motion: their times, and the program line of each."""

    motion: Motion
    times: Floats
    lines: NDArray[np.int64]


def abrupt_samples(stretch: Stretch, arm: Arm | Machine) -> Samples:
    """Samples just inside both ends of every segment of the plan that accelerates a joint.

    Position and speed are continuous, so that samples 10 ms apart show them; the acceleration jumps
    between segments, of which many are shorter.
    """
    law = stretch.plan.law
    first, last = np.searchsorted(law.piece, [stretch.first, stretch.last])
    begins = law.begins[first : last + 1]
    times = np.sort(np.concatenate([begins[:-1], np.nextafter(begins[1:], 0.0)]))
    motion = stretch.plan.sample(times)
    abrupt = (np.abs(motion.acceleration) > ABRUPT * arm.braking).any(axis=1)
    chosen = Motion(*(part[abrupt] for part in motion))
    return Samples(chosen, times[abrupt], stretch.lines_at(times[abrupt]))


def overload_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine
) -> Iterator[Finding]:
    """One finding per line that overloads a joint: the joint with the largest share of its
    torque."""
    if arm.dynamics is None or not len(times):
        return
    torques = arm.dynamics.torques(motion)
    share = arm.dynamics.shares(torques)
    over = share.max(axis=1) > 1.0
    for line in np.unique(lines[over]).tolist():
        rows = np.flatnonzero(over & (lines == line))
        row = int(rows[np.argmax(share[rows].max(axis=1))])
        joint = int(np.argmax(share[row]))
        name, needs = arm.names[joint], float(torques[row, joint])
        has, unit = float(arm.dynamics.effort[joint]), arm.dynamics.unit(joint)
        needed = digits_apart(needs, math.copysign(has, needs), digits=1)
        message = f"line {line}: {name} needs {needed} {unit}, {has:.1f} are allowed"
        factor = float(share[row, joint])
        yield Finding(
            line, "torque", message, float(times[row]), joint=name, excess=factor, factor=factor
        )


# ── stops off the path ──────────────────────────────────────────────────────────────────────────


STANDS = 1e-4
"""Radians or metres: below this overrun of all joints the arm stays on the proven path."""
TOO_FAR = 1e-6
INSTANT = 1e-9
AT_ONCE = 1e9
"""Radians or metres per s²: deceleration of a joint that has no limit."""


def overrun_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine
) -> Iterator[Finding]:
    """Findings where an independently braking joint would run beyond its limit."""
    stop = motion.position + np.sign(motion.velocity) * _overrun(motion, arm.braking)
    lower, upper = arm.range
    over = np.maximum(lower - stop, stop - upper)
    worst = over.max(axis=1)
    for line in np.unique(lines[worst > TOO_FAR]).tolist():
        rows = np.flatnonzero(lines == line)
        row = int(rows[np.argmax(worst[rows])])
        joint = int(np.argmax(over[row]))
        name, axis = arm.names[joint], arm.unit_of(joint)
        excess = float(over[row, joint])
        far = f"{excess / axis.unit:.2f} {axis.name}"
        message = f"line {line}: in a stop here {name} would run {far} beyond its limit"
        yield Finding(line, "joint_limit", message, float(times[row]), joint=name, excess=excess)


def crash_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine, contacts: Contacts
) -> Iterator[Finding]:
    """The first contact on each line that a stop off the path would cause."""
    if arm.sweeper is None:
        return
    shape, length, row = stopping_paths(motion, arm.braking)
    for swept in arm.sweeper.sweep(shape, length, lines=lines[row]):
        if swept.verdict is Verdict.CONTACT and swept.spot is not None:
            when = float(times[row[swept.spot.piece]])
            yield contacts.crash(swept.line, (swept.spot, when))


def stopping_paths(motion: Motion, braking: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Braking from each sample to rest, back, and on to the next sample, as one path over time; and
    the sample of each piece. A piece ends where the next joint has come to rest.
    """
    q, v = motion.position, motion.velocity
    braking = np.minimum(braking, AT_ONCE)
    moves = (_overrun(motion, braking) > STANDS).any(axis=1, keepdims=True)
    v = np.where(moves, v, 0.0)
    ends = np.abs(v) / braking
    slows = np.sign(v) * braking
    until = np.sort(ends, axis=1)
    since = np.pad(until, ((0, 0), (1, 0)))[:, :-1]
    span = until - since
    # (samples, pieces, joints): where each joint is, and how fast, when a piece begins.
    passed = np.minimum(since[:, :, None], ends[:, None, :])
    place = q[:, None] + passed * (v[:, None] - 0.5 * slows[:, None] * passed)
    speed = v[:, None] - slows[:, None] * passed
    bend = np.where(ends[:, None] >= until[:, :, None], -0.5 * slows[:, None], 0.0)
    speed = np.where(bend != 0.0, speed, 0.0)
    h = span[:, :, None]
    there = np.stack([place, speed, bend], axis=2)
    back = np.stack([place + h * (speed + h * bend), -speed - 2.0 * h * bend, bend], axis=2)
    step = np.diff(q, axis=0, append=q[-1:])[:, None]
    on = np.stack([q[:, None], step, np.zeros_like(step)], axis=2)
    ones = np.ones((len(q), 1))
    shape = np.concatenate([there, back[:, ::-1], on], axis=1)
    length = np.concatenate([span, span[:, ::-1], ones], axis=1)
    row, piece = np.nonzero(length > INSTANT)
    return shape[row, piece], length[row, piece], row


def _overrun(motion: Motion, braking: Floats) -> Floats:
    """Braking distance of each joint."""
    return np.asarray(motion.velocity**2 / (2.0 * braking))
