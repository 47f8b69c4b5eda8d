"""One mobile robot of a fleet: its messages, its commands, its modules, its settings."""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct

from understudy.errors import Refused
from understudy.ports.state import load, saved
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import MODULES, RobotFile
from understudy.robots.mobile.config.robot_file import Module as ModuleName
from understudy.robots.mobile.hardware_interface import MotorLimits, Scan, TimedHardware
from understudy.robots.mobile.runtime.executor import Executor, Readiness, RowBody, SavedExecutor
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    FROM_ROBOT,
    INTERRUPTED,
    INVALID,
    MOTOR_DOWN,
    NOT_READY,
    CommandAck,
    DesiredMotor,
    DesiredSafety,
    EffectiveMotor,
    EffectiveSafety,
    Event,
    Malformed,
    NotNegative,
    Pose,
    Received,
    RobotStatus,
    SettingsDesired,
    SettingsReported,
    StopReason,
    TaskAssign,
    TaskFailed,
    decoded,
)
from understudy.robots.mobile.runtime.modules import (
    ChecksMessages,
    Hold,
    Module,
    Occurrence,
    RobotContext,
    SpeedLimit,
)
from understudy.robots.mobile.runtime.outgoing import (
    NOTE,
    Journal,
    JournalRecord,
    LastAnswer,
    RobotKey,
    Sender,
    SendQueue,
)
from understudy.robots.mobile.runtime.reports import Link, Reports
from understudy.robots.mobile.runtime.table import (
    HEARTBEAT,
    STATE,
    TELEMETRY,
    TRAFFIC,
    Table,
    rows_of,
)
from understudy.robots.mobile.runtime.tasks import (
    NodeHold,
    Planner,
    RouteComm,
    Steps,
    TaskComm,
    TrafficComm,
)
from understudy.robots.mobile.runtime.tick import (
    ERROR,
    ESTOP_CHANGED,
    NO_STOP,
    OBSTACLE,
    OBSTACLE_CHANGED,
    OFFLINE,
    STATUS_CHANGED,
    STATUSES,
    STOP_CHANGED,
    STOPS,
    TRAFFIC_HOLD,
    UNLIMITED,
    WARNING,
)
from understudy.robots.mobile.wheels import wrapped
from understudy.units import LATEST, seconds

# ── the module Settings ───────────────────────────────────────────────────────────────────────────


class SettingsState(Struct, forbid_unknown_fields=True):
    """`applied`: the correlation id of the settings.desired that holds."""

    applied: str | None = None


