"""Checklist 12.2, Pallet: Full pallet cycle. The cell of the benchmark stacks 32 parts 4×4×2."""

from typing import Any

import numpy as np
import pytest
from benchmarks.bench_pick_place import CELL

from understudy.app.build import build_cell
from understudy.config.cell import read_config
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_SECOND

HALF_PART = 0.025
"""The tool grips a part at its top."""


def filled(text: str) -> Cell:
    """The cell at the end of a continuous run."""
    cell = build_cell(read_config(text, "pallet.yaml"))
    parts: dict[str, Any] = dict(cell.components)
    parts["g60"].connect(0)
    parts["g60"].enable(0)
    assert parts["g60.pick_place"].run_continuous(0) is None
    while parts["g60.pick_place"].busy():
        assert cell.now < 600 * NS_PER_SECOND
        cell.advance(cell.now + NS_PER_SECOND)
    return cell


def test_full_pallet_cycle() -> None:
    cell = filled(CELL)
    parts: dict[str, Any] = dict(cell.components)
    status = parts["g60.pick_place"].status(cell.now)
    assert (status.success_count, status.fail_count, status.reason) == (32, 0, "PALLET_FULL")
    assert parts["g60"].tally(cell.now).collisions_detected == 0
    pallet = parts["g60.pallet"]
    assert isinstance(pallet, PalletPattern)
    assert pallet.is_full()
    assert pallet.unreachable == ()
    truth = parts["parts"].status(cell.now)
    assert (truth.dropped, truth.tipped) == (0, 0)
    centres = np.array([part.pose[:3] for part in truth.parts])
    for place in pallet.layout.points - [0.0, 0.0, HALF_PART]:
        assert np.linalg.norm(centres - place, axis=1).min() < 0.0005
    assert {part.state for part in truth.parts} == {"resting"}


def test_places_out_of_reach_are_named_when_the_cell_is_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The pallet of the design document: columns along +X."""
    with caplog.at_level("INFO"):
        cell = build_cell(read_config(CELL.replace(", corner2: {x: 600, y: 100, z: 100}", ""), "c"))
    pallet: Any = cell.components["g60.pallet"]
    assert len(pallet.status(0).unreachable) > 8
    assert "the arm cannot reach" in caplog.text
