"""The small Protocols between the rooms, and the values they exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NewType, Protocol, runtime_checkable

from msgspec import Meta, Struct

from understudy.agenda import ClockState
from understudy.errors import Refused
from understudy.ports.faults import Faults
from understudy.units import DEG

Ticket = NewType("Ticket", int)
"""Number of a request that was accepted."""

State = Any
"""What a part puts into a snapshot: plain values that msgspec can write."""


# ── time ────────────────────────────────────────────────────────────────────────────────────────


class Component(Protocol):
    """Something in the cell that has a status; what it keeps is saved as `ports.state` says."""

    def status(self, now: int) -> Any:
        """A frozen value; pages, telemetry and tests read only this."""
        ...


@runtime_checkable
class TimedComponent(Component, Protocol):
    """A part that acts at times of its own."""

    def next_wake(self) -> int | None:
        """As in `agenda.Wakes`: a time that has passed means now."""
        ...

    def wake(self, now: int) -> None: ...

    def busy(self) -> bool:
        """A ticket or program is under way."""
        ...


@runtime_checkable
class PostponesWork(Protocol):
    """A part that divides much work of one instant: it is due again at the same time."""

    def postponed(self) -> bool:
        """Whether its last wake has left work."""
        ...


# ── faces and their sessions ────────────────────────────────────────────────────────────────────


UNLIMITED = 1 << 40
"""Room of a connection on which no bytes wait: everything that was sent has left."""
HANG_UP = -1
"""Credit of a session that has ended: the wire closes the connection."""


class Session(Protocol):
    """One peer's conversation with a byte face."""

    def receive(self, data: bytes, now: int) -> None: ...

    def take(self, room: int) -> bytes:
        """Removes and returns the next answer, empty if there is none; ``room`` bytes can be sent.

        An answer that must not be lost stays queued until there is room for it.
        """
        ...

    def eof(self, now: int) -> None:
        """The peer sends nothing more; answers that it is still owed are sent."""
        ...

    def closed(self, now: int) -> None:
        """The connection is closed in both directions."""
        ...

    def credit(self) -> int:
        """Number of bytes it accepts now; at 0 the wire stops reading, at HANG_UP it closes."""
        ...

    def owed(self) -> bool:
        """A request was read whose answer needs time."""
        ...


class Admitting(Protocol):
    """What a client has shown; the requests of an `admitted` one are answered."""

    @property
    def admitted(self) -> bool: ...


@runtime_checkable
class Locked(Protocol):
    """A session whose client must show a secret first."""

    admission: Admitting


class Face(TimedComponent, Protocol):
    """A dialect of bytes: it opens a session per peer and holds what its sessions share."""

    def open(self, peer: str, now: int) -> Session: ...

    def sessions(self) -> Mapping[str, Session]:
        """Sessions by peer name; after `load` also those of peers that are not connected."""
        ...

    def ready_peers(self) -> list[str]:
        """Peers for which there is something to take, since the last call."""
        ...


class WireMessage(Struct, frozen=True):
    """A whole message: the address it is sent to, what it carries, and where the answer goes.

    `address`: a NATS subject, MQTT or ZeroMQ topic, Modbus unit id or CAN arbitration id; empty
    where the connection alone says it, as the identity of a ZeroMQ ROUTER's peer does. `reply_to`:
    the address of the answer: a NATS reply subject, an MQTT response topic, a Modbus transaction
    id, the envelope of a ZeroMQ request. A face copies it and never interprets it. `more`: further
    parts behind the payload, as raw pictures are; only a ZeroMQ ROUTER sends them.
    """

    address: str
    payload: bytes
    reply_to: str = ""
    more: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the payload and of the parts behind it."""
        return len(self.payload) + sum(map(len, self.more)) if self.more else len(self.payload)


SUBSCRIBE, UNSUBSCRIBE = b"subscribe", b"unsubscribe"
"""Payloads with which a publishing wire reports a subscription; the address is the topic."""
CONFIRMED = "$confirmed"
"""Address with which a wire reports that the broker has stored a message; `reply_to` is its id."""
KEPT = "$kept"
"""Address, with `/` and a name behind it, of a record that a wire keeps for a `KeepsRecords`."""
FORGOTTEN = "$forgotten"
"""Address with which a wire tells an `AnnouncesState` that the broker has lost what it had stored;
the payload says what."""
RETAINED = "$retained"
"""`reply_to` of a message that a broker keeps for later subscribers of its address."""


@runtime_checkable
class MessageSession(Protocol):
    """One peer's conversation with a message face. Through a broker all peers are one session."""

    def receive(self, message: WireMessage, now: int) -> None: ...

    def take(self, room: int) -> WireMessage | None:
        """Removes and returns the next message, if there is one; ``room`` bytes can be sent."""
        ...

    def failed(self, message: WireMessage, now: int) -> None:
        """A bug kept `receive` from handling this message; the session may queue an error."""
        ...

    def closed(self, now: int) -> None: ...

    def credit(self) -> int:
        """Number of messages it accepts now; 0 and HANG_UP as for bytes."""
        ...

    def owed(self) -> bool: ...


