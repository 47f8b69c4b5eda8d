"""Waypoints: planned, or executed and recorded."""

import math

import numpy as np
import pytest
from tests.offline.setups import arm, machine

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import Refused
from understudy.motion.plan import Plan
from understudy.offline.cycle_time import CycleTimeEstimator
from understudy.offline.motion_simulator import MotionSimulator, SimulationResult
from understudy.offline.walk import PlannedMotion, walk
from understudy.offline.waypoints import Waypoint, tool_way
from understudy.ports import ControllerStatus, JointState
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.offline import motion_setup
from understudy.space.pose import Pose
from understudy.units import DEG, MM, nanoseconds, seconds

BENT = (0.0, -20 * DEG, 30 * DEG, 0.0, 40 * DEG, 0.0)
TURNED = (45 * DEG, -20 * DEG, 30 * DEG, 0.0, 40 * DEG, 0.0)
PLACE = Pose(700 * MM, 100 * MM, 600 * MM, math.pi, 0.0, 0.0)
OUT_OF_REACH = Pose(9.0, 0.0, 0.0, 0.0, 0.0, 0.0)


REST = (0.0,) * 6


class FakeController:
    """Controller that plans all lines at the first reading, and runs them."""

    def __init__(self, deaf: bool = False) -> None:
        self.lines: list[str] = []
        self._began = 0
        self._deaf = deaf
        self._plans: list[Plan] | None = None
        self._woken = -1

    def send_gcode(self, line: str, now: int) -> Refused | None:
        self.lines.append(line)
        self._began = now
        return Refused("emergency stop") if self._deaf else None

    def joint_state(self, now: int) -> JointState:
        if not self.lines:
            return JointState(REST, REST, REST, REST)
        t = seconds(now - self._began)
        plans = self._planned()
        plan = next((plan for plan in plans if t < plan.ends), plans[-1])
        motion = plan.at(t)
        position, velocity, acceleration = (tuple(values.tolist()) for values in motion)
        return JointState(position, velocity, acceleration, REST)

    def status(self, now: int) -> ControllerStatus:
        return ControllerStatus(connected=True, enabled=True)

    def busy(self) -> bool:
        return self._woken < self._end()

    def next_wake(self) -> int | None:
        return self._end() if self.busy() else None

    def wake(self, now: int) -> None:
        self._woken = now

    def _end(self) -> int:
        return self._began + nanoseconds(self._planned()[-1].ends)

    def _planned(self) -> list[Plan]:
        if self._plans is None:
            events = walk("\n".join(self.lines), arm())
            self._plans = [event.plan for event in events if isinstance(event, PlannedMotion)]
        return self._plans


def dry(*waypoints: Waypoint, rate_hz: float = 100.0) -> SimulationResult:
    return MotionSimulator(arm(), rate_hz=rate_hz).dry_run(waypoints)


def test_a_dry_run_goes_through_all_waypoints() -> None:
    found = dry(Waypoint(BENT), Waypoint(TURNED))
    assert found.success
    assert found.trajectory_log[0].positions == (0.0,) * 6
    assert found.trajectory_log[-1].positions == pytest.approx(TURNED)
    assert len(found.trajectory_log) == pytest.approx(found.total_time_s * 100.0, abs=2)


def test_the_largest_speed_does_not_depend_on_the_log_rate() -> None:
    found = dry(Waypoint((90 * DEG, 0.0, 0.0, 0.0, 0.0, 0.0)), rate_hz=1.0)
    assert found.max_velocity == pytest.approx(120 * DEG)
    assert found.max_acceleration == pytest.approx(500 * DEG)
    assert found.total_time_s == pytest.approx(90 / 120 + 120 / 500)


def test_a_waypoint_out_of_reach_fails_the_run() -> None:
    found = dry(Waypoint(BENT), Waypoint(OUT_OF_REACH, speed=0.1))
    assert not found.success
    assert found.error_message.startswith("line 2: ")


def test_no_waypoints_give_an_empty_result() -> None:
    assert dry() == SimulationResult(True, 0.0, 0.0, 0.0, ())


def test_an_execution_agrees_with_its_dry_run() -> None:
    waypoints = [
        Waypoint(BENT),
        Waypoint(TURNED, speed=0.2),
        Waypoint(PLACE, speed=0.1, process=True),
        Waypoint(BENT),
    ]
    controller = FakeController()
    simulator = MotionSimulator(arm(), controller, rate_hz=100.0)
    executed, planned = simulator.simulate_trajectory(waypoints), simulator.dry_run(waypoints)
    assert executed.success
    assert executed.total_time_s == pytest.approx(planned.total_time_s, rel=1e-6)
    assert np.allclose(executed.trajectory_log[-1].positions, BENT)
    assert [line.split()[0] for line in controller.lines] == ["G0", "G93", "M3", "G94", "M5", "G0"]


