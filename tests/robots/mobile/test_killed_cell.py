"""A cell that is killed again and again while commands flow through a NATS server that stays: each
is driven once, and each has one end. The backend uses nats-py only; what was driven is written down
by the cell itself when it begins, since the server drops answers that come twice."""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import nats
import pytest
from tests.robots.mobile import witness_cell
from tests.wire.nats.bench import stored, until
from tests.wire.nats.given import GivenServer, given_server

ROBOTS = 10
WAITING = 8
"""Commands of a robot that have no end yet."""
RATE = "4"
DEADLINE_SECONDS = 240
"""A cell in a new clone compiles kernels at its start, on a machine that others use, too."""
ENDS = ("DONE", "FAILED", "REJECTED", "CANCELED")
DONE, INTERRUPTED = ("DONE", None), ("FAILED", "INTERRUPTED")
MOVES: tuple[dict[str, Any], ...] = (
    {
        "commandType": "MOVE_VELOCITY",
        "parameters": {"linear": 0.0, "angular": 1.0, "durationSeconds": 0.3},
    },
    {"commandType": "EXECUTE_ACTION", "parameters": {"motorId": "lift", "targetPosition": 0.01}},
    {"commandType": "EXECUTE_ACTION", "parameters": {"motorId": "lift", "targetPosition": 0.0}},
)


class KilledCell:
    """A cell in a process of its own."""

    def __init__(self, folder: Path, server: GivenServer) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        cell = {
            "nats": {"servers": [server.address], "ack_wait_s": 2},
            "robots": {"robot-1": {"kind": "mobile", "file": "amr.json"}},
        }
        (folder / "cell.yaml").write_text(json.dumps(cell))

    async def start(self) -> None:
        ready = self._folder / "ready.json"
        ready.unlink(missing_ok=True)
        words = ["run", "cell.yaml", "--robots", str(ROBOTS), "--rate", RATE, "--no-hmi"]
        words += ["--ephemeral", "--ready-file", "ready.json"]
        env = os.environ | {"XDG_RUNTIME_DIR": str(self._folder)}
        with (self._folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, witness_cell.__file__, "driven", *words),
                stdout=log,
                stderr=log,
                env=env,
                cwd=self._folder,
            )
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not ready.exists():
                assert self._process.returncode is None, (self._folder / "log").read_text()
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class Commands:
    """A backend that keeps every robot busy."""

    def __init__(self, client: Any, count: int) -> None:
        self._client = client
        self._count = count
        self.robot_of: dict[str, str] = {}
        self._open: dict[str, set[str]] = {f"robot-{n}": set() for n in range(1, ROBOTS + 1)}

    async def flow(self) -> None:
        await self._client.subscribe("robot.*.command.ack", cb=self._ack)
        streams = self._client.jetstream(timeout=DEADLINE_SECONDS)
        while len(self.robot_of) < self._count:
            robot = min(self._open, key=lambda each: len(self._open[each]))
            if len(self._open[robot]) >= WAITING:
                await asyncio.sleep(0.005)
                continue
            name = f"c-{len(self.robot_of)}"
            self.robot_of[name] = robot
            self._open[robot].add(name)
            payload = MOVES[len(self.robot_of) % len(MOVES)]
            data = json.dumps({"messageId": name, "payload": payload}).encode()
            headers = {"Nats-Msg-Id": name}
            await streams.publish(f"robot.{robot}.command.request", data, headers=headers)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while any(self._open.values()):  # noqa: ASYNC110 - acks change it
                await asyncio.sleep(0.01)

    async def _ack(self, message: Any) -> None:
        whole = json.loads(message.data)
        if whole["payload"]["status"] in ENDS:
            name = whole["correlationId"]
            self._open[self.robot_of[name]].discard(name)


async def kill_often(folder: Path, count: int, kills: int) -> None:
    chance = random.Random(7)
    async with given_server(folder) as server:
        client = await nats.connect(server.address)
        cell = KilledCell(folder, server)
        await cell.start()
        try:
            commands = Commands(client, count)
            flow = asyncio.create_task(commands.flow())
            killed = 0
            for kill in range(1, kills + 1):
                await until(
                    lambda n=kill * count // (kills + 1): (  # type: ignore[misc]
                        len(commands.robot_of) >= n or flow.done()
                    )
                )
                await asyncio.sleep(chance.uniform(0.0, 0.1))
                await cell.kill()
                killed += 1
                await cell.start()
            await flow
            found = [json.loads(each.data) for each in await stored(client, "robot.*.command.ack")]
        finally:
            await cell.kill()
            await client.close()
    acks = Counter((each["correlationId"], each["payload"]["status"]) for each in found)
    twice = {ack: number for ack, number in acks.items() if number > 1}
    assert not twice
    begun = Counter((folder / "driven").read_text().split())
    driven = {name: begun[name] for name in commands.robot_of if begun[name]}
    assert set(driven.values()) == {1}
    done = {each["correlationId"] for each in found if each["payload"]["status"] == "DONE"}
    assert done <= driven.keys()
    for name in commands.robot_of:
        assert acks[name, "ACKED"] == 1, name
        assert sum(acks[name, status] for status in ENDS) == 1, name
    ends = {
        each["correlationId"]: (each["payload"]["status"], each["payload"].get("reason"))
        for each in found
        if each["payload"]["status"] in ENDS
    }
    kinds = Counter((name in driven, *end) for name, end in ends.items())
    print(f"\n{killed} kills, {count} commands, (driven, end): {dict(kinds)}")
    # A command that was not driven was under way when the cell was killed, and is not begun again.
    assert set(kinds) <= {(True, *DONE), (True, *INTERRUPTED), (False, *INTERRUPTED)}
    assert sum(end == INTERRUPTED for end in ends.values()) <= killed * ROBOTS


def test_a_command_is_carried_out_once_though_the_cell_is_killed(tmp_path: Path) -> None:
    asyncio.run(kill_often(tmp_path, 500, 5))


@pytest.mark.soak
def test_commands_are_carried_out_once_though_the_cell_is_killed_often(tmp_path: Path) -> None:
    asyncio.run(kill_often(tmp_path, 10_000, 100))
