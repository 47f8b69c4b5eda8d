"""What a robot has accepted, begun and ended, kept by the server for the next start of the cell.

A command or task has one record, which is replaced as it goes on:

    ACCEPTED ─▶ BEGUN ─▶ ENDED        a new start after kill -9 finds it
        │         │        └──── its last answer is sent again; the server drops it if it has it
        │         └───────────── it has failed: INTERRUPTED
        └─────────────────────── it is carried out now

Nothing moves before the server has stored BEGUN, and a message is acknowledged when its record is
stored. So each is begun once, whenever the cell is killed. Other messages are only ENDED.
"""

from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct, field

from understudy.errors import UNREADABLE
from understudy.ports import KEPT
from understudy.robots.mobile.runtime.outgoing import SendQueue, Time
from understudy.units import NS_PER_SECOND

MOST_OPEN = 1024
LAST_ENDED = 16
"""Messages whose last answer is sent again at a new start."""
PATIENCE = 5 * NS_PER_SECOND
"""A record that is not stored by then is not waited for: the stream has gone."""
Phase = Literal["ACCEPTED", "BEGUN", "ENDED"]


class Answer(Struct, frozen=True):
    """The last answer to a message: its kind, payload and correlation id."""

    kind: str
    payload: dict[str, Any]
    cause: str | None = None


class Record(Struct, frozen=True, rename="camel", omit_defaults=True):
    """``message``: the whole message until it has ended. ``content``: of a note."""

    message_id: str
    phase: Phase
    kind: str
    message: Raw = Raw()
    answer: Answer | None = None
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
    ended: Annotated[list[tuple[str, Answer]], Meta(max_length=LAST_ENDED)] = field(
        default_factory=list
    )
    notes: Time = 0


class Journal:
    """Of one robot."""

    def __init__(self, queue: SendQueue, robot_id: str) -> None:
        self._queue = queue
        self._robot_id = robot_id
        self.state = JournalState()

    def accept(self, message_id: str, kind: str, data: bytes) -> str:
        """A command or task was received; returns the id of its record."""
        if self._queue.keeps and len(self.state.open) < MOST_OPEN:
            self.state.open[message_id] = OpenMessage(kind, data)
            self._put(Record(message_id, "ACCEPTED", kind, Raw(data)))
        return self._record_id(message_id, "ACCEPTED")

    def claim(self, message_id: str, now: int) -> bool:
        """Whether a command or task may begin: the server has stored that it does."""
        opened = self.state.open.get(message_id)
        if opened is None:
            return True
        if opened.begun is None:
            opened.begun = now
            self._put(Record(message_id, "BEGUN", opened.kind, Raw(opened.message)))
        waits = self._queue.is_waiting(self._record_id(message_id, "BEGUN"))
        return not (waits and self._queue.connected and now < opened.begun + PATIENCE)

    def end(self, message_id: str, kind: str, answer: Answer | None = None) -> str:
        """A message was handled; returns the id of its record."""
        self.state.open.pop(message_id, None)
        if self._queue.keeps:
            self._put(Record(message_id, "ENDED", kind, answer=answer))
        return self._record_id(message_id, "ENDED")

    def note(self, content: bytes) -> None:
        """Keeps the newest content for the next start."""
        self.state.notes += 1
        if self._queue.keeps:
            record = Record(NOTE, "ENDED", NOTE, content=Raw(content))
            self._put(record, f"{self._queue.run_id}.{self.state.notes}")

    # ── a new start ──

    def recall(self, record: Record) -> None:
        """A message that the last run has ended."""
        if record.answer is not None:
            ended = self.state.ended
            ended.append((record.message_id, record.answer))
            del ended[:-LAST_ENDED]

    def take_ended(self) -> list[tuple[str, Answer]]:
        ended, self.state.ended = self.state.ended, []
        return ended

    # ── inside ──

    def _record_id(self, message_id: str, version: str) -> str:
        return f"{self._name(message_id)}.{version}"

    def _name(self, message_id: str) -> str:
        digest = blake2b(message_id.encode(), digest_size=16).hexdigest()
        return f"{self._robot_id}.{digest}"

    def _put(self, record: Record, version: str = "") -> None:
        address = f"{KEPT}/{self._name(record.message_id)}"
        record_id = self._record_id(record.message_id, version or record.phase)
        self._queue.send(NOTE, address, record_id, msgspec.json.encode(record))


NOTE = "note"
"""`kind` of a record that is not a message."""


def read_record(data: bytes) -> Record | None:
    """None: it cannot be read; another program has written it."""
    try:
        return msgspec.json.decode(data, type=Record)
    except UNREADABLE:
        return None
