"""An instant with much work: arcs with many turns are planned over several calls, and the event
loop has its turn between them. In lock-step, and in the result, nothing differs."""

from pathlib import Path
from typing import Any

import msgspec

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_SECOND

CELL = """
robots:
  g60: {kind: arm, model: g60}
"""
ARCS = 5
PROGRAM = "G90\nG1 F6000 X400 Y0 Z400 A180 B0 C0\n" + "G2 X400 Y0 I1 J0 P300\n" * ARCS


def started(folder: Path, *, interruptible: bool, rate: Any = 1.0) -> Cell:
    (folder / "cell.yaml").write_text(CELL)
    cell = build_cell(load_config(str(folder / "cell.yaml")))
    cell.clock_state.set_rate(rate)
    cell.interruptible = interruptible
    arm: Any = cell.components["g60"]
    assert arm.connect(cell.now) is None
    cell.advance(NS_PER_SECOND)
    assert arm.enable(cell.now) is None
    cell.advance(2 * NS_PER_SECOND)
    program: Any = cell.components["g60.program"]
    assert program.load_text(PROGRAM, "arcs") is None
    assert program.run(cell.now) is None
    return cell


def waiting(cell: Cell) -> int:
    arm: Any = cell.components["g60"]
    return len(arm._drives.runner._waiting) + len(arm._drives._orders)


def arrived(cell: Cell, to: int) -> int:
    """Calls of `advance` until the cell has reached the time."""
    calls = 0
    while cell.now < to or cell.interrupted():
        cell.advance(to)
        calls += 1
    return calls


def test_each_call_plans_some_of_the_lines(tmp_path: Path) -> None:
    cell = started(tmp_path, interruptible=True)
    left = [waiting(cell)]
    to = cell.now + NS_PER_SECOND
    while cell.now < to or cell.interrupted():
        cell.advance(to)
        left.append(waiting(cell))
    assert len(set(left)) >= ARCS
    assert left[-1] == 0


def test_an_emergency_stop_between_the_calls_drops_the_rest(tmp_path: Path) -> None:
    cell = started(tmp_path, interruptible=True)
    while not cell.interrupted():
        cell.advance(cell.now + NS_PER_SECOND)
    assert waiting(cell) > 0
    arm: Any = cell.components["g60"]
    arm.emergency_stop(cell.now)
    assert waiting(cell) == 0
    assert not cell.interrupted()


def test_the_outcome_is_that_of_one_call(tmp_path: Path) -> None:
    whole, parted = (started(tmp_path, interruptible=each) for each in (False, True))
    to = whole.now + 3 * NS_PER_SECOND
    assert arrived(whole, to) == 1
    assert arrived(parted, to) > ARCS - 2
    assert msgspec.json.encode(parted.snapshot()) == msgspec.json.encode(whole.snapshot())


def test_in_lock_step_no_instant_is_interrupted(tmp_path: Path) -> None:
    cell = started(tmp_path, interruptible=True, rate="step")
    assert arrived(cell, cell.now + NS_PER_SECOND) == 1
