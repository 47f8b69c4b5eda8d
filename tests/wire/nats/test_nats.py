"""The NATS wire against the real server, seen by an independent client."""

import asyncio
import os
import signal
from collections import Counter
from typing import Any

import pytest
from tests.wire.nats.bench import RobotFace, client_of, eventually, run, running, stored, until

from understudy.ports import WireMessage
from understudy.wire.nats import link


def test_messages_go_both_ways() -> None:
    async def test() -> None:
        face = RobotFace(events=20, states_per_tick=1)
        async with running(face) as bench, client_of(bench.address) as client:
            assert bench.is_connected()
            js = client.jetstream()
            await js.publish("robot.r1.command.request", b"go")
            # the event about the command may be the 21st
            await until(lambda: len(face.received) == 1 and len(face.put_ids) >= 20)
            await until(lambda: face.confirmed == len(face.put_ids))
            assert face.received[0].address == "robot.r1.command.request"
            assert face.received[0].payload == b"go"
            found = await stored(client, "robot.r1.events")
            assert [each.headers["Nats-Msg-Id"] for each in found] == face.put_ids
            assert b"handled go" in [each.data for each in found]
            assert len(await stored(client, "robot.r1.state")) > 0

            async def acknowledged() -> bool:
                info = await js.consumer_info("ROBOT_OUT", "understudy")
                return (info.num_ack_pending, info.num_pending) == (0, 0)

            await eventually(acknowledged)

    run(test())


async def kills(events: int, times: int, per_tick: int) -> None:
    """Kills the server while events are sent: each is put, stored and consumed once."""
    face = RobotFace(events=events, per_tick=per_tick)
    async with running(face) as bench, client_of(bench.address) as client:
        for number in range(times):
            await until(lambda n=number: face.confirmed >= events * (n + 1) // (times + 1))  # type: ignore[misc]
            killed = bench.server_pid
            os.kill(killed, signal.SIGKILL)
            await until(lambda n=killed: bench.server_pid not in (0, n) and bench.is_connected())  # type: ignore[misc]
        await until(lambda: len(face.put_ids) == events and len(face.outbox) == 0)
        assert face.outbox.given_up == 0
        assert (face.openings, face.closings) == (times + 1, times)
        assert bench.server.own_server is not None
        assert bench.server.own_server.restarts == times
        found = Counter(
            [each.headers["Nats-Msg-Id"] for each in await stored(client, "robot.r1.events")]
        )
        assert found == Counter(face.put_ids)
        assert len(found) == events


def test_a_server_that_is_killed_loses_no_event() -> None:
    run(kills(500, 2, per_tick=5))


@pytest.mark.soak
def test_a_server_that_is_killed_twenty_times_loses_no_event() -> None:
    run(kills(10_000, 20, per_tick=20), patience=300.0)


def test_a_process_that_was_busy_does_not_take_the_server_for_lost() -> None:
    """The clock jumps, as if the event loop had not run: nothing that has come is read yet."""

    async def test() -> None:
        face = RobotFace(events=10)
        async with running(face) as bench:
            await until(lambda: face.confirmed == 10)
            loop = asyncio.get_running_loop()
            clock = loop.time
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loop, "time", lambda: clock() + 2.2 * link.PULL_SECONDS)
                for _ in range(20):
                    await asyncio.sleep(0.01)
                assert bench.is_connected()
                assert (face.openings, face.closings) == (1, 0)

    run(test())


def test_steady_messages_arrive_as_they_were_sent(caplog: pytest.LogCaptureFixture) -> None:
    """Subjects that come again are not checked again; sizes are."""
    sizes = [0, 1, 99, 1000, 2 << 20, 100_000, 7]
    payloads = [bytes([65 + number]) * size for number, size in enumerate(sizes)]

    async def test() -> None:
        face = RobotFace()
        got: list[tuple[str, bytes, str, object]] = []
        async with running(face) as bench, client_of(bench.address) as client:

            async def hear(message: Any) -> None:
                got.append((message.subject, message.data, message.reply, message.headers))

            await client.subscribe("robot.*.state", cb=hear)
            await client.flush()
            await until(bench.is_connected)
            session = face.sessions_by_peer["nats"]
            for payload in payloads:
                for robot in ("r1", "r2"):
                    session.out.send(WireMessage(f"robot.{robot}.state", payload))
            session.out.send(WireMessage("robot.r 1.state", b"a blank"))
            session.out.send(WireMessage("robot.r1.state", b"the last"))
            await until(lambda: bool(got) and got[-1][1] == b"the last")
        sent = [
            (f"robot.{robot}.state", payload, "", None)
            for payload in payloads if len(payload) <= 1 << 20 for robot in ("r1", "r2")
        ]  # fmt: skip
        assert got == [*sent, ("robot.r1.state", b"the last", "", None)]

    run(test())
    assert "a message to 'robot.r1.state' cannot be sent" in caplog.text
    assert "a message to 'robot.r 1.state' cannot be sent" in caplog.text
