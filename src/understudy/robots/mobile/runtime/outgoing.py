"""What mobile robots send to the broker: ids and time stamps, outbox, send queue, and records.

Messages that must arrive stay in the outbox until the server has confirmed that they are stored. A
message that is not confirmed in time is sent again with the same id; the server and the consumers
drop what they have already seen. The outbox has a bound: when it is full the oldest message is
given up and counted.

A record says what a robot has accepted, begun and ended; the server keeps it for the next start of
the cell. A command or task has one record, which is replaced as it goes on:

    ACCEPTED ─▶ BEGUN ─▶ ENDED        a new start after kill -9 finds it
        │         │        └──── its last answer is sent again; the server drops it if it has it
        │         └───────────── it has failed: INTERRUPTED
        └─────────────────────── it is carried out now

Nothing moves before the server has stored BEGUN, and a message is acknowledged when its record is
stored. So each is begun once, whenever the cell is killed. Other messages are only ENDED.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct, field

from understudy.errors import UNREADABLE
from understudy.ports import KEPT, Epoch, WireMessage
from understudy.ports.packed import PackedMessages
from understudy.robots.mobile.fleet_interface import FleetListener
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.runtime.messages import NEWEST_COUNTS, encoded, subject
from understudy.units import NS_PER_MS, NS_PER_SECOND

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
STEPS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""Odd numbers by which the two halves of an id go on from message to message."""
WORD = (1 << 64) - 1
BOOT = 0
"""Number of the id of a start of a robot; messages are numbered from 1 on."""


class RobotKey(NamedTuple):
    """A robot in a run: the ids of its messages follow from it."""

    high: int
    low: int


def robot_key(run_id: str, robot_id: str) -> RobotKey:
    digest = blake2b(f"{run_id}/{robot_id}".encode(), digest_size=16).digest()
    return RobotKey(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))


def uuid_text(key: RobotKey, number: int) -> str:
    """The same UUID (version 8: bits of the application's choice) for the same key and number."""
    high, low = (_mixed(half + step * number) for half, step in zip(key, STEPS, strict=True))
    high = high & ~0xF000 | 0x8000
    low = low & (1 << 62) - 1 | 1 << 63
    digits = f"{high:016x}{low:016x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _mixed(value: int) -> int:
    """The finalizer of splitmix64, which changes half of the bits if one bit changes."""
    value &= WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD
    return value ^ value >> 31


