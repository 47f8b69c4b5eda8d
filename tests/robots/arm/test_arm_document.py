"""The design document's own tests and its checklist, on virtual time.

Where the document sleeps, `wait` lets simulated time pass, so nothing here takes long.
"""

import math

import numpy as np
import pytest
from tests.robots.arm.bench import arm, degrees, prompt_arm, run, send, until_idle

import understudy
from understudy.units import DEG

G60_VELOCITY = np.array([120, 120, 120, 190, 190, 250]) * DEG
G60_ACCELERATION = np.array([500, 500, 500, 800, 800, 1000]) * DEG


@pytest.fixture
def controller() -> understudy.VirtualController:
    """The controller of the document, with two differences.

    F counts per second, as the document's F100 means it, and joints may accelerate with
    2000 deg/s²: with the published 500 deg/s² 45° at 100 deg/s take 0.65 s, not the 0.5 s that
    the test waits.
    """
    return understudy.VirtualController(
        simulation={"update_rate_hz": 100},  # faster for tests
        feed_unit="per_second",
        max_acceleration_deg_s2=[2000.0] * 6,
    )


class TestVirtualControllerOfTheDocument:
    def test_connect_disconnect(self, controller: understudy.VirtualController) -> None:
        assert not controller.is_connected()

        assert controller.connect() is None
        assert controller.is_connected()
        assert controller.is_simulation()

        controller.disconnect()
        assert not controller.is_connected()

    def test_jog_motion(self, controller: understudy.VirtualController) -> None:
        controller.connect()
        controller.enable()

        initial_state = controller.joint_state()

        # Jog axis 0 at 0.1 rad/s
        controller.jog(0, 0.1)
        controller.wait(0.1)
        controller.stop_jog()

        final_state = controller.joint_state()

        # Position should have increased
        assert final_state.positions[0] > initial_state.positions[0]

    def test_gcode_execution(self, controller: understudy.VirtualController) -> None:
        controller.connect()
        controller.enable()
        controller.home()

        # Send G-code to move joint 1 to 45 degrees
        controller.send_gcode("G1 A45 F100")

        # Wait for motion to complete
        controller.wait(0.5)

        state = controller.joint_state()
        assert state.positions[0] == pytest.approx(45.0 * math.pi / 180.0, abs=0.01)

    def test_emergency_stop(self, controller: understudy.VirtualController) -> None:
        controller.connect()
        controller.enable()

        # Start jogging
        controller.jog(0, 0.5)
        controller.wait(0.05)

        # E-Stop
        controller.emergency_stop()

        # Should be disabled
        assert not controller.is_enabled()

        # Velocity should be zero
        state = controller.joint_state()
        assert state.velocities[0] == pytest.approx(0.0, abs=0.001)


