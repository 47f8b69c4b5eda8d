"""A cell file: robots with their faces and devices, scenario, environment and endpoints."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from understudy.config.contents import contents
from understudy.config.document import Document, Keys, parse
from understudy.config.files import (
    ProgramFile,
    find_cell,
    find_program,
    find_robot_file,
    read_beside,
    read_model,
)
from understudy.config.include import (
    Include,
    Name,
    SimulationFile,
    all_objects,
    all_robots,
    all_rules,
    included_kind,
    simulation_sections,
    with_robots_key,
    with_sections,
)
from understudy.config.limits import MOST_ROBOTS, MOST_ROWS
from understudy.config.typed import read
from understudy.errors import ConfigError, located_at, unknown
from understudy.ports import Endpoint
from understudy.ports.access import is_loopback
from understudy.ports.jobs import JobSections, check_sections, has_jobs, job_sections
from understudy.registry import kinds, module_of, modules, with_present_names
from understudy.simulation.io.robot_links import MOST_LINKS, RobotLink
from understudy.simulation.scenario import Config as Scenario
from understudy.simulation.workpieces.config import MOST_PARTS, WorkpieceConfig, WorkpieceRules
from understudy.space.model.environment import (
    PRINTED,
    Environment,
    EnvironmentConfig,
    ObjectConfig,
    Read,
)
from understudy.space.model.shapes import ReadMesh, mesh_from_bytes
from understudy.wire import tcp
from understudy.wire.dial import Destination, Device, parse_place
from understudy.wire.interface import Port, Wire

if TYPE_CHECKING:
    from understudy.simulation.workpieces.workpieces import WorkpieceSequence


log = logging.getLogger(__name__)

Controller = Literal["simulation", "real", "auto"]
RealPlace = Destination | Device


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the real controller is: an address as in `understudy send --to`."""

    to: Annotated[str, Meta(max_length=1024)]


def place_of(real: Real) -> RealPlace:
    try:
        return parse_place(real.to)
    except ConfigError as problem:
        raise problem.within("to") from None


CONTROL_PORT = 5550
STATE_PORT = 5562
HMI_PORT = 8080

PARTS_OF_EVERY_CELL = ("encounters", "engine", "environment", "links", "parts", "scenario")

Seed = Annotated[int, Meta(ge=0, lt=1 << 62)]


class FaceConfig(Struct, frozen=True):
    """A face of a robot, and where it listens: one wire without a name, or several with."""

    kind: str
    wires: dict[str, Any]
    config: Any


class RobotConfig(Struct, frozen=True):
    """A robot, the faces in front of it and the devices mounted on it, by their kinds.

    `real`: the address of its REAL sibling. `program`: loaded when the cell starts. `sections`: of
    its jobs, by key.
    """

    kind: str
    config: Any
    faces: dict[str, FaceConfig]
    real: RealPlace | None = None
    devices: dict[str, Any] = {}
    program: ProgramFile | None = None
    sections: dict[str, Any] = {}


class DeviceConfig(Struct, frozen=True):
    """A device that stands in the cell by itself."""

    kind: str
    config: Any


class Hmi(Struct, frozen=True, forbid_unknown_fields=True):
    """The web page: where it is served, the tokens of operators and viewers, and how many
    connections it serves, in all and from one address (loopback is not counted by address)."""

    host: str = "127.0.0.1"
    port: Port = HMI_PORT
    token: str | None = None
    viewer_token: str | None = None
    max_clients: Annotated[int, Meta(ge=1)] = 2000
    max_clients_per_address: Annotated[int, Meta(ge=1)] = 200

    def listens_on(self) -> tuple[str, int] | None:
        return self.host, self.port


class LockedDoor(tcp.Config, frozen=True, forbid_unknown_fields=True):
    """Where control or state listens; `auth: none` needs no secret, on loopback only."""

    auth: Literal["secret", "none"] = "secret"


class ControlDoor(LockedDoor, frozen=True, forbid_unknown_fields=True):
    """The control endpoint."""

    port: Port = CONTROL_PORT


