"""Effects of G-code lines on the controller, except moves of the tool."""

import numpy as np
import pytest
from tests.robots.arm.bench import arm, degrees, output, prompt_arm, refusal, run, send, until_idle

from understudy import Refused, VirtualController
from understudy.robots.arm.controller import ArmController as Inner
from understudy.units import DEG


def moment(controller: VirtualController, pin: int, seconds: float, step: float = 1e-3) -> float:
    """The time at which an output goes on."""
    for _ in range(round(seconds / step)):
        if output(controller, pin):
            break
        controller.advance(step)
    assert output(controller, pin), "it never went on"
    return controller.simulation_time()


# ── refused lines ───────────────────────────────────────────────────────────────────────────────


def test_a_soft_limit_is_reported_before_any_motion() -> None:
    controller = arm()
    send(controller, "G1 B75 A10 F600")
    controller.run_until_idle()
    status = controller.status()
    assert status.error_message == "J2 = 75.0° is outside -120.0°…60.0° (line 1: G1 B75 A10 F600)"
    assert status.error_code == 2
    assert degrees(controller) == [0] * 6


def test_an_error_sticks_until_an_empty_line() -> None:
    controller = arm()
    send(controller, "G0 A171", "M64 P5")
    controller.advance(0.1)
    reason = controller.status().error_message
    assert "(line 1: G0 A171)" in reason
    assert refusal(controller.send_gcode("G0 A1")) == reason
    assert refusal(controller.send_gcode("M64 P5")) == reason
    assert controller.send_gcode("") is None
    assert not controller.status().error
    run(controller, "G0 A1")
    assert not output(controller, 5), "what stood behind the failing line is forgotten"


def test_an_error_sticks_until_a_reset() -> None:
    controller = arm()
    send(controller, "G0 A171")
    controller.advance(0.1)
    controller.reset()
    assert controller.is_enabled()
    run(controller, "G0 A1")


def test_lines_after_a_failed_line_are_dropped() -> None:
    """In the queue, or still delayed."""
    controller = arm(simulation={"command_delay_ms": 10})
    send(controller, "G0 A171")
    controller.advance(0.005)
    send(controller, "G0 A20")
    controller.home()
    controller.advance(0.006)
    assert controller.status().error
    controller.send_gcode("")
    controller.run_until_idle()
    assert controller.simulation_time() < 0.03
    assert degrees(controller) == [0] * 6


def test_jog_and_home_are_accepted_after_an_error() -> None:
    controller = arm(start_deg=[5, 0, 0, 0, 0, 0])
    send(controller, "G0 A171")
    controller.advance(0.1)
    assert controller.jog(0, 0.1) is None
    controller.advance(0.1)
    controller.stop_jog()
    controller.run_until_idle()
    assert controller.home() is None
    controller.run_until_idle()
    assert controller.is_homed()


def test_queued_motion_and_its_outputs_finish_when_a_later_line_fails() -> None:
    controller = arm()
    send(controller, "G1 A10 F600", "M62 P3", "G1 A20", "G1 A171")
    controller.advance(0.1)
    assert controller.status().error
    assert not output(controller, 3)
    controller.run_until_idle()
    assert degrees(controller)[0] == 20
    assert output(controller, 3)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("G12345", "line 1, column 1: G12345"),
        ("G0 A1 hello", "line 1, column 7: "),
        ("G0 A1.2.3", "line 1, column 8: "),
        ("G0 A1\nG0 A2", "line 1, column "),
        ("G0 A", "line 1, column 4: "),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_at_once_and_not_queued(
    line: str, reason: str
) -> None:
    controller = arm()
    assert refusal(controller.send_gcode(line)).startswith(reason)
    run(controller, "G0 B1")
    assert degrees(controller) == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("G1 Q7 F1", "line 1, column 4: Q7"),
        ("G1 A1", "line 1, column 1: G1: needs a feed"),
        ("G1 X1 U1 F1", "line 1, column 7: U1"),
        ("M64 P99", "line 1, column 5: P99"),
        ("M6 T7", "there is no tool 7; there are: T0 (line 1: M6 T7)"),
    ],
)
def test_a_line_that_is_invalid_in_its_state_fails_when_it_is_executed(
    line: str, reason: str
) -> None:
    controller = prompt_arm()
    send(controller, line)
    controller.run_until_idle()
    assert controller.status().error_message.startswith(reason)
    assert degrees(controller) == [0] * 6


# ── home ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [0, 4])
def test_home_of_one_axis_moves_and_homes_only_that(first: int) -> None:
    controller = prompt_arm(start_deg=[10, 10, 10, 10, 10, 10])
    controller.home(first)
    controller.run_until_idle()
    assert degrees(controller) == [0 if axis == first else 10 for axis in range(6)]
    assert not controller.is_homed()
    for axis in {*range(6)} - {first}:
        controller.home(axis)
    controller.run_until_idle()
    assert controller.is_homed()


