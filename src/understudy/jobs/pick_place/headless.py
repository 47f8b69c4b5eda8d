"""A pick & place job run headless: a cell on virtual time, and the summary of the run."""

from time import perf_counter
from typing import Any

from msgspec import Struct

from understudy.app.build import build_cell
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused, unknown
from understudy.jobs.pick_place import CYCLE
from understudy.ports.pick_place import GOOD_ENDS, PickPlaceState, PickPlaceStatus
from understudy.units import nanoseconds, seconds
from understudy.wire.exchange import InProcessCell

JOB = "pick_place"


class Summary(Struct, frozen=True):
    """`simulated_s`: length of the run. `ended`: why it ended. `error`: why it failed."""

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


def robots_with_job(config: CellConfig) -> list[str]:
    """The robots with the section `pickplace`."""
    return [name for name, each in config.robots.items() if CYCLE in each.sections]


def chosen_robot(config: CellConfig, robot: str) -> str:
    """The robot of the job: this one, or the only one with the section `pickplace`."""
    able = robots_with_job(config)
    if robot and robot not in able:
        raise unknown("robot with the section `pickplace`", robot, able, key="--robot")
    if not robot and len(able) != 1:
        allowed = ", ".join(able) or "a cell in which a robot has the section `pickplace`"
        raise ConfigError(
            f"{len(able)} robots have the section `pickplace`", key="--robot", allowed=allowed
        )
    return robot or able[0]


def run_headless(
    config: CellConfig, *, robot: str = "", cycles: int = -1, most_s: float = 3600.0
) -> Summary | Refused:
    """Runs the job of a robot until it ends, or for ``most_s`` simulated seconds at most."""
    name, began = chosen_robot(config, robot), perf_counter()
    built = build_cell(config)
    cell, parts = InProcessCell(built), dict[str, Any](built.components)
    arm, job = parts[name], parts[f"{name}.{JOB}"]
    for refused in (arm.connect(built.now), arm.enable(built.now)):
        if refused is not None:
            return Refused(refused.reason, refused.code)
    started = built.now
    if isinstance(refused := job.start(built.now, max_cycles=cycles), Refused):
        return refused
    end = started + nanoseconds(most_s)
    cell.run_while(lambda: job.is_running() and built.now < end)
    late = job.is_running()
    if late:
        job.stop(built.now)
    return _summary(config, name, job.status(built.now), seconds(built.now - started), late, began)


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
