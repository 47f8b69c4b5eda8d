"""Commands for the environment of a running cell, and for objects that robots hold.

A file with an error changes nothing. Files and meshes are read beside the event loop; changes take
effect in the order in which they were asked for, also those behind one that takes time.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from msgspec import Meta, structs

from understudy.config import CellConfig, read_config
from understudy.config.document import parse
from understudy.config.environment_file import environment_of, rounded, with_environment
from understudy.config.files import (
    MODEL_FILES,
    URDF_FILES,
    YAML_FILES,
    found_beside,
    read_client_model,
    read_text,
)
from understudy.config.include import read_environment
from understudy.config.limits import LARGEST_MESH, LARGEST_YAML
from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.background import BackgroundRuns
from understudy.operator.background_worker import Progress
from understudy.operator.edits import Edit, Edits
from understudy.operator.mesh_builder import Build, MeshBuilder
from understudy.operator.table import Changes, Command, command, commands_of, query, safely
from understudy.operator.workpieces import workpieces_in
from understudy.ports import Component
from understudy.ports.hmi import Later
from understudy.simulation.collision.contact import report_of
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment, moved
from understudy.space.model.environment import (
    CollisionReaction,
    Environment,
    EnvironmentConfig,
    FixtureConfig,
    ObjectConfig,
    Read,
    Xyz,
    place,
)
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.pose import pose_mm_deg
from understudy.space.transform import Array, inverse, pose
from understudy.units import DEG, MM
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.motion.path import Floats
    from understudy.operator.cell import OperatedCell

MOST_OVERLAPS = 1000
"""Overlaps in one answer."""
CHANGED_ELSEWHERE = Refused("the environment was changed by something else since then")


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.environment) + commands_of(cell.environment.edits)


@runtime_checkable
class HoldsObjects(Protocol):
    """A part that carries objects with a robot's flange: the collision watch of an arm."""

    def attach(self, thing: CollisionObject, now: int) -> Refused | None: ...

    def detach(self, name: str, now: int) -> CollisionObject | Refused: ...

    def held(self) -> Sequence[CollisionObject]: ...

    def react(self, reaction: CollisionReaction) -> None: ...

    def flange(self, now: int) -> "Floats":
        """The flange in the cell: 4×4."""
        ...

    def status(self, now: int) -> Any: ...


