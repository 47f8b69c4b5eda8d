"""A server that has lost what it had confirmed: the cell notices it and sends its state again."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.wire.nats.bench import RobotFace, client_of, eventually, run, running, stored, until

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.ports import FORGOTTEN
from understudy.robots.mobile.face import FleetSession
from understudy.wire.nats import Config
from understudy.wire.nats.endpoint import NatsEndpoint
from understudy.wire.nats.streams import StreamMarks, StreamState

CONFIG = Config(
    port=0, connect_timeout_s=30.0, answer_timeout_s=30.0, ping_interval_s=0.2, deliver="all"
)


def test_marks_say_what_was_lost() -> None:
    marks = StreamMarks()
    marks.found("S", "monday", StreamState(3, 1, 3), 0)
    marks.confirmed("S", 9)
    marks.found("S", "monday", StreamState(8, 1, 8), 3)  # asked before message 9 was stored
    assert (marks.take(), marks.last("S")) == ([], 9)
    marks.found("S", "monday", StreamState(4, 1, 4), 9)
    assert marks.take() == ["stream S went back from message 9 to 4"]
    marks.found("S", "monday", StreamState(0, 5, 4), 4)
    assert marks.take() == ["stream S was emptied"]
    marks.found("S", "tuesday", StreamState(0, 0, 0), 4)
    assert marks.take() == ["stream S was made anew"]
    marks.missing("S")
    marks.found("S", "friday", StreamState(0, 0, 0), 0)
    assert marks.take() == ["stream S has vanished; it is made again"]


@pytest.mark.parametrize("what", ["delete", "purge", "gap"])
def test_a_stream_that_is_deleted_or_emptied(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is made again, and messages go on both ways; a gap in the sequence is no loss."""

    async def test() -> None:
        face = RobotFace(events=5)
        async with running(face, CONFIG) as bench, client_of(bench.address) as client:
            js = client.jetstream(timeout=30)
            await until(lambda: face.confirmed == 5)
            if what == "delete":
                await js.delete_stream("ROBOT_IN")
                await until(lambda: "ROBOT_IN has vanished" in caplog.text)
            elif what == "purge":
                await js.purge_stream("ROBOT_IN")
                await until(lambda: "ROBOT_IN was emptied" in caplog.text)
            else:
                await js.delete_msg("ROBOT_IN", 3)

            async def commanded() -> bool:
                await js.publish("robot.r1.command.request", b"go on")
                return any(each.payload == b"go on" for each in face.received)

            await eventually(commanded)
            await until(lambda: len(face.outbox) == 0)
            found = [each.data for each in await stored(client, "robot.r1.events")]
            assert b"handled go on" in found
            assert ("has lost what it had confirmed" in caplog.text) == (what != "gap")

    run(test())


def test_a_store_that_was_rolled_back_is_noticed_and_the_state_is_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a power cut: the store is as it was at the last sync. A command that comes again is
    not carried out again."""
    caplog.set_level("INFO", "understudy.wire.nats")
    store, saved = tmp_path / "store", tmp_path / "saved"
    (tmp_path / "cell.yaml").write_text(
        "robots: {robot-1: {kind: mobile, file: amr.json}}\n"
        f"nats: {{port: 0, store: {store}, answer_timeout_s: 30, connect_timeout_s: 30}}\n"
    )
    heard: list[bytes] = []
    receive = FleetSession.receive

    def listening(self: FleetSession, message: Any, now: int) -> None:
        if message.address == FORGOTTEN:
            heard.append(message.payload)
        receive(self, message, now)

    monkeypatch.setattr(FleetSession, "receive", listening)

    async def test() -> None:
        config = load_config(str(tmp_path / "cell.yaml"))
        live = Live(config, Options(ports={"control": 0}))
        await live.start()
        try:
            (endpoint,) = (each for each in live._servers if isinstance(each, NatsEndpoint))
            own = endpoint.own_server
            assert own is not None
            async with client_of(live.endpoints["nats"]) as client:
                js = client.jetstream(timeout=60)

                async def reported() -> bool:
                    return bool(await stored(client, "robot.robot-1.settings.reported"))

                await eventually(reported)
                assert own.pid is not None
                os.kill(own.pid, signal.SIGSTOP)
                shutil.copytree(store, saved)
                os.kill(own.pid, signal.SIGCONT)
                await js.publish("robot.robot-1.command.request", COMMAND)

                async def done() -> bool:
                    acks = await stored(client, "robot.robot-1.command.ack")
                    return [status_of(each) for each in acks][-1:] == ["DONE"]

                await eventually(done)
                before = own.restarts
                command = own._command

                def rolled_back(folder: Path) -> list[str]:
                    shutil.rmtree(store / "jetstream")
                    shutil.copytree(saved / "jetstream", store / "jetstream")
                    return command(folder)

                monkeypatch.setattr(own, "_command", rolled_back)
                own.kill()
                await until(lambda: own.restarts > before)
                await until(lambda: bool(heard))
                assert b"went back from message" in heard[0]
                await until(lambda: client.is_connected)

                async def twice() -> bool:
                    found = await stored(client, "robot.robot-1.settings.reported")
                    return len(found) >= 2

                await eventually(twice)
                await js.publish("robot.robot-1.command.request", COMMAND)
                await js.publish("robot.robot-1.command.request", OTHER)

                async def other_done() -> bool:
                    acks = await stored(client, "robot.robot-1.command.ack")
                    return any(OTHER_ID in each.data.decode() for each in acks)

                await eventually(other_done)
                acks = await stored(client, "robot.robot-1.command.ack")
                assert not any(FIRST_ID in each.data.decode() for each in acks)
        finally:
            await live.stop()

    run(test(), patience=120.0)
    assert "the whole state is sent again" in caplog.text
    assert "nats: durability: sync: interval; a power cut takes" in caplog.text


FIRST_ID, OTHER_ID = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def _command(message_id: str) -> bytes:
    body = {
        "messageId": message_id,
        "robotId": "robot-1",
        "payload": {"commandType": "SET_SPEED_LIMIT", "parameters": {"maxSpeedMps": 0.5}},
    }
    return json.dumps(body).encode()


COMMAND, OTHER = _command(FIRST_ID), _command(OTHER_ID)


def status_of(message: Any) -> str:
    return str(json.loads(message.data)["payload"]["status"])
