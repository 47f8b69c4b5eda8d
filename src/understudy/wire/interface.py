"""What a wire module offers, and what it calls.

A wire module is a row of the table WIRES. It has

- `Config`: a frozen msgspec Struct with the wire's keys of a cell file, which is a `Wire`;
- `SELECTED_BY`: keys of a cell file that select this wire where a face accepts several, e.g.
  `{"pty": True}`; empty for a wire that needs no key.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self, TypeVar, runtime_checkable

from msgspec import Meta, Struct
from msgspec.structs import replace

from understudy.ports import HANG_UP, UNLIMITED, WireMessage

if TYPE_CHECKING:
    from understudy.wire.connection import Connection

D_contra = TypeVar("D_contra", contravariant=True)

Port = Annotated[int, Meta(ge=0, le=65535)]
RemotePort = Annotated[int, Meta(ge=1, le=65535)]
LARGEST_BACKLOG = 256 * 1024
"""Bytes that may wait for one peer."""
CLOSING_SECONDS = 1.0
"""Wall time that a peer has to take its last bytes when the cell ends."""


class Sink(Protocol[D_contra]):
    """The sending side of a connection: of bytes, or of `WireMessage`s."""

    def room(self) -> int:
        """Number of bytes that can be sent now; UNLIMITED when no bytes wait."""
        ...

    def send(self, data: D_contra) -> None: ...

    def read_more(self, wanted: bool) -> None:
        """Starts or stops reading from the peer."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class SendsMany(Protocol):
    """A `Sink` for which many messages at once cost less than one by one."""

    def room(self) -> int: ...

    def send_many(self, messages: Sequence[WireMessage]) -> None: ...


class Recorder(Protocol):
    """Reads the cell at times of its own, and changes nothing in it.

    Before the simulated time `due` there is nothing to ask it.
    """

    due: int

    def next_reading(self, to: int) -> int | None:
        """The next time up to ``to`` at which `read` is to be called; None: not before ``to``."""
        ...

    def read(self, now: int) -> None: ...

    def acted(self, now: int) -> None:
        """A command has changed something at ``now``."""
        ...


class ConnectionEvents(Protocol):
    """What a wire of byte streams calls."""

    def open(self, endpoint: str, sink: Sink[Any], peer: str = "") -> "Connection":
        """A peer has connected; one without a name of its own is numbered."""
        ...

    def receive(self, connection: "Connection", data: Any) -> object: ...

    def eof(self, connection: "Connection") -> None:
        """The peer sends nothing more."""
        ...

    def closed(self, connection: "Connection") -> None: ...

    def drained(self, connection: "Connection") -> None:
        """All bytes for this peer have been sent."""
        ...


class PeerEvents(ConnectionEvents, Protocol):
    """What wires call: a `Pump` for the faces of a cell, another one for the doors beside it."""

    def receive_many(self, connection: "Connection", messages: Sequence[WireMessage]) -> None:
        """Messages that have arrived together: they cost one turn, not one each."""
        ...

    def addresses(self, endpoint: str) -> list[str]:
        """Subjects, topics or ids that the message face of this endpoint wants to receive."""
        ...

    def last_will(self, endpoint: str) -> WireMessage | None:
        """What a broker publishes when it loses the connection, if the face has a last will."""
        ...


class Server(Protocol):
    """A wire in operation, on the event loop it is made on."""

    endpoint: str

    async def start(self) -> str:
        """Listens or connects, and returns where; `NotInstalledError` if a package is missing."""
        ...

    async def stop(self) -> None: ...


class Wire(Protocol):
    """The settings of one endpoint's wire; each wire module's `Config`."""

    def placed(self, port: int | None, *, ephemeral: bool) -> "Wire":
        """The settings with another port: the given one, or any free one if ``ephemeral``."""
        ...

    def listens_on(self) -> tuple[str, int] | None:
        """Host and port, for a wire that listens on a port."""
        ...

    def server(self, endpoint: str, events: PeerEvents) -> Server: ...


class RemoteHost(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of a wire that sends to a host; `local_port` 0 is any free one."""

    host: str
    port: RemotePort
    local_host: str = ""
    local_port: Port = 0

    def placed(self, port: int | None, *, ephemeral: bool) -> Self:
        local = 0 if ephemeral else self.local_port
        return replace(self, port=port or self.port, local_port=local)

    def listens_on(self) -> tuple[str, int] | None:
        return None


@runtime_checkable
class AsksPassword(Protocol):
    """A `Server` that asks its peers for a password, since its face receives nothing of them.

    `passwords` are set before `start`: a peer needs one of them, or none if there are none.
    """

    passwords: tuple[str, ...]


@runtime_checkable
class BrokerSink(Protocol):
    """A `Sink` that leads to a broker: it is there whether or not anyone sends something.

    In lock-step time waits while it is behind, so that no message is dropped for lack of room; it
    calls `PeerEvents.drained` or `receive` when it is not any more.
    """

    def behind(self) -> bool:
        """Much waits to be sent, or a message that was sent is not confirmed yet."""
        ...


@runtime_checkable
class KeepsFiles(Protocol):
    """A `Wire` whose server keeps files from one run of the cell to the next."""

    def without_files(self) -> Wire:
        """The settings for a run that begins with no files, as one in lock-step does."""
        ...


# ── addresses and errors in words ───────────────────────────────────────────────────────────────


def address_of(scheme: str, host: str, port: int) -> str:
    """An address; one of IPv6 stands in brackets."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of an address; ValueError if it has none."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def words_of(problem: Exception) -> str:
    """The reason of an error in words."""
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)


# ── connections without a peer or without a face ────────────────────────────────────────────────


class DetachedSink:
    """`Sink` of a session without a connected peer; its answers go to the transcript only."""

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes | WireMessage) -> None:
        return None

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        return None


class ClosedSession:
    """`Session` of a peer at a closed endpoint; its connection is closed at once."""

    def receive(self, data: bytes, now: int) -> None:
        return None

    def take(self, room: int) -> bytes:
        return b""

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        return None

    def credit(self) -> int:
        return HANG_UP

    def owed(self) -> bool:
        return False
