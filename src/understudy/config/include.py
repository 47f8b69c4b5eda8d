"""The files that a cell file includes, by their own keys and units.

simulation.yaml has timing, collision checks, colours and pin links: defaults for the robots.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, field, to_builtins

from understudy.config.document import Document, parse
from understudy.config.files import find_robot_file, found_beside, path_from, read_text
from understudy.config.limits import MOST_ROWS
from understudy.config.typed import file_keys, read
from understudy.errors import ConfigError, unknown
from understudy.ports.jobs import JobSections, check_sections, job_sections
from understudy.registry import kinds, module_of, modules
from understudy.simulation.io.virtual_io import Link
from understudy.simulation.scenario import Config as Scenario
from understudy.space.model.environment import CollisionConfig, EnvironmentConfig

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


def _over(own: Any, below: dict[str, Any]) -> Any:
    """A section of a robot over its defaults; the reader reports what is no mapping."""
    mine = {} if own is None else own
    return below | mine if isinstance(mine, dict) else mine


def read_simulation(text: str, file: str) -> SimulationFile:
    return parse(text, file).read(SimulationFile)


Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\Z", max_length=64)]
"""The name of a robot, a face or a device in a cell file."""
FileName = Annotated[str, Meta(min_length=1, max_length=1024)]
SECTIONS_FILE = "pickplace"
"""Key of `include` for files with the sections of a robot's jobs, and of the devices that they work
with. The design document calls such a file pickplace.yaml."""


class Include(Struct, frozen=True, forbid_unknown_fields=True):
    """Files with their own keys and units, by path beside the cell file. `robots`: files of mobile
    robots; in the cell a robot has its robotId as name. `sections`: the file of the only arm, or of
    each arm by its name."""

    simulation: str | None = None
    scenario: str | None = None
    environment: str | None = None
    sections: FileName | dict[Name, FileName] | None = field(name=SECTIONS_FILE, default=None)
    robots: Annotated[tuple[FileName, ...], Meta(max_length=MOST_ROWS)] = ()


INCLUDED: dict[str, type[Struct]] = {
    "simulation": SimulationFile,
    "scenario": Scenario,
    "environment": EnvironmentConfig,
}
"""The files that a cell file can include, by the key of `include`; and files with sections of jobs
(`SECTIONS_FILE`)."""


def included_kind(document: Document) -> str:
    """The kind of included file that has all these keys; empty for a cell file."""
    keys = set(document.value) if isinstance(document.value, dict) else set()
    if not keys or keys & {"robots", "include"}:
        return ""
    for kind, config in INCLUDED.items():
        if keys <= set(config.__struct_fields__):
            return kind
    return SECTIONS_FILE if keys <= {*job_sections(), *device_sections()} else ""


def device_sections() -> list[str]:
    """The kinds of devices that jobs work with: their keys can be in a file of sections, too."""
    return [
        kind for kind in kinds("devices") if getattr(module_of("devices", kind), "WITH_JOBS", False)
    ]


def read_included(text: str, file: str) -> tuple[str, dict[str, Any] | Struct] | None:
    """The kind and content of a file that cell files include; None if it is a cell file."""
    document = parse(text, file)
    kind = included_kind(document)
    if kind == SECTIONS_FILE:
        return kind, read_sections(text, file)
    return (kind, document.read(INCLUDED[kind])) if kind else None


def _included_text(document: Document, key: str, name: str) -> tuple[str, str]:
    """The text and path of an included file; the error of a missing one names the cell file."""
    try:
        path = found_beside(document.file, name)
        return read_text(path), str(path)
    except ConfigError as problem:
        lacking = ConfigError(f"{problem.file or name}: {problem.problem}")
        raise document.error(("include", key), lacking) from None


def simulation_sections(
    document: Document, include: Include, own: Mapping[str, dict[str, Any]]
) -> SimulationFile:
    """The sections of the included simulation.yaml, with the cell's own keys over them."""
    from_file: dict[str, Any] = {}
    if include.simulation is not None:
        text, path = _included_text(document, "simulation", include.simulation)
        read_simulation(text, path)
        from_file = parse(text, path).value
    sections: dict[str, Any] = {}
    for name, keys in own.items():
        document.at((name,), read, keys, SimulationFile.__annotations__[name])
        sections[name] = {**(from_file.get(name) or {}), **keys}
    found: SimulationFile = read(sections, SimulationFile)
    return found


