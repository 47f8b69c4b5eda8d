"""The hardware of mobile robots as their runtime uses it, REAL or MOCK.

All motors, inputs, outputs and sensors of a process are rows of tables; `config.layout` has
their numbers. A driver serves some rows: `read(rows)` gives arrays with one entry for each of these
rows, in the same order, and `write(rows, values)` takes such arrays. No call waits: a REAL driver
gives what it heard last and sends what it was given as soon as it can.

A tick of the runtime: `TimedHardware.begin`, writes, `step`, reads.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.ports import State

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
RESET_NOT_ALLOWED = Refused("RESET_NOT_ALLOWED")
RESET_COOLDOWN = "RESET_COOLDOWN"
"""Why a motor is not reset; behind the second one stands how long the cooldown still lasts."""


# ── motors ──────────────────────────────────────────────────────────────────────────────────────


class MotorOutputs(NamedTuple):
    """What motors shall do, in SI units; one entry for each row.

    `speed`: of the circumference of a wheel, for DRIVE motors. `target` and `tolerance`: position
    of a FUNCTIONAL motor; it goes there while `moving`, and brakes and stays when not.
    """

    speed: Floats
    target: Floats
    tolerance: Floats
    moving: Bools


class MotorLimits(NamedTuple):
    """Limits that settings may lower, in SI units."""

    speed: Floats
    acceleration: Floats
    deceleration: Floats


class MotorReadings(NamedTuple):
    """What motors report. `position` of a wheel: metres rolled. `faulty`: see `MotorDriver.fault`.
    `homing`: it looks for its reference."""

    position: Floats
    velocity: Floats
    connected: Bools
    faulty: Bools
    homing: Bools


class MotorFault(Struct, frozen=True):
    code: str
    message: str


class MotorDriver(Protocol):
    """Motors; rows are those of the table of motors."""

    def write(self, rows: Rows, outputs: MotorOutputs) -> None: ...

    def set_limits(self, rows: Rows, limits: MotorLimits) -> None: ...

    def read(self, rows: Rows) -> MotorReadings: ...

    def fault(self, row: int) -> MotorFault | None: ...

    def reset(self, row: int, now: int) -> Refused | None:
        """Clears the fault of a motor; refused while its cooldown lasts or if it is not allowed."""
        ...


# ── inputs and outputs ──────────────────────────────────────────────────────────────────────────


class IoDriver(Protocol):
    """Digital inputs and outputs, each with its own table of rows. A value is what the signal
    means: `inverted` is the driver's business."""

    def read_inputs(self, rows: Rows) -> Bools: ...

    def inputs_connected(self, rows: Rows) -> Bools: ...

    def read_outputs(self, rows: Rows) -> Bools: ...

    def write_outputs(self, rows: Rows, values: Bools) -> None: ...


# ── sensors ─────────────────────────────────────────────────────────────────────────────────────


class LidarReadings(NamedTuple):
    """What lidars report at every tick.

    `ahead`: how far (metres) the robot can go on as it is commanded now (`SensorDriver.set_motion`)
    until its outline touches something: what the protective field of a safety scanner watches;
    infinite where nothing is seen. While it turns on the spot: metres that the farthest corner of
    its outline moves.
    """

    ahead: Floats
    connected: Bools


class Scan(Struct, frozen=True):
    """A code that a scanner has read. `row`: of the device. `marker`: where the marker is (x, y and
    yaw, which may be unknown), if the scanner corrects the pose. `seen`: the same marker from the
    robot: x, y in its frame, and the yaw of the marker minus that of the robot (0 if unknown)."""

    row: int
    code: str
    type: str | None
    marker: tuple[float, float, float | None] | None
    seen: tuple[float, float, float] | None = None


class SensorDriver(Protocol):
    """Lidars and scanners; rows are those of the table of devices."""

    def set_motion(self, rows: Rows, velocity: Floats) -> None:
        """Tells lidars where their robots are going: forward, sideways (m/s) and turning (rad/s);
        one line of three for each row. At 0 the last motion counts. `read_lidars` then reports
        `ahead` for this motion from where they are."""
        ...

    def read_lidars(self, rows: Rows) -> LidarReadings: ...

    def nearest(self, rows: Rows) -> Floats:
        """Metres from lidars to the nearest obstacle at their last scan; infinite: none is seen."""
        ...

    def ranges(self, row: int) -> Floats:
        """The full scan of a lidar: a distance for each ray."""
        ...

    def take_scans(self) -> Sequence[Scan]:
        """Removes and returns what the scanners have read."""
        ...

    def connected(self, rows: Rows) -> Bools: ...


# ── the map ─────────────────────────────────────────────────────────────────────────────────────


class Obstacles(NamedTuple):
    """What stands in the way of a robot, in metres; the four sides of a box are lines."""

    circles: Floats
    """Rows of x, y, radius."""
    lines: Floats
    """Rows of x1, y1, x2, y2."""


class Bounds(NamedTuple):
    """A rectangle on the floor, in metres."""

    low_x: float
    low_y: float
    high_x: float
    high_y: float

    def has(self, x: float, y: float) -> bool:
        return self.low_x <= x <= self.high_x and self.low_y <= y <= self.high_y


@runtime_checkable
class KnowsMap(Protocol):
    """What is known of the surroundings of robots."""

    def obstacles(self, robot: int) -> Obstacles:
        """All obstacles of the world of a robot, where they are now."""
        ...

    def map_bounds(self, robot: int) -> Bounds | None:
        """The floor of a robot; None: it has no end, or nothing is known of it."""
        ...


# ── all of a robot ──────────────────────────────────────────────────────────────────────────────


class RobotReadings(NamedTuple):
    """What robots report of themselves; rows are those of robots."""

    battery_percent: Floats


class TimedHardware(Protocol):
    """All drivers of a table of robots on their time axis, as `build_driver_graph` makes them and
    the runtime uses them."""

    @property
    def motors(self) -> MotorDriver: ...

    @property
    def io(self) -> IoDriver: ...

    @property
    def sensors(self) -> SensorDriver: ...

    def begin(self, now: int) -> None:
        """A tick begins: scripts and faults that are due happen."""
        ...

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        """The runtime carries out a command: faults may come with it."""
        ...

    def step(self, rows: Rows, seconds: float) -> None:
        """Moves the simulated robots of these rows on; a REAL driver exchanges data."""
        ...

    def read_robots(self, rows: Rows) -> RobotReadings: ...

    def save(self) -> State: ...

    def load(self, state: State) -> None: ...


@runtime_checkable
class Rests(Protocol):
    """Hardware that changes nothing by itself between scripted events while all motors stand: the
    runtime may leave out ticks, and `TimedHardware.step` is called once with the whole time."""

    def next_change(self) -> int | None:
        """When a script or a fault acts next; None: never. A time that has passed means now."""
        ...
