"""Circles in all planes, by centre and by radius."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gcode.talk import Talk

from understudy.gcode import ARM, GRBLHAL_ARM, GRBLHAL_MACHINE
from understudy.gcode.requests import ArcMove, AxisArc, AxisMove, JointArc
from understudy.space.pose import Pose
from understudy.units import DEG, MM

QUARTER = math.pi / 2


def arc(*lines: str, at: tuple[float, float, float] = (0, 0, 0)) -> AxisArc:
    talk = Talk(GRBLHAL_MACHINE).stand(axes=(*at, 0, 0, 0))
    request = talk.say("F600", *lines)[-1]
    assert isinstance(request, AxisArc)
    return request


@pytest.mark.parametrize(
    ("line", "plane", "centre", "angle"),
    [
        ("G2 X10 Y0 I5 J0", (0, 1), (5, 0), -math.pi),
        ("G3 X10 Y0 I5 J0", (0, 1), (5, 0), math.pi),
        ("G3 X5 Y5 J5", (0, 1), (0, 5), QUARTER),
        ("G2 X5 Y5 I5", (0, 1), (5, 0), -QUARTER),
        ("G18 G2 X4 I2", (2, 0), (0, 2), -math.pi),
        ("G18 G3 X5 Z5 I5", (2, 0), (0, 5), QUARTER),
        ("G19 G3 Y3 Z3 K3", (1, 2), (0, 3), QUARTER),
        ("G2 I4", (0, 1), (4, 0), -2 * math.pi),
        ("G3 J4 P3", (0, 1), (0, 4), 6 * math.pi),
        ("G3 X5 Y5 J5 P2", (0, 1), (0, 5), QUARTER + 2 * math.pi),
        ("G3 X5 Y5 R5", (0, 1), (0, 5), QUARTER),
        ("G2 X5 Y5 R5", (0, 1), (5, 0), -QUARTER),
        ("G3 X5 Y5 R-5", (0, 1), (5, 0), 3 * QUARTER),
        ("G2 X5 Y5 R-5", (0, 1), (0, 5), -3 * QUARTER),
        ("G2 X10 R5", (0, 1), (5, 0), -math.pi),
    ],
)
def test_the_circle(
    line: str, plane: tuple[int, int], centre: tuple[float, float], angle: float
) -> None:
    found = arc(line)
    assert found.plane == plane
    assert found.centre == pytest.approx(centre, abs=1e-6)
    assert found.angle == pytest.approx(angle, abs=1e-6)
    assert found.feed == 600


def test_other_axes_move_in_proportion() -> None:
    assert arc("G2 X10 I5 Z3 A90").target == (10, 0, 3, 90, 0, 0)


def test_the_centre_counts_from_the_start() -> None:
    found = arc("G91 G3 X5 Y5 J5", at=(1, 2, 0))
    assert found.target[:2] == (6, 7)
    assert found.centre == (1, 7)


def test_centre_and_radius_in_inches() -> None:
    assert arc("G20 G2 X2 I1").radius == pytest.approx(25.4)
    assert arc("G20 G2 X2 R1").radius == pytest.approx(25.4)


def test_a_circle_of_radius_zero_is_refused() -> None:
    assert Talk(GRBLHAL_MACHINE).say("G2 I0 J0 F100") == [AxisMove((0, 0, 0, 0, 0, 0), feed=100)]


@pytest.mark.parametrize("line", ["G2 X10.004 I5", "G2 X200.09 I100"])
def test_start_and_end_may_differ_a_little_in_radius(line: str) -> None:
    """By 0.005 mm, or by a thousandth of the radius."""
    assert arc(line).target[1] == 0


@pytest.mark.parametrize("line", ["G2 X10.009 I5", "G2 X200.11 I100", "G2 X2000.6 I1000"])
def test_a_large_difference_in_radius_is_refused(line: str) -> None:
    talk = Talk(GRBLHAL_MACHINE)
    talk.say("F100")
    assert talk.refused(line).code == 33


def test_half_circles_by_radius_are_accepted_despite_rounding() -> None:
    (found,) = Talk(ARM).stand(pose=(0, 0, 0, 0, 0, 0)).say("G2 X0.3 R0.15 F100")
    assert isinstance(found, ArcMove)
    assert found.angle == pytest.approx(-math.pi)


def test_an_arm_draws_with_its_tool_in_metres() -> None:
    talk = Talk(ARM).stand(pose=(400, 0, 500, 180, 0, 0))
    (found,) = talk.say("G3 X410 Y0 I5 F600")
    assert isinstance(found, ArcMove)
    assert found.target == pytest.approx(Pose(0.41, 0, 0.5, math.pi, 0, 0))
    assert found.centre == pytest.approx((0.405, 0))
    assert found.radius == pytest.approx(0.005)
    assert found.speed == pytest.approx(0.01)
    (timed,) = talk.say("G93 G2 I5 F2")
    assert isinstance(timed, ArcMove)
    assert (timed.speed, timed.duration) == (None, 30)


def test_on_a_joint_wire_two_joints_move_on_a_circle() -> None:
    (found,) = Talk(GRBLHAL_ARM).say("G3 X10 I5 F60")
    assert isinstance(found, JointArc)
    assert found.radius == pytest.approx(5 * DEG)
    assert found.speed == pytest.approx(DEG)


@given(st.floats(0.5, 100), st.floats(-3, 3), st.floats(0.05, 6.2), st.sampled_from(["G2", "G3"]))
def test_radius_and_centre_describe_the_same_circle(
    radius: float, start: float, travel: float, code: str
) -> None:
    sign = 1 if code == "G3" else -1
    i, j = -radius * math.cos(start), -radius * math.sin(start)
    end = start + sign * travel
    x, y = i + radius * math.cos(end), j + radius * math.sin(end)
    r = radius if travel <= math.pi else -radius
    talk = Talk(ARM)
    (by_centre,) = talk.say(f"{code} X{x:.9f} Y{y:.9f} I{i:.9f} J{j:.9f} F100")
    talk = Talk(ARM)
    (by_radius,) = talk.say(f"{code} X{x:.9f} Y{y:.9f} R{r:.9f} F100")
    assert isinstance(by_centre, ArcMove)
    assert isinstance(by_radius, ArcMove)
    assert by_centre.angle == pytest.approx(sign * travel, abs=1e-5)
    if abs(travel - math.pi) > 1e-3:
        assert by_radius.centre == pytest.approx(by_centre.centre, abs=1e-3 * MM)
