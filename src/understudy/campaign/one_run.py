"""One run of a campaign: the cell on virtual time, its programs, jobs and script, and what came of
it."""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from understudy.app.build import build_cell
from understudy.app.virtual_run import enable, recorded, start_program
from understudy.campaign.plan import LONGEST_S, PlanFile, RunSpec, Words, job_of
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.ports import AwaitsConfirmations
from understudy.ports.jobs import Played
from understudy.ports.program import ProgramControl
from understudy.simulation.cell import Cell, write_snapshot
from understudy.simulation.engine import SimulationEngine
from understudy.units import nanoseconds, seconds
from understudy.wire.exchange import Client, InProcessCell

SLICE_S = 1.0
"""Simulated time between two looks whether all programs have ended."""


Figure = int | float | str | bool | None


class Outcome(Struct, frozen=True):
    """What came of a run. `problem`: why it failed, empty if it passed. `figures`: the numbers and
    texts that the plan asks for, and those that every run has. `digest`: of the final state.
    `cpu_s`: the only value that is not the same in every repetition."""

    number: int
    seed: int
    point: dict[str, Any]
    problem: str
    figures: dict[str, Figure]
    digest: str
    robots: int
    cpu_s: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.problem

    def without_cost(self) -> "Outcome":
        return msgspec.structs.replace(self, cpu_s=0.0)


def run_one(planned: PlanFile, spec: RunSpec, log: Path | None = None) -> Outcome:
    """Carries out a run from start to end. ``log``: a file for a log of it."""
    began = time.process_time()
    config = planned.config(spec)
    run = Run(planned, config, build_cell(config))
    with recorded(log, config, run.cell) as recording:
        problem = run.play(recording.take_snapshot) if recording else run.play()
    figures = run.figures()
    problem = problem or run.broken(figures)
    digest = sha256(write_snapshot(run.cell.snapshot())).hexdigest()[:16]
    cpu = time.process_time() - began
    return Outcome(
        spec.number, spec.seed, spec.point, problem, figures, digest, len(config.robots), cpu
    )


