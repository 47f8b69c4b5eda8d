"""Carries out the commands of one robot with its motors, one after the other.

A command is rejected, or it is ACKED, then RUNNING, and at last DONE, FAILED or CANCELED. STOP ends
the running command and cancels the queued ones. A MOVE_VELOCITY without a duration ends when the
next command begins. Commands of the robot itself (steps of a task) stand in the same queue; they
have a tag and no acks.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Protocol

from msgspec import UNSET, Meta, Struct, to_builtins

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import Motor
from understudy.robots.mobile.fleet_interface import QueuedCommand
from understudy.robots.mobile.hardware_interface import KnowsMap, TimedHardware
from understudy.robots.mobile.runtime import pose_control
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    CUT_OFF,
    DISABLED,
    INVALID,
    MOTOR_DOWN,
    NOT_READY,
    STOPPED,
    UNSUPPORTED,
    CommandAck,
    CommandKind,
    CommandRequest,
    CommandStatus,
    ExecuteAction,
    MoveToPose,
    MoveVelocity,
    Received,
    ResetMotor,
    RobotStatus,
    SetSpeedLimit,
    read_parameters,
)
from understudy.robots.mobile.runtime.modules import CANCELED
from understudy.robots.mobile.runtime.table import Table, rows_of
from understudy.robots.mobile.runtime.tick import POSE, REST, VELOCITY
from understudy.robots.mobile.wheels import MECANUM, ideal_seconds
from understudy.units import LATEST, nanoseconds

QUEUE = 100
"""Commands that may wait; another one is rejected."""
FULL = Refused("QUEUE_FULL")
MOTOR_BUSY = Refused("MOTOR_BUSY")
TAKE_TIME = (MoveVelocity, MoveToPose, ExecuteAction)
"""Parameters of commands that end later; all others end when they begin."""
OUTCOMES: Mapping[CommandStatus, Callable[[Refused | None], Refused | None]] = {
    "DONE": lambda reason: None,
    "FAILED": lambda reason: reason,
    "CANCELED": lambda reason: Refused(CANCELED),
}
"""Ends of a command, as the robot itself is informed of them."""


class Body(Protocol):
    """What the commands of a robot act on; REAL and MOCK alike."""

    def problem(self, parameters: Any) -> Refused | None:
        """Why a command can never be carried out by this robot."""
        ...

    def started(self, command_type: CommandType, now: int) -> None:
        """A command is RUNNING."""
        ...

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

    def leads_away(self, parameters: Any) -> bool:
        """Whether a command drives the robot straight back from where it came to an obstacle."""
        ...

    def begin_beside(self, action: ExecuteAction, now: int) -> None:
        """Starts an action beside the running command, whose beginning and end do not stop it."""
        ...

    def halt_beside(self, motor: str) -> None:
        """Ends the motion of a motor that was started beside."""
        ...

    def keep_beside(self, motors: Collection[str]) -> None:
        """These motors were started beside, before a snapshot."""
        ...


class Readiness(Struct, frozen=True):
    """What decides whether a robot takes a command. `stopped`: for safety; `blocked`: for an
    obstacle in its way. `held`: by traffic control or an operator. `may_drive`, `may_act`: its
    policies allow it in this status."""

    status: RobotStatus = "RUNNING"
    stopped: bool = False
    blocked: bool = False
    held: bool = False
    may_drive: bool = True
    may_act: bool = True


class AcceptedCommand(Struct, frozen=True):
    """A command that was accepted. `tag`: of one of the robot's own commands, else empty.
    `message_id`: of the request, empty for an own one."""

    correlation_id: str | None
    command_type: CommandType
    parameters: Any
    tag: str = ""
    message_id: str = ""


class SavedCommand(Struct, frozen=True, forbid_unknown_fields=True):
    correlation_id: str | None
    command_type: CommandType
    parameters: dict[str, Any]
    tag: str
    message_id: str = ""

    def command(self) -> AcceptedCommand | Refused:
        parameters = read_parameters(COMMANDS[self.command_type], self.parameters)
        if isinstance(parameters, Refused):
            return parameters
        return AcceptedCommand(
            self.correlation_id, self.command_type, parameters, self.tag, self.message_id
        )


class SavedExecutor(Struct, forbid_unknown_fields=True):
    active: SavedCommand | None
    queue: Annotated[list[SavedCommand], Meta(max_length=QUEUE)]
    beside: Annotated[list[SavedCommand], Meta(max_length=QUEUE)] = []


Acknowledge = Callable[[CommandAck, str | None, str, int], None]
"""Called with an ack, correlation id and message id of its request, and the time."""
Ended = Callable[[str, Refused | None, int], None]
"""Called at the end of one of the robot's own commands: its tag, None or why it failed, the time.
It must not call the executor."""


class Executor:
    """The command queue of one robot."""

    def __init__(
        self,
        body: Body,
        supported: Collection[CommandType],
        acknowledge: Acknowledge,
        ended: Ended,
        claim: Callable[[str, int], bool] = lambda message_id, now: True,
    ) -> None:
        """``claim``: whether the command of a message may begin now; it is asked again."""
        self._body = body
        self._supported = frozenset(supported)
        self._acknowledge = acknowledge
        self._ended = ended
        self._claim = claim
        self.waits = False
        """The next command may not begin yet: `proceed` is to be called at the next tick."""
        self._queue: deque[AcceptedCommand] = deque()
        self._active: AcceptedCommand | None = None
        self._beside: dict[str, AcceptedCommand] = {}
        """Own actions beside the running command, by their motors."""

    @property
    def is_busy(self) -> bool:
        return self._active is not None or bool(self._beside)

    @property
    def active(self) -> AcceptedCommand | None:
        return self._active

    def readings(self) -> list[QueuedCommand]:
        """The running command and those that wait, in their order."""
        running = [*([] if self._active is None else [self._active]), *self._beside.values()]
        return [
            QueuedCommand(
                each.command_type,
                to_builtins(each.parameters),
                each in running,
                bool(each.tag),
            )
            for each in (*running, *self._queue)
        ]

    def request(self, message: Received, ready: Readiness, now: int) -> None:
        """A command from the backend."""
        asked: CommandRequest = message.payload
        cause = message.cause
        found = self._examined(asked.command_type, asked.parameters or {}, ready, ready.held)
        if isinstance(found, Refused):
            self._say(asked.command_type, cause, message.message_id, "REJECTED", now, found)
            return
        self._accept(AcceptedCommand(cause, *found, message_id=message.message_id), now)

    def problem(self, asked: CommandRequest, ready: Readiness) -> Refused | None:
        """Why a command from outside would be rejected now."""
        found = self._examined(asked.command_type, asked.parameters or {}, ready, ready.held)
        return found if isinstance(found, Refused) else None

    def request_own(
        self, name: CommandType, parameters: Mapping[str, Any], tag: str, ready: Readiness, now: int
    ) -> Refused | None:
        """A command of the robot itself. While the robot is held it waits."""
        found = self._examined(name, parameters, ready, held=False)
        if isinstance(found, Refused):
            return found
        self._accept(AcceptedCommand(None, *found, tag), now)
        return None

    def act_beside(
        self, parameters: Mapping[str, Any], tag: str, ready: Readiness, now: int
    ) -> Refused | None:
        """An action of the robot itself, carried out now beside the other commands."""
        found = self._examined("EXECUTE_ACTION", parameters, ready, held=False)
        if isinstance(found, Refused):
            return found
        motor = self._body.motor_of(found[1])
        running = self._active.parameters if self._active else None
        taken = isinstance(running, ExecuteAction) and self._body.motor_of(running) == motor
        if taken or motor in self._beside:
            return MOTOR_BUSY
        self._beside[motor] = AcceptedCommand(None, *found, tag)
        self._body.started("EXECUTE_ACTION", now)
        self._body.begin_beside(found[1], now)
        return None

    def motor_ended(self, motor: str, outcome: Refused | None, now: int) -> bool:
        """The motion of a motor has ended; whether it was started beside the running command."""
        command = self._beside.pop(motor, None)
        if command is not None:
            self._body.halt_beside(motor)
            self._tell(command, "FAILED" if outcome else "DONE", now, outcome)
        return command is not None

    def proceed(self, now: int) -> None:
        """Begins the next command, if it may begin now."""
        self._begin_next(now)

    def finished(self, outcome: Refused | None, now: int) -> None:
        """The running command has ended: well, or for a reason."""
        command, self._active = self._active, None
        if command is not None:
            self._tell(command, "FAILED" if outcome else "DONE", now, outcome)
        self._begin_next(now)

    def cut_off(self, now: int, reason: Refused = CUT_OFF, *, keep_own: bool = False) -> None:
        """The running command fails, the queued ones are canceled. ``keep_own``: those of the robot
        itself stay, and wait until it may go on."""
        kept = [each for each in self._queue if keep_own and each.tag]
        for command in list(self._queue):
            if command not in kept:
                self._tell(command, "CANCELED", now)
        self._queue = deque(kept)
        if not keep_own:
            for motor in list(self._beside):
                self.motor_ended(motor, reason, now)
        if self._active is not None and not (keep_own and self._active.tag):
            self._body.halt(now)
            self.finished(reason, now)

    def cancel_own(self, now: int) -> None:
        """Ends the robot's own commands, the running one and the queued ones."""
        for command in [each for each in self._queue if each.tag]:
            self._queue.remove(command)
            self._tell(command, "CANCELED", now)
        self._cancel_beside(now)
        if self._active is not None and self._active.tag:
            command, self._active = self._active, None
            self._body.halt(now)
            self._tell(command, "CANCELED", now)
        self._begin_next(now)

    # ── inside ──

    def _examined(
        self, command_type: str, given: Mapping[str, Any], ready: Readiness, held: bool
    ) -> tuple[CommandType, Any] | Refused:
        """The checks in the order of the contract."""
        name = next((each for each in COMMANDS if each == command_type), None)
        if name is None or name not in self._supported:
            return UNSUPPORTED
        kind = COMMANDS[name]
        if not kind.always and ready.status in ("ERROR", "OFFLINE"):
            return NOT_READY
        if (kind.drives and not ready.may_drive) or (kind.acts and not ready.may_act):
            return NOT_READY
        parameters = read_parameters(kind, given)
        if isinstance(parameters, Refused):
            return parameters
        if not self._has_motors(kind, parameters):
            return MOTOR_DOWN
        retreats = ready.blocked and not held and self._body.leads_away(parameters)
        if (ready.stopped or held) and not kind.stops and not retreats:
            return STOPPED
        problem = self._body.problem(parameters)
        if problem is not None:
            return problem
        return FULL if len(self._queue) >= QUEUE else (name, parameters)

    def _has_motors(self, kind: CommandKind, parameters: Any) -> bool:
        if isinstance(parameters, ExecuteAction):
            return self._body.is_up(self._body.motor_of(parameters))
        return not kind.drives or self._body.is_up(None)

    def _accept(self, command: AcceptedCommand, now: int) -> None:
        self._tell(command, "ACKED", now)
        if COMMANDS[command.command_type].stops:
            self._stop(command, now)
            return
        self._queue.append(command)
        self._begin_next(now)

    def _begin_next(self, now: int) -> None:
        self.waits = False
        while self._queue and (self._active is None or _is_endless(self._active)):
            if not self._claim(self._queue[0].message_id, now):
                self.waits = True
                return
            if self._active is not None:
                self._tell(self._active, "DONE", now)
            command = self._active = self._queue.popleft()
            if isinstance(command.parameters, ExecuteAction):
                self._cancel_beside(now, self._body.motor_of(command.parameters))
            self._start(command, now)
            problem = self._body.begin(command.parameters, now)
            if problem is not None or not isinstance(command.parameters, TAKE_TIME):
                self._active = None
                self._tell(command, "FAILED" if problem else "DONE", now, problem)

    def _cancel_beside(self, now: int, motor: str | None = None) -> None:
        """Ends own actions beside the running command: of one motor, or all."""
        for each in [name for name in self._beside if motor in (None, name)]:
            self._body.halt_beside(each)
            self._tell(self._beside.pop(each), "CANCELED", now)

    def _stop(self, stop: AcceptedCommand, now: int) -> None:
        while self._queue:
            self._tell(self._queue.popleft(), "CANCELED", now)
        self._cancel_beside(now)
        self._start(stop, now)
        running, self._active = self._active, None
        self._body.halt(now)
        if running is not None:
            self._tell(running, "CANCELED", now)
        self._tell(stop, "DONE", now)

    def _start(self, command: AcceptedCommand, now: int) -> None:
        self._tell(command, "RUNNING", now)
        self._body.started(command.command_type, now)

    def _tell(
        self,
        command: AcceptedCommand,
        status: CommandStatus,
        now: int,
        reason: Refused | None = None,
    ) -> None:
        if not command.tag:
            cause, message_id = command.correlation_id, command.message_id
            self._say(command.command_type, cause, message_id, status, now, reason)
        elif status in OUTCOMES:
            self._ended(command.tag, OUTCOMES[status](reason), now)

    def _say(
        self,
        name: str,
        cause: str | None,
        message_id: str,
        status: CommandStatus,
        now: int,
        reason: Refused | None = None,
    ) -> None:
        why = UNSET if reason is None else reason.reason
        self._acknowledge(CommandAck(name, status, reason=why), cause, message_id, now)

    # ── snapshot ──

    def save(self) -> SavedExecutor:
        active = None if self._active is None else _saved(self._active)
        beside = [_saved(each) for each in self._beside.values()]
        return SavedExecutor(active, [_saved(each) for each in self._queue], beside)

    def load(self, saved: SavedExecutor) -> None:
        commands = [each.command() for each in saved.queue]
        self._queue = deque(each for each in commands if isinstance(each, AcceptedCommand))
        self.waits = bool(self._queue)
        active = saved.active.command() if saved.active is not None else None
        self._active = active if isinstance(active, AcceptedCommand) else None
        self._beside = {
            self._body.motor_of(each.parameters): each
            for each in (one.command() for one in saved.beside)
            if isinstance(each, AcceptedCommand) and isinstance(each.parameters, ExecuteAction)
        }
        self._body.keep_beside(self._beside)


