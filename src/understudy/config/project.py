"""A project folder: programs, points, tools and work frames of a cell, as files to read and edit.

project.yaml               format: 1, and the cell
g60/robot.yaml             the loaded program, points, tools and frames of the robot g60
g60/programs/part.gcode    its programs, as they are

All files of a project are those of one save, also if the process is killed: they stand in one file,
`.understudy-save`, before the first of them is replaced, and the next reader of the project ends a
save that was cut off.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from understudy.config.document import parse
from understudy.config.files import PROGRAM_FILES, ProgramFile
from understudy.config.limits import LARGEST_YAML
from understudy.config.outside_files import FilesFolder, anything, nothing
from understudy.errors import UNREADABLE, ConfigError
from understudy.ports.program import LONGEST_PROGRAM

FORMAT = 1
HEAD, ROBOT, PROGRAMS = "project.yaml", "robot.yaml", "programs"
SAVE = ".understudy-save"
LARGEST_SAVE = 1 << 28
DIGITS = 9
Saved = TypeVar("Saved")

Six = tuple[float, float, float, float, float, float]
PointName = Annotated[str, Meta(min_length=1, max_length=64)]


class SavedPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A taught point; `joints_deg` is empty for a robot without joint targets."""

    pose_mm_deg: Six
    joints_deg: list[float] = []


class SavedRobot(Struct, frozen=True, forbid_unknown_fields=True):
    """A robot's file. `program`: the one that is loaded; `breakpoints`: its lines. `tools`: TCPs,
    by tool, that differ from the cell file. `frames`: work offsets that are not zero."""

    program: str | None = None
    breakpoints: list[int] = []
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


def read_project(folder: FilesFolder) -> Project:
    _end_save(folder)
    head = _read(folder, HEAD, SavedHead)
    if head.format != FORMAT:
        file = str(folder.path / HEAD)
        raise ConfigError("format", file=file, value=head.format, allowed=str(FORMAT))
    names = [name for name in folder.names(folders=True) if folder.has(f"{name}/{ROBOT}")]
    robots = {name: _read(folder, f"{name}/{ROBOT}", SavedRobot) for name in names}
    programs = {name: _loaded(folder, name, robot) for name, robot in robots.items()}
    return Project(head, robots, programs)


def _loaded(folder: FilesFolder, robot: str, saved: SavedRobot) -> list[ProgramFile]:
    """The program that a robot's file names, if it is in the folder."""
    if saved.program is None or saved.program not in program_files(folder, robot):
        return []
    return [
        ProgramFile(saved.program, read_program_file(program_folder(folder, robot), saved.program))
    ]


def program_folder(folder: FilesFolder, robot: str) -> FilesFolder:
    return folder.folder(robot).folder(PROGRAMS)


def program_files(folder: FilesFolder, robot: str) -> list[str]:
    """The names of a robot's programs in a project folder."""
    return program_files_in(program_folder(folder, robot))


def program_files_in(folder: FilesFolder) -> list[str]:
    """The files of a folder that are programs by their ending."""
    return [name for name in folder.names() if PurePosixPath(name).suffix in PROGRAM_FILES]


def read_program_file(folder: FilesFolder, name: str) -> str:
    text = folder.read_text(name, LONGEST_PROGRAM)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(folder: FilesFolder, name: str, kind: type[Saved]) -> Saved:
    return parse(folder.read_text(name, LARGEST_YAML), str(folder.path / name)).read(kind)


# ── writing ──


def write_project(folder: FilesFolder, project: Project) -> list[str]:
    """Writes all files and returns their names; other files of the folder stay as they are."""
    cell = json.dumps(project.head.cell, ensure_ascii=False)
    texts = {HEAD: f"format: {FORMAT}\ncell: {cell}\n"}
    for name, robot in project.robots.items():
        texts[f"{name}/{ROBOT}"] = "".join(_robot_lines(robot))
        for program in project.programs.get(name, ()):
            texts[f"{name}/{PROGRAMS}/{program.name}"] = program.text
    known = folder.has(HEAD) and bool(_read(folder, HEAD, SavedHead))  # another's raises
    for name in texts:
        if not known and PurePosixPath(name).parent.name != PROGRAMS and folder.has(name):
            folder.write(name, b"", nothing)  # raises
    save = msgspec.json.encode(texts)
    if len(save) > LARGEST_SAVE:
        raise ConfigError(f"a project of {len(save)} bytes; at most {LARGEST_SAVE}")
    folder.write(SAVE, save, anything)
    _end_save(folder)
    return list(texts)


def _end_save(folder: FilesFolder) -> None:
    """Puts the files of the last save into their places, if that was not done."""
    if not folder.has(SAVE):
        return
    try:
        texts = msgspec.json.decode(folder.read(SAVE, LARGEST_SAVE), type=dict[str, str])
    except UNREADABLE as problem:
        raise ConfigError(f"not a save: {problem}", file=str(folder.path / SAVE)) from None
    for name, text in texts.items():
        folder.write(name, text.encode(), anything)
    folder.remove(SAVE)


def _robot_lines(robot: SavedRobot) -> Iterator[str]:
    """YAML with one line for each value, so that a difference of two versions is easy to read."""
    yield "# program: the one that is loaded; points: mm and degrees\n"
    yield f"program: {json.dumps(robot.program, ensure_ascii=False)}\n"
    if robot.breakpoints:
        yield f"breakpoints: {_row(robot.breakpoints)}\n"
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
