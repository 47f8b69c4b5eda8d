"""A server that is there already: down at start, lost meanwhile, with credentials, with streams of
its own, shared by two cells."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import RetentionPolicy
from tests.free_ports import free_port
from tests.wire.nats.bench import RobotFace, client_of, run, running, stored, until
from tests.wire.nats.given import GivenServer, given_server, jwt_users, make_user

from understudy.errors import ConfigError
from understudy.wire.nats import Config, Tls

CERTIFICATES = Path(__file__).parent / "certificates"
QUICK = {"reconnect_wait_s": 0.05, "connect_timeout_s": 30.0, "answer_timeout_s": 30.0}


def settings(server: GivenServer, **more: Any) -> Config:
    return Config(servers=(server.address,), **(QUICK | more))


def test_a_server_that_is_down_at_the_start_is_found_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        server = GivenServer(tmp_path, {})
        server.port = free_port()
        face = RobotFace(events=30, per_tick=1)
        try:
            async with running(face, settings(server)) as bench:
                assert bench.address == server.address
                assert not bench.is_connected()
                await until(lambda: len(face.put_ids) == 30)
                await server.start()
                await until(lambda: face.confirmed == 30)
                async with client_of(server.address) as client:
                    found = await stored(client, "robot.r1.events")
                assert [each.headers["Nats-Msg-Id"] for each in found] == face.put_ids
        finally:
            await server.stop()
        assert caplog.text.count("no connection to") == 1

    run(test())


def test_a_server_that_ends_is_found_again(tmp_path: Path) -> None:
    async def test() -> None:
        face = RobotFace()
        async with given_server(tmp_path) as server, running(face, settings(server)) as bench:
            await server.stop()
            await until(lambda: not bench.is_connected())
            await server.start()
            await until(bench.is_connected)
            assert (face.openings, face.closings) == (2, 1)

    run(test())


def test_a_server_that_hangs_is_noticed(tmp_path: Path) -> None:
    async def test() -> None:
        face = RobotFace()
        async with given_server(tmp_path) as server:
            config = settings(server, answer_timeout_s=0.3, ping_interval_s=0.1)
            async with running(face, config) as bench:
                os.kill(server.pid, signal.SIGSTOP)
                await until(lambda: not bench.is_connected())
                os.kill(server.pid, signal.SIGCONT)
                await until(bench.is_connected)

    run(test())


def test_of_several_servers_one_that_runs_is_used(tmp_path: Path) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server:
            down = f"nats://127.0.0.1:{free_port()}"
            config = Config(servers=(down, server.address), **QUICK)  # type: ignore[arg-type]
            async with running(RobotFace(), config) as bench:
                await until(bench.is_connected)

    run(test())


# ── credentials ─────────────────────────────────────────────────────────────────────────────────


def test_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A wrong one is named once, and tried again: the server may be told the right one."""

    async def test() -> None:
        secret = {"authorization": {"token": "right"}}
        async with given_server(tmp_path, **secret) as server:
            async with running(RobotFace(), settings(server, token="right")) as bench:
                assert bench.is_connected()
            face = RobotFace()
            async with running(face, settings(server, token="wrong")) as bench:
                assert not bench.is_connected()
                await server.stop()
                server.settings["authorization"] = {"token": "wrong"}
                await server.start()
                await until(bench.is_connected)

    run(test())
    assert "Authorization Violation" in caplog.text
    assert caplog.text.count("Authorization Violation") < 5
    assert "wrong" not in caplog.text


def test_an_nkey(tmp_path: Path) -> None:
    async def test() -> None:
        public, file = make_user(tmp_path)
        users = {"authorization": {"users": [{"nkey": public}]}}
        async with (
            given_server(tmp_path, **users) as server,
            running(RobotFace(), settings(server, nkey_file=str(file))) as bench,
            running(RobotFace(), settings(server)) as other,
        ):
            assert (bench.is_connected(), other.is_connected()) == (True, False)

    run(test())


def test_a_jwt(tmp_path: Path) -> None:
    async def test() -> None:
        users, file = jwt_users(tmp_path)
        face = RobotFace(events=3)
        async with (
            given_server(tmp_path, **users) as server,
            running(face, settings(server, creds_file=str(file))) as bench,
            running(RobotFace(), settings(server)) as other,
        ):
            assert (bench.is_connected(), other.is_connected()) == (True, False)
            await until(lambda: face.confirmed == 3)

    run(test())


