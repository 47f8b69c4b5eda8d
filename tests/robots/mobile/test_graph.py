"""The graph of drivers: MOCK, REAL, and both in one table."""

from typing import Any

import numpy as np
import pytest
from tests.robots.mobile.rig import robot

from understudy.errors import ConfigError, Refused
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.graph import DriverGraph, build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import MotorLimits, MotorOutputs, TimedHardware

PLC = {"type": "PLC", "config": {"host": "192.0.2.1", "address": 100}}


def real(changes: dict[str, Any] | None = None) -> RobotFile:
    places = [f"motors.{n}" for n in range(3)] + [f"io.digitalInputs.{n}" for n in range(3)]
    places += ["io.digitalOutputs.0", "io.devices.0", "io.devices.1"]
    drivers = {f"{place}.driver": PLC for place in places}
    return robot({"runtime.mode": "REAL", **drivers, **(changes or {})}, "real")


def graph(*files: RobotFile) -> DriverGraph:
    return build_driver_graph(Layout(files), [Surroundings()] * len(files), print)


def test_mock_robots_have_simulated_hardware_whatever_their_drivers_are() -> None:
    made = graph(robot({"motors.0.driver": {"type": "SERIAL"}}), robot({}, "b"))
    used: TimedHardware = made
    assert made.real_hardware is None
    assert made.mock is not None
    assert made.motors is made.mock.motors, "nothing stands between"
    used.begin(20_000_000)
    used.step(np.arange(2), 0.02)
    assert used.read_robots(np.arange(2)).battery_percent == pytest.approx([80.0, 80.0], abs=0.01)
    assert made.obstacles(1).circles.tolist() == []


@pytest.mark.parametrize(
    ("type_", "place", "key"),
    [
        ("MOCK", "motors.1", "motors.drive_right.driver.type"),
        ("MOCK", "io.digitalInputs.0", "io.digitalInputs.estop.driver.type"),
        ("MOCK", "io.devices.0", "io.devices.lidar_front.driver.type"),
        ("CANOPEN", "io.devices.0", "io.devices.lidar_front.driver.type"),
    ],
)
def test_other_drivers_of_real_robots_are_refused(type_: str, place: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        graph(real({f"{place}.driver": {"type": type_}}))
    assert key in str(caught.value)
    assert f"got '{type_}'" in str(caught.value)
    assert "allowed: in REAL mode: PLC" in str(caught.value)


def test_a_real_robot_is_behind_its_plc() -> None:
    made = graph(real())
    assert made.mock is None
    assert made.real_hardware is not None
    assert made.motors is made.real_hardware.motors
    assert made.save() is None
    assert made.next_change() == 0, "a real robot may change at any time"


def test_in_one_table_each_row_goes_to_its_driver() -> None:
    made = graph(robot({}, "a"), real(), robot({}, "c"))
    rows, motors = np.arange(3), np.arange(9)
    made.io.write_outputs(rows, np.array([True, False, True]))
    assert made.io.read_outputs(np.array([2, 1, 0])).tolist() == [True, False, True]
    limits = MotorLimits(np.full(9, 0.1), np.full(9, 0.5), np.full(9, 0.5))
    made.motors.set_limits(motors, limits)
    for tick in range(1, 101):
        made.begin(tick * 20_000_000)
        speed = np.array([0.5, 0.5, 0, 0.5, 0.5, 0, -0.5, -0.5, 0])
        made.motors.write(
            motors, MotorOutputs(speed, np.zeros(9), np.zeros(9), np.zeros(9, dtype=np.bool_))
        )
        made.sensors.set_motion(np.array([0, 2, 4]), np.tile([0.5, 0.0, 0.0], (3, 1)))
        made.step(rows, 0.02)
    readings = made.motors.read(np.array([6, 3, 0, 7]))
    assert readings.velocity == pytest.approx([-0.1, 0.0, 0.1, -0.1])
    assert readings.connected.tolist() == [True, False, True, True]
    assert made.read_robots(np.array([1, 0])).battery_percent == pytest.approx([100.0, 80.0], abs=1)
    assert made.io.inputs_connected(np.array([0, 3, 6])).tolist() == [True, False, True]
    assert made.io.read_inputs(np.array([1, 4])).tolist() == [True, False]
    assert made.sensors.connected(np.array([1, 2, 5])).tolist() == [True, False, True]
    lidars = made.sensors.read_lidars(np.array([2, 0]))
    assert lidars.connected.tolist() == [False, True]
    assert (made.sensors.ranges(0).size, made.sensors.ranges(2).size) == (36, 0)
    assert made.motors.fault(3) is None
    assert made.sensors.take_scans() == []
    assert made.motors.reset(6, 0) is None


def test_in_one_table_faults_and_snapshots_are_those_of_the_simulated_robots() -> None:
    rule = {"trigger": "ON_COMMAND", "value": "STOP", "target": "motor:act_1"}
    faults = {"runtime.simulationProfile.faultInjection.rules": [rule]}
    made = graph(real(), robot(faults, "b"))
    made.command_started(0, "STOP", 0)
    made.command_started(1, "STOP", 0)
    assert made.motors.fault(2) is None
    assert made.motors.fault(5) is not None
    assert isinstance(made.motors.reset(5, 0), Refused)
    other = graph(real(), robot(faults, "b"))
    other.load(made.save())
    assert other.motors.fault(5) == made.motors.fault(5)


def test_calls_for_no_rows_give_nothing() -> None:
    made, none = graph(real(), robot({}, "b")), np.zeros(0, dtype=np.int64)
    assert made.motors.read(none).position.size == 0
    assert made.sensors.read_lidars(none).ahead.size == 0
    assert made.sensors.nearest(none).size == 0
    assert made.io.read_inputs(none).size == 0
    assert made.read_robots(none).battery_percent.size == 0
