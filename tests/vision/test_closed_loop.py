"""Pick & place through pixels: the robot picks by what a rendered picture shows."""

from pathlib import Path

import numpy as np
import pytest
from tests.vision.loop_cell import LoopCell, Placed

from understudy.app.build import with_options
from understudy.config import load_config
from understudy.jobs.pick_place.headless import Summary, run_headless

MOST_MM, MOST_DEG = 0.5, 0.3
FEW_PARTS, MANY_PARTS = ("machine_tending", "assembly", "bin_picking"), ("pick_place", "sorting")


def run(folder: Path, kind: str, cycles: int, seed: int = 1) -> list[Placed]:
    cell = LoopCell(folder, kind, seed)
    return [cell.cycle() for _ in range(cycles)]


def check(placed: list[Placed], title: str) -> None:
    false = [each for each in placed if each.success and (each.mm > 2.0 or each.deg > 2.0)]
    assert not false, "a success without the part in its place"
    done = [each for each in placed if each.success]
    assert len(done) == len(placed)
    mm, deg = (np.percentile([row[n] for row in done], [50, 95, 100]) for n in (1, 2))
    print(f"\n{title}: {len(done)} cycles, median / p95 / most: "
          f"{mm[0]:.3f} / {mm[1]:.3f} / {mm[2]:.3f} mm, "
          f"{deg[0]:.3f} / {deg[1]:.3f} / {deg[2]:.3f}°")  # fmt: skip
    assert mm[1] <= MOST_MM
    assert deg[1] <= MOST_DEG


def test_20_cycles_by_an_april_tag(tmp_path: Path) -> None:
    placed = run(tmp_path, "markers", 20)
    check(placed, "AprilTag")
    again = run(tmp_path, "markers", 2)
    assert [each.digest for each in again] == [each.digest for each in placed[:2]]


def test_cycles_by_colour_and_outline(tmp_path: Path) -> None:
    check(run(tmp_path, "shapes", 4), "without markers")


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["markers", "shapes"])
def test_1000_cycles_twice(kind: str, tmp_path: Path) -> None:
    placed = run(tmp_path, kind, 1000, seed=7)
    check(placed, kind)
    again = run(tmp_path, kind, 1000, seed=7)
    assert [each.digest for each in again] == [each.digest for each in placed]


@pytest.mark.parametrize("cell", MANY_PARTS)
def test_shipped_cells_pick_by_what_they_see(cell: str) -> None:
    summary = run_headless(with_options(load_config(cell), {"vision": "process"}), cycles=1)
    assert isinstance(summary, Summary)
    assert (summary.success, summary.failed, summary.ended) == (1, 0, "DONE"), summary.error


@pytest.mark.parametrize(
    "cell",
    [
        *FEW_PARTS,
        *(pytest.param(name, marks=pytest.mark.soak) for name in MANY_PARTS),
    ],
)
def test_shipped_cells_are_worked_off_through_pixels(cell: str) -> None:
    """As many parts as with vision that knows where they are."""
    config = load_config(cell)
    sources = ("process", "ground_truth")
    seen, known = (run_headless(with_options(config, {"vision": each})) for each in sources)
    assert isinstance(seen, Summary)
    assert isinstance(known, Summary)
    assert (seen.by_class, seen.ended) == (known.by_class, known.ended)
