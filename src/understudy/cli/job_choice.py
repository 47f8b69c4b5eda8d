"""Which job a command means: `--job`, a cell file in place of a program, or no program at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.config import load_config
from understudy.errors import ConfigError, unknown

if TYPE_CHECKING:
    from understudy.config import CellConfig

JOBS = ("pick-place",)
CELL_FILES = (".yaml", ".yml")
JobName = Annotated[
    str, typer.Option(metavar="[pick-place]", help="check this job of the cell, not a program")
]
Cycles = Annotated[int, typer.Option(min=0, help="of a job: parts at most; 0 means all of them")]


def cell_of_job(programs: Sequence[Path], cell: str, job: str) -> "CellConfig | None":
    """The cell whose job is meant; None if programs are."""
    if job and job not in JOBS:
        raise unknown("job", job, JOBS, key="--job")
    if len(programs) == 1 and programs[0].suffix.lower() in CELL_FILES:
        cell, programs = str(programs[0]), []
    if job and programs:
        raise ConfigError("give a program or a job, not both", key="--job", value=job)
    if programs:
        return None
    config = load_config(cell)
    if not any(robot.pick_place.pickplace for robot in config.robots.values()):
        allowed = "a program, or a cell in which a robot has the section `pickplace`"
        raise ConfigError("there is nothing to check", value=cell, allowed=allowed)
    return config
