"""The messages of VDA 5050 as version 2.1 has them, and the factsheet of a robot; `versions` has
what the other versions say in other words.

Keys are written in camelCase; unknown keys are ignored.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from understudy.robots.mobile.config.profile import DriveModel
from understudy.robots.mobile.config.robot_file import Motor, RobotFile
from understudy.units import MM

LONGEST_ID = 256
Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Text = Annotated[str, Meta(max_length=4096)]
Finite = Annotated[float, Meta(ge=-1e9, le=1e9)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]
Angle = Annotated[float, Meta(ge=-3.14159265359, le=3.14159265359)]
Sequence_ = Annotated[int, Meta(ge=0, lt=1 << 31)]
BlockingType = Literal["NONE", "SINGLE", "SOFT", "HARD"]
"""SINGLE (3.0): the robot may drive, and no other action is carried out."""
ActionStatus = Literal["WAITING", "INITIALIZING", "RUNNING", "FINISHED", "FAILED"]
ErrorLevel = Literal["WARNING", "URGENT", "CRITICAL", "FATAL"]
EStop = Literal["AUTOACK", "MANUAL", "REMOTE", "NONE"]
ConnectionState = Literal["ONLINE", "OFFLINE", "CONNECTIONBROKEN"]
MOST_ELEMENTS = 1000
"""Nodes or edges of an order, actions of a node."""


class Message(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A message or a part of one; what is UNSET or has its default is left out."""


class Whole(Struct, frozen=True, rename="camel"):
    """A part of which every key is sent, but those that are UNSET."""


# ── from the master control ─────────────────────────────────────────────────────────────────────


class ActionParameter(Message, frozen=True):
    key: Id
    value: Any


class Action(Message, frozen=True):
    action_type: Id
    action_id: Id
    blocking_type: BlockingType
    action_description: Text | UnsetType = UNSET
    action_parameters: Annotated[list[ActionParameter], Meta(max_length=100)] = field(
        default_factory=list
    )

    def parameters(self) -> dict[str, Any]:
        return {each.key: each.value for each in self.action_parameters}


Actions = Annotated[list[Action], Meta(max_length=MOST_ELEMENTS)]


class NodePosition(Message, frozen=True):
    x: Finite
    y: Finite
    map_id: Text
    theta: Angle | UnsetType = UNSET
    allowed_deviation_x_y: NotNegative | UnsetType = field(default=UNSET, name="allowedDeviationXY")
    allowed_deviation_theta: Angle | UnsetType = UNSET


class Node(Message, frozen=True):
    node_id: Id
    sequence_id: Sequence_
    released: bool
    actions: Actions
    node_position: NodePosition | UnsetType = UNSET
    node_description: Text | UnsetType = UNSET


class Edge(Message, frozen=True):
    edge_id: Id
    sequence_id: Sequence_
    released: bool
    start_node_id: Id
    end_node_id: Id
    actions: Actions
    max_speed: NotNegative | UnsetType = UNSET
    max_height: NotNegative | UnsetType = UNSET
    rotation_allowed: bool | UnsetType = UNSET
    edge_description: Text | UnsetType = UNSET
    trajectory: Any = UNSET
    corridor: Any = UNSET
    orientation: Any = UNSET
    direction: Any = UNSET
    max_rotation_speed: Any = UNSET
    min_height: Any = UNSET
    reach_orientation_before_entering: Any = UNSET

    def unsupported(self, height: float) -> str:
        """The first field that asks for what no robot here can do; ``height``: of the robot."""
        given = [name for name in UNSUPPORTED if getattr(self, name) is not UNSET]
        if self.rotation_allowed is False:
            given.append("rotation_allowed")
        if isinstance(self.max_height, float) and self.max_height < height:
            given.append("max_height")
        return KEYS[given[0]] if given else ""


UNSUPPORTED = (
    "trajectory",
    "corridor",
    "orientation",
    "direction",
    "max_rotation_speed",
    "min_height",
    "reach_orientation_before_entering",
)
"""Fields of edges that are refused: the robot drives straight from node to node."""
KEYS = dict(zip(Edge.__struct_fields__, Edge.__struct_encode_fields__, strict=True))