class Run:
    """A cell with its programs, jobs and clients."""

    def __init__(self, planned: PlanFile, config: CellConfig, timed_cell: Cell) -> None:
        self._plan = planned.plan
        self._config = config
        self._cell = timed_cell
        self.cell = InProcessCell(timed_cell)
        engine = timed_cell.components["engine"]
        assert isinstance(engine, SimulationEngine)
        self._engine = engine
        self._texts = planned.programs(config)
        self._programs_of = {robot: self._control(robot) for robot in self._texts}
        self._jobs = {robot: self._job(robot) for robot in planned.plan.cycles}
        self._clients: dict[str, Client] = {}
        self._brokers: list[Client] = []
        """The clients that stand for a broker."""
        self._problems: list[str] = []

    # ── playing ──

    def play(self, begun: Callable[[], None] = lambda: None) -> str:
        """Starts programs and jobs, calls ``begun``, plays the script, and runs to the end; returns
        what went wrong."""
        self.begin()
        begun()
        script = sorted(self._plan.script, key=lambda words: words.at_s)
        for words in script:
            self._advance_to(words.at_s)
            self._say(words)
        self._advance_to(self._plan.for_s or LONGEST_S)
        return "; ".join(self._problems + self._unfinished())

    def begin(self) -> None:
        """Starts programs and jobs."""
        for robot, program in self._texts.items():
            self._note(robot, start_program(self._config, self._cell, robot, program))
        for robot, cycles in self._plan.cycles.items():
            enable(self._config, self._cell, robot)
            self._note(robot, self._jobs[robot].start(self._cell.now, max_cycles=cycles))

    def _note(self, robot: str, refused: Refused | None) -> None:
        if refused is not None:
            self._problems.append(f"{robot}: {refused.reason}")

    def _advance_to(self, end_s: float) -> None:
        """To a time, or to the end of all programs and jobs if the plan has no time of its own."""
        while self.cell.now < end_s and not (self._plan.for_s is None and self._all_ended()):
            step = min(SLICE_S, end_s - self.cell.now)
            end = self._cell.now + nanoseconds(step)
            self.cell.advance_with_brokers(end, self._brokers)

    def _all_ended(self) -> bool:
        last = max((words.at_s for words in self._plan.script), default=0.0)
        under_way = any(control.under_way() for control in self._programs_of.values())
        running = any(job.is_running() for job in self._jobs.values())
        return not under_way and not running and self.cell.now >= last

    def _say(self, words: Words) -> None:
        if words.to not in self._clients:
            client = self._clients[words.to] = self.cell.connect(words.to)
            if isinstance(self._cell.faces[words.to], AwaitsConfirmations):
                self._brokers.append(client)
        self._clients[words.to].say(words.data())

    # ── what came of it ──

    def _unfinished(self) -> list[str]:
        if self._plan.programs_may_fail:
            return []
        found = []
        for robot, control in self._programs_of.items():
            reading = control.reading(self._cell.now)
            if reading.state == "failed" or (reading.state != "done" and self._plan.for_s is None):
                why = reading.error or f"{reading.state} at line {reading.line}"
                found.append(f"{robot}: {why}")
        for robot, job in self._jobs.items():
            in_time = self._plan.for_s is None or not job.is_running()
            if in_time and (why := job.report(self._cell.now).problem):
                found.append(f"{robot}: {why}")
        return found

    def figures(self) -> dict[str, Figure]:
        """The figures of every run, and those that the plan names."""
        now = self._cell.now
        metrics = self._engine.metrics(now)
        ends = [control.reading(now).elapsed_s for control in self._programs_of.values()]
        found: dict[str, Figure] = {
            "simulated_s": round(seconds(now), 9),
            "program_s": round(max(ends, default=0.0), 9),
            "collisions": metrics.collisions_detected,
            "distance_mm": round(metrics.total_distance_mm, 6),
            "state": self._engine.state(now),
        }
        if self._jobs:
            reports = [job.report(now) for job in self._jobs.values()]
            found["placed"] = sum(each.placed for each in reports)
            found["failed_cycles"] = sum(each.failed for each in reports)
            found["cycle_s"] = round(max(each.mean_s for each in reports), 9)
        if self._plan.figures:
            status = msgspec.to_builtins(self._cell.status())
            found |= {name: _at(status, key) for name, key in self._plan.figures.items()}
        return found

    def broken(self, figures: Mapping[str, Figure]) -> str:
        """The first check that does not hold, in words."""
        if figures["collisions"] and not self._plan.may_collide:
            return f"collisions: {figures['collisions']}"
        for name, check in self._plan.checks.items():
            if name not in figures:
                raise ConfigError(
                    "no such figure", key=f"checks.{name}", value=name, allowed=", ".join(figures)
                )
            if problem := check.problem(name, figures[name]):
                return problem
        return ""

    # ── inside ──

    def _control(self, robot: str) -> ProgramControl:
        control: Any = self._cell.components.get(f"{robot}.program")
        if control is None:
            raise ConfigError("this robot runs no programs", key=f"programs.{robot}", value=robot)
        found: ProgramControl = control
        return found

    def _job(self, robot: str) -> Played:
        job = job_of(self._cell, robot)
        assert job is not None
        return job


def _at(status: Any, key: str) -> Figure:
    """A value in the status of the cell: `g60.welder.seam_length_mm`; names of parts have dots."""
    parts = sorted((name for name in status if key.startswith(f"{name}.")), key=len)
    if not parts:
        raise ConfigError("no such part", key="figures", value=key, allowed=", ".join(status))
    found = status[parts[-1]]
    for name in key[len(parts[-1]) + 1 :].split("."):
        if isinstance(found, list | tuple) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            allowed = ", ".join(map(str, found)) if isinstance(found, dict) else "a number"
            raise ConfigError("no such value", key="figures", value=key, allowed=allowed)
    return found if isinstance(found, Figure) else str(found)