class Settings:
    """`Module`: what the backend wants of limits, outputs and safety, and what holds. Limits are
    never above those of the robot's file."""

    def __init__(
        self, orders: RobotContext, table: Table, row: int, body: RowBody, hardware: TimedHardware
    ) -> None:
        self._orders = orders
        self._table = table
        self._row = row
        self._body = body
        self._hardware = hardware
        points = table.files[row].io.digital_outputs
        self._outputs = {
            point.io_id: number for point, number in zip(points, table.outputs[row], strict=True)
        }
        self.state = SettingsState()

    def kinds(self) -> tuple[str, ...]:
        return ("settings.desired",)

    def handle(self, message: Received, now: int) -> None:
        desired: SettingsDesired = message.payload
        ignored = [
            *self._set_motors(desired.motors or {}, now),
            *self._set_outputs(desired.io or {}),
        ]
        if desired.safety is not None:
            self._set_safety(desired.safety)
        self.state.applied = message.cause
        self._table.bootstrapped[self._row] = True
        self._report(now, ignored)

    def advance(self, now: int) -> None: ...

    def next_wake(self) -> int | None:
        return None

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None: ...

    def occurred(self, what: Occurrence, now: int) -> None:
        if what == "connected":
            self._report(now, [])

    # ── inside ──

    def _set_motors(self, motors: dict[str, DesiredMotor], now: int) -> Iterator[str]:
        table = self._table
        for name, wanted in motors.items():
            place = self._body.motors.get(name)
            if place is None:
                yield f"motors.{name}: no such motor"
                continue
            if wanted.max_speed is not None:
                table.max_speed[place] = min(wanted.max_speed, table.file_speed[place])
            if wanted.max_acceleration is not None:
                most = table.file_acceleration[place]
                table.max_acceleration[place] = min(wanted.max_acceleration, most)
            if wanted.reset_requested:
                refused = self._hardware.motors.reset(int(table.motors[place]), now)
                if refused is not None:
                    yield f"motors.{name}.resetRequested: {refused.reason}"
        if motors:
            self.write_limits()

    def write_limits(self) -> None:
        """Gives the limits to the motors and to the body."""
        table, (first, end) = self._table, self._table.motor_spans[self._row]
        span = slice(int(first), int(end))
        limits = MotorLimits(
            table.max_speed[span], table.max_acceleration[span], table.deceleration[span]
        )
        self._hardware.motors.set_limits(table.motors[span], limits)
        table.update_limits([self._row])

    def _set_outputs(self, wanted: dict[str, bool]) -> Iterator[str]:
        for name, value in wanted.items():
            if name in self._outputs:
                rows = rows_of([self._outputs[name]])
                self._hardware.io.write_outputs(rows, np.array([value], dtype=np.bool_))
            else:
                yield f"io.{name}: no such output"

    def _set_safety(self, wanted: DesiredSafety) -> None:
        table, row = self._table, self._row
        if wanted.stop_on_obstacle is not None:
            table.stop_on_obstacle[row] = wanted.stop_on_obstacle
        if wanted.obstacle_stop_distance_meters is not None:
            table.stop_distance[row] = wanted.obstacle_stop_distance_meters
        if wanted.obstacle_warn_distance_meters is not None:
            table.warn_distance[row] = wanted.obstacle_warn_distance_meters
        table.warn_distance[row] = max(table.warn_distance[row], table.stop_distance[row])

    def _report(self, now: int, ignored: list[str]) -> None:
        table, row = self._table, self._row
        motors = {
            name: EffectiveMotor(float(table.max_speed[n]), float(table.max_acceleration[n]))
            for name, n in self._body.motors.items()
        }
        values = self._hardware.io.read_outputs(rows_of(list(self._outputs.values()))).tolist()
        safety = EffectiveSafety(
            bool(table.stop_on_obstacle[row]),
            float(table.stop_distance[row]),
            float(table.warn_distance[row]),
        )
        reported = SettingsReported(
            motors,
            dict(zip(self._outputs, values, strict=True)),
            UNSET if self.state.applied is None else self.state.applied,
            safety,
            ignored or UNSET,
        )
        self._orders.publish("settings.reported", reported, now, self.state.applied)


# ── ids of handled messages ──────────────────────────────────────────────────────────────────────

REMEMBERED = 1000
Ids = Annotated[list[str], Meta(max_length=REMEMBERED)]


