"""The part of a cell that runs exercises: it looks at their conditions, injects their faults and
counts points.

While an exercise runs it looks every 50 ms of simulated time, after all other parts of that
instant. What collisions, devices and programs report is noted when it happens. So the same cell,
the same seed and the same inputs at the same times give the same score.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.chance import draw
from understudy.errors import Refused, located_at
from understudy.jobs.training.conditions import (
    Happened,
    Moment,
    Reading,
    SeenCell,
    check_condition,
    check_fault,
    met,
    readings,
)
from understudy.jobs.training.exercise import Exercise, Score, conditions
from understudy.operator.robots import actions_for
from understudy.ports.device import DeviceEvent, ReportsEvents
from understudy.ports.operation import ReportsMessages, components_of
from understudy.ports.program import ProgramControl
from understudy.ports.sections import CellSite
from understudy.simulation.collision.contact import Contact, ReportsContacts
from understudy.simulation.scenario import Scenario
from understudy.units import NS_PER_MS, nanoseconds, seconds

LOOK_NS = 50 * NS_PER_MS
"""Time between two looks at the conditions."""
MOST_EVENTS = 300
"""Events that an exercise keeps; older ones are dropped."""
MOST_CONTACTS = 1000
MOST_RESULTS = 500
MOST_POINTS = 100
LONGEST_TEXT = 200

NO_EXERCISE = Refused("no exercise is running: start one first")
NO_HINT = Refused("there is no further hint for this task")

Reason = Literal["passed", "score", "time", "task_time", "left", "failure"]
"""Why an exercise has ended: too few points, too late, given up, or a failure of its file."""
Count = Annotated[int, Meta(ge=0, le=1 << 40)]
Time = Annotated[int, Meta(ge=0, le=1 << 62)]


class Result(Struct, frozen=True):
    """The end of an attempt. `failure`: the number of the failure in the file, from 1 on."""

    exercise: str
    attempt: Count
    passed: bool
    reason: Reason
    score: Annotated[int, Meta(ge=0, le=MOST_POINTS)]
    seconds: float
    tasks: Count
    collisions: Count
    wrong_commands: Count
    hints: Count
    failure: Count = 0


class Pending(Struct):
    """A fault of the exercise. `due`: when it is injected, once its condition was met. `refused`:
    why the cell did not take it last."""

    due: Time | None = None
    injected: bool = False
    refused: str = ""


class Attempt(Struct):
    """An exercise that is running. `met_since`: since when the condition of the task holds."""

    exercise: str
    number: Count
    began: Time
    task_began: Time
    look_at: Time
    hints: list[Count]
    faults: list[Pending]
    task: Count = 0
    met_since: Time | None = None
    wrong_commands: Count = 0
    events: list[Happened] = []
    contacts: list[str] = []
    alarmed: list[str] = []


class State(Struct):
    attempt: Attempt | None = None
    results: list[Result] = []
    attempts: dict[str, Count] = {}


class Records(Struct, frozen=True):
    """What stays when the cell is brought back to its start."""

    results: list[Result]
    attempts: dict[str, int]


class Progress(Struct, frozen=True):
    """An exercise that is running. `task`: the present one, from 0 on; `hints`: how many of its
    hints are shown; `left_s`: until the first time limit."""

    exercise: str
    attempt: int
    task: int
    tasks: int
    hints: int
    elapsed_s: float
    left_s: float
    score: int
    collisions: int
    wrong_commands: int
    hints_used: int
    readings: Sequence[Reading]


class Status(Struct, frozen=True):
    """`notice`: for the other pages, as long as an exercise is running."""

    running: bool
    progress: Progress | None
    last: Result | None
    best: dict[str, int]
    results: int
    notice: str = ""


class CourseRun:
    """Part `course` of a cell."""

    def __init__(self, site: CellSite) -> None:
        self.cell = site.cell
        self.exercises: dict[str, Exercise] = {
            each.name: each.exercise for each in site.section.exercises
        }
        self.state = State()
        self._seed = site.seed
        assert isinstance(site.fault_source, Scenario)
        self._scenario = site.fault_source
        actions = {
            name: actions_for(kind, site.components[name]) for name, kind in site.kinds.items()
        }
        self._seen = SeenCell(actions, dict(site.components))
        for name, exercise in self.exercises.items():
            with located_at(f"exercises.{name}"):
                self.check(exercise)
        self._listen(site)

    def check(self, exercise: Exercise) -> None:
        """Raises a ConfigError for what this cell does not have."""
        for key, condition in conditions(exercise):
            with located_at(key):
                check_condition(condition, self._seen)
        for number, fault in enumerate(exercise.faults):
            with located_at(f"faults.{number}"):
                check_fault(fault.fault, fault.on, self._seen.components)

    def _listen(self, site: CellSite) -> None:
        for name in site.kinds:
            part: Any = site.components[name]
            for own in components_of(part).values():
                if isinstance(own, ReportsContacts):
                    own.on_collision(partial(self._touched, name))
            if isinstance(part, ReportsMessages):
                part.on_message(partial(self._said, "message", name))
            program = site.components.get(f"{name}.program")
            if program is not None:
                control: ProgramControl = program  # type: ignore[assignment]
                control.on_end(partial(self._said, "program", name))
        for place, component in site.components.items():
            if isinstance(component, ReportsEvents):
                robot, _, kind = place.rpartition(".")
                component.on_event(partial(self._device, kind, robot or place))

    # ── what the operator does ──

    def begin(self, name: str, now: int) -> None:
        """Starts an exercise."""
        exercise = self.exercises[name]
        number = self.state.attempts.get(name, 0) + 1
        self.state.attempts[name] = number
        self.state.attempt = Attempt(
            name,
            number,
            began=now,
            task_began=now,
            look_at=now + LOOK_NS,
            hints=[0 for _ in exercise.tasks],
            faults=[Pending() for _ in exercise.faults],
            alarmed=self._with_alarm(now),
        )

    def records(self, now: int) -> Records:
        """What has been done until now; an exercise that is running counts as given up."""
        attempt, results = self.state.attempt, list(self.state.results)
        if attempt is not None:
            results.append(self._result(attempt, "left", now))
        return Records(results[-MOST_RESULTS:], dict(self.state.attempts))

    def keep(self, records: Records) -> None:
        """Puts results into a cell that was brought back to its start."""
        self.state.results, self.state.attempts = list(records.results), dict(records.attempts)

    def leave(self, now: int) -> Refused | None:
        attempt = self.state.attempt
        if attempt is None:
            return NO_EXERCISE
        self._end(attempt, "left", now)
        return None

    def hint(self, now: int) -> Refused | None:
        """Shows the next hint of the present task; it costs points."""
        attempt = self.state.attempt
        if attempt is None:
            return NO_EXERCISE
        if attempt.hints[attempt.task] >= len(self._task(attempt).hints):
            return NO_HINT
        attempt.hints[attempt.task] += 1
        return None

    def count_wrong_command(self, now: int) -> None:
        """A command of the operator was refused."""
        if self.state.attempt is not None:
            self.state.attempt.wrong_commands += 1

    def best(self) -> dict[str, Result]:
        """The best passed attempt of each exercise, in their order."""
        found: dict[str, Result] = {}
        for result in self.state.results:
            before = found.get(result.exercise)
            if result.passed and (before is None or result.score > before.score):
                found[result.exercise] = result
        return {name: found[name] for name in self.exercises if name in found}

    # ── events ──

    def _touched(self, robot: str, contact: Contact) -> None:
        attempt = self.state.attempt
        if attempt is not None and len(attempt.contacts) < MOST_CONTACTS:
            attempt.contacts.append(robot)
            self._note("collision", robot, contact.text(), contact.at)

    def _said(self, kind: str, robot: str, text: str, now: int) -> None:
        self._note(kind, robot, text, now)

    def _device(self, kind: str, robot: str, event: DeviceEvent) -> None:
        self._note("alarm" if event.alarm else kind, robot, event.alarm or event.text, event.at)

    def _note(self, kind: str, robot: str, text: str, at: int) -> None:
        attempt = self.state.attempt
        if attempt is not None:
            attempt.events.append(Happened(at, kind, robot, text[:LONGEST_TEXT]))
            del attempt.events[:-MOST_EVENTS]

    def _with_alarm(self, now: int) -> list[str]:
        return [name for name, each in self._seen.actions.items() if each.condition(now).error]

    # ── on the time axis ──

    def next_wake(self) -> int | None:
        return None if self.state.attempt is None else self.state.attempt.look_at

    def wake(self, now: int) -> None:
        attempt = self.state.attempt
        if attempt is None or now < attempt.look_at:
            return
        attempt.look_at = now + LOOK_NS - (now - attempt.began) % LOOK_NS
        self._note_alarms(attempt, now)
        self._bring_faults(attempt, now)
        exercise, moment = self.exercises[attempt.exercise], self._moment(attempt, now)
        for number, failure in enumerate(exercise.fail_if, 1):
            in_task = failure.task is None or failure.task - 1 == attempt.task
            if in_task and met(failure.when, self._seen, moment):
                self._end(attempt, "failure", now, failure=number)
                return
        self._look_at_task(attempt, exercise, moment)

    def _look_at_task(self, attempt: Attempt, exercise: Exercise, moment: Moment) -> None:
        task, now = self._task(attempt), moment.now
        if not met(task.until, self._seen, moment):
            attempt.met_since = None
        elif attempt.met_since is None:
            attempt.met_since = now
        held = attempt.met_since is not None and now - attempt.met_since >= nanoseconds(task.hold_s)
        if held and attempt.task + 1 == len(exercise.tasks):
            enough = self._score(attempt, now) >= exercise.score.pass_
            attempt.task += 1
            self._end(attempt, "passed" if enough else "score", now)
        elif now - attempt.began >= nanoseconds(exercise.time_limit_s):
            self._end(attempt, "time", now)
        elif held:
            attempt.task += 1
            attempt.task_began, attempt.met_since = now, None
        elif task.time_limit_s is not None and (
            now - attempt.task_began >= nanoseconds(task.time_limit_s)
        ):
            self._end(attempt, "task_time", now)

    def _note_alarms(self, attempt: Attempt, now: int) -> None:
        active = self._with_alarm(now)
        for name in active:
            if name not in attempt.alarmed:
                error = self._seen.actions[name].condition(now).error
                self._note("alarm", name, error, now)
        attempt.alarmed = active

    def _bring_faults(self, attempt: Attempt, now: int) -> None:
        """Injects what is due. The cell may refuse a fault that cannot act now; it is tried again
        at the next look."""
        moment = self._moment(attempt, now)
        faults = self.exercises[attempt.exercise].faults
        for number, (fault, pending) in enumerate(zip(faults, attempt.faults, strict=True)):
            if pending.injected or attempt.task < fault.task - 1:
                continue
            if pending.due is None and (fault.when is None or met(fault.when, self._seen, moment)):
                name = f"course.{attempt.exercise}.{attempt.number}.{number}"
                low, high = fault.after_s
                delay = low + draw(self._seed, name, 0) * (high - low)
                pending.due = now + nanoseconds(delay)
            if pending.due is not None and now >= pending.due:
                refused = self._scenario.inject(fault.fault, fault.on, fault.parameters, now)
                pending.injected = refused is None
                pending.refused = "" if refused is None else refused.reason[:LONGEST_TEXT]
                if refused is None:
                    self._note("fault", fault.on.partition(".")[0], fault.fault, now)

    def _moment(self, attempt: Attempt, now: int) -> Moment:
        return Moment(now, attempt.task_began, attempt.events, attempt.contacts)

    def _task(self, attempt: Attempt) -> Any:
        return self.exercises[attempt.exercise].tasks[attempt.task]

    # ── score ──

    def _score(self, attempt: Attempt, now: int) -> int:
        return points(
            self.exercises[attempt.exercise].score,
            elapsed_s=seconds(now - attempt.began),
            collisions=len(attempt.contacts),
            wrong_commands=attempt.wrong_commands,
            hints=sum(attempt.hints),
        )

    def _end(self, attempt: Attempt, reason: Reason, now: int, *, failure: int = 0) -> None:
        self.state.results.append(self._result(attempt, reason, now, failure))
        del self.state.results[:-MOST_RESULTS]
        self.state.attempt = None

    def _result(self, attempt: Attempt, reason: Reason, now: int, failure: int = 0) -> Result:
        return Result(
            attempt.exercise,
            attempt.number,
            reason == "passed",
            reason,
            self._score(attempt, now),
            seconds(now - attempt.began),
            attempt.task,
            len(attempt.contacts),
            attempt.wrong_commands,
            sum(attempt.hints),
            failure,
        )

    # ── part ──

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Status:
        attempt = self.state.attempt
        progress = None if attempt is None else self._progress(attempt, now)
        notice = ""
        if progress is not None:
            notice = f"an exercise is running: task {progress.task + 1} of {progress.tasks}"
        results = self.state.results
        best = {name: result.score for name, result in self.best().items()}
        last = results[-1] if results else None
        return Status(progress is not None, progress, last, best, len(results), notice)

    def _progress(self, attempt: Attempt, now: int) -> Progress:
        exercise, task = self.exercises[attempt.exercise], self._task(attempt)
        elapsed, moment = seconds(now - attempt.began), self._moment(attempt, now)
        left = [exercise.time_limit_s - elapsed]
        if task.time_limit_s is not None:
            left.append(task.time_limit_s - seconds(now - attempt.task_began))
        return Progress(
            attempt.exercise,
            attempt.number,
            attempt.task,
            len(exercise.tasks),
            attempt.hints[attempt.task],
            elapsed,
            max(0.0, min(left)),
            self._score(attempt, now),
            len(attempt.contacts),
            attempt.wrong_commands,
            sum(attempt.hints),
            readings(task.until, self._seen, moment),
        )

    def restored(self) -> None:
        """A snapshot has only exercises, tasks, hints and faults that there are."""
        known = {*self.exercises}
        named = {each.exercise for each in self.state.results} | self.state.attempts.keys()
        attempt = self.state.attempt
        if attempt is not None:
            named |= {attempt.exercise}
        if named - known:
            raise ValueError(f"there is no exercise {min(named - known)!r}")
        if attempt is None:
            return
        exercise = self.exercises[attempt.exercise]
        tasks = exercise.tasks
        if attempt.task >= len(tasks) or len(attempt.hints) != len(tasks):
            raise ValueError("there are no such tasks")
        if any(shown > len(task.hints) for shown, task in zip(attempt.hints, tasks, strict=True)):
            raise ValueError("there are no such hints")
        if len(attempt.faults) != len(exercise.faults):
            raise ValueError("there are no such faults")
        if not set(attempt.alarmed) <= set(self._seen.actions):
            raise ValueError("there is no such robot")
        if not attempt.began <= attempt.task_began <= attempt.look_at:
            raise ValueError("the task began before the exercise, or after now")


def points(
    score: Score, *, elapsed_s: float, collisions: int, wrong_commands: int, hints: int
) -> int:
    """Points, of 100, by the rules of the exercise."""
    lost = (
        score.collision * collisions
        + score.wrong_command * wrong_commands
        + score.hint * hints
        + score.second * max(0.0, elapsed_s - score.free_s)
    )
    return max(0, round(MOST_POINTS - lost))