def all_rules(document: Document, include: Include, own: Scenario) -> Scenario:
    """The cell's own rules, and those of the scenario file it includes."""
    if include.scenario is None:
        return own
    text, path = _included_text(document, "scenario", include.scenario)
    file, found = parse(text, path), read_rules(text, path)
    for name in found.rules:
        if name in own.rules:
            problem = ConfigError("the cell file has a rule of this name too", value=name)
            raise file.error(("rules", name), problem)
    return Scenario({**own.rules, **found.rules})


def read_rules(text: str, file: str) -> Scenario:
    """The rules of a scenario file."""
    return parse(text, file).read(Scenario)


def all_objects(document: Document, include: Include, own: EnvironmentConfig) -> EnvironmentConfig:
    """The cell's own objects, and those of the environment file it includes."""
    if include.environment is None:
        return own
    found = read_environment(*_included_text(document, "environment", include.environment))
    return EnvironmentConfig(
        own.objects + found.objects, own.fixtures + found.fixtures, own.zones + found.zones
    )


def read_environment(text: str, file: str) -> EnvironmentConfig:
    document = parse(text, file)
    found = document.read(EnvironmentConfig)
    document.at((), found.check_printed)
    return found


# ── sections of jobs ──────────────────────────────────────────────────────────────────────────────


def with_sections(
    document: Document, include: Include, robots: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The robots, each with the sections of its file below its own keys."""
    files = include.sections
    if files is None:
        return dict(robots)
    if isinstance(files, str):
        arms = [name for name, body in robots.items() if body.get("kind") == "arm"]
        if len(arms) != 1:
            allowed = f"`{SECTIONS_FILE}: {{NAME: FILE}}` with the name of the arm"
            problem = ConfigError(f"the cell has {len(arms)} arms", value=files, allowed=allowed)
            raise document.error(("include", SECTIONS_FILE), problem)
        files = {arms[0]: files}
    merged = dict(robots)
    for name, file in files.items():
        if name not in robots:
            raise document.error(("include", SECTIONS_FILE), unknown("robot", name, robots))
        text, path = _included_text(document, SECTIONS_FILE, file)
        sections = read_sections(text, path)
        own = robots[name]
        merged[name] = own | {
            key: _over(own.get(key), section or {})
            for key, section in _seen_from(document.file, path, sections).items()
        }
    return merged


def _seen_from(cell: str, file: str, sections: dict[str, Any]) -> dict[str, Any]:
    """The sections of a file, with the files that they name as paths from the cell file."""
    for key, kind in job_sections().items():
        section = sections.get(key) or {}
        for named in (name for name in file_keys(kind) if section.get(name)):
            try:
                path = path_from(cell, found_beside(file, section[named]))
            except ConfigError:  # a missing file is reported where it is needed
                continue
            sections = sections | {key: section | {named: path}}
    return sections


def read_sections(text: str, file: str) -> dict[str, Any]:
    """The sections of a file, checked."""
    document = parse(text, file)
    value = {key: {} if section is None else section for key, section in document.value.items()}
    jobs, devices = job_sections(), device_sections()
    for key in value:
        if key not in jobs and key not in devices:
            raise document.error((), unknown("key", str(key), (*jobs, *devices), key=str(key)))
    sections = {
        key: document.at((key,), read, section, jobs[key])
        for key, section in value.items()
        if key in jobs
    }
    document.at((), check_sections, JobSections("", file, sections, value))
    for key in devices:
        if key in value:
            document.at((key,), read, value[key], module_of("devices", key).Config)
    return value


# ── robots ──────────────────────────────────────────────────────────────────────────────────────


def with_robots_key(value: Any) -> Any:
    """The content of a cell file; the key `robots` may be missing if it includes robots."""
    included = isinstance(value, dict) and isinstance(value.get("include"), dict)
    return {"robots": {}} | value if included and value["include"].get("robots") else value


def all_robots(
    document: Document, include: Include, own: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The cell's own robots, and those of the robot files it includes."""
    robots = dict(own)
    for number, name in enumerate(include.robots):
        keys = ("include", "robots", str(number))
        kind, robot = document.at(keys, _robot_in, document.file, name)
        if robot in robots:
            problem = ConfigError("the cell has a robot of this name already", value=robot)
            raise document.error(keys, problem)
        robots[robot] = {"kind": kind, "file": name}
    return robots


def _robot_in(cell_file: str, name: str) -> tuple[str, str]:
    """Kind and name of the robot that a file describes."""
    path, text = find_robot_file(name, beside=cell_file)
    for _, kind, module in modules("robots"):
        if name_in_file := getattr(module, "name_in_file", None):
            return kind, name_in_file(text, path)
    raise ConfigError("no kind of robot has files of its own", value=name)
