"""A project folder: programs, points, tools and work frames of a cell, as files to read and edit.

project.yaml               format: 1, and the cell
g60/robot.yaml             the loaded program, points, tools and frames of the robot g60
g60/programs/part.gcode    its programs, as they are
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.config.document import parse
from understudy.config.files import PROGRAM_FILES, ProgramFile, read_text
from understudy.config.typed import read
from understudy.errors import ConfigError

FORMAT = 1
HEAD, ROBOT, PROGRAMS = "project.yaml", "robot.yaml", "programs"
DIGITS = 9

Six = tuple[float, float, float, float, float, float]
PointName = Annotated[str, Meta(min_length=1, max_length=64)]


class SavedPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A taught point; `joints_deg` is empty for a robot without joint targets."""

    pose_mm_deg: Six
    joints_deg: list[float] = []


class SavedRobot(Struct, frozen=True, forbid_unknown_fields=True):
    """A robot's file. `program`: the one that is loaded. `tools`: TCPs, by tool, that differ from
    the cell file. `frames`: work offsets that are not zero."""

    program: str | None = None
    points: dict[PointName, SavedPoint] = {}
    tools: dict[int, Six] = {}
    frames: dict[str, Six] = {}


class SavedHead(Struct, frozen=True, forbid_unknown_fields=True):
    """`project.yaml`."""

    format: int
    cell: str = ""


class Project(Struct, frozen=True):
    """A whole folder: the head, and the file and the programs of every robot."""

    head: SavedHead
    robots: dict[str, SavedRobot]
    programs: dict[str, list[ProgramFile]]


# ── reading ──


def read_project(folder: Path) -> Project:
    head: SavedHead = _read(folder / HEAD, SavedHead)
    if head.format != FORMAT:
        raise ConfigError("format", file=str(folder / HEAD), value=head.format, allowed=str(FORMAT))
    files = sorted(folder.glob(f"*/{ROBOT}"))
    robots = {file.parent.name: _read(file, SavedRobot) for file in files}
    return Project(head, robots, {name: programs_in(folder, name) for name in robots})


def programs_in(folder: Path, robot: str) -> list[ProgramFile]:
    """The programs of a robot in a project folder, by name."""
    return [ProgramFile(file.name, read_text(file)) for file in program_files(folder, robot)]


def program_files(folder: Path, robot: str) -> list[Path]:
    return program_files_in(folder / robot / PROGRAMS)


def program_files_in(folder: Path) -> list[Path]:
    """The files of a folder that are programs by their ending."""
    try:
        found = [each for each in folder.iterdir() if each.suffix in PROGRAM_FILES]
    except OSError:
        return []
    return sorted(each for each in found if each.is_file())


def _read(file: Path, kind: type[Struct]) -> Any:
    document = parse(read_text(file), str(file))
    try:
        return read(document.value, kind)
    except ConfigError as problem:
        raise document.error((), problem) from None


# ── writing ──


def write_project(folder: Path, project: Project) -> list[str]:
    """Writes all files and returns their names; other files of the folder stay as they are."""
    cell = json.dumps(project.head.cell, ensure_ascii=False)
    texts = {HEAD: f"format: {FORMAT}\ncell: {cell}\n"}
    for name, robot in project.robots.items():
        texts[f"{name}/{ROBOT}"] = "".join(_robot_lines(robot))
        for program in project.programs.get(name, ()):
            texts[f"{name}/{PROGRAMS}/{program.name}"] = program.text
    for name, text in texts.items():
        write_file(folder / name, text)
    return list(texts)


def write_file(path: Path, text: str) -> None:
    """Writes a file whole or not at all; its folder is made."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(path)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(f"cannot be written: {reason}", file=str(path)) from None


def _robot_lines(robot: SavedRobot) -> Iterator[str]:
    """YAML with one line for each value, so that a difference of two versions is easy to read."""
    yield "# program: the one that is loaded; points: mm and degrees\n"
    yield f"program: {json.dumps(robot.program, ensure_ascii=False)}\n"
    points = {
        json.dumps(name, ensure_ascii=False): _point_text(point)
        for name, point in robot.points.items()
    }
    yield from _mapping("points", points)
    yield "# tools: measured TCPs, from the flange; frames: offsets of G54 … G59.3\n"
    yield from _mapping("tools", {number: _row(tcp) for number, tcp in robot.tools.items()})
    yield from _mapping("frames", {name: _row(offset) for name, offset in robot.frames.items()})


def _mapping(key: str, rows: Mapping[Any, str]) -> Iterator[str]:
    yield f"{key}:\n" if rows else f"{key}: {{}}\n"
    for name, row in rows.items():
        yield f"  {name}: {row}\n"


def _point_text(point: SavedPoint) -> str:
    return f"{{pose_mm_deg: {_row(point.pose_mm_deg)}, joints_deg: {_row(point.joints_deg)}}}"


def _row(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{round(value, DIGITS) + 0.0:.12g}' for value in values)}]"
