"""Jogging, stop and hold: the arm brakes within the limits of the joints."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.arm.bench import arm, degrees, prompt_arm, refusal, run, sampled, send, until_idle

from understudy.units import DEG

ACCELERATION = np.array([500, 500, 500, 800, 800, 1000]) * DEG
SPEED = np.array([120, 120, 120, 190, 190, 250]) * DEG
LOWER = np.array([-170, -120, -80, -185, -120, -360]) * DEG
UPPER = np.array([170, 60, 165, 185, 120, 360]) * DEG
PROFILES = ["trapezoid", "jerk_limited"]


def assert_within_limits(rows: np.ndarray, *, corners: bool = False) -> None:
    """At the ``corners`` of a path the velocity may jump as far as the junction rule allows."""
    q, v, a = np.moveaxis(rows, 1, 0)
    assert (np.abs(v) <= SPEED * (1 + 1e-9)).all()
    assert (np.abs(a) <= ACCELERATION * (1 + 1e-9)).all()
    assert corners or (np.abs(np.diff(v, axis=0)) <= ACCELERATION * 1e-3 * (1 + 1e-6) + 1e-12).all()
    assert (q >= LOWER - 1e-9).all()
    assert (q <= UPPER + 1e-9).all()


# ── jog ─────────────────────────────────────────────────────────────────────────────────────────


def test_jogging_a_second_axis_adds_to_the_first() -> None:
    controller = prompt_arm()
    controller.jog(0, 0.2)
    controller.advance(0.2)
    controller.jog(4, -0.4)
    controller.advance(0.2)
    velocities = controller.joint_state().velocities
    assert velocities == pytest.approx((0.2, 0, 0, 0, -0.4, 0))
    assert controller.status().state == "Jog"


def test_stop_jog_ends_all_axes() -> None:
    controller = prompt_arm()
    controller.jog(0, 0.2)
    controller.jog(4, -0.4)
    controller.advance(0.2)
    controller.stop_jog()
    assert_within_limits(until_idle(controller))
    assert controller.joint_state().velocities == (0.0,) * 6
    assert controller.status().state == "Idle"


def test_one_axis_is_stopped_by_jogging_it_with_speed_0() -> None:
    controller = prompt_arm()
    controller.jog(0, 0.2)
    controller.jog(4, -0.4)
    controller.jog(0, 0.0)
    controller.advance(0.2)
    assert controller.joint_state().velocities == pytest.approx((0, 0, 0, 0, -0.4, 0))


@pytest.mark.parametrize("axis", range(6))
def test_jog_speed_is_clamped_not_refused(axis: int) -> None:
    controller = prompt_arm()
    assert controller.jog(axis, -1000.0) is None
    assert_within_limits(sampled(controller, 0.3))
    assert controller.joint_state().velocities[axis] == pytest.approx(-SPEED[axis])


@pytest.mark.parametrize("velocity", [math.nan, math.inf])
def test_a_speed_that_is_not_a_number_is_refused(velocity: float) -> None:
    assert "is not a speed" in refusal(arm().jog(0, velocity))


@pytest.mark.parametrize("axis", [-1, 6, 1.5, 1.0, math.nan, "1"])
def test_an_unknown_axis_is_refused(axis: Any) -> None:
    assert refusal(arm().jog(axis, 0.1)) == f"there is no axis {axis}; there are 0…5"
    assert "there is no axis" in refusal(arm().home(axis if axis != -1 else 7))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("axis", range(6))
@pytest.mark.parametrize("share", [1e-5, 0.013, 1.0, -0.37, -1.0])
def test_a_jog_stops_exactly_at_the_soft_limit(axis: int, share: float, profile: str) -> None:
    controller = prompt_arm(profile=profile)
    controller.jog(axis, share * SPEED[axis])
    controller.advance(0.1)
    controller.jog(axis, 0.9 * share * SPEED[axis])
    controller.run_until_idle(timeout=1e6)
    end = (UPPER if share > 0 else LOWER)[axis]
    assert controller.joint_state().positions[axis] == pytest.approx(end, abs=1e-9)
    assert controller.status().state == "Idle"
    # At the limit only one direction is allowed.
    controller.jog(axis, share)
    controller.advance(0.1)
    assert controller.joint_state().positions[axis] == pytest.approx(end, abs=1e-9)
    controller.jog(axis, -share)
    controller.advance(0.1)
    assert abs(controller.joint_state().positions[axis]) < abs(end)


def test_no_jog_while_a_program_runs_or_is_delayed() -> None:
    controller = arm()
    send(controller, "G4 P1")
    assert refusal(controller.jog(0, 0.1)) == "only a controller at rest can do that"
    controller.advance(0.5)
    assert refusal(controller.jog(0, 0.1)) == "only a controller at rest can do that"
    controller.hold()
    controller.advance(1.0)
    assert refusal(controller.jog(0, 0.1)) == "only a controller at rest can do that"
    controller.cycle_start()
    controller.run_until_idle()
    assert controller.jog(0, 0.1) is None


def test_no_lines_while_a_jog_runs_or_is_delayed() -> None:
    controller = arm()
    controller.jog(0, 0.1)
    assert refusal(controller.send_gcode("G0 A0")) == "not while jogging"
    assert refusal(controller.home()) == "not while jogging"
    controller.advance(0.5)
    controller.stop_jog()
    assert refusal(controller.send_gcode("G0 A0")) == "not while jogging"
    controller.run_until_idle()
    run(controller, "G0 A0")
    controller.advance(0.01)
    assert degrees(controller) == [0] * 6


def test_hold_ends_a_jog() -> None:
    controller = prompt_arm()
    controller.jog(0, 0.5)
    controller.advance(0.2)
    controller.hold()
    assert_within_limits(until_idle(controller))
    assert controller.status().state == "Idle"


def test_a_jog_does_not_change_the_overrides() -> None:
    controller = prompt_arm()
    controller.override_feed(50)
    controller.jog(0, 0.5)
    controller.advance(0.1)
    controller.stop_jog()
    controller.run_until_idle()
    send(controller, "G1 A40 F1200")
    controller.advance(0.5)
    assert controller.joint_state().velocities[0] == pytest.approx(10 * DEG)


@given(
    changes=st.lists(
        st.tuples(st.integers(0, 5), st.floats(-5, 5), st.floats(0.0, 0.4)), min_size=1, max_size=6
    ),
    start=st.tuples(*(st.floats(0.0, 1.0) for _ in range(6))),
    profile=st.sampled_from(PROFILES),
)
@settings(max_examples=15, deadline=None)
def test_any_jog_stays_within_all_limits(
    changes: list[tuple[int, float, float]], start: tuple[float, ...], profile: str
) -> None:
    controller = prompt_arm(profile=profile)
    controller.set_joint_positions(LOWER + (UPPER - LOWER) * np.array(start))
    for axis, velocity, seconds in changes:
        assert controller.jog(axis, velocity) is None
        rows = sampled(controller, seconds)
        if len(rows):
            assert_within_limits(rows)
    controller.stop_jog()
    rows = until_idle(controller)
    if len(rows):
        assert_within_limits(rows)
    assert not any(controller.joint_state().velocities)


# ── stop ────────────────────────────────────────────────────────────────────────────────────────


def test_stop_brakes_along_the_path_and_drops_the_rest() -> None:
    controller = prompt_arm()
    send(controller, "G1 A60 B-30 F6000", "G1 A0 B0")
    controller.advance(0.4)
    controller.stop()
    assert controller.status().moving, "it brakes"
    rows = until_idle(controller)
    assert_within_limits(rows)
    assert rows[:, 0, 1] == pytest.approx(-rows[:, 0, 0] / 2, abs=1e-12)
    stands = controller.joint_state()
    controller.advance(5.0)
    assert controller.joint_state() == stands


def test_lines_after_a_stop_start_from_the_stop_position() -> None:
    """Also lines that are sent while the stop is delayed."""
    controller = arm()
    send(controller, "G1 A90 F3000")
    controller.advance(0.5)
    controller.stop()
    send(controller, "G1 A5")
    controller.run_until_idle()
    controller.advance(0.001)
    assert degrees(controller)[0] == 5


def test_a_stop_ends_a_dwell() -> None:
    controller = prompt_arm()
    send(controller, "G4 P10", "G0 A10")
    controller.advance(1.0)
    controller.stop()
    controller.run_until_idle()
    assert controller.simulation_time() == 1.0
    assert controller.status().state == "Idle"


# ── hold and cycle start ────────────────────────────────────────────────────────────────────────


def off_the_corners(points: np.ndarray, corners: np.ndarray) -> float:
    """The greatest distance of any point from the lines between the corners."""
    starts, ways = corners[:-1], np.diff(corners, axis=0)
    along = ((points[:, None] - starts) * ways).sum(-1) / (ways * ways).sum(-1)
    nearest = starts + np.clip(along, 0.0, 1.0)[..., None] * ways
    return float(np.linalg.norm(points[:, None] - nearest, axis=-1).min(axis=1).max())


@pytest.mark.parametrize("profile", PROFILES)
def test_hold_and_cycle_start_do_not_change_the_path(profile: str) -> None:
    controller = prompt_arm(profile=profile, junction_deviation_deg=1.0)
    send(controller, "G1 A20 F3000", "G1 A20 B-15", "G1 A0 B-15 U30")
    corners = np.zeros((4, 6))
    corners[1:, [0, 1, 3]] = np.array([[20, 0, 0], [20, -15, 0], [0, -15, 30]]) * DEG
    parts = []
    for _ in range(4):
        parts.append(sampled(controller, 0.17))
        controller.hold()
        parts.append(until_idle(controller))
        assert controller.status().state == "Hold"
        assert not any(controller.joint_state().velocities)
        controller.advance(0.5)
        controller.cycle_start()
    parts.append(until_idle(controller))
    rows = np.concatenate([part for part in parts if len(part)])
    assert_within_limits(rows, corners=True)
    assert off_the_corners(rows[:, 0], corners) < 1e-12
    assert controller.joint_state().positions == tuple(corners[-1])
    assert controller.status().state == "Idle"


def test_a_held_dwell_continues_with_its_remaining_time() -> None:
    controller = prompt_arm()
    send(controller, "G4 P2", "M64 P1")
    controller.advance(0.5)
    controller.hold()
    controller.advance(10.0)
    controller.cycle_start()
    controller.run_until_idle()
    assert controller.simulation_time() == pytest.approx(12.0)


def test_lines_sent_in_a_hold_wait_for_cycle_start() -> None:
    controller = prompt_arm()
    controller.hold()
    send(controller, "G0 A10")
    controller.advance(1.0)
    assert degrees(controller)[0] == 0
    controller.cycle_start()
    controller.run_until_idle()
    assert degrees(controller)[0] == 10


# ── overrides ───────────────────────────────────────────────────────────────────────────────────


def test_feed_and_rapid_overrides_are_independent() -> None:
    controller = prompt_arm()
    controller.override_feed(50)
    controller.override_rapid(25)
    send(controller, "G1 A20 F1200", "G4 P0", "G0 A60")
    controller.advance(1.0)
    assert controller.joint_state().velocities[0] == pytest.approx(10 * DEG)
    controller.override_feed(100)
    controller.advance(0.2)
    assert controller.joint_state().velocities[0] == pytest.approx(20 * DEG)
    controller.advance(1.0)
    assert controller.joint_state().velocities[0] == pytest.approx(30 * DEG)
    controller.run_until_idle()
    assert degrees(controller)[0] == 60


@pytest.mark.parametrize("percent", [0, 9.9, 201, math.nan])
def test_overrides_out_of_range_are_refused(percent: float) -> None:
    assert refusal(arm().override_feed(percent)).endswith("% is outside 10…200 %")
