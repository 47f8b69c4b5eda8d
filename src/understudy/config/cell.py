"""A cell file: robots with their faces and devices, scenario, environment and endpoints."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from types import ModuleType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs, to_builtins

from understudy.config.contents import contents
from understudy.config.document import Document, Keys, parse
from understudy.config.files import (
    ProgramFile,
    find_cell,
    find_program,
    found_beside,
    read_model,
    read_text,
)
from understudy.config.limits import MOST_ROBOTS
from understudy.config.typed import read
from understudy.devices.io.pins import Link
from understudy.errors import ConfigError, unknown
from understudy.ports import Endpoint
from understudy.ports.access import is_loopback
from understudy.registry import kinds, module_of, with_present_names
from understudy.simulation.scenario import Config as Scenario
from understudy.space.model.environment import (
    CollisionConfig,
    Environment,
    EnvironmentConfig,
    Read,
)
from understudy.space.model.shapes import ReadMesh, mesh_from_bytes
from understudy.wire import tcp
from understudy.wire.dial import Destination, Device, parse_place
from understudy.wire.interface import Port, Wire

Controller = Literal["simulation", "real", "auto"]
RealPlace = Destination | Device


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """`to`: an address as in `understudy send --to`."""

    to: Annotated[str, Meta(max_length=1024)]


def place_of(real: Real) -> RealPlace:
    try:
        return parse_place(real.to)
    except ConfigError as problem:
        raise problem.within("to") from None


Color = Annotated[int, Meta(ge=0, le=0xFFFFFF)]
NotNegative = Annotated[float, Meta(ge=0, le=1e6)]


class Simulation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Timing, dynamics and delays: defaults for the arms of the cell."""

    update_rate_hz: Annotated[float, Meta(gt=0)] | None = None
    default_time_scale: Annotated[float, Meta(ge=1e-6, le=1e6)] = 1.0
    enable_dynamics: bool | None = None
    joint_inertia: list[NotNegative] | None = None
    joint_friction: list[NotNegative] | None = None
    command_delay_ms: NotNegative | None = None
    feedback_delay_ms: NotNegative | None = None


class Visualization(Struct, frozen=True, forbid_unknown_fields=True):
    """What pages show, and the colours."""

    show_collision_volumes: bool = False
    show_trajectory_preview: bool = True
    show_weld_trail: bool = True
    show_workspace_boundary: bool = False
    robot_color: Color = 0xFF5E00
    ghost_robot_color: Color = 0x808080
    collision_color: Color = 0xFF0000
    trajectory_color: Color = 0x00FF00
    weld_color: Color = 0xFFD700


class VirtualIo(Struct, frozen=True, forbid_unknown_fields=True):
    """Links from outputs to inputs."""

    links: list[Link] = []


class SimulationFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A simulation.yaml; the same sections can stand in the cell file itself."""

    simulation: Simulation = Simulation()
    collision: CollisionConfig = CollisionConfig()
    visualization: Visualization = Visualization()
    virtual_io: VirtualIo = VirtualIo()

    def defaults(self, section: str) -> dict[str, Any]:
        """A section as the defaults of the robot's key of the same name."""
        if section == "io":
            return {"links": to_builtins(self.virtual_io.links)}
        values: dict[str, Any] = to_builtins(getattr(self, section))
        values.pop("default_time_scale", None)
        return values

    def under(self, robot: dict[str, Any], sections: Iterable[str]) -> dict[str, Any]:
        """A robot of the cell file with these sections as defaults of its own keys."""
        return robot | {key: _over(robot.get(key), self.defaults(key)) for key in sections}


def _over(own: Any, ours: dict[str, Any]) -> Any:
    """Defaults with the robot's own keys over them; the reader reports what is no mapping."""
    return ours | (own or {}) if isinstance(own or {}, dict) else own


def read_simulation(text: str, file: str) -> SimulationFile:
    document = parse(text, file)
    try:
        found: SimulationFile = read(document.value, SimulationFile)
    except ConfigError as problem:
        raise document.error((), problem) from None
    return found


CONTROL_PORT = 5550
STATE_PORT = 5562
HMI_PORT = 8080

PARTS_OF_EVERY_CELL = ("encounters", "engine", "environment", "scenario")

Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\Z", max_length=64)]
Seed = Annotated[int, Meta(ge=0, lt=1 << 62)]


class FaceConfig(Struct, frozen=True):
    """A face of a robot, and where it listens: one wire without a name, or several with."""

    kind: str
    wires: dict[str, Any]
    config: Any


