"""MOVE_TO_POSE of a REAL robot whose drives are other makers' software, in their own process."""

import json
import math
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.robots.mobile.contract.backend import PATIENCE, Backend
from tests.robots.mobile.contract.conftest import running
from tests.robots.mobile.real.test_real_cell import EXAMPLE
from tests.scratch_packages import python_packages

PLANT = Path(__file__).parent / "foreign/plant.py"
ROOT = Path(__file__).parents[4]
PACKAGES = {"PLC": ["pymodbus"], "CANOPEN": ["canopen", "python-can[multicast]"]}
GOALS = [(1.0, 0.0, None), (1.5, 0.8, 1.0), (0.2, -0.5, None), (0.0, 0.0, 0.0)]
TOLERANCE = 0.02
BACKWARDS, TURNED = 0.02, math.radians(30.0)
"""Metres, and radians more than needed, of a robot that gets a command at every tick."""
TICK_S, FASTEST, FASTEST_TURN = 0.05, 1.2, 5.0
"""Seconds, m/s and rad/s of the robot."""
LOST_S = 0.25
"""A motor whose answers come in longer intervals counts as not connected: it does after 0.5 s, and
a reading can be two intervals old."""
CUT_OFF = (
    ("REJECTED", "ROBOT_NOT_READY"),
    ("FAILED", "REQUIRED_MOTOR_UNAVAILABLE"),
    ("CANCELED", None),
)
"""Ends of a command whose robot lost its motors before it, in it, or before it began."""
ATTEMPTS = 5
STILL_S = 1.0


class Plant:
    """``place``: its port or its bus."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.place = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def look(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._line())
        return found


@contextmanager
def plant(folder: Path, kind: str, delay: int, lag: int) -> Iterator[Plant]:
    environment = python_packages(folder / "pip", *PACKAGES[kind])
    environment["PYTHONPATH"] += f":{ROOT}"
    group = f"239.7.{secrets.randbelow(256)}.{secrets.randbelow(256)}"
    with subprocess.Popen(
        [sys.executable, str(PLANT), kind, group, str(delay), str(lag)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        yield Plant(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def cell_file(folder: Path, kind: str, place: str) -> Path:
    robot: dict[str, Any] = json.loads(EXAMPLE.read_text())
    robot["runtime"]["mode"] = "REAL"
    robot["io"] = {}
    robot.pop("nats")
    for number, motor in enumerate(robot["motors"]):
        config: dict[str, Any] = (
            {"host": "127.0.0.1", "port": int(place), "address": 100 * number}
            if kind == "PLC"
            else {
                "interface": "udp_multicast",
                "channel": place,
                "node": number + 1,
                "countsPerUnit": 20_000,
            }
        )
        motor["driver"] = {"type": kind, "config": config}
    (folder / "robot_config.json").write_text(json.dumps(robot))
    cell = folder / "cell.yaml"
    cell.write_text("nats: {port: 0}\ninclude: {robots: [robot_config.json]}\nrobots: {}\n")
    return cell


class MachineTooBusyError(Exception):
    """The robot lost its motors, and the plant has seen why: one of them waited for a processor."""


def drive(robot: Plant, backend: Backend, **goal: float) -> dict[str, float]:
    """Drives to a goal; returns what the plant shows of that."""
    backend.state("robot-1", lambda state: state["status"] == "RUNNING")
    end = backend.ended("robot-1", backend.command("robot-1", "MOVE_TO_POSE", **goal))[-1]
    time.sleep(STILL_S)
    seen = robot.look()
    if end in CUT_OFF and seen["kept"] >= LOST_S:
        raise MachineTooBusyError
    assert end == ("DONE", None), (goal, seen)
    return seen


def check_goals(robot: Plant, backend: Backend) -> None:
    before = robot.look()
    for x, y, yaw in GOALS:
        own = {} if yaw is None else {"yaw": yaw}
        after = drive(robot, backend, x=x, y=y, **own)
        way = math.atan2(y - before["y"], x - before["x"])
        needed = abs(math.remainder(way - before["yaw"], math.tau))
        needed += 0.0 if yaw is None else abs(math.remainder(yaw - way, math.tau))
        away, more = math.hypot(after["x"] - x, after["y"] - y), after["turned"] - needed
        print(f"{away:.3f} m off, {after['backwards']:.3f} m back,", end=" ")
        print(f"{math.degrees(more):.0f} deg too much; kept {after['kept_moving']:.3f} s")
        # Where the drives keep a command for longer, since their driver or the plant waits for a
        # processor, the robot cannot brake meanwhile: at the end of two turns, and of the way.
        late = max(after["kept_moving"] - TICK_S, 0.0)
        assert away <= TOLERANCE + 0.01, (x, y)
        assert after["backwards"] <= BACKWARDS + FASTEST * late, (x, y)
        assert more <= TURNED + 4.0 * FASTEST_TURN * late, (x, y)
        before = after


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "delay", "lag"),
    [("PLC", 0, 0), ("PLC", 200, 100), ("CANOPEN", 0, 0), ("CANOPEN", 200, 100)],
)
def test_poses_are_reached_without_turning_round(
    tmp_path: Path, kind: str, delay: int, lag: int
) -> None:
    """On a machine that is too busy once more, from the start: drives that are configured anew do
    not show how far the robot has come meanwhile."""
    for number in range(ATTEMPTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (
            plant(tmp_path, kind, delay, lag) as robot,
            running(cell_file(folder, kind, robot.place), "--real") as ready,
            Backend(ready["endpoints"]["nats"]) as backend,
        ):
            try:
                check_goals(robot, backend)
            except MachineTooBusyError:
                continue
            return
    pytest.fail(f"the machine is too busy: {ATTEMPTS} attempts")
