"""The composition root: configuration → parts → faces → cell."""

import logging
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from understudy.config import CellConfig, endpoint_name, load_config
from understudy.config.files import append_line
from understudy.errors import ConfigError, located_at
from understudy.ports import Deps, Face, Injectable, Part
from understudy.registry import ROBOTS, module_of
from understudy.simulation import scenario
from understudy.simulation.cell import Cell
from understudy.simulation.clock_state import ClockState
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.points import Points
from understudy.wire.in_process import InProcessCell

log = logging.getLogger(__name__)


def build_cell(config: CellConfig) -> Cell:
    try:
        return _build(config)
    except ConfigError as problem:
        raise config.document.error((), problem) from None


def load_cell(name: str, *, seed: int | None = None) -> InProcessCell:
    """A cell on virtual time, by path or by the name of a shipped one."""
    return InProcessCell(build_cell(load_config(name, seed=seed)))


def _build(config: CellConfig) -> Cell:
    fault_source = scenario.build(config.head.scenario, config.head.seed)
    clock_state = ClockState()
    deps = Deps(fault_source, config.read_file, clock_state, log.info, append_line)
    parts: dict[str, Part] = {}
    faces: dict[str, Face] = {}
    places: dict[str, Injectable] = {}
    for name, robot in config.robots.items():
        with located_at(f"robots.{name}"):
            built = module_of("robots", robot.kind).build(name, robot.config, deps)
        parts[name] = places[name] = built
        for own, part in getattr(built, "parts", {}).items():
            parts[f"{name}.{own}"] = part
            if hasattr(part, "faults"):
                places[f"{name}.{own}"] = part
        for face_name, face in robot.faces.items():
            module = module_of("faces", face.kind)
            if getattr(module, "BESIDE_THE_CELL", False):
                continue  # it commands the clock; whoever runs the cell opens it
            where, endpoint = f"robots.{name}.faces.{face_name}", f"{name}.{face_name}"
            with located_at(where):
                _check_fit(face.kind, module, robot.kind)
                fronts = module.build(endpoint, face.config, built, deps)
            for suffix in face.wires:
                full = endpoint_name(name, face_name, suffix)
                parts[full] = places[full] = faces[full] = fronts[suffix] if suffix else fronts
        parts |= _beside(name, built)
    parts["environment"] = surroundings = CellEnvironment(config.environment())
    surroundings.join(parts)
    parts |= _encounters(parts)
    fault_source.act_on(places, faces)
    parts["scenario"] = fault_source
    parts["engine"] = SimulationEngine(dict(parts), places, clock_state)
    return Cell(
        config.name,
        digest=config.digest,
        parts=parts,
        faces=faces,
        clock_state=clock_state,
        disturbed=dict.fromkeys(fault_source.disturbs(), fault_source),
    )


def _encounters(parts: Mapping[str, Any]) -> dict[str, Part]:
    """Where several arms do not stand on one spot, they can meet."""
    ending = ".collision"
    watches = {n.removesuffix(ending): part for n, part in parts.items() if n.endswith(ending)}
    if len(watches) < 2:
        return {}
    from understudy.simulation.collision.encounters import RobotEncounters

    meeting = RobotEncounters(watches)
    return {"encounters": meeting} if meeting.any() else {}


def _beside(name: str, robot: Any) -> dict[str, Part]:
    """What the desk keeps for a robot: its points, and the program it runs if it can run one."""
    kept: dict[str, Part] = {f"{name}.points": Points(name)}
    if hasattr(robot, "send_gcode"):
        from understudy.jobs.program_run import ProgramRun

        kept[f"{name}.program"] = ProgramRun(robot, robot.arm.options.dialect)
    return kept


def _check_fit(face: str, module: ModuleType, robot: str) -> None:
    """A face may say which kinds of robot it stands in front of; installed kinds it cannot know."""
    fits: tuple[str, ...] | None = getattr(module, "ROBOTS", None)
    if fits is not None and robot in ROBOTS and robot not in fits:
        raise ConfigError(
            f"the face {face} does not fit a robot of kind {robot}",
            allowed=" or ".join(f"kind {kind}" for kind in fits),
        )
