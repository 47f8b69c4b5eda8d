"""Same bytes in, same bytes out: packets, read sizes and moments of arrival change no answer and no
simulated time of an answer, in process and at `--rate step`."""

import asyncio
import socket
from functools import cache
from random import Random
from typing import Any

import pytest
from tests.robots.kuka.kuka_wire import command
from tests.wire.streams import FACES, Cuts, ShippedFace, packets, random_cuts

from understudy.agenda import ClockState
from understudy.app.build import build_cell
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.ports import UNLIMITED, Snapshot
from understudy.simulation.cell import Cell
from understudy.wire.connection import Event
from understudy.wire.exchange import Exchange, InProcessCell
from understudy.wire.pump import Pump

POLL_STEP = 10_000_000
PATIENCE = 60.0

FEW, MANY = 4, 200
every_face = pytest.mark.parametrize("name", FACES)
streams = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])


@cache
def at_start(cell: str) -> tuple[Cell, Snapshot]:
    """A cell and its first snapshot: a new cell costs more than a restore."""
    built = build_cell(load_config(cell, seed=5))
    return built, built.snapshot()


def new_cell(name: str) -> Cell:
    built, start = at_start(name)
    built.restore(start)
    return built


def answers(events: list[Event]) -> list[tuple[int, bytes]]:
    """Everything that was sent, with its simulated time."""
    return [(event.at, event.data) for event in events if event.kind == "<"]


# ── in process ──

Script = list[tuple[bytes, float]]


def talk(face: ShippedFace, script: Script, cut: Cuts) -> list[tuple[int, bytes]]:
    """Sends each part of the script in packets, then lets its time pass."""
    cell = InProcessCell(new_cell(face.cell))
    client = cell.connect(face.endpoint)
    for stream, seconds in script:
        for packet, _ in packets(stream, cut):
            client.say(packet)
        cell.advance(seconds)
    cell.advance(2.0)
    return answers(cell.transcript)


@every_face
@streams
def test_in_process_packets_change_no_answer(name: str, count: int) -> None:
    face = FACES[name]
    for seed in range(count):
        chance = Random(seed)
        script = [(face.stream(chance), chance.uniform(0.0, 0.3)) for _ in range(2)]
        whole = talk(face, script, [])
        assert talk(face, script, random_cuts(chance)) == whole, seed
        assert talk(face, script, [(1, 0)] * 4000) == whole, seed


# ── in lock step ──


class Line:
    """`Sink` that takes everything."""

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes) -> None:
        return None

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def stream_in_step(face: ShippedFace, stream: bytes, cut: Cuts) -> list[Any]:
    """Sends the stream in packets, between which the event loop turns; returns the answers with
    their times, and the time at the end."""
    events: list[Event] = []
    exchange = Exchange(new_cell(face.cell), notes=[events.append])
    pump = Pump(exchange, ClockState("step"), poll_step=POLL_STEP)
    connection = pump.open(face.endpoint, Line())
    for packet, turn in packets(stream, cut):
        pump.receive(connection, packet)
        await turns(turn)
    for _ in range(100_000):
        if not (exchange.owed() or exchange.polled()):
            break
        await asyncio.sleep(0)
    assert not connection.state.unheard or connection.session.credit() == 0
    pump.stop()
    return [*answers(events), exchange.timed_cell.now]


@every_face
@streams
def test_in_step_packets_and_moments_of_arrival_change_no_answer(name: str, count: int) -> None:
    face = FACES[name]
    for seed in range(count):
        chance = Random(seed)
        stream = face.stream(chance)
        whole = asyncio.run(stream_in_step(face, stream, []))
        for _ in range(3):
            cut = asyncio.run(stream_in_step(face, stream, random_cuts(chance)))
            assert cut == whole, seed


# ── over TCP ──


def over_tcp(face: ShippedFace, stream: bytes, cut: Cuts) -> tuple[bytes, float]:
    """All bytes that the cell sends, and its time at the end. Between two packets the cell is asked
    for its time as often as the packet says, so that its event loop turns."""
    with (
        StandIn(face.cell, seed=5, rules=True, rate="step") as robot,
        socket.create_connection(robot.address(face.endpoint), PATIENCE) as line,
    ):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for packet, turn in packets(stream, cut):
            line.sendall(packet)
            for _ in range(turn):
                assert robot.now >= 0.0
        line.shutdown(socket.SHUT_WR)
        data = b""
        while piece := line.recv(1 << 16):
            data += piece
        return data, robot.now


STREAMS = {
    "text": b"HOME\nGET_POS\nMOVE_REL 1,2,3\nGET_STATUS\nSTOP\nMOVE_REL 1,1,1\nRESET\n"
    b"MOVE_ABS 5,6,7,0,0,0\nGET_POS\n",
    "kuka": b"".join(command(n, X=20 * (n % 3), F=100) for n in range(1, 9)),
    "grblhal": b"".join(b"G1 X%d ?F600\n?" % (n % 7) for n in range(60))
    + b"?" * 100
    + b"G4 P0.5\n"
    + b"?" * 20
    + b"!?~?M0\n?~?G1 X0\n?",
    "grblhal arm": b"G21 G90\n?" + b"".join(b"G1 A%d ?F600\n?" % (n % 7) for n in range(20)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_over_tcp_packets_and_delays_change_no_byte(name: str) -> None:
    face, stream = FACES[name], STREAMS[name]
    whole = over_tcp(face, stream, [])
    assert len(whole[0]) > 100
    for size, turn in [(1, 0), (7, 1), (48, 2)]:
        assert over_tcp(face, stream, [(size, turn)] * (len(stream) // size)) == whole