def test_a_refusal_of_the_controller_fails_the_run() -> None:
    found = MotionSimulator(arm(), FakeController(deaf=True)).simulate_trajectory([Waypoint(BENT)])
    assert (found.success, found.error_message) == (False, "emergency stop")


def virtual_arm() -> tuple[ArmController, MotionSimulator]:
    config = load_config("default")
    controller = build_cell(config).components["g60"]
    assert isinstance(controller, ArmController)
    assert controller.connect(0) is controller.enable(0) is None
    return controller, MotionSimulator(motion_setup(config), controller, rate_hz=10.0)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (Waypoint((500 * DEG, 0.0, 0.0, 0.0, 0.0, 0.0)), "J1 = 500.0° is outside"),
        (Waypoint(OUT_OF_REACH, speed=0.1), "line 2"),
    ],
    ids=["beyond a limit", "out of reach"],
)
def test_a_later_error_of_the_controller_fails_the_run(target: Waypoint, reason: str) -> None:
    controller, simulator = virtual_arm()
    found = simulator.simulate_trajectory([Waypoint(BENT), target])
    assert not found.success
    assert reason in found.error_message
    assert found.trajectory_log
    assert not controller.busy()


def test_a_controller_that_is_held_fails_the_run() -> None:
    controller, simulator = virtual_arm()
    assert controller.send_gcode("M0", 0) is None
    found = simulator.simulate_trajectory([Waypoint(BENT)])
    assert (found.success, "stopped before the end" in found.error_message) == (False, True)


def test_the_largest_speed_of_an_execution_agrees_with_its_dry_run() -> None:
    waypoints = [Waypoint(BENT), Waypoint(TURNED), Waypoint(PLACE, speed=0.3), Waypoint(BENT)]
    simulator = virtual_arm()[1]
    executed, planned = simulator.simulate_trajectory(waypoints), simulator.dry_run(waypoints)
    assert executed.success, executed.error_message
    assert executed.max_velocity == pytest.approx(planned.max_velocity, rel=0.01)
    assert executed.max_acceleration == pytest.approx(planned.max_acceleration, rel=0.01)
    assert len(executed.trajectory_log) == pytest.approx(10.0 * executed.total_time_s, abs=2)


def test_an_execution_needs_a_controller() -> None:
    with pytest.raises(ValueError, match="no controller to execute the trajectory"):
        MotionSimulator(arm()).simulate_trajectory([Waypoint(BENT)])


def test_recording_keeps_the_executed_trajectory() -> None:
    simulator = MotionSimulator(arm(), FakeController(), rate_hz=50.0)
    simulator.start_recording()
    found = simulator.simulate_trajectory([Waypoint(BENT)])
    simulator.stop_recording()
    assert simulator.recorded_data() == found.trajectory_log


# ── the time of waypoints ──


def test_waypoints_have_travel_and_process_time() -> None:
    estimator = CycleTimeEstimator(arm(), np.array(BENT))
    x, y, z, rx, ry, rz = arm().mover.pose(np.array(BENT))
    turned = [angle * DEG for angle in (rx, ry, rz)]
    there = [Pose((x + dx) * MM, y * MM, z * MM, *turned) for dx in (20.0, 50.0, 0.0)]
    waypoints = [Waypoint(there[0]), Waypoint(there[1], process=True), Waypoint(there[2])]
    found = estimator.estimate_waypoints(waypoints, 100.0, 10.0)
    assert found.process_s == pytest.approx(3.0, rel=0.05)
    assert found.motion_s == pytest.approx(0.7, rel=0.15)
    assert [row.kind for row in found.lines] == ["motion", "process", "motion"]


def test_the_speed_of_a_waypoint_takes_precedence() -> None:
    estimator = CycleTimeEstimator(arm(), np.array(BENT))
    way = tool_way(arm().mover, np.array(BENT), np.array(TURNED))
    own = estimator.estimate_waypoints([Waypoint(TURNED, speed=0.05)], 500.0, 500.0)
    assert own.total_s == pytest.approx(way / 0.05, rel=0.02)


def test_a_plain_machine_does_not_support_waypoints() -> None:
    found = CycleTimeEstimator(machine()).estimate_waypoints([Waypoint(BENT)], 100.0, 10.0)
    assert [violation.kind for violation in found.violations] == ["unsupported"]
