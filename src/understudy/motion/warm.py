"""Compiles all kernels of `motion` with small inputs, so that no command waits for the compiler."""

import numpy as np

from understudy.motion.cartesian import joint_path, lines_through, traced_arm
from understudy.motion.dynamics import Dynamics
from understudy.motion.lines import lines
from understudy.motion.path import Limits
from understudy.motion.profile import brake
from understudy.motion.stream import Stream, planned
from understudy.motion.tool_path import ToolLine, tip_way
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain
from understudy.space.transform import translation


def warm(arm: Dynamics | None = None) -> None:
    """Compiles all kernels except those of tool paths; those of the torques if an arm is given."""
    limits = Limits.of(np.ones(2), np.ones(2))
    stream = Stream(np.zeros(2), limits)
    stream.append(lines(np.zeros(2), [[1.0, 0.0], [1.0, 1.0]], limits, feed=1.0), 0.0)
    lines(np.zeros(2), [1.0, 0.0], limits)  # the arrays of a single line have another layout
    plan = stream.plan
    plan.positions(np.zeros(1))
    plan.at(0.0)
    brake(plan, 0.5)
    if arm is not None:
        arm.torques(plan.sample(np.zeros(1))._replace(**_zeros(len(arm.names))))
        zeros, ones = np.zeros(len(arm.names)), np.ones(len(arm.names))
        arm.may_overload(planned(lines(zeros, ones, Limits.of(ones, ones))), np.zeros(1))


def warm_tool_paths(chain: Chain) -> None:
    """Compiles the kernels that follow tool paths, if the arm has a closed form."""
    limits = Limits.of(chain.velocity, chain.acceleration, chain.jerk)
    rest = planned(lines(np.zeros(chain.dof), np.ones(chain.dof), limits))
    tip_way(np.zeros(1), *rest.columns, (chain.rest, chain.slides, chain.tip_of(FOOT_AND_FLANGE)))
    arm = traced_arm(chain, limits, FOOT_AND_FLANGE)
    if arm is None:
        return
    q = np.clip(np.full(chain.dof, 0.1), chain.lower, chain.upper)
    here = chain.flange(q)
    joint_path(
        chain, q, ToolLine(here, translation(0.0, 0.0, -0.001) @ here), limits=limits, feed=0.1
    )
    some, number = np.full(1, 0.1), np.ones(1, dtype=np.int64)
    lines_through(arm, q, here[None].copy(), feed=some, line=number, deviation=0.0)


def _zeros(axes: int) -> dict[str, np.ndarray]:
    return {name: np.zeros((1, axes)) for name in ("position", "velocity", "acceleration")}
