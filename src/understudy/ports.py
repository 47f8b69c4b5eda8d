"""The small Protocols between the rooms, and the values they exchange."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NewType, Protocol

from understudy.errors import Refused
from understudy.space.pose import Pose

Ticket = NewType("Ticket", int)
"""The number under which a request is carried out."""

State = Any
"""What a part puts into a snapshot: plain values that msgspec can write."""


# ── time ────────────────────────────────────────────────────────────────────────────────────────


class Part(Protocol):
    """Something in the cell: acts by itself, can be looked at, saved and brought back."""

    def next_wake(self) -> int | None: ...

    def wake(self, now: int) -> None: ...

    def busy(self) -> bool:
        """A ticket or program is under way."""
        ...

    def status(self, now: int) -> Any:
        """A frozen value; page, telemetry and tests read only this."""
        ...

    def save(self) -> State: ...

    def load(self, state: State) -> None: ...


# ── who talks ───────────────────────────────────────────────────────────────────────────────────


class Session(Protocol):
    """One peer's side of a conversation."""

    def receive(self, data: bytes, now: int) -> None: ...

    def take(self, room: int) -> bytes:
        """The next message to send, empty if there is none; ``room`` bytes can go out now.

        A message that must not be lost waits until there is room for it.
        """
        ...

    def eof(self, now: int) -> None:
        """The peer sends nothing more; what it is owed still goes out."""
        ...

    def closed(self, now: int) -> None:
        """The connection is gone, in both directions."""
        ...

    def credit(self) -> int:
        """How many bytes it will read now; at 0 the wire stops reading."""
        ...

    def owed(self) -> bool:
        """A request was read whose answer needs time."""
        ...


class Face(Part, Protocol):
    """A wire dialect: opened once per peer, holding what its sessions share."""

    def open(self, peer: str, now: int) -> Session: ...

    def sessions(self) -> Mapping[str, Session]:
        """Who is in conversation, by peer name; after `load` also those whose wire is gone."""
        ...


# ── scenario rules, as the struck see them ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that acts, with the parameters its rule gives."""

    fault: str
    parameters: Mapping[str, float]


class Luck(Protocol):
    """What a part or face asks when something may go wrong; each question counts."""

    def strike(self, fault: str, place: str, now: int) -> Strike | None:
        """Does this fault act at this place now?"""
        ...

    def noise(self, fault: str, place: str, now: int, count: int) -> tuple[float, ...]:
        """Deviations of a reading; zeros where no rule says otherwise."""
        ...


class Injectable(Protocol):
    """A part on which faults can be brought about, by script or by hand."""

    def faults(self) -> tuple[str, ...]: ...

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None: ...


# ── a robot without joints ──────────────────────────────────────────────────────────────────────

Finished = Callable[[Ticket, Refused | None, int], None]
"""Told when a ticket ends: None when it was carried out."""


class PoseMover(Protocol):
    """Moves a free Cartesian pose; requests of several clients run one after the other."""

    def move_to(self, pose: Pose, now: int) -> Ticket | Refused: ...

    def move_by(self, dx: float, dy: float, dz: float, now: int) -> Ticket | Refused: ...

    def home(self, now: int) -> Ticket | Refused: ...

    def stop(self, now: int) -> None:
        """Emergency stop: what moves and what waits is refused before this returns."""
        ...

    def reset(self, now: int) -> None: ...

    def on_finished(self, listener: Finished) -> None: ...
