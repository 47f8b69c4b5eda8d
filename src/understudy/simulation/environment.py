"""What stands around the robots of a cell: a part that can be changed while the cell runs."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Part
from understudy.simulation.collision.contact import ContactReport, report_of
from understudy.simulation.collision.thing import Thing
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject


@runtime_checkable
class Neighbour(Protocol):
    """Whoever must know what stands around."""

    def surround(self, environment: Environment, now: int | None) -> None:
        """Since when it is so; no moment: it was so before."""
        ...


class Saved(Struct):
    """What a snapshot holds: nothing while all is as the cell file has it."""

    changed: bool = False
    objects: list[Thing] = []
    zones: list[Thing] = []


class Status(Struct, frozen=True):
    """The names of what is there."""

    objects: tuple[str, ...]
    zones: tuple[str, ...]


class CellEnvironment:
    """A `Part` without a will of its own."""

    def __init__(self, environment: Environment) -> None:
        self._configured = self._now = environment
        self._neighbours: list[Neighbour] = []

    @property
    def environment(self) -> Environment:
        return self._now

    def join(self, parts: Mapping[str, Part]) -> None:
        """Told once, when the cell is put together, who lives here."""
        self._neighbours = [part for part in parts.values() if isinstance(part, Neighbour)]
        self._tell(None)

    # ── what changes ──

    def replace(self, environment: Environment, now: int) -> None:
        """All that stands here from now on."""
        self._now = environment
        self._tell(now)

    def add(self, things: Iterable[CollisionObject], now: int, *, zone: bool = False) -> None:
        """More things; one of the same name is replaced."""
        new = {thing.name: thing for thing in things}
        kept = [
            tuple(thing for thing in group if thing.name not in new)
            for group in (self._now.objects, self._now.zones)
        ]
        kept[zone] = (*kept[zone], *new.values())
        self.replace(Environment(*kept), now)

    def remove(self, name: str, now: int) -> CollisionObject | Refused:
        there = {thing.name: thing for thing in self._now.everything()}
        if name not in there:
            names = ", ".join(there) or "nothing"
            return Refused(f"there is no object {name!r}; there are: {names}")
        objects, zones = (
            tuple(thing for thing in group if thing.name != name)
            for group in (self._now.objects, self._now.zones)
        )
        self.replace(Environment(objects, zones), now)
        return there[name]

    # ── what it tells ──

    def overlapping(self) -> tuple[ContactReport, ...]:
        """Objects that stand in each other; a zone is no object."""
        from understudy.space.collision.detector import CollisionDetector  # brings compiled code

        found = CollisionDetector(objects=self._now.objects).check_objects()
        return tuple(report_of(result) for result in found)

    # ── part ──

    def status(self, now: int) -> Status:
        names = ([thing.name for thing in g] for g in (self._now.objects, self._now.zones))
        objects, zones = names
        return Status(tuple(objects), tuple(zones))

    def save(self) -> Saved:
        if self._now is self._configured:
            return Saved()
        objects, zones = ([Thing.of(t) for t in g] for g in (self._now.objects, self._now.zones))
        return Saved(True, objects, zones)

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        there = self._configured
        if saved.changed:
            objects, zones = (
                tuple(thing.built() for thing in group) for group in (saved.objects, saved.zones)
            )
            there = Environment(objects, zones)
            there.everything()
        self._now = there
        self._tell(None)

    def _tell(self, now: int | None) -> None:
        for neighbour in self._neighbours:
            neighbour.surround(self._now, now)
