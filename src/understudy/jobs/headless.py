"""A job run headless: its robot is chosen, and its cell runs on virtual time until the job ends."""

from typing import Any

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused, unknown
from understudy.simulation.cell import Cell
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell


def robots_with(config: CellConfig, section: str) -> list[str]:
    """The robots with this section."""
    return [name for name, each in config.robots.items() if section in each.sections]


def chosen_robot(config: CellConfig, robot: str, section: str) -> str:
    """The robot of a job: this one, or the only one with the section of the job."""
    able = robots_with(config, section)
    if robot and robot not in able:
        raise unknown(f"robot with the section `{section}`", robot, able, key="--robot")
    if not robot and len(able) != 1:
        allowed = ", ".join(able) or f"a cell in which a robot has the section `{section}`"
        raise ConfigError(
            f"{len(able)} robots have the section `{section}`", key="--robot", allowed=allowed
        )
    return robot or able[0]


def run_job(cell: Cell, robot: str, job: Any, most_s: float, **options: int) -> Refused | None:
    """Switches the robot on, starts the job with these options and runs the cell until the job
    ends, or for ``most_s`` simulated seconds."""
    arm: Any = cell.components[robot]
    for refused in (arm.connect(cell.now), arm.enable(cell.now), job.start(cell.now, **options)):
        if isinstance(refused, Refused):
            return refused
    end = cell.now + nanoseconds(most_s)
    InProcessCell(cell).run_while(lambda: job.is_running() and cell.now < end)
    return None
