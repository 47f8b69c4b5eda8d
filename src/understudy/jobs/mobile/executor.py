"""Carries out the commands of one robot: one after the other, each message once.

A command is rejected, or it is ACKED, then RUNNING, and at last DONE, FAILED or CANCELED. STOP ends
the running command and cancels the queued ones. A MOVE_VELOCITY without a duration ends when the
next command begins.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import Any, Protocol

from msgspec import UNSET, Struct

from understudy.config.mobile.profile import CommandType
from understudy.errors import Refused
from understudy.jobs.mobile.commands import (
    COMMANDS,
    CUT_OFF,
    MOTOR_DOWN,
    NOT_READY,
    STOPPED,
    UNSUPPORTED,
    CommandKind,
    ExecuteAction,
    MoveToPose,
    MoveVelocity,
    read_parameters,
)
from understudy.jobs.mobile.messages import (
    CommandAck,
    CommandRequest,
    CommandStatus,
    Received,
    RobotStatus,
)

QUEUE = 100
"""Commands that may wait; another one is rejected."""
REMEMBERED = 10_000
"""Ids of handled messages that are kept, to carry out each message once."""
FULL = Refused("QUEUE_FULL")
TAKE_TIME = (MoveVelocity, MoveToPose, ExecuteAction)
"""Parameters of commands that end later; all others end when they begin."""


class Body(Protocol):
    """What the commands of a robot act on; REAL and MOCK alike."""

    def begin(self, parameters: Any, now: int) -> Refused | None:
        """Starts a command, or says why it cannot be carried out."""
        ...

    def halt(self, now: int) -> None:
        """Ends the motion of the running command."""
        ...

    def is_up(self, motor: str | None) -> bool:
        """Whether a motor (None: all DRIVE motors) is healthy; False for an unknown one."""
        ...

    def motor_of(self, action: ExecuteAction) -> str:
        """The motor of an action; empty if there is none."""
        ...


class Command(Struct, frozen=True):
    """A command that was accepted."""

    message_id: str
    correlation_id: str | None
    command_type: CommandType
    parameters: Any


Acknowledge = Callable[[CommandAck, str | None, int], None]
"""Called with an ack, the correlation id of its request and the time."""


class Executor:
    """The command queue of one robot."""

    def __init__(
        self, body: Body, supported: Collection[CommandType], acknowledge: Acknowledge
    ) -> None:
        self._body = body
        self._supported = frozenset(supported)
        self._acknowledge = acknowledge
        self._queue: deque[Command] = deque()
        self._active: Command | None = None
        self._handled: OrderedDict[str, None] = OrderedDict()

    @property
    def active(self) -> Command | None:
        return self._active

    def request(self, message: Received, status: RobotStatus, now: int, *, stopped: bool) -> None:
        """A command from the backend. ``stopped``: the robot is stopped for safety."""
        if message.message_id in self._handled:
            return
        self._remember(message.message_id)
        asked: CommandRequest = message.payload
        cause = message.correlation_id or message.message_id
        found = self._examined(asked, status, stopped=stopped)
        if isinstance(found, Refused):
            self._say(asked.command_type, cause, "REJECTED", now, found)
            return
        command = Command(message.message_id, cause, *found)
        self._tell(command, "ACKED", now)
        if COMMANDS[command.command_type].stops:
            self._stop(command, now)
            return
        self._queue.append(command)
        self._begin_next(now)

    def finished(self, outcome: Refused | None, now: int) -> None:
        """The running command has ended: well, or for a reason."""
        command, self._active = self._active, None
        if command is not None:
            self._tell(command, "FAILED" if outcome else "DONE", now, outcome)
        self._begin_next(now)

    def cut_off(self, now: int) -> None:
        """A safety stop: the running command fails, the queued ones are canceled."""
        self._cancel_queued(now)
        if self._active is not None:
            self._body.halt(now)
            self.finished(CUT_OFF, now)

    # ── inside ──

    def _examined(
        self, asked: CommandRequest, status: RobotStatus, *, stopped: bool
    ) -> tuple[CommandType, Any] | Refused:
        """The checks in the order of the contract."""
        name = next((each for each in COMMANDS if each == asked.command_type), None)
        if name is None or name not in self._supported:
            return UNSUPPORTED
        kind = COMMANDS[name]
        if not kind.always and status in ("ERROR", "OFFLINE"):
            return NOT_READY
        parameters = read_parameters(kind, asked.parameters)
        if isinstance(parameters, Refused):
            return parameters
        if not self._has_motors(kind, parameters):
            return MOTOR_DOWN
        if stopped and not kind.stops:
            return STOPPED
        return FULL if len(self._queue) >= QUEUE else (name, parameters)

    def _has_motors(self, kind: CommandKind, parameters: Any) -> bool:
        if isinstance(parameters, ExecuteAction):
            return self._body.is_up(self._body.motor_of(parameters))
        return not kind.drives or self._body.is_up(None)

    def _begin_next(self, now: int) -> None:
        while self._queue and (self._active is None or _is_endless(self._active)):
            if self._active is not None:
                self._tell(self._active, "DONE", now)
            command = self._active = self._queue.popleft()
            self._tell(command, "RUNNING", now)
            problem = self._body.begin(command.parameters, now)
            if problem is not None or not isinstance(command.parameters, TAKE_TIME):
                self._active = None
                self._tell(command, "FAILED" if problem else "DONE", now, problem)

    def _stop(self, stop: Command, now: int) -> None:
        self._cancel_queued(now)
        self._tell(stop, "RUNNING", now)
        running, self._active = self._active, None
        self._body.halt(now)
        if running is not None:
            self._tell(running, "CANCELED", now)
        self._tell(stop, "DONE", now)

    def _cancel_queued(self, now: int) -> None:
        while self._queue:
            self._tell(self._queue.popleft(), "CANCELED", now)

    def _remember(self, message_id: str) -> None:
        self._handled[message_id] = None
        if len(self._handled) > REMEMBERED:
            self._handled.popitem(last=False)

    def _tell(
        self, command: Command, status: CommandStatus, now: int, reason: Refused | None = None
    ) -> None:
        self._say(command.command_type, command.correlation_id, status, now, reason)

    def _say(
        self, name: str, cause: str | None, status: CommandStatus, now: int,
        reason: Refused | None = None,
    ) -> None:  # fmt: skip
        why = UNSET if reason is None else reason.reason
        self._acknowledge(CommandAck(name, status, reason=why), cause, now)


def _is_endless(command: Command) -> bool:
    parameters = command.parameters
    return isinstance(parameters, MoveVelocity) and parameters.duration_seconds is None
