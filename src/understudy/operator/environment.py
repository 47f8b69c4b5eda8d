"""Commands for the environment of a running cell, and for objects that robots hold.

A file with an error changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct

from understudy.config import CellConfig, read_config
from understudy.config.cell import read_environment
from understudy.config.files import found_beside, read_model, read_text
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.table import Command
from understudy.ports import Part
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment, SavedObject, moved
from understudy.space.model.environment import Environment, ObjectConfig
from understudy.space.transform import inverse, pose
from understudy.units import DEG, MM
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.motion.path import Floats
    from understudy.space.model.shapes import CollisionObject


class FromFile(Struct, frozen=True, forbid_unknown_fields=True):
    file: str


class NewObject(Struct, frozen=True, forbid_unknown_fields=True):
    """An object as in an environment file. `zone`: nothing may reach into it."""

    object: ObjectConfig
    zone: bool = False


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class Attach(Struct, frozen=True, forbid_unknown_fields=True):
    """The `name` of an object of the environment, or a new `object`, seen from the flange."""

    robot: str
    name: str = ""
    object: ObjectConfig | None = None


class Detach(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    name: str


@runtime_checkable
class HoldsObjects(Protocol):
    """A part that carries objects with a robot's flange: the collision watch of an arm."""

    def attach(self, thing: "CollisionObject", now: int) -> Refused | None: ...

    def detach(self, name: str, now: int) -> "CollisionObject | Refused": ...

    def held(self) -> "Sequence[CollisionObject]": ...

    def flange(self, now: int) -> "Floats":
        """The flange in the cell: 4×4."""
        ...

    def status(self, now: int) -> Any: ...


class EnvironmentCommands:
    """The environment of a cell and the collision watches that hold objects of it."""

    def __init__(self, config: CellConfig, parts: Mapping[str, Part], pump: Pump) -> None:
        self._config = config
        self._pump = pump
        here, engine = parts["environment"], parts["engine"]
        assert isinstance(here, CellEnvironment)
        assert isinstance(engine, SimulationEngine)
        self.here, self._engine = here, engine
        self._watches = {
            name.partition(".")[0]: part
            for name, part in parts.items()
            if isinstance(part, HoldsObjects)
        }

    def commands(self) -> list[Command]:
        add = Command
        return [
            add(
                "environment",
                "the objects and zones around the robots",
                lambda _: self._listed(),
                role="viewer",
            ),
            add("check_objects", "objects that overlap", lambda _: self._overlaps(), role="viewer"),
            add("load_environment", "replace the environment by a file", self._load, FromFile),
            add("reload_environment", "read the cell's own files again", lambda _: self._reload()),
            add(
                "add_object", "add an object, or replace the one of that name", self._add, NewObject
            ),
            add("remove_object", "remove an object", self._remove, Named),
            add("clear_environment", "remove all objects and zones", lambda _: self._clear()),
            add("attach", "a robot holds an object from now on", self._attach, Attach),
            add("detach", "a robot puts an object down where it is", self._detach, Detach),
            add("clear_collisions", "clear the shown contacts", lambda _: self._clear_collisions()),
        ]

    # ── environment ──

    def _listed(self) -> dict[str, Any]:
        there = self.here.environment
        return {
            "objects": [_object(thing, zone=False) for thing in map(SavedObject.of, there.objects)]
            + [_object(thing, zone=True) for thing in map(SavedObject.of, there.zones)]
        }

    def _overlaps(self) -> dict[str, Any]:
        return {"overlapping": self.here.overlapping()}

    def _load(self, given: FromFile) -> Any:
        def read() -> Environment:
            path = found_beside(self._config.document.file, given.file, Path())
            found = read_environment(read_text(path), str(path))
            return found.build(lambda name: read_model(name, beside=str(path)))

        return self._put_up(read)

    def _reload(self) -> Any:
        file = Path(self._config.document.file)

        def read() -> Environment:
            again = self._config
            if file.exists():
                again = read_config(read_text(file), str(file))
            return again.environment()

        return self._put_up(read)

    def _put_up(self, read: Callable[[], Environment]) -> Any:
        try:
            there = read()
        except (ConfigError, ValueError) as problem:
            return Refused(str(problem))
        self._pump.act(lambda now: self.here.replace(there, now))
        return self._listed()

    def _add(self, given: NewObject) -> Any:
        try:
            thing = given.object.build(self._config.read_file)
        except ConfigError as problem:
            return Refused(str(problem))
        self._pump.act(lambda now: self.here.add([thing], now, zone=given.zone))
        return self._listed()

    def _remove(self, given: Named) -> Any:
        found = self._pump.act(lambda now: self.here.remove(given.name, now))
        return found if isinstance(found, Refused) else self._listed()

    def _clear(self) -> Any:
        self._pump.act(lambda now: self.here.replace(Environment(), now))
        return self._listed()

    # ── held objects ──

    def _attach(self, given: Attach) -> Any:
        watch = self._watch(given.robot)
        if isinstance(watch, Refused):
            return watch
        if bool(given.name) == (given.object is not None):
            return Refused("attach needs either name or object")
        refused = self._pump.act(lambda now: self._take(watch, given, now))
        return refused or watch.status(self._pump.now())

    def _take(self, watch: HoldsObjects, given: Attach, now: int) -> Refused | None:
        if given.object is not None:
            try:
                return watch.attach(given.object.build(self._config.read_file), now)
            except ConfigError as problem:
                return Refused(str(problem))
        if given.name in watch.status(now).held:
            return Refused(f"{given.name} is held already")
        thing = self.here.remove(given.name, now)
        if isinstance(thing, Refused):
            return thing
        return watch.attach(moved(thing, inverse(watch.flange(now))), now)

    def _detach(self, given: Detach) -> Any:
        watch = self._watch(given.robot)
        if isinstance(watch, Refused):
            return watch

        def put_down(now: int) -> Refused | None:
            thing = watch.detach(given.name, now)
            if isinstance(thing, Refused):
                return thing
            self.here.add([moved(thing, watch.flange(now))], now)
            return None

        return self._pump.act(put_down) or watch.status(self._pump.now())

    def _clear_collisions(self) -> dict[str, Any]:
        self._engine.clear_collisions(self._pump.now())
        now = self._pump.now()
        return {name: watch.status(now) for name, watch in self._watches.items()}

    def _watch(self, robot: str) -> HoldsObjects | Refused:
        if robot in self._watches:
            return self._watches[robot]
        return Refused(str(unknown("robot with a collision watch", robot, self._watches)))


def _object(thing: SavedObject, *, zone: bool) -> dict[str, Any]:
    """An object in millimetres and degrees, as in an environment file."""
    x, y, z, rx, ry, rz = pose(thing.built().place)
    return {
        "name": thing.name,
        "type": str(thing.type),
        "zone": zone,
        "position_mm": [value / MM for value in (x, y, z)],
        "rotation_deg": [value / DEG for value in (rx, ry, rz)],
        "dimensions_mm": [value / MM for value in thing.dimensions],
        "radius_mm": thing.radius / MM,
        "height_mm": thing.height / MM,
        "triangles": len(thing.indices),
    }