class StateDoor(LockedDoor, frozen=True, forbid_unknown_fields=True):
    """The state socket."""

    port: Port = STATE_PORT


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a cell file that belong to no robot. `token`: of the doors that listen on other
    addresses than loopback. `strict`: requests that a robot does not know or does not emulate are
    reported, and fail a test. `parts`: what robots can pick. `links`: from outputs of robots to
    inputs of others."""

    robots: Annotated[dict[Name, dict[str, Any]], Meta(max_length=MOST_ROWS)]
    include: Include = Include()
    description: str = ""
    seed: Seed = 0
    strict: bool = False
    controller: Controller = "simulation"
    poll_step_ms: Annotated[float, Meta(gt=0, le=60_000)] = 10.0
    token: str | None = None
    control: ControlDoor = ControlDoor()
    state: StateDoor = StateDoor()
    hmi: Hmi | None = None
    scenario: Scenario = Scenario()
    environment: EnvironmentConfig = EnvironmentConfig()
    parts: Annotated[tuple[WorkpieceConfig, ...], Meta(max_length=MOST_PARTS)] | None = None
    part_rules: WorkpieceRules = WorkpieceRules()
    links: Annotated[tuple[RobotLink, ...], Meta(max_length=MOST_LINKS)] = ()
    devices: Annotated[dict[Name, dict[str, Any]], Meta(max_length=MOST_ROBOTS)] = {}
    simulation: dict[str, Any] = {}
    collision: dict[str, Any] = {}
    visualization: dict[str, Any] = {}
    virtual_io: dict[str, Any] = {}


class RobotHead(Struct, frozen=True):
    """The keys that every robot has; the rest belong to its kind."""

    kind: str
    faces: dict[Name, dict[str, Any] | None] = {}
    real: Real | None = None
    program: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None


@dataclass(frozen=True)
class CellConfig:
    """The checked configuration of a cell. `group_wires`: of the endpoints that robots of a kind
    share. `sections`: keys of the cell file that belong to capabilities. `seed_given`: the seed is
    not that of the cell file."""

    name: str
    head: Head
    robots: dict[str, RobotConfig]
    document: Document
    simulation: SimulationFile
    devices: dict[str, DeviceConfig] = field(default_factory=dict)
    group_wires: dict[str, Wire] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    seed_given: bool = False

    def endpoints(self) -> dict[str, Wire]:
        """Every endpoint of the robots' faces by its full name, with its wire."""
        own = {
            endpoint_name(robot_name, face_name, suffix): wire
            for robot_name, robot in self.robots.items()
            for face_name, face in robot.faces.items()
            for suffix, wire in face.wires.items()
        }
        return own | self.group_wires

    def read_file(self, name: str) -> bytes:
        """A shipped robot by name, or a file beside the cell file."""
        return read_model(name, beside=self.document.file)

    def read_beside(self, name: str) -> bytes:
        """A file of a detector, beside the cell file or in the folder above."""
        return read_beside(name, beside=self.document.file)

    def environment(
        self, read: Read | None = None, read_mesh: ReadMesh = mesh_from_bytes
    ) -> Environment:
        """The environment of the cell, with its files read; ``read`` in place of `read_file`."""
        try:
            return self.head.environment.build(read or self.read_file, read_mesh)
        except ConfigError as problem:
            raise self.document.error(("environment",), problem) from None

    def workpiece_sequence(self, environment: Environment | None = None) -> "WorkpieceSequence":
        """The parts of the cell before the first step, for offline checks."""
        from understudy.simulation.workpieces.workpieces import WorkpieceSequence

        there = self.environment() if environment is None else environment
        try:
            return WorkpieceSequence(self.head.parts or (), self.head.part_rules, there)
        except ConfigError as problem:
            raise self.document.error(("parts",), problem) from None

    def surroundings(self) -> Environment:
        """What robots can touch when the cell starts: the environment and the resting parts."""
        there = self.environment()
        return self.workpiece_sequence(there).stage().environment if self.head.parts else there

    def with_seed(self, seed: int) -> "CellConfig":
        head = structs.replace(self.head, seed=read(seed, Seed, "seed"))
        return replace(self, head=head, seed_given=True)

    def with_rules(self, rules: Scenario) -> "CellConfig":
        """These rules in place of the cell's own."""
        return replace(self, head=structs.replace(self.head, scenario=rules))

    def without_rules(self) -> "CellConfig":
        return replace(self, head=structs.replace(self.head, scenario=Scenario()))

    def job_sections(self, robot: str) -> JobSections:
        of = self.robots[robot]
        return JobSections(robot, self.document.file, of.sections, devices=of.devices)

    def _files(self, robot: str) -> dict[str, str | None]:
        """Contents of the files that sections of jobs name, by the key of the section."""
        found: dict[str, str | None] = {}
        for _, _, module in modules("jobs"):
            files = getattr(module, "files", None)
            found |= files(self.job_sections(robot)) if files is not None else {}
        return found

    def _sections_in_digest(self) -> dict[str, Any]:
        """The sections that the state of the cell depends on: addresses are not."""
        return {
            key: section
            for key, section in self.sections.items()
            if getattr(module_of("sections", key), "IN_DIGEST", True)
        }

    @cached_property
    def digest(self) -> str:
        """Hash of the configuration and of the files it names, as they are when first asked.

        Addresses and ports are not part of it.
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
                    robot.devices,
                    *([robot.sections, self._files(name)] if robot.sections else []),
                ]
                for name, robot in self.robots.items()
            },
            "devices": self.devices,
            **self._sections_in_digest(),
            **({"links": self.head.links} if self.head.links else {}),
            **({} if self.head.parts is None else {"parts": self.head.parts}),
            **({} if self.head.part_rules == WorkpieceRules() else {"rules": self.head.part_rules}),
            "files": contents((self.head.environment, self.robots, self.devices), self.read_file),
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
    return read_document(parse(text, file))


def read_document(document: Document) -> CellConfig:
    file = document.file
    if kind := included_kind(document):
        allowed = f"a cell file with the lines `include: {{{kind}: {file}}}` and `robots: …`"
        raise ConfigError(f"this is a {kind} file, not a cell file", file=file, allowed=allowed)
    body, sections = _divided(document, with_robots_key(document.value))
    head: Head = document.at((), read, body, Head)
    for name, door in (("control", head.control), ("state", head.state)):
        document.at((name, "auth"), _check_auth, door)
    scenario = all_rules(document, head.include, head.scenario)
    environment = all_objects(document, head.include, head.environment)
    head = structs.replace(head, scenario=scenario, environment=environment)
    simulation = {name: getattr(head, name) for name in SimulationFile.__struct_fields__}
    included = simulation_sections(document, head.include, simulation)
    bodies = all_robots(document, head.include, head.robots)
    bodies = with_sections(document, head.include, bodies)
    document.at(("robots",), check_count, bodies)
    for name in bodies:
        if name in PARTS_OF_EVERY_CELL:
            problem = ConfigError("every cell has a part of this name; choose another")
            raise document.error(("robots", name), problem)
    robots = {
        name: _robot(document, ("robots", name), with_present_names(body), included)
        for name, body in bodies.items()
    }
    shared = document.at((), wires_of_groups, robots, sections, document.file)
    devices = {
        name: _device(document, ("devices", name), body) for name, body in head.devices.items()
    }
    for name in devices:
        if name in (*robots, *PARTS_OF_EVERY_CELL):
            problem = ConfigError("another part of the cell has this name; choose another")
            raise document.error(("devices", name), problem)
    stem = file.rsplit("/", 1)[-1].split(".", 1)[0]
    config = CellConfig(stem, head, robots, document, included, devices, shared, sections)
    document.at((), _check_printed, document, head, robots)
    return config


def _check_printed(document: Document, head: Head, robots: Mapping[str, RobotConfig]) -> None:
    """Checks the markers and boards on parts, objects and tools."""
    for number, part in enumerate(head.parts or ()):
        with located_at(f"parts.{number}"):
            part.check_printed()
    with located_at("environment"):
        head.environment.check_printed()
    for name in _robots_with_patterns(document):
        if name in robots:
            for key, thing in _objects(robots[name].config, f"robots.{name}"):
                with located_at(key):
                    thing.check_printed()


def _robots_with_patterns(document: Document) -> set[str]:
    """Robots with a marker or a board: a cell may have thousands of others."""
    return {keys[1] for keys in document.lines if keys[:1] == ("robots",) and keys[-1] in PRINTED}


def _objects(config: Any, key: str) -> Iterator[tuple[str, ObjectConfig]]:
    """The shapes of tools and held objects in the configuration of a robot, with their keys."""
    if isinstance(config, ObjectConfig):
        yield key, config
    elif isinstance(config, Struct):
        names = zip(config.__struct_encode_fields__, config.__struct_fields__, strict=True)
        for written, name in names:
            yield from _objects(getattr(config, name), f"{key}.{written}")
    elif isinstance(config, Mapping):
        for name, value in config.items():
            yield from _objects(value, f"{key}.{name}")
    elif isinstance(config, list | tuple):
        for number, value in enumerate(config):
            yield from _objects(value, f"{key}.{number}")


def _divided(document: Document, body: Any) -> tuple[Any, dict[str, Any]]:
    """The keys of every cell, and the sections of capabilities, read."""
    if not isinstance(body, Mapping):
        return body, {}
    known = kinds("sections")
    for key in body:
        if key not in known and key not in Head.__struct_fields__:
            problem = unknown("key", str(key), (*Head.__struct_fields__, *known), key=str(key))
            raise document.error((), problem)
    sections = {
        key: document.at((key,), _section, value, module_of("sections", key), document.file)
        for key, value in body.items()
        if key in known and value is not None
    }
    return {key: value for key, value in body.items() if key not in known}, sections


def _section(value: Any, module: ModuleType, file: str) -> Any:
    found = read(value, module.Config)
    if hasattr(module, "parsed_beside"):  # it names files
        return module.parsed_beside(found, file)
    return module.parsed(found) if hasattr(module, "parsed") else found


def _check_auth(door: LockedDoor) -> None:
    if door.auth == "none" and not is_loopback(door.host):
        raise ConfigError(
            f"other machines can reach {door.host or 'every address'}",
            value="none",
            allowed="secret; none on 127.0.0.1, ::1 or localhost only",
        )


def _robot(
    document: Document, keys: Keys, body: dict[str, Any], included: SimulationFile
) -> RobotConfig:
    common = {key: body[key] for key in RobotHead.__struct_fields__ if key in body}
    head: RobotHead = document.at(keys, read, common, RobotHead)
    module = document.at((*keys, "kind"), module_of, "robots", head.kind)
    body = included.under(body, getattr(module, "SIMULATION_SECTIONS", ()))
    mounted = device_keys(module.Config)
    jobs = job_sections() if has_jobs(head.kind) else {}
    others = (*mounted, *jobs)
    own = document.at(keys, _rest, body, RobotHead.__struct_fields__, module.Config, others)
    config = document.at(keys, read, own, module.Config)
    faces = {
        name: _face(document, (*keys, "faces", name), face or {})
        for name, face in head.faces.items()
    }
    real = document.at((*keys, "real"), place_of, head.real) if head.real else None
    devices = {
        key: document.at((*keys, key), read, value, module_of("devices", key).Config)
        for key, value in body.items()
        if key in mounted
    }
    given = {key: {} if value is None else value for key, value in body.items() if key in jobs}
    sections = {
        key: document.at((*keys, key), read, value, jobs[key]) for key, value in given.items()
    }
    if sections:
        of = JobSections(keys[-1], document.file, sections, given, devices)
        document.at(keys, check_sections, of)
    program = _program(document, keys, head)
    return RobotConfig(head.kind, config, faces, real, devices, program, sections)


def _program(document: Document, keys: Keys, head: RobotHead) -> ProgramFile | None:
    if head.program is None:
        return None
    found: ProgramFile = document.at(
        (*keys, "program"), partial(find_program, beside=document.file), head.program
    )
    return found


def device_keys(robot: type[Struct]) -> tuple[str, ...]:
    """The keys of a robot that are kinds of devices; its own keys go first."""
    taken = (*RobotHead.__struct_fields__, *robot.__struct_fields__)
    return tuple(kind for kind in kinds("devices") if kind not in taken)


def _device(document: Document, keys: Keys, body: dict[str, Any]) -> DeviceConfig:
    kind = document.at((*keys, "kind"), read, body.get("kind"), str)
    module = document.at((*keys, "kind"), module_of, "devices", kind)
    own = {key: value for key, value in body.items() if key != "kind"}
    return DeviceConfig(kind, document.at(keys, read, own, module.Config))


def _face(document: Document, keys: Keys, body: dict[str, Any]) -> FaceConfig:
    """A face's own keys, and those of its sockets: under their names, or among the face's own."""
    kind = keys[-1]
    module = document.at(keys, module_of, "faces", kind)
    config_class: type[Struct] = module.Config
    endpoints: Mapping[str, Endpoint] = module.ENDPOINTS
    nameless = wire_keys(endpoints[""]) if "" in endpoints else ()
    common = (*filter(None, endpoints), *nameless)
    own = document.at(keys, _rest, body, common, config_class)
    given = {key: value for key, value in body.items() if key not in own}
    main = {key: value for key, value in given.items() if key not in endpoints}
    wires = {
        name: document.at(
            (*keys, name) if name else keys, read_wire, endpoint, given.get(name) if name else main
        )
        for name, endpoint in endpoints.items()
        if endpoint.enabled or name in given
    }
    return FaceConfig(kind, wires, document.at(keys, read, own, config_class))


def _rest(
    body: dict[str, Any], common: Collection[str], own: type[Struct], others: Collection[str] = ()
) -> dict[str, Any]:
    """The keys of ``own``; a key that is in no group is an error."""
    known = (*common, *own.__struct_fields__, *others)
    for key in body:
        if key not in known:
            raise unknown("key", str(key), known, key=str(key))
    return {key: value for key, value in body.items() if key not in (*common, *others)}


# ── the wire of an endpoint ─────────────────────────────────────────────────────────────────────


def wire_keys(endpoint: Endpoint) -> tuple[str, ...]:
    """Keys of a cell file for the wires of an endpoint, those that select one included."""
    modules = [module_of("wires", kind) for kind in endpoint.wires]
    fields = [field for module in modules for field in module.Config.__struct_fields__]
    return tuple(dict.fromkeys([*fields, *_selectors(modules)]))


def read_wire(endpoint: Endpoint, given: Any) -> Wire:
    """The settings of an endpoint's wire: its defaults, and what the cell file says."""
    if not isinstance(given, dict | None):
        raise ConfigError("this does not fit", value=given, allowed="a mapping")
    keys = dict(given or {})
    modules = [module_of("wires", kind) for kind in endpoint.wires]
    selectors = {
        key: read(keys.pop(key), kind, key)
        for key, kind in _selectors(modules).items()
        if key in keys
    }
    texts = {k: v for k, v in selectors.items() if isinstance(v, str) and _has_detail(k, modules)}
    selectors |= dict.fromkeys(texts, True)
    chosen = next(
        (m for m in modules if all(m.SELECTED_BY.get(k) == v for k, v in selectors.items())), None
    )
    if chosen is None:
        raise ConfigError("these keys select no wire together", value=selectors)
    settings = {k: v for k, v in endpoint.defaults.items() if k in chosen.Config.__struct_fields__}
    wire: Wire = read(settings | keys | texts, chosen.Config)
    return wire