def _saved(command: AcceptedCommand) -> SavedCommand:
    parameters = to_builtins(command.parameters)
    return SavedCommand(
        command.correlation_id, command.command_type, parameters, command.tag, command.message_id
    )


def _is_endless(command: AcceptedCommand) -> bool:
    parameters = command.parameters
    return isinstance(parameters, MoveVelocity) and parameters.duration_seconds is None


# ── the motors of a robot ────────────────────────────────────────────────────────────────────────

TOLERANCE = 5e-4
"""Metres or radians within which an action has reached its target, unless it says otherwise."""


class RowBody:
    """`executor.Body` of a row of the table."""

    def __init__(self, table: Table, row: int, hardware: TimedHardware) -> None:
        self._table = table
        self._row = row
        self._hardware = hardware
        self._map = hardware if isinstance(hardware, KnowsMap) else None
        self._first, self._end = (int(n) for n in table.motor_spans[row])
        self._motors = {
            motor.motor_id: self._first + number
            for number, motor in enumerate(table.files[row].motors)
        }
        """Places of the motors in the table, by id."""
        self._beside: set[int] = set()
        """Places of motors that were started beside the running command."""

    @property
    def motors(self) -> Mapping[str, int]:
        return self._motors

    def problem(self, parameters: Any) -> Refused | None:
        check = CHECKS.get(type(parameters))
        return check(self, parameters) if check is not None else None

    def started(self, command_type: CommandType, now: int) -> None:
        self._hardware.command_started(int(self._table.robots[self._row]), command_type, now)

    def begin(self, parameters: Any, now: int) -> Refused | None:
        self.halt(now)
        if isinstance(parameters, TAKE_TIME) and (refused := self.why_not_moving()):
            return refused
        return BEGINNINGS[type(parameters)](self, parameters, now)

    def why_not_moving(self) -> Refused | None:
        """Why no motor can move."""
        on = self._hardware.io.read_outputs(rows_of(self._table.enables[self._row]))
        return None if on.all() else DISABLED

    def halt(self, now: int) -> None:
        table, row = self._table, self._row
        table.mode[row] = REST
        table.phase[row] = pose_control.REST
        for place in range(self._first, self._end):
            if place not in self._beside:
                table.moving[place] = False

    def begin_beside(self, action: ExecuteAction, now: int) -> None:
        self._beside.add(self._motors[self.motor_of(action)])
        self._act(action, now)

    def halt_beside(self, motor: str) -> None:
        place = self._motors[motor]
        self._beside.discard(place)
        self._table.moving[place] = False

    def keep_beside(self, motors: Collection[str]) -> None:
        self._beside = {self._motors[motor] for motor in motors}

    def is_up(self, motor: str | None) -> bool:
        table = self._table
        if motor is None:
            has_wheels = table.is_drive[self._first : self._end].any()
            return bool(has_wheels and not table.drive_down[self._row])
        place = self._motors.get(motor)
        return place is not None and bool(table.connected[place] and not table.faulty[place])

    def motor_of(self, action: ExecuteAction) -> str:
        functional = [m for m in self._table.files[self._row].motors if m.role == "FUNCTIONAL"]
        for motor in functional:
            if action.motor_id == motor.motor_id or action.function_key == motor.function_key:
                return motor.motor_id
        return ""

    def leads_away(self, parameters: Any) -> bool:
        if not isinstance(parameters, MoveVelocity) or parameters.lateral or parameters.angular:
            return False
        return bool(parameters.linear * self._table.last_way[self._row] < 0.0)

    def off_map(self, x: float, y: float) -> str:
        """Why a robot cannot go to a place, with the bounds of its map; empty if it is on it."""
        bounds = self._map and self._map.map_bounds(int(self._table.robots[self._row]))
        if not bounds or bounds.has(x, y):
            return ""
        return (
            f"x {x:g} y {y:g} is off the map; allowed: x {bounds.low_x:g} … {bounds.high_x:g} m, "
            f"y {bounds.low_y:g} … {bounds.high_y:g} m"
        )

    # ── checks ──

    def _check_place(self, goal: MoveToPose) -> Refused | None:
        why = self.off_map(goal.x, goal.y)
        return Refused(f"{INVALID}: {why}") if why else None

    def _check_velocity(self, move: MoveVelocity) -> Refused | None:
        if move.lateral != 0.0 and self._table.drive[self._row] != MECANUM:
            return Refused(f"{INVALID}: lateral: this drive cannot move sideways")
        return None

    def _check_motor(self, reset: ResetMotor) -> Refused | None:
        if reset.motor_id not in self._motors:
            known = ", ".join(self._motors)
            return Refused(f"{INVALID}: motorId {reset.motor_id}; known: {known}")
        return None

    def _check_target(self, action: ExecuteAction) -> Refused | None:
        limits = self._motor(self.motor_of(action)).limits.si
        low, high = limits.lowest, limits.highest
        target = action.target_position
        if (low is not None and target < low) or (high is not None and target > high):
            allowed = (
                f"{'-∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"
            )
            return Refused(f"{INVALID}: targetPosition {target:g}; allowed: {allowed}")
        return None

    def _motor(self, motor_id: str) -> Motor:
        return self._table.files[self._row].motors[self._motors[motor_id] - self._first]

    # ── beginnings ──

    def _move(self, move: MoveVelocity, now: int) -> None:
        table, row = self._table, self._row
        seconds = move.duration_seconds
        table.velocity[row] = move.linear, move.lateral, move.angular
        table.until[row] = LATEST if seconds is None else now + nanoseconds(seconds)
        table.mode[row] = VELOCITY
        if table.blocked[row] and self.leads_away(move):
            table.blocked[row] = False  # the lidars look along the new way at the next tick

    def _go(self, goal: MoveToPose, now: int) -> None:
        table, row = self._table, self._row
        yaw = goal.yaw if goal.yaw is not None else 0.0
        has_yaw = 1.0 if goal.yaw is not None else 0.0
        table.goal[row] = goal.x, goal.y, yaw, has_yaw, goal.tolerance
        table.phase[row] = pose_control.START
        table.route[row] = 0.0
        table.mode[row] = POSE

    def _reset(self, reset: ResetMotor, now: int) -> Refused | None:
        motor = int(self._table.motors[self._motors[reset.motor_id]])
        return self._hardware.motors.reset(motor, now)

    def _limit(self, limit: SetSpeedLimit, now: int) -> None:
        self._table.speed_limit[self._row] = limit.max_speed_mps

    def _act(self, action: ExecuteAction, now: int) -> None:
        table, place = self._table, self._motors[self.motor_of(action)]
        table.target[place] = action.target_position
        table.tolerance[place] = TOLERANCE if action.tolerance is None else action.tolerance
        seconds = action.timeout_seconds
        if seconds is None:
            distance = abs(action.target_position - table.position[place])
            seconds = 1.0 + 2.0 * ideal_seconds(
                distance,
                table.max_speed[place],
                table.max_acceleration[place],
                table.deceleration[place],
            )
        table.deadline[place] = min(now + nanoseconds(seconds), LATEST)
        table.moving[place] = True


CHECKS: Mapping[type[Struct], Callable[[RowBody, Any], Refused | None]] = {
    MoveVelocity: RowBody._check_velocity,
    MoveToPose: RowBody._check_place,
    ResetMotor: RowBody._check_motor,
    ExecuteAction: RowBody._check_target,
}
BEGINNINGS: Mapping[type[Struct], Callable[[RowBody, Any, int], Refused | None]] = {
    MoveVelocity: RowBody._move,
    MoveToPose: RowBody._go,
    ResetMotor: RowBody._reset,
    SetSpeedLimit: RowBody._limit,
    ExecuteAction: RowBody._act,
}
