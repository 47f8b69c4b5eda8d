"""Mobile robots on NATS JetStream: all peers behind the broker are one session.

    > robot.robot-1.command.request {…}     handled at the robot's next tick, then acknowledged
    < robot.robot-1.command.ack {…}         stored by the broker, which confirms it
    < robot.robot-1.state {…}               sent once, the newest counts

A message is acknowledged after it was handled and the broker has stored what became of it: if the
cell ends before, the broker delivers it again, and the robot drops what it has already seen. At a
new start the broker gives back these records.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from understudy.ports import CONFIRMED, FORGOTTEN, KEPT, Endpoint, WireMessage
from understudy.ports.decoder import (
    LONGEST_NAME,
    MESSAGES,
    REPLY_ADDRESS,
    Decoded,
    Operation,
    Sections,
    all_rows,
    json_object,
)
from understudy.ports.faults import BROKER_FAULTS, Faults
from understudy.protocol.sessions import NotInjectable, ReadyPeers, SessionFace
from understudy.robots.mobile.reactions import FACE_EXPLORED, FACE_REACTIONS
from understudy.robots.mobile.reactions import TALKS as TALKS
from understudy.robots.mobile.runtime.messages import COMMANDS, FROM_ROBOT, TO_ROBOT, kind_of

if TYPE_CHECKING:
    from understudy.robots.mobile.runtime.fleet import Fleet

EXPLORED = FACE_EXPLORED
ENDPOINTS = {"": Endpoint(wires=("nats",))}
FAULTS = BROKER_FAULTS
REACTIONS = FACE_REACTIONS
ACKNOWLEDGED = b"+ACK"
"""Payload with which a JetStream consumer acknowledges a message."""
PEER = "nats"
REFUSALS = ("message.malformed", "message.unsupported")
"""Events that refuse a message."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The face has no settings of its own: the server is the key `nats` of the cell file."""


class SavedSession(Struct):
    """Snapshot of the session: messages to acknowledge, and how many are not handled yet."""

    handled: list[str]
    unhandled: int


class SavedFace(Struct):
    """Snapshot of the face; no session: the broker is not connected."""

    sessions: dict[str, SavedSession]


class FleetSession:
    """`MessageSession` of everybody behind the broker; `KeepsRecords`."""

    keeps_records: Literal[True] = True
    announces_state: Literal[True] = True

    def __init__(self, face: "FleetFace", saved: SavedSession | None = None) -> None:
        was = saved or SavedSession([], 0)
        self._face = face
        self._fleet = face.fleet
        self._handled = deque(was.handled)
        self._unhandled = was.unhandled

    def receive(self, message: WireMessage, now: int) -> None:
        if message.address == CONFIRMED:
            self._fleet.confirmed(message.reply_to, now)
            return
        if message.address.startswith(KEPT):
            self._fleet.recall(message, now)
            return
        if message.address == FORGOTTEN:
            self._fleet.announce(now)
            return
        self._unhandled += 1
        self._fleet.receive(message, now)

    def take(self, room: int) -> WireMessage | None:
        self._collect()
        if self._handled:
            if room < len(ACKNOWLEDGED):
                return None
            return WireMessage(self._handled.popleft(), ACKNOWLEDGED)
        return self._fleet.take(room)

    def take_many(self, room: int) -> Sequence[WireMessage]:
        """`TakesMany`: acknowledgements one by one, then the messages of the robots."""
        self._collect()
        if self._handled:
            message = self.take(room)
            return () if message is None else (message,)
        return self._fleet.take_many(room)

    def failed(self, message: WireMessage, now: int) -> None:
        """Acknowledged: delivered again, the message would fail again."""
        if not message.address.startswith((CONFIRMED, KEPT, FORGOTTEN)):
            self._unhandled -= 1
            self._acknowledge(message.reply_to)

    def closed(self, now: int) -> None:
        self._face.close(now)

    def credit(self) -> int:
        return self._fleet.credit()

    def owed(self) -> bool:
        """Messages wait for the next tick of their robots."""
        self._collect()
        return self._unhandled > 0

    def waiting(self) -> bool:
        """Whether there is something to take."""
        return bool(self._handled) or self._fleet.waiting()

    def save(self) -> SavedSession:
        return SavedSession(list(self._handled), self._unhandled)

    def _collect(self) -> None:
        for reply_to in self._fleet.take_handled():  # some may be of the connection before
            self._unhandled = max(self._unhandled - 1, 0)
            self._acknowledge(reply_to)

    def _acknowledge(self, reply_to: str) -> None:
        if reply_to:
            self._handled.append(reply_to)


