"""The query `traffic`: the last messages on the wires of each face.

Messages are noted as they pass and converted to text by the query. Snapshots do not hold them.
"""

from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused, unknown
from understudy.operator.table import Command
from understudy.units import seconds
from understudy.wire.chat import Event, Kind, escape

KEPT = 500
MOST_AT_ONCE = 500
LONGEST = 240
"""Bytes of one message that are kept."""


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
        self._rings: dict[str, deque[tuple[int, Event, int]]] = {
            endpoint: deque(maxlen=KEPT) for endpoint in endpoints
        }
        self._count = 0

    def note(self, event: Event) -> None:
        self._count += 1
        size = len(event.data)
        if size > LONGEST:
            event = Event(event.at, event.endpoint, event.peer, event.kind, event.data[:LONGEST])
        self._rings[event.endpoint].append((self._count, event, size))

    def commands(self) -> list[Command]:
        doc = f"messages on the wires since a number: the last {KEPT} of each face are kept"
        return [Command("traffic", doc, self._since, WhichTraffic, role="viewer")]

    def _since(self, given: WhichTraffic) -> dict[str, Any] | Refused:
        """Messages after a number, the oldest first; ``more``: how many did not fit."""
        if given.endpoint and given.endpoint not in self._rings:
            return Refused(str(unknown("endpoint", given.endpoint, self._rings)))
        rings = [self._rings[given.endpoint]] if given.endpoint else list(self._rings.values())
        fresh = sorted(
            (noted for ring in rings for noted in ring if noted[0] > given.since),
            key=lambda noted: noted[0],
        )
        sent = fresh[:MOST_AT_ONCE]
        more = len(fresh) - len(sent)
        last = sent[-1][0] if more else self._count
        return {"traffic": [_written(*noted) for noted in sent], "last": last, "more": more}


def _written(number: int, event: Event, size: int) -> Piece:
    text = escape(event.data) + ("…" if size > LONGEST else "")
    return Piece(number, seconds(event.at), event.endpoint, event.peer, event.kind, text, size)
