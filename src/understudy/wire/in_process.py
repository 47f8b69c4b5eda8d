"""A cell on virtual time with its clients in the same process: no socket, no wall clock."""

from collections.abc import Callable

from understudy.ports import UNLIMITED, Snapshot, TimedCell, WireMessage
from understudy.units import duration_ns, nanoseconds, seconds
from understudy.wire.chat import Event
from understudy.wire.exchange import Connection, Data, Exchange

PATIENCE_SECONDS = 3600.0


class Client:
    """A peer in the same process; `Sink` of its own connection."""

    def __init__(self, cell: "InProcessCell", endpoint: str, peer: str = "") -> None:
        self._cell = cell
        self._received = bytearray()
        self._messages: list[WireMessage] = []
        self.connected = True
        self.count = 0
        self._connection: Connection = cell.exchange.open(endpoint, self, peer)

    @property
    def peer(self) -> str:
        return self._connection.peer

    def say(self, data: Data) -> None:
        """Sends bytes, or a message to a message face."""
        self._cell.exchange.receive(self._connection, data)

    def received(self) -> bytes:
        """Bytes received since the last call."""
        data = bytes(self._received)
        self._received.clear()
        return data

    def messages(self) -> list[WireMessage]:
        """Messages received since the last call."""
        messages, self._messages = self._messages, []
        return messages

    def ask(self, data: bytes) -> bytes:
        """Sends bytes, runs the cell while an answer is owed, and returns what was received."""
        self.say(data)
        self._cell.run_while(self._connection.session.owed)
        return self.received()

    def end(self) -> None:
        """Sends nothing more."""
        self._cell.exchange.eof(self._connection)

    def leave(self) -> None:
        """Closes the connection."""
        self.connected = False
        self._cell.exchange.closed(self._connection)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: Data) -> None:
        if isinstance(data, WireMessage):
            self._messages.append(data)
            self.count += len(data.payload)
        else:
            self._received += data
            self.count += len(data)

    def read_more(self, wanted: bool) -> None:
        return None

    def close(self) -> None:
        self.connected = False


class InProcessCell:
    """A cell whose time runs only when a method is called; all traffic is in the transcript."""

    def __init__(self, timed_cell: TimedCell) -> None:
        self.timed_cell = timed_cell
        self.transcript: list[Event] = []
        self.exchange = Exchange(timed_cell, note=self.transcript.append)

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return seconds(self.timed_cell.now)

    def connect(self, endpoint: str = "", peer: str = "") -> Client:
        """A new client of an endpoint; without a name, of the cell's only one."""
        faces = self.timed_cell.faces
        if not endpoint and len(faces) == 1:
            endpoint = next(iter(faces))
        if endpoint not in faces:
            raise ValueError(f"endpoint {endpoint!r}; there are: {', '.join(faces)}")
        return Client(self, endpoint, peer)

    def advance(self, duration: float) -> None:
        """Runs the cell for this many seconds."""
        self.advance_to(self.timed_cell.now + duration_ns(duration))

    def advance_to(self, moment: int) -> None:
        self.exchange.advance(moment)

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Runs from wake to wake while the condition holds, for at most an hour."""
        end = self.timed_cell.now + nanoseconds(PATIENCE_SECONDS)
        while condition() and (at := self.exchange.next_wake()) is not None and at <= end:
            self.exchange.advance(at)

    def run_while_owed(self) -> None:
        """Runs until no client waits for an answer that needs time."""
        self.run_while(self.exchange.owed)

    def run_to_next_answer(self) -> bool:
        """Runs to the next wake if a client is owed an answer; true if it did."""
        at = self.exchange.next_wake()
        if at is None or not self.exchange.owed():
            return False
        self.exchange.advance(at)
        return True

    def run_while_busy(self) -> None:
        """Runs until no motion or program is under way."""
        self.run_while(self.timed_cell.busy)

    def snapshot(self) -> Snapshot:
        return self.exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.exchange.restore(snapshot)
