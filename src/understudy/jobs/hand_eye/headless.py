"""A hand-eye calibration run headless: a cell on virtual time with its camera, and the result."""

from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs, to_builtins

from understudy.app.build import build_cell
from understudy.config import CellConfig
from understudy.config.typed import read
from understudy.errors import Refused
from understudy.jobs.hand_eye import HAND_EYE
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.headless import run_job
from understudy.units import seconds

COMPUTED = ("DONE", "CHECK_FAILED")
"""States at the end of a run that has a result."""


@dataclass(frozen=True)
class Calibrated:
    """The result of a headless run. `status`: of the job, as the operator's query gives it; `text`:
    the calibration file, empty without a result; `pictures`: base64 of JPEG files, one for each
    pose."""

    cell: str
    robot: str
    status: dict[str, Any]
    text: str
    pictures: tuple[str, ...]
    simulated_s: float


def with_hand_eye(config: CellConfig, robot: str, **changed: Any) -> CellConfig:
    """Other keys of the section `hand_eye` of a robot; None: as in the file."""
    given = config.robots[robot]
    section = given.sections.get(HAND_EYE) or HandEyeConfig()
    keys = {key: value for key, value in changed.items() if value is not None}
    checked = read(to_builtins(section) | to_builtins(keys), HandEyeConfig, "hand_eye")
    sections = {**given.sections, HAND_EYE: checked}
    robots = {**config.robots, robot: structs.replace(given, sections=sections)}
    return replace(config, robots=robots)


def calibrate_headless(
    config: CellConfig, robot: str, *, date: str, force: bool = False, most_s: float = 3600.0
) -> Calibrated | Refused:
    """Runs the job of a robot to its end, or for ``most_s`` simulated seconds at most. ``force``:
    there is a file also if the check fails."""
    cell = build_cell(config)
    job: Any = cell.components[f"{robot}.{HAND_EYE}"]
    started = cell.now
    if refused := run_job(cell, robot, job, most_s):
        return Refused(refused.reason, refused.code)
    if job.is_running():
        job.cancel(cell.now)
    status = job.status(cell.now)
    text = job.document(date, force=force) if status.state in COMPUTED else ""
    pictures = (job.picture(number) for number in range(1, status.captured + 1))
    return Calibrated(
        config.name,
        robot,
        {"robot": robot, **to_builtins(status)},
        "" if isinstance(text, Refused) else text,
        tuple("" if isinstance(each, Refused) else each for each in pictures),
        seconds(cell.now - started),
    )
