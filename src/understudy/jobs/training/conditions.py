"""Whether conditions of an exercise are met: by the state of the cell, its status values, and the
events since a time. Reading changes nothing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from understudy.errors import unknown
from understudy.jobs.training.exercise import (
    Condition,
    Contacts,
    Event,
    PinIs,
    PoseNear,
    ProgramDone,
    StateIs,
    Text,
    Value,
)
from understudy.ports.operation import OperatorActions
from understudy.ports.program import ProgramControl
from understudy.units import DEG, MM

Unit = Literal["", "mm", "deg"]
MOST_READINGS = 12


class Happened(Struct, frozen=True):
    """An event during an exercise."""

    at: int
    kind: str
    robot: str
    text: str


class Reading(Struct, frozen=True):
    """How far a condition is: `now` beside `wanted`. `what`: its key in the file, or `distance` and
    `turn` of a pose. `label`: what the file calls it."""

    what: str
    of: str
    now: str | float | bool
    wanted: str
    met: bool
    unit: Unit = ""
    label: Text = ""


@dataclass(frozen=True)
class SeenCell:
    """The parts of a cell that conditions look at. `actions`: of the robots, by name."""

    actions: Mapping[str, OperatorActions]
    components: Mapping[str, Any]


@dataclass(frozen=True)
class Moment:
    """An instant at which conditions are looked at. `task`: when the present task began; events and
    contacts since the start of the exercise."""

    now: int
    task: int
    events: Sequence[Happened]
    contacts: Sequence[str]


def met(condition: Condition, cell: SeenCell, moment: Moment) -> bool:
    if condition.all_ is not None:
        return all(met(each, cell, moment) for each in condition.all_)
    if condition.any_ is not None:
        return any(met(each, cell, moment) for each in condition.any_)
    if condition.not_ is not None:
        return not met(condition.not_, cell, moment)
    return all(reading.met for reading in _read(condition, cell, moment))


def readings(condition: Condition, cell: SeenCell, moment: Moment) -> list[Reading]:
    """All that a condition looks at, for the progress of a task."""
    return list(_readings(condition, cell, moment))[:MOST_READINGS]


def _readings(condition: Condition, cell: SeenCell, moment: Moment) -> Iterator[Reading]:
    for each in (*(condition.all_ or ()), *(condition.any_ or ())):
        yield from _readings(each, cell, moment)
    if condition.not_ is not None:
        for reading in _readings(condition.not_, cell, moment):
            yield Reading(
                reading.what,
                reading.of,
                reading.now,
                f"not {reading.wanted}",
                not reading.met,
                reading.unit,
                reading.label,
            )
    yield from _read(condition, cell, moment)


def _read(condition: Condition, cell: SeenCell, moment: Moment) -> Iterator[Reading]:
    """The readings of a condition without others inside."""
    now = moment.now
    for key, given in condition.given():
        match given:
            case StateIs():
                state = cell.actions[given.robot].condition(now).state.partition(":")[0]
                wanted = " / ".join(given.words)
                yield Reading("state", given.robot, state, wanted, state in given.words)
            case PoseNear():
                yield from _pose(given, cell, now)
            case Value():
                yield _value(given, cell, now)
            case ProgramDone():
                yield _program(given, cell, moment)
            case str() if key == "alarm":
                error = cell.actions[given].condition(now).error
                yield Reading("alarm", given, error, "", bool(error))
            case str():
                moving = cell.actions[given].condition(now).moving
                yield Reading("moving", given, moving, "", moving)
            case PinIs():
                level = _level(given, key, cell)
                yield Reading(key, f"{given.robot} {given.pin}", level, "", level is given.is_)
            case Contacts():
                count = sum(given.robot in ("", robot) for robot in moment.contacts)
                wanted = f"≥ {given.at_least}"
                yield Reading("contacts", given.robot, count, wanted, count >= given.at_least)
            case Event():
                count = sum(_is(given, each, moment.task) for each in moment.events)
                yield Reading("event", given.robot, count, given.kind, count > 0)


def _pose(given: PoseNear, cell: SeenCell, now: int) -> Iterator[Reading]:
    pose = cell.actions[given.robot].axis_reading(now).pose
    wanted = (given.x_mm, given.y_mm, given.z_mm)
    apart = [at / MM - to for at, to in zip(pose[:3], wanted, strict=True) if to is not None]
    if apart:
        distance = math.hypot(*apart)
        limit = f"≤ {given.within_mm:g}"
        is_near = distance <= given.within_mm
        yield Reading("distance", given.robot, round(distance, 2), limit, is_near, "mm")
    if given.heading_deg is not None:
        turn = abs(math.remainder(pose.rz / DEG - given.heading_deg, 360.0))
        limit = f"≤ {given.within_deg:g}"
        yield Reading("turn", given.robot, round(turn, 2), limit, turn <= given.within_deg, "deg")


def _value(given: Value, cell: SeenCell, now: int) -> Reading:
    value = field_of(cell.components[given.of].status(now), given.field_)
    checks, wanted = [], []
    if given.is_ is not None:
        checks.append(value == given.is_)
        is_ = given.is_
        wanted.append(str(is_).lower() if isinstance(is_, bool) else str(is_))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    for limit, sign in ((given.at_least, 1), (given.at_most, -1)):
        if limit is not None:
            checks.append(is_number and sign * value >= sign * limit)
            wanted.append(f"{'≥' if sign > 0 else '≤'} {limit:g}")
    shown = value if isinstance(value, str | int | float | bool) else ""
    shown = round(shown, 3) if isinstance(shown, float) else shown
    text = " ".join(wanted)
    name = f"{given.of} {given.field_}"
    return Reading("value", name, shown, text, all(checks), label=given.label or "")


def field_of(status: Any, path: str) -> Any:
    """A value in a status; None if it is not there."""
    for name in path.split("."):
        if isinstance(status, Mapping):
            status = status.get(name)
        elif isinstance(status, Sequence) and not isinstance(status, str) and name.isdecimal():
            status = status[int(name)] if int(name) < len(status) else None
        else:
            status = getattr(status, name, None)
    return status


def _program(given: ProgramDone, cell: SeenCell, moment: Moment) -> Reading:
    program: ProgramControl = cell.components[f"{given.robot}.program"]
    reading = program.reading(moment.now)
    ended = any(
        each.kind == "program" and each.robot == given.robot and each.at >= moment.task
        for each in moment.events
    )
    done = ended and reading.state == "done" and not (given.clean and reading.collisions)
    return Reading("program", given.robot, reading.state, "done", done)


def _level(given: PinIs, key: str, cell: SeenCell) -> bool:
    pins: Any = cell.components[f"{given.robot}.io"]
    read = pins.digital_output if key == "output" else pins.digital_input
    return bool(read(given.pin))


def _is(given: Event, event: Happened, since: int) -> bool:
    return (
        event.at >= since
        and event.kind == given.kind
        and given.robot in ("", event.robot)
        and given.has.lower() in event.text.lower()
    )


# ── checks ──────────────────────────────────────────────────────────────────────────────────────


def check_condition(condition: Condition, cell: SeenCell) -> None:
    """Raises a ConfigError for a robot, component, field or pin that the cell does not have."""
    robots, components = cell.actions, cell.components
    for key, given in condition.given():
        match given:
            case Value():
                if given.of not in components:
                    raise unknown("component", given.of, components, key=f"{key}.of")
                _check_field(given, components[given.of].status(0), key)
            case str():
                _check_robot(given, robots, key)
            case StateIs() | PoseNear():
                _check_robot(given.robot, robots, f"{key}.robot")
            case ProgramDone():
                having = [name for name in robots if f"{name}.program" in components]
                if given.robot not in having:
                    kind = "robot that runs programs"
                    raise unknown(kind, given.robot, having, key=f"{key}.robot")
            case PinIs():
                having = [name for name in robots if hasattr(components.get(f"{name}.io"), "di")]
                if given.robot not in having:
                    raise unknown("robot with pins", given.robot, having, key=f"{key}.robot")
                pins: Any = components[f"{given.robot}.io"]
                (pins.do if key == "output" else pins.di).checked(given.pin, f"{key}.pin")
            case Contacts() | Event() if given.robot:
                _check_robot(given.robot, robots, f"{key}.robot")


def _check_robot(name: str, robots: Mapping[str, Any], key: str) -> None:
    if name not in robots:
        raise unknown("robot", name, robots, key=key)


def _check_field(given: Value, status: Any, key: str) -> None:
    """The first word is a field; those after it may be there at other times only."""
    first = given.field_.partition(".")[0]
    names = list(status) if isinstance(status, Mapping) else _names(status)
    if names and first not in names:
        raise unknown(f"field of {given.of}", first, names, key=f"{key}.field")


def _names(status: Any) -> list[str]:
    """Fields of a struct, a dataclass or a named tuple."""
    for attribute in ("__struct_fields__", "__dataclass_fields__", "_fields"):
        if names := getattr(type(status), attribute, None):
            return list(names)
    return []


def check_fault(fault: str, on: str, components: Mapping[str, Any]) -> None:
    """Raises a ConfigError for a fault that cannot be injected there."""
    able = {name: each.faults() for name, each in components.items() if hasattr(each, "faults")}
    brought = {
        name: [each for each, declared in faults.items() if declared.how == "brought"]
        for name, faults in able.items()
    }
    if on not in brought:
        raise unknown(
            "part with faults", on, [name for name, each in brought.items() if each], key="on"
        )
    if fault not in brought[on]:
        raise unknown(f"fault that can be injected at {on}", fault, brought[on], key="fault")
