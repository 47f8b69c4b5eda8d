"""Compile the kernels of the room with tiny inputs, so that no first command waits for it."""

import numpy as np

from understudy.motion.brake import brake
from understudy.motion.dynamics import Dynamics
from understudy.motion.lines import lines
from understudy.motion.path import Limits
from understudy.motion.stream import Stream


def warm(arm: Dynamics | None = None) -> None:
    """All kernels; those of the torques if an arm is given."""
    limits = Limits.of(np.ones(2), np.ones(2))
    stream = Stream(np.zeros(2), limits)
    stream.append(lines(np.zeros(2), [[1.0, 0.0], [1.0, 1.0]], limits, feed=1.0), 0.0)
    lines(np.zeros(2), [1.0, 0.0], limits)  # the arrays of one line alone are of another kind
    plan = stream.plan
    plan.positions(np.zeros(1))
    brake(plan, 0.5)
    if arm is not None:
        arm.torques(plan.sample(np.zeros(1))._replace(**_zeros(len(arm.names))))


def _zeros(axes: int) -> dict[str, np.ndarray]:
    return {name: np.zeros((1, axes)) for name in ("position", "velocity", "acceleration")}
