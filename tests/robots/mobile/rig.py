"""Robots in MOCK mode without a runtime: ticks, set speeds and readings."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from tests.robots.mobile.config.test_robot_file import EXAMPLE

from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile, read_robot_file
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.hardware_interface import MotorOutputs

PROFILE = "runtime.simulationProfile"
TICK_HZ = 50
NOT_SCRIPTED = {
    "profileName": "empty",
    "initialState": {"pose": {"x": 0, "y": 0, "yaw": 0}, "batteryPercent": 80},
}


def document(changes: dict[str, Any] | None = None) -> Any:
    """The example without its profile, changed at some paths; a list is extended by `…+`."""
    made = json.loads(EXAMPLE.read_text())
    made["runtime"]["simulationProfile"] = json.loads(json.dumps(NOT_SCRIPTED))
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        place: Any = made
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        if last == "+":
            place.append(value)
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return made


def robot(changes: dict[str, Any] | None = None, name: str = "robot-1") -> RobotFile:
    file = _read(json.dumps(document(changes)))
    return replace(file, identity=replace(file.identity, robot_id=name))


@cache
def _read(text: str) -> RobotFile:
    return read_robot_file(text, "f")


class Rig:
    """Some robots, ticked together from the time 0."""

    def __init__(
        self,
        files: Sequence[RobotFile],
        surroundings: Sequence[Surroundings] | None = None,
        *,
        see_each_other: bool = False,
    ) -> None:
        self.layout = Layout(files)
        self.rows = np.arange(len(files))
        around = surroundings or [Surroundings()] * len(files)
        rows = range(len(files))
        self.hardware = MockHardware(self.layout, around, rows, see_each_other=see_each_other)
        self.tick = 0
        self.motors = np.arange(len(self.layout.motors))
        self.speed, self.target = np.zeros((2, self.motors.size))
        self.moving = np.zeros(self.motors.size, dtype=np.bool_)
        self.write_outputs(True)

    @property
    def now(self) -> int:
        return self.tick * 1_000_000_000 // TICK_HZ

    def write_outputs(self, value: bool) -> None:
        rows = np.arange(len(self.layout.outputs))
        self.hardware.io.write_outputs(rows, np.full(rows.size, value))

    def run(self, seconds: float) -> "Rig":
        for _ in range(round(seconds * TICK_HZ)):
            self.tick += 1
            self.hardware.begin(self.now)
            tolerance = np.full(self.motors.size, 1e-4)
            outputs = MotorOutputs(self.speed, self.target, tolerance, self.moving)
            self.hardware.motors.write(self.motors, outputs)
            self.hardware.step(self.rows, 1.0 / TICK_HZ)
        return self

    def inputs(self) -> dict[str, bool]:
        """The inputs of all robots by id."""
        rows = np.arange(len(self.layout.inputs))
        values = self.hardware.io.read_inputs(rows).tolist()
        return {
            row.point.io_id: value for row, value in zip(self.layout.inputs, values, strict=True)
        }

    def battery(self) -> float:
        return float(self.hardware.read_robots(self.rows).battery_percent[0])

    def nearest(self) -> float:
        rows = self.hardware.sensors.lidar_rows
        return float(self.hardware.sensors.nearest(rows)[0])

    def snapshot(self) -> bytes:
        return msgspec.json.encode(self.hardware.save())

    def restore(self, snapshot: bytes, tick: int) -> "Rig":
        self.hardware.load(msgspec.json.decode(snapshot))
        self.tick = tick
        return self
