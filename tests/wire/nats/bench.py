"""A cell with one message face on a NATS server, and an independent client of that server."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec
import nats
import numpy as np
from nats.aio.client import Client as NatsPy

from understudy.agenda import Rate
from understudy.ports import CONFIRMED, WireMessage
from understudy.ports.packed import BEGIN, END, PackedMessages
from understudy.protocol.sessions import MessageOutbox, ReadyPeers, SessionFace
from understudy.robots.mobile.runtime.outgoing import Entry, Outbox, SavedOutbox
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_MS
from understudy.wire.exchange import Exchange
from understudy.wire.nats import Config
from understudy.wire.nats.endpoint import NatsEndpoint
from understudy.wire.pump import Pump

PATIENCE = 60.0
OWN = Config(port=0, connect_timeout_s=30.0, answer_timeout_s=30.0)
"""An own server on a machine that may be busy with other things."""
TICK = 10 * NS_PER_MS
SUBJECT = "robot.r1.{}"


def run(test: Coroutine[Any, Any, None], patience: float = PATIENCE) -> None:
    """Runs a test on an event loop of its own, not for ever."""
    asyncio.run(asyncio.wait_for(test, patience))


async def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds; `run` bounds the time."""
    while not condition():  # noqa: ASYNC110 - many parts change it
        await asyncio.sleep(0.002)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 - the server changes it
        await asyncio.sleep(0.01)


def packed(messages: Sequence[WireMessage]) -> PackedMessages:
    """These messages in one piece of data."""
    data, bounds = b"", []
    for message in messages:
        begin = len(data)
        data += BEGIN + b"%b %d\r\n" % (message.address.encode(), len(message.payload))
        bounds.append((begin, len(data), len(data) + len(message.payload) + len(END)))
        data += message.payload + END
    return PackedMessages(data, np.array(bounds, dtype=np.int64))


class RobotSession:
    """Answers every request with an acknowledgement, after it has put an event."""

    def __init__(self, face: "RobotFace", peer: str) -> None:
        self._face, self._peer = face, peer
        self.out = MessageOutbox(lambda: face.ready.add(peer), most=100_000, most_bytes=1 << 30)

    def receive(self, message: WireMessage, now: int) -> None:
        if message.address == CONFIRMED:
            self._face.outbox.confirm(message.reply_to)
            self._face.confirmed += 1
            return
        self._face.received.append(message)
        self._face.put(b"handled " + message.payload[:100])
        if self._face.acknowledges:
            self.out.send(WireMessage(message.reply_to, b"+ACK"))

    def failed(self, message: WireMessage, now: int) -> None:
        raise AssertionError(message)

    def take(self, room: int) -> WireMessage | None:
        message = self.out.take(room)
        self._face.lacked_room |= message is None and len(self.out) > 0
        return message

    def closed(self, now: int) -> None:
        self._face.closings += 1
        self._face.dropped_state += len(self.out)
        self._face.outbox.connection_lost()
        self._face.sessions_by_peer.pop(self._peer, None)

    def credit(self) -> int:
        return self._face.credit

    def owed(self) -> bool:
        return False