def test_home_when_already_there_takes_no_time() -> None:
    controller = prompt_arm()
    controller.home()
    assert controller.is_homed()
    assert not controller.status().moving


def test_home_waits_for_the_running_lines() -> None:
    controller = prompt_arm()
    send(controller, "G0 A10 W10", "G4 P1")
    controller.home()
    send(controller, "G0 A5")
    controller.run_until_idle()
    assert controller.is_homed()
    assert degrees(controller)[0] == 5


def test_homing_is_not_required_before_motion() -> None:
    controller = arm()
    run(controller, "G0 A10")
    assert not controller.is_homed()


def test_home_is_configurable() -> None:
    home = [0, -20, 20, 0, 10, 0]
    controller = prompt_arm(home_deg=home)
    run(controller, "G28")
    assert degrees(controller) == home
    run(controller, "G0 A10 V0")
    controller.home()
    controller.run_until_idle()
    assert degrees(controller) == home


@pytest.mark.parametrize(("dialect", "homed"), [("arm", True), ("grblhal", False)])
def test_g28_homes_in_the_seed_dialect_only(dialect: str, homed: bool) -> None:
    controller = prompt_arm(dialect=dialect, start_deg=[10, 0, 0, 0, 0, 0])
    send(controller, "G28")
    assert not controller.is_homed(), "not before it is there"
    controller.run_until_idle()
    assert degrees(controller) == [0] * 6
    assert controller.is_homed() is homed


# ── outputs ─────────────────────────────────────────────────────────────────────────────────────


def test_m62_and_m63_act_when_the_next_motion_begins() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M62 P3", "G1 A20", "M63 P3", "G1 A30")
    on = moment(controller, 3, 5.0)
    assert degrees(controller)[0] == pytest.approx(10, abs=0.02)
    while output(controller, 3):
        controller.advance(1e-3)
    assert controller.simulation_time() - on == pytest.approx(1.0, abs=2e-3)
    assert degrees(controller)[0] == pytest.approx(20, abs=0.02)


def test_m67_acts_with_the_motion_and_m68_at_once() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M67 E0 Q4.5", "M68 E1 Q2.5", "G1 A20")
    assert controller.analog_io().outputs[:2] == (0.0, 2.5)
    controller.advance(0.9)
    assert controller.analog_io().outputs[0] == 0.0
    controller.advance(0.2)
    assert controller.analog_io().outputs[0] == 4.5


def test_m62_without_a_motion_acts_when_the_queue_runs_empty() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M62 P3")
    controller.advance(0.9)
    assert not output(controller, 3)
    controller.run_until_idle()
    assert output(controller, 3)
    send(controller, "M63 P3")
    assert not output(controller, 3), "nothing is under way: now"


def test_m64_and_m65_act_at_once() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M64 P3")
    assert output(controller, 3)
    send(controller, "M65 P3")
    assert not output(controller, 3)


def test_a_hold_sets_no_output_of_later_motion() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M62 P3", "G1 A20")
    controller.advance(0.5)
    controller.hold()
    send(controller, "M62 P4", "G1 A30")
    controller.advance(2.0)
    assert controller.digital_io().outputs == 0
    controller.cycle_start()
    moment(controller, 3, 5.0)
    assert degrees(controller)[0] == pytest.approx(10, abs=0.02)
    moment(controller, 4, 5.0)
    assert degrees(controller)[0] == pytest.approx(20, abs=0.02)


def test_an_unknown_pin_is_refused_with_the_allowed_ones() -> None:
    controller = arm(io={"digital_outputs": 4})
    assert refusal(controller.set_digital_output(4, True)) == ("there is no DO4; allowed: 0…3")


def test_a_voltage_out_of_range_is_refused_and_the_old_one_stays() -> None:
    controller = prompt_arm()
    controller.set_analog_output(0, 3.0)
    assert refusal(controller.set_analog_output(0, 10.5)) == "10.5 V is outside 0…10 V"
    send(controller, "M68 E0 Q12")
    controller.run_until_idle()
    assert controller.status().error_message == "12 V is outside 0…10 V (line 1: M68 E0 Q12)"
    assert controller.analog_io().outputs[0] == 3.0


def test_a_refused_voltage_with_motion_names_the_line_of_the_motion() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M67 E0 Q12", "G1 A20", "G1 A30", "G1 A40")
    controller.run_until_idle()
    assert controller.status().error_message == "line 3: 12 V is outside 0…10 V"


def test_arc_and_gas_have_their_pins() -> None:
    controller = prompt_arm()
    run(controller, "M7", "M3")
    assert controller.digital_io().outputs == 0b11
    run(controller, "M5")
    assert controller.digital_io().outputs == 0b10
    run(controller, "M9")
    assert controller.digital_io().outputs == 0


