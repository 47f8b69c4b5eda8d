"""Programs to open: the shipped ones, those beside the cell file, those of the project folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.config import CellConfig
from understudy.config.document import parse
from understudy.config.files import PROGRAM_FILES, SHIPPED, program_indexes, shipped_programs
from understudy.config.outside_files import FilesFolder, anything
from understudy.config.project import (
    HEAD,
    program_files_in,
    program_folder,
    read_program_file,
)
from understudy.errors import ConfigError, Refused
from understudy.operator.programs import Text
from understudy.operator.robots import OfRobot, Robots
from understudy.operator.table import Command

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Source = Literal["shipped", "cell", "project"]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
DEFAULT_ENDING = ".gcode"


def commands(cell: "OperatedCell") -> list[Command]:
    return LibraryCommands(cell.config, cell.robots, cell.folder).commands()


class ReadProgram(Struct, frozen=True, forbid_unknown_fields=True):
    """`source`: `shipped`, `cell` (beside the cell file) or `project`."""

    robot: str
    name: Name
    source: Source = "shipped"


class SaveProgram(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    name: Name
    text: Text


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


class LibraryCommands:
    """Lists, reads and saves programs of a robot."""

    def __init__(self, config: CellConfig, robots: Robots, folder: ProjectFolder) -> None:
        self._cell = config.name
        self._robots = robots
        self._folder = folder

    def commands(self) -> list[Command]:
        viewer: Literal["viewer"] = "viewer"
        listing = "programs to open: shipped, beside the cell file, in the project folder"
        return [
            Command("programs", listing, self._list, OfRobot, role=viewer),
            Command("read_program", "the text of one of them", self._read, ReadProgram, viewer),
            Command("save_program", "write it to the project folder", self._save, SaveProgram),
        ]

    def _list(self, given: OfRobot) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        shipped = [
            {"source": "shipped", "name": shipped_programs()[name].name, **row}
            for name, row in program_index().items()
            if row["kind"] == robot.kind
        ]
        shipped.sort(key=lambda row: row["cell"] != self._cell)  # those of this cell first
        try:
            own = [
                {"source": source, "name": name}
                for source in ("project", "cell")
                for name in self._files(robot.name, source)
            ]
        except ConfigError as problem:
            return Refused(str(problem))
        return {"programs": [*shipped, *own], "project": str(self._folder.path)}

    def _files(self, robot: str, source: Source | str) -> list[str]:
        if source == "cell" and not self._folder.lists_files:
            return []
        return program_files_in(self._place(robot, source))

    def _place(self, robot: str, source: Source | str) -> FilesFolder:
        if source == "project":
            return program_folder(self._folder.now, robot)
        return self._folder.files

    def _read(self, given: ReadProgram) -> Any:
        listed = self._list(OfRobot(given.robot))
        if isinstance(listed, Refused):
            return listed
        known = [row["name"] for row in listed["programs"] if row["source"] == given.source]
        if given.name not in known:
            there = ", ".join(known) or "none"
            return Refused(f"no program {given.name!r} ({given.source}); there are: {there}")
        try:
            text = self._text(given)
        except ConfigError as problem:
            return Refused(str(problem))
        return {"name": given.name, "text": text}

    def _text(self, given: ReadProgram) -> str:
        if given.source == "shipped":
            return shipped_programs()[Path(given.name).stem].read_text(encoding="utf-8")
        return read_program_file(self._place(given.robot, given.source), given.name)

    def _save(self, given: SaveProgram) -> Any:
        robot = self._robots.find(given.robot)
        name = file_name(given.name)
        if isinstance(robot, Refused) or isinstance(name, Refused):
            return robot if isinstance(robot, Refused) else name
        folder = program_folder(self._folder.now, robot.name)
        try:
            path = folder.write(name, given.text.encode(), anything)
        except ConfigError as problem:
            return Refused(str(problem))
        return {"name": name, "file": str(path)}


def program_index() -> dict[str, dict[str, Any]]:
    """The shipped programs by name: `kind` of robot, `cell`, and the title in every language."""
    found: dict[str, dict[str, Any]] = {}
    for file in program_indexes():
        found |= parse(file.read_text(encoding="utf-8"), file.name).value
    return dict(sorted(found.items()))


def file_name(name: str) -> str | Refused:
    """The name of a program as a file's name, with an ending; no name leads out of the folder."""
    plain = name.strip()
    if plain != Path(plain).name or plain.startswith(".") or "\\" in plain or "\0" in plain:
        return Refused(f"{name!r} is not the name of a file: letters, digits, - and _ are fine")
    return plain if Path(plain).suffix in PROGRAM_FILES else plain + DEFAULT_ENDING
