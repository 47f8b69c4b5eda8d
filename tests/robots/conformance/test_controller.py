"""Contract of every controller, simulated or real, over every connection.

Every test runs four times: against the simulated controller in process, and against the driver
over a null modem, a TCP connection and a pseudo-terminal, with the same arm behind them.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.robots.conformance.benches import BENCHES, Bench, joints, settle, status

from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.ports.refusals import BUSY, JOGGING, NOT_CONNECTED, NOT_ENABLED, STOPPED
from understudy.units import DEG

ZERO = [0.0] * 6
REPORTED = 0.002  # degrees: three decimals on the wire
SLOW = 20 * DEG


@pytest.fixture(params=BENCHES)
def cold(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A bench that is not connected yet."""
    bench = BENCHES[request.param](tmp_path)
    yield bench
    bench.leave()


@pytest.fixture
def bench(cold: Bench) -> Bench:
    """A bench that is connected and enabled."""
    cold.do(cold.robot.connect)
    cold.advance(0.01)
    assert cold.do(cold.robot.enable) is None
    return cold


def send(bench: Bench, line: str) -> Refused | None:
    return bench.do(lambda now: bench.robot.send_gcode(line, now))


def run(bench: Bench, *lines: str) -> None:
    for line in lines:
        assert send(bench, line) is None
    settle(bench)


def code_of(bench: Bench, line: str) -> int:
    """Error number of a line that fails at once or later."""
    refused = send(bench, line)
    settle(bench)
    return refused.code if refused else status(bench).error_code


def jog(bench: Bench, axis: int, velocity: float, duration: float = 0.0) -> Refused | None:
    """Jog for a while, with repeated requests."""
    refused = bench.do(lambda now: bench.robot.jog(axis, velocity, now))
    for _ in range(round(duration / 0.1)):
        bench.advance(0.1)
        bench.do(lambda now: bench.robot.jog(axis, velocity, now))
    return refused


def at(*degrees: float) -> object:
    return pytest.approx([*degrees, *ZERO][:6], abs=REPORTED)


class TestConnection:
    def test_requests_are_refused_before_connecting(self, cold: Bench) -> None:
        assert not cold.robot.is_connected()
        assert cold.do(cold.robot.enable) == NOT_CONNECTED
        assert send(cold, "G0 X1") == NOT_CONNECTED
        assert jog(cold, 0, SLOW) == NOT_CONNECTED
        assert cold.do(cold.robot.home) == NOT_CONNECTED
        assert cold.do(cold.robot.cycle_start) == NOT_CONNECTED

    def test_connecting_enables_nothing(self, cold: Bench) -> None:
        assert cold.do(cold.robot.connect) is None
        cold.advance(0.01)
        assert cold.robot.is_connected()
        expected = ControllerStatus(connected=True, buffer_available=100)
        assert replace(status(cold), at=0, stops=0) == expected
        assert send(cold, "G0 X1") == NOT_ENABLED
        assert jog(cold, 0, SLOW) == NOT_ENABLED
        assert cold.do(cold.robot.home) == NOT_ENABLED
        assert joints(cold) == ZERO

    def test_a_disabled_controller_stops_and_refuses_lines(self, bench: Bench) -> None:
        send(bench, "G1 X90 F1200")
        bench.advance(0.5)
        assert bench.do(bench.robot.disable) is None
        assert not status(bench).enabled
        settle(bench)
        assert 5.0 < joints(bench)[0] < 15.0
        assert send(bench, "G0 X0") == NOT_ENABLED
        assert not status(bench).error

    def test_requests_are_refused_after_disconnecting(self, bench: Bench) -> None:
        assert bench.do(bench.robot.disconnect) is None
        bench.advance(0.1)
        assert not bench.robot.is_connected()
        assert not status(bench).enabled
        assert not status(bench).error
        assert send(bench, "G0 X1") == NOT_CONNECTED

    def test_it_can_connect_again(self, bench: Bench) -> None:
        run(bench, "G0 X10")
        bench.do(bench.robot.disconnect)
        bench.advance(0.1)
        bench.do(bench.robot.connect)
        bench.advance(0.1)
        assert joints(bench) == at(10)
        assert not status(bench).enabled
        bench.do(bench.robot.enable)
        run(bench, "G0 X0")
        assert joints(bench) == at(0)


