"""Missions as files: the program of a mobile robot, one step on each line.

    # to the table and back
    MOVE_TO_POINT x=6 y=0            a route around the obstacles
    MOVE x=2.4 y=-1.2 yaw_deg=90     straight there
    TURN yaw_deg=0
    WAIT seconds=2.5
    EXECUTE_ACTION functionKey=LIFT targetPosition=0.05

The types are those of tasks and their steps, the parameters those of the messages. A mission is
sent as tasks: steps that follow each other are one MISSION, each route is a MOVE_TO_POINT.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from understudy.errors import ConfigError, Refused, unknown
from understudy.robots.mobile.runtime.messages import (
    MoveToPoint,
    RouteStep,
    command_kind,
    read_parameters,
)
from understudy.robots.mobile.runtime.tasks import NEEDED

COMMENT = "#"
ROUTE, ACTION = "MOVE_TO_POINT", "EXECUTE_ACTION"
STEPS = ("MOVE", "TURN", "WAIT")
OPTIONAL: Mapping[str, tuple[str, ...]] = {"MOVE": ("yaw",)}


class MissionLine(NamedTuple):
    """A line of the file: a step of a MISSION, or a place to go to by a route."""

    number: int
    text: str
    step: dict[str, Any] | None = None
    place: dict[str, Any] | None = None
    problem: ConfigError | None = None


class MissionTask(NamedTuple):
    """The payload of a task.assign, and the line of each of its steps; a route has one."""

    payload: dict[str, Any]
    lines: Sequence[int]


def read_mission(text: str | bytes) -> list[MissionLine]:
    """The lines with a step; one that cannot be read has a `problem`."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(COMMENT)[0].split()
        if words:
            found.append(_read_line(number, line.strip(), words))
    return found


def mission_tasks(lines: Iterable[MissionLine], prefix: str) -> list[MissionTask]:
    """The tasks of a mission without problems; ``prefix``: of their taskIds."""
    found: list[MissionTask] = []
    steps: list[dict[str, Any]] = []
    numbers: list[int] = []

    def add(kind: str, numbers: Sequence[int], **more: Any) -> None:
        payload = {"taskId": f"{prefix}-{len(found) + 1}", "taskType": kind, **more}
        found.append(MissionTask(payload, tuple(numbers)))

    def add_steps() -> None:
        if steps:
            add("MISSION", numbers, mission={"steps": list(steps)})
            steps.clear()
            numbers.clear()

    for line in lines:
        if line.step is not None:
            steps.append(line.step)
            numbers.append(line.number)
        elif line.place is not None:
            add_steps()
            add(ROUTE, [line.number], moveToPoint=line.place)
    add_steps()
    return found


def _read_line(number: int, text: str, words: Sequence[str]) -> MissionLine:
    kind, *rest = words
    try:
        pairs = [_pair(word) for word in rest]
        if kind == ROUTE:
            names = [field.encode_name for field in msgspec.structs.fields(MoveToPoint)]
            place = message_values(pairs, names)
            msgspec.convert(place, MoveToPoint)
            return MissionLine(number, text, place=place)
        if kind == ACTION:
            return MissionLine(number, text, step=_action(pairs))
        if kind not in STEPS:
            raise unknown("step", kind, [*STEPS, ACTION, ROUTE])
        needed, also = NEEDED[kind], OPTIONAL.get(kind, ())
        step = {"type": kind, **message_values(pairs, [*needed, *also])}
        if missing := [name for name in needed if name not in step]:
            raise ConfigError(f"{kind} needs {' '.join(f'{name}=…' for name in missing)}")
        msgspec.convert(step, RouteStep)
        return MissionLine(number, text, step=step)
    except ConfigError as problem:
        return MissionLine(number, text, problem=problem)
    except msgspec.ValidationError as problem:
        return MissionLine(number, text, problem=ConfigError(str(problem)))


def _action(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    kind = command_kind(ACTION)
    assert kind is not None
    names = [field.encode_name for field in msgspec.structs.fields(kind.parameters)]
    parameters = message_values(pairs, names)
    if isinstance(problem := read_parameters(kind, parameters), Refused):
        raise ConfigError(f"{ACTION}: {problem.reason}")
    return {"type": "ARRIVE_ACTIONS", "actions": [parameters]}


def _pair(word: str) -> tuple[str, Any]:
    key, sign, value = word.partition("=")
    if not sign or not key:
        raise ConfigError("this is no parameter", value=word, allowed="KEY=VALUE")
    try:
        return key, float(value)
    except ValueError:
        return key, value


# ── parameters ──


def message_values(pairs: Iterable[tuple[str, Any]], known: Sequence[str]) -> dict[str, Any]:
    """Parameters as the messages have them; snake_case and yaw_deg are understood, too."""
    found = {}
    for key, value in pairs:
        name = _camel(key)
        if name == "yawDeg" and "yaw" in known:
            if not isinstance(value, int | float):
                raise ConfigError(key, value=value, allowed="degrees")
            name, value = "yaw", math.radians(value)
        if name not in known:
            raise unknown("parameter", key, known)
        if name in found:
            raise ConfigError("this parameter is given twice", value=key, allowed="once")
        found[name] = value
    return found


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
