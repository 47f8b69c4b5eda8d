"""Messages between robots and the broker: what was received, and what waits to be sent."""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from understudy.ports import WireMessage
from understudy.robots.mobile.fleet_interface import FleetListener
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.runtime.ids import BOOT, robot_key, timestamp, uuid_text
from understudy.robots.mobile.runtime.messages import NEWEST_COUNTS, encoded, subject
from understudy.robots.mobile.runtime.outbox import CAPACITY, Entry, Outbox, SavedOutbox

PER_ROBOT = 32
"""Messages of streams that may wait for each robot, if the wire is slow; older ones are dropped."""
LEAST = 4096
AT_ONCE = 256 * 1024
"""Bytes of the messages that the wire takes at once."""


class SavedPost(Struct, forbid_unknown_fields=True):
    outbox: SavedOutbox
    ready: list[WireMessage]
    handled: list[str]
    connected: bool


class Post:
    """What all robots of a process send. ``epoch``: nanoseconds since 1970 at the time 0."""

    def __init__(self, robots: int, *, run_id: str, epoch: int, log: Callable[[str], None]) -> None:
        self.run_id = run_id
        self.connected = False
        self._epoch = epoch
        self._log = log
        self._outbox = Outbox(max(CAPACITY, PER_ROBOT * robots))
        self._ready: deque[WireMessage] = deque(maxlen=max(LEAST, PER_ROBOT * robots))
        """What the wire may take; a full queue drops the oldest. Those of the outbox stay there."""
        self._handled: list[str] = []
        self._stamp = (-1, "")
        self.listeners: list[FleetListener] = []
        """Informed of the events of robots and of the ends of their tasks; wiring, not state."""

    @property
    def given_up(self) -> int:
        return self._outbox.given_up

    @property
    def waiting(self) -> int:
        """Messages that the broker has not confirmed."""
        return len(self._outbox)

    def free_half(self) -> int:
        """Messages that the outbox takes until it is half full; negative if it is fuller."""
        return self._outbox.capacity // 2 - len(self._outbox)

    def has_ready(self) -> bool:
        return bool(self._ready or self._handled)

    def note_handled(self, reply_to: str) -> None:
        """``reply_to``: address of the acknowledgement; empty if the sender expects none."""
        self._handled.append(reply_to)

    def take_handled(self) -> list[str]:
        handled, self._handled = self._handled, []
        return handled

    def take(self, room: int) -> WireMessage | None:
        if not self._ready or len(self._ready[0].payload) > room:
            return None
        return self._ready.popleft()

    def take_many(self, room: int) -> list[WireMessage]:
        """Messages with together at most ``room`` bytes, and not many more than `AT_ONCE`."""
        taken: list[WireMessage] = []
        ready, left = self._ready, min(room, AT_ONCE)
        while ready and (left := left - len(ready[0].payload)) >= 0:
            taken.append(ready.popleft())
        if not taken and (large := self.take(room)):
            taken.append(large)
        return taken

    def timestamp(self, now: int) -> str:
        if self._stamp[0] != now:
            self._stamp = now, timestamp(self._epoch, now)
        return self._stamp[1]

    def send(self, kind: str, address: str, message_id: str, data: bytes) -> None:
        """Queues a message. Those of which only the newest counts are dropped while there is no
        connection."""
        if kind not in NEWEST_COUNTS:
            lost = self._outbox.given_up
            self._outbox.put(Entry(message_id, address, data))
            if self._outbox.given_up > lost and (lost + 1).bit_count() == 1:
                self._log(f"nats: too many messages wait; {lost + 1} of the oldest were dropped")
        elif self.connected:
            self._ready.append(WireMessage(address, data))

    def send_steady(self, message: WireMessage) -> None:
        """Queues a message of which only the newest counts; there is a connection."""
        self._ready.append(message)

    def flush(self, now: int) -> None:
        """Makes ready what the outbox shall send now."""
        if self.connected:
            for entry in self._outbox.take_due(now):
                self._ready.append(WireMessage(entry.subject, entry.data, entry.message_id))

    def confirmed(self, message_id: str) -> None:
        self._outbox.confirm(message_id)

    def set_connected(self, connected: bool) -> None:
        """What was not taken from a lost connection is not sent over the next one, unless it
        stands in the outbox."""
        self.connected = connected
        self._ready.clear()
        self._handled.clear()
        self._outbox.connection_lost()

    # ── snapshot ──

    def save(self) -> SavedPost:
        return SavedPost(
            self._outbox.save(), list(self._ready), list(self._handled), self.connected
        )

    def load(self, saved: SavedPost) -> None:
        self._outbox.load(saved.outbox)
        self._ready.clear()
        self._ready.extend(saved.ready)
        self._handled = list(saved.handled)
        self.connected = saved.connected


class Sender:
    """Messages of one robot: numbers them and gives them their envelope. ``sent``: how many
    messages the robots have sent; ``row``: of this robot."""

    def __init__(self, post: Post, robot_id: str, robot_code: str, sent: Rows, row: int) -> None:
        self.post = post
        self.robot_id = robot_id
        self.robot_code = robot_code
        self.key = robot_key(post.run_id, robot_id)
        self.boot_id = uuid_text(self.key, BOOT)
        self._sent = sent
        self._row = row
        self._subjects: dict[str, str] = {}

    @property
    def count(self) -> int:
        return int(self._sent[self._row])

    def publish(
        self, kind: str, payload: Struct, now: int, correlation_id: str | None = None
    ) -> str:
        """Sends a payload; returns its messageId."""
        self._sent[self._row] += 1
        message_id = uuid_text(self.key, self.count)
        address = self._subjects.get(kind)
        if address is None:
            address = self._subjects[kind] = subject(self.robot_id, kind)
        data = encoded(
            message_id, self.robot_id, self.robot_code, self.post.timestamp(now), payload,
            correlation_id,
        )  # fmt: skip
        self.post.send(kind, address, message_id, data)
        return message_id
