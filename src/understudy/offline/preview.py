"""Preview of the tool path of a program, planned as the controller plans it."""

from collections.abc import Generator
from typing import Any

import numpy as np

from understudy.gcode.program import program_lines
from understudy.motion.path import Floats
from understudy.motion.plan import Plan
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import PlannedMotion, Reader, Violation, Walker
from understudy.ports import Joints
from understudy.units import MM

MOST_LINES = 2000
MOST_POINTS = 5000
MOST_VIOLATIONS = 100
SHORTEST_STEP = 0.02
"""Least time in seconds between two points of the preview."""


Preview = dict[str, Any]


def preview(text: str, setup: Setup, start: Joints) -> Generator[None, None, Preview]:
    """Points of the path: time (s), tool (m), joints (rad), program line, arc on or off.

    ``truncated``: only the first lines were planned. A generator that yields after every line, so
    that the caller can do other work.
    """
    walker = Walker(setup, np.array(start) if start else None)
    reader = Reader(setup, walker)
    runs: list[tuple[PlannedMotion, Mover]] = []
    violations: list[dict[str, Any]] = []
    truncated = False
    for line in program_lines(text, setup.dialect):
        if line.number > MOST_LINES:
            truncated = True
            break
        held = walker.mover
        reader.read(line)
        _sort(walker, held, runs, violations)
        yield
    held = walker.mover
    walker.rest()
    _sort(walker, held, runs, violations)
    way = yield from _way(runs)
    return {
        **way,
        "duration_s": walker.now,
        "violations": violations[:MOST_VIOLATIONS],
        "truncated": truncated,
    }


def _sort(
    walker: Walker,
    held: Mover,
    runs: list[tuple[PlannedMotion, Mover]],
    violations: list[dict[str, Any]],
) -> None:
    """Sorts new events; a run that a line ends was made with the tool mounted before that line."""
    for event in walker.take():
        if isinstance(event, PlannedMotion):
            runs.append((event, held))
        elif isinstance(event, Violation):
            found = {"line": event.line, "kind": event.kind, "message": event.message}
            violations.append(found)


def _way(runs: list[tuple[PlannedMotion, Mover]]) -> Generator[None, None, dict[str, list[Any]]]:
    total = sum(run.plan.duration for run, _ in runs)
    step = max(SHORTEST_STEP, total / max(1, MOST_POINTS - 2 * len(runs)))
    way: dict[str, list[Any]] = {name: [] for name in ("times", "tcp", "q", "lines", "arc")}
    for run, mover in runs[: MOST_POINTS // 2]:
        times = _times(run.plan, step)
        way["times"] += times.tolist()
        way["lines"] += _lines(run.plan, times)
        way["arc"] += [run.process] * len(times)
        for q in run.plan.positions(times):
            way["q"].append(q.tolist())
            way["tcp"].append([value * MM for value in mover.pose(q)[:3]])
            yield
    return way


def _times(plan: Plan, step: float) -> Floats:
    count = max(2, int(np.ceil(plan.duration / step)) + 1)
    return np.linspace(plan.begins, plan.ends, count)


def _lines(plan: Plan, times: Floats) -> list[int]:
    number, begins = plan.lines()
    if not len(number):
        return [0] * len(times)
    at = np.searchsorted(begins, times, side="right") - 1
    found: list[int] = number[np.maximum(at, 0)].tolist()
    return found
