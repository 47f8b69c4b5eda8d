"""Commands and queries of a course: exercises, start, hint, certificate."""

import re
from collections.abc import Callable, Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, to_builtins

from understudy import __version__
from understudy.errors import Refused, unknown
from understudy.jobs.training.course import CourseRun, Records, Result
from understudy.jobs.training.exercise import Exercise, Language, Text, said
from understudy.jobs.training.section import COURSE
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.hmi import Later

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

ExerciseName = Annotated[str, Meta(min_length=1, max_length=200)]
Trainee = Annotated[str, Meta(min_length=1, max_length=100)]
DATE = r"\d{4}-\d{2}-\d{2}"
LATEST_RESULTS = 50
OWN = ("start_exercise", "take_hint", "leave_exercise")
"""Commands that cost no points when they are refused."""
NOTHING_PASSED = Refused("no exercise has been passed yet: a certificate needs one")

CERTIFICATE_WIDTH = 72
LONGEST_TITLE = 48
CERTIFICATE_TEXTS: Mapping[str, Mapping[str, str]] = {
    "title": {"en": "Certificate of operator training", "vi": "Chứng nhận đào tạo vận hành"},
    "name": {"en": "Trainee", "vi": "Học viên"},
    "date": {"en": "Date", "vi": "Ngày"},
    "cell": {"en": "Cell", "vi": "Cell"},
    "passed": {
        "en": "has passed these exercises on the simulated cell:",
        "vi": "đã hoàn thành các bài tập sau trên cell mô phỏng:",
    },
    "score": {"en": "{score} points", "vi": "{score} điểm"},
    "attempt": {"en": "attempt {attempt}, {seconds:.0f} s", "vi": "lần {attempt}, {seconds:.0f} s"},
    "total": {
        "en": "{passed} of {all} exercises, {score} of {most} points",
        "vi": "{passed} trên {all} bài tập, {score} trên {most} điểm",
    },
    "version": {
        "en": "Understudy {version}, seed {seed}",
        "vi": "Understudy {version}, seed {seed}",
    },
}


def commands(cell: "OperatedCell") -> list[Command]:
    course = cell.components.get(COURSE)
    return commands_of(CourseCommands(cell, course)) if isinstance(course, CourseRun) else []


