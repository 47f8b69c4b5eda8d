"""An exercise as its file describes it: explanation, tasks with conditions, faults, score.

    cell: g60_welding
    title: {en: Home the robot, vi: Đưa robot về gốc}
    about: Switch the drives on, and send the arm home.
    tasks:
      - title: Home the robot
        until: {value: {of: g60, field: homed, is: true}}
        hints: [The button *Home* is on the page Program.]

A text is one for every language, or has one for each. A condition has exactly one key.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from understudy.config.document import Document, parse
from understudy.config.files import YAML_FILES, read_text, shipped
from understudy.config.typed import read
from understudy.errors import ConfigError, unknown

LANGUAGES = ("en", "vi")
Language = Literal["en", "vi"]
MOST_EXERCISES = 200
MOST_TASKS = 50
DEEPEST = 8
"""Conditions inside each other."""
ENDING = ".yaml"

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Length = Annotated[float, Meta(gt=0, le=1e6)]
Number = Annotated[float, Meta(ge=-1e9, le=1e9)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Points = Annotated[float, Meta(ge=0, le=100)]
Sentence = Annotated[str, Meta(min_length=1, max_length=4000)]
Bare = Annotated[str, Meta(max_length=200)]


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """A text in each language."""

    en: Sentence
    vi: Sentence


Text = Words | Sentence


def said(text: Text, language: str) -> str:
    if isinstance(text, str):
        return text
    return text.vi if language == "vi" else text.en


# ── conditions ──────────────────────────────────────────────────────────────────────────────────


class StateIs(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a robot, in its own word; several: one of them."""

    robot: Name
    is_: Name | Annotated[tuple[Name, ...], Meta(min_length=1, max_length=20)] = field(name="is")

    @property
    def words(self) -> tuple[str, ...]:
        return (self.is_,) if isinstance(self.is_, str) else self.is_


class PoseNear(Struct, frozen=True, forbid_unknown_fields=True):
    """The pose of the tool, or of a mobile robot, is near. What is not given is not looked at;
    `heading_deg` is the turn about z."""

    robot: Name
    x_mm: Number | None = None
    y_mm: Number | None = None
    z_mm: Number | None = None
    heading_deg: Number | None = None
    within_mm: Length = 2.0
    within_deg: Length = 2.0

    def __post_init__(self) -> None:
        given = (self.x_mm, self.y_mm, self.z_mm, self.heading_deg)
        if all(each is None for each in given):
            raise ValueError("a pose has at least one of x_mm, y_mm, z_mm and heading_deg")


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A value in the status of a component: `of: g60.welder, field: total_weld_length_mm`. In a
    field with dots each word is a field of the one before. `label`: how the page names it."""

    of: Name
    field_: Name = field(name="field")
    is_: bool | Number | Bare | None = field(name="is", default=None)
    at_least: Number | None = None
    at_most: Number | None = None
    label: Text | None = None

    def __post_init__(self) -> None:
        if (self.is_, self.at_least, self.at_most) == (None, None, None):
            raise ValueError("a value has `is`, `at_least` or `at_most`")


class ProgramDone(Struct, frozen=True, forbid_unknown_fields=True):
    """The program of a robot was started in this task, and has ended at its last line. `clean`:
    without a collision since its start."""

    robot: Name
    clean: bool = True


class PinIs(Struct, frozen=True, forbid_unknown_fields=True):
    """The level of a digital pin, by name or number."""

    robot: Name
    pin: Name | Annotated[int, Meta(ge=0, le=4095)]
    is_: bool = field(name="is", default=True)


class Contacts(Struct, frozen=True, forbid_unknown_fields=True):
    """Collisions since the start of the exercise. Without `robot`: of all."""

    robot: Bare = ""
    at_least: Annotated[int, Meta(ge=1, le=1000)] = 1


class Event(Struct, frozen=True, forbid_unknown_fields=True):
    """An event since the start of the task: `alarm`, `collision`, `program`, `fault`, or the kind
    of a device. `has`: words of its text."""

    kind: Name
    robot: Bare = ""
    has: Bare = ""


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one of these keys. `alarm`, `moving`: the name of a robot."""

    all_: "Annotated[tuple[Condition, ...], Meta(min_length=1, max_length=20)] | None" = field(
        name="all", default=None
    )
    any_: "Annotated[tuple[Condition, ...], Meta(min_length=1, max_length=20)] | None" = field(
        name="any", default=None
    )
    not_: "Condition | None" = field(name="not", default=None)
    state: StateIs | None = None
    pose: PoseNear | None = None
    value: Value | None = None
    program: ProgramDone | None = None
    alarm: Name | None = None
    moving: Name | None = None
    output: PinIs | None = None
    input: PinIs | None = None
    contacts: Contacts | None = None
    event: Event | None = None

    def __post_init__(self) -> None:
        given = [key for key, each in self.given() if each is not None]
        if len(given) != 1:
            keys = ", ".join(key for key, _ in self.given())
            count = " and ".join(given) or "none"
            raise ConfigError(
                "a condition has exactly one key", value=count, allowed=f"one of {keys}"
            )

    def given(self) -> Iterator[tuple[str, Any]]:
        fields = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        return ((key, getattr(self, name)) for key, name in fields)

    def inner(self) -> Iterator[tuple[str, "Condition"]]:
        """The conditions in it, with their keys."""
        for key in ("all", "any"):
            for number, each in enumerate(getattr(self, f"{key}_") or ()):
                yield f"{key}.{number}", each
        if self.not_ is not None:
            yield "not", self.not_


