"""Commands for the parts of a cell, and the query of their true state."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from understudy.errors import ConfigError, Refused
from understudy.operator.table import Command
from understudy.ports import Component
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.space.model.environment import Xyz, place
from understudy.space.pose import pose_mm_deg
from understudy.units import MM
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.simulation.workpieces.workpieces import Workpieces

NO_PARTS = Refused("this cell has no parts: add the line `parts: []` to its cell file")


def commands(cell: "OperatedCell") -> list[Command]:
    return WorkpieceCommands(cell.components, cell.pump).commands()


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class PlaceWorkpiece(Struct, frozen=True, forbid_unknown_fields=True):
    """The new centre of a part in the cell."""

    name: str
    position_mm: Xyz
    rotation_deg: Xyz = (0.0, 0.0, 0.0)


class NewWorkpiece(Struct, frozen=True, forbid_unknown_fields=True):
    """A part, or a grid of parts, as in a cell file."""

    part: WorkpieceConfig


class WorkpieceCommands:
    """The parts of a cell, if it has any."""

    def __init__(self, parts: Mapping[str, Component], pump: Pump) -> None:
        self._parts = workpieces_in(parts)
        self._pump = pump

    def commands(self) -> list[Command]:
        return [
            Command(
                "parts", "the parts, as they truly are", lambda _: self._listed(), role="viewer"
            ),
            Command("place_part", "put a part somewhere else", self._place, PlaceWorkpiece),
            Command("add_part", "add a part or a grid of parts", self._add, NewWorkpiece),
            Command("remove_part", "take a part out of the cell", self._remove, Named),
        ]

    def _listed(self) -> dict[str, Any]:
        if self._parts is None:
            return {"version": 0, "parts": []}
        return {
            "version": self._parts.version,
            "parts": [self._row(self._parts, name) for name in self._parts.names()],
        }

    def _row(self, parts: "Workpieces", name: str) -> dict[str, Any]:
        """`transform`: rows of a 4×4 matrix in metres, of a held part from the flange."""
        now = self._pump.now()
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

    def _place(self, given: PlaceWorkpiece) -> Any:
        if self._parts is None:
            return NO_PARTS
        parts = self._parts
        try:
            at = place(given.position_mm, given.rotation_deg)
        except ConfigError as problem:
            return Refused(str(problem))
        return self._pump.act(lambda now: parts.move(given.name, at, now)) or self._listed()

    def _add(self, given: NewWorkpiece) -> Any:
        if self._parts is None:
            return NO_PARTS
        parts = self._parts
        return self._pump.act(lambda now: parts.add(given.part, now)) or self._listed()

    def _remove(self, given: Named) -> Any:
        if self._parts is None:
            return NO_PARTS
        parts = self._parts
        return self._pump.act(lambda now: parts.remove(given.name, now)) or self._listed()


def workpieces_in(parts: Mapping[str, Component]) -> "Workpieces | None":
    """The parts of a cell; None if it has none."""
    if "parts" not in parts:
        return None
    from understudy.simulation.workpieces.workpieces import Workpieces

    found = parts["parts"]
    assert isinstance(found, Workpieces)
    return found
