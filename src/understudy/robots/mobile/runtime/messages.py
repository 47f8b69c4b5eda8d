"""The messages between mobile robots and their backend: subjects, payloads, envelope, commands.

Keys are written in camelCase on the wire. A received payload may have keys that are not known here,
so that a newer backend can talk to an older robot.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from understudy.errors import UNREADABLE, Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.config.robot_file import RuntimeMode
from understudy.robots.mobile.hardware_interface import RESET_COOLDOWN, RESET_NOT_ALLOWED

PAYLOAD_VERSION = 1
LONGEST_COMMAND = 64
LARGEST_MESSAGE = 256 * 1024
"""Bytes of a received message."""

Text = Annotated[str, Meta(max_length=1024)]
Identifier = Annotated[str, Meta(min_length=1, max_length=256)]
Finite = Annotated[float, Meta(ge=-1e9, le=1e9)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]
LONGEST_WAIT_S = 86_400.0
"""Of a step or an action that waits: a day."""


class Message(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A payload or a part of one; what is UNSET or has its default is left out on the wire.
    `own_id`: the key that names what the message begins; an operator's message has its own id
    there."""

    own_id: ClassVar[str] = ""


class Whole(Struct, frozen=True, rename="camel"):
    """A payload of which every key is sent."""


# ── parts ───────────────────────────────────────────────────────────────────────────────────────


class Pose(Whole, frozen=True):
    """Metres and radians."""

    x: Finite
    y: Finite
    yaw: Finite = 0.0


class MoveToPoint(Message, frozen=True):
    """A place to go to, in metres; without `yaw` (radians) in any direction."""

    x: Finite
    y: Finite
    yaw: Finite | None = None


class Velocity(Whole, frozen=True):
    """m/s and rad/s."""

    linear: float
    angular: float


class FaultEntry(Whole, frozen=True):
    code: str
    message: str
    severity: Literal["WARN", "ERROR", "FATAL"]


MotorMode = Literal["IDLE", "MOVING", "HOMING", "STOPPED", "ERROR"]


class MotorState(Whole, frozen=True, omit_defaults=True):
    connected: bool
    mode: MotorMode
    position: float
    velocity: float
    fault_code: str | UnsetType = UNSET
    fault_message: str | UnsetType = UNSET


# ── robot to backend ────────────────────────────────────────────────────────────────────────────

RobotStatus = Literal["OFFLINE", "ERROR", "PAUSED", "WARNING", "RUNNING"]
FaultLevel = Literal["NONE", "WARN", "ERROR", "FATAL"]
Localization = Literal["OK", "DEGRADED", "LOST"]
StopReason = Literal["ESTOP", "OBSTACLE", "INTERNAL_FAULT", "TRAFFIC_HOLD", "MANUAL_HOLD"]


class State(Whole, frozen=True):
    """Pose, status and health: at `streams.stateHz`, and at once when the status changes."""

    pose: Pose
    velocity: Velocity
    battery_percent: float
    localization_status: Localization
    fault_level: FaultLevel
    faults: list[FaultEntry]
    status: RobotStatus
    estop_pressed: bool
    safety_stop_active: bool
    safety_stop_reason: StopReason | None
    motors: dict[str, MotorState]
    runtime_mode: RuntimeMode
    simulation_profile_name: str | None


class Heartbeat(Whole, frozen=True):
    """Sign of life, at `streams.heartbeatHz`. `bootId` is new at every start."""

    boot_id: str
    firmware_version: str
    status: RobotStatus
    runtime_mode: RuntimeMode
    uptime_seconds: float
    seq: int


class Battery(Whole, frozen=True):
    percent: float


class LidarReading(Whole, frozen=True):
    obstacle_detected: bool
    nearest_obstacle_meters: float | None
    connected: bool


class LocalizationReading(Whole, frozen=True):
    status: Localization
    pose: Pose


class Health(Whole, frozen=True):
    """`messagesGivenUp`: how many messages of all robots of the process were dropped because too
    many waited for the server."""

    nats_connected: bool
    simulated_hardware_ok: bool
    messages_given_up: int = 0


class StateMarker(Whole, frozen=True):
    """Says to everybody that the robot is simulated."""

    runtime_mode: RuntimeMode
    simulation_profile_name: str | None