class TestVirtualController:
    """Checklist 10.2, VirtualController."""

    def test_connect_disconnect(self) -> None:
        controller = arm()
        controller.disconnect()
        assert not controller.is_connected()
        assert not controller.is_enabled()
        controller.connect()
        assert not controller.is_enabled(), "connecting never enables drives"

    def test_enable_disable(self) -> None:
        controller = understudy.VirtualController()
        assert controller.enable() == understudy.Refused("the controller is not connected")
        controller.connect()
        assert controller.enable() is None
        assert controller.is_enabled()
        assert controller.disable() is None
        assert controller.send_gcode("G0 A1") == understudy.Refused("the drives are not enabled", 9)

    @pytest.mark.parametrize("axis", range(6))
    @pytest.mark.parametrize("velocity", [0.3, -0.3])
    def test_jog_all_axes(self, axis: int, velocity: float) -> None:
        controller = arm()
        controller.jog(axis, velocity)
        controller.advance(0.5)
        assert controller.joint_state().velocities[axis] == pytest.approx(velocity)
        controller.stop_jog()
        controller.run_until_idle()
        moved = np.flatnonzero(controller.joint_state().positions)
        assert moved.tolist() == [axis]
        assert controller.joint_state().positions[axis] * velocity > 0.0

    def test_gcode_execution_g0(self) -> None:
        controller = prompt_arm()
        run(controller, "G0 A120")
        # 120° at 120 deg/s with 500 deg/s²: cruising plus the ramps.
        assert controller.simulation_time() == pytest.approx(120 / 120 + 120 / 500)
        assert degrees(controller) == [120, 0, 0, 0, 0, 0]

    def test_gcode_execution_g1(self) -> None:
        controller = prompt_arm()
        run(controller, "G1 A10 F600")
        assert controller.simulation_time() == pytest.approx(10 / 10 + 10 / 500)
        assert degrees(controller) == [10, 0, 0, 0, 0, 0]

    def test_gcode_execution_g4(self) -> None:
        controller = prompt_arm()
        run(controller, "G4 P1.5")
        assert controller.simulation_time() == pytest.approx(1.5)

    def test_emergency_stop(self) -> None:
        controller = arm()
        send(controller, "G0 A90")
        controller.advance(0.5)
        controller.emergency_stop()
        state = controller.joint_state()
        assert not controller.is_enabled()
        assert not any(state.velocities)
        assert not any(state.accelerations)
        controller.advance(1.0)
        assert controller.joint_state().positions == state.positions

    def test_home_sequence(self) -> None:
        """The wrist goes first, then the arm; homed is true at the end, not before."""
        controller = prompt_arm(start_deg=[10, -20, 30, 40, 50, 60])
        controller.home()
        assert controller.status().state == "Home"
        q = until_idle(controller)[:, 0] / DEG
        arm_moves = np.flatnonzero(np.abs(q[:, :3] - [10, -20, 30]).max(axis=1) > 1e-9)[0]
        wrist_stands = np.flatnonzero(np.abs(q[:, 3:]).max(axis=1) < 1e-9)[0]
        assert wrist_stands <= arm_moves
        assert degrees(controller) == [0] * 6
        assert controller.is_homed()

    def test_homing_takes_its_time(self) -> None:
        controller = prompt_arm(start_deg=[60, 0, 0, 0, 0, 0], homing_speed_percent=50)
        controller.home()
        assert not controller.is_homed()
        controller.run_until_idle()
        assert controller.is_homed()
        assert controller.simulation_time() == pytest.approx(60 / 60 + 60 / 500)

    def test_time_scale_adjustment(self) -> None:
        """Twice as fast on the wall clock, the same in simulated time."""
        as_it_is, twice = arm(), arm()
        twice.set_time_scale(2.0)
        for controller, seconds in ((as_it_is, 1.0), (twice, 0.5)):
            send(controller, "G0 A90")
            controller.wait(seconds)
        assert as_it_is.simulation_time() == twice.simulation_time() == 1.0
        assert as_it_is.joint_state() == twice.joint_state()


class TestMotionSimulation:
    """Checklist 10.2, Motion Simulation."""

    PROGRAM = (
        "G0 A40 B-20 C30 U90 V-60 W180",
        "G0 A-40 B20 C-30 U-90 V60 W-180",
        "G1 A0 B0 C0 U0 V0 W0 F3000",
        "G1 A10 B5 F6000",
        "G1 A20 B-5 F6000",
    )

    @pytest.mark.parametrize("profile", ["trapezoid", "jerk_limited"])
    def test_velocity_limits_respected(self, profile: str) -> None:
        controller = prompt_arm(profile=profile)
        send(controller, *self.PROGRAM)
        velocity = np.abs(until_idle(controller)[:, 1])
        assert (velocity <= G60_VELOCITY * (1 + 1e-9)).all()
        assert (velocity / G60_VELOCITY).max() == pytest.approx(1.0), "and used"

    @pytest.mark.parametrize("profile", ["trapezoid", "jerk_limited"])
    def test_acceleration_limits_respected(self, profile: str) -> None:
        controller = prompt_arm(profile=profile)
        send(controller, *self.PROGRAM)
        acceleration = np.abs(until_idle(controller)[:, 2])
        assert (acceleration <= G60_ACCELERATION * (1 + 1e-9)).all()

    def test_smooth_motion_profiles(self) -> None:
        """Jerk-limited: acceleration never jumps by more than jerk times the sampling step."""
        controller = prompt_arm(profile="jerk_limited")
        send(controller, "G0 A60 U90")
        q, v, a = np.moveaxis(until_idle(controller), 1, 0)
        jerk = 5.0 * G60_ACCELERATION
        assert (np.abs(np.diff(a, axis=0)) <= jerk * 1e-3 * (1 + 1e-6)).all()
        assert (np.abs(np.diff(v, axis=0)) <= G60_ACCELERATION * 1e-3 * (1 + 1e-6)).all()
        assert np.abs(np.diff(q, axis=0) - 0.5e-3 * (v[1:] + v[:-1])).max() < 1e-6

    def test_trajectory_following_accuracy(self) -> None:
        """All joints move in proportion: the path between corners is straight."""
        controller = prompt_arm()
        target = np.array([40, -20, 30, 90, -60, 180]) * DEG
        send(controller, "G1 A40 B-20 C30 U90 V-60 W180 F6000")
        q = until_idle(controller)[:, 0]
        along = q @ target / (target @ target)
        assert np.abs(q - along[:, None] * target).max() < 1e-12
        assert q[-1] == pytest.approx(target, abs=1e-15)
