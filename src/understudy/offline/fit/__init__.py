"""Fit to a recording: figures of a cell file, with intervals, from what a real robot reported.

A robot's package offers `recorded(config, name, chat)`. It reads the transcript and returns which
keys of the cell file can be estimated: from motions (`Motions`, compared with the planner of the
simulated robot) and from single measurements, such as the time until an answer (`Measured`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.config import CellConfig
from understudy.errors import ConfigError
from understudy.motion.path import Floats
from understudy.wire.chat import Chat
from understudy.wire.connection import Event

Keys = tuple[str | int, ...]
"""Where a value stands in the cell file: keys and indices, from the top."""


class Parameter(NamedTuple):
    """A figure of the robot that shapes its motion. `start`: where the search begins. `scaled`: the
    search first tries a few common factors of all such figures. `limit`: it only cuts off what the
    program asks for, so that a recording may show no more than a lower bound. Without a `meaning`
    it is estimated but not shown, as the speed of a single motion."""

    keys: Keys
    meaning: str
    unit: str
    start: float
    least: float = 1e-9
    most: float = 1e12
    scaled: bool = False
    limit: bool = False
    order: int = 2


@dataclass(frozen=True, eq=False)
class Reports:
    """Reported positions, in the order of time. `motion`: the number of the motion that each was
    taken in; `time`: seconds at which it was recorded; `position`: (n, axes)."""

    motion: NDArray[np.int64]
    time: Floats
    position: Floats
    quantum: Floats
    """Smallest difference that a report shows, of each axis."""


class Motion(Protocol):
    """A motion from rest to rest, planned with the values in question."""

    duration: float

    def positions(self, times: Floats) -> Floats:
        """(n, axes), in the units of the reports; ``times``: seconds since its begin."""
        ...


class Motions(Protocol):
    """The motions of a recording, and what was reported during them."""

    parameters: Sequence[Parameter]
    reports: Reports
    begins: Floats
    """Estimated begin of each motion, on the clock of the recording."""

    def planned(self, values: Sequence[float]) -> Sequence[Motion]:
        """All motions with these values of the parameters."""
        ...


class Measured(NamedTuple):
    """Measurements of one figure. `keys`: where it stands in the cell file; empty: nowhere.
    `seen_from`: what was measured, in words. `step`: the robot rounds the figure up to whole steps
    of this size. `whole`: the cell file has a whole number here."""

    keys: Keys
    meaning: str
    unit: str
    values: Sequence[float]
    seen_from: str
    step: float = 0.0
    whole: bool = False


AfterFit = Callable[[Floats, Floats], tuple[Measured, ...]]
"""Measurements that need the begin and the end of every motion, on the clock of the recording."""


def nothing_more(begins: Floats, ends: Floats) -> tuple[Measured, ...]:
    return ()


@dataclass(frozen=True)
class Recorded:
    """What a recording of one robot shows. `known`: parameters whose value the recording states,
    as `$120=500`; `absent`: parameters that nothing in it depends on. `rules`: scenario rules that
    carry measured delays; they are added to the cell file. `lists`: texts of lists of the cell
    file, written before an estimate of one of their items if the cell file has none there.
    `simpler`: what is fitted instead if nothing of `doubtful` is visible: a robot without these
    parameters."""

    motions: Motions | None = None
    measured: tuple[Measured, ...] = ()
    known: tuple[tuple[Parameter, float], ...] = ()
    absent: tuple[Parameter, ...] = ()
    rules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lists: Mapping[Keys, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    after_fit: AfterFit = nothing_more
    doubtful: frozenset[Keys] = frozenset()
    simpler: "Recorded | None" = None


def events_of(
    chat: Chat, config: CellConfig, robot: str, face: str
) -> tuple[str, tuple[Event, ...]]:
    """The endpoint of a robot's face, and the events of the client that said most on it. A
    recording by `understudy record` has the name of the face as endpoint."""
    names = [
        f"{robot}.{name}" for name, each in config.robots[robot].faces.items() if each.kind == face
    ]
    endpoint = names[0] if names else f"{robot}.{face}"
    present = {event.endpoint for event in chat.events}
    found = next((name for name in (*names, face) if name in present), "")
    sizes: dict[str, int] = {}
    own = [event for event in chat.events if event.endpoint == found]
    for event in own:
        sizes[event.peer] = sizes.get(event.peer, 0) + len(event.data)
    if not sizes:
        raise ConfigError(
            f"nothing was said to {robot} in this recording",
            value=", ".join(sorted(present)) or "no endpoint",
            allowed=f"{endpoint} or {face}",
        )
    peer = max(sizes, key=lambda name: sizes[name])
    return endpoint, tuple(event for event in own if event.peer == peer)
