"""Commands `save_project` and `load_project`: a cell's work as a folder of plain files."""

import logging
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.config import CellConfig
from understudy.config.files import PROGRAM_FILES, SHIPPED, ProgramFile
from understudy.config.outside_files import FilesFolder
from understudy.config.project import (
    FORMAT,
    HEAD,
    Project,
    SavedHead,
    SavedPoint,
    SavedRobot,
    read_project,
    write_project,
)
from understudy.errors import ConfigError, Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.operator.models import joints_from, point_rows, work_offsets_of
from understudy.operator.programs import ProgramCommands
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports import Component
from understudy.ports.hmi import Later
from understudy.simulation.points import Point, Points
from understudy.space.pose import pose_of

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

log = logging.getLogger(__name__)

ZERO = (0.0,) * 6
DEFAULT_ENDING = ".gcode"
Folder = Annotated[str, Meta(max_length=1024)]


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.project)


class ProjectFolder:
    """The project folder of a cell, until another is chosen: `<cell>_project` in ``files``.

    ``files``: the folder for the files that clients name. The folder that the user names with
    `--project` may be elsewhere.
    """

    def __init__(self, config: CellConfig, files: FilesFolder) -> None:
        self.files = files
        self.now = files.folder(f"{config.name}_project")
        self.lists_files = not config.document.file.endswith(SHIPPED)
        """Whether programs in ``files`` itself are offered: those beside the cell file."""

    @property
    def path(self) -> Path:
        return self.now.path

    def saved(self) -> bool:
        return self.now.has(HEAD)

    def named(self, folder: str | None) -> FilesFolder | Refused:
        """A folder by its name in ``files``; None: the present one."""
        if not folder or folder == str(self.path):
            return self.now
        try:
            return self.files.folder(folder)
        except ConfigError as problem:
            return Refused(str(problem))


class ProjectCommands:
    """Gathers the work of every robot and writes it, or reads it and puts it into use."""

    def __init__(
        self,
        config: CellConfig,
        robots: Robots,
        components: dict[str, Component],
        folder: ProjectFolder,
        programs: ProgramCommands,
    ) -> None:
        self._cell = config.name
        self._robots = robots
        self._components = components
        self._folder = folder
        self._programs = programs

    @query()
    def project(self) -> dict[str, Any]:
        """The project folder."""
        return {"folder": str(self._folder.path), "saved": self._folder.saved()}

    def _points(self, robot: Robot) -> Points:
        points = self._components[f"{robot.name}.points"]
        assert isinstance(points, Points)
        return points

    # ── saving ──

    @command()
    def save_project(self, folder: Folder | None = None) -> Any:
        """Write programs, points, tools, frames.

        `folder`: another project folder from now on; None: the present one.
        """
        place = self._folder.named(folder)
        if isinstance(place, Refused):
            return place
        programs = {robot.name: _loaded_program(robot) for robot in self._robots}
        project = Project(
            SavedHead(FORMAT, self._cell),
            {robot.name: self._saved(robot, programs[robot.name]) for robot in self._robots},
            {name: [program] for name, program in programs.items() if program},
        )
        try:
            files = write_project(place, project)
        except ConfigError as problem:
            return Refused(str(problem))
        self._folder.now = place
        return {"folder": str(place.path), "files": files}

    def _saved(self, robot: Robot, program: ProgramFile | None) -> SavedRobot:
        points = {
            each["name"]: SavedPoint(tuple(each["pose_mm_deg"]), each["joints_deg"])
            for each in point_rows(robot, self._points(robot))
        }
        tools = {n: tool.tcp_mm_deg for n, tool in robot.model.tools().items() if tool.measured}
        side = robot.side
        known = side.program and side.program.reading(side.time.now()).breakpoints
        return SavedRobot(
            program=program.name if program else None,
            breakpoints=list(known) if program and known else [],
            points=points,
            tools={number: _six(tcp) for number, tcp in tools.items()},
            frames={name: _six(offset) for name, offset in work_offsets_of(robot).items()},
        )

    # ── loading ──

    @command()
    def load_project(self, folder: Folder | None = None) -> Any:
        """Read them and put them into use.

        `folder`: another project folder from now on; None: the present one.
        """
        place = self._folder.named(folder)
        return place if isinstance(place, Refused) else self._load(place)

    def _load(self, folder: FilesFolder) -> Any:
        """Loads a project; changes nothing if a file cannot be read or a robot is under way."""
        try:
            project = read_project(folder)
        except ConfigError as problem:
            return Refused(str(problem))
        robots = [robot for robot in self._robots if robot.name in project.robots]
        if refused := next((found for robot in robots if (found := _not_ready(robot))), None):
            return refused
        self._folder.now = folder
        notes = [note for robot in robots for note in self._apply(robot, project)]
        known = {robot.name for robot in robots}
        notes += [f"the cell has no robot {name}" for name in project.robots if name not in known]
        loaded = [robot.name for robot in robots]
        return {"folder": str(folder.path), "robots": loaded, "notes": notes}

    def open(self, path: Path) -> None:
        """Uses a folder from now on, and loads it if it is saved already; logs what is not done."""
        folder = FilesFolder(path.resolve())
        if not folder.has(HEAD):
            self._folder.now = folder
            log.warning("%s", _new_project(path))
            return
        answer = self._load(folder)
        if isinstance(answer, Refused):
            raise ConfigError(answer.reason)
        for note in answer["notes"]:
            log.warning("%s: %s", path, note)

    def _apply(self, robot: Robot, project: Project) -> list[str]:
        """Puts the file of one robot into use; returns what was not possible."""
        saved = project.robots[robot.name]
        self._points(robot).put(
            Point(
                name,
                joints_from(robot, point.joints_deg),
                pose_of(point.pose_mm_deg),
            )
            for name, point in saved.points.items()
        )
        refusals = [_set_tools(robot, saved), _set_frames(robot, saved)]
        refusals.append(self._load_program(robot, saved, project.programs[robot.name]))
        return [f"{robot.name}: {refused.reason}" for refused in refusals if refused]

    def _load_program(
        self, robot: Robot, saved: SavedRobot, programs: list[ProgramFile]
    ) -> Refused | None:
        if saved.program is None:
            return None
        program = next((each for each in programs if each.name == saved.program), None)
        if program is None:
            return Refused(f"its program {saved.program} is not in the folder")
        answer = self._programs.load_program(
            robot.name, program.text, program.name, tuple(saved.breakpoints)
        )
        return None if isinstance(answer, Later) or not isinstance(answer, Refused) else answer


