"""The drivers of all robots of a layout, REAL and MOCK: `build_driver_graph`.

Robots in MOCK mode have simulated hardware, all in one; REAL robots have the drivers that their
files name. With both, a call for some rows goes to the drivers that serve these rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.ports import State
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.hardware_interface import (
    Bools,
    Bounds,
    Floats,
    IoDriver,
    LidarReadings,
    MotorDriver,
    MotorFault,
    MotorLimits,
    MotorOutputs,
    MotorReadings,
    Obstacles,
    Rests,
    RobotReadings,
    Rows,
    Scan,
    SensorDriver,
    TimedHardware,
)
from understudy.robots.mobile.real.hardware import RealHardware

Log = Callable[[str], None]


def build_driver_graph(
    layout: Layout,
    surroundings: Sequence[Surroundings],
    log: Log,
    *,
    see_each_other: bool = False,
) -> "DriverGraph":
    """The hardware of all robots. ``surroundings``: where each of them is put, if it is simulated;
    ``log``: gets a line when the connection of a REAL robot changes; ``see_each_other``: the
    simulated robots are obstacles of each other.

    Raises a `ConfigError` for a driver that cannot be made.
    """
    modes = [robot.runtime.mode for robot in layout.robots]
    mocks = [row for row, mode in enumerate(modes) if mode == "MOCK"]
    reals = [row for row, mode in enumerate(modes) if mode == "REAL"]
    mock = (
        MockHardware(layout, surroundings, mocks, see_each_other=see_each_other)
        if mocks or not reals
        else None
    )
    real_hardware = RealHardware(layout, reals, log) if reals else None
    return DriverGraph(
        layout, mock, real_hardware, np.array([mode == "REAL" for mode in modes], np.int8)
    )


class Parts(NamedTuple):
    """Several drivers, and which of them serves a row."""

    drivers: Sequence[Any]
    serves: NDArray[np.int8]

    def split(self, rows: Rows) -> Iterator[tuple[Any, Bools]]:
        """Each driver with the rows that it serves, as a mask."""
        of = self.serves[rows]
        for number, driver in enumerate(self.drivers):
            mask = of == number
            if mask.any():
                yield driver, mask

    def of(self, row: int) -> Any:
        return self.drivers[self.serves[row]]

    def joined(self, rows: Rows, read: Callable[[Any, Rows], tuple[Any, ...]]) -> list[Any]:
        """What each driver reads of its rows, in the order of the rows."""
        columns: list[Any] = []
        for driver, mask in self.split(rows):
            found = read(driver, rows[mask])
            columns = columns or [np.zeros(rows.size, np.asarray(each).dtype) for each in found]
            for column, values in zip(columns, found, strict=True):
                column[mask] = values
        return columns


class SplitMotors:
    """`MotorDriver` of several drivers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def write(self, rows: Rows, outputs: MotorOutputs) -> None:
        for driver, mask in self._parts.split(rows):
            driver.write(rows[mask], MotorOutputs._make(each[mask] for each in outputs))

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None:
        for driver, mask in self._parts.split(rows):
            driver.set_limits(rows[mask], MotorLimits._make(each[mask] for each in limits))

    def read(self, rows: Rows) -> MotorReadings:
        if not rows.size:
            return MotorReadings(*np.zeros((2, 0)), *np.zeros((3, 0), dtype=np.bool_))
        return MotorReadings(*self._parts.joined(rows, lambda driver, own: driver.read(own)))

    def fault(self, row: int) -> MotorFault | None:
        found: MotorFault | None = self._parts.of(row).fault(row)
        return found

    def reset(self, row: int, now: int) -> Refused | None:
        refused: Refused | None = self._parts.of(row).reset(row, now)
        return refused


class SplitIo:
    """`IoDriver` of several drivers."""

    def __init__(self, inputs: Parts, outputs: Parts) -> None:
        self._inputs = inputs
        self._outputs = outputs

    def read_inputs(self, rows: Rows) -> Bools:
        return _flags(self._inputs.joined(rows, lambda io, own: (io.read_inputs(own),)))

    def inputs_connected(self, rows: Rows) -> Bools:
        return _flags(self._inputs.joined(rows, lambda io, own: (io.inputs_connected(own),)))

    def read_outputs(self, rows: Rows) -> Bools:
        return _flags(self._outputs.joined(rows, lambda io, own: (io.read_outputs(own),)))

    def write_outputs(self, rows: Rows, values: Bools) -> None:
        for driver, mask in self._outputs.split(rows):
            driver.write_outputs(rows[mask], values[mask])


