"""VDA 5050 (2.0, 2.1, 3.0) on MQTT: a master control commands one robot.

> uagv/v2/MAKER/SERIAL/order {…}             handled at the robot's next tick
> uagv/v2/MAKER/SERIAL/instantActions {…}
< uagv/v2/MAKER/SERIAL/state {…}             at every change, and every 30 s
< uagv/v2/MAKER/SERIAL/visualization {…}
< uagv/v2/MAKER/SERIAL/connection {…}        kept by the broker; last will CONNECTIONBROKEN
< uagv/v2/MAKER/SERIAL/factsheet {…}         kept by the broker

In 3.0 the topics begin with uagv/v3, and the robot listens to zoneSet and responses, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import RETAINED, Deps, Endpoint, Figures, WireMessage
from understudy.ports.decoder import (
    LONGEST_NAME,
    MESSAGES,
    Decoded,
    Evidence,
    Operation,
    Sections,
    Status,
    all_rows,
    json_object,
)
from understudy.ports.fault_reactions import (
    Data,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Talk,
    Trial,
    robot_stands,
)
from understudy.ports.faults import Fault, Faults
from understudy.protocol.sessions import ReadyPeers, SessionFace
from understudy.robots.mobile.vda5050.messages import INSTANT_ACTIONS, NODE_ACTIONS
from understudy.robots.mobile.vda5050.versions import Version, prefix

if TYPE_CHECKING:
    from understudy.robots.mobile.robot import MobileRobot
    from understudy.robots.mobile.vda5050.master import MasterControl

__all__ = ["ENDPOINTS", "FAULTS", "REACTIONS", "TALKS", "Config", "MasterFace", "build"]

ENDPOINTS = {"": Endpoint(wires=("mqtt",))}
LISTENS = ("order", "instantActions")
"""The topics on which the master control speaks."""
LISTENS_3 = (*LISTENS, "zoneSet", "responses")
Word = Annotated[str, Meta(pattern=r"^[^/+#\s]+\Z", max_length=64)]
"""A part of a topic."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The robot for its master control. `version`: of VDA 5050. `serial_number`: without it the
    robot's name in the cell. `map_id`, `map_version`: the only map, of all its positions.
    `state_s`: the longest time between two states."""

    version: Version = "2.1.0"
    interface_name: Word = "uagv"
    manufacturer: Word = "understudy"
    serial_number: Word | None = None
    map_id: Annotated[str, Meta(max_length=64)] = "hall"
    map_version: Annotated[str, Meta(max_length=64)] = "1"
    state_s: Annotated[float, Meta(ge=0.1, le=30)] = 30.0
    visualization_hz: Annotated[float, Meta(ge=0, le=10)] = 1.0


class SavedFace(Struct):
    """Snapshot: whether the broker is connected. What waits is saved with the robot."""

    sessions: list[str]


class MasterSession:
    """`MessageSession` of the master control behind the broker."""

    def __init__(self, face: "MasterFace") -> None:
        self._face = face

    def receive(self, message: WireMessage, now: int) -> None:
        topic = message.address.rpartition("/")[2]
        if message.reply_to == RETAINED:
            self._face.control.drop_retained(topic)
        elif topic in self._face.topics:
            self._face.control.receive(topic, message.payload, now)

    def take(self, room: int) -> WireMessage | None:
        message = self._face.control.outgoing.take() if room > 0 else None
        if message is None:
            return None
        address = self._face.prefix + message.topic
        return WireMessage(address, message.payload, RETAINED if message.retained else "")

    def failed(self, message: WireMessage, now: int) -> None:
        """A message that caused a bug is not answered."""

    def closed(self, now: int) -> None:
        self._face.close(now)

    def credit(self) -> int:
        return self._face.control.credit()

    def owed(self) -> bool:
        return False


def read_message(data: bytes, address: str) -> Decoded:
    """The topic of a message, and the actions that it asks for; its keys as fields."""
    topic = address.rpartition("/")[2]
    fields = json_object(data)
    return Decoded((topic, *dict.fromkeys(_actions_in(topic, fields))), fields)


def _actions_in(topic: str, fields: dict[str, Any]) -> Iterator[str]:
    """The types of the actions in an order or instantActions; anything may be in it."""
    places: list[Any] = [fields]
    if topic == "order":
        parts = (fields.get(key) for key in ("nodes", "edges"))
        places = [each for part in parts if isinstance(part, list) for each in part]
    for place in places if topic in ("order", "instantActions") else ():
        actions = place.get("actions") if isinstance(place, dict) else None
        for action in actions if isinstance(actions, list) else ():
            name = action.get("actionType") if isinstance(action, dict) else None
            if isinstance(name, str):
                yield name[:LONGEST_NAME]


FAULTS: Faults = {
    "session_forgotten": Fault(
        "brought",
        "the MQTT broker forgets the robot's session: what waited to be sent is lost, and a new "
        "session begins",
    )
}
VOLATILE = frozenset({"timestamp"})


MASTER_TESTS = "tests/robots/mobile/vda5050/test_master.py"
FOREIGN = "tests/robots/mobile/vda5050/test_foreign_masters.py"
TRIED = ("order", "instantActions", "startPause", "stopPause", "cancelOrder", "pick", "drop")
"""What the master controls of others use with the robot."""
TOPICS: Mapping[str, tuple[str, Status, str]] = {
    "order": ("nodes and edges to drive, with actions", "emulated", ""),
    "instantActions": ("actions that begin at once", "emulated", ""),
    "zoneSet": ("zones of a map, from 3.0 on", "formal", "the robot uses no zones"),
    "responses": ("answers to requests, from 3.0 on", "formal", "the robot makes no requests"),
}
SENT: Mapping[str, str] = {
    "state": "at every change, and every 30 s at least",
    "visualization": "the pose, often",
    "connection": "whether the robot is connected; kept by the broker",
    "factsheet": "what the robot can do; kept by the broker",
}
NOT_OFFERED = ("startCharging", "stopCharging", "logReport", "detectObject", "finePositioning")
"""Further actions that the document of VDA 5050 predefines."""


@cache
def operations() -> Sections:
    def row(name: str, text: str, status: Status = "emulated", note: str = "") -> Operation:
        tried = name in TRIED
        evidence: Evidence = "third-party client" if tried else "document"
        return Operation(name, text, status, evidence, FOREIGN if tried else MASTER_TESTS, note)

    refused = "not in the factsheet; at once FAILED, in an order the order is refused"
    return {
        "Topics of the master control": [row(name, *rest) for name, rest in TOPICS.items()],
        "Topics of the robot": [row(name, text) for name, text in SENT.items()],
        "Instant actions": [row(name, text) for name, text in INSTANT_ACTIONS.items()],
        "Actions of an order": [row(name, text) for name, text in NODE_ACTIONS.items()],
        "Predefined actions that the robot does not offer": [
            Operation(name, "", "refused", "us", MASTER_TESTS, refused) for name in NOT_OFFERED
        ],
    }


OPERATIONS = operations
DECODER = replace(
    MESSAGES,
    read_request=read_message,
    read_answer=read_message,
    operations=lambda: all_rows(operations()),
    volatile=VOLATILE,
)


class MasterFace(SessionFace[MasterSession]):
    """The robot at its broker. ``prefix``: what stands before the last word of every topic;
    ``topics``: those words of what the master control sends."""

    decoder = DECODER

    def __init__(
        self, control: "MasterControl", prefix: str, topics: Sequence[str] = LISTENS
    ) -> None:
        self.control = control
        self.topics = topics
        self.prefix = prefix
        self.ready = ReadyPeers()
        self._sessions: dict[str, MasterSession] = {}

    def open(self, peer: str, now: int) -> MasterSession:
        session = self._sessions[peer] = MasterSession(self)
        self.control.set_connected(True, now)
        return session

    def close(self, now: int) -> None:
        self._sessions.clear()
        self.control.set_connected(False, now)

    def ready_peers(self) -> list[str]:
        return list(self._sessions) if self.control.outgoing.state.waiting else []

    def addresses(self) -> Sequence[str]:
        return [self.prefix + topic for topic in self.topics]

    def last_will(self) -> WireMessage:
        return WireMessage(f"{self.prefix}connection", self.control.outgoing.last_will())

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Figures, now: int) -> Refused | None:
        if not self._sessions:
            return Refused("the broker is not connected, so that it has no session to forget")
        self.control.set_connected(False, now)
        self.control.set_connected(True, now)
        for peer in self._sessions:
            self.ready.add(peer)
        return None

    def save(self) -> SavedFace:
        return SavedFace(list(self._sessions))

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, SavedFace)
        self._sessions = {peer: MasterSession(self) for peer in saved.sessions}


def build(name: str, config: Config, robot: "MobileRobot", deps: Deps) -> MasterFace:
    """``name``: of the endpoint, `robot-1.vda5050`."""
    serial = config.serial_number or name.partition(".")[0]
    begin = prefix(config.version, config.interface_name, config.manufacturer, serial)
    control = robot.under_master(config, serial, deps.run.epoch, deps.log)
    return MasterFace(control, begin, LISTENS_3 if config.version == "3.0.0" else LISTENS)


# ── expected reactions to its faults, and a conversation of a master control ──────────────────────

AWAY_M = 2.0
"""Metres to the goal of the order: the robot is on its way for some seconds."""


def _message(trial: Trial, topic: str, **content: Any) -> WireMessage:
    """A message of the master control with a header."""
    face: Any = trial.components[trial.place]
    _, version, manufacturer, serial, _ = face.prefix.split("/")
    head = {
        "headerId": 1,
        "timestamp": "2026-01-01T00:00:00.00Z",
        "version": {"v2": "2.1.0", "v3": "3.0.0"}.get(version, "2.1.0"),
        "manufacturer": manufacturer,
        "serialNumber": serial,
    }
    return WireMessage(f"{face.prefix}{topic}", msgspec.json.encode({**head, **content}))


def _request(trial: Trial, number: int) -> Data:
    """Asks for the factsheet."""
    action = {"actionId": f"ask-{number}", "actionType": "factsheetRequest", "blockingType": "NONE"}
    return _message(trial, "instantActions", actions=[action])


def _node(sequence: int, x: float, y: float) -> Mapping[str, Any]:
    place = {"x": x, "y": y, "mapId": "hall"}
    return {
        "nodeId": f"n{sequence}",
        "sequenceId": sequence,
        "released": True,
        "nodePosition": place,
        "actions": [],
    }


def driving(trial: Trial) -> None:
    """the robot drives by an order"""
    trial.client("fleet")  # without a backend the robot does not move
    trial.endpoint_client()
    trial.advance(0.5)
    x, y, _ = trial.components[trial.robot].status(trial.now).pose
    edge = {
        "edgeId": "e1",
        "sequenceId": 1,
        "released": True,
        "startNodeId": "n0",
        "endNodeId": "n2",
        "actions": [],
    }
    nodes = [_node(0, x, y), _node(2, x + AWAY_M, y)]
    trial.notes["order"] = _message(
        trial, "order", orderId="o1", orderUpdateId=0, nodes=nodes, edges=[edge]
    )
    trial.endpoint_client().say(trial.notes["order"])
    trial.advance(1.0)
    if robot_stands(trial):
        raise NotPossibleError(f"{trial.robot} does not drive")
    trial.notes["moves"] = trial.part.control.state.moves


def order_again(trial: Trial) -> None:
    """the master control sends the order once more"""
    trial.advance(0.1)
    trial.endpoint_client().say(trial.notes["order"])


def _sent(trial: Trial, topic: str) -> Sequence[Any]:
    """The messages on a topic since the injection."""
    address = f"{trial.part.prefix}{topic}"
    return [
        msgspec.json.decode(data.payload)
        for at, data in trial.endpoint_client().heard
        if at >= trial.injected_at and isinstance(data, WireMessage) and data.address == address
    ]


def _goes_on_once(trial: Trial) -> bool:
    """The order reaches its goal by the move that was under way, without an error."""
    last = [each for each in _sent(trial, "state") if each["lastNodeId"] == "n2"]
    moves = trial.part.control.state.moves == trial.notes["moves"]
    return moves and any(each["orderId"] == "o1" and not each["errors"] for each in last)


REACTIONS: Reactions = {
    "session_forgotten": Reaction(
        driving,
        (
            Seen(
                "connection ONLINE again",
                lambda t: any(
                    each["connectionState"] == "ONLINE" for each in _sent(t, "connection")
                ),
            ),
            Seen("the factsheet again", lambda t: bool(_sent(t, "factsheet"))),
            Seen("the whole state again", lambda t: bool(_sent(t, "state"))),
            Seen("the order is carried out once", _goes_on_once),
        ),
        within_s=15.0,
        then=order_again,
    )
}
TALKS = {"": Talk(_request)}