class TestLines:
    def test_a_line_moves_the_joints(self, bench: Bench) -> None:
        assert send(bench, "G1 X45 F6000") is None
        assert (status(bench).moving, status(bench).state) == (True, "Run")
        bench.advance(0.3)
        assert joints(bench) == pytest.approx([20, 0, 0, 0, 0, 0], abs=0.01)
        velocity = bench.robot.joint_state(bench.now).velocities[0]
        assert velocity == pytest.approx(100 * DEG, rel=0.01)
        assert status(bench).buffer_used == 1
        settle(bench)
        assert joints(bench) == at(45)
        assert bench.robot.joint_state(bench.now).velocities == (0.0,) * 6
        assert (status(bench).moving, status(bench).state) == (False, "Idle")

    def test_lines_run_one_after_the_other(self, bench: Bench) -> None:
        for line in ("G1 X10 Y-10 F3000", "G1 X20 Z10", "G91", "G0 A-5", "G90", "G0 B5 C6"):
            assert send(bench, line) is None
        bench.advance(0.1)
        assert status(bench).line == 1
        settle(bench)
        assert joints(bench) == at(20, -10, 10, -5, 5, 6)
        assert status(bench).line == 0
        assert bench.robot.tally(bench.now).gcode_executed == 6

    def test_more_lines_than_the_planner_holds(self, bench: Bench) -> None:
        for n in range(150):
            assert bench.robot.send_gcode(f"G1 X{(n + 1) / 10} F600", bench.now) is None
        settle(bench)
        assert joints(bench) == at(15)
        assert bench.robot.tally(bench.now).gcode_executed == 150

    def test_a_dwell_counts_as_moving(self, bench: Bench) -> None:
        send(bench, "G4 P0.5")
        assert status(bench).moving
        bench.advance(0.6)
        assert not status(bench).moving

    @pytest.mark.parametrize(
        ("line", "code"),
        [("G1 Xa", 2), ("G1 X1 X2", 25), ("X1 %", 1), ("$H", 3)],
    )
    def test_an_unreadable_line_is_refused_at_once(
        self, bench: Bench, line: str, code: int
    ) -> None:
        refused = send(bench, line)
        assert refused is not None
        assert refused.code == code
        assert "line 1" in refused.reason
        assert not status(bench).error, "a line that was not queued is no error of the controller"
        run(bench, "G0 X5")
        assert joints(bench) == at(5)

    @pytest.mark.parametrize(
        ("line", "code"),
        [("G64 P1", 20), ("G1 X1", 22), ("M64", 28), ("G0 X500", 2), ("M64 P99", 39)],
    )
    def test_an_impossible_line_fails(self, bench: Bench, line: str, code: int) -> None:
        assert code_of(bench, line) == code
        assert joints(bench) == at(0)

    def test_after_a_failed_line_every_line_is_refused(self, bench: Bench) -> None:
        assert send(bench, "M64") is None
        settle(bench)
        assert status(bench).error
        assert status(bench).error_code == 28
        refused = send(bench, "G0 X5")
        assert refused is not None
        assert refused.code == 28
        settle(bench)
        assert joints(bench) == at(0)

    def test_an_empty_line_clears_the_error(self, bench: Bench) -> None:
        code_of(bench, "M64")
        run(bench, "", "G0 X5")
        assert not status(bench).error
        assert joints(bench) == at(5)

    def test_a_reset_clears_the_error(self, bench: Bench) -> None:
        code_of(bench, "G0 X500")
        assert status(bench).error
        bench.do(bench.robot.reset)
        settle(bench)
        assert not status(bench).error
        bench.do(bench.robot.enable)
        run(bench, "G0 X5")
        assert joints(bench) == at(5)

    def test_a_line_end_inside_a_line_is_refused(self, bench: Bench) -> None:
        refused = send(bench, "G0 X1\nG0 X2")
        assert refused is not None
        assert refused.code == 1