class Telemetry(Whole, frozen=True):
    """Readings of battery, motors, sensors and digital inputs (by ioId), at
    `streams.telemetryHz`."""

    battery: Battery
    motors: dict[str, MotorState]
    lidar: LidarReading
    localization: LocalizationReading
    inputs: dict[str, bool]
    health: Health
    state_json: StateMarker


class Event(Message, frozen=True):
    """Something has happened: `type` says what. The other keys of the payload are its details."""

    type: str
    details: dict[str, Any] = field(default_factory=dict)

    def on_the_wire(self) -> dict[str, Any]:
        return {"type": self.type} | self.details | {"type": self.type}


EVENTS: Mapping[str, str] = {
    "simulation.started": "a robot in MOCK mode has started: `profileName`, `seed`",
    "simulation.stopped": "it ends",
    "safety.estop.pressed": "the emergency stop is pressed",
    "safety.estop.cleared": "it is released",
    "safety.obstacle.detected": "an obstacle is in the way, the robot stops: `aheadMeters`, "
    "`nearestObstacleMeters`",
    "safety.obstacle.cleared": "the way is free again",
    "motor.fault": "a motor has a fault or is not connected: `motorId`, `faultCode`",
    "motor.recovered": "it is healthy again: `motorId`",
    "barcode.scanned": "a scanner has read a code: `code`, `codeType`, `pose`",
    "command.<status>": "a command was acked, rejected, running, done, failed or canceled: "
    "`commandType`, `reason`",
    "task.accepted": "a task waits: `taskId`, `ahead` (tasks before it)",
    "task.ignored": "the task was known already, or the task to cancel is not there: `reason`",
    "route.planned": "the built-in planner has found a route: `routeId`, `steps`",
    "route.ignored": "a route.response that answers no request: `routeId`, `reason`",
    "traffic.hold.pending": "the robot will be held at a node: `nodeId`",
    "traffic.hold.active": "it is held by traffic control",
    "traffic.hold.released": "it is released",
    "message.malformed": "a message could not be read; it is acknowledged and dropped: `kind`, "
    "`reason`. A command.request of which only the payload is wrong is rejected, too",
    "message.unsupported": "no module of this robot handles this kind of message: `kind`",
}
"""The types of events and what they mean."""


CommandStatus = Literal["ACKED", "REJECTED", "RUNNING", "DONE", "FAILED", "CANCELED"]


class CommandAck(Message, frozen=True):
    """What became of a command; the envelope has the `correlationId` of its request."""

    command_type: str
    status: CommandStatus
    reason: str | UnsetType = UNSET
    progress: float | UnsetType = UNSET


class EffectiveMotor(Whole, frozen=True):
    """m/s and m/s2, or rad/s and rad/s2."""

    max_speed: float
    max_acceleration: float


class EffectiveSafety(Whole, frozen=True):
    stop_on_obstacle: bool
    obstacle_stop_distance_meters: float
    obstacle_warn_distance_meters: float


class SettingsReported(Message, frozen=True):
    """The settings that hold: at every connection, and after a settings.desired. `ignored`: what
    was asked and cannot be applied."""

    effective_motors: dict[str, EffectiveMotor]
    effective_io: dict[str, Any]
    applied_from_correlation_id: str | UnsetType = UNSET
    effective_safety: EffectiveSafety | UnsetType = UNSET
    ignored: list[str] | UnsetType = UNSET


class TrafficState(Message, frozen=True):
    """State for traffic control, at `streams.trafficHz`."""

    pose: Pose
    velocity_mps: float
    braking_distance_meters: float
    current_node_id: str | UnsetType = UNSET
    route_id: str | UnsetType = UNSET


class RouteRequest(Message, frozen=True):
    """The robot asks for a route; the answer is a route.response."""

    start: Pose
    destination: MoveToPoint
    task_id: str | UnsetType = UNSET


class TaskProgress(Message, frozen=True):
    """`step` of `steps` are done. On a route also its id and the seconds that are left of its
    etaSecondsTotal."""

    task_id: str
    step: int
    steps: int
    progress: float
    route_id: str | UnsetType = UNSET
    eta_seconds: float | UnsetType = UNSET


class TaskDone(Message, frozen=True):
    """The task is finished."""

    task_id: str


class TaskFailed(Message, frozen=True):
    """The task has ended without success, or was refused."""

    task_id: str
    error_code: str
    error_message: str | UnsetType = UNSET


# ── backend to robot ────────────────────────────────────────────────────────────────────────────


