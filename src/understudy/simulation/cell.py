"""A cell: its parts in the order of the cell file, on one time axis; snapshots of it.

A snapshot that is loaded is checked: its numbers, its keys and the next wake of every part. What a
part alone can know (ranges, states, lengths that belong together) is in the types of its own saved
state and in its `load`.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from understudy.agenda import ClockState, StuckError, advance, earliest
from understudy.errors import UNREADABLE, ConfigError
from understudy.ports import (
    AnyFace,
    Component,
    FaultSource,
    PostponesWork,
    Snapshot,
    TimedComponent,
    state,
)
from understudy.ports.requests import AsksProcess
from understudy.ports.state import saved

SNAPSHOT_FORMAT = 3
Responder = Callable[[bytes], bytes | None]
"""Answers questions of a part in this process; None: the question is lost."""


class Cell:
    """`TimedCell`: all simulated parts, and the time they have reached."""

    def __init__(
        self,
        name: str,
        *,
        digest: str,
        components: Mapping[str, Component],
        faces: Mapping[str, AnyFace],
        clock_state: ClockState | None = None,
        disturbed: Mapping[str, FaultSource] | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self.components = dict(components)
        self.faces = dict(faces)
        self.clock_state = clock_state or ClockState()
        self.disturbed = dict(disturbed or {})
        self.now = 0
        self._timed = [
            component
            for component in self.components.values()
            if isinstance(component, TimedComponent)
        ]
        self._stuck: StuckError | None = None
        self._postponing = [
            component for component in self._timed if isinstance(component, PostponesWork)
        ]
        self.interruptible = False
        """Whether `advance` may end in the middle of an instant with much work, unless time runs in
        lock-step: the caller continues it later."""
        self.on_stuck: Callable[[StuckError], None] = _raise
        """Called instead of an exception when a part does not let time go on."""
        self._responders: dict[str, tuple[AsksProcess, Responder]] = {}

    def asking(self) -> dict[str, AsksProcess]:
        """The parts that ask another process, by name."""
        return {
            name: component
            for name, component in self.components.items()
            if isinstance(component, AsksProcess)
        }

    def answer_questions(self, name: str, responder: Responder) -> None:
        """Answers the questions of a part in this process, after all wakes of their instant."""
        self._responders[name] = self.asking()[name], responder

    def next_wake(self) -> int | None:
        """The next wake of a part, never in the past; None also if time cannot go on."""
        if self._stuck is None and any(asks.question() for asks, _ in self._responders.values()):
            return self.now
        at = None if self._stuck else earliest(self._timed)
        return None if at is None else max(at, self.now)

    def advance(self, to: int, settled: Callable[[int], None] = lambda now: None) -> None:
        """Runs to ``to``; calls ``settled`` after each instant at which something happened.

        If a part is due again after every wake, time stands from then on, until a snapshot is
        restored; the error has the name of the part. It may end early, see `interruptible`.
        """

        def arrive(now: int) -> None:
            self.now = max(self.now, now)
            self._answer_questions()
            settled(self.now)

        if self._stuck is None:
            self._answer_questions()
            try:
                advance(self._timed, to, arrive, since=self.now, interrupted=self.interrupted)
            except StuckError as problem:
                self._stuck = self._named(problem)
        if self._stuck is not None:
            self.on_stuck(self._stuck)
            return
        if not self.interrupted():
            self.now = max(self.now, to)

    def interrupted(self) -> bool:
        """Whether work of the present instant is left, and the event loop has its turn first."""
        if not self.interruptible or isinstance(self.clock_state.rate, str):
            return False
        return any(component.postponed() for component in self._postponing)

    def busy(self) -> bool:
        return any(component.busy() for component in self._timed)

    def status(self) -> dict[str, Any]:
        return {name: component.status(self.now) for name, component in self.components.items()}

    def snapshot(self) -> Snapshot:
        components = {name: state.saved(component) for name, component in self.components.items()}
        return Snapshot(SNAPSHOT_FORMAT, self.name, self.digest, self.now, components)

    def restore(self, snapshot: Snapshot) -> None:
        if snapshot.format != SNAPSHOT_FORMAT:
            raise ConfigError(
                "the snapshot has another format",
                key="format",
                value=snapshot.format,
                allowed=str(SNAPSHOT_FORMAT),
            )
        if snapshot.digest != self.digest:
            raise ConfigError(
                f"the snapshot is of another configuration (cell {snapshot.cell!r}): the cell "
                "file, its seed, or a model or mesh that it names has changed since",
                key="digest",
                value=snapshot.digest,
                allowed=self.digest,
            )
        check_names(snapshot.parts, self.components)
        check_numbers(snapshot.parts)
        before = self.snapshot()
        try:
            self._load(snapshot)
            for name, component in self.components.items():
                with _damage_of(name):
                    check_loaded(name, component, snapshot.parts[name], snapshot.now)
        except ConfigError:
            self._load(before)
            raise

    def _load(self, snapshot: Snapshot) -> None:
        for name, component in self.components.items():
            with _damage_of(name):
                state.load(component, snapshot.parts[name])
        self.now = snapshot.now
        self._stuck = None

    def _answer_questions(self) -> None:
        for asks, responder in self._responders.values():
            if (question := asks.question()) is None:
                continue
            answer = responder(question.payload)
            if answer is None:
                asks.unanswered(question.number, "no answer", self.now)
            else:
                asks.answered(question.number, answer, self.now)

    def _named(self, problem: StuckError) -> StuckError:
        """The problem with the names of the parts in the cell."""
        stuck = {id(component) for component in problem.parts}
        names = [name for name, component in self.components.items() if id(component) in stuck]
        return StuckError(problem.now, problem.parts, names)


def _raise(problem: StuckError) -> None:
    raise problem


@contextmanager
def _damage_of(name: str) -> Iterator[None]:
    """Whatever a part raises because of its state in a snapshot is damage of the snapshot."""
    try:
        yield
    except ConfigError:
        raise
    except msgspec.ValidationError as problem:
        raise damaged(name, str(problem)) from None
    except Exception as problem:
        raise damaged(name, f"{type(problem).__name__}: {problem}") from problem


def write_snapshot(snapshot: Snapshot) -> bytes:
    return msgspec.json.encode(snapshot)


def begins_snapshot(head: bytes) -> bool:
    """Whether a file that begins with these bytes was written by `write_snapshot`."""
    return re.match(rb'\{"format":\d+,"cell":"', head) is not None


def read_snapshot(data: bytes, *, file: str = "") -> Snapshot:
    """``file``: where it comes from, for the message of a refusal."""
    try:
        return msgspec.json.decode(data, type=Snapshot)
    except UNREADABLE as problem:
        raise ConfigError(f"not a snapshot: {problem}", file=file) from None


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
    for name, given in components.items():
        if not _is_sound(given):
            for place, problem in wrong_numbers(given):
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