@runtime_checkable
class TakesMany(Protocol):
    """A `MessageSession` that gives many messages at once."""

    def take_many(self, room: int) -> Sequence[WireMessage]:
        """Removes and returns the next messages, in the order of `take`; ``room`` bytes can be
        sent. Empty: `take` returns nothing either."""
        ...


@runtime_checkable
class KeepsRecords(Protocol):
    """A `MessageSession` that sends records to addresses `$kept/NAME`, the newest of each name
    counts. At the first connection after the next start the wire gives it the records, in the order
    in which they were stored, and then an empty message to `KEPT`. No message comes before them."""

    keeps_records: Literal[True]


@runtime_checkable
class AnnouncesState(Protocol):
    """A `MessageSession` that sends its whole state again after a message to `FORGOTTEN`."""

    announces_state: Literal[True]


class MessageFace(TimedComponent, Protocol):
    """A dialect of whole messages: opened, timed and saved like a byte face."""

    def open(self, peer: str, now: int) -> MessageSession: ...

    def sessions(self) -> Mapping[str, MessageSession]: ...

    def ready_peers(self) -> list[str]: ...

    def addresses(self) -> Sequence[str]:
        """Subjects, topics or ids that a wire with a broker or a bus subscribes to for it."""
        ...


@runtime_checkable
class AwaitsConfirmations(Protocol):
    """A message face whose broker confirms each message that has a `reply_to`; see `CONFIRMED`."""

    awaits_confirmations: Literal[True]


AnyFace = Face | MessageFace


@runtime_checkable
class LeavesWill(Protocol):
    """A message face whose broker says something in its place when the connection is lost."""

    def last_will(self) -> WireMessage:
        """What the broker then publishes, and keeps."""
        ...


@dataclass(frozen=True, slots=True)
class LineAnswers:
    """How a text face answers a line: after `greeting_lines` at the connection, one line, or all up
    to one that begins with a word of `ends`."""

    greeting_lines: int = 0
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A socket of a face: the wires that can carry it, and their default settings.

    `wires` names kinds of the table WIRES; the first is used unless a key of the cell file selects
    another (`pty: true`, `mode: client`). `defaults` are settings by key; a wire takes those it
    has. An `enabled` endpoint is opened without a key in the cell file. A `timed` one is driven by
    the cell's clock and saved in its snapshot; otherwise the face is a door beside the cell, on
    wall time. `serial` says that the real robot has a serial port here, so that `--pty` alone means
    this endpoint.
    """

    wires: tuple[str, ...] = ("tcp", "pty")
    defaults: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    timed: bool = True
    serial: bool = False


class Caller(TimedComponent, Protocol):
    """The connecting side of a conversation: a driver that a wire connects to a real controller.

    The wire reports events of the wanted connection and of no other: late perhaps, but in order.
    """

    def wanted(self) -> int | None:
        """Number of the connection that should exist now; another number is a new connection."""
        ...

    def connected(self, now: int) -> None: ...

    def receive(self, data: bytes, now: int) -> None: ...

    def take(self, room: int) -> bytes:
        """Removes and returns the next request, empty if there is none; ``room`` as in Session."""
        ...

    def lost(self, now: int, reason: str) -> None:
        """The connection could not be made, or is closed."""
        ...

    def on_ready(self, listener: Callable[[], None]) -> None:
        """Calls ``listener`` when there is something to take or another connection is wanted."""
        ...


@runtime_checkable
class CallsPlace(Protocol):
    """A `Caller` that is a part of a cell: the live cell connects it to its REAL device.

    `where` is the address, written as for `understudy send --to`.
    """

    where: str

    def wanted(self) -> int | None: ...


@runtime_checkable
class HasCallers(Protocol):
    """A part of a cell with drivers inside, which the live cell connects to their REAL devices."""

    def callers(self) -> Sequence[CallsPlace]: ...


# ── faults of scenario rules ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """A fault that acts now: its rule, the occurrence index, its parameters."""

    rule: str
    index: int
    parameters: Mapping[str, float]


class FaultSource(Protocol):
    """Source of the faults of a scenario, asked by parts and faces at every opportunity."""

    def draw_fault(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """The fault if it acts at this place now; every call counts as an opportunity."""
        ...

    def ambient(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """A disturbance that depends on time alone; the call does not count."""
        ...

    def received(self, place: str, command: str, now: int) -> None:
        """A face has received a command; rules may be triggered by it."""
        ...

    def deviations(self, fault: ActiveFault, count: int) -> tuple[float, ...]:
        """Numbers in [-1, 1) that belong to this draw alone."""
        ...


@runtime_checkable
class Injectable(Protocol):
    """A part into which faults can be injected, by a rule or by an operator."""

    def faults(self) -> Faults: ...

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None: ...


Figures = Mapping[str, float | str]
"""Parameters of a fault as rules and operators give them: those of NAMED may have a name."""
NAMED = ("pin", "motor", "device", "io")


@runtime_checkable
class NamesPins(Protocol):
    """An `Injectable` whose pins, motors or devices have names."""

    def fault_pin(self, fault: str, name: str) -> int | Refused:
        """The number of the pin, motor or device with this name, of the sort that the fault acts
        on."""
        ...


@runtime_checkable
class ReportsCommands(Protocol):
    """A robot that reports each command that it takes up, wherever it comes from."""

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls ``listener`` with the name of the command (`M3`, `MOVE_ABS`, …) and the time."""
        ...