class RobotFace(SessionFace[RobotSession]):
    """A message face on the outbox of mobile robots: ``events`` of them, some at every tick."""

    def __init__(self, events: int = 0, per_tick: int = 5, states_per_tick: int = 0) -> None:
        self.ready = ReadyPeers()
        self._sessions: dict[str, RobotSession] = {}
        self.outbox = Outbox()
        self.events, self._per_tick, self._states = events, per_tick, states_per_tick
        self.put_ids: list[str] = []
        self.received: list[WireMessage] = []
        self.confirmed = self.openings = self.closings = self.dropped_state = 0
        self.lacked_room = False
        self.acknowledges = True
        self.credit = 100
        self._ticks = 0
        self._run = uuid.uuid4()

    @property
    def sessions_by_peer(self) -> dict[str, RobotSession]:
        return self._sessions

    def open(self, peer: str, now: int) -> RobotSession:
        self.openings += 1
        self._sessions[peer] = RobotSession(self, peer)
        return self._sessions[peer]

    def addresses(self) -> tuple[str, ...]:
        return ("robot.*.command.request", "robot.*.settings.desired")

    def put(self, data: bytes) -> None:
        name = str(uuid.uuid5(self._run, str(len(self.put_ids))))
        self.put_ids.append(name)
        self.outbox.put(Entry(name, SUBJECT.format("events"), data))

    def busy(self) -> bool:
        return len(self.put_ids) < self.events

    def next_wake(self) -> int | None:
        return (self._ticks + 1) * TICK

    def wake(self, now: int) -> None:
        self._ticks = now // TICK
        for _ in range(min(self._per_tick, self.events - len(self.put_ids))):
            self.put(b"event %d" % len(self.put_ids))
        session = self._sessions.get("nats")
        if session is None:
            return
        for entry in self.outbox.take_due(now):
            session.out.send(WireMessage(entry.subject, entry.data, entry.message_id))
        for number in range(self._states):
            session.out.send(WireMessage(SUBJECT.format("state"), b"%d %d " % (now, number) * 500))

    def save(self) -> Any:
        return {"outbox": self.outbox.save(), "ticks": self._ticks}

    def load(self, state: Any) -> None:
        self.outbox.load(msgspec.convert(state["outbox"], SavedOutbox))
        self._ticks = state["ticks"]


class Bench:
    """A running cell."""

    def __init__(self, face: RobotFace, config: Config, *, rate: Rate, until: int | None) -> None:
        self.face = face
        cell = Cell("bench", digest="", components={"robot": face}, faces={"nats": face})
        cell.clock_state.set_rate(rate)
        self.cell = cell
        self.finished = asyncio.Event()
        self.pump = Pump(
            Exchange(cell), cell.clock_state, held=True, until=until, finished=self.finished.set
        )
        server = config.server("nats", self.pump)
        assert isinstance(server, NatsEndpoint)
        self.server = server
        self.address = ""

    @property
    def server_pid(self) -> int:
        assert self.server.own_server is not None
        return self.server.own_server.pid or 0

    def is_connected(self) -> bool:
        return bool(self.face.sessions_by_peer)


@contextlib.asynccontextmanager
async def running(
    face: RobotFace, config: Config | None = None, *, rate: Rate = 1.0, until: int | None = None
) -> AsyncIterator[Bench]:
    bench = Bench(face, config or OWN, rate=rate, until=until)
    bench.address = await bench.server.start()
    bench.pump.start()
    try:
        yield bench
    finally:
        bench.pump.stop()
        await bench.server.stop()


async def _quiet(problem: Exception) -> None:
    logging.getLogger(__name__).debug("client: %s", problem)


@contextlib.asynccontextmanager
async def client_of(address: str, **options: Any) -> AsyncIterator[NatsPy]:
    """An independent client, which connects again by itself."""
    options = {"max_reconnect_attempts": -1, "reconnect_time_wait": 0.05} | options
    client = await nats.connect(address, error_cb=_quiet, **options)
    try:
        yield client
    finally:
        await client.close()


async def has_stored(client: NatsPy, count: int, stream: str = "ROBOT_IN") -> bool:
    info = await client.jetstream().stream_info(stream)
    return bool(info.state.messages >= count)


async def stored(client: NatsPy, subject: str, stream: str = "ROBOT_IN") -> list[Any]:
    """All messages to a subject that the stream holds now, read by a consumer of its own."""
    js = client.jetstream()
    info = await js.stream_info(stream, subjects_filter=subject)
    count = sum((info.state.subjects or {}).values())
    reader = await js.subscribe(subject, stream=stream, ordered_consumer=True)
    found = [await reader.next_msg(timeout=PATIENCE) for _ in range(count)]
    await reader.unsubscribe()
    return found