class Header(Message, frozen=True):
    header_id: int
    timestamp: Text
    version: Text
    manufacturer: Text
    serial_number: Text


class Order(Header, frozen=True, kw_only=True):
    order_id: Id
    order_update_id: Annotated[int, Meta(ge=0, lt=1 << 53)]
    nodes: Annotated[list[Node], Meta(min_length=1, max_length=MOST_ELEMENTS)]
    edges: Annotated[list[Edge], Meta(max_length=MOST_ELEMENTS)]
    zone_set_id: Text | UnsetType = UNSET


class InstantActions(Header, frozen=True, kw_only=True):
    actions: Actions


# ── from the robot ──────────────────────────────────────────────────────────────────────────────


class StatePosition(Message, frozen=True):
    x: float
    y: float
    map_id: str
    theta: float | UnsetType = UNSET


class NodeState(Message, frozen=True):
    node_id: str
    sequence_id: int
    released: bool
    node_position: StatePosition | UnsetType = UNSET


class EdgeState(Message, frozen=True):
    edge_id: str
    sequence_id: int
    released: bool


class ActionState(Message, frozen=True):
    action_id: str
    action_status: ActionStatus
    action_type: str | UnsetType = UNSET
    result_description: str | UnsetType = UNSET


class Reference(Whole, frozen=True):
    reference_key: str
    reference_value: str


class Error(Message, frozen=True):
    error_type: str
    error_level: ErrorLevel
    error_references: list[Reference] = field(default_factory=list)
    error_description: str | UnsetType = UNSET
    error_hint: str | UnsetType = UNSET


class AgvPosition(Whole, frozen=True):
    x: float
    y: float
    theta: float
    map_id: str
    position_initialized: bool
    localization_score: float


class Velocity(Whole, frozen=True):
    vx: float
    omega: float


class Map(Whole, frozen=True):
    map_id: str
    map_version: str
    map_status: Literal["ENABLED", "DISABLED"]


class Load(Message, frozen=True):
    load_id: str | UnsetType = UNSET
    load_type: str | UnsetType = UNSET
    load_position: str | UnsetType = UNSET


class BatteryState(Whole, frozen=True):
    battery_charge: float
    charging: bool


class SafetyState(Whole, frozen=True):
    e_stop: EStop
    field_violation: bool


class Sent(Whole, frozen=True):
    """The head of every message."""

    header_id: int
    timestamp: str
    version: str
    manufacturer: str
    serial_number: str


class State(Sent, frozen=True, kw_only=True):
    order_id: str
    order_update_id: int
    last_node_id: str
    last_node_sequence_id: int
    driving: bool
    paused: bool
    new_base_request: bool
    operating_mode: Literal["AUTOMATIC"]
    node_states: list[NodeState]
    edge_states: list[EdgeState]
    maps: list[Map]
    loads: list[Load]
    agv_position: AgvPosition
    velocity: Velocity
    action_states: list[ActionState]
    instant_action_states: list[ActionState]
    battery_state: BatteryState
    errors: list[Error]
    safety_state: SafetyState


class Visualization(Sent, frozen=True, kw_only=True):
    reference_state_header_id: int
    agv_position: AgvPosition
    velocity: Velocity


class Connection(Sent, frozen=True, kw_only=True):
    connection_state: ConnectionState


FROM_MASTER: Mapping[str, type[Header]] = {
    "order": Order,
    "instantActions": InstantActions,
    "zoneSet": Header,
    "responses": Header,
}
"""Topics that the robot listens to, the last two from 3.0 on. It makes no requests, so that
responses tell it nothing."""


# ── the factsheet ─────────────────────────────────────────────────────────────────────────────────