class Requester(Message, frozen=True):
    """Who asked for a command."""

    user_id: Text
    username: Text | None = None


class CommandRequest(Message, frozen=True):
    """A command. An unknown `commandType` is rejected, it is not malformed."""

    command_type: Text
    parameters: dict[str, Any] | None = None
    requested_by: Requester | Text | None = None


class DesiredMotor(Message, frozen=True):
    max_speed: Positive | None = None
    max_acceleration: Positive | None = None
    reset_requested: bool = False


class DesiredSafety(Message, frozen=True):
    stop_on_obstacle: bool | None = None
    obstacle_stop_distance_meters: NotNegative | None = None
    obstacle_warn_distance_meters: NotNegative | None = None


class SettingsDesired(Message, frozen=True):
    """Settings that shall hold; what is left out stays as it is."""

    motors: dict[str, DesiredMotor] | None = None
    io: dict[str, bool] | None = None
    safety: DesiredSafety | None = None


class TrafficControl(Message, frozen=True):
    """Holds a robot, releases it, or limits its speed. A speed that is left out stays as it is;
    null removes the limit."""

    hold_at_node_id: Identifier | None = None
    release_hold: bool = False
    max_speed_mps: NotNegative | UnsetType | None = UNSET
    target_speed_mps: NotNegative | UnsetType | None = UNSET


class RouteStep(Message, frozen=True):
    """MOVE goes to x, y (and yaw), TURN turns to yaw, WAIT waits for seconds, ARRIVE_ACTIONS moves
    functional motors: each of `actions` has the parameters of EXECUTE_ACTION."""

    type: Literal["MOVE", "TURN", "WAIT", "ARRIVE_ACTIONS"]
    x: Finite | None = None
    y: Finite | None = None
    yaw: Finite | None = None
    node_id: Identifier | None = None
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S)] | None = None
    actions: list[dict[str, Any]] | None = None


class RouteResponse(Message, frozen=True):
    """The steps of a route; `taskId` is that of the request."""

    route_id: Identifier
    steps: Annotated[list[RouteStep], Meta(max_length=10_000)]
    task_id: Identifier | None = None
    segments: list[dict[str, Any]] | None = None
    eta_seconds_total: NotNegative | None = None


class Mission(Message, frozen=True):
    steps: Annotated[list[RouteStep], Meta(max_length=10_000)]


class TaskAssign(Message, frozen=True):
    """A task: `moveToPoint` for MOVE_TO_POINT, `mission` for MISSION and CUSTOM."""

    own_id = "taskId"
    task_id: Identifier
    task_type: Literal["MOVE_TO_POINT", "MISSION", "CUSTOM"]
    priority: int = 0
    move_to_point: MoveToPoint | None = None
    mission: Mission | None = None


class TaskCancel(Message, frozen=True):
    """Ends a task that is under way or waits."""

    task_id: Identifier


# ── subjects ────────────────────────────────────────────────────────────────────────────────────

FROM_ROBOT: Mapping[str, type[Struct]] = {
    "heartbeat": Heartbeat,
    "state": State,
    "telemetry": Telemetry,
    "events": Event,
    "settings.reported": SettingsReported,
    "command.ack": CommandAck,
    "task.progress": TaskProgress,
    "task.done": TaskDone,
    "task.failed": TaskFailed,
    "traffic.state": TrafficState,
    "route.request": RouteRequest,
}
TO_ROBOT: Mapping[str, type[Message]] = {
    "command.request": CommandRequest,
    "settings.desired": SettingsDesired,
    "task.assign": TaskAssign,
    "task.cancel": TaskCancel,
    "traffic.control": TrafficControl,
    "route.response": RouteResponse,
}
NEWEST_COUNTS = frozenset({"heartbeat", "state", "telemetry", "traffic.state"})
"""Kinds of which only the newest message matters: they are sent once and not kept."""


def subject(robot_id: str, kind: str) -> str:
    return f"robot.{robot_id}.{kind}"


def kind_of(subject: str) -> tuple[str, str]:
    """The robot and the kind of a subject; empty texts if it has another form."""
    first, _, rest = subject.partition(".")
    robot_id, _, kind = rest.partition(".")
    return (robot_id, kind) if first == "robot" and kind else ("", "")


# ── the envelope ────────────────────────────────────────────────────────────────────────────────


