"""Throughput of campaigns of mobile robots, in robot-hours for a day of one core.

A run has many robots in the shipped warehouse and few messages: no streams, only commands, their
answers and events. Building the cell is part of the run. There is no peer: the figure is compared
with the aim of a million, and with the real time that as many robots would need.

UNDERSTUDY_BENCH_ROBOTS=1000 chooses another number of robots.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks import Row
from understudy.campaign.one_run import Outcome, run_one
from understudy.campaign.plan import read_plan
from understudy.campaign.report import throughput
from understudy.config.files import shipped_cells, shipped_robot_files
from understudy.robots.mobile.warm import warm

ROBOTS = int(os.environ.get("UNDERSTUDY_BENCH_ROBOTS", "500"))
SECONDS = 200
AIM = "1,000,000"


def fleet(folder: Path) -> str:
    """The cell: robots of the shipped warehouse, several at the same place; they do not meet."""
    document = json.loads(shipped_robot_files()["amr"].read_text())
    document["streams"] = {
        f"{name}Hz": 0 for name in ("heartbeat", "state", "telemetry", "traffic")
    }
    (folder / "quiet.json").write_text(json.dumps(document))
    cell: dict[str, Any] = yaml.safe_load(shipped_cells()["fleet"].read_text())
    originals = list(cell["robots"].values())
    cell["robots"] = {
        f"robot-{n}": {**originals[n % len(originals)], "file": "quiet.json"} for n in range(ROBOTS)
    }
    (folder / "cell.yaml").write_text(yaml.safe_dump(cell))
    return "cell.yaml"


def circles(duration: float, every: float) -> list[dict[str, Any]]:
    """Commands: all robots drive in circles for ``duration`` seconds, again and again."""
    drive = {"linear": 0.25, "angular": 0.5, "durationSeconds": duration}
    return [
        {
            "at_s": at,
            "to": "nats",
            "address": f"robot.robot-{n}.command.request",
            "message": {
                "messageId": f"{at}/{n}",
                "payload": {"commandType": "MOVE_VELOCITY", "parameters": drive},
            },
        }
        for at in range(1, SECONDS, round(every))
        for n in range(ROBOTS)
    ]


def ran(folder: Path, script: list[dict[str, Any]]) -> Outcome:
    plan = {"cell": fleet(folder), "runs": 1, "for_s": SECONDS, "script": script}
    file = folder / "campaign.yaml"
    file.write_text(json.dumps(plan))
    planned = read_plan(str(file), file.read_text())
    return run_one(planned, next(planned.plan.specs()))


def row(what: str, script: list[dict[str, Any]]) -> Row:
    with tempfile.TemporaryDirectory() as name:
        found = ran(Path(name), script)
    assert found.passed, found.problem
    rate = throughput([found])
    at_once = f"{ROBOTS * SECONDS / found.cpu_s:,.0f} robots at real time"
    return Row(what, f"{rate:,.0f} robot-hours", at_once, f"{rate / 1e6:.2f}×", AIM)


def rows() -> list[Row]:
    warm()
    return [
        row(f"{ROBOTS} robots that always drive", circles(SECONDS, SECONDS)),
        row(f"{ROBOTS} robots that drive a quarter of the time", circles(25.0, 100.0)),
    ]
