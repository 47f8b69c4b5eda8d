"""Many messages at once: the same messages, in the same order, as one by one."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.wire.nats.bench import (
    TICK,
    RobotFace,
    RobotSession,
    client_of,
    packed,
    run,
    running,
    until,
)

from understudy.ports import CONFIRMED, WireMessage
from understudy.simulation.cell import Cell
from understudy.wire.exchange import InProcessCell
from understudy.wire.nats.link import SUBJECT

ROUNDS = 20
SIZES = (0, 1, 900, 70_000)


class ManySession(RobotSession):
    """`TakesMany`."""

    left: Sequence[WireMessage] = ()

    def take_many(self, room: int) -> Sequence[WireMessage]:
        """What can be packed is packed in every second tick."""
        found = self.left or list(iter(lambda: self.take(room), None))
        plain = (bool(each.reply_to) or not SUBJECT.fullmatch(each.address) for each in found)
        end = next((n for n, is_plain in enumerate(plain) if is_plain), len(found))
        face = self._face
        assert isinstance(face, ManyFace)
        if face.rounds % 2 or not end:
            self.left = ()
            return found
        self.left = found[end:]
        return packed(found[:end])


class ManyFace(RobotFace):
    """Sends a mixture of messages at every tick."""

    def open(self, peer: str, now: int) -> RobotSession:
        self.openings += 1
        self._sessions[peer] = ManySession(self, peer)
        return self._sessions[peer]

    def wake(self, now: int) -> None:
        super().wake(now)
        session = self._sessions.get("nats")
        if session is None or self.rounds == ROUNDS:
            return
        self.rounds += 1
        for n, size in enumerate(SIZES):
            mark = b"%d/%d " % (self.rounds, n)
            session.out.send(WireMessage(f"bench.r{n}.state", mark + b"\r\n" * (size // 2)))
            session.out.send(WireMessage("bench.r1.ümlaut", mark))
        session.out.send(WireMessage("bench.two words", b"this subject cannot be sent"))
        session.out.send(WireMessage("bench.r9.state", b"x" * 2_000_000))
        session.out.send(WireMessage("bench.last", b"%d" % self.rounds))

    rounds = 0


def test_messages_are_whole_and_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        face = ManyFace(events=3 * ROUNDS, per_tick=3)
        heard: list[tuple[str, bytes]] = []

        async def hear(message: object) -> None:
            heard.append((message.subject, message.data))  # type: ignore[attr-defined]

        async with running(face, rate=0.0) as bench, client_of(bench.address) as client:
            await client.subscribe("bench.>", cb=hear)
            await client.flush()
            bench.cell.clock_state.set_rate(1.0)
            await until(lambda: len(heard) >= ROUNDS * (2 * len(SIZES) + 1))
            await until(lambda: face.confirmed == 3 * ROUNDS)
            await asyncio.sleep(0)
        expected = [
            each
            for number in range(1, ROUNDS + 1)
            for each in [
                *(
                    each
                    for n, size in enumerate(SIZES)
                    for each in (
                        (f"bench.r{n}.state", b"%d/%d " % (number, n) + b"\r\n" * (size // 2)),
                        ("bench.r1.ümlaut", b"%d/%d " % (number, n)),
                    )
                ),
                ("bench.last", b"%d" % number),
            ]
        ]
        assert heard == expected

    run(test())
    assert "bench.r9.state" in caplog.text, "a message that is too large is named"


# ── received messages ──


class CountingFace(RobotFace):
    """Counts how often the exchange asks for answers: at least once in each of its turns."""

    turns = 0

    def ready_peers(self) -> list[str]:
        self.turns += 1
        return super().ready_peers()


def turns_for(confirmations: int) -> int:
    """Turns of the exchange for confirmations that have arrived together."""
    face = CountingFace()
    cell = InProcessCell(Cell("bench", digest="", components={"robot": face}, faces={"nats": face}))
    client = cell.connect("nats", "nats")
    for _ in range(confirmations):
        face.put(b"event")
    cell.advance(0.01)
    sent = [message for message in client.messages() if message.reply_to]
    assert len(sent) == confirmations
    turns = face.turns
    client.say_many([WireMessage(CONFIRMED, b"", message.reply_to) for message in sent])
    assert face.confirmed == confirmations
    assert not len(face.outbox)
    return face.turns - turns


def test_confirmations_that_arrive_together_cost_one_turn() -> None:
    assert turns_for(200) == turns_for(1)


def test_confirmations_of_a_server_are_handled_together() -> None:
    """The number of turns is far below that of the confirmations and commands."""
    events, commands = 2000, 400

    async def test() -> None:
        face = CountingFace(events=events, per_tick=events)
        face.credit = 1000
        async with running(face, rate=0.0) as bench, client_of(bench.address) as client:
            for n in range(commands):
                await client.publish(f"robot.r{n}.command.request", b"command %d" % n)
            await client.flush()
            bench.cell.clock_state.set_rate(1.0)
            await until(lambda: len(face.received) == commands and len(face.put_ids) >= events)
            await until(lambda: not len(face.outbox))
        assert [m.payload for m in face.received] == [b"command %d" % n for n in range(commands)]
        ticks = bench.cell.now // TICK
        assert face.turns < 4 * ticks + (len(face.put_ids) + commands) / 2

    run(test())