def test_the_arc_waits_for_the_motion_before_it() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M3", "G1 A20", "M5")
    moment(controller, 0, 2.0)
    assert degrees(controller)[0] == 10
    controller.run_until_idle()
    assert not output(controller, 0)


@pytest.mark.parametrize("end", ["M2", "M30"])
def test_the_end_of_a_program_switches_arc_and_gas_off(end: str) -> None:
    controller = prompt_arm()
    run(controller, "M7", "M3", "M64 P8", "G91", end, "G1 A5 F600", "G1 A5")
    assert controller.digital_io().outputs == 1 << 8
    assert degrees(controller)[0] == 5, "and G90 is in force again"


# ── inputs ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [(1, False, True), (2, True, False), (3, False, True), (4, True, False)],
    ids=["rise", "fall", "high", "low"],
)
def test_m66_waits_for_an_input(mode: int, before: bool, after: bool) -> None:
    controller = prompt_arm()
    controller.set_digital_input(4, before)
    send(controller, f"M66 P4 L{mode} Q10", "M64 P1")
    controller.advance(2.5)
    assert controller.status().moving
    assert not output(controller, 1)
    controller.set_digital_input(4, after)
    assert output(controller, 1)
    assert not controller.status().moving
    assert controller.input_result() == float(after)


@pytest.mark.parametrize(("mode", "level"), [(1, True), (2, False)], ids=["rise", "fall"])
def test_an_edge_is_not_a_level(mode: int, level: bool) -> None:
    controller = prompt_arm()
    controller.set_digital_input(4, level)
    send(controller, f"M66 P4 L{mode} Q10")
    controller.advance(1.0)
    assert controller.status().moving
    controller.set_digital_input(4, not level)
    assert controller.status().moving
    controller.set_digital_input(4, level)
    assert not controller.status().moving


@pytest.mark.parametrize(("mode", "level"), [(3, True), (4, False)], ids=["high", "low"])
def test_m66_does_not_wait_for_a_level_already_present(mode: int, level: bool) -> None:
    controller = prompt_arm()
    controller.set_digital_input(4, level)
    run(controller, f"M66 P4 L{mode} Q10")
    assert controller.simulation_time() == 0.0


@pytest.mark.parametrize("mode", [1, 2, 3, 4])
def test_m66_times_out(mode: int) -> None:
    controller = prompt_arm()
    controller.set_digital_input(4, mode == 4)
    send(controller, f"M66 P4 L{mode} Q1.5", "M64 P1")
    controller.run_until_idle()
    assert controller.simulation_time() == pytest.approx(1.5)
    assert controller.input_result() == -1.0
    assert output(controller, 1)


def test_m66_l0_reads_and_does_not_wait() -> None:
    controller = prompt_arm()
    controller.set_digital_input(4, True)
    run(controller, "M66 P4 L0")
    assert controller.input_result() == 1.0
    controller.set_analog_input(2, 7.25)
    run(controller, "M66 E2 L0")
    assert controller.input_result() == 7.25
    assert controller.simulation_time() == 0.0


def test_m66_begins_when_the_motion_before_has_ended() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "M66 P4 L3 Q1")
    controller.run_until_idle()
    assert controller.simulation_time() == pytest.approx(10 / 10 + 10 / 500 + 1.0)


