"""What others can do to a NATS server and its streams while cells run, and what must hold then:
nothing that was confirmed is lost, all else arrives later, and the log says what is wrong."""

import asyncio
import os
import resource
import signal
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from nats.errors import MaxPayloadError, NoRespondersError
from nats.js.errors import APIError
from tests.wire.nats.bench import (
    OWN,
    RobotFace,
    client_of,
    eventually,
    run,
    running,
    stored,
    until,
)
from tests.wire.nats.given import given_server
from tests.wire.nats.test_given_server import settings

from understudy.wire.nats import Config

COMMAND = "robot.r1.command.request"


# ── streams ─────────────────────────────────────────────────────────────────────────────────────


def test_streams_that_are_deleted_while_the_cell_runs_are_made_again() -> None:
    async def test() -> None:
        face = RobotFace(events=400, per_tick=1)
        async with running(face, OWN) as bench, client_of(bench.address) as client:
            js = client.jetstream()
            for name in ("ROBOT_IN", "ROBOT_OUT", "ROBOT_IN"):
                already = len(face.put_ids)
                await js.delete_stream(name)
                await until(lambda n=already: face.confirmed > n and bench.is_connected())  # type: ignore[misc]

                async def is_there(name: str = name) -> bool:
                    try:
                        return bool((await js.stream_info(name)).config.name == name)
                    except APIError:
                        return False

                await eventually(is_there)
            await js.publish(COMMAND, b"go")
            await until(lambda: len(face.received) == 1)
            await until(lambda: not face.busy() and not face.outbox)

    run(test())


def test_purged_streams_go_on() -> None:
    async def test() -> None:
        face = RobotFace(events=300, per_tick=1)
        async with running(face, OWN) as bench, client_of(bench.address) as client:
            js = client.jetstream()
            for _ in range(5):
                before = face.confirmed
                await js.purge_stream("ROBOT_IN")
                await js.purge_stream("ROBOT_OUT")
                await js.publish(COMMAND, b"go")
                await until(lambda n=before: face.confirmed > n + 10)  # type: ignore[misc]
            await until(lambda: len(face.received) == 5 and not face.busy() and not face.outbox)
            assert face.openings == 1

    run(test())


