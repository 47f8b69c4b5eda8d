"""What a robot sends to its master control: state, visualization, connection, factsheet."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, field

from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.runtime import messages as own
from understudy.robots.mobile.runtime.outgoing import timestamp
from understudy.robots.mobile.vda5050.factsheet import factsheet
from understudy.robots.mobile.vda5050.messages import (
    VERSION,
    ActionState,
    AgvPosition,
    BatteryState,
    Connection,
    ConnectionState,
    EdgeState,
    Error,
    Node,
    NodeState,
    SafetyState,
    State,
    StatePosition,
    Velocity,
    Visualization,
)
from understudy.robots.mobile.vda5050.order_state import Progress

MOST_WAITING = 256
"""Messages that wait to be sent; the oldest are dropped."""
MOVING = 1e-3
"""m/s or rad/s above which the robot is driving."""
SCORES: dict[own.Localization, float] = {"OK": 1.0, "DEGRADED": 0.5, "LOST": 0.0}


class Identity(Struct, frozen=True):
    """Who the robot is. ``epoch``: nanoseconds since 1970 at the time 0."""

    manufacturer: str
    serial_number: str
    map_id: str
    epoch: int


class Outgoing(Struct, frozen=True):
    """A message for a topic; ``retained``: the broker keeps it."""

    topic: str
    payload: bytes
    retained: bool = False


class SavedMessages(Struct, forbid_unknown_fields=True):
    headers: dict[str, Annotated[int, Meta(ge=0, lt=1 << 62)]] = field(default_factory=dict)
    waiting: Annotated[list[Outgoing], Meta(max_length=MOST_WAITING)] = field(default_factory=list)


class Conditions(Struct, frozen=True):
    """What the order knows, beside its progress."""

    paused: bool
    errors: Sequence[Error]
    actions: Sequence[ActionState]


class MasterMessages:
    """Messages to the master control, with their numbers."""

    def __init__(self, identity: Identity, file: RobotFile, facts: Callable[[], own.State]) -> None:
        self._identity = identity
        self._file = file
        self._facts = facts
        self._headers: dict[str, int] = {}
        self._waiting: deque[Outgoing] = deque(maxlen=MOST_WAITING)

    def take(self) -> Outgoing | None:
        return self._waiting.popleft() if self._waiting else None

    def waiting(self) -> bool:
        return bool(self._waiting)

    def drop_all(self) -> None:
        self._waiting.clear()

    # ── messages ──

    def connection(self, state: ConnectionState, now: int) -> None:
        message = Connection(**self._head("connection", now), connection_state=state)
        self._put("connection", message, retained=True)

    def last_will(self) -> bytes:
        """What the broker publishes when the robot is gone. Its time is that of the start."""
        identity = self._identity
        return msgspec.json.encode(
            Connection(
                0, timestamp(identity.epoch, 0), VERSION, identity.manufacturer,
                identity.serial_number, connection_state="CONNECTIONBROKEN",
            )
        )  # fmt: skip

    def factsheet(self, now: int) -> None:
        head = {
            "headerId": self._number("factsheet"),
            "timestamp": timestamp(self._identity.epoch, now),
            "version": VERSION,
            "manufacturer": self._identity.manufacturer,
            "serialNumber": self._identity.serial_number,
        }
        self._put("factsheet", head | factsheet(self._file), retained=True)

    def visualization(self, now: int) -> None:
        facts = self._facts()
        message = Visualization(
            **self._head("visualization", now),
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
        )
        self._put("visualization", message)

    def state(self, progress: Progress, conditions: Conditions, now: int) -> None:
        facts = self._facts()
        moving = max(abs(facts.velocity.linear), abs(facts.velocity.angular)) > MOVING
        message = State(
            **self._head("state", now),
            order_id=progress.order_id,
            order_update_id=progress.update_id,
            last_node_id=progress.last_node,
            last_node_sequence_id=progress.last_sequence,
            driving=moving,
            paused=conditions.paused,
            new_base_request=progress.wants_base(),
            operating_mode="AUTOMATIC",
            node_states=[_node_state(node) for node in progress.nodes],
            edge_states=[
                EdgeState(edge.edge_id, edge.sequence_id, edge.released) for edge in progress.edges
            ],
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
            action_states=[*progress.actions.values(), *conditions.actions],
            battery_state=BatteryState(facts.battery_percent, charging=False),
            errors=[*conditions.errors, *_faults(facts)],
            safety_state=SafetyState(
                "MANUAL" if facts.estop_pressed else "NONE",
                facts.safety_stop_reason == "OBSTACLE",
            ),
        )
        self._put("state", message)

    # ── inside ──

    def _head(self, topic: str, now: int) -> dict[str, Any]:
        return {
            "header_id": self._number(topic),
            "timestamp": timestamp(self._identity.epoch, now),
            "version": VERSION,
            "manufacturer": self._identity.manufacturer,
            "serial_number": self._identity.serial_number,
        }

    def _number(self, topic: str) -> int:
        number = self._headers.get(topic, 0)
        self._headers[topic] = number + 1
        return number

    def _put(self, topic: str, message: Any, *, retained: bool = False) -> None:
        self._waiting.append(Outgoing(topic, msgspec.json.encode(message), retained))

    def _position(self, facts: own.State) -> AgvPosition:
        pose = facts.pose
        score = SCORES[facts.localization_status]
        return AgvPosition(pose.x, pose.y, pose.yaw, self._identity.map_id, True, score)

    # ── snapshot ──

    def save(self) -> SavedMessages:
        return SavedMessages(dict(self._headers), list(self._waiting))

    def load(self, saved: SavedMessages) -> None:
        self._headers = dict(saved.headers)
        self._waiting = deque(saved.waiting, maxlen=MOST_WAITING)


def _node_state(node: Node) -> NodeState:
    position = node.node_position
    if position is UNSET:
        return NodeState(node.node_id, node.sequence_id, node.released)
    place = StatePosition(position.x, position.y, position.map_id, position.theta)
    return NodeState(node.node_id, node.sequence_id, node.released, place)


def _faults(facts: own.State) -> list[Error]:
    return [
        Error(fault.code, "WARNING" if fault.severity == "WARN" else "FATAL", [], fault.message)
        for fault in facts.faults
    ]
