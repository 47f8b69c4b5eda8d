"""One robot with each kind of driver, behind the same few calls of a test."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from tests.robots.mobile.conformance.far_ends import (
    ADDRESSES,
    BATTERY,
    COUNTS,
    LIDAR,
    NODES,
    SCANNER,
    FarEnd,
    RegisterEnd,
    far_end,
)
from tests.robots.mobile.rig import PROFILE, document

from understudy.robots.mobile.config import read_robot_file
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.hardware_interface import MotorOutputs, MotorReadings, TimedHardware
from understudy.robots.mobile.real.hardware import RealHardware
from understudy.units import NS_PER_MS, NS_PER_SECOND

TICK = 20 * NS_PER_MS
ROBOT = np.array([0], np.int64)
MOTORS = np.array([0, 1, 2], np.int64)
LEFT, RIGHT, GRIPPER = 0, 1, 2
ENABLE = np.array([0], np.int64)
NEAREST = 2.5
"""Metres from the lidar to the only obstacle."""
CHARGE = 80.0
Change = Callable[[dict[str, Any]], None]

PLC = {"type": "PLC", "config": {"host": "plc.local"}}
SERIAL = {"type": "SERIAL", "config": {"device": "/dev/ttyUSB0"}}
CANOPEN = {"type": "CANOPEN", "config": {"channel": "can0", "bitrate": 500_000}}


class Wiring:
    """Drivers of the motors, of inputs and outputs, and of sensors."""

    def __init__(self, motors: tuple[Any, Any, Any], points: Any, sensors: Any) -> None:
        self.motors, self.points, self.sensors = motors, points, sensors


WIRINGS: Mapping[str, Wiring] = {
    "PLC": Wiring((PLC, PLC, PLC), PLC, PLC),
    "SERIAL": Wiring((SERIAL, SERIAL, SERIAL), SERIAL, SERIAL),
    "CANOPEN": Wiring((CANOPEN, CANOPEN, CANOPEN), CANOPEN, PLC),
    "MIXED": Wiring((CANOPEN, PLC, SERIAL), PLC, SERIAL),
}
KINDS = ("MOCK", *WIRINGS)


def _driver(driver: Any, registers: int, can: dict[str, Any]) -> Any:
    own = can if driver["type"] == "CANOPEN" else {"address": registers}
    return {"type": driver["type"], "config": {**driver["config"], **own}}


def robot_document(kind: str, change: Change = lambda robot: None) -> dict[str, Any]:
    post = {"id": "post", "shape": "circle", "x": 3.0, "y": 0.0, "radiusMeters": 0.5}
    robot: dict[str, Any] = document({f"{PROFILE}.world": {"obstacles": [post]}})
    robot["io"]["devices"].append({"deviceId": "battery", "type": "BATTERY"})
    if kind in WIRINGS:
        _wire(robot, WIRINGS[kind])
    change(robot)
    return robot


def _wire(robot: dict[str, Any], wiring: Wiring) -> None:
    robot["runtime"]["mode"] = "REAL"
    for row, motor in enumerate(robot["motors"]):
        can = {"node": NODES[row], "countsPerUnit": COUNTS[row]}
        motor["driver"] = _driver(wiring.motors[row], ADDRESSES[row], can)
    for points in (robot["io"]["digitalInputs"], robot["io"]["digitalOutputs"]):
        for bit, point in enumerate(points):
            point["driver"] = _driver(wiring.points, bit, {"node": NODES[0], "bit": bit})
    for device, address in zip(robot["io"]["devices"], (LIDAR, SCANNER, BATTERY), strict=True):
        device["driver"] = _driver(wiring.sensors, address, {})


class Bench(Protocol):
    """A robot that ticks; ``motor`` and ``bit`` are numbers of its file."""

    @property
    def hardware(self) -> TimedHardware: ...

    @property
    def now(self) -> int: ...

    def run(self, seconds: float) -> "Bench": ...

    def fail(self, motor: int, *, lasting: bool = False) -> None: ...

    def unplug(self) -> None:
        """All connections are cut: cables, or the battery of a simulated robot."""
        ...

    def plug(self) -> None: ...

    def press_estop(self, pressed: bool) -> None: ...


def order(bench: Bench, *, speed: float = 0.0, target: float = 0.0, moving: bool = False) -> None:
    """Both wheels get the speed, the gripper the target."""
    speeds = np.array([speed, speed, 0.0])
    targets, moves = np.array([0.0, 0.0, target]), np.array([False, False, moving])
    bench.hardware.motors.write(MOTORS, MotorOutputs(speeds, targets, np.full(3, 1e-3), moves))


def enable(bench: Bench, value: bool = True) -> None:
    bench.hardware.io.write_outputs(ENABLE, np.array([value]))


def readings(bench: Bench) -> MotorReadings:
    return bench.hardware.motors.read(MOTORS)


class MockBench:
    """`Bench` of a simulated robot."""

    def __init__(self, change: Change) -> None:
        self.layout = Layout([read_robot_file(json.dumps(robot_document("MOCK", change)), "f")])
        self.hardware = MockHardware(self.layout, [Surroundings()], [0])
        self.now = 0

    def run(self, seconds: float) -> "MockBench":
        for _ in range(round(seconds * NS_PER_SECOND / TICK)):
            self.now += TICK
            self.hardware.begin(self.now)
            self.hardware.step(ROBOT, TICK / NS_PER_SECOND)
        return self

    def fail(self, motor: int, *, lasting: bool = False) -> None:
        """A simulated fault never lasts longer than until it is reset."""
        name = self.layout.motors[motor].motor.motor_id
        self.hardware.inject_fault(0, f"motor:{name}", "SIM_FAULT")

    def unplug(self) -> None:
        self.hardware.set_battery(0, 0.0)

    def plug(self) -> None:
        self.hardware.set_battery(0, CHARGE)

    def press_estop(self, pressed: bool) -> None:
        self.hardware.press_estop(0, pressed)


class RealBench:
    """`Bench` of a REAL robot with virtual devices at the far end of its connections."""

    def __init__(self, kind: str, change: Change) -> None:
        self.log: list[str] = []
        text = json.dumps(robot_document(kind, change))
        self.layout = Layout([read_robot_file(text, "f")])
        self.hardware = RealHardware(self.layout, [0], self.log.append)
        self.drivers = self.hardware.callers()
        self.ends = {where: far_end(where) for where in self.drivers}
        self._wiring = WIRINGS[kind]
        self._cut = False
        self.now = 0
        for end in self.ends.values():
            _show_sensors(end)

    def run(self, seconds: float) -> "RealBench":
        for _ in range(round(seconds * NS_PER_SECOND / TICK)):
            self.now += TICK
            for where, driver in self.drivers.items():
                self.ends[where].run(TICK / NS_PER_SECOND)
                at = driver.next_wake()
                if at is not None and at <= self.now:
                    driver.wake(self.now)
                if driver.status(self.now).connection == "connecting" and not self._cut:
                    driver.connected(self.now)
            self.hardware.begin(self.now)
            self.hardware.step(ROBOT, TICK / NS_PER_SECOND)
            if not self._cut:
                for where, driver in self.drivers.items():
                    self.ends[where].exchange(driver, self.now)
        return self

    def end(self, driver: Any) -> FarEnd:
        """The far end of a driver of the robot's file."""
        scheme = {"PLC": "tcp:", "SERIAL": "serial:", "CANOPEN": "can:"}[driver["type"]]
        return next(end for where, end in self.ends.items() if where.startswith(scheme))

    def fail(self, motor: int, *, lasting: bool = False) -> None:
        self.end(self._wiring.motors[motor]).fail(motor, lasting=lasting)

    def unplug(self) -> None:
        self._cut = True

    def plug(self) -> None:
        """What was sent into the cut cable is lost."""
        self._cut = False
        for driver in self.drivers.values():
            driver.take(1 << 20)
        for end in self.ends.values():
            end.power_on()

    def press_estop(self, pressed: bool) -> None:
        self.end(self._wiring.points).set_input(0, pressed)


def _show_sensors(end: FarEnd) -> None:
    if isinstance(end, RegisterEnd):
        end.device.inputs |= {LIDAR: 1, LIDAR + 1: 2500, LIDAR + 2: 2050}
        end.device.inputs |= {BATTERY: 1, BATTERY + 1: 8000, SCANNER: 1}


def make_bench(kind: str, change: Change = lambda robot: None) -> Bench:
    """A robot whose connections are made, and whose motors are not enabled yet."""
    made: Bench = MockBench(change) if kind == "MOCK" else RealBench(kind, change)
    return made.run(0.2)