class EnvironmentCommands:
    """The environment of a cell and the collision watches that hold objects of it."""

    def __init__(
        self,
        config: CellConfig,
        parts: Mapping[str, Component],
        pump: Pump,
        runs: BackgroundRuns,
        changes: Changes,
        files: FilesFolder,
    ) -> None:
        self._config = config
        self._files = files
        self._pump = pump
        self._runs = runs
        self._meshes = MeshBuilder(runs)
        self._changes = changes
        self._check: tuple[Environment, Later] | None = None
        here, engine = parts["environment"], parts["engine"]
        assert isinstance(here, CellEnvironment)
        assert isinstance(engine, SimulationEngine)
        self.here, self._engine = here, engine
        self.edits = Edits()
        self._saving = SavedObjects(config, here.environment)
        self._parts = workpieces_in(parts)
        self._watches = {
            name.partition(".")[0]: part
            for name, part in parts.items()
            if isinstance(part, HoldsObjects)
        }

    # ── environment ──

    @query()
    def environment(self) -> dict[str, Any]:
        """The objects and zones around the robots, and the change that `undo_change` takes back."""
        there = self.here.environment
        return {
            "objects": [_object(thing, zone=False) for thing in there.objects]
            + [_object(thing, zone=True) for thing in there.zones],
            **self.edits.shown(),
        }

    @query()
    def check_objects(self) -> Any:
        """Objects that overlap."""
        there = self.here.environment  # viewers who ask at the same time get one answer
        if self._check is None or self._check[0] is not there:
            later = self._runs.in_thread(
                "check_objects", lambda progress: overlaps(there, progress)
            )
            if isinstance(later, Refused):
                return later
            self._check = there, later
            later.then(lambda _: self._forget_check(later))
        return self._check[1]

    def _forget_check(self, later: Later) -> None:
        if self._check is not None and self._check[1] is later:
            self._check = None

    @command()
    def load_environment(
        self,
        file: str | None = None,
        text: Annotated[str, Meta(max_length=LARGEST_YAML)] | None = None,
        meshes: Mapping[str, bytes] = {},
    ) -> Any:
        """Replace the environment by a file or a text.

        `file`: of the folder for files. Or its content: `text`, and `meshes` by their names in it
        (in JSON: base64).
        """
        if (file is None) == (text is None):
            return Refused("give either file or text")

        def read() -> Build[Environment]:
            name = "environment" if file is None else file
            content = self._text(name) if text is None else text
            found, once = read_environment(content, name), cache(self._reader(name, meshes))
            self._saving.know((*found.objects, *found.zones, *found.fixtures), meshes)
            return lambda read_mesh: found.build(once, read_mesh)

        return self._put_up(read)

    def _text(self, file: str) -> str:
        if not file.endswith(YAML_FILES):
            raise ConfigError(f"{file!r} is no YAML file", allowed=" ".join(YAML_FILES))
        return self._files.read_text(file, LARGEST_YAML)

    def _reader(self, beside: str, own: Mapping[str, bytes]) -> Read:
        """Reads the models that a client names beside a file, or has sent itself."""
        folder = self._files.beside(beside)
        return lambda name: own[name] if name in own else read_client_model(name, folder)

    def _model(self, name: str) -> bytes:
        return read_client_model(name, self._files)

    @command()
    def reload_environment(self) -> Any:
        """Read the cell's own files again."""
        file = Path(self._config.document.file)

        def read() -> Build[Environment]:
            again = self._config
            if file.is_file():
                again = read_config(read_text(file), str(file))
            once = cache(again.read_file)
            return lambda read_mesh: again.environment(once, read_mesh)

        return self._put_up(read)

    def _put_up(self, read: Callable[[], Build[Environment]]) -> Any:
        def replace(there: Environment) -> Any:
            self._saving.placed(there.everything())
            return self._edited("load", lambda now: self.here.replace(there, now))

        return self._changes.do(
            lambda: self._meshes.built(read).turned(safely(replace, "environment"))
        )

    def _edited(self, what: str, change: Callable[[int], Refused | None]) -> Any:
        """Makes a change that can be undone as long as nothing else has changed the environment."""
        before = self.here.environment
        if refused := self._pump.act(change):
            return refused
        after = self.here.environment

        def put(there: Environment, instead_of: Environment) -> Refused | None:
            if self.here.environment is not instead_of:
                return CHANGED_ELSEWHERE
            self._pump.act(lambda now: self.here.replace(there, now))
            return None

        self.edits.add(Edit(what, lambda: put(before, after), lambda: put(after, before)))
        return self.environment()

    @command()
    def add_object(
        self, object: ObjectConfig, zone: bool = False, meshes: Mapping[str, bytes] = {}
    ) -> Any:
        """Add an object, or replace the one of that name.

        An object as in an environment file. `zone`: nothing may reach into it. `meshes`: the
        content of its mesh file by name (in JSON: base64); without it a file of the folder.
        """

        def add(thing: CollisionObject) -> Any:
            self._saving.know([object], meshes)
            return self._edited(
                f"add {thing.name}", lambda now: self.here.add([thing], now, zone=zone)
            )

        return self._changes.do(lambda: self._with_object(object, add, meshes))

    @command()
    def add_fixture(self, fixture: FixtureConfig, files: Mapping[str, bytes] = {}) -> Any:
        """Add a URDF that stands in the cell: its links become objects.

        A fixture as in an environment file. `files`: the content of the URDF and of its meshes by
        name (in JSON: base64); without them files of the folder.
        """
        read = self._of_client(files)

        def add(things: Sequence[CollisionObject]) -> Any:
            self._saving.know([fixture], files)
            self._saving.placed(things)
            return self._edited(f"add {fixture.name}", lambda now: self.here.add(things, now))

        def building() -> Build[tuple[CollisionObject, ...]]:
            once = cache(read)
            return lambda read_mesh: fixture.build(once, read_mesh)

        return self._changes.do(lambda: self._meshes.built(building).turned(safely(add, "fixture")))

    def _of_client(self, own: Mapping[str, bytes]) -> Read:
        """Reads what a client has sent, also under a longer name, or a file of the folder."""

        def read(name: str) -> bytes:
            last = PurePosixPath(name).name
            return own[last] if last in own else self._model(name)

        return read

    @command()
    def move_object(
        self,
        name: str,
        position_mm: Xyz,
        rotation_deg: Xyz = (0.0, 0.0, 0.0),
        dimensions_mm: Xyz | None = None,
        radius_mm: float | None = None,
        height_mm: float | None = None,
    ) -> Any:
        """Put an object or a zone somewhere else, or give it another size.

        The new place of the object in the cell, as in an environment file; a link takes its whole
        fixture along. The sizes that its type has; without them it keeps its own.
        """
        sizes: dict[str, Any] = {}
        if dimensions_mm is not None:
            sizes["dimensions"] = tuple(side * MM for side in dimensions_mm)
        for key, value in (("radius", radius_mm), ("height", height_mm)):
            sizes |= {} if value is None else {key: value * MM}

        def move() -> Any:
            things = {thing.name: thing for thing in self.here.environment.everything()}
            if name not in things:
                return Refused(str(unknown("object", name, things)))
            try:
                by = place(position_mm, rotation_deg) @ inverse(things[name].place)
            except ConfigError as problem:
                return Refused(str(problem))
            names = self._saving.together(name)
            changed = [moved(thing, by) for each, thing in things.items() if each in names]
            if sizes and len(changed) == 1:
                changed = [replace(changed[0], **sizes)]
                try:
                    assert changed[0].shape
                except ConfigError as problem:
                    return Refused(str(problem))
            return self._edited(f"move {name}", lambda now: self._replace(changed, now))

        return self._changes.do(move)

    def _replace(self, changed: Sequence[CollisionObject], now: int) -> None:
        """Replaces objects by others of the same names, in their order."""
        new = {thing.name: thing for thing in changed}
        there = self.here.environment
        objects, zones = (
            tuple(new.get(thing.name, thing) for thing in group)
            for group in (there.objects, there.zones)
        )
        self.here.replace(Environment(objects, zones), now)

    @command()
    def save_environment(self, file: str | None = None) -> Any:
        """Write the objects and zones into the cell's environment file, or else the cell file.

        Only what differs is changed there; comments stay. `file`: another file, of the folder for
        files. `lost` in the answer: comments of what was removed; `notes`: what is not saved.
        """
        held = {thing.name for watch in self._watches.values() for thing in watch.held()}

        def save(progress: Progress) -> Any:
            try:
                return self._saving.save(self.here.environment, held, self._files, file)
            except ConfigError as problem:
                return Refused(str(problem))

        return self._changes.do(lambda: self._runs.in_thread("save_environment", save))

    def _with_object(
        self,
        config: ObjectConfig,
        then: Callable[[CollisionObject], Any],
        meshes: Mapping[str, bytes] = {},
    ) -> Any:
        """Builds an object; one with a mesh is built beside the event loop."""
        if config.mesh:
            once = cache(self._of_client(meshes))
            built = self._meshes.built(lambda: lambda read_mesh: config.build(once, read_mesh))
            return built.turned(safely(then, "object"))
        try:
            return then(config.build(self._model))
        except ConfigError as problem:
            return Refused(str(problem))

    @command()
    def remove_object(self, name: str) -> Any:
        """Remove an object."""

        def remove(now: int) -> Refused | None:
            found = self.here.remove(name, now)
            return found if isinstance(found, Refused) else None

        return self._changes.do(lambda: self._edited(f"remove {name}", remove))

    @command()
    def clear_environment(self) -> Any:
        """Remove all objects and zones."""

        return self._changes.do(
            lambda: self._edited("clear", lambda now: self.here.replace(Environment(), now))
        )

    # ── held objects ──

    @command()
    def attach(self, robot: str, name: str = "", object: ObjectConfig | None = None) -> Any:
        """A robot holds an object from now on.

        The `name` of an object of the environment, or a new `object`, seen from the flange.
        """
        watch = self._watch(robot)
        if isinstance(watch, Refused):
            return watch
        if bool(name) == (object is not None):
            return Refused("attach needs either name or object")

        def hold(thing: CollisionObject) -> Any:
            if self._is_part(thing.name):
                return Refused(f"there is a part {thing.name!r} already: choose another name")
            refused = self._pump.act(lambda now: watch.attach(thing, now))
            return refused or watch.status(self._pump.now())

        def take() -> Any:
            if object is not None:
                return self._with_object(object, hold)
            refused = self._pump.act(lambda now: self._take(watch, name, now))
            return refused or watch.status(self._pump.now())

        return self._changes.do(take)

    def _take(self, watch: HoldsObjects, name: str, now: int) -> Refused | None:
        if name in watch.status(now).held:
            return Refused(f"{name} is held already")
        thing = self.here.remove(name, now)
        if isinstance(thing, Refused):
            return thing
        return watch.attach(moved(thing, inverse(watch.flange(now))), now)

    @command()
    def detach(self, robot: str, name: str) -> Any:
        """A robot puts an object down where it is."""
        watch = self._watch(robot)
        if isinstance(watch, Refused):
            return watch

        def put_down(now: int) -> Refused | None:
            if self._is_part(name):
                return Refused(f"{name} is a part: let {robot} release it")
            held = {thing.name: thing for thing in watch.held()}
            if name in held:
                placed = moved(held[name], watch.flange(now))
                if refused := self.here.add([placed], now):
                    return refused
            outcome = watch.detach(name, now)
            return outcome if isinstance(outcome, Refused) else None

        return self._changes.do(lambda: self._pump.act(put_down) or watch.status(self._pump.now()))

    def _is_part(self, name: str) -> bool:
        return self._parts is not None and name in self._parts.names()

    @command()
    def clear_collisions(self) -> dict[str, Any]:
        """Clear the shown contacts."""
        self._engine.clear_collisions(self._pump.now())
        now = self._pump.now()
        return {name: watch.status(now) for name, watch in self._watches.items()}

    @command()
    def on_collision(self, reaction: CollisionReaction, robot: str | None = None) -> Any:
        """What arms do at their next contact: report it, or stop.

        `robot`: that one alone. The cell file has the reaction at the start.
        """
        watches = [self._watch(robot)] if robot is not None else list(self._watches.values())
        for watch in watches:
            if isinstance(watch, Refused):
                return watch
            watch.react(reaction)
        now = self._pump.now()
        return {name: watch.status(now) for name, watch in self._watches.items()}

    def _watch(self, robot: str) -> HoldsObjects | Refused:
        if robot in self._watches:
            return self._watches[robot]
        return Refused(str(unknown("robot with a collision watch", robot, self._watches)))


