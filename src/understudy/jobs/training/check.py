"""`understudy check` of an exercise file: what is wrong in it, and where."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from understudy.app.live import Live, Options
from understudy.config import CellConfig, load_config
from understudy.config.document import Document, parse
from understudy.config.files import shipped_cells
from understudy.errors import ConfigError
from understudy.jobs.training.exercise import Exercise, NamedExercise, exercise_in, is_exercise
from understudy.jobs.training.section import COURSE, Course


def checked(text: str, file: str) -> str:
    """What the file is; empty if it is no exercise. It is checked with the cell that it names."""
    if not file.endswith((".yaml", ".yml")):
        return ""
    document = parse(text, file)
    if not is_exercise(document):
        return ""
    exercise = exercise_in(document)
    tasks = f"{len(exercise.tasks)} task{'s' if len(exercise.tasks) > 1 else ''}"
    if not exercise.cell:
        return f"an exercise ({tasks}); it names no cell, so nothing of a cell was checked"
    check_in_cell(exercise, document)
    return f"an exercise of {exercise.cell} ({tasks})"


def check_in_cell(exercise: Exercise, document: Document) -> None:
    """Raises a ConfigError for parts, fields, faults and commands that its cell does not have."""
    name = Path(document.file).stem
    place = cell_of(exercise, document.file)
    with _in_file(document, "cell"):
        config = load_config(place)
    course = Course((NamedExercise(name, exercise),))
    with_course = replace(config, sections={**config.sections, COURSE: course})
    prefix = f"{COURSE}.exercises.{name}"
    try:
        asyncio.run(_check_commands(exercise, with_course, prefix))
    except ConfigError as problem:
        if not problem.key.startswith(prefix):
            raise
        key = problem.key.removeprefix(prefix).lstrip(".")
        bare = ConfigError(
            problem.problem,
            key=key,
            value=problem.value,
            allowed=problem.allowed,
            nearest=problem.nearest,
        )
        raise document.error((), bare) from None


@contextmanager
def _in_file(document: Document, key: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as problem:
        raise document.error((key,), problem) from None


def cell_of(exercise: Exercise, file: str) -> str:
    """The shipped cell of an exercise, or the path of one, seen from the folder of its file."""
    path = Path(file).parent / exercise.cell
    return exercise.cell if exercise.cell in shipped_cells() or not path.exists() else str(path)


async def _check_commands(exercise: Exercise, config: CellConfig, prefix: str) -> None:
    """Builds the cell as `run` does, and looks for the commands of the set-up."""
    commands = Live(config, Options(ephemeral=True)).commands
    for number, step in enumerate(exercise.set_up):
        commands.check(step.command, step.parameters, f"{prefix}.set_up.{number}")
