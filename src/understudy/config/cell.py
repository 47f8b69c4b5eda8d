"""A cell file: robots with their faces, a scenario, and how time is asked for."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from understudy.config.contents import contents
from understudy.config.document import Document, Keys, parse
from understudy.config.files import find_cell, found_beside, read_model, read_text
from understudy.config.real import Controller, Real, RealPlace, place_of
from understudy.config.simulation import SimulationFile, read_simulation
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown
from understudy.ports import Endpoint
from understudy.registry import module_of, with_present_names
from understudy.simulation.rules import Config as Scenario
from understudy.space.model.environment import Environment, EnvironmentConfig
from understudy.wire.outbound import Outbound
from understudy.wire.tcp import Address, Port
from understudy.wire.udp import Broadcast
from understudy.wire.zmq import Bound

CONTROL_PORT = 5550
STATE_PORT = 5562
HMI_PORT = 8080

PARTS_OF_EVERY_CELL = ("encounters", "engine", "environment", "scenario")

Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\Z")]
Seed = Annotated[int, Meta(ge=0, lt=1 << 62)]
Wire = Address | Outbound | Broadcast | Bound


class FaceConfig(Struct, frozen=True):
    """A face of a robot, and where it listens: one wire without a name, or several with."""

    kind: str
    wires: dict[str, Wire]
    config: Any

    @property
    def address(self) -> Wire:
        return self.wires[""]


class RobotConfig(Struct, frozen=True):
    """A robot and the faces in front of it; `real`: where the one is that it stands in for."""

    kind: str
    config: Any
    faces: dict[str, FaceConfig]
    real: RealPlace | None = None


class Include(Struct, frozen=True, forbid_unknown_fields=True):
    """The documents' own files, which keep their keys and units."""

    simulation: str | None = None
    scenario: str | None = None
    environment: str | None = None


class Hmi(Struct, frozen=True, forbid_unknown_fields=True):
    """The page: where it is served, and what opens it to whom. Tokens may come from outside."""

    host: str = "127.0.0.1"
    port: Port = HMI_PORT
    token: str | None = None
    viewer_token: str | None = None


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a cell file that belong to no robot."""

    robots: dict[Name, dict[str, Any]]
    include: Include = Include()
    description: str = ""
    seed: Seed = 0
    controller: Controller = "simulation"
    poll_step_ms: Annotated[float, Meta(gt=0, le=60_000)] = 10.0
    control: Address = Address(port=CONTROL_PORT)
    state: Address = Address(port=STATE_PORT)
    hmi: Hmi | None = None
    scenario: Scenario = Scenario()
    environment: EnvironmentConfig = EnvironmentConfig()


class RobotHead(Struct, frozen=True):
    """The keys that every robot has; the rest belong to its kind."""

    kind: str
    faces: dict[Name, dict[str, Any] | None] = {}
    real: Real | None = None


@dataclass(frozen=True)
class CellConfig:
    """A whole cell, checked."""

    name: str
    head: Head
    robots: dict[str, RobotConfig]
    document: Document
    simulation: SimulationFile

    def endpoints(self) -> dict[str, Wire]:
        """Every endpoint of the robots' faces by its full name, with its wire."""
        return {
            endpoint_name(robot_name, face_name, suffix): wire
            for robot_name, robot in self.robots.items()
            for face_name, face in robot.faces.items()
            for suffix, wire in face.wires.items()
        }

    def read_file(self, name: str) -> bytes:
        """A shipped robot by name, or a file beside the cell file."""
        return read_model(name, beside=self.document.file)

    def environment(self) -> Environment:
        """What stands in the cell, with its files read."""
        try:
            return self.head.environment.build(self.read_file)
        except ConfigError as problem:
            raise self.document.error(("environment",), problem) from None

    def with_seed(self, seed: int) -> "CellConfig":
        return replace(self, head=structs.replace(self.head, seed=read(seed, Seed, "seed")))

    def with_rules(self, rules: Scenario) -> "CellConfig":
        """These rules in place of the cell's own."""
        return replace(self, head=structs.replace(self.head, scenario=rules))

    def without_rules(self) -> "CellConfig":
        return replace(self, head=structs.replace(self.head, scenario=Scenario()))

    @cached_property
    def digest(self) -> str:
        """Names the configuration with the files it is made of, as they are when first asked.

        Where it listens makes no difference to what it is.
        """
        parts = {
            "seed": self.head.seed,
            "poll_step_ms": self.head.poll_step_ms,
            "scenario": self.head.scenario,
            "environment": self.head.environment,
            "robots": {
                name: [
                    robot.kind,
                    robot.config,
                    {n: [f.kind, f.config, list(f.wires)] for n, f in robot.faces.items()},
                ]
                for name, robot in self.robots.items()
            },
            "files": contents((self.head.environment, self.robots), self.read_file),
        }
        plain = msgspec.to_builtins(parts, str_keys=True)
        return sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()[:16]


def endpoint_name(robot: str, face: str, suffix: str) -> str:
    return ".".join(part for part in (robot, face, suffix) if part)


def load_config(name: str, *, seed: int | None = None) -> CellConfig:
    """The configuration of a cell, by path or by the name of a shipped one."""
    file, text = find_cell(name)
    config = read_config(text, file)
    return config if seed is None else config.with_seed(seed)


