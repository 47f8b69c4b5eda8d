"""CellEnvironment: the objects and zones around the robots; they can change in a running cell."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np
from msgspec import Struct

from understudy.errors import ConfigError, Refused
from understudy.ports import Component
from understudy.space.model.appearance import PLAIN, Appearance
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject, Ints, ObjectType
from understudy.space.transform import Array


@runtime_checkable
class SeesEnvironment(Protocol):
    """A part that is informed of the environment."""

    def surround(self, environment: Environment, now: int | None) -> None:
        """The environment changed at ``now``; None: before the start."""
        ...


VERTEX, INDEX = "<f8", "<i4"
VERTEX_SIZE = 3 * np.dtype(VERTEX).itemsize
Row = tuple[float, float, float, float]


class SavedObject(Struct, frozen=True):
    """An object of the cell as plain values, for snapshots. Metres.

    `place`: the rows of a 4×4 matrix; the type determines which sizes are used. `vertices` and
    `indices`: rows of three numbers as little-endian bytes (float64, int32), since a mesh as lists
    of numbers would take a second to write.
    """

    name: str
    type: ObjectType
    place: tuple[Row, Row, Row, Row]
    dimensions: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0
    height: float = 0.0
    vertices: bytes = b""
    indices: bytes = b""
    look: Appearance = PLAIN

    @staticmethod
    def of(thing: CollisionObject) -> "SavedObject":
        a, b, c = thing.dimensions
        return SavedObject(
            name=thing.name,
            type=thing.type,
            place=thing.place.tolist(),
            dimensions=(float(a), float(b), float(c)),
            radius=float(thing.radius),
            height=float(thing.height),
            vertices=np.asarray(thing.vertices, dtype=VERTEX).tobytes(),
            indices=np.asarray(thing.indices, dtype=INDEX).tobytes(),
            look=thing.look,
        )

    def built(self) -> CollisionObject:
        return CollisionObject(
            type=self.type,
            name=self.name,
            transform=np.array(self.place),
            dimensions=self.dimensions,
            radius=self.radius,
            height=self.height,
            vertices=self.points(),
            indices=self.triangles(),
            look=self.look,
        )

    def __post_init__(self) -> None:
        """Compiled code follows the indices without looking at their range."""
        corners = np.frombuffer(self.indices, INDEX)
        vertices = len(self.vertices) // VERTEX_SIZE
        if corners.size and not 0 <= corners.min() <= corners.max() < vertices:
            raise ValueError(f"{self.name}: a triangle has a corner that is not a vertex")

    def points(self) -> Array:
        return np.frombuffer(self.vertices, VERTEX).reshape(-1, 3).astype(np.float64)

    def triangles(self) -> Ints:
        return np.frombuffer(self.indices, INDEX).reshape(-1, 3).astype(np.int64)


def moved(thing: CollisionObject, by: Array) -> CollisionObject:
    """An object with its place transformed ``by`` a 4×4 matrix."""
    return replace(thing, transform=by @ thing.place)


class Saved(Struct):
    """The environment in a snapshot: empty while it is unchanged since the cell file."""

    changed: bool = False
    objects: list[SavedObject] = []
    zones: list[SavedObject] = []


class Status(Struct, frozen=True):
    """Names of the objects and zones."""

    objects: tuple[str, ...]
    zones: tuple[str, ...]


class CellEnvironment:
    """A `Component` that acts only when it is called."""

    def __init__(self, environment: Environment) -> None:
        self._configured = self._now = environment
        self._parts: tuple[CollisionObject, ...] = ()
        self._informed: list[SeesEnvironment] = []
        self.changed: Callable[[int], None] = lambda now: None
        """Called when objects or zones have changed, but for the parts."""

    @property
    def environment(self) -> Environment:
        """Objects and zones, without the parts of the cell."""
        return self._now

    def with_parts(self) -> Environment:
        """Objects and zones, and the parts that rest somewhere: what robots can touch."""
        if not self._parts:
            return self._now
        taken = {thing.name for thing in self._now.everything()}
        parts = (
            replace(part, name=f"{part.name} (part)") if part.name in taken else part
            for part in self._parts
        )
        return Environment((*self._now.objects, *parts), self._now.zones)

    def join(self, parts: Mapping[str, Component]) -> None:
        """Connects the parts of the cell that are informed of the environment."""
        self._informed = [part for part in parts.values() if isinstance(part, SeesEnvironment)]
        self._inform(None)

    # ── changes ──

    def replace(self, environment: Environment, now: int) -> None:
        """Replaces all objects and zones."""
        self._now = environment
        self._inform(now)
        self.changed(now)

    def lay(self, parts: Iterable[CollisionObject], now: int | None) -> None:
        """Replaces the parts that rest in the cell; None: before the start or in a snapshot. They
        are state of the parts, so snapshots of the environment are without them."""
        self._parts = tuple(parts)
        self._inform(now)

    def add(
        self, things: Iterable[CollisionObject], now: int, *, zone: bool = False
    ) -> Refused | None:
        """Adds objects, or zones; one of the same name is replaced. Refused if they are too many
        for one environment."""
        new = {thing.name: thing for thing in things}
        for part in self._parts:
            if part.name in new:
                return Refused(f"{part.name} is the name of a part; choose another")
        kept = [
            tuple(thing for thing in group if thing.name not in new)
            for group in (self._now.objects, self._now.zones)
        ]
        kept[zone] = (*kept[zone], *new.values())
        try:
            found = Environment(*kept).checked()
        except ConfigError as problem:
            return Refused(str(problem))
        self.replace(found, now)
        return None

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

    # ── part ──

    def status(self, now: int) -> Status:
        names = ([thing.name for thing in g] for g in (self._now.objects, self._now.zones))
        objects, zones = names
        return Status(tuple(objects), tuple(zones))

    def save(self) -> Saved:
        if self._now is self._configured:
            return Saved()
        objects, zones = (
            [SavedObject.of(t) for t in g] for g in (self._now.objects, self._now.zones)
        )
        return Saved(True, objects, zones)

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        there = self._configured
        if saved.changed:
            objects, zones = (
                tuple(thing.built() for thing in group) for group in (saved.objects, saved.zones)
            )
            there = Environment(objects, zones).checked()
        self._now = there
        self._inform(None)

    def _inform(self, now: int | None) -> None:
        for part in self._informed:
            part.surround(self.with_parts(), now)