def _selectors(modules: Sequence[ModuleType]) -> dict[str, Any]:
    """Keys that select one of several wires, and the type of their values."""
    keys = dict.fromkeys(key for module in modules for key in module.SELECTED_BY)
    choices = {
        key: {module.SELECTED_BY[key]: None for module in modules if key in module.SELECTED_BY}
        for key in keys
    }
    return {
        key: (bool | str if _has_detail(key, modules) else bool)
        if True in values
        else Literal[tuple(values)]
        for key, values in choices.items()
        if len(values) > 1
    }


def _has_detail(key: str, modules: Sequence[ModuleType]) -> bool:
    """Whether a text selects a wire as `true` does: it is a setting of that wire (`pty: PATH`)."""
    return any(key in module.Config.__struct_fields__ for module in modules)


# ── kinds of robots that are built in one call ──────────────────────────────────────────────────


def grouped(robots: Mapping[str, RobotConfig]) -> dict[str, dict[str, Any]]:
    """The configurations of the robots by name, for each kind that builds its robots together."""
    groups: dict[str, dict[str, Any]] = {}
    for name, robot in robots.items():
        if is_group(robot.kind):
            groups.setdefault(robot.kind, {})[name] = robot.config
    return groups


def is_group(kind: str) -> bool:
    return hasattr(module_of("robots", kind), "build_group")


def check_count(bodies: Mapping[str, Mapping[str, Any]]) -> None:
    """A cell has few robots that are computed one by one, and many that are rows of a table.

    ``bodies``: the robots as they stand in the cell file.
    """
    counts = Counter(str(body.get("kind")) for body in bodies.values())
    rows = [kind for kind in counts if kind in kinds("robots") and is_group(kind)]
    single = len(bodies) - sum(counts[kind] for kind in rows)
    for count, most in ((single, MOST_ROBOTS), (len(bodies), MOST_ROWS)):
        if count > most:
            raise ConfigError("too many robots", value=count, allowed=f"at most {most}")


def wires_of_groups(
    robots: Mapping[str, RobotConfig], sections: Mapping[str, Any], cell_file: str
) -> dict[str, Wire]:
    """The wires of shared endpoints by name. ``sections``: of the cell file."""
    wires: dict[str, Wire] = {}
    for kind, own in grouped(robots).items():
        wires |= module_of("robots", kind).group_wires(
            own, sections, lambda name: find_robot_file(name, beside=cell_file)
        )
    return wires
