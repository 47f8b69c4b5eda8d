"""The parts of a cell on its stage, each as what it is."""

from typing import TypeVar

from understudy.ports import Component
from understudy.simulation.cell import Cell
from understudy.wire.exchange import InProcessCell

K = TypeVar("K")


def components_of(cell: InProcessCell) -> dict[str, Component]:
    assert isinstance(cell.timed_cell, Cell)
    return cell.timed_cell.components


def part(cell: InProcessCell, name: str, kind: type[K]) -> K:
    found = components_of(cell)[name]
    assert isinstance(found, kind), f"{name} is a {type(found).__name__}"
    return found
