"""The same seed and the same script give the same bytes, however time is cut."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.ports import CONFIRMED, WireMessage
from understudy.robots.mobile.runtime.fleet import Ticker
from understudy.units import NS_PER_SECOND, nanoseconds
from understudy.wire.exchange import InProcessCell

STEP = nanoseconds(0.5)
"""The client acts at multiples of this."""
CELL = """
seed: 5
robots:
  robot-1: {kind: mobile, file: noisy.json, pose: [2, 2, 0]}
  robot-2: {kind: mobile, file: amr.json, pose: [2, 5, 0]}
  robot-3: {kind: mobile, file: amr.json, pose: [2, 8, 0]}
fleet: {markers: [{code: A, x_m: 5, y_m: 2}, {code: B, x_m: 6, y_m: 5}]}
environment:
  objects:
    - {name: shelf, type: box, position_mm: [9000, 5000, 500], dimensions_mm: [1000, 9000, 1000]}
    - {name: post, type: cylinder, position_mm: [6000, 8000, 500], radius_mm: 50, height_mm: 1000}
scenario:
  rules:
    pressed: {fault: emergency_stop, on: robot-2, at_s: 41}
    released: {fault: emergency_release, on: robot-2, at_s: 44}
    broken: {fault: motor_fault, on: robot-3, at_s: 52, parameters: {motor: lift}}
"""
NOISY = {
    "profileName": "noisy",
    "faultInjection": {
        "rules": [
            {
                "trigger": "ON_COMMAND",
                "value": "MOVE_TO_POSE",
                "target": "motor:lift",
                "probability": 0.3,
            }
        ]
    },
    "ioOverrides": {"limitSensorNoise": {"enabled": True, "probability": 0.02}},
}


def script(seconds: int) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Time, robot, kind and payload of the messages of a backend."""
    for n, second in enumerate(range(1, seconds, 20)):
        go = {"x": 2.0 + 3.0 * (n % 2), "y": 2.0, "yaw": 1.0}
        yield second, "robot-1", "command.request", _command("MOVE_TO_POSE", **go)
        lift = {"motorId": "lift", "targetPosition": 0.08 if n % 2 == 0 else 0.0}
        yield second, "robot-1", "command.request", _command("EXECUTE_ACTION", **lift)
        drive = {"linear": 0.6, "angular": 0.3, "durationSeconds": 8.0}
        yield second + 1, "robot-2", "command.request", _command("MOVE_VELOCITY", **drive)
        yield second + 2, "robot-3", "command.request", _command("MOVE_TO_POSE", x=7.5, y=8.0)
        yield second + 9, "robot-3", "command.request", _command("STOP")
        reset = _command("RESET_MOTOR", motorId="lift")
        yield second + 15, "robot-1", "command.request", reset
        point = {"x": 3.0, "y": 7.0 - n % 3}
        task = {"taskId": f"task-{n}", "taskType": "MOVE_TO_POINT", "moveToPoint": point}
        yield second + 11, "robot-3", "task.assign", task


def _command(command_type: str, **parameters: Any) -> dict[str, Any]:
    return {"commandType": command_type, "parameters": parameters}