# ── exercise ────────────────────────────────────────────────────────────────────────────────────


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done. `hold_s`: how long its condition must hold. `time_limit_s`: from the
    end of the task before."""

    title: Text
    until: Condition
    about: Text = ""
    hold_s: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    time_limit_s: Seconds | None = None
    hints: Annotated[tuple[Text, ...], Meta(max_length=10)] = ()


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """What ends the exercise as failed. `task`: only during this one, from 1 on."""

    when: Condition
    reason: Text
    task: Annotated[int, Meta(ge=1, le=MOST_TASKS)] | None = None


class Injected(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault. Once `task` has begun and `when` is met, it is injected after a time in the range
    `after_s`, which depends on the seed of the cell, the exercise and the attempt."""

    fault: Name
    on: Name
    parameters: dict[str, Number | Bare] = {}
    task: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 1
    when: Condition | None = None
    after_s: tuple[
        Annotated[float, Meta(ge=0, le=86_400)], Annotated[float, Meta(ge=0, le=86_400)]
    ] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if self.after_s[0] > self.after_s[1]:
            raise ConfigError(
                "the lower end is above the upper one",
                key="after_s",
                value=list(self.after_s),
                allowed="low, then high",
            )


class Score(Struct, frozen=True, forbid_unknown_fields=True):
    """Points that are lost, of 100: for each collision, refused command and hint, and for every
    second after `free_s`. `pass`: the fewest with which the exercise is passed."""

    pass_: Points = field(name="pass", default=60.0)
    collision: Points = 25.0
    wrong_command: Points = 5.0
    hint: Points = 10.0
    second: Points = 0.0
    free_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.0


class SetUp(Struct, frozen=True, forbid_unknown_fields=True):
    """A command of the cell before the exercise begins, as in `understudy ctl`."""

    command: Name
    parameters: dict[str, Any] = {}


