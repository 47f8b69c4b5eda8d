"""G50 and G51."""

import math

from tests.gcode.talk import Talk

from understudy.gcode import Modal, active_codes, after_reset, error_numbers, work_offset
from understudy.gcode.requests import AxisArc, ScalingChanged


def test_axis_words_are_multiplied(machine: Talk) -> None:
    assert machine.say("G51 X2 Y.5") == [ScalingChanged()]
    machine.say("G0 X5 Y1 Z3")
    assert machine.at.axes[:3] == (10.0, 0.5, 3.0)
    machine.say("G91 X1 Y1")
    assert machine.at.axes[:3] == (12.0, 1.0, 3.0)
    machine.say("G92 X1")
    assert work_offset(machine.modal)[0] == 10.0
    assert "G51:XY" in active_codes(machine.modal)


def test_g50_g28_and_reset_end_it(machine: Talk) -> None:
    for end in ("G50", "G28"):
        machine.say("G51 X2")
        assert ScalingChanged() in machine.say(end)
        assert machine.modal.scaling == Modal().scaling
    machine.say("G51 X2")
    assert after_reset(machine.modal).scaling == Modal().scaling


def test_the_factors_stay_if_the_line_is_refused(machine: Talk) -> None:
    assert machine.refused("G51 X2 K1").code == error_numbers.UNUSED_WORD
    assert machine.modal.scaling.factors[0] == 2.0


def test_one_negative_factor_turns_an_arc_round(machine: Talk) -> None:
    machine.say("F100", "G51 Y-1")
    (arc,) = machine.say("G2 X2 Y0 I1")
    assert isinstance(arc, AxisArc)
    assert math.isclose(arc.angle, math.pi)


def test_g51_needs_factors(machine: Talk) -> None:
    assert machine.refused("G51").code == error_numbers.NO_AXIS_WORDS
    assert machine.refused("G51 P2").code == error_numbers.NO_AXIS_WORDS


def test_an_arm_in_its_own_dialect_does_not_scale(arm: Talk) -> None:
    assert arm.refused("G51 X2").code == error_numbers.UNSUPPORTED
    assert arm.say("G50") == []
