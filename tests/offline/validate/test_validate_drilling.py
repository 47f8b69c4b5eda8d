"""Validation of canned cycles: reach, contacts, travel and time are those of their moves."""

import pytest
from tests.offline.validate.cases import cell, proved_text

from understudy.app.build import build_cell
from understudy.wire.exchange import InProcessCell

ABOVE = "G21 G90 G94\nG0 X450 Y0 Z450 A180 B0 C0\n"
HOMED_HERE = b"$22=33\n$44=0\n$45=0\n$H\n"
"""Homing by hand: the machine has no switches, and stands at zero."""
FREE = {
    "G98 G81 X440 Y10 Z400 R430 F3000": "G0 X440 Y10\nG0 Z430\nG1 Z400 F3000\nG0 Z450",
    "G99 G82 X440 Z410 R430 P0.3 F3000": "G0 X440\nG0 Z430\nG1 Z410 F3000\nG4 P0.3\nG0 Z430",
    "G98 G83 Y-20 Z400 R430 Q20 F3000": (
        "G0 Y-20\nG0 Z430\nG1 Z410 F3000\nG4 P0.25\nG0 Z450\nG1 Z400\nG4 P0.25\nG0 Z450"
    ),
    "G99 G85 Y-20 Z400 R430 F3000": "G0 Y-20\nG0 Z430\nG1 Z400 F3000\nG1 Z430",
    "G91 G99 G81 X10 Z-30 R-20 L2 F3000": (
        "G0 X460\nG0 Z430\nG1 Z400 F3000\nG0 Z430\nG0 X470\nG1 Z400\nG0 Z430"
    ),
}
"""Lines that nothing touches, and the same as single moves."""


@pytest.mark.parametrize("cycle", FREE)
def test_a_cycle_is_validated_as_its_moves(cycle: str) -> None:
    drilled = proved_text(ABOVE + cycle + "\n", "g60_welding")
    single = proved_text(ABOVE + FREE[cycle] + "\n", "g60_welding")
    assert drilled.passed
    assert drilled.total_s == pytest.approx(single.total_s, abs=1e-6)
    assert drilled.distance_m == pytest.approx(single.distance_m, rel=1e-4)
    assert drilled.least_clearance == pytest.approx(single.least_clearance, rel=1e-2)


def test_a_hole_that_goes_into_the_fixture_is_a_collision_on_its_line() -> None:
    report = proved_text(ABOVE + "G98 G81 X450 Y0 Z250 R400 F3000\nY20 Z380\nG80\n", "g60_welding")
    assert {each.line for each in report.violations} == {3}
    assert {each.kind for each in report.violations} == {"collision"}
    single = proved_text(ABOVE + "G0 Z400\nG1 Z250 F3000\nG0 Z450\n", "g60_welding")
    assert {each.contact.objects for each in report.violations if each.contact} == {
        each.contact.objects for each in single.violations if each.contact
    }


def test_a_hole_out_of_reach_is_a_violation_on_its_line() -> None:
    report = proved_text(ABOVE + "G81 X450 Y0 Z400 R430 F3000\nX9000\nX460\nG80\n", "bare")
    assert [(each.line, each.kind) for each in report.violations] == [(4, "unreachable")]


@pytest.mark.parametrize(
    ("plane", "words", "axis"),
    [
        ("G17", "Z-120 R-5", "Z -120 is outside -100…0"),
        ("G18", "Y-210 R-5", "Y -210 is outside -200…0"),
        ("G19", "X-310 R-5", "X -310 is outside -300…0"),
        ("G17", "Z-5 R3", "Z 3 is outside -100…0"),
    ],
)
def test_a_hole_beyond_the_travel_is_the_alarm_of_the_running_machine(
    plane: str, words: str, axis: str
) -> None:
    text = f"G21 G90 G94 {plane}\nG81 {words} F3000\n"
    (found,) = proved_text(text, "machine_travel").violations
    assert (found.line, found.kind, found.code) == (2, "joint_limit", 2)
    assert axis in found.message
    running = InProcessCell(build_cell(cell("machine_travel")))
    client = running.connect("machine.grblhal")
    assert client.ask(HOMED_HERE).count(b"ok") == 4, "soft limits hold for homed axes"
    client.say(text.encode())
    running.advance(60.0)
    assert b"ALARM:2" in client.received()
