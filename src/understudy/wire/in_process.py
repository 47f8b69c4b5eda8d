"""A cell on virtual time, with its clients in the same process: no socket, no wall clock."""

from collections.abc import Callable

from understudy.ports import Snapshot, TimedCell
from understudy.units import duration_ns, nanoseconds, seconds
from understudy.wire.chat import Event
from understudy.wire.exchange import UNLIMITED, Exchange, Line

PATIENCE_SECONDS = 3600.0


class Client:
    """A peer in the same process; `Sink` of its own line."""

    def __init__(self, virtual_cell: "InProcessCell", endpoint: str) -> None:
        self._rehearsal = virtual_cell
        self._heard = bytearray()
        self.connected = True
        self.count = 0
        self._line: Line = virtual_cell.exchange.open(endpoint, self)

    @property
    def peer(self) -> str:
        return self._line.peer

    def say(self, data: bytes) -> None:
        self._rehearsal.exchange.receive(self._line, data)

    def received(self) -> bytes:
        """What has come since this was last asked."""
        data = bytes(self._heard)
        self._heard.clear()
        return data

    def ask(self, data: bytes) -> bytes:
        """Say it, let time run while an answer to it is owed, and hear."""
        self.say(data)
        self._rehearsal.run_while(self._line.session.owed)
        return self.received()

    def end(self) -> None:
        """Nothing more will be said."""
        self._rehearsal.exchange.eof(self._line)

    def leave(self) -> None:
        self.connected = False
        self._rehearsal.exchange.closed(self._line)

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED

    def send(self, data: bytes) -> None:
        self._heard += data
        self.count += len(data)

    def listen(self, willing: bool) -> None:
        return None

    def hang_up(self) -> None:
        self.connected = False


class InProcessCell:
    """Time runs when it is told to; everything said is in the transcript."""

    def __init__(self, timed_cell: TimedCell) -> None:
        self.timed_cell = timed_cell
        self.transcript: list[Event] = []
        self.exchange = Exchange(timed_cell, note=self.transcript.append)

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return seconds(self.timed_cell.now)

    def connect(self, endpoint: str = "") -> Client:
        """A new client of an endpoint; the cell's only one if none is named."""
        if not endpoint and len(self.timed_cell.faces) == 1:
            endpoint = next(iter(self.timed_cell.faces))
        if endpoint not in self.timed_cell.faces:
            raise ValueError(
                f"endpoint {endpoint!r}; there are: {', '.join(self.timed_cell.faces)}"
            )
        return Client(self, endpoint)

    def advance(self, duration: float) -> None:
        """Let so many seconds pass."""
        self.advance_to(self.timed_cell.now + duration_ns(duration))

    def advance_to(self, moment: int) -> None:
        self.exchange.advance(moment)

    def run_while(self, condition: Callable[[], bool]) -> None:
        """Let time run from wake to wake as long as the condition holds."""
        end = self.timed_cell.now + nanoseconds(PATIENCE_SECONDS)
        while condition() and (at := self.exchange.next_wake()) is not None and at <= end:
            self.exchange.advance(at)

    def run_while_owed(self) -> None:
        """Let time run until nobody waits for an answer that needs time."""
        self.run_while(self.exchange.owed)

    def run_to_next_answer(self) -> bool:
        """Let time run to the next wake if somebody is owed an answer; did it?"""
        at = self.exchange.next_wake()
        if at is None or not self.exchange.owed():
            return False
        self.exchange.advance(at)
        return True

    def run_while_busy(self) -> None:
        """Let time run until nothing is under way."""
        self.run_while(self.timed_cell.busy)

    def snapshot(self) -> Snapshot:
        return self.exchange.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self.exchange.restore(snapshot)
