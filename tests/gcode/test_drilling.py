"""Canned cycles: G73 and G81 … G89 become rapids, feeds and dwells."""

import pytest
from tests.gcode.talk import Talk

from understudy.gcode import ARM, GRBLHAL_MACHINE, error_numbers
from understudy.gcode.dialect import single
from understudy.gcode.requests import AxisMove, Dwell, LineMove, Request, Spindle


@pytest.fixture
def machine() -> Talk:
    talk = Talk(GRBLHAL_MACHINE)
    talk.say("G21 G90 G17 F300")
    return talk.stand(axes=(0, 0, 10, 0, 0, 0))


def heights(requests: list[Request], axis: int = 2) -> list[tuple[float, str]]:
    """Position of the drilling axis after each move, and how it is reached; dwells in seconds."""
    return [
        (each.target[axis], "rapid" if each.rapid else "feed")
        if isinstance(each, AxisMove)
        else (each.seconds, "dwell")
        for each in requests
        if isinstance(each, AxisMove | Dwell)
    ]


def test_a_hole_is_reached_by_rapids_and_drilled_with_the_feed(machine: Talk) -> None:
    assert machine.say("G81 X5 Y6 Z-2 R1") == [
        AxisMove((5, 6, 10, 0, 0, 0), rapid=True),
        AxisMove((5, 6, 1, 0, 0, 0), rapid=True),
        AxisMove((5, 6, -2, 0, 0, 0), feed=300),
        AxisMove((5, 6, 10, 0, 0, 0), rapid=True),
    ]
    assert machine.at.axes == (5, 6, 10, 0, 0, 0)


def test_the_next_hole_needs_its_place_only(machine: Talk) -> None:
    machine.say("G99 G81 X5 Z-2 R1")
    assert machine.say("X7") == [
        AxisMove((7, 0, 1, 0, 0, 0), rapid=True),
        AxisMove((7, 0, -2, 0, 0, 0), feed=300),
        AxisMove((7, 0, 1, 0, 0, 0), rapid=True),
    ]


def test_below_the_retract_position_the_first_move_goes_up(machine: Talk) -> None:
    machine.stand(axes=(0, 0, -5, 0, 0, 0))
    assert heights(machine.say("G81 X5 Z-2 R1"))[:2] == [(1, "rapid"), (1, "rapid")]


def test_g82_waits_at_the_bottom(machine: Talk) -> None:
    assert heights(machine.say("G82 Z-2 R1 P0.5"))[-2:] == [(0.5, "dwell"), (10, "rapid")]


def test_g83_leaves_the_hole_after_each_plunge(machine: Talk) -> None:
    down = heights(machine.say("G99 G83 Z-2 R1 Q2"))[2:]
    wait = (0.25, "dwell")
    assert down == [(-1, "feed"), wait, (1, "rapid"), (-2, "feed"), wait, (1, "rapid")]


def test_g73_only_breaks_the_chip_between_plunges(machine: Talk) -> None:
    down = heights(machine.say("G98 G73 Z-2 R1 Q2"))[2:]
    lifted = single(-1 + single(0.1))
    wait = (0.25, "dwell")
    assert down == [(-1, "feed"), wait, (lifted, "rapid"), (-2, "feed"), wait, (10, "rapid")]


def test_l_repeats_the_hole_in_steps_under_g91(machine: Talk) -> None:
    moves = machine.say("G91 G99 G81 X5 Z-3 R-9 L3")
    drilled = [m.target[:3] for m in moves if isinstance(m, AxisMove) and not m.rapid]
    assert drilled == [(5, 0, -2), (10, 0, -2), (15, 0, -2)]


@pytest.mark.parametrize(("plane", "axis"), [("G17", 2), ("G18", 1), ("G19", 0)])
def test_the_drilling_axis_is_normal_to_the_plane(machine: Talk, plane: str, axis: int) -> None:
    letter = "XYZ"[axis]
    machine.stand(axes=(0, 0, 0, 0, 0, 0))
    moves = heights(machine.say(f"{plane} G81 {letter}-2 R1"), axis)
    assert moves == [(1, "rapid"), (1, "rapid"), (-2, "feed"), (1, "rapid")]


def test_inches(machine: Talk) -> None:
    moves = heights(machine.say("G20 G99 G81 Z-1 R0.5"))
    assert moves[-1] == (single(single(0.5) * single(25.4)), "rapid")


def test_offsets_shift_the_retract_position(machine: Talk) -> None:
    moves = heights(machine.say("G10 L2 P1 Z3", "G99 G81 Z-2 R1"))
    assert moves[-2:] == [(1, "feed"), (4, "rapid")]


def test_g80_ends_the_cycle(machine: Talk) -> None:
    machine.say("G81 Z-2 R1", "G80")
    assert machine.refused("X5").code == error_numbers.AXIS_WORDS


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("G81 X1 R1", error_numbers.MISSING_WORD),
        ("G81 Z-1", error_numbers.MISSING_WORD),
        ("G82 Z-1 R1", error_numbers.MISSING_WORD),
        ("G83 Z-1 R1", error_numbers.MISSING_WORD),
        ("G83 Z-1 R1 Q0", error_numbers.NEGATIVE),
        ("G82 Z-1 R1 P-1", error_numbers.NEGATIVE),
        ("G81 Z2 R1", error_numbers.RETRACT_BELOW_DEPTH),
        ("G81 Z-1 R1 L0", error_numbers.NOT_POSITIVE),
        ("G81 Z-1 R1 A5", error_numbers.AXIS_CONFLICT),
        ("G84 Z-1 R1", error_numbers.UNSUPPORTED),
        ("G81 Z-1 R1 Q2", error_numbers.UNUSED_WORD),
        ("G83 Z-100 R1 Q0.001", error_numbers.RANGE),
    ],
)
def test_refused(machine: Talk, line: str, code: int) -> None:
    assert machine.refused(line).code == code


@pytest.mark.parametrize("cycle", ["G85", "G86 P1", "G89 P1"])
def test_the_firmware_accepts_these_cycles_and_does_not_drill(machine: Talk, cycle: str) -> None:
    assert machine.say(f"{cycle} X5 Z-2 R1".replace("P1", "") + cycle[3:]) == []


def test_an_arm_drills_with_its_tool() -> None:
    arm = Talk(ARM).stand(pose=(0, 0, 10, 0, 0, 0))
    arm.say("M3 S100")
    steps = arm.say("G86 X5 Z-2 R1 P1 F300")
    assert [type(step) for step in steps] == [
        LineMove,
        LineMove,
        LineMove,
        Dwell,
        Spindle,
        LineMove,
        Spindle,
    ]