class CourseCommands:
    """Every attempt begins with the cell as it was at its start, so that attempts are alike."""

    def __init__(self, cell: "OperatedCell", course: CourseRun) -> None:
        self._cell = cell
        self._course = course
        self._at_start = cell.pump.snapshot()
        self._setting_up = False

    # ── for viewers ──

    @query()
    def course(self, language: Language = "en") -> dict[str, Any]:
        """The exercises with their texts, and the results."""
        state = self._course.state
        best = self._course.best()
        return {
            "cell": self._cell.config.name,
            "exercises": [
                {
                    "name": name,
                    "title": said(exercise.title, language),
                    "about": said(exercise.about, language),
                    "time_limit_s": exercise.time_limit_s,
                    "pass": exercise.score.pass_,
                    "score": to_builtins(exercise.score),
                    "tasks": [
                        {
                            "title": said(task.title, language),
                            "about": said(task.about, language),
                            "hints": len(task.hints),
                        }
                        for task in exercise.tasks
                    ],
                    "best": best[name].score if name in best else None,
                    "attempts": state.attempts.get(name, 0),
                }
                for name, exercise in self._course.exercises.items()
            ],
            "results": [
                {**to_builtins(result), "why": self._why(result.exercise, result.failure, language)}
                for result in state.results[-LATEST_RESULTS:]
            ],
        }

    def _why(self, exercise: str, failure: int, language: str) -> str:
        """The reason of a failure that the file declares; empty for every other end."""
        declared = self._course.exercises[exercise].fail_if
        return said(declared[failure - 1].reason, language) if 0 < failure <= len(declared) else ""

    @query()
    def course_hints(self, language: Language = "en") -> dict[str, Any]:
        """The hints of the present task that were asked for."""
        attempt = self._course.state.attempt
        if attempt is None:
            return {"hints": [], "more": 0}
        hints: tuple[Text, ...] = self._course.exercises[attempt.exercise].tasks[attempt.task].hints
        shown = attempt.hints[attempt.task]
        return {
            "hints": [said(each, language) for each in hints[:shown]],
            "more": len(hints) - shown,
        }

    @query()
    def certificate(
        self,
        trainee: Trainee,
        date: Annotated[str, Meta(pattern=f"^{DATE}$")],
        language: Language = "en",
    ) -> dict[str, str] | Refused:
        """The certificate of the exercises that were passed, as text.

        `date`: as 2026-01-31, since a cell knows no date of its own.
        """
        best = self._course.best()
        if not best:
            return NOTHING_PASSED
        config = self._cell.config
        text = certificate_text(
            _in_one_line(trainee) or "–",
            date,
            language,
            cell=config.name,
            seed=config.head.seed,
            version=__version__,
            exercises=self._course.exercises,
            best=best,
        )
        return {"text": text, "file": f"certificate_{config.name}_{date}.txt"}

    # ── for operators ──

    @command()
    def start_exercise(self, exercise: ExerciseName) -> Any:
        """Bring the cell back to its start, and begin an exercise."""
        found = self._course.exercises.get(exercise)
        if found is None:
            return Refused(str(unknown("exercise", exercise, self._course.exercises)))
        if self._setting_up:
            return Refused("an exercise is being set up: wait until it has begun")
        self._count_refusals()
        records = self._cell.pump.act(self._course.records)
        self._setting_up = True
        restored = self._cell.clock.restore(snapshot=self._at_start)
        answer = _then(restored, lambda: self._set_up(exercise, records))
        if isinstance(answer, Later):
            answer.then(lambda _: self._set_up_ended())
        else:
            self._set_up_ended()
        return answer

    def _set_up(self, name: str, records: Records) -> Any:
        """The commands of the exercise, one after the other, and its start."""
        self._cell.pump.act(lambda now: self._course.keep(records))
        self._cell.all_programs.load_named_programs()
        self._cell.clock.start()
        steps = iter(self._course.exercises[name].set_up)

        def go_on() -> Any:
            step = next(steps, None)
            if step is None:
                self._cell.pump.act(lambda now: self._course.begin(name, now))
                return self._cell.pump.act(self._status)
            answer = self._cell.table.call(step.command, step.parameters, "operator")
            if isinstance(answer, Refused):
                return Refused(f"the exercise cannot be set up: {step.command}: {answer.reason}")
            return _then(answer, go_on)

        return go_on()

    def _set_up_ended(self) -> None:
        self._setting_up = False

    def _count_refusals(self) -> None:
        """From now on a refused command of the operator costs points."""
        if self._note not in self._cell.table.on_answer:
            self._cell.table.on_answer.append(self._note)

    def _note(self, name: str, answer: Any) -> None:
        refused = isinstance(answer, Refused) or (
            isinstance(answer, Mapping) and answer.get("state") == "refused"  # a line of MDI
        )
        if refused and name not in OWN and not self._setting_up:
            self._cell.pump.act(self._course.count_wrong_command)

    @command()
    def take_hint(self) -> Any:
        """Show the next hint of the present task; it costs points."""
        return self._act(self._course.hint)

    @command()
    def leave_exercise(self) -> Any:
        """Give up the exercise that is running."""
        return self._act(self._course.leave)

    def _act(self, action: Callable[[int], Refused | None]) -> Any:
        return self._cell.pump.act(lambda now: action(now) or self._status(now))

    def _status(self, now: int) -> Any:
        return to_builtins(self._course.status(now))


def _in_one_line(name: str) -> str:
    """A name without control characters."""
    return "".join(each for each in re.sub(r"\s+", " ", name) if each.isprintable()).strip()


def _then(answer: Any, go_on: Callable[[], Any]) -> Any:
    """Goes on after an answer that may need time; a refusal is the answer of all."""
    if isinstance(answer, Later):
        return answer.turned(lambda _: go_on())
    return answer if isinstance(answer, Refused) else go_on()


def certificate_text(
    trainee: str,
    date: str,
    language: Language,
    *,
    cell: str,
    seed: int,
    version: str,
    exercises: Mapping[str, Exercise],
    best: Mapping[str, Result],
) -> str:
    """The certificate of a course: who, which exercises, score, date, cell and version."""

    def text(key: str, **given: object) -> str:
        return CERTIFICATE_TEXTS[key][language].format(**given)

    labels = {"name": trainee, "date": date, "cell": cell}
    wide = max(len(text(key)) for key in labels)
    lines = [text("title"), "=" * CERTIFICATE_WIDTH, ""]
    lines += [f"{text(key):<{wide}}  {value}" for key, value in labels.items()]
    lines += ["", text("passed"), ""]
    for name, result in best.items():
        title = shorten(said(exercises[name].title, language), LONGEST_TITLE, placeholder="…")
        score = text("score", score=result.score)
        how = text("attempt", attempt=result.attempt, seconds=result.seconds)
        lines.append(f"  {title:<{LONGEST_TITLE}}  {score:>10}  ({how})")
    points = sum(result.score for result in best.values())
    counts = {"passed": len(best), "all": len(exercises), "score": points}
    lines += ["", text("total", **counts, most=100 * len(exercises))]
    lines += [text("version", version=version, seed=seed), "=" * CERTIFICATE_WIDTH]
    return "\n".join(lines) + "\n"
