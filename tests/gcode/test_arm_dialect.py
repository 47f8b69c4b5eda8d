"""The arm's own dialect: joints or the tool, never both in one line; requests in SI."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gcode.talk import Talk

from understudy.gcode import ARM, GRBLHAL_ARM, Axes, Dialect, Interpretation, Modal, Tool
from understudy.gcode.requests import (
    Coolant,
    GoHome,
    JointMove,
    KinematicsMode,
    LineMove,
    OffsetsChanged,
    PathMode,
    Probe,
    SetOutput,
    Spindle,
)
from understudy.gcode.work import six
from understudy.space.pose import Pose
from understudy.units import DEG

SCAN = (400.0, 0.0, 500.0, 180.0, 0.0, 0.0)


@pytest.fixture
def arm() -> Talk:
    return Talk(ARM).stand(pose=SCAN)


def joints(a: float, b: float, c: float, u: float, v: float, w: float) -> Axes:
    """Degrees as the requests have them."""
    return six([math.radians(degree) for degree in (a, b, c, u, v, w)])


def test_the_first_line_of_all() -> None:
    talk = Talk(replace(ARM, feed_per_second=True))
    assert talk.say("G1 A45 F100") == [JointMove(joints(45, 0, 0, 0, 0, 0), speed=100 * DEG)]


def test_feed_is_per_minute_by_default(arm: Talk) -> None:
    (move,) = arm.say("G1 A45 F120")
    assert isinstance(move, JointMove)
    assert move.speed == pytest.approx(2 * DEG)


def test_six_letters_for_six_joints(arm: Talk) -> None:
    assert arm.say("G0 A1 B2 C3 U4 V5 W6") == [JointMove(joints(1, 2, 3, 4, 5, 6))]
    assert arm.say("G0 W0") == [JointMove(joints(1, 2, 3, 4, 5, 0))]


def test_xyz_moves_the_tool_and_abc_turn_it(arm: Talk) -> None:
    (move,) = arm.say("G1 X410 C90 F600")
    assert isinstance(move, LineMove)
    assert move.target == pytest.approx(Pose(0.41, 0, 0.5, math.pi, 0, math.pi / 2))
    assert move.speed == pytest.approx(0.01)
    assert move.turning == pytest.approx(10 * DEG)


def test_a_line_is_joint_or_cartesian(arm: Talk) -> None:
    refused = arm.refused("G0 X1 U5", number=3)
    assert refused.code == 24
    assert refused.reason.startswith("line 3, column 7: U5: ")


def test_abc_alone_follow_the_mode(arm: Talk) -> None:
    assert isinstance(arm.say("G0 A10")[0], JointMove)
    assert arm.say("M429") == [KinematicsMode(world=True)]
    assert isinstance(arm.say("G0 A10")[0], LineMove)
    assert isinstance(arm.say("G0 A10 W1")[0], JointMove)
    assert [type(request) for request in arm.say("M428 G0 A10")] == [KinematicsMode, JointMove]


def test_increments_start_from_the_commanded_position(arm: Talk) -> None:
    arm.stand(axes=(10, 0, 0, 0, 0, 0))
    (joint,) = arm.say("G91 G0 A5 W1")
    assert joint == JointMove(joints(15, 0, 0, 0, 0, 1))
    (line,) = arm.say("X10 C5")
    assert isinstance(line, LineMove)
    assert line.target == pytest.approx(Pose(0.41, 0, 0.5, math.pi, 0, 5 * DEG))


def test_inches_are_for_the_tool_only(arm: Talk) -> None:
    line, joint = arm.say("G20 G0 X1 C90", "W90")
    assert isinstance(line, LineMove)
    assert line.target == pytest.approx(Pose(0.0254, 0, 0.5, math.pi, 0, math.pi / 2))
    assert joint == JointMove(joints(0, 0, 0, 0, 0, 90))


def test_work_offsets_shift_the_tool_and_not_the_joints(arm: Talk) -> None:
    arm.say("G10 L2 P2 X100 Z10", "G55")
    (line,) = arm.say("G0 X1 Y0 Z0")
    assert isinstance(line, LineMove)
    assert line.target == pytest.approx(Pose(0.101, 0, 0.01, math.pi, 0, 0))
    assert arm.say("G0 A10") == [JointMove(joints(10, 0, 0, 0, 0, 0))]
    (line,) = arm.say("G53 G0 X1")
    assert isinstance(line, LineMove)
    assert line.target.x == pytest.approx(0.001)


@pytest.mark.parametrize("line", ["G92 A0", "G10 L2 P1 U5", "G43.1 W1"])
def test_joints_have_no_offsets(arm: Talk, line: str) -> None:
    assert arm.refused(line).code == 20


def test_g92_sets_the_coordinates_of_the_tool(arm: Talk) -> None:
    assert arm.say("G92 X0 Z0") == [OffsetsChanged((400, 0, 500, 0, 0, 0))]


def test_home_is_all_joints_at_zero(arm: Talk) -> None:
    arm.stand(axes=(1, 2, 3, 4, 5, 6))
    home = GoHome("G28", JointMove(joints(0, 0, 0, 0, 0, 0)))
    assert arm.say("G28") == [home]
    arm.stand(axes=(1, 2, 3, 4, 5, 6))
    assert arm.say("G28 U10")[1] == GoHome("G28", JointMove(joints(1, 2, 3, 0, 5, 6)))
    way_point, at_home = arm.say("G91 G28 Z50")
    assert isinstance(way_point, LineMove)
    assert way_point.target.z == pytest.approx(0.55)
    assert at_home == home


def test_arcs_are_for_the_tool(arm: Talk) -> None:
    arm.say("F100")
    assert arm.refused("G2 A10 I5").code == 20
    assert arm.refused("G2 U10 I5").code == 20


def test_probing_requests_are_in_si(arm: Talk) -> None:
    (probe,) = arm.say("G38.3 Z400 F60")
    assert isinstance(probe, Probe)
    assert isinstance(probe.move, LineMove)
    assert (probe.toward, probe.required) == (True, False)


def test_inverse_time_is_a_duration(arm: Talk) -> None:
    assert arm.say("G93 G1 A45 F30") == [JointMove(joints(45, 0, 0, 0, 0, 0), duration=2)]


def test_welding_lines(arm: Talk) -> None:
    assert arm.say("M7", "M3 S180", "M64 P31", "M5", "M9") == [
        Coolant(mist=True, flood=False),
        Spindle("M3", 180),
        SetOutput(31, on=True, with_motion=False),
        Spindle("M5", 180),
        Coolant(mist=False, flood=False),
    ]


def test_path_modes(arm: Talk) -> None:
    assert arm.say("G64 P0.5", "G61") == [PathMode("G64", 0.5), PathMode("G61")]
    assert arm.refused("G64 P-1").code == 4


@pytest.mark.parametrize(("line", "code"), [("M66 L0", 28), ("M64 P32", 39), ("M429 X", 2)])
def test_refusals(arm: Talk, line: str, code: int) -> None:
    assert arm.refused(line).code == code


def test_tool_lengths_from_the_table() -> None:
    tools = (Tool(1, (0, 0, 150, 0, 0, 0)), Tool(2, (0, 0, 80, 0, 0, 0)))
    talk = Talk(ARM, Modal(tools=tools))
    assert talk.say("G43 H2") == [OffsetsChanged((0, 0, 80, 0, 0, 0))]
    assert talk.modal.tool_offset == "G43"
    assert talk.say("T1 M6 G43")[-1] == OffsetsChanged((0, 0, 150, 0, 0, 0))
    talk.say("G10 L1 P1 Z160", "G43 H1")
    assert talk.modal.tool_length[2] == 160
    assert talk.refused("G43 H7").code == 38
    assert talk.refused("T7").code == 38
    assert Talk(ARM).refused("G43 H1").code == 20


def test_on_the_wire_xyzabc_are_the_joints() -> None:
    (move,) = Talk(GRBLHAL_ARM).say("G1 X45 C-10 F60")
    assert isinstance(move, JointMove)
    assert move.target == pytest.approx(joints(45, 0, 0, 0, 0, -10))
    assert move.speed == pytest.approx(DEG)


VOCABULARY = """
    G0 G1 G2 G3 G10 G20 G28 G30.1 G38.2 G43.1 G49 G53 G54 G55 G80 G90 G91 G92 G93
    M2 M3 M6 M62 M66 M68 M429 X1 Y2 Z-3 A4 B5 C6 U7 V8 W9 X999999999999 R999999999999
    I1 J2 K3 R4 P1 L2 L20 Q1 E1 F60 F0.0000001 S1 T1 N1
"""
WORDS = st.sampled_from(VOCABULARY.split())
PROGRAMS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=6)


@given(PROGRAMS, st.sampled_from([ARM, GRBLHAL_ARM]))
def test_any_program_is_carried_out_or_refused(program: list[str], dialect: Dialect) -> None:
    talk = Talk(dialect).stand(pose=SCAN)
    for line in program:
        before = talk.modal
        step = talk.answer(line)
        assert isinstance(step, Interpretation) or talk.modal is before
