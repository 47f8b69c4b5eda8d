"""What the joints need along a run, and how far the tool goes; looked at every 10 ms."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats
from understudy.motion.plan import Motion
from understudy.offline.validate.report import Finding
from understudy.offline.validate.subject import Arm, Machine
from understudy.units import digits_apart


def overload_findings(
    motion: Motion, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine
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
        name, needs = arm.names[joint], float(torques[row, joint])
        has = float(effort[joint])
        told = digits_apart(needs, math.copysign(has, needs), digits=1)
        said = f"line {line}: {name} needs {told} Nm, {has:.1f} are allowed"
        excess = float(share[row, joint])
        yield Finding(line, "torque", said, float(times[row]), joint=name, excess=excess)


def way_of(tips: Floats) -> float:
    """Metres from the first point to the last, along all of them."""
    return float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())