def read_config(text: str, file: str) -> CellConfig:
    """The configuration that the text of a cell file describes."""
    document = parse(text, file)
    head: Head = _at(document, (), read, document.value, Head)
    head = _with_environment(document, _with_rules(document, head))
    included = _included(document, head.include)
    for name in head.robots:
        if name in PARTS_OF_EVERY_CELL:
            problem = ConfigError("every cell has a part of this name; choose another")
            raise document.error(("robots", name), problem)
    robots = {
        name: _robot(document, ("robots", name), with_present_names(body), included)
        for name, body in head.robots.items()
    }
    stem = file.rsplit("/", 1)[-1].split(".", 1)[0]
    return CellConfig(stem, head, robots, document, included)


def _included(document: Document, include: Include) -> SimulationFile:
    if include.simulation is None:
        return SimulationFile()
    path = found_beside(document.file, include.simulation)
    return read_simulation(read_text(path), str(path))


def _with_rules(document: Document, head: Head) -> Head:
    """The cell's own rules, and those of the scenario file it includes."""
    if head.include.scenario is None:
        return head
    path = found_beside(document.file, head.include.scenario)
    text = read_text(path)
    file, found = parse(text, str(path)), read_rules(text, str(path))
    for name in found.rules:
        if name in head.scenario.rules:
            problem = ConfigError("the cell file has a rule of this name too", value=name)
            raise file.error(("rules", name), problem)
    return structs.replace(head, scenario=Scenario({**head.scenario.rules, **found.rules}))


def read_rules(text: str, file: str) -> Scenario:
    """The rules of a scenario file."""
    document = parse(text, file)
    found: Scenario = _at(document, (), read, document.value, Scenario)
    return found


def _with_environment(document: Document, head: Head) -> Head:
    """The cell's own objects, and those of the environment file it includes."""
    if head.include.environment is None:
        return head
    path = found_beside(document.file, head.include.environment)
    found = read_environment(read_text(path), str(path))
    own = head.environment
    both = EnvironmentConfig(
        own.objects + found.objects, own.fixtures + found.fixtures, own.zones + found.zones
    )
    return structs.replace(head, environment=both)


def read_environment(text: str, file: str) -> EnvironmentConfig:
    document = parse(text, file)
    found: EnvironmentConfig = _at(document, (), read, document.value, EnvironmentConfig)
    return found


def _robot(
    document: Document, keys: Keys, body: dict[str, Any], included: SimulationFile
) -> RobotConfig:
    common = {key: body[key] for key in RobotHead.__struct_fields__ if key in body}
    head: RobotHead = _at(document, keys, read, common, RobotHead)
    module = _at(document, (*keys, "kind"), module_of, "robots", head.kind)
    body = included.under(body, getattr(module, "SIMULATION_SECTIONS", ()))
    own = _at(document, keys, _rest, body, RobotHead.__struct_fields__, module.Config)
    config = _at(document, keys, read, own, module.Config)
    faces = {
        name: _face(document, (*keys, "faces", name), face or {})
        for name, face in head.faces.items()
    }
    real = _at(document, (*keys, "real"), place_of, head.real) if head.real else None
    return RobotConfig(head.kind, config, faces, real)


def _face(document: Document, keys: Keys, body: dict[str, Any]) -> FaceConfig:
    """A face; one with several sockets declares them in `ENDPOINTS`."""
    kind = keys[-1]
    module = _at(document, keys, module_of, "faces", kind)
    config_class: type[Struct] = module.Config
    several: Mapping[str, Endpoint] = getattr(module, "ENDPOINTS", {})
    common = _keys_of(several) or Address.__struct_fields__
    own = _at(document, keys, _rest, body, common, config_class)
    given = {key: value for key, value in body.items() if key not in own}
    if several:
        main = {key: value for key, value in given.items() if key not in several}
        wires = {
            name: _at(document, (*keys, name), _wire, socket, given.get(name) if name else main)
            for name, socket in several.items()
            if socket.on or name in given
        }
    else:
        wires = {"": _at(document, keys, read, given, Address)}
    return FaceConfig(kind, wires, _at(document, keys, read, own, config_class))


def _keys_of(several: Mapping[str, Endpoint]) -> tuple[str, ...]:
    """A socket without a name has its keys among the face's own."""
    nameless = Bound.__struct_fields__ if "" in several else ()
    return (*filter(None, several), *nameless)


def _wire(socket: Endpoint, given: Any) -> Wire:
    """One of several sockets: `mode: client` calls instead of listening."""
    if not isinstance(given, dict | None):
        raise ConfigError("this does not fit", value=given, allowed="a mapping")
    keys = dict(given or {})
    defaults: dict[str, Any] = {"port": socket.port, "local_port": socket.local_port}
    kind: type[Wire] = Bound if socket.messages else Broadcast
    if not (socket.datagrams or socket.messages):
        mode = read(keys.pop("mode", "server"), Literal["server", "client"], "mode")
        kind = Outbound if mode == "client" else Address
        defaults["stalled_after_s"] = socket.stalled_after_s
    known = {key: value for key, value in defaults.items() if key in kind.__struct_fields__}
    wire: Wire = read(known | keys, kind)
    return wire


def _rest(body: dict[str, Any], common: Collection[str], own: type[Struct]) -> dict[str, Any]:
    """The keys that are not ``common`` to all; those that are nobody's are an error."""
    known = (*common, *own.__struct_fields__)
    for key in body:
        if key not in known:
            raise unknown("key", str(key), known, key=str(key))
    return {key: value for key, value in body.items() if key not in common}


def _at(document: Document, keys: Keys, reader: Callable[..., Any], *arguments: Any) -> Any:
    """Run a reader; what it finds wrong is told with its place in the document."""
    try:
        return reader(*arguments)
    except ConfigError as problem:
        raise document.error(keys, problem) from None
