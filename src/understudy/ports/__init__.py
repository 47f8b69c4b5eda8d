"""The small Protocols between the rooms, and the values they exchange."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NewType, Protocol, runtime_checkable

from msgspec import Meta, Struct

from understudy.errors import Refused

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


UNLIMITED = 1 << 40
"""The room on a way out on which nothing is under way: all that was sent has gone."""
HANG_UP = -1
"""The credit of a session that has done with its peer; the wire hangs up."""


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
        """How many bytes it will read now; at 0 the wire stops reading, at HANG_UP it hangs up."""
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

    def ready_peers(self) -> list[str]:
        """The peers for whom there is something to take, since this was last asked."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A socket of a face that has several, and how it is opened unless the cell file says more."""

    port: int
    local_port: int = 0
    datagrams: bool = False
    messages: bool = False
    stalled_after_s: float = 10.0
    on: bool = True


class Caller(Part, Protocol):
    """The calling side of a conversation: a driver, to whom a wire lends a line to a real thing.

    The wire tells of the call that is wanted and of no other; what it tells may be late, never
    out of order.
    """

    def wanted(self) -> int | None:
        """The number of the call that should stand now; another number is another call."""
        ...

    def connected(self, now: int) -> None: ...

    def receive(self, data: bytes, now: int) -> None: ...

    def take(self, room: int) -> bytes:
        """The next message to send, empty if there is none; ``room`` bytes can go out now."""
        ...

    def lost(self, now: int, reason: str) -> None:
        """The call could not be made, or is gone."""
        ...

    def on_ready(self, listener: Callable[[], None]) -> None:
        """Be told when there is something to take, or another call is wanted."""
        ...


# ── scenario rules, as the struck see them ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault that acts: which rule, the how manyeth time, with what parameters."""

    rule: str
    index: int
    parameters: Mapping[str, float]


class FaultSource(Protocol):
    """What a part or face asks when something may go wrong; each question counts."""

    def draw_fault(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """Does this fault act at this place now?"""
        ...

    def ambient(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """A disturbance that depends on time alone: looking at it counts nothing."""
        ...

    def received(self, place: str, command: str, now: int) -> None:
        """A face tells what it was told: rules may wait for it."""
        ...

    def deviations(self, fault: ActiveFault, count: int) -> tuple[float, ...]:
        """Numbers in [-1, 1) that belong to this draw alone."""
        ...


@runtime_checkable
class Injectable(Protocol):
    """A part on which faults can be brought about, by script or by hand."""

    def faults(self) -> tuple[str, ...]: ...

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None: ...


# ── requests ────────────────────────────────────────────────────────────────────────────────────

Finished = Callable[[Ticket, Refused | None, int], None]
"""Listener for the end of a ticket: None if it was carried out, else why not; and the moment."""


# ── an arm's controller ─────────────────────────────────────────────────────────────────────────

Joints = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class JointState:
    """What the joints do: rad, rad/s, rad/s², Nm."""

    positions: Joints
    velocities: Joints
    accelerations: Joints
    torques: Joints


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """Where a controller stands; error codes are grblHAL's numbers.

    ``accepted``: how many lines it has taken; ``line``: which of them is being run, 0 if none;
    ``stops``: how often what was under way was cut off; ``at``: the moment it tells of.
    """

    connected: bool = False
    enabled: bool = False
    moving: bool = False
    error: bool = False
    homed: bool = False
    error_message: str = ""
    error_code: int = 0
    buffer_available: int = 0
    buffer_used: int = 0
    state: str = "Idle"
    line: int = 0
    accepted: int = 0
    stops: int = 0
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a controller has done: blocks, contacts, metres of the tool's way."""

    gcode_executed: int = 0
    collisions_detected: int = 0
    distance: float = 0.0


@dataclass(frozen=True, slots=True)
class DigitalIO:
    """Bit n is pin n."""

    inputs: int = 0
    outputs: int = 0


@dataclass(frozen=True, slots=True)
class AnalogIO:
    """Volts."""

    inputs: tuple[float, ...] = ()
    outputs: tuple[float, ...] = ()


# ── what a robot is built with ──────────────────────────────────────────────────────────────────


class ClockState(Protocol):
    """The cell's one clock, as a controller may turn it."""

    def set_scale(self, scale: float) -> Refused | None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Deps:
    """What every robot may need.

    ``read`` gives a shipped or neighbouring file by name, ``tell`` says something to the people at
    the cell, ``append`` adds a line to a file.
    """

    fault_source: FaultSource
    read: Callable[[str], bytes]
    clock_state: ClockState
    tell: Callable[[str], None] = lambda message: None
    append: Callable[[str, str], None] = lambda file, line: None


# ── the cell as the edge sees it ────────────────────────────────────────────────────────────────


class Snapshot(Struct, frozen=True):
    """A cell at one moment: ids and values, nothing else."""

    format: int
    cell: str
    digest: str
    now: Annotated[int, Meta(ge=0, lt=1 << 62)]
    parts: dict[str, State]
    lines: dict[str, State] = {}


class Snapshottable(Protocol):
    """What can be put away and brought back."""

    def snapshot(self) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> None: ...


class TimedCell(Snapshottable, Protocol):
    """A cell on its time axis."""

    @property
    def now(self) -> int: ...

    @property
    def faces(self) -> Mapping[str, Face]: ...

    @property
    def disturbed(self) -> Mapping[str, FaultSource]:
        """The endpoints whose answers rules may lose, delay, repeat or garble."""
        ...

    def next_wake(self) -> int | None: ...

    def advance(self, to: int, settled: Callable[[int], None]) -> None: ...

    def busy(self) -> bool: ...


class CommandTable(Protocol):
    """The table of commands and queries of a cell, as its doors use it."""

    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any | Refused: ...