class Exercise(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file. `cell`: the shipped cell, or the path of one, that `understudy course`
    runs. `order`: its place in the list."""

    title: Text
    tasks: Annotated[tuple[Task, ...], Meta(min_length=1, max_length=MOST_TASKS)]
    about: Text = ""
    cell: Bare = ""
    order: Annotated[int, Meta(ge=0, le=1000)] = 100
    time_limit_s: Seconds = 600.0
    set_up: Annotated[tuple[SetUp, ...], Meta(max_length=50)] = ()
    fail_if: Annotated[tuple[Failure, ...], Meta(max_length=20)] = ()
    faults: Annotated[tuple[Injected, ...], Meta(max_length=20)] = ()
    score: Score = Score()


def conditions(exercise: Exercise) -> Iterator[tuple[str, Condition]]:
    """All conditions of an exercise, with their keys in the file."""
    for number, task in enumerate(exercise.tasks):
        yield from _all(f"tasks.{number}.until", task.until)
    for number, failure in enumerate(exercise.fail_if):
        yield from _all(f"fail_if.{number}.when", failure.when)
    for number, fault in enumerate(exercise.faults):
        if fault.when is not None:
            yield from _all(f"faults.{number}.when", fault.when)


def _all(key: str, condition: Condition) -> Iterator[tuple[str, Condition]]:
    yield key, condition
    for inside, each in condition.inner():
        yield from _all(f"{key}.{inside}", each)


# ── files ───────────────────────────────────────────────────────────────────────────────────────


class NamedExercise(Struct, frozen=True):
    """An exercise, by the name of its file without the ending."""

    name: str
    exercise: Exercise


def read_exercise(text: str, file: str) -> Exercise:
    return exercise_in(parse(text, file))


def exercise_in(document: Document) -> Exercise:
    exercise: Exercise = document.at((), _read, document.value)
    return exercise


def _read(value: Any) -> Exercise:
    exercise: Exercise = read(value, Exercise)
    for key, _ in conditions(exercise):
        depth = sum(word in ("all", "any", "not") for word in key.split("."))
        if depth > DEEPEST:
            allowed = f"{DEEPEST} levels"
            raise ConfigError("too many conditions inside each other", key=key, allowed=allowed)
    last = len(exercise.tasks)
    numbered = [(f"faults.{n}.task", each.task) for n, each in enumerate(exercise.faults)]
    numbered += [(f"fail_if.{n}.task", each.task or 1) for n, each in enumerate(exercise.fail_if)]
    for key, task in numbered:
        if task > last:
            raise ConfigError("there is no such task", key=key, value=task, allowed=f"1…{last}")
    return exercise


def is_exercise(document: Document) -> bool:
    """Whether a file is meant as an exercise: it has tasks, and no robots."""
    return isinstance(document.value, Mapping) and (
        "tasks" in document.value and "robots" not in document.value
    )


def shipped_exercises() -> dict[str, Exercise]:
    """The shipped exercises by name, in their order."""
    found = {
        name: read_exercise(file.read_text(encoding="utf-8"), f"{name}{ENDING} (shipped)")
        for name, file in shipped("exercises", ENDING).items()
    }
    return in_order(found)


def exercises_of(folder: Path) -> dict[str, Exercise]:
    """The exercises in a folder by name, in their order."""
    if not folder.is_dir():
        allowed = "a folder with exercise files"
        raise ConfigError("there is no such folder", value=str(folder), allowed=allowed)
    files = sorted(each for each in folder.iterdir() if each.suffix in YAML_FILES)
    if len(files) > MOST_EXERCISES:
        allowed = f"at most {MOST_EXERCISES}"
        raise ConfigError("too many exercises", value=len(files), allowed=allowed)
    documents = {file.stem: parse(read_text(file), str(file)) for file in files}
    found = {
        name: exercise_in(document)
        for name, document in documents.items()
        if not (isinstance(document.value, Mapping) and "robots" in document.value)  # a cell
    }
    return in_order(found)


def in_order(exercises: Mapping[str, Exercise]) -> dict[str, Exercise]:
    return dict(sorted(exercises.items(), key=lambda each: (each[1].order, each[0])))


def find_exercise(name: str) -> Exercise:
    known = shipped_exercises()
    if name not in known:
        kind = "exercise (neither shipped nor the path of a file or folder)"
        raise unknown(kind, name, known)
    return known[name]
