"""Every shipped cell, saved at random instants while it works: restored in the same cell or in a
new one, it sends the same bytes and reaches the same state."""

from bisect import bisect_left
from pathlib import Path
from random import Random

import msgspec
import pytest
from tests.simulation.busy import CELLS, LENGTH, Action, BusyCell, script_of, with_faults

from understudy.app.stand_in import StandIn
from understudy.config.cell import CellConfig
from understudy.simulation.cell import read_snapshot, write_snapshot
from understudy.units import NS_PER_MS, NS_PER_SECOND

FEW, MANY = 10, 1000
PER_SCRIPT = 100
RUN_ON = 1 * NS_PER_SECOND


class Reference:
    """One run of a script: snapshot, number of sent events and status at each instant."""

    def __init__(self, config: CellConfig, script: list[Action], instants: list[int]) -> None:
        self.cell = BusyCell(config)
        self.instants = [*instants, LENGTH]
        self.written: list[bytes] = []
        self.sent: list[int] = []
        self.status: list[bytes] = []
        for instant in self.instants:
            self.cell.run(script, instant)
            self.written.append(write_snapshot(self.cell.snapshot()))
            self.sent.append(len(self.cell.sent()))
            self.status.append(self.cell.status())
        self.events = self.cell.sent()


def check(cell: BusyCell, reference: Reference, script: list[Action], begin: int, end: int) -> None:
    """Restores at one instant, runs to another; compares bytes, status and snapshot there."""
    start = len(cell.events)
    cell.restore(read_snapshot(reference.written[begin]))
    assert write_snapshot(cell.snapshot()) == reference.written[begin]
    cell.run(script, reference.instants[end])
    expected = reference.events[reference.sent[begin] : reference.sent[end]]
    where = f"from {reference.instants[begin]} ns to {reference.instants[end]} ns"
    assert cell.sent(start) == expected, where
    assert cell.status() == reference.status[end], where
    assert write_snapshot(cell.snapshot()) == reference.written[end], where


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_a_snapshot_restored_at_any_instant_gives_the_same_bytes(
    name: str, count: int, tmp_path: Path
) -> None:
    """The snapshot where a run ends is compared too, so that a short run says all: the same
    state goes on in the same way. Every tenth goes on to the end of the script nevertheless."""
    config = with_faults(name, tmp_path)
    for seed in range(max(1, count // PER_SCRIPT)):
        chance, script = Random(seed), script_of(config, seed)
        instants = sorted(
            chance.randrange(NS_PER_MS, LENGTH) for _ in range(min(count, PER_SCRIPT))
        )
        reference = Reference(config, script, instants)
        order = list(range(len(instants)))
        chance.shuffle(order)
        for number, begin in enumerate(order):
            end = bisect_left(reference.instants, instants[begin] + RUN_ON)
            end = len(instants) if number % 10 == 0 else min(end, len(instants))
            check(reference.cell, reference, script, begin, end)
            fresh = BusyCell(config)
            check(fresh, reference, script, begin, end)
            fresh.close()
        reference.cell.close()


def test_a_straight_line_from_a_stretched_wrist_is_restored() -> None:
    """It begins with pieces of some micrometres, whose coefficients are above 1e15."""
    with StandIn("default") as cell:
        cell.do("enable", robot="g60")
        cell.do("load_program", robot="g60", text="G1 X700 Y50 Z900 F2000\n", name="line")
        cell.do("run_program", robot="g60")
        cell.forward(0.1)
        kept = cell.do("snapshot")["snapshot"]
        cell.do("restore", snapshot=msgspec.json.decode(msgspec.json.encode(kept)))
        assert cell.do("program", robot="g60")["state"] == "running"
        cell.forward(30.0)
        assert cell.do("program", robot="g60")["state"] == "done"