class TestOperator:
    def test_hold_and_cycle_start(self, bench: Bench) -> None:
        send(bench, "G1 X90 F1200")
        bench.advance(0.5)
        assert bench.do(bench.robot.hold) is None
        bench.advance(0.5)
        held = joints(bench)
        assert 9.0 < held[0] < 11.0
        assert (status(bench).state, status(bench).moving) == ("Hold", False)
        bench.advance(1.0)
        assert joints(bench) == held
        assert bench.do(bench.robot.cycle_start) is None
        bench.advance(0.1)
        assert (status(bench).state, status(bench).moving) == ("Run", True)
        settle(bench)
        assert joints(bench) == at(90)

    def test_lines_wait_in_a_hold(self, bench: Bench) -> None:
        send(bench, "G1 X10 F600")
        bench.do(bench.robot.hold)
        bench.advance(0.2)
        assert send(bench, "G1 X20") is None
        bench.advance(1.0)
        assert joints(bench)[0] < 1.0
        bench.do(bench.robot.cycle_start)
        bench.advance(0.1)
        settle(bench)
        assert joints(bench) == at(20)

    def test_a_program_pauses_and_continues(self, bench: Bench) -> None:
        for line in ("G0 X5", "M0", "G0 X10"):
            send(bench, line)
        settle(bench)
        assert status(bench).state == "Hold"
        assert joints(bench) == at(5)
        bench.do(bench.robot.cycle_start)
        bench.advance(0.1)
        settle(bench)
        assert joints(bench) == at(10)

    def test_an_optional_stop_is_optional(self, bench: Bench) -> None:
        bench.robot.set_optional_stop(False)
        bench.advance(0.2)
        run(bench, "G0 X5", "M1", "G0 X10")
        assert joints(bench) == at(10)
        bench.robot.set_optional_stop(True)
        bench.advance(0.2)
        run(bench, "G0 X5", "M1", "G0 X10")
        assert joints(bench) == at(5)
        assert status(bench).state == "Hold"

    @pytest.mark.parametrize(("percent", "reached"), [(50, 10.0), (200, 40.0), (137, 27.4)])
    def test_feed_override(self, bench: Bench, percent: float, reached: float) -> None:
        assert bench.do(lambda now: bench.robot.override_feed(percent, now)) is None
        send(bench, "G1 X90 F1200")
        bench.advance(1.0)
        assert joints(bench)[0] == pytest.approx(reached, rel=0.05)
        assert bench.do(lambda now: bench.robot.override_feed(100, now)) is None
        settle(bench)
        assert joints(bench) == at(90)

    def test_rapid_override(self, bench: Bench) -> None:
        assert bench.do(lambda now: bench.robot.override_rapid(25, now)) is None
        send(bench, "G0 X90")
        bench.advance(1.0)
        assert joints(bench)[0] == pytest.approx(30.0, rel=0.05)
        settle(bench)

    @pytest.mark.parametrize("percent", [9, 201, float("nan")])
    def test_feed_override_has_a_range(self, bench: Bench, percent: float) -> None:
        refused = bench.do(lambda now: bench.robot.override_feed(percent, now))
        assert isinstance(refused, Refused)

    @pytest.mark.parametrize("percent", [4, 101, float("nan")])
    def test_rapid_override_has_a_range(self, bench: Bench, percent: float) -> None:
        refused = bench.do(lambda now: bench.robot.override_rapid(percent, now))
        assert isinstance(refused, Refused)


class TestJog:
    def test_an_axis_moves_as_long_as_it_is_requested(self, bench: Bench) -> None:
        assert jog(bench, 1, -SLOW, 1.0) is None
        assert joints(bench)[1] == pytest.approx(-19.6, abs=0.5)
        assert (status(bench).state, status(bench).moving) == ("Jog", True)
        velocity = bench.robot.joint_state(bench.now).velocities[1]
        assert velocity == pytest.approx(-SLOW, rel=0.01)
        assert bench.do(bench.robot.stop_jog) is None
        settle(bench)
        assert joints(bench)[1] == pytest.approx(-20.0, abs=0.6)
        assert status(bench).state == "Idle"
        assert not status(bench).error

    def test_a_second_axis_adds_to_the_first(self, bench: Bench) -> None:
        jog(bench, 0, SLOW, 0.3)
        jog(bench, 1, -SLOW)
        for _ in range(10):
            bench.advance(0.1)
            jog(bench, 0, SLOW)
            jog(bench, 1, -SLOW)
        velocities = bench.robot.joint_state(bench.now).velocities
        assert velocities[:2] == pytest.approx((SLOW, -SLOW), rel=0.02)
        bench.do(bench.robot.stop_jog)
        settle(bench)
        assert joints(bench)[2:] == [0.0] * 4

    def test_the_velocity_is_limited(self, bench: Bench) -> None:
        jog(bench, 5, 100.0, 0.8)
        velocity = bench.robot.joint_state(bench.now).velocities[5]
        assert velocity == pytest.approx(250 * DEG, rel=0.01)
        bench.do(bench.robot.stop_jog)
        settle(bench)

    def test_it_stops_at_the_joint_limit(self, bench: Bench) -> None:
        run(bench, "G0 Y55")
        jog(bench, 1, 30 * DEG, 1.0)
        bench.do(bench.robot.stop_jog)
        settle(bench)
        assert joints(bench)[1] == pytest.approx(60.0, abs=0.01)
        assert not status(bench).error
        run(bench, "G0 Y50")

    def test_no_lines_while_jogging(self, bench: Bench) -> None:
        jog(bench, 0, SLOW, 0.2)
        assert send(bench, "G0 X0") == JOGGING
        assert bench.do(bench.robot.home) == JOGGING
        bench.do(bench.robot.stop_jog)
        settle(bench)
        run(bench, "G0 X0")
        assert joints(bench) == at(0)

    def test_no_jog_while_lines_run(self, bench: Bench) -> None:
        send(bench, "G1 X10 F600")
        assert jog(bench, 0, SLOW) == BUSY
        settle(bench)
        assert joints(bench) == at(10)

    def test_a_hold_ends_a_jog(self, bench: Bench) -> None:
        jog(bench, 0, SLOW, 0.3)
        bench.do(bench.robot.hold)
        settle(bench)
        assert status(bench).state == "Idle"

    @pytest.mark.parametrize(("axis", "velocity"), [(6, 1.0), (-1, 1.0), (0, float("nan"))])
    def test_invalid_jogs_are_refused(self, bench: Bench, axis: int, velocity: float) -> None:
        assert isinstance(jog(bench, axis, velocity), Refused)
        assert not status(bench).moving


