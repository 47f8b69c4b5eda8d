"""Preview of the tool path of a program, planned as the controller plans it."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from understudy.gcode.program import ProgramLine, program_lines
from understudy.motion.path import Floats
from understudy.motion.plan import Plan
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import (
    Event,
    PlannedMotion,
    PoseMotion,
    Reader,
    Violation,
    Walker,
)
from understudy.ports import Joints
from understudy.units import MM

MOST_LINES = 2000
MOST_POINTS = 5000
MOST_VIOLATIONS = 100
SHORTEST_STEP = 0.02
"""Least time in seconds between two points of the preview."""


Preview = dict[str, Any]
Tip = Callable[[Floats], list[float]]
"""The tip of the tool (m) for a position of the axes."""
Run = tuple[PlannedMotion, Tip]


def preview(text: str, setup: Setup, start: Joints) -> Generator[None, None, Preview]:
    """Points of the path: time (s), tool (m), joints (rad), program line, arc on or off.

    ``truncated``: only the first lines were planned. A generator that yields after every line, so
    that the caller can do other work.
    """
    walker = Walker(setup, np.array(start) if start else None)
    reader = Reader(setup, walker)
    runs: list[Run] = []
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
    return _result(way, walker.now, violations, truncated)


def preview_of_events(
    events: Iterator[Event], tip: Callable[[Floats, int], list[float]]
) -> Generator[None, None, Preview]:
    """The same for a robot with a language of its own; ``tip``: of axes and a tool, in metres."""
    runs: list[Run | PoseMotion] = []
    violations: list[dict[str, Any]] = []
    truncated, ends = False, 0.0
    for event in events:
        yield
        if isinstance(event, ProgramLine) and event.number > MOST_LINES:
            truncated = True
            break
        if isinstance(event, PlannedMotion):
            runs.append((event, lambda q, tool=event.tool: tip(q, tool)))  # type: ignore[misc]
            ends = event.plan.ends
        elif isinstance(event, PoseMotion):
            runs.append(event)
            ends = float(event.times[-1])
        elif isinstance(event, Violation):
            violations.append(_violation(event))
    way = yield from _way(runs)
    return _result(way, ends, violations, truncated)


def _result(
    way: dict[str, list[Any]], ends: float, violations: list[dict[str, Any]], truncated: bool
) -> Preview:
    shown = violations[:MOST_VIOLATIONS]
    return {**way, "duration_s": ends, "violations": shown, "truncated": truncated}


def _violation(event: Violation) -> dict[str, Any]:
    return {"line": event.line, "kind": event.kind, "message": event.message}


def without_approach(found: Preview) -> Preview:
    """The preview without the motion of its first line: while a program runs, that would lead from
    where the robot is now to where the program has begun."""
    lines = found["lines"]
    first = next((n for n, line in enumerate(lines) if line != lines[0]), 0)
    points = ("times", "tcp", "q", "lines", "arc")
    return found | {name: found[name][max(first - 1, 0) :] for name in points}


def _sort(
    walker: Walker,
    held: Mover,
    runs: list[Run],
    violations: list[dict[str, Any]],
) -> None:
    """Sorts new events; a run that a line ends was made with the tool mounted before that line."""
    for event in walker.take():
        if isinstance(event, PlannedMotion):
            runs.append((event, lambda q: [value * MM for value in held.pose(q)[:3]]))
        elif isinstance(event, Violation):
            violations.append(_violation(event))


def _way(runs: Sequence[Run | PoseMotion]) -> Generator[None, None, dict[str, list[Any]]]:
    total = sum(run[0].plan.duration for run in runs if isinstance(run, tuple))
    step = max(SHORTEST_STEP, total / max(1, MOST_POINTS - 2 * len(runs)))
    way: dict[str, list[Any]] = {name: [] for name in ("times", "tcp", "q", "lines", "arc")}
    for each in runs[: MOST_POINTS // 2]:
        if isinstance(each, PoseMotion):
            _add_poses(each, way, MOST_POINTS // len(runs))
            yield
            continue
        run, tip = each
        times = _times(run.plan, step)
        way["times"] += times.tolist()
        way["lines"] += _lines(run.plan, times)
        way["arc"] += [run.process] * len(times)
        for q in run.plan.positions(times):
            way["q"].append(q.tolist())
            way["tcp"].append(tip(q))
            yield
    return way


def _add_poses(run: PoseMotion, way: dict[str, list[Any]], most: int) -> None:
    """Adds a motion without axes; from its first to its last pose, `most` poses at most."""
    count = min(len(run.times), max(2, most))
    chosen = np.linspace(0, len(run.times) - 1, count).round().astype(int)
    way["times"] += run.times[chosen].tolist()
    way["tcp"] += (run.poses[chosen, :3] * MM).tolist()
    way["q"] += [[]] * count
    way["lines"] += [run.line] * count
    way["arc"] += [False] * count


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
