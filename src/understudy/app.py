"""The composition root: configuration → parts → faces → cell."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs
from msgspec.structs import replace

from understudy.cell import scenario
from understudy.cell.cell import Cell
from understudy.cell.engine import SimulationEngine
from understudy.cell.points import Points
from understudy.cell.rules import Config as Rules
from understudy.cell.surroundings import Surroundings
from understudy.cell.tempo import Tempo
from understudy.config import CellConfig, endpoint_name, find_cell, read_cell
from understudy.config.files import append_line
from understudy.errors import ConfigError, unknown
from understudy.ports import Deps, Endpoint, Face, Injectable, Part
from understudy.wire.rehearsal import Rehearsal

if TYPE_CHECKING:
    from understudy.drivers.grblhal import Config as GrblHalConfig
    from understudy.drivers.grblhal import GrblHalDriver
    from understudy.jobs.setup import Setup  # imported where needed: it brings compiled code

log = logging.getLogger(__name__)

# kind → module with `Config` and `build`; extended by entry points of the same group.
ROBOTS = {
    "arm": "understudy.cell.arm",
    "kuka": "understudy.cell.kuka",
    "machine": "understudy.cell.machine",
    "point": "understudy.cell.point",
}
FACES = {
    "grblhal": "understudy.faces.grblhal",
    "hmi_link": "understudy.faces.hmi_link",
    "kuka_eki": "understudy.faces.kuka_eki",
    "text_tcp": "understudy.faces.text_tcp",
}


def kinds(group: str, table: Mapping[str, str]) -> dict[str, str]:
    """The literal table, extended by what is installed."""
    return dict(table) | installed(group)


@cache
def installed(group: str) -> dict[str, str]:
    """Looked for once: every package that is installed is asked."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


def robot_module(kind: str) -> ModuleType:
    return _module("robot", kind, kinds("understudy.robots", ROBOTS))


def face_module(kind: str) -> ModuleType:
    return _module("face", kind, kinds("understudy.faces", FACES))


def load_config(name: str, *, seed: int | None = None) -> CellConfig:
    """The configuration of a cell, by path or by the name of a shipped one."""
    file, text = find_cell(name)
    config = read_config(text, file)
    return config if seed is None else config.with_seed(seed)


def read_config(text: str, file: str) -> CellConfig:
    """The configuration that a cell file's text describes."""
    return read_cell(
        text, file, robot_schema=_robot_config, face_schema=_face_config, sockets=_sockets
    )


def build_cell(config: CellConfig) -> Cell:
    try:
        return _build(config)
    except ConfigError as problem:
        raise config.document.error((), problem) from None


def load_cell(name: str, *, seed: int | None = None) -> Rehearsal:
    """A cell on virtual time, by path or by the name of a shipped one."""
    return Rehearsal(build_cell(load_config(name, seed=seed)))


def machine_of(settings: str, file: str = "") -> "Setup":
    """The machine that `$n=v` lines describe: X Y Z in mm, A B C in deg, at zero."""
    from understudy.cell.machine.mover import MachineMover
    from understudy.cell.machine.settings import read_settings
    from understudy.gcode import GRBLHAL_MACHINE
    from understudy.jobs.setup import Setup

    values = read_settings(settings, file)
    mover = MachineMover.of(values)
    return Setup(
        mover,
        replace(GRBLHAL_MACHINE, rotary=values.rotary),
        window=values.planner_blocks,
        hold_up=mover.hold_up,
        rests_at_offsets=values.rests_at_offsets,
    )


def mover_of(config: CellConfig, robot: str = "", dialect: str = "") -> "Setup":
    """What a robot's programs are reckoned on; the first that runs programs if none is named."""
    from understudy.jobs.setup import Setup

    arm = arm_of(config, robot or programmable(config)[0], dialect)
    return Setup(
        mover=arm.mover(arm.habits.modal.tool),
        dialect=arm.habits.dialect,
        window=arm.window,
        profile=arm.profile,
        mount=arm.mover,
        hold_up=arm.hold_up,
        modal=arm.habits.modal,
        start=arm.start,
        dynamics=arm.dynamics[arm.habits.modal.tool],
    )


def driver_of(config: CellConfig, robot: str, settings: "GrblHalConfig") -> "GrblHalDriver":
    """A REAL grblHAL with the joints of an arm of the cell; of the first one if none is named."""
    from understudy.drivers.grblhal import build
    from understudy.jobs.joint_lines import JointLines

    setup = mover_of(config, robot, settings.dialect)
    lines, chain = JointLines(setup), getattr(setup.mover, "chain", None)
    limits = (tuple(chain.lower.tolist()), tuple(chain.upper.tolist())) if chain else None
    writer = lines if settings.dialect == "seed" else None
    return build(settings, writer=writer, tip=lines.tip, limits=limits)