class TestHome:
    def test_homing_all_axes(self, bench: Bench) -> None:
        run(bench, "G0 X10 Y-10 Z20 A5 B6 C7")
        assert not status(bench).homed
        assert bench.do(bench.robot.home) is None
        bench.advance(0.1)
        assert (status(bench).state, status(bench).moving) == ("Home", True)
        settle(bench)
        assert joints(bench) == at(0)
        assert status(bench).homed

    def test_homing_waits_for_earlier_lines(self, bench: Bench) -> None:
        send(bench, "G1 X10 F1200")
        assert bench.do(bench.robot.home) is None
        assert send(bench, "G0 Y-5") is None
        settle(bench)
        assert joints(bench) == at(0, -5)

    def test_homing_one_axis(self, bench: Bench) -> None:
        run(bench, "G0 X10 Y-10")
        assert bench.do(lambda now: bench.robot.home(now, 1)) is None
        settle(bench)
        assert joints(bench) == at(10, 0)
        assert isinstance(bench.do(lambda now: bench.robot.home(now, 6)), Refused)


class TestStop:
    def test_stop_brakes_and_drops_waiting_lines(self, bench: Bench) -> None:
        for line in ("G1 X90 F1200", "G1 Y-90", "G1 Z90"):
            send(bench, line)
        bench.advance(0.5)
        assert bench.do(bench.robot.stop) is None
        settle(bench)
        stopped = joints(bench)
        assert 9.0 < stopped[0] < 11.0
        assert stopped[1:] == [0.0] * 5
        assert (status(bench).state, status(bench).error) == ("Idle", False)
        bench.advance(2.0)
        assert joints(bench) == stopped
        run(bench, "G0 X0")
        assert joints(bench) == at(0)

    def test_stop_at_rest_changes_nothing(self, bench: Bench) -> None:
        run(bench, "G91", "G0 X5")
        bench.do(bench.robot.stop)
        settle(bench)
        run(bench, "G0 X5")
        assert joints(bench) == at(10)

    def test_stop_in_a_hold(self, bench: Bench) -> None:
        send(bench, "G1 X90 F1200")
        bench.advance(0.3)
        bench.do(bench.robot.hold)
        bench.advance(0.2)
        bench.do(bench.robot.stop)
        settle(bench)
        assert status(bench).state == "Idle"
        run(bench, "G0 X0")
        assert joints(bench) == at(0)

    def test_emergency_stop_acts_in_the_same_instant(self, bench: Bench) -> None:
        for line in ("G1 X90 F1200", "G1 Y-90"):
            send(bench, line)
        bench.advance(0.5)
        assert bench.do(bench.robot.emergency_stop) is None
        assert not status(bench).enabled
        assert (status(bench).moving, status(bench).state) == (False, "Alarm")
        assert (status(bench).error, status(bench).error_code) == (True, 10)
        assert bench.robot.joint_state(bench.now).velocities == (0.0,) * 6
        here = joints(bench)
        assert 9.0 < here[0] < 10.0
        bench.advance(2.0)
        assert joints(bench) == here

    def test_nothing_is_accepted_until_reset(self, bench: Bench) -> None:
        bench.do(bench.robot.emergency_stop)
        bench.advance(0.1)
        assert bench.do(bench.robot.enable) == STOPPED
        assert send(bench, "G0 X1") == STOPPED
        assert jog(bench, 0, SLOW) == STOPPED
        assert bench.do(bench.robot.home) == STOPPED
        assert bench.do(bench.robot.reset) is None
        settle(bench)
        assert not status(bench).error
        assert send(bench, "G0 X1") == NOT_ENABLED
        assert bench.do(bench.robot.enable) is None
        run(bench, "G0 X1")
        assert joints(bench) == at(1)

    def test_after_a_stop_it_continues_from_its_position(self, bench: Bench) -> None:
        send(bench, "G1 X90 F1200")
        bench.advance(0.5)
        bench.do(bench.robot.emergency_stop)
        bench.do(bench.robot.reset)
        bench.do(bench.robot.enable)
        run(bench, "G1 X0 F1200")
        assert joints(bench) == at(0)
        assert not status(bench).error


