"""What an exploration does with a part of a cell, and what must hold of it whatever happens.

The module of a kind of robot, device, face or job declares `EXPLORED`, beside its `REACTIONS`;
`understudy campaign --explore` (`campaign.explore`) uses it for every part of that kind. What holds
for every robot and for every face is here.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from understudy.errors import Refused
from understudy.ports import Component, WireMessage
from understudy.ports import refusals as _refusals
from understudy.ports.decoder import cut_lines, decoder_of
from understudy.ports.operation import OperatorActions, RobotModel
from understudy.units import NS_PER_SECOND, seconds

Data = bytes | WireMessage
Category = Literal["state", "alarm", "refusal", "fault"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Reached = tuple[Category, str]


class Passed(Protocol):
    """Something that passed an endpoint. `kind`: `>` from a client, `<` to it, `!` an event such as
    `open`. `address`: of a message, and its reply address."""

    @property
    def at(self) -> int: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def peer(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def address(self) -> tuple[str, str] | None: ...


class Explored(Protocol):
    """A cell that is explored, as invariants see it. `rehearses`: a stretch is played that will be
    played again; nothing that happens in it counts. `passed`: everything that has passed."""

    rehearses: bool

    @property
    def components(self) -> Mapping[str, Component]: ...

    @property
    def faces(self) -> Mapping[str, Any]: ...

    @property
    def now(self) -> int: ...

    @property
    def passed(self) -> Sequence[Passed]: ...

    def actions(self, robot: str) -> OperatorActions | None: ...

    def model(self, robot: str) -> RobotModel | None: ...

    def stopped_at(self, robot: str) -> int | None:
        """When an operator stopped the robot, if it was not asked for anything since."""
        ...

    def disturbed(self, endpoint: str) -> bool:
        """Whether requests or answers of the endpoint may be lost, delayed, repeated or changed."""
        ...

    def interventions(self, endpoint: str) -> int:
        """How often the robot of the endpoint was acted on, other than by its clients."""
        ...

    def is_owed(self, endpoint: str, peer: str) -> bool:
        """A client waits for an answer, or bytes of it are still to be read."""
        ...

    def own(self, place: str, name: str) -> Any:
        """The component `name` of the robot that a place belongs to; None if it has none."""
        ...


Look = Callable[[], str]
"""What is broken now, empty: nothing. Called after every step, and often while something moves."""
Watch = Callable[[Explored, str], Look | None]
"""Begins to watch a place of a fresh cell; None: it does not apply there. Its docstring begins with
the words of the invariant."""
Act = Callable[[Any, int], Any]
"""Something that an operator does with a component: (component, now)."""
Say = Callable[[str, int], Data]
"""Something that a client says: (robot, running number). Numbers of a cell are different."""


@dataclass(frozen=True)
class Exploration:
    """How a kind is explored. `says`: a client of the face. `reach`: what each exploration of all
    cells should reach; `reached`: what a component is in now."""

    acts: Mapping[str, Act] = field(default_factory=dict)
    says: Sequence[Say] = ()
    invariants: Sequence[Watch] = ()
    reach: Mapping[Category, Collection[str]] = field(default_factory=dict)
    reached: Callable[[Any, int], Iterable[Reached]] = lambda component, now: ()


NOTHING = Exploration()


def texts(*lines: str) -> tuple[Say, ...]:
    """Lines of text that a client sends."""
    return tuple(map(_text, lines))


def _text(line: str) -> Say:
    return lambda robot, number: f"{line}\n".encode("latin-1")


# ── every robot ─────────────────────────────────────────────────────────────────────────────────

BRAKES_S = 5.0
"""Within this time every robot stands after a stop."""
SAME_PLACE = 1e-6
"""Radians or metres."""
SHARE = 1.001
"""Share of a limit that is allowed: rounding."""


def stands_after_stop(run: Explored, place: str) -> Look | None:
    """no motion after a stop"""
    actions = run.actions(place)
    if actions is None:
        return None
    rest: tuple[int, tuple[float, ...]] | None = None

    def look() -> str:
        nonlocal rest
        stopped = run.stopped_at(place)
        if stopped is None or run.now - stopped < BRAKES_S * NS_PER_SECOND:
            return ""
        reading = actions.axis_reading(run.now)
        here = (*reading.joints, *reading.pose)
        if rest is None or rest[0] != stopped:
            rest = stopped, here
        away = max(abs(a - b) for a, b in zip(here, rest[1], strict=True))
        if actions.condition(run.now).moving or away > SAME_PLACE:
            return f"{place} moves {seconds(run.now - stopped):g} s after it"
        return ""

    return look


def limits_held(run: Explored, place: str) -> Look | None:
    """speeds and ranges of joints are held"""
    actions, model = run.actions(place), run.model(place)
    if actions is None or model is None or model.chain is None:
        return None
    lower, upper = (list(map(float, each)) for each in (model.chain.lower, model.chain.upper))
    fastest = list(map(float, model.chain.velocity))

    def look() -> str:
        reading = actions.axis_reading(run.now)
        for axis, value in enumerate(reading.joints):
            if not lower[axis] - SAME_PLACE <= value <= upper[axis] + SAME_PLACE:
                return f"joint {axis + 1} of {place} is at {value:g} rad"
        for axis, value in enumerate(reading.velocities):
            if abs(value) > fastest[axis] * SHARE + SAME_PLACE:
                return f"joint {axis + 1} of {place} turns at {value:g} rad/s"
        return ""

    return look


def _condition(actions: OperatorActions, now: int) -> Iterable[Reached]:
    condition = actions.condition(now)
    yield "state", condition.state
    if condition.code:
        yield "alarm", str(condition.code)


EVERY_ROBOT = Exploration(invariants=(stands_after_stop, limits_held), reached=_condition)
"""`reached` is called with its `OperatorActions`."""
REFUSALS: Mapping[str, Refused] = {
    each.reason: each for each in vars(_refusals).values() if isinstance(each, Refused)
}
"""Refusals that all controllers share, by their words."""


# ── every face ──────────────────────────────────────────────────────────────────────────────────

NEW = 0, b"", b""
CLEARED_S = 2.0
"""After a stop, a reset or an alarm it is not known which lines were dropped: they are counted anew
after this time without a word."""


def lines_answered_once(run: Explored, endpoint: str) -> Look | None:
    """every line is answered once"""
    decoder = decoder_of(run.faces[endpoint])
    answers = decoder.line_answers
    if answers is None or run.disturbed(endpoint):
        return None
    ends = tuple(word.encode() for word in answers.ends if not word.startswith("ALARM"))
    counted = upset = 0
    cleared = run.now
    owed: dict[str, tuple[int, bytes, bytes] | None] = {}
    """Client → lines to answer, unread requests and answers; None: a stop has cleared them."""

    def take(event: Passed) -> None:
        count, asking, answering = owed.get(event.peer) or NEW
        if event.kind == "!":
            owed[event.peer] = (answers.greeting_lines if not ends else 0, b"", b"")
            return
        if event.kind == ">":
            lines, asking = decoder.cut_requests(asking + event.data)
            count += sum(line.endswith(b"\n") for line in lines)
            if any((byte < 0x20 and byte not in b"\r\n\t") or byte > 0x7E for byte in event.data):
                owed[event.peer] = None
                return
        else:
            lines, answering = cut_lines(answering + event.data)
            if any(line.startswith(b"ALARM") for line in lines):
                owed[event.peer] = None
                return
            count -= sum(line.startswith(ends) if ends else 1 for line in lines)
        owed[event.peer] = count, asking, answering

    def idle() -> bool:
        """A robot that holds or has an alarm answers when it is let go on."""
        actions = run.actions(endpoint.partition(".")[0])
        return actions is None or actions.condition(run.now).state == "Idle"

    def look() -> str:
        nonlocal counted, upset, cleared
        events, counted = run.passed[counted:], len(run.passed)
        for event in events:
            if event.endpoint != endpoint:
                continue
            if event.kind == "!" or owed.get(event.peer, NEW) is not None:
                take(event)
            if owed[event.peer] is None:
                cleared = run.now
        if upset != (upset := run.interventions(endpoint)):
            owed.update(dict.fromkeys(owed))
            cleared = run.now
        for peer, left in owed.items():
            if left is None:
                settled = run.now - cleared >= CLEARED_S * NS_PER_SECOND
                if settled and idle() and not run.is_owed(endpoint, peer):
                    owed[peer] = NEW
            elif left[0] < 0:
                return f"{-left[0]} answers too many at {endpoint}"
            elif left[0] > 0 and idle() and not run.is_owed(endpoint, peer):
                return f"{left[0]} lines are not answered at {endpoint}"
        return ""

    return look


EVERY_FACE = Exploration(invariants=(lines_answered_once,))
