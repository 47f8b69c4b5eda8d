"""The queries `journal` and `message_counts`: the last requests and answers of each face."""

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, structs

from understudy.errors import Refused, unknown
from understudy.operator.table import query
from understudy.wire.chat import escape
from understudy.wire.journal import LONGEST_TEXT, Entry, Wanted, WireJournal

MOST_AT_ONCE = 500


class JournalQueries:
    """What viewers may ask the journal of the cell."""

    def __init__(self, journal: WireJournal, strict: Callable[[], dict[str, Any]] = dict) -> None:
        self._journal = journal
        self._strict = strict

    @query()
    def unexpected(self) -> dict[str, Any]:
        """Whether the cell is strict, and the requests that no robot of it knows or emulates.

        `count` of all, `requests`: each kind of them once, with the nearest known one.
        """
        return self._strict()

    @query()
    def message_counts(self) -> dict[str, dict[str, int]]:
        """Messages of each face since the start: received by the robot, and sent."""
        return {
            endpoint: {"received": counts[">"], "sent": counts["<"]}
            for endpoint, counts in self._journal.counts().items()
        }

    @query()
    def journal(
        self,
        since: Annotated[int, Meta(ge=0)] = 0,
        endpoint: str = "",
        name: str = "",
        fields: bool = False,
        unexpected: bool = False,
    ) -> dict[str, Any] | Refused:
        """Requests and answers on the wires after a number: the last 2000 of each face are kept.

        `endpoint`, `name`: empty: all. `fields`: with their decoded values. `unexpected`: only
        requests that are unknown or not emulated, and refusals.
        """
        known = self._journal.decoders
        if endpoint and endpoint not in known:
            return Refused(str(unknown("endpoint", endpoint, known)))
        wanted = Wanted(name)
        fresh = self._journal.passed(endpoint, since)
        looked = fresh[:MOST_AT_ONCE]  # the oldest first; `more`: how many come after them
        more = len(fresh) - len(looked)
        entries = (self._journal.entry(passed) for passed in looked)
        return {
            "journal": [
                _row(entry, fields=fields)
                for entry in entries
                if wanted.fits(entry) and (not unexpected or entry.refused or entry.unexpected)
            ],
            "last": looked[-1].number if more else self._journal.last,
            "more": more,
            "unfinished": [
                {"endpoint": place, "peer": peer, "kind": kind, "text": escape(rest[:LONGEST_TEXT])}
                for (place, peer, kind), rest in self._journal.unfinished().items()
                if endpoint in ("", place)
            ],
        }


def _row(entry: Entry, *, fields: bool) -> dict[str, Any]:
    row = structs.asdict(entry)
    if not fields:
        del row["fields"]
    return row
