"""Which job a command means: `--job`, a cell file in place of a program, or no program at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.config import load_config
from understudy.errors import ConfigError, unknown

if TYPE_CHECKING:
    from understudy.app.validate import OfflineJob
    from understudy.config import CellConfig

CELL_FILES = (".yaml", ".yml")
JobName = Annotated[
    str, typer.Option(metavar="JOB", help="check this job of the cell, not a program")
]
Cycles = Annotated[int, typer.Option(min=0, help="of a job: parts at most; 0 means all of them")]


def chosen_job(
    programs: Sequence[Path], cell: str, job: str
) -> "tuple[CellConfig, OfflineJob] | None":
    """The cell whose job is meant, and the check of the job; None if programs are meant."""
    from understudy.app.validate import offline_jobs

    if len(programs) == 1 and programs[0].suffix.lower() in CELL_FILES:
        cell, programs = str(programs[0]), []
    if programs and not job:
        return None
    jobs = offline_jobs()
    if job and job not in jobs:
        raise unknown("job", job, jobs, key="--job")
    if programs:
        raise ConfigError("give a program or a job, not both", key="--job", value=job)
    config = load_config(cell)
    named = [jobs[job]] if job else list(jobs.values())
    for check in named:
        if check.is_in(config):
            return config, check
    needs = " or ".join(check.NEEDS for check in named)
    allowed = f"a program, or a cell in which {needs}" if needs else "a program"
    raise ConfigError("there is nothing to check", value=cell, allowed=allowed)
