"""Communication modules of a robot, and what they can do with it.

RobotCore, Settings, TaskComm, TrafficComm and RouteComm are modules: each handles some kinds of
messages, and acts at the ticks for which it asked. A module that is not in
`capabilities.supportedModules` is not made; its messages are answered as unsupported.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.runtime.messages import Pose, Received, RobotStatus, StopReason

Occurrence = Literal["connected", "stopped", "ending"]
"""What modules are informed of: NATS is connected (again); a STOP command was carried out, or an
operator stopped the robot; the cell ends."""
Hold = Literal["TRAFFIC_HOLD", "MANUAL_HOLD"]
"""Each is set and released on its own: a robot is held as long as one of them is set."""
SpeedLimit = Literal["traffic", "order"]
"""Who limits the speed: traffic control, or the edges of an order. The lowest limit counts."""
CANCELED = "CANCELED"
"""Why a command of `RobotContext.command` ended, if another command (STOP) ended it."""


class RobotContext(Protocol):
    """One robot as its modules use it: what they know of it, and what they can make it do."""

    @property
    def file(self) -> RobotFile: ...

    @property
    def pose(self) -> Pose:
        """Where the robot believes to be."""
        ...

    @property
    def is_moving(self) -> bool:
        """Whether the robot drives or turns."""
        ...

    @property
    def status(self) -> RobotStatus: ...

    @property
    def stop_reason(self) -> StopReason | None: ...

    def publish(
        self, kind: str, payload: Struct, now: int, correlation_id: str | None = None
    ) -> str:
        """Sends a message of one of the kinds in `FROM_ROBOT`; returns its messageId."""
        ...

    def event(
        self,
        type_: str,
        details: Mapping[str, Any],
        now: int,
        correlation_id: str | None = None,
    ) -> None: ...

    def claim(self, message_id: str, now: int) -> bool:
        """Whether the work of a message may begin now, so that it is begun once even if the cell is
        killed; while it may not, it is asked again at the next tick."""
        ...

    def answer(
        self, message_id: str, kind: str, payload: Struct, now: int, correlation_id: str
    ) -> None:
        """Publishes the last answer to a task.assign; its work has ended."""
        ...

    def handled(self, message_id: str, kind: str) -> None:
        """A message has ended without an answer."""
        ...

    def command(
        self, command_type: CommandType, parameters: Mapping[str, Any], tag: str, now: int
    ) -> Refused | None:
        """Queues a command of the robot itself (a step of a task), with the checks of one from the
        backend and without its acks. Its end is reported to `Module.ended` with the same tag."""
        ...

    def act(self, parameters: Mapping[str, Any], tag: str, now: int) -> Refused | None:
        """Begins an EXECUTE_ACTION of the robot itself beside its other commands, now. MOTOR_BUSY:
        the motor carries out another one."""
        ...

    def cancel_own(self, now: int) -> None:
        """Ends the running and the queued commands of `command` and `act`."""
        ...

    def off_map(self, x: float, y: float) -> str:
        """Why a place cannot be reached: it is off the map; else empty."""
        ...

    def locate(self, pose: Pose, now: int) -> None:
        """Sets the pose where the robot believes to be."""
        ...

    def note(self, content: bytes) -> None:
        """Keeps the newest content for the next start of the cell; see `Journal`."""
        ...

    def set_hold(self, reason: Hold, held: bool, now: int) -> None:
        """A hold stops the robot like a safety stop.

        Unlike other safety stops it does not fail the running MOVE_TO_POSE or MOVE_VELOCITY of
        `command`: the robot goes on when the hold is released.
        """
        ...

    def limit_speed(self, source: SpeedLimit, fastest: float | None, now: int) -> None:
        """The largest speed that a source allows, m/s; None: it has no limit."""
        ...


class Module(Protocol):
    """A communication module of one robot; its state is saved as `ports.state` does it."""

    def kinds(self) -> tuple[str, ...]:
        """The kinds of `TO_ROBOT` that it handles."""
        ...

    def handle(self, message: Received, now: int) -> None:
        """A message; one that is delivered again does not come here."""
        ...

    def advance(self, now: int) -> None:
        """Acts at a tick; called at every tick from `next_wake` on."""
        ...

    def next_wake(self) -> int | None:
        """From when on `advance` is called at every tick; None: not until something happens.

        It changes only while a module of the same robot is called, so that the runtime reads it
        then and asks nothing at the ticks in between.
        """
        ...

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        """A command of `RobotContext.command` has ended: None, or why it failed or was canceled.
        Tags of other modules are not meant."""
        ...

    def occurred(self, what: Occurrence, now: int) -> None: ...


@runtime_checkable
class ChecksMessages(Protocol):
    """A module that can say beforehand what it would do with a message."""

    def problem(self, message: Received) -> Refused | None:
        """Why the message would be refused now."""
        ...
