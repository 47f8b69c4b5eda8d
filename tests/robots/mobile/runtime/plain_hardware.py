"""Hardware of mobile robots for tests of the runtime: motors do at once what they are commanded.

What sensors and inputs report is set by the test.
"""

from collections.abc import Sequence

import numpy as np

from understudy.errors import Refused
from understudy.ports import State
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware_interface import (
    Bools,
    Floats,
    LidarReadings,
    MotorFault,
    MotorLimits,
    MotorOutputs,
    MotorReadings,
    RobotReadings,
    Rows,
    Scan,
)


class PlainHardware:
    """`TimedHardware` with all its drivers in one class."""

    def __init__(self, layout: Layout) -> None:
        motors, lidars = len(layout.motors), len(layout.devices)
        self.layout = layout
        self.position, self.velocity = np.zeros(motors), np.zeros(motors)
        self.outputs = MotorOutputs(
            np.zeros(motors), np.zeros(motors), np.zeros(motors), np.zeros(motors, dtype=np.bool_)
        )
        self.limits = np.zeros((motors, 3))
        self.faults: dict[int, MotorFault] = {}
        self.silent: set[int] = set()
        self.stuck: set[int] = set()
        self.resets: list[int] = []
        self.inputs = np.zeros(len(layout.inputs), dtype=np.bool_)
        self.inputs_up = np.ones(len(layout.inputs), dtype=np.bool_)
        self.outs = np.zeros(len(layout.outputs), dtype=np.bool_)
        self.nearest_obstacles, self.ahead = np.full(lidars, np.inf), np.full(lidars, np.inf)
        self.devices_up = np.ones(lidars, dtype=np.bool_)
        self.scans: list[Scan] = []
        self.started: list[tuple[int, str]] = []
        self.steps = 0

    @property
    def motors(self) -> "PlainHardware":
        return self

    @property
    def io(self) -> "PlainHardware":
        return self

    @property
    def sensors(self) -> "PlainHardware":
        return self

    # ── motors ──

    def write(self, rows: Rows, outputs: MotorOutputs) -> None:
        for own, given in zip(self.outputs, outputs, strict=True):
            own[rows] = given

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None:
        self.limits[rows] = np.column_stack(limits)

    def read(self, rows: Rows) -> MotorReadings:
        faulty = np.array([row in self.faults for row in rows], dtype=np.bool_)
        connected = np.array([row not in self.silent for row in rows], dtype=np.bool_)
        nothing = np.zeros(rows.size, dtype=np.bool_)
        return MotorReadings(self.position[rows], self.velocity[rows], connected, faulty, nothing)

    def fault(self, row: int) -> MotorFault | None:
        return self.faults.get(row)

    def reset(self, row: int, now: int) -> Refused | None:
        self.resets.append(row)
        return None if self.faults.pop(row, None) else Refused("NO_FAULT")

    # ── inputs and outputs ──

    def read_inputs(self, rows: Rows) -> Bools:
        return self.inputs[rows]

    def inputs_connected(self, rows: Rows) -> Bools:
        return self.inputs_up[rows]

    def read_outputs(self, rows: Rows) -> Bools:
        return self.outs[rows]

    def write_outputs(self, rows: Rows, values: Bools) -> None:
        self.outs[rows] = values

    # ── sensors ──

    def set_motion(self, rows: Rows, velocity: Floats) -> None: ...

    def read_lidars(self, rows: Rows) -> LidarReadings:
        return LidarReadings(self.ahead[rows], self.devices_up[rows])

    def nearest(self, rows: Rows) -> Floats:
        return self.nearest_obstacles[rows]

    def ranges(self, row: int) -> Floats:
        return np.zeros(0)

    def take_scans(self) -> Sequence[Scan]:
        scans, self.scans = self.scans, []
        return scans

    def connected(self, rows: Rows) -> Bools:
        return self.devices_up[rows]

    # ── time ──

    def begin(self, now: int) -> None: ...

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        self.started.append((robot, command_type))

    def step(self, rows: Rows, seconds: float) -> None:
        self.steps += 1
        for row, (robot, motor) in enumerate(self.layout.motors):
            if robot not in rows:
                continue
            if row in self.faults or row in self.silent or row in self.stuck:
                self.velocity[row] = 0.0
            elif motor.role == "DRIVE":
                self.velocity[row] = self.outputs.speed[row]
            elif self.outputs.moving[row]:
                most = self.limits[row, 0] * seconds
                away = self.outputs.target[row] - self.position[row]
                self.velocity[row] = min(max(away, -most), most) / seconds
            else:
                self.velocity[row] = 0.0
            self.position[row] += self.velocity[row] * seconds

    def read_robots(self, rows: Rows) -> RobotReadings:
        return RobotReadings(np.full(rows.size, 90.0))

    def save(self) -> State:
        return None

    def load(self, state: State) -> None: ...
