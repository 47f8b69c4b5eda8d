"""The composition root: configuration → parts → faces → cell."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy.agenda import ClockState
from understudy.app.self_pairs import keep_pairs_on_disk
from understudy.config import CellConfig, RobotConfig, endpoint_name, load_config
from understudy.config.cell import grouped
from understudy.config.files import append_line
from understudy.errors import ConfigError, located_at, unknown
from understudy.ports import (
    DEFAULT_EPOCH_NS,
    AnyFace,
    Component,
    Deps,
    EndsRun,
    Epoch,
    FaultSource,
    Group,
    Injectable,
    Run,
)
from understudy.ports.device import Mount, SeesCell, mount_devices, uses_workpieces
from understudy.ports.faults import Faults
from understudy.ports.jobs import JobSite, build_jobs, has_jobs
from understudy.ports.operation import HasVehicles, components_of
from understudy.ports.sections import CellSite
from understudy.registry import OPTIONS, TABLES, kinds, module_of, modules
from understudy.sight.lens import CameraModel
from understudy.simulation import scenario
from understudy.simulation.cell import Cell
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment, SeesEnvironment
from understudy.simulation.io.robot_links import RobotLinks
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.points import Points
from understudy.wire.exchange import InProcessCell

if TYPE_CHECKING:
    from understudy.simulation.workpieces.workpieces import Workpieces

log = logging.getLogger(__name__)


def build_cell(config: CellConfig, run: Run | None = None) -> Cell:
    """A cell on virtual time; questions of its components to other processes are answered in this
    one. ``run``: without one it follows from the seed."""
    cell = build_live_cell(config, run or repeatable_run(config))
    if cell.asking():
        for _, _, module in modules("jobs"):
            if answer := getattr(module, "answer_questions", None):
                answer(cell, config)
    return cell


def build_live_cell(config: CellConfig, run: Run) -> Cell:
    """A cell whose components ask other processes through wires."""
    keep_pairs_on_disk()
    try:
        return _build(config, run)
    except ConfigError as problem:
        raise config.document.error((), problem) from None


def load_cell(name: str, *, seed: int | None = None, **options: Any) -> InProcessCell:
    """A cell on virtual time, by path or by the name of a shipped one. ``options``: of its jobs, as
    `vision="process"`; what is not given is as in the cell file."""
    return InProcessCell(build_cell(with_options(load_config(name, seed=seed), options)))


def with_options(config: CellConfig, options: Mapping[str, Any]) -> CellConfig:
    """The cell with these options of its jobs; None: as in the cell file."""
    given = {name: value for name, value in options.items() if value is not None}
    if not options.keys() <= OPTIONS.keys() or given:
        known = {
            name: change
            for _, _, module in modules("jobs")
            for name, change in getattr(module, "OPTIONS", {}).items()
        }
        for name in options:
            if name not in known:
                raise unknown("option of a cell", name, known)
        for name, value in given.items():
            config = known[name](config, value)
    return config


def repeatable_run(config: CellConfig) -> Run:
    """The same for every run of a configuration with this seed."""
    epoch = Epoch(config.sections.get("epoch", DEFAULT_EPOCH_NS))
    return Run(f"seed {config.head.seed}", epoch, config.head.seed, config.seed_given)


def end_run(components: Mapping[str, Component], now: int) -> None:
    """Lets the parts that have peers behind a broker send their last messages."""
    for component in components.values():
        if isinstance(component, EndsRun):
            component.shut_down(now)


def _build(config: CellConfig, run: Run) -> Cell:
    fault_source = scenario.build(config.head.scenario, config.head.seed)
    clock_state = ClockState()
    deps = Deps(fault_source, config.read_file, clock_state, log.info, append_line, run)
    workpieces = _workpieces(config)
    warn = cache(log.warning)  # several components ask for the same camera
    groups = _groups(config, deps)
    in_group = {name: component for group in groups for name, component in group.robots.items()}
    components: dict[str, Component] = {}
    faces: dict[str, AnyFace] = {}
    for name, robot in config.robots.items():
        with located_at(f"robots.{name}"):
            built: Any = in_group.get(name)
            if built is None:
                built = module_of("robots", robot.kind).build(name, robot.config, deps)
                for doubt in getattr(built, "doubts", ()):  # of its description
                    log.warning("%s: %s", name, doubt)
            site = _site(config, name, built, workpieces, deps.fault_source, warn)
            mount = Mount(
                fault_source,
                parts=workpieces,
                camera=partial(site.provide, CameraModel),
                seed=config.head.seed,
                has_real=robot.real is not None,
            )
            mounted = mount_devices(name, built, robot.devices, mount)
            jobs = build_jobs(replace(site, components=mounted)) if has_jobs(robot.kind) else {}
        components[name], own_faces = built, _faces(name, robot, built, deps)
        own_parts = {**components_of(built), **mounted, **jobs}
        components |= {f"{name}.{own}": component for own, component in own_parts.items()}
        components |= {
            _free_name(endpoint, components): face for endpoint, face in own_faces.items()
        }
        components |= _operator_parts(name, robot.kind, built)
        faces |= own_faces
    components |= _devices(config, fault_source)
    for group in groups:
        components |= _shared(group, components)
        faces |= group.faces
    places = {
        name: component
        for name, component in components.items()
        if isinstance(component, Injectable)
    }
    components |= _surroundings(config, workpieces, components)
    components |= _encounters(components)
    components |= _links(config, components)
    fault_source.act_on(places, faces, wire_faults(config))
    components["scenario"] = fault_source
    components["engine"] = SimulationEngine(dict(components), places, clock_state)
    components |= _of_sections(config, components, fault_source)
    return Cell(
        config.name,
        digest=config.digest,
        components=components,
        faces=faces,
        clock_state=clock_state,
        disturbed=dict.fromkeys(fault_source.disturbs(), fault_source),
    )


def _of_sections(
    config: CellConfig, components: Mapping[str, Component], fault_source: scenario.Scenario
) -> dict[str, Component]:
    """What capabilities add to the cell as a whole, for their sections of the cell file. It wakes
    after all others."""
    found: dict[str, Component] = {}
    kinds_of = {name: robot.kind for name, robot in config.robots.items()}
    for key, section in config.sections.items():
        build = getattr(module_of("sections", key), "build", None)
        if build is None:
            continue
        if key in components:
            raise ConfigError("another part of the cell has this name", key=key, value=key)
        site = CellSite(config.name, config.head.seed, section, kinds_of, components, fault_source)
        with located_at(key):
            found |= build(site)
    return found


def wire_faults(config: CellConfig) -> dict[str, Faults]:
    """The faults of the wires of endpoints, by endpoint."""
    found = {
        endpoint: getattr(import_module(type(wire).__module__), "FAULTS", {})
        for endpoint, wire in config.endpoints().items()
    }
    return {endpoint: faults for endpoint, faults in found.items() if faults}


def _site(
    config: CellConfig,
    robot: str,
    built: Any,
    workpieces: "Workpieces | None",
    fault_source: FaultSource,
    warn: Callable[[str], None],
) -> JobSite:
    """What jobs can use of a robot, still without its devices."""
    of = config.robots[robot]
    return JobSite(
        robot,
        config.document.file,
        of.sections,
        built,
        lambda: module_of("robots", of.kind).job_arm(built),
        fault_source,
        warn,
        pins=getattr(built, "io", None),
        workpieces=workpieces,
        environment=lambda: config.environment().objects,
    )


def _workpieces(config: CellConfig) -> "Workpieces | None":
    """The parts of a cell that has the key `parts`, or a device that takes hold of parts."""
    wanted = any(uses_workpieces(robot.devices) for robot in config.robots.values())
    if config.head.parts is None and not wanted:
        return None
    from understudy.simulation.workpieces.workpieces import Workpieces

    with located_at("parts"):
        return Workpieces(config.head.parts or (), config.head.part_rules)


def _surroundings(
    config: CellConfig, workpieces: "Workpieces | None", components: Mapping[str, Component]
) -> dict[str, Component]:
    """What is around the robots: the environment, and the parts that they can pick."""
    environment = CellEnvironment(config.environment())
    environment.join(components)
    robots = {name: components[name] for name in config.robots}
    found: dict[str, Component] = {"environment": environment}
    if workpieces is not None:
        from understudy.simulation.workpieces.workpieces import holders

        with located_at("parts"):
            workpieces.join(environment, holders(robots, components))
        found["parts"] = workpieces
    for component in components.values():
        if isinstance(component, SeesCell):
            component.see(environment, workpieces, robots, components)
    return found


def _groups(config: CellConfig, deps: Deps) -> list[Group]:
    """The robots of the kinds that are built in one call."""
    return [
        module_of("robots", kind).build_group(robots, config.sections, deps)
        for kind, robots in grouped(config.robots).items()
    ]


def _shared(group: Group, others: Collection[str]) -> dict[str, Component]:
    """What the robots of a group share; a robot or device cannot have the name of such a part."""
    shared = {**group.parts, **group.faces}
    for name in shared:
        if name in others:
            raise ConfigError("another part of the cell has this name; choose another", value=name)
    return shared


def _devices(config: CellConfig, fault_source: FaultSource) -> dict[str, Component]:
    """The devices that stand in the cell by themselves."""
    components: dict[str, Component] = {}
    for name, device in config.devices.items():
        with located_at(f"devices.{name}"):
            module = module_of("devices", device.kind)
            components[name] = module.build(name, device.config, Mount(fault_source))
    return components


def _faces(name: str, robot: RobotConfig, built: Any, deps: Deps) -> dict[str, AnyFace]:
    """The faces of a robot by endpoint; one that commands the clock is opened by the live cell."""
    faces: dict[str, AnyFace] = {}
    for face_name, face in robot.faces.items():
        module = module_of("faces", face.kind)
        timed = [suffix for suffix in face.wires if module.ENDPOINTS[suffix].timed]
        if not timed:
            continue  # a door beside the cell: the live cell opens it
        with located_at(f"robots.{name}.faces.{face_name}"):
            _check_fit(face.kind, robot.kind)
            fronts = module.build(f"{name}.{face_name}", face.config, built, deps)
        for suffix in timed:
            endpoint = endpoint_name(name, face_name, suffix)
            faces[endpoint] = fronts[suffix] if suffix else fronts
    return faces


def _free_name(endpoint: str, taken: Collection[str]) -> str:
    """The name of a face as a part: its endpoint, unless the device behind it has this name."""
    return f"{endpoint}.face" if endpoint in taken else endpoint


def _check_fit(face: str, robot: str) -> None:
    """A kind of robot declares the shipped faces that fit it; those of devices fit an arm. Other
    faces are not checked."""
    of_device = getattr(module_of("faces", face), "OF_DEVICE", False)

    def fits(kind: str) -> bool:
        if of_device:
            return has_jobs(kind)
        return face in getattr(module_of("robots", kind), "FACES", (face,))

    if face in TABLES["faces"] and not fits(robot):
        fit = [kind for kind in kinds("robots") if fits(kind)]
        raise ConfigError(
            f"the face {face} does not fit a robot of kind {robot}",
            allowed=" or ".join(f"kind {kind}" for kind in fit),
        )


def _operator_parts(name: str, kind: str, robot: Any) -> dict[str, Component]:
    """What the operator has for a robot: taught points and, if it runs programs, the program."""
    own: dict[str, Component] = {f"{name}.points": Points(name)}
    program_run = getattr(module_of("robots", kind), "program_run", None)
    if program_run is not None:
        own[f"{name}.program"] = program_run(robot)
    return own


def _links(config: CellConfig, components: Mapping[str, Component]) -> dict[str, Component]:
    """The links from outputs of robots to inputs of others."""
    if not config.head.links:
        return {}
    pins = {
        name: io
        for name in config.robots
        if isinstance(io := getattr(components[name], "io", None), VirtualIO)
    }
    return {"links": RobotLinks(config.head.links, pins)}


def _encounters(components: Mapping[str, Component]) -> dict[str, Component]:
    """The watch over robots that can touch each other: those that do not stand on one spot."""
    if sum(isinstance(component, SeesEnvironment) for component in components.values()) < 2:
        return {}
    from understudy.simulation.collision.encounters import RobotEncounters
    from understudy.simulation.collision.watch import CollisionWatch

    watches = {
        name.partition(".")[0]: component
        for name, component in components.items()
        if isinstance(component, CollisionWatch)
    }
    driving = [each for each in components.values() if isinstance(each, HasVehicles)]
    encounters = RobotEncounters(watches, driving)
    return {"encounters": encounters} if encounters.any() else {}