def overlaps(there: Environment, progress: Progress) -> dict[str, Any]:
    """The objects that overlap; zones are not compared."""
    from understudy.space.collision.detector import CollisionDetector  # loads compiled code

    found = CollisionDetector(objects=there.objects).check_objects(MOST_OVERLAPS, progress)
    return {"overlapping": tuple(report_of(result) for result in found)}


def _object(thing: CollisionObject, *, zone: bool) -> dict[str, Any]:
    """An object in millimetres and degrees, as in an environment file."""
    values = pose_mm_deg(pose(thing.place))
    return {
        "name": thing.name,
        "type": str(thing.type),
        "zone": zone,
        "position_mm": values[:3],
        "rotation_deg": values[3:],
        "dimensions_mm": [float(value) / MM for value in thing.dimensions],
        "radius_mm": float(thing.radius) / MM,
        "height_mm": float(thing.height) / MM,
        "triangles": np.size(thing.indices) // 3,
    }


# ── objects as the files of the cell describe them ──────────────────────────────────────────────


MESHES = (ObjectType.MESH, ObjectType.CONVEX)
COMMENT = re.compile(r"(?:^|\s)#\s*([^\n]*\S)")
Described = ObjectConfig | FixtureConfig
T = TypeVar("T", ObjectConfig, FixtureConfig)