KINEMATICS: Mapping[DriveModel, str] = {
    "differential": "DIFF",
    "mecanum": "OMNI",
    "ackermann": "THREEWHEEL",
}
INSTANT_ACTIONS: Mapping[str, str] = {
    "startPause": "the robot stops, and goes on after stopPause",
    "stopPause": "the robot goes on",
    "cancelOrder": "the robot stops, and forgets its order",
    "stateRequest": "the robot sends its state",
    "factsheetRequest": "the robot sends its factsheet",
    "initPosition": "sets the pose where the robot believes to be: x, y, theta, mapId, lastNodeId",
    "clearInstantActions": "forgets the instant actions that have ended",
}
NODE_ACTIONS: Mapping[str, str] = {
    "executeAction": "moves a functional motor: motorId or functionKey, targetPosition",
    "wait": "waits for `seconds`",
    "pick": "takes a load with the functional motor for loads",
    "drop": "puts the load down",
}
LIFTS, GRIPPERS = ("LIFT", "FORK", "CONVEYOR", "TABLE"), ("GRIPPER", "CLAMP")
"""What the `functionKey` of a motor for loads contains. A lift picks at its upper end, a gripper at
its lower one, closed."""


class LoadHandler(NamedTuple):
    """A functional motor that picks and drops; positions in metres or radians."""

    motor: Motor
    picks_at: float
    drops_at: float


def load_handlers(file: RobotFile) -> list[LoadHandler]:
    """The motors for loads: those with two ends and a known `functionKey`."""
    found = []
    for motor in file.motors:
        limits, key = motor.limits.si, motor.function_key.upper()
        if motor.role != "FUNCTIONAL" or limits.lowest is None or limits.highest is None:
            continue
        if any(word in key for word in LIFTS):
            found.append(LoadHandler(motor, limits.highest, limits.lowest))
        elif any(word in key for word in GRIPPERS):
            found.append(LoadHandler(motor, limits.lowest, limits.highest))
    return found


def node_actions(file: RobotFile) -> Mapping[str, str]:
    """The actions that a robot can carry out."""
    offered = dict(NODE_ACTIONS)
    if not load_handlers(file):
        del offered["pick"], offered["drop"]
    if not any(motor.role == "FUNCTIONAL" for motor in file.motors):
        del offered["executeAction"]
    return offered


def factsheet(file: RobotFile) -> dict[str, Any]:
    """The body of the message, as the schema has it."""
    profile = file.runtime.simulation_profile
    model: DriveModel = profile.drive_model if profile is not None else "differential"
    drives = [motor.limits.si for motor in file.motors if motor.role == "DRIVE"]
    size = file.dimensions
    return {
        "typeSpecification": {
            "seriesName": file.identity.model or file.identity.name,
            "agvKinematic": KINEMATICS[model],
            "agvClass": "CARRIER",
            "maxLoadMass": size.payload_max_kg or 0.0,
            "localizationTypes": ["NATURAL", "DMC"],
            "navigationTypes": ["AUTONOMOUS"],
        },
        "physicalParameters": {
            "speedMin": 0.0,
            "speedMax": min((limits.max_speed for limits in drives), default=0.0),
            "accelerationMax": min((limits.max_acceleration for limits in drives), default=0.0),
            "decelerationMax": min((limits.max_deceleration for limits in drives), default=0.0),
            "heightMax": size.height_mm * MM,
            "width": size.width_mm * MM,
            "length": size.length_mm * MM,
        },
        "protocolLimits": {
            "maxStringLens": {},
            "maxArrayLens": {"order.nodes": MOST_ELEMENTS, "order.edges": MOST_ELEMENTS},
            "timing": {"minOrderInterval": 0.02, "minStateInterval": 0.02},
        },
        "protocolFeatures": {"optionalParameters": [], "agvActions": _actions(file)},
        "agvGeometry": {"envelopes2d": [_envelope(file)]},
        "loadSpecification": {
            "loadPositions": [each.motor.motor_id for each in load_handlers(file)]
        },
    }


def _actions(file: RobotFile) -> list[dict[str, Any]]:
    offered = [(INSTANT_ACTIONS, ["INSTANT"]), (node_actions(file), ["NODE", "EDGE"])]
    return [
        {"actionType": name, "actionDescription": text, "actionScopes": scopes}
        for actions, scopes in offered
        for name, text in actions.items()
    ]


def _envelope(file: RobotFile) -> dict[str, Any]:
    half, side = file.dimensions.length_mm * MM / 2.0, file.dimensions.width_mm * MM / 2.0
    corners = [(half, side), (-half, side), (-half, -side), (half, -side)]
    return {"set": "outline", "polygonPoints": [{"x": x, "y": y} for x, y in corners]}
