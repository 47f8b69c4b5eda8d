"""The proof of a whole pick & place job on a cell, and its cycle time.

To be recorded, the job itself runs in the cell on virtual time, with collision checks off, so that
a contact does not end it. The record is then judged as a program is: line n of the program is step
n of the record.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from msgspec import Struct, structs

from understudy.app.build import build_cell
from understudy.app.validate import DEFAULTS, Options, in_mode, subject_of
from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode import Block
from understudy.gcode.program import ProgramLine
from understudy.gcode.requests import move_to_target
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.headless import chosen_robot, robots_with
from understudy.jobs.pick_place import CYCLE
from understudy.jobs.pick_place.headless import JOB
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.pallet import PalletPattern, unreachable_message
from understudy.jobs.pick_place.status import GOOD_ENDS
from understudy.offline.cycle_time import CycleTime, JobTable, cycle_time_of
from understudy.offline.robot import Arm, MovesWorkpieces, Subject, offline_robot
from understudy.offline.setup import Remark, Setup
from understudy.offline.validate.judge import judge_events
from understudy.offline.validate.report import Finding, Report
from understudy.offline.walk import Event, Standstill, Violation, Walker, impossible
from understudy.ports.device import DeviceEvent, MayBeReal
from understudy.ports.job_arm import JobArm
from understudy.ports.jobs import without_processes
from understudy.ports.operation import Target
from understudy.registry import module_of
from understudy.simulation.cell import Cell
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import Workpieces, WorkpieceStage, stage_of
from understudy.units import nanoseconds, seconds
from understudy.wire.exchange import InProcessCell


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
    """Something that the job did wrong, or could not do. `step`: number of the step, from 1.
    `slight`: a warning."""

    step: int
    message: str
    time_s: float
    unreachable: bool = False
    slight: bool = False


class JobRecord(Struct, frozen=True):
    """Everything that a job did in a run. `stages`: what is around the arm, by the index of the
    steps. `tool`: the number of the tool. `parts`: in the order of their numbers. `ended`: why the
    run has ended."""

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
            part.number,
            part.name,
            part.cell,
            part.placed,
            part.begins,
            part.ends - part.begins,
            by_state,
            _least([clearances[n] for n in moves]),
            _least([clearances[n] for n in across]),
        )


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


NO_REACH = re.compile(r"\bmove \d+ of \d+: ")
"""In the reason of a run that ended because a check of reach refused a move."""
LONGEST_S = 3600.0
"""Simulated seconds after which a run that does not end is ended."""
ENDLESS = -1


def record_job(config: CellConfig, robot: str = "", cycles: int = 0) -> JobRecord:
    """Runs the job of a robot to its end. ``cycles``: parts at most; 0: all parts of a pallet or in
    the picture, and one of a source that has no end."""
    name = chosen_robot(config, robot, CYCLE)
    cycle = config.robots[name].sections[CYCLE]
    built = build_cell(_unhindered(config, name))
    arm: Any = built.components[name]
    site = module_of("robots", config.robots[name].kind).job_arm(arm)
    recorder = _JobRecorder(built, name, site, insert=cycle.insert is not None)
    job = recorder.job
    most = cycles or (1 if cycle.source == "fixed" else ENDLESS)
    refusals = (arm.connect(built.now), arm.enable(built.now), job.start(0, max_cycles=most))
    for refused in refusals:
        if isinstance(refused, Refused):
            raise ConfigError(
                f"pick & place cannot start: {refused.reason}",
                key="--mode-of-operation" if "mode" in refused.reason else "",
            )
    end = nanoseconds(LONGEST_S)
    cell = InProcessCell(built)
    cell.run_while(lambda: job.is_running() and built.now < end)
    cell.run_while(lambda: not job.is_running() and recorder.moves)
    return recorder.record()


def _unhindered(config: CellConfig, robot: str) -> CellConfig:
    """The cell without collision checks of this robot, without REAL devices and other processes."""
    config = without_processes(config)
    given = config.robots[robot]
    rules = structs.replace(given.config.collision, enable=False)
    own = structs.replace(given.config, collision=rules)
    devices = {
        kind: device.simulated() if isinstance(device, MayBeReal) else device
        for kind, device in given.devices.items()
    }
    changed = structs.replace(given, config=own, devices=devices)
    return replace(config, robots={**config.robots, robot: changed})


class _JobRecorder:
    """Records the steps of a job while it runs."""

    def __init__(self, cell: Cell, robot: str, arm: JobArm, *, insert: bool) -> None:
        parts: dict[str, Any] = dict(cell.components)
        self._cell, self._robot, self._insert = cell, robot, insert
        self._arm = arm
        self.job: PickPlaceManager = parts[f"{robot}.{JOB}"]
        self._motion: ControllerMotion = parts[f"{robot}.motion"]
        self._pallet: PalletPattern | None = parts.get(f"{robot}.pallet")
        self._parts: Workpieces = parts["parts"]
        self._around: CellEnvironment = parts["environment"]
        self._state, self._since, self._number = "", 0, 1
        self._moving: JobStep | None = None
        self._steps: list[JobStep] = []
        self._finished: list[JobWorkpiece] = []
        self._stages: list[WorkpieceStage] = []
        self._version = 0
        self._problems: list[JobProblem] = []
        self._failed = 1, 0
        self._name, self._begins, self._index = "", 0, self._cell_index()
        self.job.on_state(self._changed)
        self.job.on_cycle(self._cycle_ended)
        self._motion.on_started(self._started)
        self._motion.on_finished(lambda ticket, refused, now: self._move_ended(refused, now))
        self._parts.on_event(self._part_event)

    @property
    def moves(self) -> bool:
        """The arm moves still, after the end of the job: it brakes or retracts."""
        return self._moving is not None

    # ── listening ──

    def _changed(self, old: str, new: str, now: int) -> None:
        self._stood(now)
        self._state = new

    def _stood(self, now: int) -> None:
        """Ends a time in which the arm stands."""
        if self._moving is None and now > self._since:
            times = seconds(self._since), seconds(now)
            self._steps.append(JobStep(self._number, self._state, *times))
        self._since = now

    def _started(self, target: Target, now: int) -> None:
        self._stood(now)
        self._moving = JobStep(
            self._number,
            self._state,
            seconds(now),
            seconds(now),
            target,
            tuple(self._arm.joints(now)),
            self._stage(),
        )

    def _move_ended(self, refused: Refused | None, now: int) -> None:
        step = self._moving
        if step is None or step.target is None:
            return
        touches = self._insert and step.state == "APPROACH_PLACE"
        if refused is not None:  # it was stopped where it is
            target = step.target._replace(joints=None, pose=self._motion.tool(now))
            step = structs.replace(step, target=target, touches=touches)
        self._steps.append(structs.replace(step, ends=seconds(now)))
        self._moving, self._since = None, now

    def _stage(self) -> int:
        """The number of the present stage."""
        if self._parts.version != self._version:
            self._version = self._parts.version
            self._stages.append(stage_of(self._parts, self._around, self._robot))
            self._took(self._parts.held_by(self._robot))
        return len(self._stages) - 1

    def _took(self, name: str) -> None:
        """Notes the part of this cycle; one that was placed already must not be taken again."""
        if not name or name == self._name:
            return
        self._name = name
        for part in self._finished:
            if part.placed and part.name == name:
                again = f"{name} is picked up again from {part.cell or 'its place'}"
                step = len(self._steps) + 1  # the move that begins now
                self._problem(f"{again}: limit the pick zone", step, self._cell.now)

    def _part_event(self, event: DeviceEvent) -> None:
        """A part that was put down drops from its place: on a pallet that is a fault; into a box,
        where no pallet is, it may be meant."""
        self._stood(event.at)
        put = (self._name, self._finished[-1].name if self._finished else "")
        loose = self._pallet is None or bool(self.job.config.places)
        slight = loose and any(name and event.text.startswith(f"{name} ") for name in put)
        self._problem(event.text, self._step_number(), event.at, slight=slight)

    def _cycle_ended(self, number: int, success: bool, now: int) -> None:
        self._stood(now)
        named = self._cell_name(success)
        if not success:
            self._failed = self._step_number(), now
        times = seconds(self._begins), seconds(now)
        self._finished.append(JobWorkpiece(number, self._name, named, *times, success))
        self._name, self._begins, self._index = "", now, self._cell_index()
        self._number = number + 1

    # ── cells of the pallet ──

    def _cell_index(self) -> int:
        return 0 if self._pallet is None else self._pallet.get_current_index()

    def _cell_name(self, success: bool) -> str:
        """The cell of the cycle that ends now; empty if its part went somewhere else."""
        pallet = self._pallet
        elsewhere = success or self.job.config.places
        if pallet is None or (elsewhere and self._cell_index() == self._index):
            return ""
        row, column, layer = pallet.layout.cells[min(self._index, pallet.layout.total - 1)]
        return f"pallet cell {self._index} (row {row}, column {column}, layer {layer})"

    # ── the end ──

    def _step_number(self) -> int:
        """The number of the step under way, or of the last one."""
        return max(len(self._steps) + self.moves, 1)

    def _problem(self, message: str, step: int, now: int, *, slight: bool = False) -> None:
        reach = NO_REACH.search(message) is not None
        self._problems.append(JobProblem(step, message, seconds(now), reach, slight))

    def _unreachable(self) -> str:
        """All cells of the pallet that are out of reach, not only the first one."""
        pallet = self._pallet
        if pallet is None or not pallet.unreachable:
            return ""
        return f"; {unreachable_message(pallet.layout, pallet.unreachable)}"

    def record(self) -> JobRecord:
        now = self._cell.now
        status = self.job.status(now)
        ended = status.reason or status.code
        if self.job.is_running():
            self.job.stop(now)
            self._problem(f"the job has not ended in {LONGEST_S:g} s", *self._failed)
        elif ended not in GOOD_ENDS or NO_REACH.search(status.last_error):
            self._problem(status.last_error + self._unreachable(), *self._failed)
        self._stage()
        if not self._steps:  # the job failed before it did anything
            self._steps.append(JobStep(1, "MOVE_TO_SCAN", 0.0, 0.0))
        last = len(self._steps)
        problems = (structs.replace(each, step=min(each.step, last)) for each in self._problems)
        return JobRecord(
            self._robot,
            self._arm.tool(now),
            tuple(self._steps),
            tuple(self._finished),
            tuple(self._stages),
            tuple(problems),
            ended,
        )


PROGRAM = "pick & place"
NEEDS = "a robot has the section `pickplace`"
WITHOUT = ("dialect", "scenario", "held")
"""Options that are for programs only."""
SAME_TIME = 1e-6
"""Seconds by which a planned move may end before the running one, for rounding."""
STAGES_KEPT = 4
CARRIED = "the carried part"


def is_in(config: CellConfig) -> bool:
    """Whether a robot of the cell has this job."""
    return bool(robots_with(config, CYCLE))


def validate_job(config: CellConfig, options: Options = DEFAULTS, cycles: int = 0) -> Report:
    """Proves the pick & place job of a robot: reach, limits, torques and clearance of every move,
    with the carried part and all parts that rest around it. ``cycles``: parts at most; 0: all."""
    started = perf_counter()
    for name in WITHOUT:
        if value := getattr(options, name):
            raise ConfigError("only for programs, not for a job", key=f"--{name}", value=value)
    robot = chosen_robot(config, options.robot, CYCLE)
    config = in_mode(config, robot, options.mode_of_operation)
    record = record_job(config, robot, cycles)
    checked = _checked(config, robot)
    subject = job_subject(subject_of(PROGRAM, config, robot), record, checked.arm_at)
    report = judge_events(_events(config, record), subject, options.judging())
    notes = (f"{_placed(record)}; the run ended with {record.ended or 'a fault'}", *report.notes)
    report = replace(labelled(report, record), notes=notes)
    return replace(report, wall_s=perf_counter() - started)


def job_cycle_time(
    config: CellConfig, *, robot: str = "", mode_of_operation: str = "", cycles: int = 0
) -> CycleTime:
    """How long a pick & place job takes: in all, for each part and for each step."""
    name = chosen_robot(config, robot, CYCLE)
    config = in_mode(config, name, mode_of_operation)
    record = record_job(config, name, cycles)
    times = cycle_time_of(_events(config, record))
    return replace(times, job=WorkpieceTable.of(record), violations=tuple(_failures(record)))


def _checked(config: CellConfig, robot: str) -> MovesWorkpieces:
    checked = offline_robot(config, robot)
    if not isinstance(checked, MovesWorkpieces):
        kind = config.robots[robot].kind
        raise ConfigError(f"a robot of kind {kind} cannot be checked with parts", key=robot)
    return checked


def _events(config: CellConfig, record: JobRecord) -> Iterator[Event]:
    setup = offline_robot(config, record.robot).setup()
    assert setup is not None
    if setup.mount is not None and not isinstance(mover := setup.mount(record.tool), Refused):
        setup = replace(setup, mover=mover)
    return job_events(record, setup)


def _failures(record: JobRecord) -> Iterator[Violation]:
    """Why the job does not do its work, in words with part, cell and state."""
    for each in record.problems:
        if not each.slight:
            said = f"{record.label(each.step)}: {each.message}"
            yield Violation(each.step, "unreachable" if each.unreachable else "process", said)


def _placed(record: JobRecord) -> str:
    count = sum(part.placed for part in record.parts)
    return f"{count} {'part is' if count == 1 else 'parts are'} placed"


# ── the record as events of a program ───────────────────────────────────────────────────────────


def job_events(record: JobRecord, setup: Setup) -> Iterator[Event]:
    """Every move planned from where it began; `tool` of a motion is the number of its stage."""
    walker = Walker(replace(setup, devices=None))
    problems: dict[int, list[JobProblem]] = {}
    for problem in record.problems:
        problems.setdefault(problem.step, []).append(problem)
    for line, step in enumerate(record.steps, 1):
        walker.events.append(ProgramLine(line, record.label(line), Block(line=line)))
        walker.now = step.begins
        if step.target is not None:
            _move(walker, step, line)
        if step.ends - walker.now > SAME_TIME or step.target is None:
            walker.events.append(Standstill(line, "io", walker.now, step.ends))
        for problem in problems.get(line, ()):
            said = f"line {line}: {problem.message}"
            walker.events.append(
                Violation(line, "unreachable", said)
                if problem.unreachable
                else Remark(line, "process", problem.message, problem.time_s, problem.slight)
            )
        yield from walker.take()


def _move(walker: Walker, step: JobStep, line: int) -> None:
    assert step.target is not None
    walker.q, walker.tool = np.array(step.joints), step.stage
    refused = walker.move(move_to_target(step.target), line)
    if refused is not None:
        walker.events.append(impossible(line, refused, ""))
    walker.rest(probe=step.touches)


def job_subject(
    subject: Subject, record: JobRecord, arm: Callable[[WorkpieceStage, int], Arm]
) -> Subject:
    """The subject of a job: what moves is the arm in a stage of the record, by its number."""

    @lru_cache(maxsize=STAGES_KEPT)
    def at_stage(number: int) -> Arm:
        return arm(record.stages[number], record.tool)

    start = None if subject.start is None else (subject.start[0], 0)
    return replace(subject, arm=at_stage, start=start)


def labelled(report: Report, record: JobRecord) -> Report:
    """The report with parts, cells and states in place of line numbers, and the times by part."""

    def named(found: Finding) -> Finding:
        if not 1 <= found.line <= len(record.steps):
            return found
        said = found.message.removeprefix(f"line {found.line}: ")
        return replace(found, message=f"{record.label(found.line)}: {said}")

    clearances = [
        None if not row.proven else math.inf if row.clearance is None else row.clearance
        for row in report.lines
    ]
    carried = {part.name for part in record.parts}
    left_out = (
        pair._replace(objects=(_kind(pair.objects[0], carried), _kind(pair.objects[1], carried)))
        for pair in report.left_out
    )
    return replace(
        report,
        left_out=tuple(dict.fromkeys(left_out)),
        violations=tuple(map(named, report.violations)),
        warnings=tuple(map(named, report.warnings)),
        job=WorkpieceTable.of(record, clearances),
    )


def _kind(name: str, carried: Collection[str]) -> str:
    """One name for all carried parts."""
    return CARRIED if name in carried else name
