"""Commands for the parts of a cell, and the query of their true state."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from understudy.errors import ConfigError, Refused
from understudy.operator.edits import Edit, Edits
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports import Component
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.space.model.environment import Xyz, place
from understudy.space.pose import pose_mm_deg
from understudy.units import MM
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.simulation.workpieces.workpieces import Workpieces
    from understudy.space.transform import Array

NO_PARTS = Refused("this cell has no parts: add the line `parts: []` to its cell file")


def commands(cell: "OperatedCell") -> list[Command]:
    edits = cell.environment.edits
    return commands_of(WorkpieceCommands(cell.components, cell.pump, edits))


class WorkpieceCommands:
    """The parts of a cell, if it has any."""

    def __init__(self, parts: Mapping[str, Component], pump: Pump, edits: Edits) -> None:
        self._parts = workpieces_in(parts)
        self._edits = edits
        self._pump = pump

    @query()
    def parts(self) -> dict[str, Any]:
        """The parts, as they truly are."""
        if self._parts is None:
            return {"version": 0, "parts": []}
        return part_rows(self._parts, self._pump.now())

    @command()
    def place_part(self, name: str, position_mm: Xyz, rotation_deg: Xyz = (0.0, 0.0, 0.0)) -> Any:
        """Put a part somewhere else.

        The new centre of a part in the cell.
        """
        parts, now = self._parts, self._pump.now()
        before = parts.place(name, now) if parts and name in parts.names() else None
        try:
            there = place(position_mm, rotation_deg)
        except ConfigError as problem:
            return Refused(str(problem))

        def put(at: "Array") -> Any:
            return self._change(lambda parts, now: parts.move(name, at, now))

        def taken_back(at: "Array") -> Refused | None:
            answer = put(at)
            return answer if isinstance(answer, Refused) else None

        answer = put(there)
        if before is not None and not isinstance(answer, Refused):
            self._edits.add(
                Edit(f"move {name}", lambda: taken_back(before), lambda: taken_back(there))
            )
        return answer

    @command()
    def add_part(self, part: WorkpieceConfig) -> Any:
        """Add a part or a grid of parts.

        A part, or a grid of parts, as in a cell file.
        """
        return self._change(lambda parts, now: parts.add(part, now))

    @command()
    def remove_part(self, name: str) -> Any:
        """Take a part out of the cell."""
        return self._change(lambda parts, now: parts.remove(name, now))

    def _change(self, change: "Callable[[Workpieces, int], Refused | None]") -> Any:
        parts = self._parts
        if parts is None:
            return NO_PARTS
        return self._pump.act(lambda now: change(parts, now)) or self.parts()


def workpieces_in(parts: Mapping[str, Component]) -> "Workpieces | None":
    """The parts of a cell; None if it has none."""
    if "parts" not in parts:
        return None
    from understudy.simulation.workpieces.workpieces import Workpieces

    found = parts["parts"]
    assert isinstance(found, Workpieces)
    return found


def part_rows(parts: "Workpieces", now: int) -> dict[str, Any]:
    """The answer of the query `parts`. `transform`: rows of a 4×4 matrix in metres, of a held part
    from the flange."""
    return {
        "version": parts.version,
        "parts": [_row(parts, name, now) for name in parts.names()],
    }


def _row(parts: "Workpieces", name: str, now: int) -> dict[str, Any]:
    part = parts.reading(name, now)
    values = pose_mm_deg(part.pose)
    within = parts.within_flange(name)
    shown = parts.place(name, now) if within is None else within
    return {
        "name": name,
        "class": part.class_name,
        "type": part.type,
        "state": part.state,
        "holder": part.holder,
        "position_mm": values[:3],
        "rotation_deg": values[3:],
        "size_mm": [side / MM for side in part.size],
        "mass_kg": part.mass,
        "color": part.color,
        "transform": shown.reshape(-1).tolist(),
    }
