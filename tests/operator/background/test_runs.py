"""Long queries in processes of their own: progress, results, cancelling; few at once, few kept."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from understudy.app.background import reach
from understudy.config import load_config
from understudy.config.files import name_of_cell
from understudy.errors import ConfigError, Refused
from understudy.operator import background
from understudy.operator.background import (
    KINDS,
    MOST_KEPT,
    MOST_WAITING,
    OVER,
    BackgroundRun,
    BackgroundRuns,
)
from understudy.operator.background_worker import WorkerLimits, worker_limits

WORKS = ("echo", "refuse", "misread", "stumble", "vanish", "babble", "wait", "swallow", "give_up")


def play(
    scene: Callable[[BackgroundRuns], Awaitable[None]], limits: WorkerLimits | None = None
) -> None:
    async def run() -> None:
        kinds = {name: f"tests.operator.background.works:{name}" for name in WORKS}
        runs = BackgroundRuns(kinds, {"cell": "the one that runs"}, limits)
        try:
            await asyncio.wait_for(scene(runs), 180.0)
        finally:
            await runs.stop()

    asyncio.run(run())


def start(runs: BackgroundRuns, kind: str, **parameters: Any) -> BackgroundRun:
    run = runs.start_run(kind, parameters)
    assert isinstance(run, BackgroundRun)
    return run


async def until(run: BackgroundRun, *states: str, progress: float = 0.0) -> BackgroundRun:
    while run.state not in states or run.progress < progress:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)
    return run


def test_a_run_gets_the_running_cell_and_returns_a_result() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        run = await until(start(runs, "echo", text="hm", cell="another"), *OVER)
        assert (run.state, run.progress, run.error) == ("done", 1.0, "")
        raw = runs.result(run.id)
        assert raw is not None
        assert msgspec.json.decode(raw) == {"text": "hm", "cell": "the one that runs"}

    play(scene)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("refuse", "not with me"),
        ("misread", "tea: no such key"),
        ("stumble", "ZeroDivisionError: by nothing"),
        ("vanish", "its process ended without an answer"),
    ],
)
def test_a_failed_run_has_a_reason(kind: str, why: str) -> None:
    async def scene(runs: BackgroundRuns) -> None:
        run = await until(start(runs, kind), *OVER)
        assert (run.state, run.error) == ("failed", why)
        assert runs.result(run.id) is None

    play(scene)


def test_a_result_that_is_too_long_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LARGEST_RESULT", 1 << 16)

    async def scene(runs: BackgroundRuns) -> None:
        run = await until(start(runs, "babble", bytes=1 << 18), *OVER)
        assert run.state == "failed"
        assert "longer than" in run.error

    play(scene)


def test_a_worker_that_takes_too_much_memory_is_refused_and_the_next_one_works() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        fits = await until(start(runs, "swallow", megabytes=256), *OVER)
        assert (fits.state, fits.error) == ("done", "")
        large = await until(start(runs, "swallow", megabytes=4096), *OVER)
        assert large.state == "failed"
        assert large.error == (
            "it needs more memory than a worker process may have: 512 MB "
            "(UNDERSTUDY_WORKER_MEMORY_MB sets another limit)"
        )
        assert 0.05 < large.progress < 0.13
        aborted = await until(start(runs, "give_up"), *OVER)
        assert aborted.error.startswith("its process was ended by SIGABRT, perhaps because")

    play(scene, WorkerLimits(512 << 20))


def test_a_run_that_takes_too_long_is_ended_and_the_next_one_begins() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        endless, behind = start(runs, "wait"), start(runs, "echo")
        await until(endless, *OVER)
        assert endless.state == "failed"
        assert endless.error == (
            "it took longer than a worker process may take: 1 s "
            "(UNDERSTUDY_WORKER_SECONDS sets another limit)"
        )
        await until(behind, *OVER)

    play(scene, WorkerLimits(512 << 20, 1.0))


def test_limits_of_workers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 512 << 20 <= worker_limits().memory <= 4096 << 20
    assert worker_limits().seconds == 3600.0
    monkeypatch.setenv("UNDERSTUDY_WORKER_MEMORY_MB", "9000")
    monkeypatch.setenv("UNDERSTUDY_WORKER_SECONDS", "60")
    assert worker_limits() == WorkerLimits(9000 << 20, 60.0)
    for wrong in ("much", "-1", "nan", "1"):
        monkeypatch.setenv("UNDERSTUDY_WORKER_MEMORY_MB", wrong)
        with pytest.raises(ConfigError, match=r"UNDERSTUDY_WORKER_MEMORY_MB.*512 or more"):
            worker_limits()


def test_one_run_works_and_the_others_wait_and_can_be_cancelled() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        first, second = start(runs, "wait"), start(runs, "echo")
        await until(first, "running", progress=0.25)
        assert second.state == "waiting"
        third = start(runs, "echo")
        assert runs.cancel_run(third.id) is third
        assert third.state == "cancelled"
        runs.cancel_run(first.id)
        assert first.state == "cancelled"
        await until(second, "done")
        assert first.state == "cancelled"
        assert runs.result(first.id) is None

    play(scene)


def test_too_many_runs_and_unknown_kinds_are_refused() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        for _ in range(MOST_WAITING + 1):
            start(runs, "wait")
        refused = runs.start_run("echo", {})
        assert isinstance(refused, Refused)
        assert str(MOST_WAITING) in refused.reason
        unknown = runs.start_run("tea", {})
        assert isinstance(unknown, Refused)
        assert "echo, refuse" in unknown.reason
        assert isinstance(runs.get(99), Refused)
        assert isinstance(runs.cancel_run(99), Refused)

    play(scene)


def test_only_the_latest_runs_are_kept() -> None:
    async def scene(runs: BackgroundRuns) -> None:
        works = start(runs, "wait")
        for _ in range(2 * MOST_KEPT):
            waits = start(runs, "echo")
            await asyncio.sleep(0)
            runs.cancel_run(waits.id)
            await asyncio.sleep(0)
        latest = range(waits.id - MOST_KEPT + 2, waits.id + 1)
        assert [run.id for run in runs.runs()] == [works.id, *latest]

    play(scene)


# ── where the arm reaches ──


def asked(file: str = "default", **parameters: Any) -> dict[str, Any]:
    config = load_config(file)
    cell = {
        "file": name_of_cell(config.document.file),
        "seed": config.head.seed,
        "digest": config.digest,
    }
    return {"cell": cell, **parameters}


def test_the_run_reach_returns_points_and_workspace() -> None:
    progress: list[float] = []
    found = reach(asked(resolution_mm=300, orientations=6), progress.append)
    assert isinstance(found, dict)
    assert progress[-1] == 1.0
    points = found["points_mm"]
    assert 0 < len(points) < found["points_tried"]
    low, high = found["workspace_mm"]
    for x, y, z, ways in points:
        assert 1 <= ways <= 6
        assert all(a <= v <= b for v, a, b in zip((x, y, z), low, high, strict=True))


def test_reach_covers_every_robot_with_a_body() -> None:
    parameters = asked(resolution_mm=300, orientations=1)
    found = reach({**parameters, "robot": "kuka"}, lambda share: None)
    assert isinstance(found, dict)
    assert found["points_mm"]
    with pytest.raises(ConfigError, match="unknown robot"):
        reach({**parameters, "robot": "bench"}, lambda share: None)


def test_reach_points_are_relative_to_the_foot(tmp_path: Path) -> None:
    maps = []
    for base in ("[0, 0, 0, 0, 0, 0]", "[900, -300, 100, 0, 0, 40]"):
        file = tmp_path / "cell.yaml"
        file.write_text(f"robots: {{g60: {{kind: arm, base_mm_deg: {base}}}}}\n")
        maps.append(reach(asked(str(file), resolution_mm=300, orientations=6), lambda share: None))
    assert maps[0] == maps[1]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"resolution_mm": 1}, "resolution_mm"),
        ({"robot": "bench"}, "g60"),
        ({"tea": 1}, "tea"),
    ],
)
def test_wrong_parameters_of_reach_are_errors(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        reach(asked(**parameters), lambda share: None)


def test_a_run_refuses_a_changed_cell_file() -> None:
    changed = asked()
    changed["cell"]["digest"] = "another"
    with pytest.raises(ConfigError, match="changed since"):
        reach(changed, lambda share: None)


def test_every_kind_can_be_imported() -> None:
    from importlib import import_module

    for target in KINDS.values():
        module, _, name = target.partition(":")
        assert callable(getattr(import_module(module), name))