class HandledIds:
    """The newest ids, in the order in which they came."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict.fromkeys(ids)

    def is_new(self, message_id: str) -> bool:
        """Whether it is the first time that this id comes; it is remembered."""
        if message_id in self._ids:
            return False
        self._ids[message_id] = None
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)
        return True

    def save(self) -> Ids:
        return list(self._ids)


# ── modules of a robot ───────────────────────────────────────────────────────────────────────────


class Orchestration(NamedTuple):
    modules: Mapping[ModuleName, Module]
    """In the order in which they act at a tick."""
    progress: Steps
    tasks: TaskComm
    hold: NodeHold
    """Also of a robot that does not support the modules: then they stay empty."""


def build_orchestration(
    context: RobotContext, supported: Collection[ModuleName], planner: Planner | None
) -> Orchestration:
    """The supported modules of one robot. ``planner``: of all robots; None: routes come from the
    backend alone."""
    hold = NodeHold(context)
    routes = RouteComm(context, planner)
    tasks = TaskComm(context, hold, routes if "RouteComm" in supported else None)
    traffic = TrafficComm(context, hold, tasks.steps)
    modules: dict[ModuleName, Module] = {
        "RouteComm": routes,
        "TaskComm": tasks,
        "TrafficComm": traffic,
    }
    chosen = {name: module for name, module in modules.items() if name in supported}
    return Orchestration(chosen, tasks.steps, tasks, hold)


# ── the robot ────────────────────────────────────────────────────────────────────────────────────

DRIVING = 1e-3
"""m/s or rad/s above which a robot drives or turns."""
LONGEST_SHOWN = 200
ENDS_OF_TASKS = ("task.done", "task.failed")
"""Messages of which listeners are informed as of events."""
LAST_STATUSES = ("REJECTED", "DONE", "FAILED", "CANCELED")
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]


class SavedRobot(Struct, forbid_unknown_fields=True):
    sent: Count
    beats: Count
    seen: Annotated[list[str], Meta(max_length=REMEMBERED)]
    executor: SavedExecutor
    modules: list[Any]
    limits: dict[SpeedLimit, NotNegative]
    journal: Any


class Robot:
    """`modules.RobotContext` of a row of a table."""

    def __init__(
        self,
        table: Table,
        row: int,
        hardware: TimedHardware,
        queue: SendQueue,
        planner: Planner | None,
    ) -> None:
        self._table = table
        self._row = row
        self._queue = queue
        self._file = table.files[row]
        self.reports = Reports(table, row, hardware)
        identity = self._file.identity
        self._sender = Sender(queue, identity.robot_id, identity.robot_code, table.sent, row)
        self.body = RowBody(table, row, hardware)
        supported = self._file.capabilities.supported_modules or MODULES
        commands = self._file.capabilities.supported_commands or tuple(COMMANDS)
        self.executor = Executor(
            self.body,
            commands if "RobotCore" in supported else (),
            self._acknowledge,
            lambda tag, outcome, now: self._ended.append((tag, outcome)),
            self.claim,
        )
        self.journal = Journal(queue, identity.robot_id)
        self.recall_note: Callable[[bytes], None] | None = None
        """Called with what `note` kept in the last run."""
        self._ended: deque[tuple[str, Refused | None]] = deque()
        self._was_stopped = False
        self._seen = HandledIds()
        self._limits: dict[SpeedLimit, float] = {}
        self.settings = Settings(self, table, row, self.body, hardware)
        own = [self.settings] if "Settings" in supported else []
        orchestration = build_orchestration(self, supported, planner)
        self._route = orchestration.progress
        self.tasks, self.node_hold = orchestration.tasks, orchestration.hold
        self._modules: list[Module] = [*own, *orchestration.modules.values()]
        self._by_kind = {kind: module for module in self._modules for kind in module.kinds()}
        self.wake_at = LATEST
        """Time from which on its modules want to act."""

    def add_module(self, module: Module) -> None:
        """Another module, which handles no messages of the backend."""
        self._modules.append(module)

    @property
    def key(self) -> RobotKey:
        """The key from which the ids of its messages follow."""
        return self._sender.key

    # ── what modules know and can do ──

    @property
    def file(self) -> RobotFile:
        return self._file

    @property
    def pose(self) -> Pose:
        return self.reports.pose

    @property
    def is_moving(self) -> bool:
        return bool(np.abs(self._table.speeds[self._row]).max() > DRIVING)

    @property
    def status(self) -> RobotStatus:
        return self.reports.status

    @property
    def stop_reason(self) -> StopReason | None:
        return STOPS[int(self._table.stop[self._row])]

    def publish(
        self,
        kind: str,
        payload: Struct,
        now: int,
        correlation_id: str | None = None,
        once: str = "",
    ) -> str:
        if kind in ENDS_OF_TASKS:
            self._tell_listeners(kind, msgspec.to_builtins(payload), now)
        return self._sender.publish(kind, payload, now, correlation_id, once)

    def event(
        self,
        type_: str,
        details: Mapping[str, Any],
        now: int,
        correlation_id: str | None = None,
        once: str = "",
    ) -> None:
        self.publish("events", Event(type_, dict(details)), now, correlation_id, once)
        self._tell_listeners(type_, details, now)

    def claim(self, message_id: str, now: int) -> bool:
        return self.journal.claim(message_id, now)

    def answer(
        self, message_id: str, kind: str, payload: Struct, now: int, correlation_id: str
    ) -> None:
        said = LastAnswer(kind, msgspec.to_builtins(payload), correlation_id)
        self.journal.end(message_id, "task.assign", said)
        self.publish(kind, payload, now, correlation_id, message_id)

    def handled(self, message_id: str, kind: str) -> None:
        self.journal.end(message_id, kind)

    def _tell_listeners(self, type_: str, details: Mapping[str, Any], now: int) -> None:
        for listener in self._queue.listeners:
            listener(self._file.identity.robot_id, type_, details, now)

    def command(
        self, command_type: CommandType, parameters: Mapping[str, Any], tag: str, now: int
    ) -> Refused | None:
        return self.executor.request_own(command_type, parameters, tag, self._readiness(), now)

    def act(self, parameters: Mapping[str, Any], tag: str, now: int) -> Refused | None:
        return self.executor.act_beside(parameters, tag, self._readiness(), now)

    def cancel_own(self, now: int) -> None:
        self.executor.cancel_own(now)

    def off_map(self, x: float, y: float) -> str:
        return self.body.off_map(x, y)

    def locate(self, pose: Pose, now: int) -> None:
        table, row = self._table, self._row
        table.pose[row] = pose.x, pose.y, pose.yaw
        table.since_correction[row] = 0.0

    def note(self, content: bytes) -> None:
        self.journal.note(content)

    def set_hold(self, reason: Hold, held: bool, now: int) -> None:
        table = self._table
        holds = table.traffic_hold if reason == "TRAFFIC_HOLD" else table.manual_hold
        holds[self._row] = held

    def limit_speed(self, source: SpeedLimit, fastest: float | None, now: int) -> None:
        self._limits.pop(source, None)
        if fastest is not None:
            self._limits[source] = fastest
        self._table.traffic_limit[self._row] = min(self._limits.values(), default=UNLIMITED)

    # ── messages ──

    def handle(self, kind: str, data: bytes, now: int) -> str:
        """A message from the backend; returns the id of the record that the server must have stored
        before the message is acknowledged, empty if there is none."""
        message = decoded(kind, data, self._file.identity.robot_id)
        if isinstance(message, Malformed):
            reason = message.reason[:LONGEST_SHOWN]
            self.event("message.malformed", {"kind": kind, "reason": reason}, now, message.cause)
            if kind == "command.request" and message.message_id:
                why = f"{INVALID}: {reason}"
                ack = CommandAck(message.command_type or "UNKNOWN", "REJECTED", why)
                self._acknowledge(ack, message.cause, message.message_id, now)
            return ""
        if not self._seen.is_new(message.message_id):
            return ""
        if kind == "command.request" or (kind == "task.assign" and kind in self._by_kind):
            record = self.journal.accept(message.message_id, kind, data)
        else:
            record = self.journal.end(message.message_id, kind)
        if kind == "command.request":
            self.executor.request(message, self._readiness(), now)
        elif kind in self._by_kind:
            self._by_kind[kind].handle(message, now)
        else:
            details = {"kind": kind, "reason": "no module of this robot handles it"}
            self.event("message.unsupported", details, now, message.cause)
        self.settle(now)
        return record

    def recall(self, record: JournalRecord, now: int) -> None:
        """A message that the last run of the cell has ended, or was carrying out. It is not handled
        again."""
        if record.kind == NOTE:
            if self.recall_note is not None:
                self.recall_note(bytes(record.content))
            return
        if not self._seen.is_new(record.message_id):
            return
        if record.phase == "ENDED":
            self.journal.recall(record)
            if record.answer is not None and record.answer.kind in ENDS_OF_TASKS:
                self.tasks.remember(str(record.answer.payload.get("taskId")), record.message_id)
            return
        message = decoded(record.kind, bytes(record.message), self._file.identity.robot_id)
        if isinstance(message, Malformed):
            return
        asked = message.payload
        if isinstance(asked, TaskAssign):
            self.tasks.remember(asked.task_id, message.message_id)
            failed = TaskFailed(asked.task_id, INTERRUPTED)
            self.answer(message.message_id, "task.failed", failed, now, message.cause)
        else:
            ack = CommandAck(asked.command_type, "FAILED", INTERRUPTED)
            self._acknowledge(ack, message.cause, message.message_id, now)

    def recalled(self, now: int) -> None:
        """All records have come. Answers that the server may not have stored are sent again."""
        for message_id, answer in self.journal.take_ended():
            payload = msgspec.convert(answer.payload, FROM_ROBOT[answer.kind])
            once = message_id
            if isinstance(payload, CommandAck):
                once = f"{message_id}/{payload.status}"
            self._sender.publish(answer.kind, payload, now, answer.cause, once)

    def problem(self, kind: str, data: bytes) -> Refused | None:
        """Why the robot would reject a message now."""
        message = decoded(kind, data, self._file.identity.robot_id)
        if isinstance(message, Malformed):
            return Refused(message.reason)
        if kind == "command.request":
            return self.executor.problem(message.payload, self._readiness())
        module = self._by_kind.get(kind)
        if module is None:
            return Refused(f"no module of this robot handles {kind}")
        return module.problem(message) if isinstance(module, ChecksMessages) else None

    def _acknowledge(self, ack: CommandAck, cause: str | None, message_id: str, now: int) -> None:
        once = f"{message_id}/{ack.status}"
        if ack.status in LAST_STATUSES:
            answer = LastAnswer("command.ack", msgspec.to_builtins(ack), cause)
            self.journal.end(message_id, "command.request", answer)
        self.publish("command.ack", ack, now, cause, once)
        details: dict[str, Any] = {"commandType": ack.command_type}
        if isinstance(ack.reason, str):
            details["reason"] = ack.reason
        self.event(f"command.{ack.status.lower()}", details, now, cause, once)
        if ack.command_type == "STOP" and ack.status == "DONE":
            self._was_stopped = True

    def _readiness(self) -> Readiness:
        table, row = self._table, self._row
        stop, status = int(table.stop[row]), int(table.status[row])
        ready = bool(table.bootstrapped[row])
        slow = status == WARNING and not table.drives_in_warning[row]
        return Readiness(
            STATUSES[status],
            stopped=NO_STOP < stop < TRAFFIC_HOLD,
            blocked=stop == OBSTACLE,
            held=stop >= TRAFFIC_HOLD,
            may_drive=ready and not slow,
            may_act=ready,
        )

    # ── ticks ──

    def advance(self, now: int) -> None:
        """Lets the modules act."""
        if self.executor.waits:
            self.executor.proceed(now)
        for module in self._modules:
            wake = module.next_wake()
            if wake is not None and wake <= now:
                module.advance(now)
        self.settle(now)

    def settle(self, now: int) -> None:
        """Informs the modules of the ends of their commands, and asks when they want to act."""
        while self._ended or self._was_stopped:
            if self._was_stopped:
                self._was_stopped = False
                self._inform("stopped", now)
            while self._ended:
                tag, outcome = self._ended.popleft()
                for module in self._modules:
                    module.ended(tag, outcome, now)
        self._ask_wakes()

    def stop(self, now: int) -> None:
        """An operator ends all commands and tasks."""
        self.executor.cut_off(now)
        self._was_stopped = True
        self.settle(now)

    def _ask_wakes(self) -> None:
        wakes = [wake for each in self._modules if (wake := each.next_wake()) is not None]
        self.wake_at = 0 if self.executor.waits else min(wakes, default=LATEST)

    def finished(self, outcome: Refused | None, now: int) -> None:
        """The motion of the running command has ended."""
        self.body.halt(now)
        self.executor.finished(outcome, now)
        self.settle(now)

    def motor_ended(self, place: int, outcome: Refused | None, now: int) -> None:
        """The motion of a functional motor has ended."""
        motor = self._file.motors[place - int(self._table.motor_spans[self._row, 0])]
        if self.executor.motor_ended(motor.motor_id, outcome, now):
            self.settle(now)
        else:
            self.finished(outcome, now)

    def changed(self, bits: int, now: int) -> None:
        """The status or a stop has changed: events, the running command, the state at once."""
        table, row = self._table, self._row
        if bits & ESTOP_CHANGED:
            self.event(f"safety.estop.{'pressed' if table.estop[row] else 'cleared'}", {}, now)
        if bits & OBSTACLE_CHANGED:
            self._report_obstacle(now)
        stop, status = table.stop[row], table.status[row]
        if bits & STOP_CHANGED and stop != NO_STOP:
            self.executor.cut_off(now, keep_own=stop >= TRAFFIC_HOLD)
        if bits & STATUS_CHANGED and status in (ERROR, OFFLINE):
            self.executor.cut_off(now, NOT_READY if status == OFFLINE else MOTOR_DOWN)
        active = self.executor.active
        drives = active is not None and COMMANDS[active.command_type].drives
        if drives and not self._readiness().may_drive:
            self.finished(NOT_READY, now)
        self.settle(now)
        self.publish("state", self.reports.state(), now)

    def _report_obstacle(self, now: int) -> None:
        table, row = self._table, self._row
        ahead, nearest = float(table.ahead[row]), self.reports.nearest
        details = {
            "aheadMeters": ahead if ahead < UNLIMITED else None,
            "nearestObstacleMeters": nearest if nearest < UNLIMITED else None,
        }
        what = "detected" if table.blocked[row] else "cleared"
        self.event(f"safety.obstacle.{what}", details, now)

    def motor_changed(self, place: int, now: int) -> None:
        """A motor has a fault, or none any more."""
        table = self._table
        name = self._file.motors[place - int(table.motor_spans[self._row, 0])].motor_id
        faults = dict(self.reports.motor_faults())
        if name not in faults:
            self.event("motor.recovered", {"motorId": name}, now)
            return
        fault = faults[name]
        details = {"motorId": name, "faultCode": fault.code, "faultMessage": fault.message}
        self.event("motor.fault", details, now)
        if table.moving[place]:
            self.motor_ended(place, MOTOR_DOWN, now)

    def scanned(self, scan: Scan, now: int) -> None:
        """A scanner has read a code."""
        details: dict[str, Any] = {"code": scan.code, "pose": self.pose}
        if scan.type is not None:
            details["codeType"] = scan.type
        self.event("barcode.scanned", details, now)
        if scan.marker is not None and scan.seen is not None:
            self._correct(scan.marker, scan.seen)

    def _correct(
        self, marker: tuple[float, float, float | None], seen: tuple[float, float, float]
    ) -> None:
        """Puts the pose where the marker must be seen from."""
        table, row = self._table, self._row
        x, y, yaw = marker
        own = table.pose[row, 2] if yaw is None else wrapped(yaw - seen[2])
        along, across = math.cos(own), math.sin(own)
        table.pose[row] = (
            x - along * seen[0] + across * seen[1],
            y - across * seen[0] - along * seen[1],
            own,
        )
        table.since_correction[row] = 0.0

    # ── streams ──

    def report(self, stream: int, now: int) -> None:
        """Publishes a message of a stream."""
        STREAMS[stream](self, now)

    def _heartbeat(self, now: int) -> None:
        beats = self._table.beats
        beats[self._row] += 1
        beat = self.reports.heartbeat(self._sender.boot_id, seconds(now), int(beats[self._row]))
        self.publish("heartbeat", beat, now)

    def _state(self, now: int) -> None:
        self.publish("state", self.reports.state(), now)

    def _telemetry(self, now: int) -> None:
        link = Link(self._queue.connected, self._queue.given_up)
        self.publish("telemetry", self.reports.telemetry(link), now)

    def _traffic(self, now: int) -> None:
        place = self.reports.traffic(self._route.node_id, self._route.route_id)
        self.publish("traffic.state", place, now)

    def started(self, seed: int | None, now: int) -> None:
        if self.reports.profile_name is not None:
            details: dict[str, Any] = {"profileName": self.reports.profile_name}
            if seed is not None:
                details["seed"] = seed
            self.event("simulation.started", details, now)

    def connected(self, now: int) -> None:
        """NATS is connected (again): who the robot is, its settings, its state."""
        self._heartbeat(now)
        self._inform("connected", now)
        self._state(now)
        self.settle(now)

    def shut_down(self, now: int) -> None:
        """The last messages."""
        if self.reports.profile_name is not None:
            self.event("simulation.stopped", {"profileName": self.reports.profile_name}, now)
        self._inform("ending", now)
        self._state(now)

    def _inform(self, what: Occurrence, now: int) -> None:
        for module in self._modules:
            module.occurred(what, now)

    # ── snapshot ──

    def save(self) -> SavedRobot:
        beats = int(self._table.beats[self._row])
        return SavedRobot(
            self._sender.count,
            beats,
            self._seen.save(),
            self.executor.save(),
            [saved(module) for module in self._modules],
            dict(self._limits),
            saved(self.journal),
        )

    def load(self, was: SavedRobot) -> None:
        if len(was.modules) != len(self._modules):
            raise msgspec.ValidationError(f"modules: {len(self._modules)} are needed")
        self._table.sent[self._row] = was.sent
        self._table.beats[self._row] = was.beats
        self._seen = HandledIds(was.seen)
        self.executor.load(was.executor)
        self._limits = dict(was.limits)
        load(self.journal, was.journal)
        for module, state in zip(self._modules, was.modules, strict=True):
            load(module, state)
        self._ask_wakes()


STREAMS: Mapping[int, Callable[[Robot, int], None]] = {
    HEARTBEAT: Robot._heartbeat,
    STATE: Robot._state,
    TELEMETRY: Robot._telemetry,
    TRAFFIC: Robot._traffic,
}