class ObjectFile(NamedTuple):
    """A file that describes objects: its folder and name, and the keys of its section."""

    folder: FilesFolder
    name: str
    keys: tuple[str, ...]

    def text(self) -> str:
        known = self.folder.has(self.name)
        return self.folder.read_text(self.name, LARGEST_YAML) if known else ""

    def environment(self) -> EnvironmentConfig:
        return environment_of(parse(self.text(), self.name), self.keys)


class SavedObjects:
    """What was known of the objects when they came into the cell: the files of their meshes, and
    where the links of fixtures stood."""

    def __init__(self, config: CellConfig, there: Environment) -> None:
        self._config = config
        self._known: dict[str, Described] = {}
        self._sent: dict[str, bytes] = {}
        self._first: dict[str, Array] = {}
        around = config.head.environment
        self.know((*around.objects, *around.zones, *around.fixtures), {})
        self.placed(there.everything())

    def know(self, described: Iterable[Described], files: Mapping[str, bytes]) -> None:
        """Objects and fixtures that come into the cell, and the files that were sent with them."""
        self._known |= {each.name: each for each in described}
        self._sent |= files

    def placed(self, things: Iterable[CollisionObject]) -> None:
        """Objects as they came into the cell."""
        self._first |= {thing.name: thing.place for thing in things}

    def together(self, name: str) -> set[str]:
        """The objects that move with one: all links of its fixture, or itself."""
        fixture = self._fixture_of(name)
        return (
            {name} if fixture is None else {each for each in self._first if _is_link(each, fixture)}
        )

    def _fixture_of(self, link: str) -> str | None:
        fixtures = (n for n, each in self._known.items() if isinstance(each, FixtureConfig))
        return next((name for name in fixtures if _is_link(link, name)), None)

    # ── saving ──

    def save(
        self,
        there: Environment,
        held: set[str],
        files: FilesFolder,
        file: str | None,
    ) -> dict[str, Any]:
        """Writes every file whose objects differ. ``held``: objects that robots hold now; in the
        files they stay where they are."""
        targets = self._targets() if file is None else [ObjectFile(files, file, ())]
        taken = {name: n for n, each in enumerate(targets) for name in _names(each.environment())}
        notes: list[str] = []
        texts: list[tuple[ObjectFile, str, str]] = []
        for number, target in enumerate(targets):
            own = lambda name, number=number: taken.get(name, 0) == number  # noqa: E731
            before, wanted = target.text(), self._wanted(target, there, held, own, notes)
            after = with_environment(before, target.name, target.keys, wanted)
            if after != before:
                texts.append((target, before, after))
        saved, lost = [], list[str]()
        for target, before, after in texts:
            self._write_models(target, after)
            saved.append(str(target.folder.write(target.name, after.encode(), lambda head: True)))
            lost += [each for each in COMMENT.findall(before) if each not in after]
        return {"files": saved, "lost": lost, "notes": notes}

    def _targets(self) -> list[ObjectFile]:
        """The environment file that the cell file includes, and the cell file; new objects go into
        the first of them."""
        cell = Path(self._config.document.file)
        if not cell.is_file():
            raise ConfigError(
                "a shipped cell is not changed",
                allowed="`file`, a name in the folder for files; or a copy, by `understudy new`",
            )
        found = [ObjectFile(FilesFolder(cell.resolve().parent), cell.name, ("environment",))]
        document = parse(read_text(cell), str(cell))
        included = ((document.value or {}).get("include") or {}).get("environment")
        if isinstance(included, str):
            path = Path(found_beside(str(cell), included)).resolve()
            found.insert(0, ObjectFile(FilesFolder(path.parent), path.name, ()))
        return found

    def _wanted(
        self,
        target: ObjectFile,
        there: Environment,
        held: set[str],
        own: Callable[[str], bool],
        notes: list[str],
    ) -> EnvironmentConfig:
        """What a file says when it is saved."""
        before = target.environment()
        groups: dict[str, tuple[ObjectConfig, ...]] = {}
        for group in ("objects", "zones"):
            known = {each.name: each for each in getattr(before, group)}
            live = {each.name: each for each in getattr(there, group)}
            order = [name for name in known if name in live or name in held]
            order += [n for n in live if n not in known and own(n) and not self._fixture_of(n)]
            rows = [
                self._described(live[name], known.get(name), notes) if name in live else known[name]
                for name in order
            ]
            groups[group] = tuple(row for row in rows if row is not None)
        return EnvironmentConfig(**groups, fixtures=self._fixtures(before, there, own, notes))

    def _described(
        self, thing: CollisionObject, in_file: ObjectConfig | None, notes: list[str]
    ) -> ObjectConfig | None:
        """An object as a file describes it: as it was there, with its present place."""
        known = self._known.get(thing.name)
        for config in (in_file, known):
            if isinstance(config, ObjectConfig) and _is_same(config, thing):
                return _placed(config, thing.place)
        if thing.type in MESHES:
            notes.append(f"{thing.name}: the file of its mesh is not known, so it is not saved")
            return None
        position, rotation = _pose_mm_deg(thing.place)
        a, b, c = (rounded(float(side) / MM) for side in thing.dimensions)
        return ObjectConfig(
            name=thing.name,
            type=ObjectType(thing.type),
            position_mm=position,
            rotation_deg=rotation,
            dimensions_mm=(a, b, c),
            radius_mm=rounded(thing.radius / MM),
            height_mm=rounded(thing.height / MM),
            color=thing.look.color or None,
            marker=thing.look.marker,
            board=thing.look.board,
        )

    def _fixtures(
        self,
        before: EnvironmentConfig,
        there: Environment,
        own: Callable[[str], bool],
        notes: list[str],
    ) -> tuple[FixtureConfig, ...]:
        live = {thing.name: thing.place for thing in there.everything()}
        known = {each.name: each for each in before.fixtures}
        new = [
            each
            for each in self._known.values()
            if isinstance(each, FixtureConfig) and each.name not in known and own(each.name)
        ]
        found = []
        for fixture in (*known.values(), *new):
            links = [name for name in self._first if _is_link(name, fixture.name)]
            standing = [name for name in links if name in live]
            if links and not standing:
                continue
            ways = [live[name] @ inverse(self._first[name]) for name in standing]
            if len(standing) < len(links) or any(not _near(way, ways[0]) for way in ways):
                notes.append(f"{fixture.name}: single links of a fixture are not saved")
            elif ways:
                described = self._known.get(fixture.name, fixture)
                at = place(described.position_mm, described.rotation_deg)
                fixture = _placed(fixture, ways[0] @ at)
            found.append(fixture)
        return tuple(found)

    def _write_models(self, target: ObjectFile, text: str) -> None:
        """Writes the meshes and URDFs that were sent, beside the file that names them; others are
        those that such a URDF names."""
        named = {name for name in self._sent if name in text}
        inside = b"".join(self._sent[name] for name in named if name.endswith(URDF_FILES))
        for name, data in self._sent.items():
            wanted = name in named or name.encode() in inside
            if not wanted or PurePosixPath(name).suffix.lower() not in MODEL_FILES:
                continue
            if not target.folder.has(name):
                target.folder.write(name, data, lambda head: False)
            elif target.folder.read(name, LARGEST_MESH) != data:
                raise ConfigError(
                    f"there is another file {name} beside {target.name}",
                    allowed="another name for the mesh",
                )


