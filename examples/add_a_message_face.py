"""Add a message face from outside the package: CAN frames in front of a robot that exists.

A message face receives and sends whole messages with an address; here the address is the
arbitration id. It is timed and saved like a byte face: request 100 is answered by 180 with the
pose, and 700 is sent every 100 ms. `add_a_wire.py` puts it on a wire of its own.
"""

import struct
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy import load_cell, registry
from understudy.ports import Deps, Endpoint, WireMessage
from understudy.protocol.sessions import MessageOutbox, ReadyPeers, SessionFace
from understudy.units import NS_PER_MS

ENDPOINTS = {"": Endpoint(wires=("can_udp",))}
GET, POSE, ALIVE = "100", "180", "700"
MM = struct.Struct(">hhh")
PERIOD = 100 * NS_PER_MS


class Config(Struct, frozen=True, forbid_unknown_fields=True): ...  # no keys of its own


Saved = tuple[int, dict[str, list[WireMessage]]]  # heartbeats, and by peer what is not sent yet


class CanSession:
    """`MessageSession` of one node on the bus."""

    def __init__(self, face: "CanFace", peer: str, unsent: list[WireMessage]) -> None:
        self._face, self._peer = face, peer
        self.outbox = MessageOutbox(lambda: face.ready.add(peer), unsent, most=64)

    def receive(self, message: WireMessage, now: int) -> None:
        if message.address == GET:
            self.outbox.send(WireMessage(POSE, self._face.pose(now)))

    def failed(self, message: WireMessage, now: int) -> None: ...

    def take(self, room: int) -> WireMessage | None:
        return self.outbox.take(room)

    def closed(self, now: int) -> None:
        self._face.close(self._peer)

    def credit(self) -> int:
        return 64

    def owed(self) -> bool:
        return False  # every answer is given at once


class CanFace(SessionFace[CanSession]):
    """`MessageFace`: the robot as a node on a CAN bus."""

    def __init__(self, robot: Any) -> None:
        self.ready = ReadyPeers()
        self._sessions: dict[str, CanSession] = {}
        self._robot, self._beats = robot, 0

    def pose(self, now: int) -> bytes:
        pose = self._robot.reading(now).pose
        return MM.pack(*(round(value * 1000) for value in (pose.x, pose.y, pose.z)))

    def addresses(self) -> tuple[str, ...]:
        return (GET,)

    def open(self, peer: str, now: int) -> CanSession:
        self._sessions[peer] = CanSession(self, peer, [])
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def next_wake(self) -> int | None:
        return (self._beats + 1) * PERIOD

    def wake(self, now: int) -> None:
        self._beats += 1
        for session in self._sessions.values():
            session.outbox.send(WireMessage(ALIVE, b""))

    def save(self) -> Saved:
        unsent = {peer: session.outbox.save() for peer, session in self._sessions.items()}
        return self._beats, unsent

    def load(self, state: Any) -> None:
        self._beats, unsent = msgspec.convert(state, Saved)
        self._sessions = {peer: CanSession(self, peer, each) for peer, each in unsent.items()}


def build(name: str, config: Config, robot: Any, deps: Deps) -> CanFace:
    return CanFace(robot)


def write_cell(folder: str) -> str:
    """Adds the face and its wire to the tables of this process; writes a cell that uses them."""
    registry.register("faces", "can_pose", "add_a_message_face")
    registry.register("wires", "can_udp", "add_a_wire")
    file = Path(folder) / "cell.yaml"
    file.write_text("robots: {bench: {kind: text_robot, faces: {can_pose: {}, text_tcp: {}}}}")
    return str(file)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        cell = load_cell(write_cell(folder))
    node = cell.connect("bench.can_pose", peer="node 5")
    snapshot = cell.snapshot()
    for _ in range(2):
        node.say(WireMessage(GET, b""))
        cell.advance(0.2)
        print([(message.address, message.payload) for message in node.messages()])
        cell.restore(snapshot)
