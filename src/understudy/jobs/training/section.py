"""Key `course` of a cell file: the exercises of an operator training, and the part that runs them.

course: {}                      # the shipped exercises for a cell of this name
course: {folder: exercises}     # those of a folder beside the cell file
"""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from understudy.config.files import SHIPPED
from understudy.config.typed import FileKey
from understudy.errors import ConfigError
from understudy.jobs.training.exercise import NamedExercise, exercises_of, shipped_exercises
from understudy.ports import Component

if TYPE_CHECKING:
    from understudy.ports.sections import CellSite

COURSE = "course"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`folder`: of exercise files, beside the cell file; without it the shipped exercises for a
    cell of this name. `only`: the names of the exercises that the course has; empty: all."""

    folder: FileKey | None = None
    only: tuple[str, ...] = ()


class Course(Struct, frozen=True):
    """The exercises in their order."""

    exercises: tuple[NamedExercise, ...]


def parsed_beside(section: Config, file: str) -> Course:
    stem = file.removesuffix(SHIPPED).rsplit("/", 1)[-1].split(".", 1)[0]
    if section.folder is None:
        known = {name: each for name, each in shipped_exercises().items() if each.cell == stem}
        where = f"a folder: no exercise is shipped for a cell {stem}"
    else:
        known = exercises_of(Path(file).parent / section.folder)
        where = "a folder with exercise files (.yaml)"
    for name in section.only:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise ConfigError("there is no such exercise", key="only", value=name, allowed=allowed)
    chosen = [
        NamedExercise(n, e) for n, e in known.items() if not section.only or n in section.only
    ]
    if not chosen:
        raise ConfigError("there is no exercise", key="folder", value=section.folder, allowed=where)
    return Course(tuple(chosen))


def build(site: "CellSite") -> dict[str, Component]:
    """`course`."""
    from understudy.jobs.training.course import CourseRun

    return {COURSE: CourseRun(site)}
