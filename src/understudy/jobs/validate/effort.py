"""What the joints need along a run, and how far the tool goes; looked at every 10 ms."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from understudy.jobs.validate.report import Finding
from understudy.jobs.validate.subject import Arm
from understudy.motion.path import Floats
from understudy.motion.plan import Motion
from understudy.units import DEG, beside


def overload_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm
) -> Iterator[Finding]:
    """One per line on which a joint needs more than it has: the joint that is worst off."""
    if arm.dynamics is None:
        return
    torques = arm.dynamics.torques(motion)
    effort = arm.dynamics.effort
    share = np.abs(torques) / np.where(effort > 0.0, effort, np.inf)  # 0: the model does not say
    over = share.max(axis=1) > 1.0
    for line in np.unique(lines[over]).tolist():
        rows = np.flatnonzero(over & (lines == line))
        row = int(rows[np.argmax(share[rows].max(axis=1))])
        joint = int(np.argmax(share[row]))
        name, needs = arm.chain.names[joint], float(torques[row, joint])
        has = float(effort[joint])
        told = beside(needs, math.copysign(has, needs), digits=1)
        said = f"line {line}: {name} needs {told} Nm, {has:.1f} are allowed"
        yield Finding(line, "torque", said, float(times[row]), joint=name)


def overrun_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm
) -> Iterator[Finding]:
    """Where a joint that brakes by itself, off the path, would run beyond its limit."""
    q, v = motion.position, motion.velocity
    stop = q + np.sign(v) * v**2 / (2.0 * arm.limits.acceleration)
    over = np.maximum(arm.chain.lower - stop, stop - arm.chain.upper)
    worst = over.max(axis=1)
    for line in np.unique(lines[worst > 1e-6]).tolist():
        rows = np.flatnonzero(lines == line)
        row = int(rows[np.argmax(worst[rows])])
        joint = int(np.argmax(over[row]))
        name = arm.chain.names[joint]
        said = f"line {line}: stopped here {name} would run {over[row, joint] / DEG:.2f}° too far"
        yield Finding(line, "joint_limit", said, float(times[row]), joint=name)


def tool_way(motion: Motion, arm: Arm) -> float:
    """Metres that the tip goes."""
    tips = arm.chain.flanges(motion.position, arm.frames)[:, :3, 3]
    return float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())