def programmable(config: CellConfig) -> list[str]:
    """The robots that run programs, in the order of the cell file; there is at least one."""
    able = [name for name, each in config.robots.items() if hasattr(each.config, "dialect")]
    if not able:
        raise ConfigError(f"no robot of the cell {config.name} runs programs")
    return able


def arm_of(config: CellConfig, robot: str, dialect: str = "") -> Any:
    """A robot that runs programs, as its drives see it: everything configured, nothing moving."""
    if robot not in (able := programmable(config)):
        raise unknown("robot that runs programs", robot, able)
    kind, given = config.robots[robot].kind, config.robots[robot].config
    own = structs.replace(given, dialect=dialect or given.dialect)
    deps = Deps(scenario.build(Rules(), 0), config.read_file, Tempo())
    return _within(f"robots.{robot}", robot_module(kind).arm_of, own, deps)


def _build(config: CellConfig) -> Cell:
    luck = scenario.build(config.head.scenario, config.head.seed)
    tempo = Tempo()
    deps = Deps(luck, config.read_file, tempo, log.info, append_line)
    parts: dict[str, Part] = {}
    faces: dict[str, Face] = {}
    places: dict[str, Injectable] = {}
    for name, robot in config.robots.items():
        built = _within(f"robots.{name}", robot_module(robot.kind).build, name, robot.config, deps)
        parts[name] = places[name] = built
        for own, part in getattr(built, "parts", {}).items():
            parts[f"{name}.{own}"] = part
            if hasattr(part, "faults"):
                places[f"{name}.{own}"] = part
        for face_name, face in robot.faces.items():
            module = face_module(face.kind)
            if getattr(module, "BESIDE_THE_CELL", False):
                continue  # it commands the clock; whoever runs the cell opens it
            where, endpoint = f"robots.{name}.faces.{face_name}", f"{name}.{face_name}"
            _within(where, _check_fit, face.kind, module, robot.kind)
            fronts = _within(where, module.build, endpoint, face.config, built, deps)
            for suffix in face.wires:
                full = endpoint_name(name, face_name, suffix)
                parts[full] = places[full] = faces[full] = fronts[suffix] if suffix else fronts
        parts |= _beside(name, built)
    parts["environment"] = surroundings = Surroundings(config.environment())
    surroundings.join(parts)
    parts |= _encounters(parts)
    luck.act_on(places, faces)
    parts["scenario"] = luck
    parts["engine"] = SimulationEngine(dict(parts), places, tempo)
    return Cell(
        config.name,
        digest=config.digest,
        parts=parts,
        faces=faces,
        tempo=tempo,
        disturbed=dict.fromkeys(luck.disturbs(), luck),
    )


def _encounters(parts: Mapping[str, Any]) -> dict[str, Part]:
    """Where several arms do not stand on one spot, they can meet."""
    ending = ".collision"
    watches = {n.removesuffix(ending): part for n, part in parts.items() if n.endswith(ending)}
    if len(watches) < 2:
        return {}
    from understudy.cell.collision.encounters import Encounters

    meeting = Encounters(watches)
    return {"encounters": meeting} if meeting.any() else {}


def _beside(name: str, robot: Any) -> dict[str, Part]:
    """What the desk keeps for a robot: its points, and the program it runs if it can run one."""
    kept: dict[str, Part] = {f"{name}.points": Points(name)}
    if hasattr(robot, "send_gcode"):
        from understudy.jobs.program_run import ProgramRun

        kept[f"{name}.program"] = ProgramRun(robot, robot.arm.habits.dialect)
    return kept


def _check_fit(face: str, module: ModuleType, robot: str) -> None:
    """A face may say which kinds of robot it stands in front of; installed kinds it cannot know."""
    fits: tuple[str, ...] | None = getattr(module, "ROBOTS", None)
    if fits is not None and robot in ROBOTS and robot not in fits:
        raise ConfigError(
            f"the face {face} does not fit a robot of kind {robot}",
            allowed=" or ".join(f"kind {kind}" for kind in fits),
        )


def _within(key: str, build: Callable[..., Any], *arguments: Any) -> Any:
    """Build; what does not fit is told with its place in the cell file."""
    try:
        return build(*arguments)
    except ConfigError as problem:
        raise problem.within(key) from None


def _module(noun: str, kind: str, table: Mapping[str, str]) -> ModuleType:
    if kind not in table:
        raise unknown(f"kind of {noun}", kind, table)
    return import_module(table[kind])


def _robot_config(kind: str) -> type[Struct]:
    schema: type[Struct] = robot_module(kind).Config
    return schema


def _sockets(kind: str) -> Mapping[str, Endpoint]:
    """Of a face with several sockets; its `build` gives a face for each of them."""
    sockets: Mapping[str, Endpoint] = getattr(face_module(kind), "ENDPOINTS", {})
    return sockets


def _face_config(kind: str) -> type[Struct]:
    schema: type[Struct] = face_module(kind).Config
    return schema