@runtime_checkable
class SpeaksHttp(Protocol):
    """A byte face whose clients may be browsers; wires hang up on HTTP clients of all others."""

    speaks_http: Literal[True]


# ── requests ────────────────────────────────────────────────────────────────────────────────────

Finished = Callable[[Ticket, Refused | None, int], None]
"""Listener for the end of a ticket: None or the refusal, and the time."""


# ── an arm's controller ─────────────────────────────────────────────────────────────────────────

Joints = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class JointState:
    """State of the joints: rad, rad/s, rad/s², Nm; of a linear joint m, m/s, m/s², N."""

    positions: Joints
    velocities: Joints
    accelerations: Joints
    torques: Joints

    @property
    def positions_deg(self) -> Joints:
        """Positions in degrees, as G-code has them; of revolute joints only."""
        return tuple(position / DEG for position in self.positions)


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """Status of a controller; error codes are grblHAL's numbers.

    ``accepted``: number of lines it has taken; ``line``: the running one of them, 0 if none;
    ``stops``: number of stops that cut off a motion; ``inhibited``: the cell is stopped and motion
    is refused; ``at``: the time of this status.
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
    inhibited: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counters of a controller: blocks, contacts, metres of tool path."""

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


DEFAULT_EPOCH_NS = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z, the start of simulated time where nothing else is given."""


@dataclass(slots=True)
class Epoch:
    """The time of day at which simulated time begins, in nanoseconds since 1970.

    A live cell moves it on when time begins to run, so that its simulated time is that of the day.
    """

    ns: int = DEFAULT_EPOCH_NS


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a cell. `id`: differs from that of every other live run; on virtual time it
    follows from the seed. `seed`: of the cell; `seed_given`: it counts before the seeds of robot
    files."""

    id: str = "0"
    epoch: Epoch = field(default_factory=Epoch)
    seed: int = 0
    seed_given: bool = False


@dataclass(frozen=True, slots=True)
class Deps:
    """What every robot is built with.

    ``read`` returns the content of a shipped file or a file beside the cell file, ``log`` writes a
    line to the log, ``append`` adds a line to a file.
    """

    fault_source: FaultSource
    read: Callable[[str], bytes]
    clock_state: ClockState
    log: Callable[[str], None] = lambda message: None
    append: Callable[[str, str], None] = lambda file, line: None
    run: Run = Run()


@dataclass(frozen=True, slots=True)
class Group:
    """All robots of a kind, built in one call. `robots` have their names as keys, `parts` (what
    they share) the names in the cell, `faces` their endpoints."""

    robots: Mapping[str, Component]
    parts: Mapping[str, Component]
    faces: Mapping[str, AnyFace]


@runtime_checkable
class EndsRun(Protocol):
    """A part that says goodbye to its peers before the wires of a live cell close."""

    def shut_down(self, now: int) -> None: ...


# ── the cell as wires and doors use it ──────────────────────────────────────────────────────────


class Snapshot(Struct, frozen=True):
    """State of a cell at one time: ids and values only."""

    format: int
    cell: str
    digest: str
    now: Annotated[int, Meta(ge=0, lt=1 << 62)]
    parts: dict[str, State]
    lines: dict[str, State] = {}


class TimedCell(Protocol):
    """A cell on its time axis, as the wires see it."""

    @property
    def now(self) -> int: ...

    @property
    def faces(self) -> Mapping[str, AnyFace]: ...

    @property
    def disturbed(self) -> Mapping[str, FaultSource]:
        """Endpoints whose answers scenario rules may lose, delay, repeat or garble."""
        ...

    def next_wake(self) -> int | None: ...

    def advance(self, to: int, settled: Callable[[int], None]) -> None:
        """Runs to ``to``; calls ``settled`` after each instant at which something happened. It may
        end in the middle of an instant with much work."""
        ...

    def interrupted(self) -> bool:
        """Whether `advance` has left work of the present instant: the next one continues it."""
        ...

    def busy(self) -> bool: ...

    def snapshot(self) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> None: ...


class CommandTable(Protocol):
    """The table of commands and queries of a cell, as its doors use it."""

    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any | Refused: ...

    def needs_secret(self, name: str) -> bool:
        """Whether a command needs the secret of the run now, even at a door that is open without
        it."""
        ...
