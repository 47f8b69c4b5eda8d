"""Garbage from other clients of the server: subjects, payloads, replies, headers."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.wire.nats.bench import (
    RobotFace,
    client_of,
    eventually,
    has_stored,
    run,
    running,
    until,
)

from understudy.ports import UNLIMITED, WireMessage
from understudy.wire.nats.link import NatsLink
from understudy.wire.nats.server import MAX_PAYLOAD
from understudy.wire.nats.streams import covers

LAST = b"the last one"


class Raw:
    """A client that sends any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def publish(
        self, subject: bytes, payload: bytes, reply: bytes = b"", head: bytes = b""
    ) -> None:
        if head:
            size = b"%d %d" % (len(head), len(head) + len(payload))
            self._writer.write(b"HPUB %s %s %s\r\n%s%s\r\n" % (subject, reply, size, head, payload))
        else:
            self._writer.write(b"PUB %s %s %d\r\n%s\r\n" % (subject, reply, len(payload), payload))

    async def answered(self) -> None:
        self._writer.write(b"PING\r\n")
        while b"PONG" not in (line := await self._reader.readline()):
            assert line[:4] not in (b"", b"-ERR")


@contextlib.asynccontextmanager
async def raw_client(address: str) -> AsyncIterator[Raw]:
    host, port = address.removeprefix("nats://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"headers":true}\r\n')
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


def garbage(rng: random.Random, most: int) -> bytes:
    size = rng.choice((0, 1, 2, 10, 100, most, rng.randrange(most + 1)))
    return rng.randbytes(size)


def subject_of(rng: random.Random) -> bytes:
    """A token that the server accepts as part of a subject: any bytes but white space, . * >.

    The server gives a subject with the byte 127 to no consumer that has a filter.
    """
    forbidden = b" \t\r\n.*>\0\f\v\x7f"
    token = bytes(b for b in rng.randbytes(rng.randrange(1, 40)) if b not in forbidden)
    name = rng.choice((b"command.request", b"settings.desired"))
    return b"robot.%s.%s" % (token or b"x", name)


@pytest.mark.parametrize("seed", range(3))
def test_any_subject_and_payload_is_received_and_acknowledged(seed: int) -> None:
    """The connection stays, the last message arrives, and nothing is left at the server."""
    rng = random.Random(seed)

    async def test() -> None:
        face = RobotFace()
        async with running(face) as bench, raw_client(bench.address) as raw:
            for number in range(200):
                most = MAX_PAYLOAD if number % 50 == 0 else 2000
                raw.publish(subject_of(rng), garbage(rng, most))
            head = (
                b"NATS/1.0\r\nX: "
                + bytes(b for b in rng.randbytes(50) if b not in b"\r\n")
                + b"\r\n\r\n"
            )
            raw.publish(b"robot.r1.command.request", b"with a header", head=head)
            raw.publish(b"robot.r1.command.request", b"status", head=b"NATS/1.0 503\r\n\r\n")
            raw.publish(b"robot.r1.command.request", LAST)
            await raw.answered()
            await until(lambda: any(m.payload == LAST for m in face.received))
            assert len(face.received) == 203
            assert (face.openings, face.closings) == (1, 0)
            async with client_of(bench.address) as client:
                js = client.jetstream()
                while (await js.consumer_info("ROBOT_OUT", "understudy")).num_ack_pending:
                    pass

    run(test())


def test_garbage_at_the_inboxes_of_the_cell_does_no_harm() -> None:
    """Another client finds out the cell's reply addresses and writes to them."""
    rng = random.Random(7)

    async def test() -> None:
        face = RobotFace(events=200, per_tick=2)
        seen: set[str] = set()

        async def look(message: Any) -> None:
            seen.add(message.subject)

        async with (
            running(face) as bench,
            client_of(bench.address) as spy,
            raw_client(bench.address) as raw,
        ):
            await spy.subscribe("_INBOX.>", cb=look)
            await until(lambda: len(seen) > 5)
            for place in [*sorted(seen), *(each.rpartition(".")[0] for each in sorted(seen))]:
                for payload in (b"", b"{}", b"[]", b'{"stream": 5}', garbage(rng, 100)):
                    raw.publish(place.encode(), payload)
                    raw.publish(place.encode(), payload, head=b"NATS/1.0 408\r\n\r\n")
                raw.publish(place.encode() + b".9999999", b'{"stream": "ROBOT_IN", "seq": 1}')
            await raw.answered()
            await until(lambda: len(face.outbox) == 0 and not face.busy())
            raw.publish(b"robot.r1.command.request", LAST)
            await until(lambda: any(m.payload == LAST for m in face.received))

    run(test())


@pytest.mark.parametrize(
    ("address", "payload"),
    [
        ("", b"x"),
        ("robot r1", b"x"),
        ("robot.r1.events\r\nPUB evil 1\r\nx", b"x"),
        ("robot..events", b"x"),
        ("robot.r1.events", b"x" * (MAX_PAYLOAD + 1)),
        ("nobody.has.this", b"x"),
        ("robot.\udc80", b"x"),
    ],
)
def test_a_message_that_cannot_be_sent_is_named_and_does_not_stop_the_others(
    address: str, payload: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        face = RobotFace()
        async with running(face) as bench:
            session = face.sessions_by_peer["nats"]

            def send(now: int) -> None:
                for reply in ("", "id-1"):
                    session.out.send(WireMessage(address, payload, reply))
                face.events = 5

            bench.pump.act(send)
            await until(lambda: face.confirmed == 5)
            assert face.openings == 1

    run(test())
    assert caplog.records


def test_all_that_is_sent_has_left_before_there_is_unlimited_room() -> None:
    async def test() -> None:
        face = RobotFace()
        async with running(face) as bench:
            assert bench.server._connection is not None
            link = bench.server._connection.link
            assert isinstance(link, NatsLink)
            assert link.room() == UNLIMITED
            for _ in range(100):
                link.send(WireMessage("robot.r1.state", b"x" * 100_000))
            assert 0 < link.room() < UNLIMITED
            for _ in range(100):
                link.send(WireMessage("robot.r1.state", b"x" * 100_000))
            assert link.room() == 0
            assert link.behind()
            await until(lambda: link.room() == UNLIMITED)
            assert face.openings == 1
            # The server has read them; it stores what it has read a little later.
            async with client_of(bench.address) as client:
                await eventually(lambda: has_stored(client, 200))

    run(test())


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("robot.*.events", "robot.*.events", True),
        ("robot.>", "robot.*.events", True),
        (">", "robot.*.events", True),
        ("robot.*.*", "robot.*.events", True),
        ("robot.r1.events", "robot.*.events", False),
        ("robot.*", "robot.*.events", False),
        ("robot.*.events.>", "robot.*.events", False),
        ("robot.*.events", "robot.>", False),
    ],
)
def test_which_subjects_a_pattern_covers(pattern: str, subject: str, fits: bool) -> None:
    assert covers(pattern, subject) is fits