class Run:
    """A cell on virtual time, and a client that plays the script and confirms what it gets."""

    def __init__(self, folder: Path, seconds: int, seed: int | None = None) -> None:
        self.cell = InProcessCell(build_cell(load_config(str(folder / "cell.yaml"), seed=seed)))
        self._client = self.cell.connect("nats")
        self._script = sorted(script(seconds), key=lambda line: line[0])
        self._kinds: dict[str, int] = {}
        self._hash = hashlib.sha256()

    def play(self, begin: int, end: int, advance: Callable[[int], None] | None = None) -> None:
        """Acts at the multiples of STEP from ``begin`` up to ``end`` (seconds)."""
        for at in range(begin * NS_PER_SECOND, end * NS_PER_SECOND, STEP):
            (advance or self.cell.advance_to)(at)
            self._take()
            for number, (second, robot, kind, payload) in enumerate(self._script):
                if second * NS_PER_SECOND == at:
                    body = {"messageId": f"m-{number}", "payload": payload}
                    subject = f"robot.{robot}.{kind}"
                    data = json.dumps(body).encode()
                    self._client.say(WireMessage(subject, data, f"$JS.ACK.{number}"))

    def _take(self) -> None:
        for message in self._client.messages():
            self._hash.update(repr((message.address, message.reply_to)).encode())
            self._hash.update(message.payload)
            kind = message.address.split(".", 2)[-1]
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            if message.reply_to:
                self._client.say(WireMessage(CONFIRMED, b"", message.reply_to))

    def outcome(self) -> tuple[str, dict[str, int]]:
        self._take()
        return self._hash.hexdigest(), self._kinds

    def forget_and_return(self, seconds: int) -> None:
        """Saves the cell, lives another life for a while, and goes back."""
        self._take()
        snapshot = self.cell.snapshot()
        self.cell.advance(float(seconds))
        self._client.messages()
        self.cell.restore(snapshot)
        self._client.messages()


@pytest.fixture(params=["false", "true"], ids=["same ticks", "spread"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The cell; all robots send at the same ticks, or each at its own ones."""
    from understudy.config.files import shipped_robot_files

    document = json.loads(shipped_robot_files()["amr"].read_text())
    document["runtime"]["simulationProfile"] = NOISY
    (tmp_path / "noisy.json").write_text(json.dumps(document))
    cell = CELL.replace("fleet: {", f"fleet: {{spread_messages: {request.param}, ")
    (tmp_path / "cell.yaml").write_text(cell)
    return tmp_path


def at_once(folder: Path, seconds: int, seed: int | None = None) -> tuple[str, dict[str, int]]:
    run = Run(folder, seconds, seed)
    run.play(0, seconds)
    return run.outcome()


def in_slices(folder: Path, seconds: int) -> tuple[str, dict[str, int]]:
    """Time goes on by 7 ms and 33.3 ms in turn."""
    run = Run(folder, seconds)

    def advance(to: int) -> None:
        while (now := run.cell.timed_cell.now) < to:
            run.cell.advance_to(min(now + nanoseconds(0.007), to))
            run.cell.advance_to(min(now + nanoseconds(0.0403), to))

    run.play(0, seconds, advance)
    return run.outcome()


def with_restore(folder: Path, seconds: int) -> tuple[str, dict[str, int]]:
    run = Run(folder, seconds)
    run.play(0, seconds // 2)
    run.forget_and_return(5)
    run.play(seconds // 2, seconds)
    return run.outcome()


def check(folder: Path, seconds: int) -> None:
    digest, kinds = at_once(folder, seconds)
    assert {"state", "heartbeat", "telemetry", "traffic.state", "events", "command.ack"} <= set(
        kinds
    )
    assert kinds["heartbeat"] >= 3 * (seconds - 1)
    assert at_once(folder, seconds)[0] == digest
    assert in_slices(folder, seconds) == (digest, kinds)
    assert with_restore(folder, seconds) == (digest, kinds)
    assert at_once(folder, seconds, seed=6)[0] != digest


def test_the_same_script_gives_the_same_bytes(folder: Path) -> None:
    check(folder, 20)


@pytest.mark.soak
def test_the_same_script_gives_the_same_bytes_for_an_hour(folder: Path) -> None:
    check(folder, 3600)


def test_ticks_that_are_left_out_change_no_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Robots that stand tick when a message is due; the oracle ticks always."""
    ticks: list[int] = []
    tick = Ticker.tick

    def counted(ticker: Ticker, now: int) -> None:
        ticks.append(now)
        tick(ticker, now)

    monkeypatch.setattr(Ticker, "tick", counted)
    found, fewer = at_once(folder, 60), len(ticks)
    ticks.clear()
    monkeypatch.setattr(Ticker, "expects", lambda ticker: True)
    assert at_once(folder, 60) == found
    assert fewer < len(ticks) - 50
