"""The parts of a cell on its stage, each as what it is."""

from typing import TypeVar

from understudy.cell.cell import Cell
from understudy.wire.rehearsal import Rehearsal

P = TypeVar("P")


def part(cell: Rehearsal, name: str, kind: type[P]) -> P:
    assert isinstance(cell.stage, Cell)
    found = cell.stage.parts[name]
    assert isinstance(found, kind), f"{name} is a {type(found).__name__}"
    return found