def _flags(columns: list[Any]) -> Bools:
    return columns[0] if columns else np.zeros(0, dtype=np.bool_)


class SplitSensors:
    """`SensorDriver` of several drivers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def set_motion(self, rows: Rows, velocity: Floats) -> None:
        for driver, mask in self._parts.split(rows):
            driver.set_motion(rows[mask], velocity[mask])

    def read_lidars(self, rows: Rows) -> LidarReadings:
        if not rows.size:
            return LidarReadings(np.zeros(0), np.zeros(0, dtype=np.bool_))
        return LidarReadings(*self._parts.joined(rows, lambda each, own: each.read_lidars(own)))

    def nearest(self, rows: Rows) -> Floats:
        found = self._parts.joined(rows, lambda each, own: (each.nearest(own),))
        return found[0] if found else np.zeros(0)

    def ranges(self, row: int) -> Floats:
        found: Floats = self._parts.of(row).ranges(row)
        return found

    def take_scans(self) -> Sequence[Scan]:
        return [scan for driver in self._parts.drivers for scan in driver.take_scans()]

    def connected(self, rows: Rows) -> Bools:
        return _flags(self._parts.joined(rows, lambda each, own: (each.connected(own),)))


class DriverGraph:
    """`TimedHardware` of all robots. ``real``: 1 for REAL robots, 0 for MOCK ones."""

    def __init__(
        self,
        layout: Layout,
        mock: MockHardware | None,
        real_hardware: RealHardware | None,
        real: NDArray[np.int8],
    ) -> None:
        self.mock = mock
        """The simulated robots, with what is true of them."""
        self.real_hardware = real_hardware
        self._layout = layout
        parts: list[TimedHardware] = [each for each in (mock, real_hardware) if each is not None]
        self._parts = Parts(parts, real if len(parts) > 1 else np.zeros_like(real))
        self.motors: MotorDriver = parts[0].motors
        self.io: IoDriver = parts[0].io
        self.sensors: SensorDriver = parts[0].sensors
        if len(parts) > 1:
            self.motors = SplitMotors(self._of([e.motors for e in parts], layout.motors))
            drivers = [each.io for each in parts]
            self.io = SplitIo(self._of(drivers, layout.inputs), self._of(drivers, layout.outputs))
            self.sensors = SplitSensors(self._of([e.sensors for e in parts], layout.devices))

    def _of(self, drivers: Sequence[Any], rows: Sequence[Any]) -> Parts:
        """The driver of a row is that of its robot."""
        robots = np.array([row.robot for row in rows], dtype=np.int64)
        return Parts(drivers, self._parts.serves[robots])

    def begin(self, now: int) -> None:
        for part in self._parts.drivers:
            part.begin(now)

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        self._parts.of(robot).command_started(robot, command_type, now)

    def step(self, rows: Rows, seconds: float) -> None:
        for part, mask in self._parts.split(rows):
            part.step(rows[mask], seconds)

    def read_robots(self, rows: Rows) -> RobotReadings:
        if not rows.size:
            return RobotReadings(np.zeros(0))
        return RobotReadings(*self._parts.joined(rows, lambda each, own: each.read_robots(own)))

    def obstacles(self, robot: int) -> Obstacles:
        """`KnowsMap`: of a REAL robot no obstacle is known."""
        if self.mock:
            return self.mock.obstacles(robot)
        return Obstacles(np.zeros((0, 3)), np.zeros((0, 4)))

    def map_bounds(self, robot: int) -> Bounds | None:
        """`KnowsMap`: of a REAL robot no map is known."""
        is_mock = self._layout.robots[robot].runtime.mode == "MOCK"
        return self.mock.map_bounds(robot) if self.mock and is_mock else None

    def next_change(self) -> int | None:
        """`Rests`: a REAL robot may change at any time."""
        times = [
            part.next_change() if isinstance(part, Rests) else 0 for part in self._parts.drivers
        ]
        return min((time for time in times if time is not None), default=None)

    def save(self) -> State:
        return self.mock.save() if self.mock else None

    def load(self, state: State) -> None:
        if self.mock:
            self.mock.load(state)
        elif self.real_hardware:
            self.real_hardware.load(state)
