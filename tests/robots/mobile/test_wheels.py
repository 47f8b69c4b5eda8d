"""Wheels: a body speed becomes wheel speeds and back, and wheels that roll move a robot on arcs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.robots.mobile import wheels
from understudy.robots.mobile.wheels import Model, WheelMotor, WheelSet, join_wheels, wheel_set

TRACK, BASE = 0.48, 0.52
PAIR = (WheelMotor("DRIVE", "drive_left"), WheelMotor("DRIVE", "drive_right"))
FOUR = tuple(WheelMotor("DRIVE", f"m{n}") for n in range(4))
STEERED = (WheelMotor("DRIVE_REAR", "rear"), WheelMotor("STEERING", "front"))


def a_set(model: Model, motors: tuple[WheelMotor, ...] = PAIR) -> WheelSet:
    return wheel_set(model, motors, track=TRACK, base=BASE)


SETS = {
    "differential": a_set("differential"),
    "differential with four wheels": a_set("differential", FOUR),
    "differential with three wheels": a_set("differential", FOUR[:3]),
    "mecanum": a_set("mecanum", FOUR),
    "mecanum with two wheels": a_set("mecanum"),
    "ackermann": a_set("ackermann"),
    "ackermann with steering": a_set("ackermann", (*PAIR, STEERED[1])),
    "ackermann with one wheel": a_set("ackermann", STEERED),
}
HOLONOMIC = {"mecanum"}
numbers = st.floats(-3, 3)


def set_speeds(each: WheelSet, body: tuple[float, float, float]) -> wheels.Floats:
    speeds = np.zeros(len(each.steers))
    wheels.set_wheel_speeds(join_wheels([each]), np.array([body]), speeds)
    return speeds


def test_wheels_are_found_by_name_or_by_order() -> None:
    swapped = a_set("differential", (WheelMotor("DRIVE_RIGHT", "a"), WheelMotor("driveLeft", "b")))
    assert set_speeds(swapped, (0, 0, 1)).tolist() == [0.24, -0.24]
    assert set_speeds(a_set("differential", FOUR[:2]), (0, 0, 1)).tolist() == [-0.24, 0.24]
    names = ("REAR_RIGHT", "FRONT_LEFT", "FRONT_RIGHT", "REAR_LEFT")
    named = a_set("mecanum", tuple(WheelMotor(name, "m") for name in names))
    ordered = set_speeds(SETS["mecanum"], (0.1, 0.2, 0.3))
    assert set_speeds(named, (0.1, 0.2, 0.3)).tolist() == ordered[[3, 0, 1, 2]].tolist()
    short = a_set(
        "mecanum", tuple(WheelMotor("DRIVE", f"drive_{n}") for n in ("rr", "fl", "fr", "rl"))
    )
    assert short.coefficients.tolist() == named.coefficients.tolist()


def test_to_the_left_is_sideways_and_turning() -> None:
    assert set_speeds(SETS["mecanum"], (0, 1, 0)).tolist() == [-1, 1, 1, -1]
    assert set_speeds(SETS["mecanum"], (0, 0, 1)).tolist() == [-0.5, 0.5, -0.5, 0.5]


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=60, deadline=None)
@given(numbers, numbers, numbers)
def test_wheel_speeds_give_the_body_speeds_back(
    name: str, forward: float, sideways: float, turning: float
) -> None:
    if name == "ackermann with one wheel" and abs(forward) < 1e-3:
        return  # it cannot turn on the spot
    table = join_wheels([SETS["differential"], SETS[name]])
    wanted = np.array([(0.5, 0.0, 0.0), (forward, sideways, turning)])
    speeds, body = np.zeros(len(table.steers)), np.zeros((2, 3))
    wheels.set_wheel_speeds(table, wanted, speeds)
    wheels.body_speeds(table, speeds, body)
    if name not in HOLONOMIC:
        wanted[1, wheels.SIDEWAYS] = 0.0
    assert body == pytest.approx(wanted, abs=1e-9)
    assert body[0].tolist() == [0.5, 0.0, 0.0], "a usual robot drives straight without rounding"


def test_a_steering_angle_stays_while_the_robot_stands() -> None:
    each = SETS["ackermann with steering"]
    speeds = np.zeros(3)
    for body in ((0.5, 0.0, 0.4), (0.0, 0.0, 0.0)):
        wheels.set_wheel_speeds(join_wheels([each]), np.array([body]), speeds)
    assert speeds.tolist() == [0.0, 0.0, math.atan(0.4 * BASE / 0.5)]


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=40, deadline=None)
@given(st.tuples(numbers, numbers, numbers), st.floats(0.01, 2))
def test_rolling_wheels_move_a_robot_as_small_steps_do(
    name: str, body: tuple[float, float, float], seconds: float
) -> None:
    """The exact arc against 20,000 small straight steps."""
    forward, sideways, turning = body
    sideways = sideways if name in HOLONOMIC else 0.0
    if name == "ackermann with one wheel" and abs(forward) < 1e-3:
        return
    table = join_wheels([SETS[name]])
    speeds, moved, pose = np.zeros(len(table.steers)), np.zeros((1, 3)), np.array([(1.0, 2.0, 3.0)])
    wheels.set_wheel_speeds(table, np.array([(forward, sideways, turning)]), speeds)
    before = np.where(table.steers, speeds, 0.7)
    after = np.where(table.steers, speeds, before + speeds * seconds)
    wheels.displacements(table, before, after, moved)
    wheels.move_on_arcs(moved, pose)
    times = (np.arange(20_000) + 0.5) * seconds / 20_000
    yaws = 3.0 + turning * times
    x = 1.0 + np.mean(forward * np.cos(yaws) - sideways * np.sin(yaws)) * seconds
    y = 2.0 + np.mean(forward * np.sin(yaws) + sideways * np.cos(yaws)) * seconds
    assert pose[0, :2] == pytest.approx((x, y), abs=1e-6)
    assert math.remainder(pose[0, 2] - 3.0 - turning * seconds, 2 * math.pi) == pytest.approx(
        0.0, abs=1e-9
    )


def test_travel_is_that_of_the_reference_point_or_of_the_farthest_corner() -> None:
    assert wheels.pace(0.3, 0.4, 0.1, 0.6) == 0.5
    assert wheels.pace(0.0, 0.0, -1.0, 0.6) == 0.6
