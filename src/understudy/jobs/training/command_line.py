"""`understudy course`: the operator training of a cell on its page."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import yaml
from rich.console import Console
from rich.table import Table

from understudy.cli.options import JsonOption, cell_option, json_beside_text, put_json
from understudy.cli.parameters import Argument, Option
from understudy.cli.run import run_on_page
from understudy.config import load_config
from understudy.config.files import YAML_FILES, find_cell, read_text, shipped_cells
from understudy.errors import ConfigError
from understudy.jobs.training.check import cell_of
from understudy.jobs.training.exercise import (
    Exercise,
    Language,
    exercises_of,
    find_exercise,
    read_exercise,
    said,
    shipped_exercises,
)
from understudy.jobs.training.section import COURSE


def course(
    exercise: Annotated[
        str,
        Argument(
            metavar="[EXERCISE]",
            help="name of a shipped exercise, path of an exercise file, or of a folder of them; "
            "without it the shipped ones are listed",
        ),
    ] = "",
    cell: Annotated[str, cell_option("default: the cell that the exercise names")] = "",
    show: Annotated[
        bool,
        Option("--open/--no-open", help="show the page in the browser, or only serve it"),
    ] = True,
    language: Annotated[Language, Option(help="language of the list")] = "en",
    ready_file: Annotated[
        Path | None, Option(help="JSON file with all addresses, written when it listens")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Open the operator training on the page, until Ctrl-C: exercises that the cell checks itself.

    The cell has all exercises that belong to it. A cell file of your own has a course, too, if it
    has the key `course`.
    """
    if not exercise and not cell:
        _list(language, json)
        return
    name, section = _chosen(exercise, cell)
    with TemporaryDirectory(prefix="understudy-course-") as folder:
        config = load_config(str(write_cell(Path(folder), name, section)))
        with json_beside_text(json) as lines:
            print("The page Training has the exercises.", flush=True)
            files = Path.cwd()
            run_on_page(config, None, files, open_page=show, ready_file=ready_file, lines=lines)


def _list(language: str, json: str | None) -> None:
    known = shipped_exercises()
    rows = [
        {
            "name": name,
            "cell": each.cell,
            "title": said(each.title, language),
            "tasks": len(each.tasks),
            "time_limit_s": each.time_limit_s,
        }
        for name, each in known.items()
    ]
    if put_json(json, rows):
        return
    table = Table("exercise", "cell", "title", "tasks", "time limit")
    for row in rows:
        limit = f"{row['time_limit_s']:g} s"
        values = (row["name"], row["cell"], row["title"], str(row["tasks"]), limit)
        table.add_row(*map(str, values))
    Console().print(table)
    print("Open one: understudy course EXERCISE")


def _chosen(exercise: str, cell: str) -> tuple[str, dict[str, Any]]:
    """The cell, and what stands at its key `course`."""
    path = Path(exercise)
    if exercise and path.is_dir():
        found = exercises_of(path)
        named = {each.cell: cell_of(each, str(path / "_")) for each in found.values() if each.cell}
        return _one_cell(cell, named, exercise), {"folder": str(path.absolute())}
    if exercise and (path.suffix in YAML_FILES or path.is_file()):
        one: Exercise = read_exercise(read_text(path), exercise)
        named = {one.cell: cell_of(one, exercise)} if one.cell else {}
        folder = str(path.parent.absolute())
        return _one_cell(cell, named, exercise), {"folder": folder, "only": [path.stem]}
    if exercise:
        one = find_exercise(exercise)
        return cell or one.cell, {}
    return cell, {}


def _one_cell(cell: str, named: dict[str, str], file: str) -> str:
    if cell:
        return cell
    if len(named) != 1:
        problem = "the exercises name no cell" if not named else "the exercises name several cells"
        raise ConfigError(problem, file=file, value=", ".join(named), allowed="--cell CELL")
    return next(iter(named.values()))


def write_cell(folder: Path, cell: str, section: dict[str, Any]) -> Path:
    """Writes a shipped cell into a folder, with a course. A cell of one's own is used as it is, and
    must have the key `course` itself: its other files lie beside it."""
    if cell not in shipped_cells():
        file, text = find_cell(cell)
        if COURSE not in load_config(cell).sections:
            allowed = f"the line `{COURSE}: {{}}`, or `{COURSE}: {{folder: exercises}}`"
            raise ConfigError("this cell has no course", file=file, key=COURSE, allowed=allowed)
        return Path(file)
    _, text = find_cell(cell)
    place = folder / f"{cell}.yaml"
    place.write_text(f"{text}{yaml.safe_dump({COURSE: section})}", encoding="utf-8")
    return place