class TestPins:
    def test_outputs_are_set(self, bench: Bench) -> None:
        assert bench.do(lambda now: bench.robot.set_digital_output(3, True, now)) is None
        assert bench.do(lambda now: bench.robot.set_digital_output("ARC_START", True, now)) is None
        assert bench.do(lambda now: bench.robot.set_analog_output(1, 2.5, now)) is None
        settle(bench)
        assert bench.robot.digital_io().outputs == 0b1001
        assert bench.robot.analog_io(bench.now).outputs[1] == 2.5
        bench.do(lambda now: bench.robot.set_digital_output(3, False, now))
        settle(bench)
        assert bench.robot.digital_io().outputs == 0b0001

    def test_lines_set_outputs(self, bench: Bench) -> None:
        run(bench, "M64 P5", "M68 E2 Q7.5", "M62 P6", "G0 X1")
        assert bench.robot.digital_io().outputs == 0b1100000
        assert bench.robot.analog_io(bench.now).outputs[2] == 7.5
        run(bench, "M65 P5")
        assert bench.robot.digital_io().outputs == 0b1000000

    @pytest.mark.parametrize("pin", [32, -1, "NO_SUCH_PIN"])
    def test_unknown_pins_are_refused(self, bench: Bench, pin: int | str) -> None:
        assert isinstance(
            bench.do(lambda now: bench.robot.set_digital_output(pin, True, now)), Refused
        )
        assert isinstance(
            bench.do(lambda now: bench.robot.set_analog_output(pin, 1.0, now)), Refused
        )

    def test_waiting_for_an_input(self, bench: Bench) -> None:
        send(bench, "M64 P0")
        send(bench, "M66 P0 L3 Q1")
        settle(bench)
        assert bench.robot.input_result() == 1
        assert bench.robot.digital_io().inputs & 1

    def test_waiting_for_an_input_times_out(self, bench: Bench) -> None:
        send(bench, "M66 P2 L3 Q0.5")
        assert status(bench).moving
        bench.advance(0.7)
        assert not status(bench).moving
        assert bench.robot.input_result() == -1
        assert not status(bench).error


class TestListeners:
    def test_status_listeners_get_changes_only(self, bench: Bench) -> None:
        seen: list[ControllerStatus] = []
        bench.robot.on_status(seen.append)
        run(bench, "G1 X5 F600", "G1 X10")
        bench.do(bench.robot.emergency_stop)
        assert [(s.state, s.moving, s.enabled, s.error_code) for s in seen if s.error or s.moving
                or s.state == "Idle"] == [
            ("Run", True, True, 0), ("Idle", False, True, 0), ("Alarm", False, False, 10),
        ]  # fmt: skip

    def test_joint_listeners_are_called_during_motion(self, bench: Bench) -> None:
        reported: list[float] = []
        bench.robot.on_joint_state(
            lambda state: reported.append(state.positions[0] / DEG), bench.now
        )
        run(bench, "G1 X10 F600")
        assert reported == sorted(reported)
        assert len(set(reported)) > 10
        assert reported[-1] == pytest.approx(10.0, abs=REPORTED)