def test_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = {f"{name}_file": str(CERTIFICATES / f"server.{end}")
             for name, end in (("cert", "pem"), ("key", "key"))}  # fmt: skip
    authority = Tls(ca_file=str(CERTIFICATES / "ca.pem"))

    async def test() -> None:
        async with given_server(tmp_path, tls=files) as server:
            face = RobotFace(events=3)
            async with running(face, settings(server, tls=authority)) as bench:
                assert bench.is_connected()
                await until(lambda: face.confirmed == 3)
            async with running(RobotFace(), settings(server, tls=Tls())) as bench:
                assert not bench.is_connected()

    run(test())
    assert "certificate verify failed" in caplog.text


def test_a_secret_is_not_sent_without_tls_where_tls_is_wanted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server:
            config = settings(server, tls=Tls(), token="a secret")
            async with running(RobotFace(), config) as bench:
                assert not bench.is_connected()

    run(test())
    assert "the server offers no TLS" in caplog.text


@pytest.mark.parametrize("key", ["creds_file", "nkey_file"])
def test_a_file_that_is_missing_is_named(key: str, tmp_path: Path) -> None:
    async def test() -> None:
        config = Config(servers=("nats://127.0.0.1:1",), **{key: str(tmp_path / "none")})  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=f"nats.{key}"):
            async with running(RobotFace(), config):
                pass

    run(test())


