"""Background work of a running cell, in a worker process: reach, validation, links that touch."""

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.app.build import build_cell
from understudy.app.reach import arm_with_initial_tool
from understudy.app.self_pairs import mesh_bodies
from understudy.app.validate import Options, validate_text
from understudy.config import CellConfig, load_config
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.offline.json_stream import encoded
from understudy.offline.validate.report import Report
from understudy.operator.background import LARGEST_RESULT
from understudy.operator.background_worker import Progress
from understudy.space.collision.pair_store import SelfPairs
from understudy.space.kinematics.chain import Frames
from understudy.space.reach.reach_map import ReachabilityAnalyzer, ReachabilityMap
from understudy.units import MM

MOST_POINTS = 100_000
LARGEST_REPORT = LARGEST_RESULT - 1024


class CellName(Struct, frozen=True, forbid_unknown_fields=True):
    """Which cell: its file, its seed, and the digest it must still have."""

    file: str
    seed: int
    digest: str


class Reach(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. ``orientations``: directions of the tool that are tried at each point."""

    cell: CellName
    robot: str = ""
    resolution_mm: Annotated[float, Meta(ge=20, le=1000)] = 100.0
    orientations: Annotated[int, Meta(ge=1, le=14)] = 14


def reach(parameters: dict[str, Any], progress: Progress) -> dict[str, Any] | Refused:
    """Points in mm from the robot's foot: x, y, z, and the number of directions that reach it."""
    asked: Reach = read(parameters, Reach)
    _, arm = arm_with_initial_tool(loaded(asked.cell), asked.robot)
    from_foot = Frames(np.eye(4), arm.frames.tool)
    found = ReachabilityAnalyzer(arm.chain, frames=from_foot).generate_map(
        asked.resolution_mm, orientations=asked.orientations, progress=progress
    )
    count = int((found.orientations > 0).sum())
    if count > MOST_POINTS:
        return Refused(f"{count} points, at most {MOST_POINTS}; a coarser resolution_mm is needed")
    return _document(found, asked)


def loaded(cell: CellName) -> CellConfig:
    """The configuration of the running cell, read from its file again."""
    config = load_config(cell.file, seed=cell.seed)
    if config.digest != cell.digest:
        raise ConfigError(
            "the cell file or a model was changed since the cell was started: restart the cell",
            file=cell.file,
        )
    return config


def _document(found: ReachabilityMap, asked: Reach) -> dict[str, Any]:
    there = found.orientations > 0
    points = (found.points[there] / MM).round(3).tolist()
    ways = found.orientations[there].tolist()
    corners = [(corner / MM).tolist() for corner in (found.workspace_min, found.workspace_max)]
    return {
        "resolution_mm": asked.resolution_mm,
        "orientations_tried": found.tried,
        "points_tried": len(found.points),
        "points_mm": [[*point, way] for point, way in zip(points, ways, strict=True)],
        "workspace_mm": corners,
    }


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. ``name``: of the program in the report."""

    cell: CellName
    text: str
    robot: str = ""
    name: str = ""
    clearance_mm: Annotated[float, Meta(ge=0)] | None = None
    with_stops: bool = False
    strict: bool = False


def validate(parameters: dict[str, Any], progress: Progress) -> msgspec.Raw | Refused:
    """The report, as `understudy validate --json` writes it."""
    asked: Asked = read(parameters, Asked)

    def report_progress(done: int, total: int) -> bool:
        progress(done / total)
        return True

    options = Options(
        robot=asked.robot,
        clearance_mm=asked.clearance_mm,
        with_stops=asked.with_stops,
        strict=asked.strict,
    )
    report = validate_text(
        asked.text,
        loaded(asked.cell),
        options=options,
        program=asked.name,
        progress=report_progress,
    )
    return _within_limit(report)


def _within_limit(report: Report) -> msgspec.Raw | Refused:
    """The report as JSON; refused as soon as it is longer than the cell takes."""
    written = bytearray()
    for part in encoded(report.listed_document()):
        written += part
        if len(written) > LARGEST_REPORT:
            return Refused(
                f"the report of {len(report.lines)} lines is longer than {LARGEST_REPORT} bytes: "
                "use `understudy validate --json`"
            )
    return msgspec.Raw(written)


class AskedPairs(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. ``part``: the collision watch of the arm."""

    cell: CellName
    part: str


def self_pairs(parameters: dict[str, Any], progress: Progress) -> SelfPairs | Refused:
    """Which links of an arm of meshes can touch each other."""
    from understudy.space.collision.self_pairs import analysed
    from understudy.space.collision.world import arm_parts

    asked: AskedPairs = read(parameters, AskedPairs)
    bodies = mesh_bodies(build_cell(loaded(asked.cell)).components)
    if asked.part not in bodies:
        return Refused(f"{asked.part} is no arm of meshes; there are: {', '.join(bodies)}")
    body = bodies[asked.part]
    return analysed(body.chain, arm_parts(body.chain, body.meshes), progress)
