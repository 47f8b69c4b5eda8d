"""Callbacks, the controller's time, and torques."""

import pytest
from tests.robots.arm.bench import READY, arm, degrees, prompt_arm, run, send

from understudy import VirtualController
from understudy.ports import ControllerStatus, JointState

# ── status ──────────────────────────────────────────────────────────────────────────────────────


def states(controller: VirtualController) -> list[str]:
    seen: list[str] = []
    controller.on_status(lambda status: seen.append(status.state))
    return seen


def test_the_status_is_reported_only_when_it_changes() -> None:
    controller = VirtualController()
    seen: list[ControllerStatus] = []
    controller.on_status(seen.append)
    controller.connect()
    controller.connect()
    controller.enable()
    send(controller, "G0 A10")
    controller.run_until_idle()
    controller.home()
    controller.run_until_idle()
    controller.emergency_stop()
    reported = [(s.connected, s.enabled, s.moving, s.error, s.homed, s.state) for s in seen]
    assert reported == [
        (True, False, False, False, False, "Idle"),
        (True, True, False, False, False, "Idle"),
        (True, True, True, False, False, "Run"),
        (True, True, False, False, False, "Idle"),
        (True, True, True, False, False, "Run"),
        (True, True, True, False, False, "Home"),
        (True, True, False, False, True, "Idle"),
        (True, False, False, True, True, "Alarm"),
    ]


def test_a_hold_is_reported_at_its_start_and_at_rest() -> None:
    controller = prompt_arm()
    send(controller, "G1 A90 F6000")
    controller.advance(0.5)
    seen: list[tuple[bool, str]] = []
    controller.on_status(lambda status: seen.append((status.moving, status.state)))
    controller.hold()
    controller.advance(1.0)
    controller.cycle_start()
    controller.run_until_idle()
    assert seen == [(True, "Hold"), (False, "Hold"), (True, "Run"), (False, "Idle")]


def test_an_input_that_ends_a_wait_is_reported() -> None:
    controller = prompt_arm()
    send(controller, "M66 P2 L3 Q10")
    seen = states(controller)
    controller.set_digital_input(2, True)
    assert seen == ["Idle"]


def test_a_failure_is_reported_with_its_reason() -> None:
    controller = prompt_arm()
    seen: list[ControllerStatus] = []
    controller.on_status(seen.append)
    send(controller, "G0 A171")
    assert [status.error_message for status in seen if status.error] == [
        "J1 = 171.0° is outside -170.0°…170.0° (line 1: G0 A171)"
    ]


# ── joint states ────────────────────────────────────────────────────────────────────────────────


def test_joint_states_are_reported_at_the_update_rate() -> None:
    controller = arm(simulation={"update_rate_hz": 250})
    controller.advance(1.0023)
    moments: list[float] = []
    controller.on_joint_state(lambda state: moments.append(controller.simulation_time()))
    for _ in range(100):
        controller.advance(0.0007)
    assert len(moments) == 18
    controller.advance(0.1)
    assert len(moments) == 43


def test_each_reported_joint_state_equals_the_reading_at_its_time() -> None:
    received: list[JointState] = []
    listening, reading = (arm(simulation={"update_rate_hz": 100}) for _ in range(2))
    listening.on_joint_state(received.append)
    read = []
    for controller in (listening, reading):
        send(controller, "G0 A20 W90", "G1 A0 F6000")
    listening.advance(1.0)
    for _ in range(100):
        reading.advance(0.01)
        read.append(reading.joint_state())
    assert received == read


def test_listening_changes_no_result() -> None:
    alone, watched = (prompt_arm() for _ in range(2))
    watched.on_joint_state(lambda state: None)
    watched.on_status(lambda status: None)
    for controller in (alone, watched):
        send(controller, "G1 A20 B-10 F3000", "M62 P1", "G1 A40", "G1 A0 B0")
        controller.advance(0.3123)
        controller.hold()
        controller.advance(1.0)
        controller.cycle_start()
        controller.advance(0.4321)
    assert alone.joint_state() == watched.joint_state()
    assert alone.status() == watched.status()
    assert alone.digital_io() == watched.digital_io()


def test_without_listeners_there_are_no_wakes() -> None:
    controller = prompt_arm()
    assert controller._inner.next_wake() is None
    send(controller, "G0 A90")
    assert controller._inner.next_wake() == pytest.approx((90 / 120 + 120 / 500) * 1e9, abs=1)


# ── time ────────────────────────────────────────────────────────────────────────────────────────


def test_simulated_time_runs_on_while_disabled() -> None:
    controller = VirtualController()
    controller.advance(2.5)
    assert controller.simulation_time() == 2.5


def test_pause_and_resume_stop_the_clock_not_the_motion() -> None:
    controller = prompt_arm()
    send(controller, "G0 A90")
    controller.wait(0.5)
    controller.pause()
    before = controller.joint_state()
    controller.wait(10.0)
    assert controller.simulation_time() == 0.5
    assert controller.joint_state() == before
    assert before.velocities[0] > 0.0, "it is in the middle of its motion"
    assert controller.status().state == "Run"
    controller.resume()
    controller.wait(5.0)
    assert degrees(controller)[0] == 90


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_time_scale_changes_no_result(scale: float) -> None:
    controller = prompt_arm()
    controller.set_time_scale(scale)
    send(controller, "G0 A90 W45")
    controller.wait(0.5 / scale)
    same = prompt_arm()
    send(same, "G0 A90 W45")
    same.advance(0.5)
    assert controller.joint_state() == same.joint_state()


# ── torques ─────────────────────────────────────────────────────────────────────────────────────


def test_without_dynamics_torques_read_zero() -> None:
    assert arm(start_deg=READY).joint_state().torques == (0.0,) * 6


def test_with_dynamics_torques_carry_the_arm_and_its_tool() -> None:
    settings = {"enable_dynamics": True, "feedback_delay_ms": 0, "command_delay_ms": 0}
    heavy = {"name": "heavy", "mass_kg": 6.0, "com_mm": [0, 0, 50]}
    controller = arm(start_deg=[0, 30, 0, 0, 0, 0], simulation=settings, tools={1: heavy})
    bare = controller.joint_state().torques
    assert abs(bare[1]) > 1.0
    run(controller, "M6 T1")
    assert abs(controller.joint_state().torques[1]) > abs(bare[1])


def test_who_listens_changes_nothing_in_the_counted_distance() -> None:
    quiet, heard = arm(start_deg=READY), arm(start_deg=READY)
    heard.on_joint_state(lambda state: None)
    for controller in (quiet, heard):
        send(controller, "G1 A20 B-10 C30 F2000")
        controller.run_until_idle()
    assert quiet.tally() == heard.tally()
