"""The parts of a cell on its stage, each as what it is."""

from typing import TypeVar

from understudy.ports import Part
from understudy.simulation.cell import Cell
from understudy.wire.exchange import InProcessCell

K = TypeVar("K")


def parts_of(cell: InProcessCell) -> dict[str, Part]:
    assert isinstance(cell.timed_cell, Cell)
    return cell.timed_cell.parts


def part(cell: InProcessCell, name: str, kind: type[K]) -> K:
    found = parts_of(cell)[name]
    assert isinstance(found, kind), f"{name} is a {type(found).__name__}"
    return found