def read_message(data: bytes, address: str) -> Decoded:
    """The kind of a message, and the command in a command.request; its payload as fields."""
    if address.startswith((CONFIRMED, KEPT, FORGOTTEN)) or data == ACKNOWLEDGED:
        return Decoded()  # between the broker and the cell
    robot, kind = kind_of(address)
    payload = json_object(data).get("payload")
    fields: dict[str, Any] = payload if isinstance(payload, dict) else {}
    command = fields.get("commandType")
    named = kind == "command.request" and isinstance(command, str)
    names = (kind or address, str(command)[:LONGEST_NAME]) if named else (kind or address,)
    refused = fields.get("status") == "REJECTED" or fields.get("type") in REFUSALS
    return Decoded(names, {"robotId": robot, **fields}, refused)


VOLATILE = frozenset({"messageId", "correlationId", "ts", REPLY_ADDRESS})
SCHEMA_TESTS = "tests/robots/mobile/runtime/test_message_schema.py"
COMMAND_TESTS = "tests/robots/mobile/contract/test_commands.py"


@cache
def operations() -> Sections:
    """Messages and commands, as the types of the messages have them."""
    from understudy.robots.mobile.runtime.message_schema import meaning

    def messages(kinds: Iterable[str]) -> list[Operation]:
        return [
            Operation(kind, meaning(kind), "emulated", "document", SCHEMA_TESTS) for kind in kinds
        ]

    commands = [
        Operation(
            name,
            " ".join((kind.parameters.__doc__ or "").split()),
            "emulated",
            "document",
            COMMAND_TESTS,
        )
        for name, kind in COMMANDS.items()
    ]
    return {
        "Messages to a robot": messages(TO_ROBOT),
        "Commands (command.request)": commands,
        "Messages of a robot": messages(FROM_ROBOT),
    }


OPERATIONS = operations
DECODER = replace(
    MESSAGES,
    read_request=read_message,
    read_answer=read_message,
    operations=lambda: all_rows(operations()),
    volatile=VOLATILE,
)


class FleetFace(SessionFace[FleetSession], NotInjectable):
    """``subjects``: those on which the robots receive messages."""

    awaits_confirmations: Literal[True] = True
    decoder = DECODER

    def __init__(self, fleet: "Fleet", subjects: Sequence[str]) -> None:
        self.fleet = fleet
        self.ready = ReadyPeers()
        self._subjects = tuple(subjects)
        self._sessions: dict[str, FleetSession] = {}

    def open(self, peer: str, now: int) -> FleetSession:
        session = self._sessions[peer] = FleetSession(self)
        self.fleet.set_connected(True, now)
        return session

    def close(self, now: int) -> None:
        """The connection to the broker is lost."""
        self._sessions.clear()
        self.fleet.set_connected(False, now)

    def ready_peers(self) -> list[str]:
        return [peer for peer, session in self._sessions.items() if session.waiting()]

    def addresses(self) -> Sequence[str]:
        return self._subjects

    def faults(self) -> Faults:
        return FAULTS

    def save(self) -> SavedFace:
        return SavedFace({peer: session.save() for peer, session in self._sessions.items()})

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, SavedFace)
        self._sessions = {peer: FleetSession(self, was) for peer, was in saved.sessions.items()}