class Received(Struct, frozen=True):
    """A message from the backend."""

    kind: str
    message_id: str
    correlation_id: str | None
    payload: Any

    @property
    def cause(self) -> str:
        """The `correlationId` of every answer."""
        return self.correlation_id or self.message_id


class Malformed(Struct, frozen=True):
    """A message that cannot be read; without a ``cause`` if its envelope cannot be read either.
    ``message_id``: if only its payload is wrong, of ``command_type`` in a command.request."""

    reason: str
    cause: str | None = None
    message_id: str = ""
    command_type: str = ""


class Sent(Whole, frozen=True, omit_defaults=True):
    """What surrounds every payload. Messages that are sent until they are confirmed have the
    `messageId` as their header Nats-Msg-Id too."""

    payload_version: int
    message_id: str
    robot_id: str
    robot_code: str
    ts: str
    payload: Any
    correlation_id: str | UnsetType = UNSET


class Incoming(Message, frozen=True):
    """Only what the robot needs; the sender may leave out the rest."""

    message_id: Identifier
    payload: msgspec.Raw
    payload_version: int = PAYLOAD_VERSION
    robot_id: Identifier | None = None
    correlation_id: Identifier | None = None


_ENVELOPES = msgspec.json.Decoder(Incoming)
_PAYLOADS = {kind: msgspec.json.Decoder(payload) for kind, payload in TO_ROBOT.items()}
_ENCODER = msgspec.json.Encoder()


def encoded(
    message_id: str,
    robot_id: str,
    robot_code: str,
    ts: str,
    payload: Struct,
    correlation_id: str | None = None,
) -> bytes:
    """A message of a robot as JSON."""
    caused_by = UNSET if correlation_id is None else correlation_id
    content = payload.on_the_wire() if isinstance(payload, Event) else payload
    return _ENCODER.encode(
        Sent(PAYLOAD_VERSION, message_id, robot_id, robot_code, ts, content, caused_by)
    )


def _command_type(payload: msgspec.Raw) -> str:
    """What a payload names as its command, whatever else is wrong with it."""
    found = msgspec.json.decode(payload)
    name = found.get("commandType") if isinstance(found, dict) else None
    return name[:LONGEST_COMMAND] if isinstance(name, str) else ""


def decoded(kind: str, data: bytes, robot_id: str) -> Received | Malformed:
    """A message for a robot; `Malformed` says what is wrong with it."""
    if kind not in _PAYLOADS:
        return Malformed(f"no such message: {kind}; known: {', '.join(TO_ROBOT)}")
    if len(data) > LARGEST_MESSAGE:
        return Malformed(f"{len(data)} bytes; allowed: {LARGEST_MESSAGE}")
    cause, message_id, command_type = None, "", ""
    try:
        envelope = _ENVELOPES.decode(data)
        cause = envelope.correlation_id or envelope.message_id
        if envelope.payload_version != PAYLOAD_VERSION:
            known = f"payloadVersion {envelope.payload_version}; allowed: {PAYLOAD_VERSION}"
            return Malformed(known, cause)
        if envelope.robot_id not in (None, robot_id):
            return Malformed(f"robotId {envelope.robot_id}; this is {robot_id}", cause)
        message_id = envelope.message_id
        command_type = _command_type(envelope.payload)
        payload = _PAYLOADS[kind].decode(envelope.payload)
    except UNREADABLE as problem:
        return Malformed(str(problem), cause, message_id, command_type)
    return Received(kind, envelope.message_id, envelope.correlation_id, payload)


# ── commands ─────────────────────────────────────────────────────────────────────────────────────

Seconds = Annotated[float, Meta(gt=0, le=86_400)]

UNSUPPORTED = Refused("CAPABILITY_NOT_SUPPORTED")
NOT_READY = Refused("ROBOT_NOT_READY")
MOTOR_DOWN = Refused("REQUIRED_MOTOR_UNAVAILABLE")
STOPPED = Refused("SAFETY_STOP_ACTIVE")
"""Why a command is rejected, in the order of the checks."""
CUT_OFF = Refused("SAFETY_STOP")
TIMEOUT = Refused("TIMEOUT")
DISABLED = Refused("MOTORS_DISABLED")
NOT_FOLLOWING = Refused("DRIVE_NOT_FOLLOWING")
LIMIT_REACHED = Refused("LIMIT_SWITCH_ACTIVE")
"""Why a running command fails."""
INVALID = "INVALID_PARAMETERS"
INTERRUPTED = "INTERRUPTED"
"""Why a command or task fails that was under way when the cell ended without warning."""


