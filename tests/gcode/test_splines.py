"""G5 and G5.1: the lines of a curve, for a machine and for the tool of an arm."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gcode.talk import Talk

from understudy.gcode import error_numbers
from understudy.gcode.motions import SHORTEST_STEP, cut, single_number
from understudy.gcode.requests import AxisMove, LineMove

places = st.floats(-200.0, 200.0)
points = st.tuples(places, places)


def on_curve(curve: tuple[tuple[float, float], ...], t: float) -> np.ndarray:
    a, b, c, d = map(np.array, curve)
    s = 1.0 - t
    found: np.ndarray = s**3 * a + 3 * s * s * t * b + 3 * s * t * t * c + t**3 * d
    return found


@given(st.tuples(points, points, points, points))
def test_the_lines_end_at_the_target_and_stay_at_the_curve(
    curve: tuple[tuple[float, float], ...],
) -> None:
    ends = list(cut(curve))
    assert np.allclose(ends[-1], curve[-1])
    assert len(ends) <= 2 / SHORTEST_STEP
    fine = np.array([on_curve(curve, t) for t in np.linspace(0.0, 1.0, 2001)])
    step = np.linalg.norm(np.diff(fine, axis=0), axis=1).max()
    for end in ends:
        assert np.linalg.norm(fine - np.array(end), axis=1).min() <= step


def test_a_machine_follows_the_curve(machine: Talk) -> None:
    moves = machine.say("G1 F300", "G5 X30 Y20 I10 J15 P-8 Q12")
    curve = ((0.0, 0.0), (10.0, 15.0), (22.0, 32.0), (30.0, 20.0))
    ends = [move.target[:2] for move in moves if isinstance(move, AxisMove)]
    assert len(ends) == len(moves) > 8
    assert np.allclose(ends, list(cut(curve, single_number)), atol=1e-4)
    assert machine.at.axes[:2] == (30.0, 20.0)


def test_a_quadratic_curve_is_the_cubic_one_of_the_same_shape(machine: Talk) -> None:
    moves = machine.say("F300", "G5.1 X30 Y0 I15 J30")
    ends = np.array([move.target[:2] for move in moves if isinstance(move, AxisMove)])
    assert np.allclose(ends[:, 1], ends[:, 0] * (30.0 - ends[:, 0]) / 7.5 / 2.0, atol=1e-3)


def test_the_tool_of_an_arm_follows_the_same_curve(arm: Talk) -> None:
    moves = arm.say("G1 F300", "G5 X30 Y20 I10 J15 P-8 Q12")
    curve = ((0.0, 0.0), (10.0, 15.0), (22.0, 32.0), (30.0, 20.0))
    lines = [move for move in moves if isinstance(move, LineMove)]
    assert len(lines) == len(moves)
    assert np.allclose([(m.target.x, m.target.y) for m in lines], np.array(list(cut(curve))) / 1e3)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("G5 X1 Y1 I1 J1 P1", error_numbers.MISSING_WORD),
        ("G5 X1 Y1 I1 P1 Q1", error_numbers.MISSING_WORD),
        ("G5.1 X1 Y1 I1", error_numbers.MISSING_WORD),
        ("G5.1 X1 Y1 I0 J1", error_numbers.RANGE),
        ("G18 G5 X1 Y1 I1 J1 P1 Q1", error_numbers.WRONG_PLANE),
        ("G5 X1 Z1 I1 J1 P1 Q1", error_numbers.AXIS_CONFLICT),
        ("G5 X1 I1 J1 K1 P1 Q1", error_numbers.UNUSED_WORD),
    ],
)
def test_refused(machine: Talk, arm: Talk, line: str, code: int) -> None:
    for talk in (machine, arm):
        talk.say("F100")
        assert talk.refused(line).code == code


def test_a_joint_does_not_follow_a_spline(arm: Talk) -> None:
    arm.say("F100")
    assert arm.refused("G5 A1 I1 J1 P1 Q1").code == error_numbers.UNSUPPORTED
    assert arm.refused("G5 I1 J1 P1 Q1").code == error_numbers.NO_AXIS_WORDS


def test_a_chain_of_splines_needs_i_and_j_only_once(machine: Talk) -> None:
    machine.say("F100", "G5 X3 Y2 I1 J1 P2 Q-1")
    ends = [move.target[:2] for move in machine.say("X6 Y0 P1 Q1") if isinstance(move, AxisMove)]
    curve = ((3.0, 2.0), (2.0, 1.0), (7.0, 1.0), (6.0, 0.0))
    assert np.allclose(ends, list(cut(curve, single_number)), atol=1e-5)
    assert all(a != b for a, b in itertools.pairwise(ends))
