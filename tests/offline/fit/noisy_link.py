"""A recorder in front of a cell on virtual time: what passes is late, and by how much varies."""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from random import Random

from understudy.units import nanoseconds
from understudy.wire.chat import Chat, parse, write
from understudy.wire.connection import Event
from understudy.wire.exchange import InProcessCell


class NoisyLink:
    """One client of a cell on virtual time, with the recorder beside the client.

    Bytes need ``delay_s`` in each direction, with a jitter of normal distribution; none overtakes
    another. `events` is the recording.
    """

    def __init__(
        self, cell: InProcessCell, endpoint: str, *, delay_s: float, jitter_s: float, rng: Random
    ) -> None:
        self._cell = cell
        self._client = cell.connect(endpoint)
        self._name = endpoint
        self.delay, self._jitter, self._rng = delay_s, jitter_s, rng
        self._to_robot: list[tuple[int, int, bytes]] = []
        self._to_client: list[tuple[int, int, bytes]] = []
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._last = {"<": 0, ">": 0}
        self._seen = len(cell.transcript)
        self.events: list[Event] = []
        self.now = cell.timed_cell.now
        self.heard: Callable[[bytes], None] = lambda data: None

    def say(self, data: bytes) -> None:
        self.events.append(Event(self.now, self._name, "1", ">", data))
        self._push(self._to_robot, self._late(">", self.now), data)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._timers, (self.now + nanoseconds(seconds), self._count, call))

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Runs from event to event while the condition holds."""
        while goes_on():
            moments = [
                queue[0][0] for queue in (self._to_robot, self._to_client, self._timers) if queue
            ]
            wake = self._cell.exchange.next_wake()
            moments += [wake] if wake is not None else []
            if not moments:
                return
            self.now = max(self.now, min(moments))
            self._cell.advance_to(self.now)
            self._collect()
            while self._to_robot and self._to_robot[0][0] <= self.now:
                self._client.say(heappop(self._to_robot)[2])
                self._collect()
            while self._to_client and self._to_client[0][0] <= self.now:
                data = heappop(self._to_client)[2]
                self.events.append(Event(self.now, self._name, "1", "<", data))
                self.heard(data)
            while self._timers and self._timers[0][0] <= self.now:
                heappop(self._timers)[2]()

    def chat(self) -> Chat:
        """The recording as it is read from a file."""
        return parse(write({"face": "test"}, self.events))

    def _collect(self) -> None:
        for event in self._cell.transcript[self._seen :]:
            if event.kind == "<" and event.peer == self._client.peer:
                self._push(self._to_client, self._late("<", event.at), event.data)
        self._seen = len(self._cell.transcript)

    def _late(self, way: str, at: int) -> int:
        took = max(self.delay + self._rng.gauss(0.0, self._jitter), 0.0)
        self._last[way] = max(self._last[way] + 1, at + nanoseconds(took))
        return self._last[way]

    def _push(self, queue: list[tuple[int, int, bytes]], at: int, data: bytes) -> None:
        self._count += 1
        heappush(queue, (at, self._count, data))


class Sender:
    """Sends lines, each after the answer of the one before, and asks for a status report again and
    again."""

    def __init__(
        self, link: NoisyLink, lines: list[str], *, period_s: float, jitter_s: float, rng: Random
    ) -> None:
        self._link, self._lines = link, list(lines)
        self._period, self._jitter, self._rng = period_s, jitter_s, rng
        self._text = b""
        self._idle = 0
        self._waiting = 0
        link.heard = self._hear
        self._ask()
        link.after(3.5 * period_s, self._next)

    def run(self) -> None:
        self._link.run(lambda: self._idle < 4)

    def _next(self) -> None:
        if self._lines:
            self._waiting += 1
            self._link.say(self._lines.pop(0).encode() + b"\n")

    def _ask(self) -> None:
        self._link.say(b"?")
        self._link.after(self._period + self._rng.uniform(-1, 1) * self._jitter, self._ask)

    def _hear(self, data: bytes) -> None:
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            if line.startswith((b"ok", b"error")):
                self._waiting -= 1
                self._next()
            elif line.startswith(b"<"):
                done = not self._lines and not self._waiting and line.startswith(b"<Idle")
                self._idle = self._idle + 1 if done else 0


def late(events: list[Event], *, delay_s: float, jitter_s: float, rng: Random) -> Chat:
    """The recording of a client that did not wait for answers: its requests were recorded earlier
    than they arrived, and the answers later than they were sent."""
    found = []
    for event in events:
        took = nanoseconds(max(delay_s + rng.gauss(0.0, jitter_s), 0.0))
        at = event.at + (took if event.kind == "<" else -took)
        found.append(replace(event, at=max(at, 0)))
    found.sort(key=lambda event: event.at)
    return parse(write({"face": "test"}, found))
