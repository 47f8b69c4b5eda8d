"""The objects of a running cell as the files of the cell describe them, to be saved there."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import structs

from understudy.config import CellConfig
from understudy.config.document import parse
from understudy.config.environment_file import environment_of, rounded, with_environment
from understudy.config.files import MODEL_FILES, URDF_FILES, found_beside, read_text
from understudy.config.limits import LARGEST_MESH, LARGEST_YAML
from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError
from understudy.space.model.environment import (
    Environment,
    EnvironmentConfig,
    FixtureConfig,
    ObjectConfig,
    Xyz,
    place,
)
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.transform import Array, inverse, pose
from understudy.units import DEG, MM

MESHES = (ObjectType.MESH, ObjectType.CONVEX)
COMMENT = re.compile(r"(?:^|\s)#\s*([^\n]*\S)")
Described = ObjectConfig | FixtureConfig
T = TypeVar("T", ObjectConfig, FixtureConfig)


class Target(NamedTuple):
    """A file with objects: its folder, its name there, and the keys of its section."""

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
        targets = self._targets() if file is None else [Target(files, file, ())]
        taken = {name: n for n, each in enumerate(targets) for name in _names(each.environment())}
        notes: list[str] = []
        texts: list[tuple[Target, str, str]] = []
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

    def _targets(self) -> list[Target]:
        """The environment file that the cell file includes, and the cell file; new objects go into
        the first of them."""
        cell = Path(self._config.document.file)
        if not cell.is_file():
            raise ConfigError(
                "a shipped cell is not changed",
                allowed="`file`, a name in the folder for files; or a copy, by `understudy new`",
            )
        found = [Target(FilesFolder(cell.resolve().parent), cell.name, ("environment",))]
        document = parse(read_text(cell), str(cell))
        included = ((document.value or {}).get("include") or {}).get("environment")
        if isinstance(included, str):
            path = Path(found_beside(str(cell), included)).resolve()
            found.insert(0, Target(FilesFolder(path.parent), path.name, ()))
        return found

    def _wanted(
        self,
        target: Target,
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

    def _write_models(self, target: Target, text: str) -> None:
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
    """The same with another place; unchanged if it is there already."""
    if _near(place(config.position_mm, config.rotation_deg), at):
        return config
    position, rotation = _pose_mm_deg(at)
    return structs.replace(config, position_mm=position, rotation_deg=rotation)
