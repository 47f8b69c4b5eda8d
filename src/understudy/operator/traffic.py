"""The query `traffic`: the last messages on the wires of each face.

Messages are noted as they pass and converted to text by the query. Snapshots do not hold them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused, unknown
from understudy.operator.table import Command
from understudy.ports import WireMessage
from understudy.units import seconds
from understudy.wire.chat import escape
from understudy.wire.connection import Event, Kind

KEPT = 500
MOST_AT_ONCE = 500
LONGEST = 240
"""Bytes of one message that are kept."""


Noted = tuple[int, int, str, Kind, bytes, int]
"""Number, time, peer, kind, the first bytes, and how many there were."""


class Piece(Struct, frozen=True):
    """A message. `kind`: > from the client, < from the robot, ! an event of the connection.

    `size`: in bytes, of the whole message even if `text` is cut.
    """

    number: int
    time_s: float
    endpoint: str
    peer: str
    kind: Kind
    text: str
    size: int


class WhichTraffic(Struct, frozen=True, forbid_unknown_fields=True):
    """`endpoint`: empty: all endpoints."""

    since: Annotated[int, Meta(ge=0)] = 0
    endpoint: str = ""


class Traffic:
    """A ring buffer for each face; the numbers of messages go on counting."""

    def __init__(self, endpoints: Iterable[str]) -> None:
        self._rings: dict[str, deque[Noted]] = {
            endpoint: deque(maxlen=KEPT) for endpoint in endpoints
        }
        self._count = 0

    def note(self, event: Event) -> None:
        self._count += 1
        kept, size = event.data[:LONGEST], len(event.data)
        ring = self._rings[event.endpoint]
        ring.append((self._count, event.at, event.peer, event.kind, kept, size))

    def note_sent(self, at: int, endpoint: str, peer: str, messages: Sequence[WireMessage]) -> None:
        """Many messages of a robot at once."""
        last = [message.payload for message in messages[-KEPT:]]
        self._count += len(messages)
        first = self._count - len(last) + 1
        self._rings[endpoint].extend([
            (number, at, peer, "<", data[:LONGEST], len(data))
            for number, data in enumerate(last, first)
        ])  # fmt: skip

    def commands(self) -> list[Command]:
        doc = f"messages on the wires since a number: the last {KEPT} of each face are kept"
        return [Command("traffic", doc, self._since, WhichTraffic, role="viewer")]

    def _since(self, given: WhichTraffic) -> dict[str, Any] | Refused:
        """Messages after a number, the oldest first; ``more``: how many did not fit."""
        if given.endpoint and given.endpoint not in self._rings:
            return Refused(str(unknown("endpoint", given.endpoint, self._rings)))
        chosen = [given.endpoint] if given.endpoint else list(self._rings)
        fresh = sorted(
            (noted[0], endpoint, noted)
            for endpoint in chosen
            for noted in self._rings[endpoint]
            if noted[0] > given.since
        )
        sent = fresh[:MOST_AT_ONCE]
        more = len(fresh) - len(sent)
        last = sent[-1][0] if more else self._count
        traffic = [_written(endpoint, noted) for _, endpoint, noted in sent]
        return {"traffic": traffic, "last": last, "more": more}


def _written(endpoint: str, noted: Noted) -> Piece:
    number, at, peer, kind, data, size = noted
    text = escape(data) + ("…" if size > LONGEST else "")
    return Piece(number, seconds(at), endpoint, peer, kind, text, size)
