"""What every hardware of a mobile robot does for the runtime, simulated or behind any driver."""

from typing import Any

import numpy as np
import pytest
from tests.robots.mobile.conformance.benches import (
    CHARGE,
    ENABLE,
    GRIPPER,
    KINDS,
    LEFT,
    MOTORS,
    NEAREST,
    RIGHT,
    ROBOT,
    Bench,
    enable,
    make_bench,
    order,
    readings,
)

from understudy.errors import Refused
from understudy.robots.mobile.hardware_interface import (
    IoDriver,
    MotorDriver,
    MotorLimits,
    SensorDriver,
)

INPUTS = np.array([0, 1, 2], np.int64)
ESTOP = np.array([0], np.int64)
LIDARS, SCANNERS = np.array([0], np.int64), np.array([1], np.int64)
SPEED, GRIPPER_SPEED, FARTHEST = 1.2, 0.05, 0.08
ACCELERATION = 0.8


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def enabled(kind: str) -> Bench:
    bench = make_bench(kind)
    enable(bench)
    return bench.run(0.2)


def fastest(bench: Bench, motor: int, seconds: float) -> float:
    """The highest speed of a motor during some time."""
    found = 0.0
    for _ in range(round(seconds / 0.02)):
        found = max(found, abs(float(readings(bench.run(0.02)).velocity[motor])))
    return found


# ── motors ──────────────────────────────────────────────────────────────────────────────────────


def test_it_is_what_the_runtime_uses(kind: str) -> None:
    hardware = make_bench(kind).hardware
    motors: MotorDriver = hardware.motors
    io: IoDriver = hardware.io
    sensors: SensorDriver = hardware.sensors
    assert motors.read(MOTORS).connected.all()
    assert io.inputs_connected(INPUTS).all()
    assert sensors.connected(np.array([0, 1, 2], np.int64)).all()


def test_motors_turn_only_while_they_are_enabled(kind: str) -> None:
    bench = make_bench(kind)
    order(bench, speed=0.5, target=0.04, moving=True)
    bench.run(1.0)
    assert readings(bench).velocity == pytest.approx([0.0, 0.0, 0.0])
    assert readings(bench).position == pytest.approx([0.0, 0.0, 0.0])
    enable(bench)
    assert readings(bench.run(1.5)).velocity[:2] == pytest.approx([0.5, 0.5])
    assert bench.hardware.io.read_outputs(ENABLE).tolist() == [True]
    enable(bench, False)
    assert readings(bench.run(1.5)).velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    assert readings(bench).connected.all(), "a motor that is not enabled is connected"


@pytest.mark.parametrize("speed", [0.5, -0.5])
def test_wheels_reach_their_speed_and_report_the_way(kind: str, speed: float) -> None:
    bench = enabled(kind)
    order(bench, speed=speed)
    early = readings(bench.run(0.4)).velocity[:2]
    assert (np.abs(early) <= ACCELERATION * 0.4 + 1e-3).all(), "within the acceleration"
    found = readings(bench.run(2.6))
    assert found.velocity[:2] == pytest.approx([speed, speed], abs=1e-3)
    ramp = speed**2 / (2 * ACCELERATION)
    assert found.position[:2] == pytest.approx(np.sign(speed) * (1.5 - ramp), abs=0.05)
    order(bench)
    assert readings(bench.run(1.5)).velocity[:2] == pytest.approx([0.0, 0.0], abs=1e-3)


def test_an_axis_goes_to_its_target_and_stays_there(kind: str) -> None:
    bench = enabled(kind)
    order(bench, target=0.04, moving=True)
    assert fastest(bench, GRIPPER, 2.5) <= GRIPPER_SPEED * 1.01
    assert readings(bench).position[GRIPPER] == pytest.approx(0.04, abs=1e-3)
    order(bench, target=0.0, moving=True)
    assert readings(bench.run(2.5)).position[GRIPPER] == pytest.approx(0.0, abs=1e-3)
    assert readings(bench).velocity[GRIPPER] == pytest.approx(0.0, abs=1e-3)


def test_a_target_can_change_on_the_way(kind: str) -> None:
    bench = enabled(kind)
    order(bench, target=0.08, moving=True)
    bench.run(0.7)
    order(bench, target=0.01, moving=True)
    assert readings(bench.run(3.0)).position[GRIPPER] == pytest.approx(0.01, abs=1e-3)


def test_an_axis_that_shall_not_move_brakes_and_goes_on_when_it_shall(kind: str) -> None:
    bench = enabled(kind)
    order(bench, target=0.08, moving=True)
    bench.run(0.8)
    order(bench, target=0.08, moving=False)
    held = float(readings(bench.run(1.0)).position[GRIPPER])
    assert 0.01 < held < 0.07
    assert readings(bench.run(1.0)).position[GRIPPER] == pytest.approx(held, abs=1e-4)
    order(bench, target=0.08, moving=True)
    assert readings(bench.run(3.0)).position[GRIPPER] == pytest.approx(0.08, abs=1e-3)


@pytest.mark.parametrize(("target", "end"), [(0.5, FARTHEST), (-0.5, 0.0)])
def test_an_axis_stays_within_its_bounds(kind: str, target: float, end: float) -> None:
    bench = enabled(kind)
    order(bench, target=0.04, moving=True)
    bench.run(2.0)
    order(bench, target=target, moving=True)
    assert readings(bench.run(3.0)).position[GRIPPER] == pytest.approx(end, abs=1e-3)