class RobotConfig(Struct, frozen=True):
    """A robot, the faces in front of it and the devices mounted on it, by their kinds.

    `real`: the address of its REAL sibling. `program`: loaded when the cell starts.
    """

    kind: str
    config: Any
    faces: dict[str, FaceConfig]
    real: RealPlace | None = None
    devices: dict[str, Any] = {}
    program: ProgramFile | None = None


class DeviceConfig(Struct, frozen=True):
    """A device that stands in the cell by itself."""

    kind: str
    config: Any


class Include(Struct, frozen=True, forbid_unknown_fields=True):
    """Files with their own keys and units, by path beside the cell file."""

    simulation: str | None = None
    scenario: str | None = None
    environment: str | None = None


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
    addresses than loopback."""

    robots: Annotated[dict[Name, dict[str, Any]], Meta(max_length=MOST_ROBOTS)]
    include: Include = Include()
    description: str = ""
    seed: Seed = 0
    controller: Controller = "simulation"
    poll_step_ms: Annotated[float, Meta(gt=0, le=60_000)] = 10.0
    token: str | None = None
    control: ControlDoor = ControlDoor()
    state: StateDoor = StateDoor()
    hmi: Hmi | None = None
    scenario: Scenario = Scenario()
    environment: EnvironmentConfig = EnvironmentConfig()
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
    """The checked configuration of a cell."""

    name: str
    head: Head
    robots: dict[str, RobotConfig]
    document: Document
    simulation: SimulationFile
    devices: dict[str, DeviceConfig] = field(default_factory=dict)

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

    def environment(
        self, read: Read | None = None, read_mesh: ReadMesh = mesh_from_bytes
    ) -> Environment:
        """The environment of the cell, with its files read; ``read`` in place of `read_file`."""
        try:
            return self.head.environment.build(read or self.read_file, read_mesh)
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
                ]
                for name, robot in self.robots.items()
            },
            "devices": self.devices,
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
    document = parse(text, file)
    if kind := included_kind(document):
        allowed = f"a cell file with the lines `include: {{{kind}: {file}}}` and `robots: …`"
        raise ConfigError(f"this is a {kind} file, not a cell file", file=file, allowed=allowed)
    head: Head = _at(document, (), read, document.value, Head)
    for name, door in (("control", head.control), ("state", head.state)):
        _at(document, (name, "auth"), _check_auth, door)
    head = _with_environment(document, _with_rules(document, head))
    included = _simulation_sections(document, head)
    for name in head.robots:
        if name in PARTS_OF_EVERY_CELL:
            problem = ConfigError("every cell has a part of this name; choose another")
            raise document.error(("robots", name), problem)
    robots = {
        name: _robot(document, ("robots", name), with_present_names(body), included)
        for name, body in head.robots.items()
    }
    devices = {
        name: _device(document, ("devices", name), body) for name, body in head.devices.items()
    }
    for name in devices:
        if name in (*robots, *PARTS_OF_EVERY_CELL):
            problem = ConfigError("another part of the cell has this name; choose another")
            raise document.error(("devices", name), problem)
    stem = file.rsplit("/", 1)[-1].split(".", 1)[0]
    return CellConfig(stem, head, robots, document, included, devices)


def _check_auth(door: LockedDoor) -> None:
    if door.auth == "none" and not is_loopback(door.host):
        raise ConfigError(
            f"other machines can reach {door.host or 'every address'}",
            value="none",
            allowed="secret; none on 127.0.0.1, ::1 or localhost only",
        )


INCLUDED: dict[str, type[Struct]] = {
    "simulation": SimulationFile,
    "scenario": Scenario,
    "environment": EnvironmentConfig,
}
"""The files that a cell file can include, by the key of `include`."""


def included_kind(document: Document) -> str:
    """The kind of included file that has all these keys; empty for a cell file."""
    keys = set(document.value) if isinstance(document.value, dict) else set()
    if not keys or keys & {"robots", "include"}:
        return ""
    fits = (k for k, config in INCLUDED.items() if keys <= set(config.__struct_fields__))
    return next(fits, "")


def read_included(text: str, file: str) -> tuple[str, Struct] | None:
    """The kind and content of a file that cell files include; None if it is a cell file."""
    document = parse(text, file)
    kind = included_kind(document)
    return (kind, _at(document, (), read, document.value, INCLUDED[kind])) if kind else None


def _included_text(document: Document, key: str, name: str) -> tuple[str, str]:
    """The text and path of an included file; the error of a missing one names the cell file."""
    try:
        path = found_beside(document.file, name)
        return read_text(path), str(path)
    except ConfigError as problem:
        lacking = ConfigError(f"{problem.file or name}: {problem.problem}")
        raise document.error(("include", key), lacking) from None


def _simulation_sections(document: Document, head: Head) -> SimulationFile:
    """The sections of the included simulation.yaml, with the cell's own keys over them."""
    from_file: dict[str, Any] = {}
    if head.include.simulation is not None:
        text, path = _included_text(document, "simulation", head.include.simulation)
        read_simulation(text, path)
        from_file = parse(text, path).value
    sections: dict[str, Any] = {}
    for name in SimulationFile.__struct_fields__:
        own = getattr(head, name)
        _at(document, (name,), read, own, SimulationFile.__annotations__[name])
        sections[name] = {**(from_file.get(name) or {}), **own}
    found: SimulationFile = read(sections, SimulationFile)
    return found


