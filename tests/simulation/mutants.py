"""Snapshots with one thing changed: what a careless or hostile author of a snapshot may write."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

Path = tuple[Any, ...]
HUGE_LIST = 100_000
NUMBERS = [
    -1, 0, 1, -5, 7, 2**31, -(2**31), 2**53, 2**62, -(2**62), 2**63, 10**30, 1e-300, 1e300, -1e300,
    0.5, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
WORDS = [
    "",
    "x",
    "Run",
    "Idle",
    "Alarm",
    "running",
    "paused",
    "1",
    "2",
    "99",
    "g60",
    "\x00",
    "ß" * 50,
]
OTHERS: list[Any] = [None, True, False, [], {}, [[]], {"x": 1}, [None] * 3, "AAAA", b"\xff"]


def places(value: Any, path: Path = ()) -> list[Path]:
    """Every place in a document."""
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    inside = [place for key, item in items for place in places(item, (*path, key))]
    return [path, *inside] if path else inside


def mutant(whole: dict[str, Any], chance: Random) -> tuple[dict[str, Any], str]:
    """A copy with one change, or a few; and the place and kind of the last one."""
    changed, told = deepcopy(whole), ""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        # Parts weigh the same, however long their state is.
        top = chance.choice([("now",), *[("parts", p) for p in changed["parts"]], ("lines",)])
        base = changed[top[0]] if len(top) == 1 else changed[top[0]].get(top[1])
        inside = [(*top, *place) for place in places(base)] if base not in ({}, []) else [top]
        path = chance.choice(inside)
        change = chance.choice(CHANGES)
        change(changed, path, chance)
        told = f"{change.__name__} at {'.'.join(map(str, path))}"
        if not (changed.get("parts") and {"now", "lines"} <= changed.keys()):
            break
    return changed, told


def _parent(whole: Any, path: Path) -> Any:
    for key in path[:-1]:
        whole = whole[key]
    return whole


def other_number(whole: Any, path: Path, chance: Random) -> None:
    _parent(whole, path)[path[-1]] = chance.choice(NUMBERS)


def other_word(whole: Any, path: Path, chance: Random) -> None:
    _parent(whole, path)[path[-1]] = chance.choice(WORDS)


def other_type(whole: Any, path: Path, chance: Random) -> None:
    _parent(whole, path)[path[-1]] = chance.choice(OTHERS)


def missing(whole: Any, path: Path, chance: Random) -> None:
    del _parent(whole, path)[path[-1]]


def extra(whole: Any, path: Path, chance: Random) -> None:
    parent = _parent(whole, path)
    if isinstance(parent, dict):
        parent[chance.choice(["extra", "99", "g61"])] = deepcopy(parent[path[-1]])
    else:
        parent.append(deepcopy(parent[path[-1]]))


def swapped(whole: Any, path: Path, chance: Random) -> None:
    """The value of another place of the same parent."""
    parent = _parent(whole, path)
    other = chance.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    parent[path[-1]] = deepcopy(parent[other])


def shifted(whole: Any, path: Path, chance: Random) -> None:
    """A time or counter in the past or future."""
    parent = _parent(whole, path)
    value = parent[path[-1]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        by = chance.choice([1, -1, 10**9, -(10**9), 10**12, -(10**12), 10**18, -(10**18)])
        parent[path[-1]] = value + by
    else:
        other_number(whole, path, chance)


def long(whole: Any, path: Path, chance: Random) -> None:
    parent = _parent(whole, path)
    value = parent[path[-1]]
    parent[path[-1]] = [value if isinstance(value, int | float | str) else 0] * HUGE_LIST


def repeated(whole: Any, path: Path, chance: Random) -> None:
    """A list many times over: ids and entries that occur twice."""
    parent = _parent(whole, path)
    value = parent[path[-1]]
    if isinstance(value, list) and value:
        parent[path[-1]] = value * chance.choice((2, 3, 5000 // len(value) + 1))
    elif isinstance(value, str):
        parent[path[-1]] = value * chance.choice((2, 3, 10_000))
    else:
        long(whole, path, chance)


CHANGES: list[Callable[[Any, Path, Random], None]] = [
    other_number, other_number, other_word, other_type, missing, extra, swapped, shifted, shifted,
    shifted, long, repeated,
]  # fmt: skip
