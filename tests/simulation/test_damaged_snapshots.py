"""Crafted snapshots: refused with the place of the damage and nothing changed, or the cell runs on.

Snapshots are taken while every shipped cell is busy; a seeded mutator changes types, keys, numbers,
times, states, ids, buffers and lengths.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from tests.simulation.busy import CELLS, LENGTH, BusyCell, script_of, with_faults
from tests.simulation.mutants import mutant

from understudy import agenda
from understudy.agenda import Wakes
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.ports import Snapshot
from understudy.simulation.cell import write_snapshot
from understudy.simulation.environment import SavedObject
from understudy.space.model.shapes import ObjectType
from understudy.units import NS_PER_SECOND

FEW, MANY = 40, 1000
IDENTITY = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
AFTERWARDS = {FEW: 10 * NS_PER_SECOND, MANY: 60 * NS_PER_SECOND}
"""Simulated time for which a cell runs on after a snapshot that was restored."""
MOST_INSTANTS = 100_000
"""At which something happens in 60 s; the busiest cell has about 10,000."""


class Instants:
    """Counts the instants at which parts are woken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._wake_all = agenda.wake_all
        monkeypatch.setattr(agenda, "wake_all", self)

    def __call__(
        self,
        parts: Sequence[Wakes],
        now: int,
        due: Sequence[Wakes],
        interrupted: Callable[[], bool] = agenda.never,
    ) -> None:
        self.count += 1
        assert self.count <= MOST_INSTANTS, f"at {now} ns there is still no end"
        self._wake_all(parts, now, due, interrupted)


def crafted(document: dict[str, Any]) -> Snapshot | None:
    """What the control endpoint makes of a document; None if it is not a snapshot at all."""
    try:
        return msgspec.convert(document, Snapshot)
    except msgspec.ValidationError:
        return None


def refusal(cell: BusyCell, snapshot: Snapshot) -> str:
    """The reason, or nothing if the snapshot was restored."""
    try:
        cell.restore(snapshot)
    except ConfigError as problem:
        return str(problem)
    return ""


def is_refused(cell: BusyCell, snapshot: Snapshot) -> bool:
    before = write_snapshot(cell.snapshot())
    reason = refusal(cell, snapshot)
    if reason:
        assert write_snapshot(cell.snapshot()) == before, reason
        damaged, place, *_ = reason.split(": ")
        assert damaged == "the snapshot is damaged", reason
        assert place == "lines" or place in {*cell.cell.components, *snapshot.parts}, reason
    return bool(reason)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_a_crafted_snapshot_is_refused_as_a_whole_or_the_cell_runs_on(
    name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, chance = with_faults(name, tmp_path), Random(name)
    script, instants = script_of(config, 0), Instants(monkeypatch)
    cell, saved = BusyCell(config), []
    for at in sorted(chance.randrange(NS_PER_SECOND, LENGTH) for _ in range(10)):
        cell.run(script, at)
        saved.append(cell.snapshot())
    refused = 0
    for number in range(count):
        document, change = mutant(msgspec.to_builtins(chance.choice(saved)), chance)
        snapshot, instants.count = crafted(document), 0
        if snapshot is None or is_refused(cell, snapshot):
            refused += 1
            continue
        try:
            cell.run(script, cell.cell.now + AFTERWARDS[count])
            assert cell.status()
            assert write_snapshot(cell.snapshot())
        except Exception as problem:
            raise AssertionError(f"mutant {number}: {change}") from problem
        cell.restore(saved[0])
    cell.close()
    assert count // 2 < refused < count


@pytest.mark.parametrize(
    "change",
    [
        lambda kuka: kuka["modal"].update(axes=kuka["modal"]["axes"][:5]),
        lambda kuka: kuka.update(flying=2**31),
    ],
    ids=["five axes", "beyond an integer of a frame"],
)
def test_values_that_compiled_code_and_frames_cannot_take_are_refused(
    change: Callable[[dict[str, Any]], None],
) -> None:
    cell = BusyCell(load_config("default"))
    document = msgspec.to_builtins(cell.snapshot())
    change(document["parts"]["kuka"])
    snapshot = crafted(document)
    assert snapshot is not None
    assert "kuka" in refusal(cell, snapshot)
    cell.close()


def test_a_triangle_without_its_vertex_is_refused() -> None:
    """Compiled code follows the corners of triangles without looking at their range."""
    with pytest.raises(ValueError, match="part: a triangle has a corner that is not a vertex"):
        SavedObject(
            "part", ObjectType.MESH, IDENTITY, vertices=bytes(72), indices=bytes([0, 0, 0, 1] * 3)
        )
