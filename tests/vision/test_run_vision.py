"""`run` and the vision process: it starts and ends with the cell, changes nothing of what the cell
does on virtual time, and kills of it do no harm."""

import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest
import yaml
import zmq
from tests.cli.running_cell import PATIENCE_SECONDS, RunningCell
from tests.jobs.pick_place.cell_bench import GRIPPER, TABLE, cube
from tests.vision.loop_cell import PARTS, SCAN, camera_keys
from tests.wire.zmq_server import Server

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.ports import Snapshot

TRIES = 10
"""Of what a busy machine may prevent."""
PLACE = {"x": 470.0, "y": 40.0, "z": 70.0}
"""In the picture: the cube is picked again where it was placed, so the job has no end."""


def cell_text(folder: Path, vision_timeout_ms: float = 1000.0) -> str:
    robot = {
        "kind": "arm", "tool": 2, "tools": {2: GRIPPER}, "gripper": {},
        "pickplace": {
            "scan_position": SCAN, "place_position": PLACE, "vision_timeout_ms": vision_timeout_ms,
            "grasps": {"*": {"symmetry_deg": 90}},
        },
        "faces": {"camera": {"port": 0}},
        **camera_keys(folder, "markers", width_px=640, height_px=480, fx_px=600, fy_px=600,
                      cx_px=320, cy_px=240),
    }  # fmt: skip
    parts = [cube("cube", 450.0, 0.0) | PARTS["markers"]]
    return yaml.safe_dump(
        {"robots": {"g60": robot}, "parts": parts, "environment": {"objects": TABLE}}
    )


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[RunningCell]:
    (tmp_path / "cell.yaml").write_text(cell_text(tmp_path))
    with RunningCell(tmp_path, str(tmp_path / "cell.yaml"), rate="max") as running:
        yield running


@pytest.fixture
def patient_cell(tmp_path: Path) -> Iterator[RunningCell]:
    """At rate 1, with a job that waits for vision as long as a test may take."""
    (tmp_path / "cell.yaml").write_text(cell_text(tmp_path, 1000.0 * PATIENCE_SECONDS))
    with RunningCell(tmp_path, str(tmp_path / "cell.yaml"), rate="1") as running:
        yield running


def place_a_part(cell: RunningCell, max_cycles: int) -> None:
    """Starts the job and waits for its first success. On a busy machine a question may fail because
    its connection takes longer than 0.5 s: then the job is started again, as an operator does."""
    before = cell.job()["success_count"]
    for _ in range(TRIES):
        if cell.job()["state"] == "ERROR":
            cell.do("reset_pick_place")
        cell.do("enable")
        cell.do("start_pick_place", max_cycles=max_cycles)
        cell.wait(lambda: cell.job()["success_count"] > before or cell.job()["state"] == "ERROR")
        if cell.job()["success_count"] > before:
            return
    raise AssertionError(f"{cell.job()}\n{cell.said()}")


def kill_vision(cell: RunningCell) -> float | None:
    """Wall seconds from the kill until the job has stopped with an error and the robot stands.
    None: the process is back, and no question was lost yet."""
    victim = cell.vision()
    assert victim is not None
    victim.kill()
    took = cell.wait(lambda: cell.job()["state"] == "ERROR" or cell.is_back(victim))
    if cell.job()["state"] != "ERROR":
        return None
    took += cell.wait(lambda: not cell.moves())
    cell.wait(lambda: cell.is_back(victim))
    return took


def kill_and_recover(cell: RunningCell, pause: float) -> tuple[float, float]:
    """Kills the process at some moment of the cycle. Wall seconds until the job is in its safe
    state, and from the process being back until the job has placed a part again."""
    place_a_part(cell, max_cycles=-1)
    time.sleep(pause)
    tried = (kill_vision(cell) for _ in range(TRIES))
    safe = next(took for took in tried if took is not None)
    assert cell.job()["code"] == "VISION_TIMEOUT"
    begun = time.monotonic()
    place_a_part(cell, max_cycles=1)  # and no stop, which may come while the hand has the part
    recovered = time.monotonic() - begun
    cell.wait(lambda: not cell.job()["running"])
    return safe, recovered


def run_at_max(cell: RunningCell, cycles: int) -> tuple[Snapshot, Snapshot]:
    """The cell before a run of the job and after it; the time between them is simulated at `max`.
    A run in which the busy machine loses a question is repeated."""
    cell.set_rate(0.0)
    cell.do("enable")
    cell.do("start_pick_place", max_cycles=cycles)
    began = cell.snapshot()
    for _ in range(TRIES):
        cell.set_rate("max")
        cell.wait(lambda: not cell.job()["running"])
        cell.set_rate(0.0)
        ended = cell.snapshot()
        if cell.job()["success_count"] == cycles:
            cell.set_rate("max")
            return began, ended
        cell.restore(began)
    raise AssertionError(f"{cell.job()}\n{cell.said()}")