def _with_rules(document: Document, head: Head) -> Head:
    """The cell's own rules, and those of the scenario file it includes."""
    if head.include.scenario is None:
        return head
    text, path = _included_text(document, "scenario", head.include.scenario)
    file, found = parse(text, path), read_rules(text, path)
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
    found = read_environment(*_included_text(document, "environment", head.include.environment))
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
    mounted = device_keys(module.Config)
    own = _at(document, keys, _rest, body, RobotHead.__struct_fields__, module.Config, mounted)
    config = _at(document, keys, read, own, module.Config)
    faces = {
        name: _face(document, (*keys, "faces", name), face or {})
        for name, face in head.faces.items()
    }
    real = _at(document, (*keys, "real"), place_of, head.real) if head.real else None
    devices = {
        key: _at(document, (*keys, key), read, value, module_of("devices", key).Config)
        for key, value in body.items()
        if key in mounted
    }
    return RobotConfig(head.kind, config, faces, real, devices, _program(document, keys, head))


def _program(document: Document, keys: Keys, head: RobotHead) -> ProgramFile | None:
    if head.program is None:
        return None
    found: ProgramFile = _at(
        document, (*keys, "program"), partial(find_program, beside=document.file), head.program
    )
    return found


def device_keys(robot: type[Struct]) -> tuple[str, ...]:
    """The keys of a robot that are kinds of devices; its own keys go first."""
    taken = (*RobotHead.__struct_fields__, *robot.__struct_fields__)
    return tuple(kind for kind in kinds("devices") if kind not in taken)


def _device(document: Document, keys: Keys, body: dict[str, Any]) -> DeviceConfig:
    kind = _at(document, (*keys, "kind"), read, body.get("kind"), str)
    module = _at(document, (*keys, "kind"), module_of, "devices", kind)
    own = {key: value for key, value in body.items() if key != "kind"}
    return DeviceConfig(kind, _at(document, keys, read, own, module.Config))


def _face(document: Document, keys: Keys, body: dict[str, Any]) -> FaceConfig:
    """A face's own keys, and those of its sockets: under their names, or among the face's own."""
    kind = keys[-1]
    module = _at(document, keys, module_of, "faces", kind)
    config_class: type[Struct] = module.Config
    endpoints: Mapping[str, Endpoint] = module.ENDPOINTS
    nameless = wire_keys(endpoints[""]) if "" in endpoints else ()
    common = (*filter(None, endpoints), *nameless)
    own = _at(document, keys, _rest, body, common, config_class)
    given = {key: value for key, value in body.items() if key not in own}
    main = {key: value for key, value in given.items() if key not in endpoints}
    wires = {
        name: _at(
            document,
            (*keys, name) if name else keys,
            read_wire,
            endpoint,
            given.get(name) if name else main,
        )
        for name, endpoint in endpoints.items()
        if endpoint.enabled or name in given
    }
    return FaceConfig(kind, wires, _at(document, keys, read, own, config_class))


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


def _rest(
    body: dict[str, Any], common: Collection[str], own: type[Struct], others: Collection[str] = ()
) -> dict[str, Any]:
    """The keys of ``own``; a key that is in no group is an error."""
    known = (*common, *own.__struct_fields__, *others)
    for key in body:
        if key not in known:
            raise unknown("key", str(key), known, key=str(key))
    return {key: value for key, value in body.items() if key not in (*common, *others)}


def _at(document: Document, keys: Keys, reader: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a reader; its ConfigError gets file, line and key path."""
    try:
        return reader(*arguments)
    except ConfigError as problem:
        raise document.error(keys, problem) from None
