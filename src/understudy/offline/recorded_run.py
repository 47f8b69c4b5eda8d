"""The run of a robot that drives by ticks: recorded from its runtime, not planned.

A package whose robots drive offers `recorded_runs(config, programs, faults, run)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from understudy.config import CellConfig
from understudy.offline.validate.report import Finding, LineReport, LineTable, Report
from understudy.registry import module_of
from understudy.space.collision.two_robots import TimedRobot
from understudy.units import MM


class RecordedLine(NamedTuple):
    """A line of the program, and when it was carried out."""

    number: int
    text: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """`motion`: on its time axis, with the number of each of its lines. `way`: metres that it
    drove. `error`: metres by which the body in the record is larger than the robot."""

    motion: TimedRobot
    numbers: Sequence[int]
    lines: Sequence[RecordedLine]
    findings: tuple[Finding, ...]
    way: float
    ends_s: float
    error: float

    def report(self, program: str, cell: str, robot: str) -> Report:
        """The report of its program, without the other robots."""
        rows = [
            LineReport(
                row.number, row.text, row.begin_s, row.end_s, None, None, True, "motion", True
            )
            for row in self.lines
        ]
        times = dict.fromkeys(("motion_s", "process_s", "dwell_s", "io_s", "total_s"), 0.0)
        times |= {"motion_s": self.ends_s, "total_s": self.ends_s}
        note = (
            "its run is that of its own runtime, recorded at every tick; its body in the proof is "
            f"{self.error / MM:.2f} mm larger"
        )
        return Report(
            program=program,
            cell=cell,
            robot=robot,
            cycle_time=times,
            distance_m=self.way,
            gcodes_executed=len(rows),
            lines=LineTable.of(rows),
            violations=self.findings,
            notes=(note,),
        )


def is_recorded(config: CellConfig, robot: str) -> bool:
    """Whether the robot drives, so that its runs are recorded."""
    return hasattr(module_of("robots", config.robots[robot].kind), "recorded_runs")