def same_run_in_process(file: Path, began: Snapshot, ended: Snapshot) -> Snapshot:
    """The same time on virtual time, with the vision process answered by a call."""
    cell = build_cell(load_config(str(file)))
    cell.restore(began)
    cell.advance(ended.now)
    return cell.snapshot()


def check_same_run(cell: RunningCell, cycles: int) -> None:
    """Every part ends in the same state; clients of the camera exist over the wire only."""
    began, ended = run_at_max(cell, cycles)
    in_process = same_run_in_process(cell.folder / "cell.yaml", began, ended)
    for each in (ended, in_process):
        del each.parts["g60.camera.face"]
    live, virtual = (msgspec.json.encode(each.parts) for each in (ended, in_process))
    assert sha256(live).hexdigest() == sha256(virtual).hexdigest()
    assert ended.parts["g60.camera"]["frames"] >= cycles


def attack(cell: RunningCell, kills: int) -> None:
    moments = random.Random(5)
    rows = [kill_and_recover(cell, moments.uniform(0.0, 0.8)) for _ in range(kills)]
    for title, times in zip(("safe state", "recovery"), zip(*rows, strict=True), strict=True):
        p95 = float(np.percentile(times, 95))
        print(f"\n{title} after {kills} kills: p95 {p95:.2f} s, most {max(times):.2f} s")
    assert cell.job()["fail_count"] >= kills


def test_the_vision_process_gives_the_same_bytes_and_kills_of_it_do_no_harm(
    cell: RunningCell,
) -> None:
    check_same_run(cell, cycles=2)
    attack(cell, 5)
    child = cell.vision()
    assert child is not None
    cell.end()
    child.wait(PATIENCE_SECONDS)
    assert not child.is_running(), "it ends with the cell"


def test_the_ready_file_lists_a_vision_process_until_it_answers(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(cell_text(tmp_path))
    file = tmp_path / "ready.json"
    words = ["--ephemeral", "--no-hmi", f"--ready-file={file}"]
    command = [sys.executable, "-m", "understudy", "run", str(tmp_path / "cell.yaml"), *words]
    seen: list[list[str]] = []
    with (tmp_path / "log.txt").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while seen[-1:] != [[]]:
            assert time.monotonic() < until
            if file.exists():
                found = json.loads(file.read_text())
                assert ("g60.vision" in found["endpoints"]) != ("g60.vision" in found["starting"])
                seen += [found["starting"]] if found["starting"] not in seen else []
            time.sleep(0.01)
    finally:
        running.terminate()
        assert running.wait(PATIENCE_SECONDS) == 0
    assert seen == [["g60.vision"], []]


@pytest.mark.soak
def test_50_equal_cycles_and_100_kills_at_random_moments(cell: RunningCell) -> None:
    check_same_run(cell, cycles=50)
    attack(cell, 100)


# ── a process that ends during a scan, and another one at its port ────────────────────────────────

LIE = {
    "success": True,
    "objects": [{"id": 0, "class": "cube", "confidence": 1.0, "bbox": [1, 1, 9, 9],
                 "pose": {"x": 0, "y": 0, "z": 300, "rx": 180, "ry": 0, "rz": 0}}],
}  # fmt: skip


def impostor(cell: RunningCell, address: str) -> Server:
    """A server at the port of the process that was killed; it sees a part in the air."""
    made: list[Server] = []

    def is_bound() -> bool:
        with contextlib.suppress(zmq.ZMQError):
            made.append(Server(address, lambda request: msgspec.json.encode(LIE)))
        return bool(made)

    cell.wait(is_bound)
    return made[0]


def kill_in_a_scan(cell: RunningCell) -> psutil.Process:
    cell.wait(lambda: cell.job()["state"] == "SCANNING")
    victim = cell.vision()
    assert victim is not None
    victim.kill()
    return victim


def check_kills_in_scans(cell: RunningCell, kills: int) -> None:
    cell.do("enable")
    cell.do("start_pick_place", max_cycles=-1)
    address = cell.endpoints()["g60.vision"]
    for number in range(kills):
        placed = cell.job()["success_count"]
        victim = kill_in_a_scan(cell)
        if number % 2:
            with impostor(cell, address):
                cell.wait(lambda: "does not run" in cell.status_of("g60.vision")["problem"])
                job = cell.job()
                assert (job["state"], job["current_target"]) == ("SCANNING", None)
        cell.wait(lambda before=victim: cell.is_back(before))  # type: ignore[misc]
        cell.wait(lambda least=placed: cell.job()["success_count"] > least)  # type: ignore[misc]
    assert cell.job()["fail_count"] == 0


def test_a_scan_goes_on_when_the_killed_process_is_back_and_believes_no_other(
    patient_cell: RunningCell,
) -> None:
    check_kills_in_scans(patient_cell, 2)


@pytest.mark.soak
def test_40_kills_in_scans_lose_no_cycle(patient_cell: RunningCell) -> None:
    check_kills_in_scans(patient_cell, 40)
