"""Checks of a snapshot that hold for every part: its numbers, its keys and its next wake.

What a part alone can know (ranges, states, lengths that belong together) is in the types of its own
saved state and in its `load`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from understudy.errors import ConfigError
from understudy.ports import Component, TimedComponent
from understudy.ports.state import saved

LARGEST_INTEGER = 1 << 63
LARGEST_NUMBER = 1e100
"""Numbers of a cell are smaller: beyond it, products of two are infinite."""
DEEPEST = 64
Place = tuple[str | int, ...]
_NO_NUMBERS = frozenset({str, bytes, bool, type(None)})


def check_names(components: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    """The snapshot has the state of every part of the cell, and of no other."""
    for name in allowed:
        if name not in components:
            raise damaged(name, "the state of this part is missing")
    for name in components:
        if name not in allowed:
            raise damaged(name, "the cell has no such part")


def check_numbers(components: Mapping[str, Any]) -> None:
    """Numbers are finite and of a possible size; integers fit into 64 bits."""
    for name, state in components.items():
        if not _is_sound(state):
            for place, problem in wrong_numbers(state):
                raise damaged(name, f"{written(place)}: {problem}")


def _is_sound(state: Any) -> bool:
    """Whether all numbers are right, found level by level without their places: snapshots have ten
    thousands of values and hardly ever a wrong one. False also for a state of unusual types."""
    level = [state]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                below += value.values()
            elif kind is list:
                below += value
            elif kind is float:
                if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
                    return False
            elif kind is int:
                if not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
                    return False
            elif kind not in _NO_NUMBERS:
                return False
        if not below:
            return True
        level = below
    return False


def wrong_numbers(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    if len(place) > DEEPEST:
        yield place[:4], f"more than {DEEPEST} levels"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from wrong_numbers(item, (*place, str(key)))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            if not isinstance(item, str | bytes | bool):
                yield from wrong_numbers(item, (*place, number))
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, f"{value} is not a finite number"
    elif isinstance(value, float) and abs(value) > LARGEST_NUMBER:
        yield place, f"{value:g} is beyond {LARGEST_NUMBER:g}"
    elif isinstance(value, int) and not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
        yield place, "an integer beyond 64 bits"


def check_loaded(name: str, component: Component, state: Any, now: int) -> None:
    """The part has taken over the whole state, can show it, and is not due in the past."""
    if difference := first_difference(plain(state), plain(saved(component))):
        raise damaged(name, difference)
    component.status(now)
    if (
        isinstance(component, TimedComponent)
        and (at := component.next_wake()) is not None
        and at < now
    ):
        raise damaged(name, f"it is due at {at} ns, before the time of the snapshot ({now} ns)")


def plain(state: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(state))


def first_difference(given: Any, loaded: Any, place: Place = ()) -> str:
    """The first place where the loaded state is another than the given one; a value that may be
    missing was replaced by its default."""
    if isinstance(given, dict) and isinstance(loaded, dict):
        for key, value in given.items():
            if key not in loaded:
                return f"{written((*place, key))}: unknown key"
            if found := first_difference(value, loaded[key], (*place, key)):
                return found
        return ""
    if isinstance(given, list) and isinstance(loaded, list) and len(given) == len(loaded):
        pairs = enumerate(zip(given, loaded, strict=True))
        inside = (first_difference(a, b, (*place, n)) for n, (a, b) in pairs if a != b)
        return next(filter(None, inside), "")
    return "" if given == loaded else f"{written(place)}: not a value that can occur here"


def damaged(component: str, problem: str) -> ConfigError:
    return ConfigError(f"the snapshot is damaged: {component}: {problem}")


def written(place: Place) -> str:
    return ".".join(map(str, place)) or "state"
