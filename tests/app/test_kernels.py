"""The kernel cache: what counts as filled, and how it is filled."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from understudy.app import kernels
from understudy.space.kinematics.chain import flange_frames


@pytest.fixture(scope="module")
def filled_cache() -> None:
    kernels.fill_cache(lambda compiled, total: None)


@pytest.mark.usefixtures("filled_cache")
def test_filling_a_filled_cache_compiles_nothing() -> None:
    counted: list[tuple[int, int]] = []
    kernels.fill_cache(lambda compiled, total: counted.append((compiled, total)))
    assert kernels.is_warm()
    assert counted == []


@pytest.mark.usefixtures("filled_cache")
def test_a_cache_of_other_sources_does_not_count_as_filled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert kernels.is_warm()
    kernel: Any = flange_frames
    monkeypatch.setattr(kernel._cache._cache_file, "_source_stamp", "other sources")
    assert not kernels.is_warm()


def test_a_stage_run_as_a_process_prints_the_kernels_that_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    workers = kernels._compiled_by_workers(["mobile"])
    first = next(workers)
    workers.close()
    assert first.startswith("understudy.")


def test_progress_counts_the_kernels_of_all_stages_from_the_beginning() -> None:
    """In a process of its own: other tests import the stages."""
    script = """
from understudy.app import kernels
totals = []
imported = kernels.stages
kernels.stages = lambda: dict.fromkeys(imported(), lambda arms: None)
kernels.is_warm = lambda: False
kernels._compiled_by_workers = lambda names: ["a kernel"]
kernels.fill_cache(lambda compiled, total: totals.append(total))
from understudy.robots.mobile import warm
print(totals == [len(kernels.KERNELS)])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
