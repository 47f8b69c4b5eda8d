"""A cell file: robots with their faces, a scenario, and how time is asked for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from understudy.cell.rules import Config as Scenario
from understudy.config.document import Document, Keys, parse
from understudy.config.files import read_model, read_text
from understudy.config.simulation import SimulationFile, read_simulation
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.wire.tcp import Address

CONTROL_PORT = 5550

PARTS_OF_EVERY_CELL = ("engine", "scenario")

Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\Z")]
Seed = Annotated[int, Meta(ge=0, lt=1 << 62)]
Schema = Callable[[str], type[Struct]]
"""Kind of robot or face → its Config class; a ConfigError where there is none."""


class FaceConfig(Struct, frozen=True):
    """A face of a robot, and where it listens."""

    kind: str
    address: Address
    config: Any


class RobotConfig(Struct, frozen=True):
    """A robot and the faces in front of it."""

    kind: str
    config: Any
    faces: dict[str, FaceConfig]


class Include(Struct, frozen=True, forbid_unknown_fields=True):
    """The documents' own files, which keep their keys and units."""

    simulation: str | None = None


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a cell file that belong to no robot."""

    robots: dict[Name, dict[str, Any]]
    include: Include = Include()
    description: str = ""
    seed: Seed = 0
    poll_step_ms: Annotated[float, Meta(gt=0, le=60_000)] = 10.0
    control: Address = Address(port=CONTROL_PORT)
    scenario: Scenario = Scenario()


class RobotHead(Struct, frozen=True):
    """The keys that every robot has; the rest belong to its kind."""

    kind: str
    faces: dict[Name, dict[str, Any] | None] = {}


@dataclass(frozen=True)
class CellConfig:
    """A whole cell, checked."""

    name: str
    head: Head
    robots: dict[str, RobotConfig]
    document: Document
    simulation: SimulationFile

    def read_file(self, name: str) -> bytes:
        """A shipped robot by name, or a file beside the cell file."""
        return read_model(name, beside=self.document.file)

    def with_seed(self, seed: int) -> "CellConfig":
        return replace(self, head=structs.replace(self.head, seed=read(seed, Seed, "seed")))

    def without_rules(self) -> "CellConfig":
        return replace(self, head=structs.replace(self.head, scenario=Scenario()))

    @property
    def digest(self) -> str:
        """Names the configuration; where it listens makes no difference to what it is."""
        parts = {
            "seed": self.head.seed,
            "poll_step_ms": self.head.poll_step_ms,
            "scenario": self.head.scenario,
            "robots": {
                name: [
                    robot.kind,
                    robot.config,
                    {n: [f.kind, f.config] for n, f in robot.faces.items()},
                ]
                for name, robot in self.robots.items()
            },
        }
        plain = msgspec.to_builtins(parts, str_keys=True)
        return sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()[:16]


def read_cell(text: str, file: str, *, robot_schema: Schema, face_schema: Schema) -> CellConfig:
    document = parse(text, file)
    head: Head = _at(document, (), read, document.value, Head)
    included = _included(document, head.include)
    robots = {}
    for name, body in head.robots.items():
        keys = ("robots", name)
        if name in PARTS_OF_EVERY_CELL:
            problem = ConfigError("every cell has a part of this name; choose another")
            raise document.error(keys, problem)
        whole = included.under(body) if body.get("kind") == "arm" else body
        robots[name] = _robot(
            document, keys, whole, robot_schema=robot_schema, face_schema=face_schema
        )
    stem = file.rsplit("/", 1)[-1].split(".", 1)[0]
    return CellConfig(stem, head, robots, document, included)


def _included(document: Document, include: Include) -> SimulationFile:
    """A relative file is looked for beside the cell file, then in the folder above."""
    if include.simulation is None:
        return SimulationFile()
    folder = Path(document.file).parent
    places = [folder / include.simulation, folder.parent / include.simulation]
    path = next((place for place in places if place.exists()), places[0])
    return read_simulation(read_text(path), str(path))


def _robot(
    document: Document,
    keys: Keys,
    body: dict[str, Any],
    *,
    robot_schema: Schema,
    face_schema: Schema,
) -> RobotConfig:
    common = {key: body[key] for key in RobotHead.__struct_fields__ if key in body}
    head: RobotHead = _at(document, keys, read, common, RobotHead)
    schema = _at(document, (*keys, "kind"), robot_schema, head.kind)
    own = _at(document, keys, _rest, body, RobotHead, schema)
    config = _at(document, keys, read, own, schema)
    faces = {
        name: _face(document, (*keys, "faces", name), face or {}, face_schema)
        for name, face in head.faces.items()
    }
    return RobotConfig(head.kind, config, faces)


def _face(document: Document, keys: Keys, body: dict[str, Any], schema: Schema) -> FaceConfig:
    kind = keys[-1]
    config_class = _at(document, keys, schema, kind)
    own = _at(document, keys, _rest, body, Address, config_class)
    wire = {key: value for key, value in body.items() if key not in own}
    address = _at(document, keys, read, wire, Address)
    return FaceConfig(kind, address, _at(document, keys, read, own, config_class))


def _rest(body: dict[str, Any], common: type[Struct], own: type[Struct]) -> dict[str, Any]:
    """The keys that are not ``common`` to all; those that are nobody's are an error."""
    known = common.__struct_fields__ + own.__struct_fields__
    for key in body:
        if key not in known:
            raise unknown("key", str(key), known, key=str(key))
    return {key: value for key, value in body.items() if key not in common.__struct_fields__}


def _at(document: Document, keys: Keys, reader: Callable[..., Any], *arguments: Any) -> Any:
    """Run a reader; what it finds wrong is told with its place in the document."""
    try:
        return reader(*arguments)
    except ConfigError as problem:
        raise document.error(keys, problem) from None