def test_events_wait_while_a_stream_lacks_their_subject(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        face = RobotFace(events=200, per_tick=1)
        async with running(face, OWN) as bench, client_of(bench.address) as client:
            js = client.jetstream()
            await until(lambda: face.confirmed > 10)
            config = (await js.stream_info("ROBOT_IN")).config
            subjects = config.subjects or []
            await js.update_stream(
                config.evolve(subjects=[each for each in subjects if "events" not in each])
            )
            await until(lambda: "it has no subject robot.*.events" in caplog.text)
            confirmed = face.confirmed
            await until(lambda: not face.busy())
            assert face.confirmed == confirmed
            await js.update_stream(config)
            await until(lambda: not face.outbox)
            found = await stored(client, "robot.r1.events")
            assert Counter(each.headers["Nats-Msg-Id"] for each in found) == Counter(face.put_ids)

    run(test())


# ── storage ─────────────────────────────────────────────────────────────────────────────────────


async def is_accepted(publication: Awaitable[Any]) -> bool:
    try:
        await publication
    except APIError:
        return False
    return True


def test_events_wait_while_another_user_fills_the_store(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        face = RobotFace(events=300, per_tick=1)
        config = Config(port=0, max_file_mb=16, answer_timeout_s=30.0, connect_timeout_s=30.0)
        async with running(face, config) as bench, client_of(bench.address) as client:
            js = client.jetstream()
            await js.add_stream(name="GREEDY", subjects=["greedy"])
            while await is_accepted(js.publish("greedy", bytes(1 << 19))):
                pass
            confirmed = face.confirmed
            await until(lambda: not face.busy())
            assert face.confirmed == confirmed
            await js.delete_stream("GREEDY")
            await until(lambda: not face.outbox)
            found = await stored(client, "robot.r1.events")
            assert Counter(each.headers["Nats-Msg-Id"] for each in found) == Counter(face.put_ids)
            assert face.openings == 1

    run(test())
    assert caplog.text.count("insufficient resources") == 1


def test_events_wait_while_the_disk_of_the_server_is_full(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After a write error the server stores nothing until it starts again."""

    async def test() -> None:
        face = RobotFace(events=300, per_tick=1)
        config = Config(port=0, answer_timeout_s=2.0, connect_timeout_s=30.0)
        async with running(face, config) as bench, client_of(bench.address) as client:
            await until(lambda: face.confirmed > 10)
            first, size = bench.server_pid, resource.RLIMIT_FSIZE
            before = resource.prlimit(first, size)
            resource.prlimit(first, size, (1, before[1]))
            await until(lambda: not face.busy() and bench.server_pid not in (0, first))
            await until(lambda: not face.outbox)
            found = await stored(client, "robot.r1.events")
            assert Counter(each.headers["Nats-Msg-Id"] for each in found) == Counter(face.put_ids)

    run(test())
    assert "it stores nothing: its disk may be full" in caplog.text


# ── a server that is frozen ─────────────────────────────────────────────────────────────────────


async def freeze(folder: Path, seconds: float, answer_timeout: float) -> None:
    """Stops the server while commands and events flow: afterwards all have arrived, the events
    once. The cell notices that the server does not answer, and that it answers again."""
    face = RobotFace(events=round(100 * seconds) + 200, per_tick=1)
    async with given_server(folder) as server, client_of(server.address) as client:
        config = settings(server, answer_timeout_s=answer_timeout, connect_timeout_s=answer_timeout)
        async with running(face, config) as bench:
            js = client.jetstream(timeout=120.0)
            await js.publish(COMMAND, b"before")
            await until(lambda: face.confirmed > 10)
            os.kill(server.pid, signal.SIGSTOP)
            clock = asyncio.get_running_loop().time
            end = clock() + seconds
            during = asyncio.create_task(js.publish(COMMAND, b"during"))
            await until(lambda: not bench.is_connected() and clock() >= end)
            os.kill(server.pid, signal.SIGCONT)
            await during
            await until(lambda: {each.payload for each in face.received} == {b"before", b"during"})
            await until(lambda: not face.busy() and not face.outbox)
            found = await stored(client, "robot.r1.events")
            assert Counter(each.headers["Nats-Msg-Id"] for each in found) == Counter(face.put_ids)


def test_a_server_that_is_frozen_loses_nothing(tmp_path: Path) -> None:
    run(freeze(tmp_path, 1.0, 1.0))


@pytest.mark.soak
def test_a_server_that_is_frozen_for_a_minute_loses_nothing(tmp_path: Path) -> None:
    run(freeze(tmp_path, 60.0, 5.0), patience=300.0)


# ── one robot in two processes ──────────────────────────────────────────────────────────────────


def test_two_cells_with_one_robot_are_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with (
            given_server(tmp_path) as server,
            running(RobotFace(), settings(server, durable="understudy-one")),
            client_of(server.address) as client,
        ):
            js = client.jetstream()

            async def takes() -> bool:
                return bool((await js.consumer_info("ROBOT_OUT", "understudy-one")).num_waiting)

            await eventually(takes)
            async with running(RobotFace(), settings(server, durable="understudy-two")):
                text = "another process (consumer understudy-one) also carries out"
                await until(lambda: caplog.text.count(text) == 1)

    run(test())


def test_of_two_cells_with_one_consumer_one_carries_out_each_command(tmp_path: Path) -> None:
    async def test() -> None:
        one, two = RobotFace(), RobotFace()
        async with (
            given_server(tmp_path) as server,
            running(one, settings(server)),
            running(two, settings(server)),
            client_of(server.address) as client,
        ):
            js = client.jetstream()
            sent = {b"%d" % number for number in range(200)}
            for each in sent:
                await js.publish(COMMAND, each)
            await until(lambda: len(one.received) + len(two.received) >= len(sent))
            found = Counter(each.payload for face in (one, two) for each in face.received)
            assert found == Counter(sent)

    run(test())


# ── other users of the machine ──────────────────────────────────────────────────────────────────


def test_another_client_cannot_command_the_server_itself() -> None:
    """Its system account has no users: nobody can read, reload or end the server."""

    async def test() -> None:
        async with running(RobotFace(), OWN) as bench, client_of(bench.address) as client:
            server = client._server_info["server_id"]
            for subject in (
                "$SYS.REQ.SERVER.PING",
                "$SYS.REQ.SERVER.PING.VARZ",
                f"$SYS.REQ.SERVER.{server}.RELOAD",
                f"$SYS.REQ.SERVER.{server}.KICK",
                f"$SYS.REQ.SERVER.{server}.LDM",
            ):
                with pytest.raises(NoRespondersError):
                    await client.request(subject, b"{}", timeout=30.0)
            with pytest.raises(MaxPayloadError):
                await client.publish("anything", bytes((1 << 20) + 1))
            assert bench.is_connected()

    run(test())
