"""A KUKA on virtual time, and a client with its own frame code, independent of the package."""

import struct
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import structs
from tests.parts import part

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.robots.kuka.robot import KukaGcodeServer, Status
from understudy.wire.exchange import Client, InProcessCell

COMMAND = "kuka.kuka_eki.command"
TELEMETRY = "kuka.kuka_eki.telemetry"
BITS = dict(zip("XYZABCFE", (1, 2, 4, 8, 16, 32, 64, 128), strict=True))


def command(seq: int, kind: int = 0, **words: float) -> bytes:
    """A command record; only the words given have their bits set."""
    values = [words.get(letter, 0.0) for letter in "XYZABCFE"]
    mask = sum(BITS[letter] for letter in words)
    return struct.pack("<ii8fi4x", seq, kind, *values, mask)


class TelemetryFrame(NamedTuple):
    """A telemetry frame."""

    pose: tuple[float, ...]
    axes: tuple[float, ...]
    seq: int
    in_flight: int
    queue: int
    flags: int
    speed: float
    tool: int
    base: int
    rest: tuple[int, ...]


def telemetry(stream: bytes) -> list[TelemetryFrame]:
    assert len(stream) % 128 == 0
    frames = (struct.unpack_from("<12f4if2i13i", stream, at) for at in range(0, len(stream), 128))
    return [TelemetryFrame._make((f[:6], f[6:12], *f[12:19], f[19:])) for f in frames]


def feedback(stream: bytes) -> list[tuple[int, int]]:
    assert len(stream) % 48 == 0
    frames = [struct.unpack_from("<12i", stream, at) for at in range(0, len(stream), 48)]
    assert all(frame[2:] == (-27,) * 10 for frame in frames)
    return [frame[:2] for frame in frames]


def kuka(**settings: Any) -> InProcessCell:
    """The shipped cell, with other settings of its robot."""
    config = load_config("kuka_eki")
    robot = config.robots["kuka"]
    own = structs.replace(robot.config, **settings)
    robots = {"kuka": structs.replace(robot, config=own)}
    return InProcessCell(build_cell(replace(config, robots=robots)))


class Bench:
    """A robot, its client and a watcher."""

    def __init__(self, **settings: Any) -> None:
        self.cell = kuka(**settings)
        self.client: Client = self.cell.connect(COMMAND)
        self.watcher: Client = self.cell.connect(TELEMETRY)

    def connected(self) -> bool:
        return self.client.connected

    def say(self, *records: bytes) -> None:
        self.client.say(b"".join(records))

    def run(self, *records: bytes) -> float:
        """Send records and wait for their completion; return the seconds."""
        begun = self.cell.now
        self.say(*records)
        self.cell.run_while_busy()
        return self.cell.now - begun

    def feedback(self) -> list[tuple[int, int]]:
        return feedback(self.client.received())

    def frames(self) -> list[TelemetryFrame]:
        return telemetry(self.watcher.received())

    def here(self) -> TelemetryFrame:
        """The telemetry now, or in the next frame."""
        self.watcher.received()
        self.cell.advance(0.2 if self.cell.now < 0.2 else 0.02)
        return self.frames()[-1]

    @property
    def status(self) -> Status:
        return part(self.cell, "kuka", KukaGcodeServer).status(self.cell.timed_cell.now)

    @property
    def messages(self) -> tuple[str, ...]:
        return self.status.messages
