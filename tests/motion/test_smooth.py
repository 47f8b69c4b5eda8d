"""Jerk-limited motion: acceleration never steps, also with commands during the motion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.programs import AXES, Program, programs

from understudy.motion.lines import lines
from understudy.motion.path import Limits
from understudy.motion.plan import Plan
from understudy.motion.smooth import Bounds, change, change_distance, nearest_to, over_block
from understudy.motion.stream import Stream, planned

BOUNDS = Bounds(50.0, 500.0, 5000.0)
SPEEDS = st.floats(0.0, 50.0)


def assert_no_step(plan: Plan) -> None:
    """Speed and acceleration along the path are continuous between segments and within limits."""
    law, path = plan.law, plan.path
    x = np.diff(law.begins)
    v, a = law.v + x * (law.a + 0.5 * x * law.j), law.a + x * law.j
    assert a[:-1] == pytest.approx(law.a[1:], abs=1e-3)
    assert v[:-1] == pytest.approx(law.v[1:], abs=1e-5)
    assert a[-1:] == pytest.approx(0.0, abs=1e-3)
    most = 1 + 1e-6
    assert (np.abs(law.a) <= path.acceleration[law.piece] * most).all()
    assert (np.abs(law.j) <= path.jerk[law.piece] * most).all()


@given(programs(jerk=True))
def test_acceleration_never_steps(program: Program) -> None:
    path = program.path()
    if len(path):
        assert_no_step(planned(path, profile="jerk_limited"))


@given(programs(jerk=True), st.lists(st.floats(0.01, 0.3), max_size=4))
def test_acceleration_never_steps_when_held_and_resumed(
    program: Program, waits: list[float]
) -> None:
    stream, now = Stream(np.zeros(AXES), program.limits, profile="jerk_limited"), 0.0
    stream.append(program.path(), 0.0)
    for wait in waits:
        now = stream.hold(now + wait) + wait
        stream.resume(now)
    if len(stream.plan.law):
        assert_no_step(stream.plan)


@given(SPEEDS, SPEEDS)
def test_a_change_of_speed_takes_its_distance(v0: float, v1: float) -> None:
    *_, last = change(v0, v1, 0.0, BOUNDS)
    assert last.end == pytest.approx(change_distance(v0, v1, BOUNDS), abs=1e-9)
    assert last.v + last.seconds * (last.a + 0.5 * last.seconds * last.j) == pytest.approx(v1)


@given(SPEEDS, SPEEDS, st.floats(0.01, 20.0))
def test_a_block_is_run_from_end_to_end(v0: float, wanted: float, length: float) -> None:
    v1 = nearest_to(wanted, v0, length, BOUNDS)
    phases = over_block(length, v0, v1, BOUNDS)
    assert phases[-1].end == pytest.approx(length, abs=1e-9)
    assert all(phase.v >= -1e-9 for phase in phases)
    assert all(abs(phase.a) <= BOUNDS.a * (1 + 1e-9) for phase in phases)


def test_a_long_line_takes_the_theoretical_time() -> None:
    """Ramps of 0.1 s and 0.1 s more for each change: L/v + v/a + a/j."""
    limits = Limits.of([100.0], [500.0], [5000.0])
    plan = planned(lines([0.0], [[200.0]], limits, feed=100.0), profile="jerk_limited")
    assert plan.duration == pytest.approx(200.0 / 100.0 + 100.0 / 500.0 + 500.0 / 5000.0)
