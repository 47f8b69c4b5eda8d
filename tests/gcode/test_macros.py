"""Macro calls of a controller without files, and M70 … M73."""

import pytest
from tests.gcode.talk import Talk

from understudy.gcode import active_codes, error_numbers
from understudy.gcode.requests import AxisMove, Coolant, Overrides, Spindle


@pytest.mark.parametrize("line", ["G65 P100", "M98 P100", "G66.1 P100"])
def test_there_are_no_macros_of_the_user(machine: Talk, line: str) -> None:
    assert machine.refused(line).code == error_numbers.RANGE
    assert machine.refused(line.partition(" ")[0]).code == error_numbers.MISSING_WORD


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("G65 P5 Q0", 0),
        ("G65 P5 Q1", error_numbers.RANGE),
        ("G65 P5", error_numbers.MISSING_WORD),
        ("G65 P4 L2", error_numbers.RANGE),
        ("G65 P4 X1 Y2 F-1 M3", 0),
        ("G65 P4 M3 M4", error_numbers.WORD_REPEATED),
        ("M3 G65 P4 O1", error_numbers.UNUSED_WORD),
        ("G65 P65536", error_numbers.RANGE),
        ("G67 P1", 0),
    ],
)
def test_the_firmwares_own_macros(machine: Talk, line: str, code: int) -> None:
    before = machine.modal
    if code:
        assert machine.refused(line).code == code
    else:
        assert machine.say(line) == []
    assert machine.modal == before


def test_g66_calls_its_macro_after_the_motion(machine: Talk) -> None:
    machine.say("G66 P100 X7 M3")
    assert "G66" in active_codes(machine.modal)
    refused = machine.answer("G0 X1")
    assert getattr(refused, "code", 0) == error_numbers.RANGE
    assert machine.at.axes[0] == 1.0
    machine.say("G66 P4", "G0 X2", "G67")
    assert "G66" not in active_codes(machine.modal)


def test_m98_comes_after_everything_else_and_is_forgotten_after_a_straight_line(
    machine: Talk,
) -> None:
    assert machine.refused("G91 M98 P100").code == error_numbers.RANGE
    assert machine.modal.distance == "G91"
    assert any(isinstance(each, AxisMove) for each in machine.say("G0 X1 M98 P100"))


def test_modes_are_saved_and_restored(machine: Talk) -> None:
    machine.say("F300 M3 S100 M8", "M70")
    before = machine.modal
    machine.say("G91 G20 G18 G55 G93 G99", "M4 S5 M9", "M50 P0", "G43.1 Z1", "G2 F1 I1 J1 K1 X0")
    requests = machine.say("M72")
    assert machine.modal.motion == "G2"
    for field in before.saved.__struct_fields__ if before.saved else ():
        assert getattr(machine.modal, field) == getattr(before, field), field
    assert Spindle("M3", 100.0) in requests
    assert Coolant(mist=False, flood=True) in requests
    assert Overrides(feed=True, speed=True, hold=True) in requests


@pytest.mark.parametrize("forgets", ["M71", "M2", "M30"])
def test_saved_modes_are_forgotten(machine: Talk, forgets: str) -> None:
    machine.say("M73", forgets, "G91", "M72")
    assert machine.modal.distance == "G91"


def test_the_last_code_of_a_line_counts(machine: Talk) -> None:
    machine.say("M70 M71")
    assert machine.modal.saved is None
    machine.say("M71 M70")
    assert machine.modal.saved is not None
