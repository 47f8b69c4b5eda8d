"""The parts of a cell on its stage, each as what it is."""

from typing import TypeVar

from understudy.cell.cell import Cell
from understudy.ports import Part
from understudy.wire.rehearsal import Rehearsal

K = TypeVar("K")


def parts_of(cell: Rehearsal) -> dict[str, Part]:
    assert isinstance(cell.stage, Cell)
    return cell.stage.parts


def part(cell: Rehearsal, name: str, kind: type[K]) -> K:
    found = parts_of(cell)[name]
    assert isinstance(found, kind), f"{name} is a {type(found).__name__}"
    return found