def timestamp(epoch: int, now: int) -> str:
    """ISO-8601 in UTC with milliseconds; ``epoch``: nanoseconds since 1970 at the time 0."""
    since = timedelta(milliseconds=(epoch + now) // NS_PER_MS)
    return (_BEGIN + since).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ── messages that must arrive ────────────────────────────────────────────────────────────────────

CAPACITY = 10_000
IN_FLIGHT = 256
"""Messages that wait for a confirmation at the same time."""
RETRY_NS = 2 * NS_PER_SECOND
LARGEST = 1 << 22
"""Messages in a snapshot."""


class Entry(Struct, frozen=True):
    """A message; ``message_id`` was made when it was put here, and never changes."""

    message_id: str
    subject: str
    data: bytes


Time = Annotated[int, Meta(ge=0, lt=1 << 62)]


class SavedOutbox(Struct, forbid_unknown_fields=True):
    """Snapshot: what waits, in order; `in_flight`: since when messages wait for a confirmation."""

    entries: Annotated[list[Entry], Meta(max_length=LARGEST)]
    in_flight: dict[str, Time]
    given_up: Annotated[int, Meta(ge=0, lt=1 << 62)]


class Outbox:
    """First in, first out; confirmations come in any order. No call costs more than the messages
    that it returns."""

    def __init__(self, capacity: int = CAPACITY, in_flight: int = IN_FLIGHT) -> None:
        self.capacity = capacity
        self._most_in_flight = in_flight
        self._entries: dict[str, Entry] = {}
        self._unsent: deque[str] = deque()
        """Ids of messages that are not in flight; some may have been given up."""
        self._sent_at: dict[str, int] = {}
        """The messages in flight and when they were sent last, in the order of these times."""
        self._given_up = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def given_up(self) -> int:
        """Messages that were dropped because the outbox was full."""
        return self._given_up

    def is_waiting(self, message_id: str) -> bool:
        """Whether the server has not confirmed the message yet."""
        return message_id in self._entries

    def put(self, entry: Entry) -> None:
        if entry.message_id in self._entries:
            return
        if len(self._entries) >= self.capacity:
            self.confirm(next(iter(self._entries)))
            self._given_up += 1
        self._entries[entry.message_id] = entry
        self._unsent.append(entry.message_id)

    def take_due(self, now: int) -> list[Entry]:
        """The messages to send now: late ones again, and new ones as far as the flight has room."""
        due: list[Entry] = []
        for name, at in self._sent_at.items():
            if now - at < RETRY_NS:
                break
            due.append(self._entries[name])
        for entry in due:
            del self._sent_at[entry.message_id]
        new = self._most_in_flight - len(self._sent_at) - len(due)
        while new > 0 and self._unsent:
            found = self._entries.get(self._unsent.popleft())
            if found is not None:
                due.append(found)
                new -= 1
        self._sent_at.update((entry.message_id, now) for entry in due)
        return due

    def confirm(self, message_id: str) -> None:
        """The server has stored the message."""
        self._entries.pop(message_id, None)
        self._sent_at.pop(message_id, None)

    def connection_lost(self) -> None:
        """Everything in flight is sent again as soon as possible."""
        self._sent_at.clear()
        self._unsent = deque(self._entries)

    # ── snapshot ──

    def save(self) -> SavedOutbox:
        return SavedOutbox(list(self._entries.values()), dict(self._sent_at), self._given_up)

    def load(self, saved: SavedOutbox) -> None:
        self._entries = {entry.message_id: entry for entry in saved.entries}
        flown = sorted(saved.in_flight.items(), key=lambda sent: sent[1])
        self._sent_at = {name: at for name, at in flown if name in self._entries}
        self._unsent = deque(name for name in self._entries if name not in self._sent_at)
        self._given_up = saved.given_up


# ── what all robots send ─────────────────────────────────────────────────────────────────────────

PER_ROBOT = 32
"""Messages of streams that may wait for each robot, if the wire is slow; older ones are dropped."""
LEAST = 4096
AT_ONCE = 256 * 1024
"""Bytes of the messages that the wire takes at once."""


class SavedSendQueue(Struct, forbid_unknown_fields=True):
    outbox: SavedOutbox
    ready: list[WireMessage]
    handled: list[str]
    connected: bool
    keeps: bool = False
    held: dict[str, str] = field(default_factory=dict)


class SendQueue:
    """What all robots of a process send."""

    def __init__(
        self, robots: int, *, run_id: str, epoch: Epoch, log: Callable[[str], None]
    ) -> None:
        self.run_id = run_id
        self.connected = False
        self._epoch = epoch
        self._log = log
        self._outbox = Outbox(max(CAPACITY, PER_ROBOT * robots))
        self._ready: deque[WireMessage | PackedMessages] = deque()
        """What the wire may take; a full queue drops the oldest. Those of the outbox stay there."""
        self._ready_count = 0
        self._most_ready = max(LEAST, PER_ROBOT * robots)
        self._handled: list[str] = []
        self._held: dict[str, str] = {}
        """Addresses of acknowledgements by the records that must be stored before."""
        self.keeps = False
        """The server keeps records for the next start; see `Journal`."""
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

    def note_handled(self, reply_to: str, record: str = "") -> None:
        """``reply_to``: address of the acknowledgement; empty if the sender expects none.
        ``record``: what the server must have stored before it is acknowledged."""
        if self.is_waiting(record):
            self._held[record] = reply_to
        else:
            self._handled.append(reply_to)

    def is_waiting(self, message_id: str) -> bool:
        """Whether the server has not confirmed a message that must arrive."""
        return self._outbox.is_waiting(message_id)

    def take_handled(self) -> list[str]:
        handled, self._handled = self._handled, []
        return handled

    def take(self, room: int) -> WireMessage | None:
        ready = self._ready
        if not ready:
            return None
        head = ready.popleft()
        if isinstance(head, PackedMessages):
            head, *others = head
            ready.extendleft(reversed(others))
        if len(head.payload) > room:
            ready.appendleft(head)
            return None
        self._ready_count -= 1
        return head

    def take_many(self, room: int) -> Sequence[WireMessage]:
        """Messages with together at most ``room`` bytes, and not many more than `AT_ONCE`."""
        taken: list[WireMessage] = []
        ready, left = self._ready, min(room, AT_ONCE)
        while ready:
            head = ready[0]
            if isinstance(head, PackedMessages):
                if taken or not (count := head.count_within(left)):
                    break
                self._drop(count)
                return head[:count]
            if (left := left - len(head.payload)) < 0:
                break
            self._drop(1)
            taken.append(head)
        if not taken and (large := self.take(room)):
            taken.append(large)
        return taken

    def _drop(self, count: int) -> None:
        """Removes the oldest messages."""
        ready = self._ready
        self._ready_count -= count
        while count:
            head = ready.popleft()
            size = len(head) if isinstance(head, PackedMessages) else 1
            if isinstance(head, PackedMessages) and size > count:
                ready.appendleft(head[count:])
            count -= min(count, size)

    def _unpacked(self) -> Iterator[WireMessage]:
        for each in self._ready:
            yield from each if isinstance(each, PackedMessages) else (each,)

    def _put(self, message: WireMessage | PackedMessages) -> None:
        self._ready.append(message)
        self._ready_count += len(message) if isinstance(message, PackedMessages) else 1
        if self._ready_count > self._most_ready:
            self._drop(self._ready_count - self._most_ready)

    def timestamp(self, now: int) -> str:
        if self._stamp[0] != now:
            self._stamp = now, timestamp(self._epoch.ns, now)
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
            self._put(WireMessage(address, data))

    def send_newest(self, messages: PackedMessages) -> None:
        """Queues messages of which only the newest counts; there is a connection."""
        self._put(messages)

    def flush(self, now: int) -> None:
        """Makes ready what the outbox shall send now."""
        if self.connected:
            for entry in self._outbox.take_due(now):
                self._put(WireMessage(entry.subject, entry.data, entry.message_id))

    def confirmed(self, message_id: str) -> None:
        self._outbox.confirm(message_id)
        if (reply_to := self._held.pop(message_id, None)) is not None:
            self._handled.append(reply_to)

    def set_connected(self, connected: bool) -> None:
        """What was not taken from a lost connection is not sent over the next one, unless it
        stands in the outbox."""
        self.connected = connected
        self._ready.clear()
        self._ready_count = 0
        self._handled.clear()
        self._held.clear()
        self._outbox.connection_lost()

    # ── snapshot ──

    def save(self) -> SavedSendQueue:
        return SavedSendQueue(
            self._outbox.save(),
            list(self._unpacked()),
            list(self._handled),
            self.connected,
            self.keeps,
            dict(self._held),
        )

    def load(self, saved: SavedSendQueue) -> None:
        self._outbox.load(saved.outbox)
        self._ready.clear()
        self._ready.extend(saved.ready)
        self._ready_count = len(saved.ready)
        self._handled = list(saved.handled)
        self.connected = saved.connected
        self.keeps = saved.keeps
        self._held = dict(saved.held)


class Sender:
    """Messages of one robot: numbers them and gives them their envelope. ``sent``: how many
    messages the robots have sent; ``row``: of this robot."""

    def __init__(
        self, queue: SendQueue, robot_id: str, robot_code: str, sent: Rows, row: int
    ) -> None:
        self.queue = queue
        self.robot_id = robot_id
        self.robot_code = robot_code
        self.key = robot_key(queue.run_id, robot_id)
        self.boot_id = uuid_text(self.key, BOOT)
        self._sent = sent
        self._row = row
        self._subjects: dict[str, str] = {}

    @property
    def count(self) -> int:
        return int(self._sent[self._row])

    def publish(
        self,
        kind: str,
        payload: Struct,
        now: int,
        correlation_id: str | None = None,
        once: str = "",
    ) -> str:
        """Sends a payload; returns its messageId. With ``once`` the id follows from this text, not
        from the run: said again after a new start, the server drops it."""
        self._sent[self._row] += 1
        message_id = uuid_text(self.key, self.count)
        if once:
            message_id = uuid_text(robot_key(f"once/{kind}/{once}", self.robot_id), BOOT)
        address = self._subjects.get(kind)
        if address is None:
            address = self._subjects[kind] = subject(self.robot_id, kind)
        data = encoded(
            message_id,
            self.robot_id,
            self.robot_code,
            self.queue.timestamp(now),
            payload,
            correlation_id,
        )
        self.queue.send(kind, address, message_id, data)
        return message_id


# ── records for the next start ────────────────────────────────────────────────────────────────────

MOST_OPEN = 1024
LAST_ENDED = 16
"""Messages whose last answer is sent again at a new start."""
PATIENCE = 5 * NS_PER_SECOND
"""A record that is not stored by then is not waited for: the stream has gone."""
NOTE = "note"
"""`kind` of a record that is not a message."""
Phase = Literal["ACCEPTED", "BEGUN", "ENDED"]


class LastAnswer(Struct, frozen=True):
    """The last answer to a message: its kind, payload and correlation id."""

    kind: str
    payload: dict[str, Any]
    cause: str | None = None


class JournalRecord(Struct, frozen=True, rename="camel", omit_defaults=True):
    """``message``: the whole message until it has ended. ``content``: of a note."""

    message_id: str
    phase: Phase
    kind: str
    message: Raw = Raw()
    answer: LastAnswer | None = None
    content: Raw = Raw()


class OpenMessage(Struct):
    """A message that was accepted. ``begun``: when its begin was recorded."""

    kind: str
    message: bytes
    begun: Time | None = None


class JournalState(Struct, forbid_unknown_fields=True):
    """`open`: by their ids. `ended`: the newest answers of the last run, and the ids of what they
    answer, until all records have come."""

    open: Annotated[dict[str, OpenMessage], Meta(max_length=MOST_OPEN)] = field(
        default_factory=dict
    )
    ended: Annotated[list[tuple[str, LastAnswer]], Meta(max_length=LAST_ENDED)] = field(
        default_factory=list
    )
    notes: Time = 0


class Journal:
    """The records of one robot."""

    def __init__(self, queue: SendQueue, robot_id: str) -> None:
        self._queue = queue
        self._robot_id = robot_id
        self.state = JournalState()

    def accept(self, message_id: str, kind: str, data: bytes) -> str:
        """A command or task was received; returns the id of its record."""
        if self._queue.keeps and len(self.state.open) < MOST_OPEN:
            self.state.open[message_id] = OpenMessage(kind, data)
            self._put(JournalRecord(message_id, "ACCEPTED", kind, Raw(data)))
        return self._record_id(message_id, "ACCEPTED")

    def claim(self, message_id: str, now: int) -> bool:
        """Whether a command or task may begin: the server has stored that it does."""
        opened = self.state.open.get(message_id)
        if opened is None:
            return True
        if opened.begun is None:
            opened.begun = now
            self._put(JournalRecord(message_id, "BEGUN", opened.kind, Raw(opened.message)))
        waits = self._queue.is_waiting(self._record_id(message_id, "BEGUN"))
        return not (waits and self._queue.connected and now < opened.begun + PATIENCE)

    def end(self, message_id: str, kind: str, answer: LastAnswer | None = None) -> str:
        """A message was handled; returns the id of its record."""
        self.state.open.pop(message_id, None)
        if self._queue.keeps:
            self._put(JournalRecord(message_id, "ENDED", kind, answer=answer))
        return self._record_id(message_id, "ENDED")

    def note(self, content: bytes) -> None:
        """Keeps the newest content for the next start."""
        self.state.notes += 1
        if self._queue.keeps:
            record = JournalRecord(NOTE, "ENDED", NOTE, content=Raw(content))
            self._put(record, f"{self._queue.run_id}.{self.state.notes}")

    def write_again(self) -> None:
        """The records of what is open: the server has lost them."""
        for message_id, opened in self.state.open.items() if self._queue.keeps else ():
            phase: Phase = "ACCEPTED" if opened.begun is None else "BEGUN"
            self._put(JournalRecord(message_id, phase, opened.kind, Raw(opened.message)))

    # ── a new start ──

    def recall(self, record: JournalRecord) -> None:
        """A message that the last run has ended."""
        if record.answer is not None:
            ended = self.state.ended
            ended.append((record.message_id, record.answer))
            del ended[:-LAST_ENDED]

    def take_ended(self) -> list[tuple[str, LastAnswer]]:
        ended, self.state.ended = self.state.ended, []
        return ended

    # ── inside ──

    def _record_id(self, message_id: str, version: str) -> str:
        return f"{self._name(message_id)}.{version}"

    def _name(self, message_id: str) -> str:
        digest = blake2b(message_id.encode(), digest_size=16).hexdigest()
        return f"{self._robot_id}.{digest}"

    def _put(self, record: JournalRecord, version: str = "") -> None:
        address = f"{KEPT}/{self._name(record.message_id)}"
        record_id = self._record_id(record.message_id, version or record.phase)
        self._queue.send(NOTE, address, record_id, msgspec.json.encode(record))


def read_record(data: bytes) -> JournalRecord | None:
    """A record; None if it cannot be read, because another program has written it."""
    try:
        return msgspec.json.decode(data, type=JournalRecord)
    except UNREADABLE:
        return None
