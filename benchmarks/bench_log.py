"""Logs of ten minutes: share of a core at real time, and size; the same cell without a log beside
it. What has ended is started again every minute."""

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks import Row
from understudy.app.build import build_cell, repeatable_run
from understudy.app.virtual_run import enable, start_program
from understudy.campaign.plan import job_of
from understudy.config import CellConfig, load_config
from understudy.config.files import find_program
from understudy.config.shards import with_robots
from understudy.doors.log.recording import recorded
from understudy.simulation.cell import Cell
from understudy.wire.exchange import Client, InProcessCell

MINUTES, STEP_S = 10, 0.1
"""Simulated time of a measurement, and of a step."""
PROGRAMS = {"g60": "weld_block", "bench": "text_square", "kuka": "kuka_square"}
Start = Callable[[CellConfig, Cell], Any]


def rows() -> list[Row]:
    fleet = with_robots(load_config("fleet"), 100, 1)
    return [
        measured("default, all programs", load_config("default"), programs, "< 3 %"),
        measured("pick_place with camera", load_config("pick_place"), picking, "–"),
        measured("fleet of 100, driving", fleet, driving, "–"),
    ]


def measured(what: str, config: CellConfig, start: Start, aim: str) -> Row:
    alone, _ = cpu_seconds(config, start, None)
    with tempfile.TemporaryDirectory() as folder:
        logged, size = cpu_seconds(config, start, Path(folder, "run.mcap"))
    whole = 60.0 * MINUTES
    beside = f"{alone / whole:.2%} of a core without"
    said = f"{(logged - alone) / whole:.2%}, {size / 1e6:.1f} MB in {MINUTES} min"
    return Row(what, said, beside, "–", aim)


def cpu_seconds(
    config: CellConfig, start: Start, file: Path | None, minutes: int = MINUTES
) -> tuple[float, float]:
    """CPU time of all threads for the simulated time, and the size of the log in bytes."""
    run = repeatable_run(config)
    timed = build_cell(config, run)
    cell = InProcessCell(timed)
    brokers = [cell.connect(endpoint) for endpoint in timed.faces if endpoint == "nats"]
    for _ in range(3):  # loads kernels; mobile robots say hello
        advance(cell, brokers, 1.0)
    log = nullcontext() if file is None else recorded(file, config, run, cell)
    began = time.process_time()
    with log:
        for _ in range(minutes):
            start(config, timed)
            for _ in range(round(60.0 / STEP_S)):
                advance(cell, brokers, STEP_S)
    return time.process_time() - began, 0.0 if file is None else file.stat().st_size


def advance(cell: InProcessCell, brokers: list[Client], duration: float) -> None:
    """Brokers confirm what they have received; ten minutes of a transcript would be a gigabyte."""
    cell.advance(duration)
    cell.transcript.clear()
    for broker in brokers:
        broker.confirm()


def programs(config: CellConfig, cell: Cell) -> None:
    for robot, name in PROGRAMS.items():
        start_program(config, cell, robot, find_program(name, beside=config.document.file))


def picking(config: CellConfig, cell: Cell) -> None:
    enable(config, cell, "g60")
    job = job_of(cell, "g60")
    assert job is not None
    job.start(cell.now)


def driving(config: CellConfig, cell: Cell) -> None:
    """Every robot drives around a small circle, unless it has stopped for another one."""
    view: Any = next(c for c in cell.components.values() if hasattr(c, "seen_together"))
    for robot in config.robots:
        speeds = {"linear": 0.1, "angular": 0.5}
        command = {"commandType": "MOVE_VELOCITY", "parameters": speeds, "requestedBy": "bench"}
        view.seen_together.request(robot, "command.request", command, cell.now)
