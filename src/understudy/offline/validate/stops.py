"""Stops off the path: each joint brakes independently with its full deceleration.

Checked every 10 ms: where the joints come to rest, and whether the arm touches anything until then.
From each of these times the braking motion is swept forth and back, and then on to the next time,
so that the sweep is one path without a jump.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats
from understudy.motion.plan import Motion
from understudy.offline.validate.clearance import Contacts
from understudy.offline.validate.report import Finding
from understudy.offline.validate.subject import Arm, Machine
from understudy.space.collision.sweep import Verdict

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
