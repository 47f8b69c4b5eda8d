"""What a pick & place job does in a cell, step by step, as it is proven and timed."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from understudy.offline.job import JobTable
from understudy.ports.operation import Target
from understudy.simulation.workpieces.sequence import WorkpieceStage


class JobStep(Struct, frozen=True):
    """A move of the arm, or a time in which it stands; seconds.

    `part`: number of the cycle, from 1. `target`: of a move. `joints`: where the move begins.
    `stage`: index of what is around the arm and in its hand. `touches`: the move ends at a contact
    that is meant.
    """

    part: int
    state: str
    begins: float
    ends: float
    target: Target | None = None
    joints: tuple[float, ...] = ()
    stage: int = 0
    touches: bool = False


class JobWorkpiece(Struct, frozen=True):
    """A cycle. `name`: of the part that was gripped. `cell`: of the pallet, in words."""

    number: int
    name: str
    cell: str
    begins: float
    ends: float
    placed: bool

    @property
    def label(self) -> str:
        named = f"part {self.number}" + (f" ({self.name})" if self.name else "")
        return f"{named}, {self.cell}" if self.cell else named


class JobProblem(Struct, frozen=True):
    """`step`: number of the step, from 1. `slight`: a warning."""

    step: int
    message: str
    time_s: float
    unreachable: bool = False
    slight: bool = False


class JobRecord(Struct, frozen=True):
    """`stages`: what is around the arm, by the index of the steps. `tool`: the number of the tool.
    `parts`: in the order of their numbers. `ended`: why the run has ended."""

    robot: str
    tool: int
    steps: tuple[JobStep, ...]
    parts: tuple[JobWorkpiece, ...]
    stages: tuple[WorkpieceStage, ...]
    problems: tuple[JobProblem, ...]
    ended: str

    def label(self, line: int) -> str:
        """A step in words: part, cell of the pallet, and state of the cycle."""
        step = self.steps[line - 1]
        part = self.parts[min(step.part, len(self.parts)) - 1]
        return f"{part.label}, {step.state}"


class WorkpieceTimes(Struct, frozen=True):
    """A part of a job: seconds in all and by state of the cycle. `clearance`: proven on every move,
    `crossing`: on the moves between the approaches and retracts; metres, None if not proven."""

    number: int
    name: str
    cell: str
    placed: bool
    begins: float
    seconds: float
    by_state: dict[str, float]
    clearance: float | None = None
    crossing: float | None = None


def part_times(
    record: JobRecord, clearances: Sequence[float | None] = ()
) -> Iterator[WorkpieceTimes]:
    """The parts one by one. ``clearances``: proven for each step; inf if nothing can touch."""
    for part in record.parts:
        own = [n for n, step in enumerate(record.steps) if step.part == part.number]
        by_state: dict[str, float] = {}
        for step in (record.steps[n] for n in own):
            by_state[step.state] = by_state.get(step.state, 0.0) + step.ends - step.begins
        moves = [n for n in own if record.steps[n].target is not None] if clearances else []
        across = [n for n in moves if record.steps[n].state in CROSSING]
        yield WorkpieceTimes(
            part.number, part.name, part.cell, part.placed, part.begins,
            part.ends - part.begins, by_state,
            _least([clearances[n] for n in moves]), _least([clearances[n] for n in across]),
        )  # fmt: skip


CROSSING = ("MOVE_TO_SCAN", "MOVE_TO_PICK", "MOVE_TO_PLACE")
"""States in which nothing is meant to be near: no pick and no place."""


def _least(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    least = min(known, default=math.inf)
    return least if len(known) == len(values) and least < math.inf else None


class WorkpieceTable(Struct, frozen=True):
    """The workpieces of a job one by one, as its report shows them (`offline.job.JobRows`)."""

    parts: tuple[WorkpieceTimes, ...]

    @classmethod
    def of(
        cls, record: JobRecord, clearances: Sequence[float | None] = ()
    ) -> "WorkpieceTable | None":
        """The table of a record, or None if no cycle began. ``clearances``: as in `part_times`."""
        parts = tuple(part_times(record, clearances))
        return cls(parts) if parts else None

    def document(self) -> dict[str, Any]:
        return {
            "parts": [
                {
                    "part": each.number,
                    "name": each.name,
                    "cell": each.cell,
                    "placed": each.placed,
                    "start_s": each.begins,
                    "seconds": each.seconds,
                    "by_state_s": each.by_state,
                    "clearance_mm": None if each.clearance is None else each.clearance * 1e3,
                    "crossing_clearance_mm": None if each.crossing is None else each.crossing * 1e3,
                }
                for each in self.parts
            ]
        }

    def summary(self) -> str:
        """Time per workpiece, and the clearance that is proven away from the pick and the place."""
        times = [part.seconds for part in self.parts if part.placed]
        if not times:
            return "no part is placed"
        mean = sum(times) / len(times)
        text = f"{len(times)} placed: {mean:.3f} s per part ({min(times):.3f}…{max(times):.3f} s)"
        crossing = [part.crossing for part in self.parts if part.placed]
        known = [each for each in crossing if each is not None]
        if known and len(known) == len(crossing):
            text += f"; proven clearance between pick and place {min(known) * 1e3:.1f} mm"
        return text

    def tables(self) -> tuple[JobTable, ...]:
        """The workpieces, and the states of the cycle over those that were placed."""
        rows = [
            (
                str(part.number),
                f"{part.seconds:.3f}",
                f"{part.begins:.3f}",
                part.name,
                part.cell if part.placed else "not placed",
            )
            for part in self.parts
        ]
        placed = [part for part in self.parts if part.placed]
        steps = []
        for state in dict.fromkeys(state for part in placed for state in part.by_state):
            times = [part.by_state.get(state, 0.0) for part in placed]
            figures = (sum(times) / len(times), min(times), max(times))
            steps.append((state, *(f"{figure:.3f}" for figure in figures)))
        return (
            JobTable("parts", (">part", ">seconds", ">from", "name", "place"), rows),
            JobTable("steps of a part", ("step", ">mean s", ">shortest s", ">longest s"), steps),
        )
