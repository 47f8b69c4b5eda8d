"""The query `traffic`: the last messages on the wires of each face.

Messages are noted as they pass and converted to text by the query. Snapshots do not hold them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused, unknown
from understudy.operator.table import query
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


class Traffic:
    """A ring buffer for each face; the numbers of messages go on counting."""

    def __init__(self, endpoints: Iterable[str]) -> None:
        self._rings: dict[str, deque[Noted]] = {
            endpoint: deque(maxlen=KEPT) for endpoint in endpoints
        }
        self._count = 0
        self._counts = {endpoint: {">": 0, "<": 0, "!": 0} for endpoint in self._rings}

    def note(self, event: Event) -> None:
        self._count += 1
        self._counts[event.endpoint][event.kind] += 1
        kept, size = event.data[:LONGEST], len(event.data)
        ring = self._rings[event.endpoint]
        ring.append((self._count, event.at, event.peer, event.kind, kept, size))

    def note_sent(self, at: int, endpoint: str, peer: str, messages: Sequence[WireMessage]) -> None:
        """Many messages of a robot at once."""
        last = [message.payload for message in messages[-KEPT:]]
        self._count += len(messages)
        self._counts[endpoint]["<"] += len(messages)
        first = self._count - len(last) + 1
        self._rings[endpoint].extend(
            [
                (number, at, peer, "<", data[:LONGEST], len(data))
                for number, data in enumerate(last, first)
            ]
        )

    @query()
    def message_counts(self) -> dict[str, dict[str, int]]:
        """Messages of each face since the start: received by the robot, and sent."""
        return {
            endpoint: {"received": counts[">"], "sent": counts["<"]}
            for endpoint, counts in self._counts.items()
        }

    @query()
    def traffic(
        self, since: Annotated[int, Meta(ge=0)] = 0, endpoint: str = ""
    ) -> dict[str, Any] | Refused:
        """Messages on the wires since a number: the last 500 of each face are kept.

        `endpoint`: empty: all endpoints.
        """
        if endpoint and endpoint not in self._rings:
            return Refused(str(unknown("endpoint", endpoint, self._rings)))
        chosen = [endpoint] if endpoint else list(self._rings)
        fresh = sorted(
            (noted[0], name, noted)
            for name in chosen
            for noted in self._rings[name]
            if noted[0] > since
        )
        sent = fresh[:MOST_AT_ONCE]  # the oldest first; `more`: how many did not fit
        more = len(fresh) - len(sent)
        last = sent[-1][0] if more else self._count
        traffic = [_written(name, noted) for _, name, noted in sent]
        return {"traffic": traffic, "last": last, "more": more}


def _written(endpoint: str, noted: Noted) -> Piece:
    number, at, peer, kind, data, size = noted
    text = escape(data) + ("…" if size > LONGEST else "")
    return Piece(number, seconds(at), endpoint, peer, kind, text, size)