def test_lower_limits_hold_at_once(kind: str) -> None:
    bench = enabled(kind)
    order(bench, target=0.08, moving=True)
    bench.run(0.6)
    limits = MotorLimits(np.array([0.3, 0.3, 0.01]), np.full(3, 0.5), np.full(3, 0.5))
    bench.hardware.motors.set_limits(MOTORS, limits)
    order(bench, speed=1.0, target=0.08, moving=True)
    assert fastest(bench.run(0.5), GRIPPER, 1.0) <= 0.0101
    assert fastest(bench, LEFT, 2.0) == pytest.approx(0.3, abs=1e-3)
    assert readings(bench.run(6.0)).position[GRIPPER] == pytest.approx(0.08, abs=1e-3)


def test_rows_are_read_in_the_order_of_the_call(kind: str) -> None:
    bench = enabled(kind)
    order(bench, speed=0.4, target=0.05, moving=True)
    forward = readings(bench.run(2.5))
    backward = bench.hardware.motors.read(MOTORS[::-1])
    for one, other in zip(forward, backward, strict=True):
        assert one.tolist() == other.tolist()[::-1]


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("motor", [LEFT, RIGHT, GRIPPER])
def test_a_fault_stops_the_motor_until_it_is_reset(kind: str, motor: int) -> None:
    bench = enabled(kind)
    order(bench, speed=0.4, target=0.08, moving=True)
    bench.run(0.5).fail(motor)
    bench.run(0.1)
    motors = bench.hardware.motors
    assert readings(bench).faulty.tolist() == [row == motor for row in MOTORS]
    fault = motors.fault(motor)
    assert fault is not None
    assert fault.code
    assert fault.message
    early = motors.reset(motor, bench.now)
    assert isinstance(early, Refused), "the cooldown lasts"
    assert "RESET_COOLDOWN" in str(early)
    bench.run(3.0)
    assert readings(bench).velocity[motor] == pytest.approx(0.0, abs=1e-3)
    assert readings(bench).faulty[motor], "it does not go away by itself"
    assert motors.reset(motor, bench.now) is None
    bench.run(0.5)
    assert motors.fault(motor) is None
    assert not readings(bench).faulty.any()
    bench.run(3.0)
    found = readings(bench)
    moved = found.position[motor] if motor == GRIPPER else found.velocity[motor]
    assert moved == pytest.approx(0.08 if motor == GRIPPER else 0.4, abs=1e-3)


def test_a_reset_that_is_not_allowed_is_refused(kind: str) -> None:
    def forbid(robot: dict[str, Any]) -> None:
        robot["motors"][LEFT]["resetPolicy"] = {"allowReset": False}

    bench = make_bench(kind, forbid)
    assert bench.hardware.motors.reset(LEFT, bench.now) is None, "there is no fault"
    bench.fail(LEFT)
    bench.run(3.0)
    refused = bench.hardware.motors.reset(LEFT, bench.now)
    assert isinstance(refused, Refused)
    assert "RESET_NOT_ALLOWED" in str(refused)
    assert readings(bench.run(1.0)).faulty[LEFT]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "MOCK"])
def test_a_fault_whose_cause_lasts_comes_back_only_to_a_new_reset(kind: str) -> None:
    bench = enabled(kind)
    bench.fail(LEFT, lasting=True)
    bench.run(2.0)
    assert bench.hardware.motors.reset(LEFT, bench.now) is None
    bench.run(2.0)
    bench.fail(LEFT, lasting=False)
    assert readings(bench.run(2.0)).faulty[LEFT], "the old reset has ended"
    assert bench.hardware.motors.reset(LEFT, bench.now) is None
    assert not readings(bench.run(0.5)).faulty[LEFT]


# ── connections ─────────────────────────────────────────────────────────────────────────────────


def test_a_cut_connection_is_noticed_and_made_again(kind: str) -> None:
    bench = enabled(kind)
    order(bench, speed=0.4, target=0.02, moving=True)
    before = readings(bench.run(2.5))
    bench.unplug()
    assert not readings(bench.run(0.6)).connected.any()
    cut = readings(bench.run(4.0))
    assert cut.velocity[:2] == pytest.approx([0.0, 0.0], abs=1e-3)
    assert (cut.position[:2] >= before.position[:2]).all(), "the way is kept"
    bench.plug()
    bench.run(6.0)
    after = readings(bench)
    assert after.connected.all()
    assert after.velocity[:2] == pytest.approx([0.4, 0.4], abs=1e-3)
    rolled = after.position[:2] - cut.position[:2]
    assert ((rolled > 0.0) & (rolled <= 0.4 * 6.0 + 0.3)).all(), "the way goes on where it was"


# ── inputs and sensors ──────────────────────────────────────────────────────────────────────────


def test_the_emergency_stop_is_read(kind: str) -> None:
    bench = enabled(kind)
    io = bench.hardware.io
    assert io.read_inputs(ESTOP).tolist() == [False]
    bench.press_estop(True)
    bench.run(0.06)
    assert io.read_inputs(ESTOP).tolist() == [True]
    assert io.inputs_connected(ESTOP).all()
    bench.press_estop(False)
    bench.run(0.06)
    assert io.read_inputs(ESTOP).tolist() == [False]


def test_sensors_report(kind: str) -> None:
    bench = enabled(kind)
    bench.hardware.sensors.set_motion(LIDARS, np.array([[1.0, 0.0, 0.0]]))
    lidar = bench.hardware.sensors.read_lidars(LIDARS)
    assert lidar.connected.all()
    assert bench.hardware.sensors.nearest(LIDARS) == pytest.approx([NEAREST], abs=1e-3)
    assert 0.0 < lidar.ahead[0] <= NEAREST
    assert bench.hardware.sensors.connected(SCANNERS).all()
    assert list(bench.hardware.sensors.take_scans()) == []
    assert bench.hardware.read_robots(ROBOT).battery_percent == pytest.approx([CHARGE], abs=0.01)
