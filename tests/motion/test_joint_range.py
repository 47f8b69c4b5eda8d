"""Joints stay within their limits between the knots of a tool path, too."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.arms import G60, LIMITS, joints_at, pose

from understudy.motion.cartesian import (
    BEYOND_LIMIT,
    Blocked,
    extremes,
    joint_path,
    lines_through,
    traced_arm,
    within_limits,
)
from understudy.motion.path import Floats, Path
from understudy.motion.tool_path import ToolLine
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain
from understudy.space.kinematics.follow import FailureKind
from understudy.units import DEG

COEFFICIENT = st.floats(-3.0, 3.0).map(lambda value: 0.0 if abs(value) < 1e-6 else value)
CUBICS = st.lists(COEFFICIENT, min_size=24, max_size=24).map(
    lambda values: np.array(values).reshape(4, 6)
)
FROM, TO = pose(0.55, -0.31, 0.35, 180.0, 0.0, 0.0), pose(0.55, 0.29, 0.35, 180.0, 0.0, 0.0)
START = joints_at(FROM)


def samples(shape: Floats, length: float) -> Floats:
    s = np.linspace(0.0, length, 2001)[:, None]
    return np.asarray(shape[0] + s * (shape[1] + s * (shape[2] + s * shape[3])))


@given(CUBICS, st.floats(0.01, 3.0))
def test_extremes_of_a_cubic_are_those_of_dense_samples(shape: Floats, length: float) -> None:
    least, most = extremes(shape[None], np.array([[length]]))
    seen = samples(shape, length)
    assert (least[0] <= seen.min(axis=0) + 1e-12).all()
    assert (most[0] >= seen.max(axis=0) - 1e-12).all()
    assert least[0] == pytest.approx(seen.min(axis=0), abs=1e-4)
    assert most[0] == pytest.approx(seen.max(axis=0), abs=1e-4)


@given(CUBICS, st.floats(0.01, 3.0), st.integers(0, 5), st.floats(-0.01, 0.01))
def test_the_kernel_agrees(shape: Floats, length: float, joint: int, margin: float) -> None:
    """`extremes` is the oracle of within_limits."""
    least, most = extremes(shape[None], np.array([[length]]))
    lower, upper = least[0] - 1.0, most[0] + 1.0
    ends = max(samples(shape, length)[[0, -1], joint])
    upper[joint] = max(most[0, joint] + margin, ends)
    beyond = float(most[0, joint] - upper[joint])
    if abs(beyond - BEYOND_LIMIT) > 1e-9:
        assert within_limits(shape, length, lower, upper) is (beyond < BEYOND_LIMIT)
        assert within_limits(-shape, length, -upper, -lower) is (beyond < BEYOND_LIMIT)


def line(arm: Chain) -> Path | Blocked:
    return joint_path(arm, START, ToolLine(FROM, TO), limits=LIMITS, feed=0.1)


def lowered(joint: int, share: float) -> tuple[Chain, float]:
    """The G60 with a limit between the highest knot of a line and its highest point; radians
    beyond."""
    path = line(G60)
    assert isinstance(path, Path)
    knots = max(float(path.shape[0, 0, joint]), float(path.end[:, joint].max()))
    top = float(extremes(path.shape, path.length[:, None])[1][:, joint].max())
    upper = G60.upper.copy()
    upper[joint] = knots + share * (top - knots)
    return replace(G60, upper=upper), top - float(upper[joint])


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_joint_beyond_its_limit_between_two_knots_is_refused(share: float) -> None:
    arm, beyond = lowered(2, share)
    assert 1e-6 < beyond < 0.05 * DEG
    found = line(arm)
    assert isinstance(found, Blocked)
    assert found.kind is FailureKind.LIMIT
    assert "J3 = " in found.reason
    traced = traced_arm(arm, LIMITS, FOOT_AND_FLANGE)
    assert traced is not None
    one = np.full(1, 0.1), np.ones(1, dtype=np.int64)
    path, done = lines_through(traced, START, TO[None], feed=one[0], line=one[1], deviation=0.0)
    assert (len(path), done) == (0, 0)


def test_a_joint_that_just_reaches_its_limit_passes() -> None:
    arm, beyond = lowered(2, 1.0)
    assert beyond <= 1e-12
    assert isinstance(line(arm), Path)