@pytest.mark.parametrize("key", ["creds_file", "nkey_file"])
def test_a_file_without_credentials_is_named(key: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("nothing of use\n")

    async def test() -> None:
        async with given_server(tmp_path) as server:
            with pytest.raises(
                ConfigError,
                match=f"the file has no credentials.*nats.{key}|nats.{key}.*no credentials",
            ):
                async with running(RobotFace(), settings(server, **{key: str(tmp_path / "bad")})):
                    pass

    run(test())


# ── streams ─────────────────────────────────────────────────────────────────────────────────────

IN = [f"robot.*.{name}" for name in ("heartbeat", "state")]


@pytest.mark.parametrize(
    ("stream", "keys", "problem"),
    [
        ({"subjects": IN}, {}, r"stream ROBOT_IN: it has no subject robot\.\*\.telemetry, "),
        (
            {"subjects": ["robot.*.>"], "duplicate_window": 5},
            {},
            "duplicate_window is 5 s, needed are 600 s",
        ),
        (
            {
                "subjects": ["robot.*.>"],
                "duplicate_window": 600,
                "retention": RetentionPolicy.WORK_QUEUE,
            },
            {},
            "retention is workqueue, needed is limits",
        ),
        (
            {"subjects": ["robot.*.>"], "duplicate_window": 600, "max_age": 1000},
            {"max_age_s": 700},
            "max_age is 1000 s, the cell file says 700 s",
        ),
        (
            {"subjects": ["robot.*.>"], "duplicate_window": 600, "max_bytes": 1000},
            {"max_mb": 1},
            "max_bytes is 1000, the cell file says 1048576",
        ),
        ({"subjects": ["robot.*.>"], "duplicate_window": 600}, {}, "ROBOT_OUT cannot be made"),
        ({"subjects": ["robot.*.>"], "name": "OTHER"}, {}, "ROBOT_IN cannot be made: .*overlap"),
    ],
)
def test_a_stream_that_differs_is_named_and_not_changed(
    stream: dict[str, Any], keys: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server, client_of(server.address) as client:
            js = client.jetstream()
            before = await js.add_stream(**({"name": "ROBOT_IN"} | stream))
            with pytest.raises(ConfigError, match=problem):
                async with running(RobotFace(), settings(server, **keys)):
                    pass
            after = await js.stream_info(before.config.name or "")
            assert after.config == before.config

    run(test())


def test_a_stream_that_differs_after_a_reconnection_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        face = RobotFace()
        async with given_server(tmp_path) as server, running(face, settings(server)):
            async with client_of(server.address) as client:
                js = client.jetstream()
                await js.delete_stream("ROBOT_IN")
                await js.add_stream(name="ROBOT_IN", subjects=IN)
            await server.stop()
            await server.start()
            await until(lambda: face.openings == 2)

    run(test())
    assert "it has no subject robot.*.telemetry" in caplog.text


def test_streams_of_the_backend_are_used_as_they_are(tmp_path: Path) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server, client_of(server.address) as client:
            js = client.jetstream()
            wide: dict[str, Any] = {"duplicate_window": 900, "max_age": 5000}
            inward = ["robot.*.heartbeat", "robot.*.state", "robot.*.telemetry", "robot.*.events",
                      "robot.*.settings.reported", "robot.*.command.ack", "robot.*.task.progress",
                      "robot.*.task.done", "robot.*.task.failed", "robot.*.traffic.state",
                      "robot.*.route.request", "more.*"]  # fmt: skip
            await js.add_stream(name="FROM", subjects=inward, **wide)
            face = RobotFace(events=3)
            config = settings(server, stream_in="FROM", stream_out="TO")
            async with running(face, config):
                await until(lambda: face.confirmed == 3)
            assert (await js.stream_info("FROM")).config.max_age == 5000
            out = (await js.stream_info("TO")).config
            assert (out.max_consumers, out.duplicate_window, out.max_age) == (1000, 600, 86400)

    run(test())


def test_a_consumer_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    async def test() -> None:
        face = RobotFace()
        async with (
            given_server(tmp_path) as server,
            running(face, settings(server)) as bench,
            client_of(server.address) as client,
        ):
            js = client.jetstream()
            await js.delete_consumer("ROBOT_OUT", "understudy")
            await until(lambda: face.openings == 2 and bench.is_connected())
            await js.publish("robot.r1.command.request", b"go")
            await until(lambda: len(face.received) == 1)

    run(test())


def test_a_consumer_gets_the_addresses_of_the_face_that_runs_now(tmp_path: Path) -> None:
    class Other(RobotFace):
        def addresses(self) -> tuple[str, ...]:
            return ("robot.*.task.assign",)

    async def test() -> None:
        async with given_server(tmp_path) as server, client_of(server.address) as client:
            async with running(RobotFace(), settings(server)):
                pass
            face = Other()
            async with running(face, settings(server, max_ack_pending=7)):
                js = client.jetstream()
                await js.publish("robot.r1.command.request", b"not for it")
                await js.publish("robot.r1.task.assign", b"task")
                await until(lambda: len(face.received) == 1)
                assert face.received[0].payload == b"task"
                info = await js.consumer_info("ROBOT_OUT", "understudy")
                assert info.config.max_ack_pending == 7

    run(test())


@pytest.mark.parametrize(("deliver", "count"), [("new", 0), ("all", 1)])
def test_where_a_new_consumer_begins(deliver: str, count: int, tmp_path: Path) -> None:
    async def test() -> None:
        async with given_server(tmp_path) as server, client_of(server.address) as client:
            async with running(RobotFace(), settings(server, durable="first")):
                await client.jetstream().publish("robot.r1.command.request", b"old")
            face = RobotFace()
            async with running(face, settings(server, durable="second", deliver=deliver)):
                await client.jetstream().publish("robot.r1.command.request", b"new")
                await until(lambda: len(face.received) == count + 1)
                assert [m.payload for m in face.received] == [b"old", b"new"][1 - count :]

    run(test())


# ── two cells ───────────────────────────────────────────────────────────────────────────────────


def test_two_cells_share_a_server(tmp_path: Path) -> None:
    """Each has a consumer of its own and receives every message."""

    async def test() -> None:
        one, two = RobotFace(events=50), RobotFace(events=50)
        async with (
            given_server(tmp_path) as server,
            running(one, settings(server, durable="one")),
            running(two, settings(server, durable="two")),
            client_of(server.address) as client,
        ):
            await client.jetstream().publish("robot.r1.command.request", b"go")
            await until(lambda: len(one.received) == len(two.received) == 1)
            await until(lambda: all(not f.busy() and not f.outbox for f in (one, two)))
            found = await stored(client, "robot.r1.events")
            ids = [each.headers["Nats-Msg-Id"] for each in found]
            assert sorted(ids) == sorted(one.put_ids + two.put_ids)

    run(test())


def test_two_cells_with_one_consumer_are_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with (
            given_server(tmp_path) as server,
            running(RobotFace(), settings(server)),
            client_of(server.address) as client,
        ):
            js = client.jetstream()
            while not (await js.consumer_info("ROBOT_OUT", "understudy")).num_waiting:
                pass
            async with running(RobotFace(), settings(server)):
                pass

    run(test())
    assert "another process takes messages from the consumer understudy" in caplog.text