def file_name(name: str) -> str | Refused:
    """The name of a program as a file's name, with an ending; no name leads out of the folder."""
    plain = name.strip()
    if plain != Path(plain).name or plain.startswith(".") or "\\" in plain or "\0" in plain:
        return Refused(f"{name!r} is not the name of a file: letters, digits, - and _ are fine")
    return plain if Path(plain).suffix in PROGRAM_FILES else plain + DEFAULT_ENDING


def _new_project(path: Path) -> str:
    """The note about a folder without a saved project, with a saved one of a similar name."""
    beside = sorted(file.parent.name for file in path.resolve().parent.glob(f"*/{HEAD}"))
    near = get_close_matches(path.resolve().name, beside, n=1)
    state = "holds no project yet" if path.is_dir() else "does not exist yet"
    text = f"--project {path}: this folder {state}; a new project begins, the first save writes it"
    return f"{text}; did you mean '{near[0]}'?" if near else text


def _loaded_program(robot: Robot) -> ProgramFile | None:
    program = robot.side.program
    if program is None or not program.text.strip():
        return None
    name = file_name(program.reading(robot.side.time.now()).name or "program")
    return ProgramFile("program.gcode" if isinstance(name, Refused) else name, program.text)


def _not_ready(robot: Robot) -> Refused | None:
    if robot.real is not None:
        return Refused(f"{robot.name} is REAL: no load_project while it is")
    if robot.under_way():
        return Refused(f"{robot.name} moves or runs a program: stop it before load_project")
    return None


def _set_tools(robot: Robot, saved: SavedRobot) -> Refused | None:
    """Measured TCPs of the file; tools that it does not name have those of the cell file."""
    known = {number for number, tool in robot.model.tools().items() if tool.measured is not None}
    for number in known:
        tip = pose_of(saved.tools[number]) if number in saved.tools else None
        if refused := robot.do("set_tcp_of", number, tip):
            return refused
    unknown = ", ".join(f"T{number}" for number in saved.tools if number not in known)
    return Refused(f"the TCP of {unknown} cannot be set") if unknown else None


def _set_frames(robot: Robot, saved: SavedRobot) -> Refused | None:
    unknown = ", ".join(name for name in saved.frames if name not in COORDINATE_SYSTEMS)
    if unknown:
        return Refused(f"unknown work frames: {unknown}; there are G54 … G59.3")
    if not hasattr(robot.side.actions, "set_work_offsets"):
        return Refused("work frames cannot be set") if saved.frames else None
    rows = [saved.frames.get(name, ZERO) for name in COORDINATE_SYSTEMS]
    return robot.do("set_work_offsets", rows)


def _six(values: Any) -> tuple[float, float, float, float, float, float]:
    x, y, z, rx, ry, rz = (float(value) for value in values)
    return x, y, z, rx, ry, rz
