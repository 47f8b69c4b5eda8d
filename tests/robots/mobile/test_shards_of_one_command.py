"""`run --shards`: the processes of a fleet start together, and end together."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import nats
import psutil
import pytest
from tests.robots.mobile.shard_processes import DEADLINE_SECONDS

from understudy.cli.shards import COMMAND, ROBOTS_OF_SHARD, ShardSpec, number_of_shards
from understudy.config import load_config
from understudy.config.limits import MOST_ROWS
from understudy.config.shards import Shard
from understudy.errors import ConfigError

ROBOTS, SHARDS = 7, 3


class Fleet:
    def __init__(self, folder: Path) -> None:
        self._ready = folder / "ready.json"
        words = ["run", "hall", "--robots", str(ROBOTS), "--shards", str(SHARDS), "--ephemeral"]
        self._log = open(folder / "log", "w+b")  # noqa: SIM115
        self.first = subprocess.Popen(
            [sys.executable, "-m", "understudy", *words, "--ready-file", str(self._ready)],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def ready(self) -> dict[str, Any]:
        """The ready file when all shards listen."""
        end = time.monotonic() + DEADLINE_SECONDS
        while not (found := self._read()) or found["starting"]:
            assert self.first.poll() is None, self.log
            assert time.monotonic() < end
            time.sleep(0.02)
        return found

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._ready.read_text()) if self._ready.exists() else {}
        return found

    def processes(self) -> list[psutil.Process]:
        """Those that the command has started, without itself: shards, server and guards."""
        return psutil.Process(self.first.pid).children(recursive=True)

    def shards(self) -> list[psutil.Process]:
        return [each for each in self.processes() if "understudy.cli.shards" in each.cmdline()]

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text()

    def close(self) -> None:
        for process in self.processes() if self.first.poll() is None else ():
            process.kill()
        self.first.kill()
        self.first.wait(DEADLINE_SECONDS)
        self._log.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path)
    yield found
    found.close()


def all_gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=DEADLINE_SECONDS)[1]


async def robots_heard(server: str) -> set[str]:
    """The robots whose state comes, until all have spoken."""
    client, heard = await nats.connect(server), set[str]()
    found = asyncio.Event()

    async def hear(message: Any) -> None:
        heard.add(message.subject.split(".")[1])
        if len(heard) == ROBOTS:
            found.set()

    await client.subscribe("robot.*.state", cb=hear)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await found.wait()
    await client.close()
    return heard


def test_one_command_runs_all_shards_and_ctrl_c_ends_them(fleet: Fleet) -> None:
    endpoints = fleet.ready()["endpoints"]
    assert {"nats", "shard-2", "shard-3"} <= set(endpoints)
    assert len(fleet.shards()) == SHARDS - 1
    heard = asyncio.run(robots_heard(endpoints["nats"]))
    assert heard == {f"robot-{number}" for number in range(1, ROBOTS + 1)}
    started = fleet.processes()
    fleet.first.send_signal(signal.SIGINT)
    assert fleet.first.wait(DEADLINE_SECONDS) == 0
    assert all_gone(started)
    assert "also carries out" not in fleet.log


def test_a_shard_that_ends_ends_the_run_with_an_error(fleet: Fleet) -> None:
    fleet.ready()
    started = fleet.processes()
    os.kill(fleet.shards()[0].pid, signal.SIGKILL)
    assert fleet.first.wait(DEADLINE_SECONDS) == 1
    assert all_gone(started)
    assert "of 3 has ended (killed by SIGKILL); the other shards end, too" in fleet.log


def test_no_shard_is_left_when_the_first_one_is_killed(fleet: Fleet) -> None:
    fleet.ready()
    shards = fleet.shards()
    fleet.first.kill()
    fleet.first.wait(DEADLINE_SECONDS)
    assert all_gone(shards)


def test_auto_takes_the_processors_that_the_robots_are_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("understudy.cli.shards._processors", lambda: 4)
    config = load_config("fleet")
    assert number_of_shards("auto", config, None) == 1
    assert number_of_shards("auto", config, 2 * ROBOTS_OF_SHARD) == 2
    assert number_of_shards("auto", config, 9 * ROBOTS_OF_SHARD) == 4
    assert number_of_shards("auto", config, 5 * MOST_ROWS + 1) == 6
    assert number_of_shards("3", config, None) == 3
    for wrong in ("0", "x", "-1", "1/2", "", "9" * 5000):
        with pytest.raises(ConfigError, match="--shards"):
            number_of_shards(wrong, config, None)


def test_every_shard_has_a_mobile_robot() -> None:
    config = load_config("fleet")
    assert number_of_shards("2", config, 2) == 2
    with pytest.raises(ConfigError, match="a number to 2: every shard has a mobile robot"):
        number_of_shards("3", config, 2)
    arms = load_config("two_arms")
    assert number_of_shards("1", arms, None) == 1
    with pytest.raises(ConfigError, match="a number to 1: "):
        number_of_shards("2", arms, None)


def test_a_shard_with_a_mistake_ends_while_the_first_one_runs() -> None:
    spec = ShardSpec("fleet", None, 2, Shard(3, 3), 1.0, {}, "", False, ".")
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(msgspec.json.encode(spec) + b"\n")
        process.stdin.flush()
        assert process.wait(DEADLINE_SECONDS) == 2
        assert process.stderr.read().startswith(b"shard 3 of 3: --shard: no robot")