class MoveVelocity(Message, frozen=True):
    """m/s and rad/s; without a duration until the next command. `lateral`: to the left, for drives
    that can move sideways."""

    linear: Finite
    angular: Finite = 0.0
    lateral: Finite = 0.0
    duration_seconds: Seconds | None = None


class MoveToPose(Message, frozen=True):
    """Metres and radians; without `yaw` the robot keeps the direction in which it arrives."""

    x: Finite
    y: Finite
    yaw: Finite | None = None
    tolerance: Annotated[float, Meta(ge=0.005, le=10)] = 0.02


class Stop(Message, frozen=True):
    """Brakes; queued commands are canceled."""


class ResetMotor(Message, frozen=True):
    """Clears the fault of a motor."""

    motor_id: Identifier


class SetSpeedLimit(Message, frozen=True):
    """The largest speed of the following motions, m/s."""

    max_speed_mps: Positive


class ExecuteAction(Message, frozen=True):
    """Moves a functional motor, named by its id or by what it is for."""

    target_position: Finite
    motor_id: Identifier | None = None
    function_key: Identifier | None = None
    tolerance: Positive | None = None
    timeout_seconds: Seconds | None = None


Parameters = MoveVelocity | MoveToPose | Stop | ResetMotor | SetSpeedLimit | ExecuteAction


class CommandKind(Struct, frozen=True):
    """``drives``: it needs the DRIVE motors, ``acts``: a FUNCTIONAL motor. ``always``: it is
    accepted whatever the status is. ``stops``: it is carried out at once and in a safety stop."""

    parameters: type[Struct]
    drives: bool = False
    acts: bool = False
    always: bool = False
    stops: bool = False


COMMANDS: Mapping[CommandType, CommandKind] = {
    "MOVE_VELOCITY": CommandKind(MoveVelocity, drives=True),
    "MOVE_TO_POSE": CommandKind(MoveToPose, drives=True),
    "STOP": CommandKind(Stop, always=True, stops=True),
    "RESET_MOTOR": CommandKind(ResetMotor, always=True),
    "SET_SPEED_LIMIT": CommandKind(SetSpeedLimit),
    "EXECUTE_ACTION": CommandKind(ExecuteAction, acts=True),
}


def command_kind(name: str) -> CommandKind | None:
    """The kind of a command; None if there is no such command."""
    return next((kind for known, kind in COMMANDS.items() if known == name), None)


def read_parameters(kind: CommandKind, parameters: Mapping[str, Any]) -> Any | Refused:
    """The parameters of a command; `Refused` names the wrong one."""
    try:
        found = msgspec.convert(parameters, kind.parameters, strict=True)
    except msgspec.ValidationError as problem:
        return Refused(f"{INVALID}: {problem}")
    if isinstance(found, ExecuteAction) and (found.motor_id is None) == (
        found.function_key is None
    ):
        return Refused(f"{INVALID}: give motorId or functionKey, one of them")
    return found


REASONS: Mapping[str, str] = {
    UNSUPPORTED.reason: "the robot does not know the command, or does not support it",
    NOT_READY.reason: "the status is ERROR or OFFLINE, or the robot waits for its settings",
    INVALID: "a parameter is missing or wrong, or the place is off the map; the rest of the "
    "text names it",
    MOTOR_DOWN.reason: "a motor that the command needs is faulty or not connected",
    STOPPED.reason: "the robot is stopped for safety or held; STOP is accepted",
    "QUEUE_FULL": "100 commands wait already",
    CUT_OFF.reason: "a safety stop ended the command",
    TIMEOUT.reason: "the action took longer than its timeoutSeconds",
    DISABLED.reason: "an output MOTOR_ENABLE is off; settings.desired sets it",
    NOT_FOLLOWING.reason: "a wheel does not turn as it is commanded",
    LIMIT_REACHED.reason: "the limit input at this end of the axis is on",
    INTERRUPTED: "the cell ended during the command, and has started again; it is not repeated",
    RESET_COOLDOWN: "RESET_MOTOR came too early after the fault; the rest of the text says how "
    "long it must wait",
    RESET_NOT_ALLOWED.reason: "the resetPolicy of the motor has no allowReset",
}
"""Reasons of REJECTED (in the order of the checks) and FAILED, and what they mean."""
