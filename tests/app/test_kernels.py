"""The kernel cache: what counts as filled, and how it is filled."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from understudy.app import kernels
from understudy.config import load_config
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


def test_progress_counts_the_kernels_of_all_stages_from_the_beginning(
    tmp_path: Path,
) -> None:
    """In a process of its own: other tests import the stages."""
    script = """
from understudy.app import kernels
from understudy.config import load_config
counted = []
kernels.missing = lambda names: tuple(names)
kernels._compiled_by_workers = lambda names: ["a", "b", "a"]
kernels.compile_missing(("collisions", "mobile"), lambda *count: counted.append(count))
print(counted)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    found = ast.literal_eval(done.stdout)
    assert [compiled for compiled, _ in found] == [0, 1, 2, 2], done.stderr
    assert len({total for _, total in found}) == 1
    assert found[0][1] > 100


@pytest.mark.usefixtures("filled_cache")
def test_what_an_interrupted_run_has_compiled_is_not_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(kernels, "READY", set())
    monkeypatch.setattr(kernels, "missing", tuple)
    monkeypatch.setattr(kernels, "_compiled_by_workers", lambda names: ["a"])
    kernels.compile_missing(("collisions",), lambda *count: counted.append(count))
    every = len(kernels._kernels_of(("collisions",)))
    assert counted[0][1] < every / 4, "what is left are kernels inside of others"


@pytest.mark.parametrize(
    ("cell", "stages"),
    [
        ("text_robot", ()),
        ("g60_welding", ("collisions", "motion")),
        ("grblhal_6axis", ("motion",)),
        ("fleet", ("mobile",)),
    ],
)
def test_a_cell_needs_the_kernels_of_its_robots(cell: str, stages: tuple[str, ...]) -> None:
    assert set(kernels.needed(load_config(cell))) == set(stages)


RUN = """
import sys
from understudy.space import compiled  # its listener sees what is compiled
from understudy.app import kernels
from understudy.config import load_config
from understudy.app.stand_in import StandIn
with kernels._calling_per_kernel(lambda name: print(name)), StandIn(sys.argv[1]) as robot:
    robot.ask(sys.argv[2])
    robot.forward(seconds=5)
    robot.do("status")
"""


@pytest.mark.parametrize(("cell", "line"), [("text_robot", "MOVE_ABS 1,2,103,0,0,0")])
def test_a_cold_cell_without_kernels_compiles_none(cell: str, line: str, tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, cell, line], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


CONSTANTS = """
from understudy.space.compiled import compiled
@compiled
def inner(x, n):
    return x * n
@compiled
def outer(x, n):
    return inner(x, 2) + inner(x, 3) + inner(x, n)
assert outer(1.5, 4) == 13.5
print(len(inner.signatures))
"""


def test_constants_of_a_call_are_no_reason_to_compile_again(tmp_path: Path) -> None:
    script = tmp_path / "constants.py"
    script.write_text(CONSTANTS)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout.strip() == "1", done.stderr
