"""A pick & place job run headless: a cell on virtual time, and the summary of the run."""

from time import perf_counter
from typing import Any

from msgspec import Struct

from understudy.app.build import build_cell
from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.jobs.headless import chosen_robot, run_job
from understudy.jobs.pick_place import CYCLE
from understudy.jobs.pick_place.status import GOOD_ENDS, PickPlaceState, PickPlaceStatus
from understudy.units import seconds

JOB = "pick_place"


class Summary(Struct, frozen=True):
    """What a headless run has done. `simulated_s`: length of the run. `ended`: why it ended.
    `error`: why it failed."""

    cell: str
    robot: str
    state: PickPlaceState
    ended: str
    cycles: int
    success: int
    failed: int
    mean_s: float
    shortest_s: float
    longest_s: float
    parts_per_hour: float
    simulated_s: float
    wall_s: float
    error: str = ""
    by_class: dict[str, int] = {}

    @property
    def passed(self) -> bool:
        """At least one part was placed, and nothing was left undone because of a fault."""
        return self.success > 0 and self.ended in GOOD_ENDS and self.state == "IDLE"


def run_headless(
    config: CellConfig, *, robot: str = "", cycles: int = -1, most_s: float = 3600.0
) -> Summary | Refused:
    """Runs the job of a robot until it ends, or for ``most_s`` simulated seconds at most."""
    name, began = chosen_robot(config, robot, CYCLE), perf_counter()
    cell = build_cell(config)
    job: Any = cell.components[f"{name}.{JOB}"]
    started = cell.now
    if refused := run_job(cell, name, job, most_s, max_cycles=cycles):
        return Refused(refused.reason, refused.code)
    late = job.is_running()
    if late:
        job.stop(cell.now)
    return _summary(config, name, job.status(cell.now), seconds(cell.now - started), late, began)


def _summary(
    config: CellConfig,
    robot: str,
    status: PickPlaceStatus,
    lasted: float,
    late: bool,
    began: float,
) -> Summary:
    times = status.statistics
    return Summary(
        cell=config.name,
        robot=robot,
        state=status.state,
        ended="TIME" if late else status.reason or status.code,
        cycles=status.cycle_count,
        success=status.success_count,
        failed=status.fail_count,
        mean_s=times.mean_s,
        shortest_s=times.shortest_s,
        longest_s=times.longest_s,
        parts_per_hour=status.success_count / lasted * 3600.0 if lasted else 0.0,
        simulated_s=lasted,
        wall_s=perf_counter() - began,
        error=status.last_error,
        by_class=times.by_class,
    )
