"""Add a face from outside the package: a dialect of bytes in front of a robot that exists.

The face `csv` answers one line with one line. Its wires, its timing, back-pressure, snapshots,
transcripts and scenario rules come with the Protocols `Face` and `Session`.

An installed package adds it by an entry point:

    [project.entry-points."understudy.faces"]
    csv = "my_package.csv_face"
"""

import socket
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy import load_cell, registry
from understudy.app.stand_in import StandIn
from understudy.ports import Deps, Endpoint
from understudy.protocol.sessions import LineReader, Outbox, ReadyPeers, SavedLine, SessionFace

ENDPOINTS = {"": Endpoint(wires=("tcp", "pty"), defaults={"port": 7001})}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys of the face in a cell file, besides those of its wire."""

    decimals: int = 1


class SavedSession(Struct):
    line: SavedLine
    unsent: list[bytes]


class CsvSession:
    """`Session` of one client: `pose` is answered with `x,y,z` in millimetres."""

    def __init__(self, face: "CsvFace", peer: str, saved: SavedSession | None = None) -> None:
        self._face, self._peer = face, peer
        self.lines = LineReader(100, saved.line if saved else None)
        self.outbox = Outbox(lambda: face.ready.add(peer), saved.unsent if saved else ())

    def receive(self, data: bytes, now: int) -> None:
        for line in self.lines.feed(data):
            known = line.data == b"pose" and not line.too_long
            self.outbox.send((self._face.pose(now) if known else b"unknown") + b"\n")

    def take(self, room: int) -> bytes:
        return self.outbox.take(room)

    def eof(self, now: int) -> None: ...

    def closed(self, now: int) -> None:
        self._face.close(self._peer)

    def credit(self) -> int:
        return 0 if self.outbox.size > 10_000 else 1000

    def owed(self) -> bool:
        return False  # every answer is given at once


class CsvFace(SessionFace[CsvSession]):
    """`Face`: opens sessions, and holds what they share."""

    def __init__(self, robot: Any, decimals: int) -> None:
        self.ready = ReadyPeers()
        self._sessions: dict[str, CsvSession] = {}
        self._robot, self._decimals = robot, decimals

    def pose(self, now: int) -> bytes:
        pose = self._robot.reading(now).pose
        return ",".join(f"{v * 1000:.{self._decimals}f}" for v in (pose.x, pose.y, pose.z)).encode()

    def open(self, peer: str, now: int) -> CsvSession:
        self._sessions[peer] = CsvSession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def save(self) -> Any:
        return {p: SavedSession(s.lines.save(), s.outbox.save()) for p, s in self._sessions.items()}

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, dict[str, SavedSession])
        self._sessions = {peer: CsvSession(self, peer, each) for peer, each in saved.items()}


def build(name: str, config: Config, robot: Any, deps: Deps) -> CsvFace:
    return CsvFace(robot, config.decimals)


CELL = "robots: {bench: {kind: text_robot, faces: {csv: {decimals: 2}, text_tcp: {}}}}"

if __name__ == "__main__":
    registry.register("faces", "csv", __name__)  # for this process, in place of the entry point
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell.yaml"
        file.write_text(CELL)
        cell = load_cell(str(file))
        client = cell.connect("bench.csv")
        client.say(b"po")
        snapshot = cell.snapshot()  # with half a line in it
        cell.connect("bench.text_tcp").ask(b"MOVE_ABS 100,200,300,0,0,0\n")
        print("after the move:", client.ask(b"se\n"))
        cell.restore(snapshot)
        print("restored:", client.ask(b"se\n"))
        with StandIn(str(file)) as live, socket.create_connection(live.address("bench.csv")) as raw:
            raw.sendall(b"pose\n")
            print("over TCP:", raw.recv(100))