def _names(environment: EnvironmentConfig) -> Iterable[str]:
    groups = environment.objects, environment.zones, environment.fixtures
    return (each.name for group in groups for each in group)


def _is_link(name: str, fixture: str) -> bool:
    return name.startswith(f"{fixture}.")


def _near(one: Array, other: Array) -> bool:
    return bool(np.allclose(one, other, atol=1e-9))


def _is_same(config: ObjectConfig, thing: CollisionObject) -> bool:
    """Whether an object has the shape that a file describes; of meshes the file counts."""
    if config.type != thing.type or thing.type in MESHES:
        return config.type == thing.type
    sizes = (*config.dimensions_mm, config.radius_mm, config.height_mm)
    live = (*thing.dimensions, thing.radius, thing.height)
    return bool(np.allclose(np.array(sizes) * MM, live, atol=1e-9))


def _pose_mm_deg(at: Array) -> tuple[Xyz, Xyz]:
    x, y, z, rx, ry, rz = pose(at)
    position = rounded(x / MM), rounded(y / MM), rounded(z / MM)
    return position, (rounded(rx / DEG), rounded(ry / DEG), rounded(rz / DEG))


def _placed(config: T, at: Array) -> T:
    """The description with another place; unchanged if it has that place already."""
    if _near(place(config.position_mm, config.rotation_deg), at):
        return config
    position, rotation = _pose_mm_deg(at)
    return structs.replace(config, position_mm=position, rotation_deg=rotation)
