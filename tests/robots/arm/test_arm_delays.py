"""Commands and readings are delayed in simulated time; the emergency stop is not."""

import pytest
from tests.robots.arm.bench import arm, degrees, output, prompt_arm, refusal, send

from understudy import VirtualController
from understudy.units import DEG


def slow_arm(command_ms: float = 20.0, feedback_ms: float = 5.0) -> VirtualController:
    return arm(simulation={"command_delay_ms": command_ms, "feedback_delay_ms": feedback_ms})


# ── delays ──────────────────────────────────────────────────────────────────────────────────────


def test_a_command_acts_after_the_command_delay() -> None:
    controller = slow_arm(20, 0)
    send(controller, "M64 P5")
    controller.advance(0.0199)
    assert not output(controller, 5)
    controller.advance(0.0001)
    assert output(controller, 5)


def test_a_reading_is_as_old_as_the_feedback_delay() -> None:
    late, prompt = slow_arm(0, 5), slow_arm(0, 0)
    for controller in (late, prompt):
        send(controller, "G0 A30 W90")
        controller.advance(0.1)
    at_100_ms = prompt.joint_state()
    late.advance(0.005)
    assert late.joint_state() == at_100_ms


def test_readings_of_a_jog_are_delayed_across_changes() -> None:
    """A second axis, the end of a jog: no reading skips a part of the motion."""
    late, prompt = slow_arm(0, 5), slow_arm(0, 0)
    seen: list[list[object]] = [[], []]
    for controller, log in zip((late, prompt), seen, strict=True):
        controller.jog(0, 0.5)
        for step in range(400):
            if step == 100:
                controller.jog(4, -0.7)
            if step == 103:
                controller.jog(0, -0.2)
            if step == 200:
                controller.stop_jog()
            controller.advance(0.001)
            state = controller.joint_state()
            log.append((state.positions, state.velocities))
    assert seen[0][5:] == seen[1][:-5]


def test_command_and_feedback_delay_add_up() -> None:
    controller = slow_arm(20, 5)
    send(controller, "G0 A30")
    controller.advance(0.025)
    assert controller.joint_state().velocities[0] == 0.0
    controller.advance(0.001)
    assert controller.joint_state().velocities[0] > 0.0


def test_delayed_lines_keep_their_time_distance() -> None:
    controller = slow_arm(20, 0)
    send(controller, "M64 P0")
    controller.advance(0.01)
    send(controller, "M64 P1")
    controller.advance(0.01)
    assert (output(controller, 0), output(controller, 1)) == (True, False)
    controller.advance(0.01)
    assert output(controller, 1)


# ── emergency stop ──────────────────────────────────────────────────────────────────────────────


def test_the_emergency_stop_has_no_delay() -> None:
    controller = slow_arm(20, 5)
    send(controller, "G0 A90")
    controller.advance(0.5)
    before = controller.joint_state()
    controller.emergency_stop()
    after = controller.joint_state()
    assert not controller.is_enabled()
    assert after.velocities == after.accelerations == (0.0,) * 6
    # The difference is the feedback delay of 5 ms at 120 deg/s.
    assert (after.positions[0] - before.positions[0]) / DEG == pytest.approx(0.6, abs=1e-3)
    controller.advance(1.0)
    assert controller.joint_state() == after


def test_after_an_emergency_stop_enable_is_refused_until_reset() -> None:
    controller = arm()
    controller.emergency_stop()
    assert refusal(controller.enable()) == "emergency stop: reset first"
    assert refusal(controller.send_gcode("G0 A1")) == "emergency stop: reset first"
    assert refusal(controller.jog(0, 0.1)) == "emergency stop: reset first"
    assert refusal(controller.home()) == "emergency stop: reset first"
    status = controller.status()
    assert (status.state, status.error, status.error_code) == ("Alarm", True, 10)
    assert controller.reset() is None
    assert not controller.is_enabled(), "a reset enables nothing"
    assert controller.enable() is None
    assert controller.status().state == "Idle"


def test_readings_after_a_reset_do_not_show_the_ended_motion() -> None:
    controller = slow_arm(0, 5)
    send(controller, "G0 A90")
    controller.advance(0.5)
    controller.emergency_stop()
    stopped = controller.joint_state()
    controller.reset()
    assert controller.joint_state() == stopped


def test_an_emergency_stop_drops_delayed_lines() -> None:
    controller = slow_arm(20)
    send(controller, "G0 A90", "M64 P3")
    controller.advance(0.01)
    controller.emergency_stop()
    controller.reset()
    controller.enable()
    controller.advance(1.0)
    assert degrees(controller) == [0] * 6
    assert not output(controller, 3)


@pytest.mark.parametrize(
    "line", ["G4 P5", "M66 P3 L3 Q5", "M0", "G0 A90", "G1 A90 F60"], ids=lambda line: line[:3]
)
def test_an_emergency_stop_ends_every_activity(line: str) -> None:
    controller = prompt_arm()
    send(controller, line, "G4 P0", "M64 P3")
    controller.advance(0.25)
    controller.emergency_stop()
    assert not controller.status().moving
    controller.set_digital_input(3, True)
    controller.reset()
    controller.enable()
    controller.cycle_start()
    controller.advance(10.0)
    assert not output(controller, 3), "nothing of the program is left"
    send(controller, "M64 P4")
    assert output(controller, 4)


def test_an_emergency_stop_in_a_jog_leaves_the_arm_where_it_is() -> None:
    controller = arm()
    controller.jog(0, 0.5)
    controller.jog(5, 2.0)
    controller.advance(0.3)
    controller.emergency_stop()
    state = controller.joint_state()
    assert state.positions[0] > 0
    assert not any(state.velocities)
    controller.reset()
    controller.enable()
    controller.advance(0.5)
    assert controller.joint_state() == state
    assert controller.status().state == "Idle"


def test_a_stop_without_motion_switches_only_arc_and_gas_off() -> None:
    """A gripper must not open; `reset` clears all outputs, at the operator's wish."""
    for stop in ("emergency_stop", "stop", "disable"):
        controller = prompt_arm()
        send(controller, "M7", "M3", "M64 P8", "G1 A90 F600")
        controller.advance(1.0)
        assert controller.digital_io().outputs == 0b1_0000_0011
        getattr(controller, stop)()
        assert controller.digital_io().outputs == 0b1_0000_0000, stop
        controller.reset()
        assert controller.digital_io().outputs == 0


def test_disconnecting_disables_the_drives() -> None:
    controller = arm()
    controller.jog(1, -0.2)
    controller.advance(0.1)
    controller.disconnect()
    state = controller.joint_state()
    assert not any(state.velocities)
    assert refusal(controller.jog(1, 0.2)) == "the controller is not connected"
