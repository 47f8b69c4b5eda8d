"""`max_jerk` acts when it is given: no move of the tool exceeds the jerk of a joint."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import SimulationConfig, VirtualController
from understudy.app.validate import validate_text
from understudy.config.cell import read_config
from understudy.motion.plan import Plan
from understudy.offline.walk import PlannedMotion, walk

JERK = 20.0
"""rad/s³, of every joint."""
ARM = VirtualController("g60", SimulationConfig(max_jerk=[JERK] * 6))
TICK_S = 0.001


def plans(program: str) -> Iterator[Plan]:
    for event in walk(program, ARM.planned):
        if isinstance(event, PlannedMotion):
            yield event.plan


def greatest_jerk(plan: Plan) -> float:
    """From the sampled acceleration, within moves: a corner between two moves is a step of it."""
    times = np.arange(plan.begins, plan.ends, TICK_S)
    acceleration = plan.sample(times).acceleration
    block = plan.path.block[[plan.piece_at(time) for time in times.tolist()]]
    steps = np.abs(np.diff(acceleration, axis=0))[block[1:] == block[:-1]]
    return float(steps.max(initial=0.0)) / TICK_S


angles = st.integers(-60, 60)
feeds = st.sampled_from([1000, 3000, 6000, 12000])


@given(angles, angles, st.integers(350, 600), st.integers(26, 100), feeds)
def test_no_line_and_no_arc_exceeds_the_jerk_of_a_joint(
    tilt: int, turn: int, height: int, radius: int, feed: int
) -> None:
    program = (
        f"G0 X450 Y-150 Z{height} A180 B{tilt} C{turn}\n"
        f"G1 Y150 F{feed}\nG2 X500 Y150 R{radius} F{feed}\nG1 X450 Y-150 B{-tilt} F{feed}\n"
    )
    for plan in plans(program):
        assert greatest_jerk(plan) <= JERK * (1.0 + 1e-6)


def test_without_a_jerk_the_acceleration_steps() -> None:
    assert ARM.planned.profile == "jerk_limited"
    assert VirtualController("g60").planned.profile == "trapezoid"


CELL = """
robots:
  arm:
    kind: arm
    model: g60
    start_deg: [0, -40, 80, 0, 50, 0]
    max_jerk_deg_s3: [200, 200, 200, 200, 200, 200]
"""


def test_the_check_of_a_program_names_the_line_and_by_how_much() -> None:
    config = read_config(CELL, "cell.yaml")
    program = "G0 X450 Y-150 Z350 A180 B0 C0\nG2 X500 Y-150 R26 F12000\n"
    report = validate_text(program, config)
    found = [each for each in report.violations if each.kind == "jerk"]
    assert [each.line for each in found] == [2]
    assert found[0].factor > 1.0
    assert "deg/s3" in found[0].message
    slow = validate_text(program.replace("F12000", "F600"), config)
    assert not [each for each in slow.violations if each.kind == "jerk"]


@pytest.mark.parametrize("profile", ["trapezoid", "jerk_limited"])
def test_a_profile_that_is_named_wins(profile: str) -> None:
    jerk = [JERK] * 6
    arm = VirtualController("g60", SimulationConfig(max_jerk=jerk), profile=profile)
    assert arm.planned.profile == profile


def test_a_line_that_begins_in_a_singular_pose_crawls_there_only() -> None:
    """The wrist turns at once; what follows is as fast as it may be."""
    (plan,) = plans("G1 X476.267 Y68.827 Z402.401 F500\n")
    assert plan.duration < 200.0
    assert greatest_jerk(plan) <= JERK * (1.0 + 1e-6)
