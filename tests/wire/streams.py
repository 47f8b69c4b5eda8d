"""Byte streams of clients that send without waiting, for every shipped face, and ways to cut them.

Whole requests, real-time bytes in the middle of lines, half requests and garbage. `FACES` names for
each face its cell, its endpoint and the function that makes a stream.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.robots.grblhal.face.test_fuzz import FLUSHING, HARMLESS, HOLDING, LINES, sprinkled
from tests.robots.kuka.kuka_wire import command

Cuts = list[tuple[int, int]]
"""Packet sizes, each with the number of turns of the event loop after the packet."""


def random_cuts(chance: Random) -> Cuts:
    sizes = chance.choice([(1,), (1, 2, 3), (7, 16), (48,), (1, 64, 200)])
    return [(chance.choice(sizes), chance.choice((0, 0, 1, 2, 5))) for _ in range(400)]


def packets(stream: bytes, cuts: Cuts) -> Iterator[tuple[bytes, int]]:
    """The stream in packets; the last one is what remains."""
    edges = [0, *itertools.accumulate(size for size, _ in cuts)]
    for (start, end), (_, turns) in zip(itertools.pairwise(edges), cuts, strict=True):
        if stream[start:end]:
            yield stream[start:end], turns
    if stream[edges[-1] :]:
        yield stream[edges[-1] :], 0


# ── the faces ──

TEXT = [
    "GET_POS", "GET_STATUS", "MOVE_REL 1,2,3", "MOVE_REL 40,0,0", "HOME", "STOP", "RESET",
    "MOVE_ABS 5,6,7,0,0,0", "MOVE_ABS 5,6", "BOGUS", "", "get_pos\r", "x" * 200,
]  # fmt: skip
MODBUS = [
    "0910 03E8 0003 06 0000 0000 0000", "0910 03E8 0003 06 0100 0000 0000", "0903 07D0 0003",
    "0910 03E8 0003 06 0900 00FF FFFF", "0904 07D0 0001", "0803 07D0 0001", "0906 03E8 0100",
    "0917 07D0 0003 03E8 0001 02 0900", "0903 0000 0001", "0966 00", "0903",
]  # fmt: skip
GRIPPER = str(Path(__file__).parents[1] / "golden/gripper/robotiq.yaml")
ARM = ["G21 G90", "G0 A5", "G0 A-5 B3", "G1 A2 F900", "M62 P1", "G4 P0.1", "$J=G91 A2 F900"]


def text(chance: Random) -> bytes:
    return lines(TEXT, chance, 12) + chance.choice((b"", b"GET_"))


def grblhal(chance: Random) -> bytes:
    return with_bytes(lines(LINES, chance, 14), HARMLESS + HOLDING + FLUSHING, chance, 20)


def streamed(chance: Random) -> bytes:
    """More moves than the planner holds."""
    moves = [f"G1 X{chance.randrange(9)} F{chance.randrange(600, 6000)}" for _ in range(130)]
    text = "".join(line + "\n" for line in ["G21 G90", *moves]).encode()
    return with_bytes(text, b"?????!~\x90\x91\x87", chance, 40)


def arm(chance: Random) -> bytes:
    return with_bytes(lines(ARM, chance, 10), b"???!~\x90\x91\x85\x87", chance, 15)


def kuka(chance: Random) -> bytes:
    records = [
        command(n, X=chance.randrange(-50, 50), Y=chance.randrange(-50, 50), F=100)
        for n in range(1, 7)
    ]
    records += [command(chance.randrange(9), chance.randrange(-1, 9)), chance.randbytes(48)]
    chance.shuffle(records)
    return b"".join(records) + chance.randbytes(chance.randrange(40))


def gripper(chance: Random) -> bytes:
    """Modbus TCP: good requests, other units, unknown functions, wrong lengths, half a request."""
    requests = [bytes.fromhex(each) for each in MODBUS]
    garbage = bytes([9]) + chance.randbytes(chance.randrange(1, 12))
    said = [*chance.choices(requests, k=14), garbage]
    frames = [
        number.to_bytes(2, "big") + b"\0\0" + len(each).to_bytes(2, "big") + each
        for number, each in enumerate(said)
    ]
    return b"".join(frames) + frames[0][: chance.randrange(8)]


def lines(said: list[str] | tuple[str, ...], chance: Random, count: int) -> bytes:
    ends = chance.choice((b"\n", b"\r\n"))
    return b"".join(chance.choice(said).encode("latin-1") + ends for _ in range(count))


def with_bytes(text: bytes, command_bytes: bytes, chance: Random, count: int) -> bytes:
    places = [(chance.randrange(len(text)), chance.randrange(500)) for _ in range(count)]
    return sprinkled(text, places, command_bytes)


class ShippedFace(NamedTuple):
    cell: str
    endpoint: str
    stream: Callable[[Random], bytes]


FACES = {
    "gripper": ShippedFace(GRIPPER, "g60.gripper.tcp", gripper),
    "text": ShippedFace("text_robot", "bench.text_tcp", text),
    "kuka": ShippedFace("kuka_eki", "kuka.kuka_eki.command", kuka),
    "grblhal": ShippedFace("grblhal_6axis", "machine.grblhal", grblhal),
    "grblhal streamed": ShippedFace("grblhal_6axis", "machine.grblhal", streamed),
    "grblhal arm": ShippedFace("default", "g60.grblhal", arm),
}