def test_an_output_may_change_an_input_in_the_same_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wired through: DO4 is DI4."""
    controller = prompt_arm()
    pins = controller._inner.io
    set_output = pins.set_digital_output

    def wired(pin: int, value: bool, now: int) -> Refused | None:
        return set_output(pin, value, now) or pins.set_digital_input(pin, value, now)

    monkeypatch.setattr(pins, "set_digital_output", wired)
    run(controller, "M64 P4", "M66 P4 L3 Q5", "M64 P5", "M65 P4", "M66 P4 L4 Q5", "M64 P6")
    assert controller.digital_io().outputs == 0b110_0000
    assert controller.simulation_time() == 0.0


# ── pauses ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pause", ["M0", "M60"])
def test_a_pause_waits_for_cycle_start(pause: str) -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", pause, "G1 A20")
    controller.run_until_idle()
    controller.advance(10.0)
    assert controller.status().state == "Hold"
    assert not controller.status().moving
    assert degrees(controller)[0] == 10
    controller.cycle_start()
    controller.run_until_idle()
    assert degrees(controller)[0] == 20


def test_an_optional_pause_is_optional() -> None:
    for wanted in (False, True):
        controller = prompt_arm()
        controller.set_optional_stop(wanted)
        send(controller, "M1", "M64 P1")
        controller.run_until_idle()
        assert output(controller, 1) is not wanted
        controller.cycle_start()
        assert output(controller, 1)


# ── motion ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("mode", "rests"), [("G61", True), ("G64", False)])
def test_g61_comes_to_rest_at_corners_and_g64_does_not(mode: str, rests: bool) -> None:
    controller = prompt_arm()
    send(controller, mode, "G1 A10 F600", "G1 A20", "G1 A30")
    rows = until_idle(controller)
    inside = rows[(rows[:, 0, 0] > 1 * DEG) & (rows[:, 0, 0] < 29 * DEG), 1, 0]
    assert bool(inside.min() < 1 * DEG) is rests


def test_increments_add_up() -> None:
    controller = prompt_arm()
    run(controller, "G91", "G1 A10 F600", "G1 A10 B-5", "G90", "G1 C5")
    assert degrees(controller) == [20, -5, 5, 0, 0, 0]


def test_increments_start_from_the_end_of_a_jog() -> None:
    controller = prompt_arm()
    run(controller, "G91", "G1 A10 F600")
    controller.jog(0, 0.5)
    controller.advance(0.5)
    controller.stop_jog()
    controller.run_until_idle()
    here = degrees(controller)[0]
    run(controller, "G1 A10")
    assert degrees(controller)[0] == pytest.approx(here + 10, abs=1e-6)


def test_joint_words_of_the_wire_dialect() -> None:
    controller = prompt_arm(dialect="grblhal")
    run(controller, "G1 X1 Y-2 Z3 A4 B5 C6 F600")
    assert degrees(controller) == pytest.approx([1, -2, 3, 4, 5, 6], abs=1e-5)


def test_inverse_time() -> None:
    controller = prompt_arm()
    run(controller, "G93 G1 A10 F30")
    # Two seconds at constant speed, plus the ramps.
    assert controller.simulation_time() == pytest.approx(2.0 + 5 / 500)


def test_the_buffer_is_the_planner_window() -> None:
    controller = prompt_arm(planner_blocks=20)
    assert (controller.status().buffer_available, controller.status().buffer_used) == (20, 0)
    send(controller, *(f"G1 A{i % 7 + 1} F600" for i in range(5)))
    assert (controller.status().buffer_available, controller.status().buffer_used) == (15, 5)
    send(controller, *(f"G1 A{i % 7 + 1} F600" for i in range(500)))
    assert (controller.status().buffer_available, controller.status().buffer_used) == (0, 20)
    controller.run_until_idle()
    assert (controller.status().buffer_available, controller.status().buffer_used) == (20, 0)


def test_the_status_names_the_running_line() -> None:
    controller = prompt_arm()
    send(controller, "G1 A10 F600", "(a remark)", "G1 A20", "G4 P1", "G1 A30")
    seen = []
    while controller.status().moving:
        seen.append(controller.status().line)
        controller.advance(0.05)
    assert sorted(set(seen)) == [1, 3, 4, 5]


def test_a_reset_restores_the_default_modes() -> None:
    controller = prompt_arm()
    run(controller, "G91 G61", "G20")
    controller.reset()
    send(controller, "G1 A10 F600", "G1 A20", "G1 A30")
    rows = until_idle(controller)
    assert degrees(controller)[0] == 30
    middle = rows[(rows[:, 0, 0] > 1 * DEG) & (rows[:, 0, 0] < 29 * DEG), 1, 0]
    assert middle.min() > 5 * DEG, "G64 is in force again"


# ── cost ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "lines",
    [
        250,
        pytest.param(5_000, marks=pytest.mark.soak),
        pytest.param(50_000, marks=pytest.mark.soak),
    ],
)
def test_a_long_program_is_planned_once(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost grows with its length: a line is planned once, and wakes the controller once."""
    controller = prompt_arm()
    wakes: list[int] = []
    inner = controller._inner
    wake = type(inner).wake

    def counted(self: Inner, now: int) -> None:
        wakes.append(now)
        wake(self, now)

    monkeypatch.setattr(type(inner), "wake", counted)
    send(controller, *(f"G1 A{i % 40} B{i % 7} F6000" for i in range(lines)))
    controller.run_until_idle(1e6)
    assert inner._drives.runner.state.executed == lines
    assert len(wakes) <= lines + 10
    assert degrees(controller)[:2] == [(lines - 1) % 40, (lines - 1) % 7]
    assert np.isfinite(controller.simulation_time())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("G2 X500 Y0 I1000000000 F600", "line 2, column 1: G2: is 6.283e+06 m long"),
        ("G1 X1000000000 F600", "a path of "),
    ],
)
def test_a_move_with_a_huge_target_is_refused(line: str, reason: str) -> None:
    controller = arm()
    run(controller, "G0 X500 Y0 Z500 A180 B0 C0")
    controller.send_gcode(line)
    controller.advance(0.1)
    assert controller.status().error_message.startswith(reason)
