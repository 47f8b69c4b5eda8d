"""Links of mesh arms that can touch: kept on disk, found in a worker while the cell listens."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.config.own_arms import cell, urdf, write_mesh
from tests.processes import command_lines

from understudy.app.build import build_cell
from understudy.app.live import Live, Options
from understudy.app.self_pairs import (
    FOLDER_VARIABLE,
    cache_folder,
    digest_of,
    mesh_bodies,
    unknown_bodies,
)
from understudy.config import load_config
from understudy.operator.background import KINDS
from understudy.simulation.collision.watch import CollisionWatch
from understudy.space.collision import pair_store, self_pairs
from understudy.space.collision.pair_store import SelfPairs
from understudy.space.collision.solids import Part
from understudy.space.kinematics.chain import Chain
from understudy.space.model.environment import Environment


@pytest.fixture
def arm_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cell file with an arm of meshes; the cache is empty."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    pair_store._known.clear()
    write_mesh(tmp_path / "link.stl")
    (tmp_path / "own.urdf").write_text(urdf())
    return cell(tmp_path, "model: own.urdf")


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each analysis in this process."""
    runs: list[int] = []
    analysed = self_pairs.analysed

    def counted(chain: Chain, arm: Sequence[Part]) -> SelfPairs:
        runs.append(len(arm))
        return analysed(chain, arm)

    monkeypatch.setattr(self_pairs, "analysed", counted)
    return runs


def pairs_of(file: Path) -> tuple[tuple[int, int], ...]:
    (body,) = [
        part.body
        for part in build_cell(load_config(str(file))).components.values()
        if hasattr(part, "body")
    ]
    return tuple(body.detector(Environment(), 0).self_collision_pairs)


def cached(file: Path) -> Path:
    (body,) = mesh_bodies(build_cell(load_config(str(file))).components).values()
    return cache_folder() / "self_pairs" / f"{digest_of(body)}.json"


def test_an_analysis_is_kept_on_disk(arm_file: Path, analyses: list[int]) -> None:
    found = pairs_of(arm_file)
    assert analyses == [7]
    assert cached(arm_file).exists()
    pair_store._known.clear()  # as in another process
    assert pairs_of(arm_file) == found
    assert analyses == [7]


def test_a_changed_mesh_is_analysed_anew(arm_file: Path, analyses: list[int]) -> None:
    pairs_of(arm_file)
    write_mesh(arm_file.parent / "link.stl", size=0.05)
    pairs_of(arm_file)
    assert analyses == [7, 7]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"touchable": 3, "overlapping": []}'])
def test_a_broken_file_of_the_cache_is_replaced(
    arm_file: Path, analyses: list[int], content: bytes
) -> None:
    found = pairs_of(arm_file)
    cached(arm_file).write_bytes(content)
    pair_store._known.clear()
    assert pairs_of(arm_file) == found
    assert analyses == [7, 7]
    assert cached(arm_file).read_bytes() != content


def test_a_cache_that_cannot_be_written_is_done_without(
    arm_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    assert pairs_of(arm_file)


def test_listed_pairs_need_no_analysis(arm_file: Path, analyses: list[int]) -> None:
    listed = cell(
        arm_file.parent, "model: own.urdf, collision: {self_collision_pairs: [[0, 3], [0, 4]]}"
    )
    parts = build_cell(load_config(str(listed))).components
    assert unknown_bodies(parts) == {}
    for part in parts.values():
        if isinstance(part, CollisionWatch):
            list(part.prepare())
    assert pairs_of(listed) == ((0, 3), (0, 4))
    assert analyses == []


# ── in a worker ─────────────────────────────────────────────────────────────────────────────────


def found_by_worker(file: Path, on_report: Any = lambda live: None) -> list[float]:
    """Starts the cell of the file as `run` does; returns the reported progress."""

    async def run() -> list[float]:
        shares: list[float] = []
        live = Live(load_config(str(file)), Options(ephemeral=True, hmi=False, rate="step"))
        await live.listen()

        def report(robot: str, share: float) -> None:
            assert robot == "arm"
            shares.append(share)
            on_report(live)

        try:
            await asyncio.wait_for(live.find_self_pairs(report), 120.0)
            assert live.now == 0.0
        finally:
            await live.stop()
        return shares

    return asyncio.run(run())


def test_a_worker_finds_the_pairs_and_keeps_them(arm_file: Path, analyses: list[int]) -> None:
    shares = found_by_worker(arm_file)
    assert shares == sorted(shares)
    assert cached(arm_file).exists()
    by_worker = pairs_of(arm_file)
    assert analyses == []
    pair_store._known.clear()
    cached(arm_file).unlink()
    assert pairs_of(arm_file) == by_worker
    assert found_by_worker(arm_file) == []  # known: no worker is started


def test_a_killed_worker_is_reported_and_the_first_motion_finds_the_pairs(
    arm_file: Path,
    analyses: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setitem(KINDS, "self_pairs", "tests.operator.background.works:wait")

    def kill(live: Live) -> None:
        for child, line in command_lines().items():
            if "understudy.operator.background_worker" in line:
                child.kill()

    with caplog.at_level(logging.WARNING):
        found_by_worker(arm_file, kill)
    assert (
        "its links that can touch were not found: its process was ended by SIGKILL" in caplog.text
    )
    assert pairs_of(arm_file)
    assert analyses == [7]


INTERRUPTED = """
import os, signal, sys
from understudy.app.live import Live
from understudy.cli import main
from understudy.operator.background import KINDS

KINDS["self_pairs"] = "tests.operator.background.works:wait"
find = Live.find_self_pairs

async def interrupted(self, report):
    def reported(robot, share):
        report(robot, share)
        os.kill(os.getpid(), signal.SIGINT)

    await find(self, reported)

Live.find_self_pairs = interrupted
sys.argv = ["understudy", "run", {cell!r}, "--ephemeral", "--no-hmi"]
sys.exit(main())
"""


def test_ctrl_c_during_the_analysis_ends_the_cell(arm_file: Path) -> None:
    """The worker waits for ever."""
    command = [sys.executable, "-c", INTERRUPTED.format(cell=str(arm_file))]
    folder = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder}"}
    ended = subprocess.run(
        command, capture_output=True, timeout=120, cwd=folder, env=environment, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "finding which links of arm can touch" in ended.stderr
    assert "Traceback" not in ended.stderr
