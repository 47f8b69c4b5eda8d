"""Programs to open: the shipped ones, those beside the cell file, those of the project folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from understudy.config import CellConfig
from understudy.config.document import parse
from understudy.config.files import program_indexes, shipped_programs
from understudy.config.outside_files import FilesFolder, anything
from understudy.config.project import (
    program_files_in,
    program_folder,
    read_program_file,
)
from understudy.errors import ConfigError, Refused
from understudy.operator.programs import Text
from understudy.operator.project import ProjectFolder, file_name
from understudy.operator.robots import Robots
from understudy.operator.table import Command, command, commands_of, query

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Source = Literal["shipped", "cell", "project"]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(LibraryCommands(cell.config, cell.robots, cell.folder))


class LibraryCommands:
    """Lists, reads and saves programs of a robot."""

    def __init__(self, config: CellConfig, robots: Robots, folder: ProjectFolder) -> None:
        self._cell = config.name
        self._robots = robots
        self._folder = folder

    @query()
    def programs(self, robot: str) -> Any:
        """Programs to open: shipped, beside the cell file, in the project folder."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        shipped = [
            {"source": "shipped", "name": shipped_programs()[name].name, **row}
            for name, row in program_index().items()
            if row["kind"] == found.kind
        ]
        shipped.sort(key=lambda row: row["cell"] != self._cell)  # those of this cell first
        try:
            own = [
                {"source": source, "name": name}
                for source in ("project", "cell")
                if source == "project" or self._folder.lists_files
                for name in program_files_in(self._place(robot, source))
            ]
        except ConfigError as problem:
            return Refused(str(problem))
        return {"programs": [*shipped, *own], "project": str(self._folder.path)}

    def _place(self, robot: str, source: Source | str) -> FilesFolder:
        if source == "project":
            return program_folder(self._folder.now, robot)
        return self._folder.files

    @query()
    def read_program(self, robot: str, name: Name, source: Source = "shipped") -> Any:
        """The text of one of them.

        `source`: `shipped`, `cell` (beside the cell file) or `project`.
        """
        listed = self.programs(robot)
        if isinstance(listed, Refused):
            return listed
        known = [row["name"] for row in listed["programs"] if row["source"] == source]
        if name not in known:
            there = ", ".join(known) or "none"
            return Refused(f"no program {name!r} ({source}); there are: {there}")
        try:
            if source == "shipped":
                text = shipped_programs()[Path(name).stem].read_text(encoding="utf-8")
            else:
                text = read_program_file(self._place(robot, source), name)
        except ConfigError as problem:
            return Refused(str(problem))
        return {"name": name, "text": text}

    @command()
    def save_program(self, robot: str, name: Name, text: Text) -> Any:
        """Write it to the project folder."""
        found, file = self._robots.find(robot), file_name(name)
        if isinstance(found, Refused):
            return found
        if isinstance(file, Refused):
            return file
        try:
            path = program_folder(self._folder.now, robot).write(file, text.encode(), anything)
        except ConfigError as problem:
            return Refused(str(problem))
        return {"name": file, "file": str(path)}


def program_index() -> dict[str, dict[str, Any]]:
    """The shipped programs by name: `kind` of robot, `cell`, and the title in every language."""
    found: dict[str, dict[str, Any]] = {}
    for file in program_indexes():
        found |= parse(file.read_text(encoding="utf-8"), file.name).value
    return dict(sorted(found.items()))
