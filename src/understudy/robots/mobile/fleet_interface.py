"""The mobile robots of a cell as a map shows them: the floor, all robots, and one robot in detail.

Metres, radians and seconds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.ports.hmi import RobotView

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

RequestKind = Literal["command.request", "task.assign", "task.cancel", "traffic.control"]
"""What an operator may ask of a robot, in the place of its backend."""

FLAGS = ("estop", "fault", "busy", "task", "blocked", "real", "held")
"""Bits of `FleetColumns.flags`, from bit 0 on. `busy`: a command is under way; `blocked`: an
obstacle is in front of it; `real`: the robot is REAL; `held`: traffic control holds it, also while
there is another reason to stop."""


class FleetColumns(NamedTuple):
    """All robots at one time, in the order of the cell file."""

    pose: Floats
    """Rows of x, y, yaw: where the robot is, or where a REAL robot believes to be."""
    speed: Floats
    """Forward, m/s."""
    goal: Floats
    """Rows of x, y, yaw of the command MOVE_TO_POSE under way; NaN where there is none."""
    battery: Bytes
    """Percent."""
    status: Bytes
    """Index in `Floor.statuses`."""
    stop: Bytes
    """Index in `Floor.stops`."""
    flags: Bytes


class FloorRobot(Struct, frozen=True):
    """What does not change of a robot. `ahead`: of its centre, as seen from its pose. `commands`:
    of `command.request`; `orders`: what an operator can order, see `commands.Order`."""

    name: str
    code: str
    model: str
    mode: str
    length: float
    width: float
    height: float
    ahead: float
    commands: Sequence[str]
    orders: Sequence[str]


class Marker(Struct, frozen=True):
    code: str
    x: float
    y: float


class Floor(Struct, frozen=True):
    """`circles`: rows of x, y, radius; `lines`: rows of x1, y1, x2, y2: the obstacles of all
    robots. `version` is another number after each change of the obstacles."""

    version: int
    robots: Sequence[FloorRobot]
    markers: Sequence[Marker]
    circles: Sequence[Sequence[float]]
    lines: Sequence[Sequence[float]]
    statuses: Sequence[str]
    stops: Sequence[str]
    flags: Sequence[str] = FLAGS


class QueuedCommand(Struct, frozen=True):
    """`own`: a step of a task, not a command from outside."""

    command: str
    parameters: Mapping[str, Any]
    running: bool
    own: bool


class TaskReading(Struct, frozen=True):
    """`x`, `y`: the destination of a MOVE_TO_POINT."""

    task: str
    priority: int
    running: bool
    done: int
    steps: int
    x: float | None = None
    y: float | None = None


class HoldReading(Struct, frozen=True):
    """Traffic control of a robot. `node`: where it shall be held; `active`: it is held there.
    `standing`: its speed limit is 0. `max_speed`: of commands and traffic, None without a limit."""

    node: str | None
    active: bool
    standing: bool
    at_node: str | None
    max_speed: float | None


class Signal(Struct, frozen=True):
    """An input, an output or a device."""

    id: str
    role: str
    on: bool
    connected: bool = True


class MotorReading(Struct, frozen=True):
    id: str
    role: str
    mode: str
    connected: bool
    position: float
    velocity: float
    fault: str = ""


class FleetRobot(Struct, frozen=True):
    """One robot in detail. `pose`: where it believes to be; `true_pose`: where a simulated one is.
    `lidar`: points on the floor that its lidars see. `route`: points that are left of its task.
    `nearest`: metres to the nearest obstacle, if its lidar sees one."""

    name: str
    status: str
    stop: str
    estop: bool
    pose: tuple[float, float, float]
    true_pose: tuple[float, float, float] | None
    velocity: tuple[float, float]
    battery: float
    localization: str
    nearest: float | None
    braking_distance: float
    faults: Sequence[str]
    motors: Sequence[MotorReading]
    inputs: Sequence[Signal]
    outputs: Sequence[Signal]
    devices: Sequence[Signal]
    queue: Sequence[QueuedCommand]
    tasks: Sequence[TaskReading]
    hold: HoldReading
    route: Sequence[tuple[float, float]]
    lidar: Sequence[tuple[float, float]]


class FleetLinkState(Struct, frozen=True):
    """The connection to NATS. `waiting`: messages that the server has not confirmed; `given_up`:
    messages that were dropped."""

    connected: bool
    waiting: int
    given_up: int


FleetListener = Callable[[str, str, Mapping[str, Any], int], None]
"""Called with the robot, the type of an event, its details and the time."""


class FleetView(Protocol):
    """Mobile robots as an operator sees and commands them. Reading changes nothing."""

    def names(self) -> Sequence[str]: ...

    def floor(self) -> Floor: ...

    def floor_version(self) -> int: ...

    def columns(self) -> FleetColumns: ...

    def details(self, robot: str, now: int) -> FleetRobot: ...

    def link(self) -> FleetLinkState: ...

    def tasks(self) -> Iterator[tuple[str, TaskReading]]:
        """The tasks of all robots: running and waiting ones of each, in their order."""
        ...

    def views(self) -> Mapping[str, RobotView]:
        """All robots as pages draw them in 3D."""
        ...

    def request(
        self, robot: str, kind: RequestKind, payload: Mapping[str, Any], now: int
    ) -> Refused | None:
        """Gives a robot a message as if its backend had sent it; it is handled at the robot's next
        tick. Refused if the robot would reject it now."""
        ...

    def set_input(self, robot: str, name: str, value: bool | None, now: int) -> Refused | None:
        """Sets an input of a robot in MOCK mode; None: see `MockIo.set_input`."""
        ...

    def on_event(self, listener: FleetListener) -> None:
        """Calls ``listener`` at every event of a robot, and at the end of every task."""
        ...


@runtime_checkable
class HasFleetView(Protocol):
    """The part of a cell that shows its mobile robots."""

    @property
    def seen_together(self) -> FleetView: ...
