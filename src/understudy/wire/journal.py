"""The journal of a cell: the last requests and answers of every endpoint, decoded when asked for.

What passes is kept as it came. Bytes are divided into messages for a query, or when many events
wait; the fields of a message are read when it is looked at. Requests and answers have a buffer
each, so that frequent telemetry displaces no request. Snapshots do not hold the journal.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct

from understudy.errors import unknown
from understudy.ports import WireMessage
from understudy.ports.decoder import Decoded, Decoder, Operations
from understudy.units import seconds
from understudy.wire.chat import escape
from understudy.wire.connection import Event, Kind, event_of

KEPT = 2000
"""Requests, and as many answers, that are kept of each endpoint."""
MOST_BYTES = 4 << 20
"""Bytes of them."""
MANY_SENT = 64
"""Messages to a peer that are noted together from this number on."""
MOST_WAITING, MOST_WAITING_BYTES = 2000, 1 << 20
"""Events of an endpoint that wait to be divided into messages, and their bytes."""
LONGEST_UNFINISHED = 64 * 1024
"""Bytes of a message that does not end; they are noted as they are."""
LONGEST_TEXT = 240
"""Bytes of a message that are written as text."""
MOST_FINDINGS = 1000
MOST_PEERS = 1000
"""Peers whose last request is remembered."""
NEAREST = 0.6
MOST_NAMED = 8
"""Names of received requests in a message."""

_stream_of = attrgetter("peer", "kind", "at", "address")
_time_of = attrgetter("at")


class Passed(NamedTuple):
    """A whole message, not decoded. ``number`` counts the messages of all endpoints."""

    number: int
    at: int
    endpoint: str
    peer: str
    kind: Kind
    data: bytes
    address: tuple[str, str] | None


class Entry(Struct, frozen=True):
    """A message that passed. `kind`: > from the client, < from the robot, ! an event of the
    connection. `names` and `fields`: as the face's dialect reads it. `size`: in bytes, of the whole
    message even if `text` is cut. `unexpected`: why a strict test fails because of it."""

    number: int
    time_s: float
    endpoint: str
    peer: str
    kind: Kind
    names: tuple[str, ...]
    fields: Mapping[str, Any]
    text: str
    size: int
    refused: bool = False
    unexpected: str = ""

    def __str__(self) -> str:
        return f"{self.time_s:12.6f} s  {self.endpoint} {self.peer} {self.kind} {self.text}"


class Finding(NamedTuple):
    """A request that is unknown, not emulated or only accepted formally (`unexpected`); or an
    answer that refuses the request before it."""

    entry: Entry
    problem: str
    unexpected: bool

    def __str__(self) -> str:
        return f"{self.entry.endpoint}: {self.problem}"


class Wanted(NamedTuple):
    """Requests that are looked for: an operation's name, values of fields at any depth, endpoint
    and peer; what is empty fits all."""

    name: str = ""
    endpoint: str = ""
    peer: str = ""
    fields: Mapping[str, Any] = {}

    def fits(self, entry: Entry) -> bool:
        named = not self.name or self.name.upper() in (each.upper() for each in entry.names)
        return (
            named
            and self.peer in ("", entry.peer)
            and all(_has(entry.fields, key, value) for key, value in self.fields.items())
        )

    def __str__(self) -> str:
        values = (f"{key}={value!r}" for key, value in self.fields.items())
        return " ".join(part for part in (self.name, *values) if part) or "a request"


class NotReceivedError(AssertionError):
    """The robot has received a request more or less often than a test expects."""


class WireJournal:
    """`note` is called for everything that passes; the rest is for readers.

    ``watching``: requests are compared with the known operations, and answers with refusals, before
    they are displaced, so that `findings` misses none. ``on_finding``: called for each of them at
    once, with the request or answer that has just passed.
    """

    def __init__(
        self,
        decoders: Mapping[str, Decoder],
        *,
        watching: bool = False,
        on_finding: Callable[["Finding"], object] | None = None,
    ) -> None:
        self._wires = {endpoint: _Wire(endpoint, each) for endpoint, each in decoders.items()}
        self._count = 0
        self._on_finding = on_finding
        self._watching = watching or on_finding is not None
        self._findings: deque[Finding] = deque(maxlen=MOST_FINDINGS)
        self.unexpected = 0
        """Number of unknown or not emulated requests up to now, also those that are not kept."""
        self.on_note: Callable[[], None] | None = None
        """Called for every event, while a test waits for one."""

    @property
    def decoders(self) -> Mapping[str, Decoder]:
        return {endpoint: wire.decoder for endpoint, wire in self._wires.items()}

    def add(self, endpoint: str, decoder: Decoder) -> None:
        """An endpoint beside those of the robots."""
        self._wires[endpoint] = _Wire(endpoint, decoder)

    # ── what passes ──

    def note(self, event: Event) -> None:
        wire = self._wires.get(event.endpoint)
        if wire is None:
            return
        wire.waiting.append(event)
        wire.waiting_bytes += len(event.data)
        full = len(wire.waiting) >= MOST_WAITING or wire.waiting_bytes >= MOST_WAITING_BYTES
        if full or self._on_finding is not None:
            self._divide(wire)
        if self.on_note is not None:
            self.on_note()

    def note_sent(self, at: int, endpoint: str, peer: str, messages: Sequence[WireMessage]) -> None:
        """Notes messages to a peer. Of many at once only those are looked at that are still kept
        when someone reads the journal, unless each of them is watched."""
        wire = self._wires.get(endpoint)
        watched = self._watching or self.on_note is not None
        if wire is None or watched or len(messages) < MANY_SENT:
            for message in messages:
                self.note(event_of(at, endpoint, peer, "<", message))
        else:
            wire.note_sent(at, peer, messages)

    # ── readers ──

    def entries(self, endpoint: str = "", since: int = 0) -> list[Entry]:
        """The messages after a number, decoded, in their order; of all endpoints if none is
        named."""
        return [self.entry(passed) for passed in self.passed(endpoint, since)]

    def passed(self, endpoint: str = "", since: int = 0) -> list[Passed]:
        """The same, not decoded."""
        wires = [self._wires[endpoint]] if endpoint else list(self._wires.values())
        self._divide(*wires)
        return sorted(passed for wire in wires for passed in wire.since(since))

    def entry(self, passed: Passed) -> Entry:
        """A message, decoded."""
        decoder = self._wires[passed.endpoint].decoder
        decoded = decode(decoder, passed)
        return _entry(passed, decoded, _unexpected_of(decoder, passed.kind, decoded))

    def received(self, wanted: Wanted, times: int | None = None) -> list[Entry]:
        """The requests that fit; NotReceivedError if there is none, or not this number of
        ``times``."""
        if wanted.endpoint and wanted.endpoint not in self._wires:
            raise unknown("endpoint", wanted.endpoint, self._wires)
        passed = self.passed(wanted.endpoint)
        requests = [self.entry(each) for each in passed if each.kind == ">"]
        found = [each for each in requests if wanted.fits(each)]
        chosen = [wanted.endpoint] if wanted.endpoint else list(self._wires)
        displaced = sum(self._wires[each].requests.displaced for each in chosen)
        if (len(found) == times and not displaced) or (times is None and found):
            return found
        names = Counter(name for each in requests for name in each.names)
        came = ", ".join(f"{name} ({count})" for name, count in names.most_common(MOST_NAMED))
        expected = "" if times is None else f", not {_times(times)}"
        near = get_close_matches(wanted.name, names, n=1, cutoff=NEAREST) if not found else []
        raise NotReceivedError(
            f"{wanted} was received {_times(len(found))}{expected}; received were: "
            f"{came or 'no requests'}"
            + (f"; did you mean {near[0]}?" if near and near[0] != wanted.name else "")
            + (f"; {displaced} older requests are not kept" if displaced else "")
        )

    def unfinished(self) -> dict[tuple[str, str, Kind], bytes]:
        """Begins of messages by endpoint, peer and kind."""
        self._divide(*self._wires.values())
        return {
            (wire.endpoint, *stream): rest
            for wire in self._wires.values()
            for stream, (rest, _) in wire.unfinished.items()
        }

    def findings(self) -> list[Finding]:
        """What a strict test fails for, and what was refused; the last ones."""
        self._divide(*self._wires.values())
        return list(self._findings)

    def counts(self) -> dict[str, dict[Kind, int]]:
        """Number of messages since the start, by endpoint and kind."""
        self._divide(*self._wires.values())
        return {wire.endpoint: dict(wire.counts) for wire in self._wires.values()}

    @property
    def last(self) -> int:
        """Number of the last message."""
        return self._count

    # ── inside ──

    def _divide(self, *wires: "_Wire") -> None:
        """Numbers the whole messages of what waits, in the order of their times."""
        for wire in wires:
            self._count += wire.skip_sent()
        for passed in merge(*(wire.divided() for wire in wires), key=_time_of):
            self._count += 1
            passed = passed._replace(number=self._count)
            wire = self._wires[passed.endpoint]
            wire.keep(passed)
            if self._watching and passed.kind != "!":
                self._watch(wire, passed)

    def _watch(self, wire: "_Wire", passed: Passed) -> None:
        if passed.kind == ">":
            wire.asked.pop(passed.peer, None)
            wire.asked[passed.peer] = passed
            if len(wire.asked) > MOST_PEERS:
                del wire.asked[next(iter(wire.asked))]
        decoded = decode(wire.decoder, passed)
        unexpected = _unexpected_of(wire.decoder, passed.kind, decoded)
        if unexpected or decoded.refused:
            self._found(wire, _entry(passed, decoded, unexpected))

    def _found(self, wire: "_Wire", entry: Entry) -> None:
        problem = entry.unexpected
        if not problem:
            asked = wire.asked.get(entry.peer)
            line = _text_of(asked).removesuffix("\\n").strip() if asked else ""
            answer = entry.text.removesuffix("\\n").removesuffix("\\r")
            problem = f"{line} → {answer}"
        finding = Finding(entry, problem, bool(entry.unexpected))
        self._findings.append(finding)
        self.unexpected += finding.unexpected
        if self._on_finding is not None:
            self._on_finding(finding)


class _Ring:
    """The last messages of one direction."""

    def __init__(self) -> None:
        self.messages: deque[Passed] = deque()
        self.size = 0
        self.displaced = 0

    def keep(self, passed: Passed) -> None:
        self.messages.append(passed)
        self.size += len(passed.data)
        while len(self.messages) > KEPT or (self.size > MOST_BYTES and len(self.messages) > 1):
            self.size -= len(self.messages.popleft().data)
            self.displaced += 1


class _Wire:
    """What has passed at one endpoint. `waiting`: not yet divided into messages; `unfinished`: the
    begin of a message by peer and kind, and the time of its last byte; `asked`: the last request of
    a peer."""

    def __init__(self, endpoint: str, decoder: Decoder) -> None:
        self.endpoint = endpoint
        self.decoder = decoder
        self.waiting: list[Event] = []
        self.waiting_bytes = 0
        self._sent: deque[tuple[int, str, Sequence[WireMessage]]] = deque()
        """Times, peers and messages that wait beside those of `waiting`."""
        self._sent_count = 0
        self._skipped = 0
        """Messages of `_sent` that were displaced before anyone looked at them."""
        self.unfinished: dict[tuple[str, Kind], tuple[bytes, int]] = {}
        self.requests, self.answers = _Ring(), _Ring()
        self.counts: dict[Kind, int] = {">": 0, "<": 0, "!": 0}
        self.asked: dict[str, Passed] = {}

    def keep(self, passed: Passed) -> None:
        self.counts[passed.kind] += 1
        (self.answers if passed.kind == "<" else self.requests).keep(passed)

    def since(self, number: int) -> Iterator[Passed]:
        for ring in (self.requests, self.answers):
            yield from _newest(ring.messages, number)

    def note_sent(self, at: int, peer: str, messages: Sequence[WireMessage]) -> None:
        self._sent.append((at, peer, messages))
        self._sent_count += len(messages)
        while self._sent_count - len(self._sent[0][2]) >= KEPT:
            displaced = len(self._sent.popleft()[2])
            self._sent_count -= displaced
            self._skipped += displaced

    def skip_sent(self) -> int:
        """Counts the messages that were displaced before anyone looked at them; how many."""
        skipped, self._skipped = self._skipped, 0
        self.counts["<"] += skipped
        self.answers.displaced += skipped
        return skipped

    def divided(self) -> Iterator[Passed]:
        """The whole messages of what waits, without numbers."""
        return merge(self._divided_sent(), self._divided_events(), key=_time_of)

    def _divided_sent(self) -> Iterator[Passed]:
        sent, self._sent, self._sent_count = self._sent, deque(), 0
        for at, peer, messages in sent:
            for message in messages:
                event = event_of(at, self.endpoint, peer, "<", message)
                yield self._passed(at, peer, "<", event.data, event.address)

    def _divided_events(self) -> Iterator[Passed]:
        waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
        for (peer, kind, at, address), events in groupby(waiting, _stream_of):
            if address is not None:
                for event in events:
                    yield self._passed(at, peer, kind, event.data, address)
            elif kind == "!":
                for event in events:
                    yield from self._give_up(peer, at, both=event.data != b"eof")
                    yield self._passed(at, peer, kind, event.data)
            else:
                data = b"".join(event.data for event in events)
                for each in self._cut(peer, kind, at, data):
                    yield self._passed(at, peer, kind, each)

    def _passed(
        self, at: int, peer: str, kind: Kind, data: bytes, address: tuple[str, str] | None = None
    ) -> Passed:
        return Passed(0, at, self.endpoint, peer, kind, data, address)

    def _cut(self, peer: str, kind: Kind, at: int, data: bytes) -> list[bytes]:
        stream = peer, kind
        rest, last = self.unfinished.get(stream, (b"", at))
        given_up = []
        if rest and kind == ">" and self.decoder.pause and at - last >= self.decoder.pause:
            given_up, rest = [rest], b""
        cut = self.decoder.cut_requests if kind == ">" else self.decoder.cut_answers
        whole, rest = cut(rest + data)
        if len(rest) > LONGEST_UNFINISHED:
            whole, rest = [*whole, rest], b""
        if rest:
            self.unfinished[stream] = rest, at
        else:
            self.unfinished.pop(stream, None)
        return [*given_up, *whole]

    def _give_up(self, peer: str, at: int, *, both: bool) -> Iterator[Passed]:
        """What has not ended when the peer sends nothing more; ``both``: nor does the robot."""
        kinds: tuple[Kind, ...] = (">", "<") if both else (">",)
        for kind in kinds:
            rest, _ = self.unfinished.pop((peer, kind), (b"", 0))
            if rest:
                yield self._passed(at, peer, kind, rest)


def _newest(messages: deque[Passed], number: int) -> Iterable[Passed]:
    """The messages after a number."""
    fresh = 0
    for passed in reversed(messages):
        if passed.number <= number:
            break
        fresh += 1
    return islice(messages, len(messages) - fresh, None)


def _has(fields: Any, key: str, value: Any) -> bool:
    """Whether a key has this value, in the fields or deeper in them; decoders limit the depth."""
    if isinstance(fields, Mapping):
        if key in fields and bool(fields[key] == value):
            return True
        fields = fields.values()
    elif not isinstance(fields, list | tuple):
        return False
    return any(_has(each, key, value) for each in fields)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def decode(decoder: Decoder, passed: Passed | Event) -> Decoded:
    if passed.kind == "!":
        return Decoded((passed.data.decode(),))
    read = decoder.read_request if passed.kind == ">" else decoder.read_answer
    return read(passed.data, passed.address[0] if passed.address else "")


def _entry(passed: Passed, decoded: Decoded, unexpected: str) -> Entry:
    number, at, endpoint, peer, kind, data, _ = passed
    names, fields, refused = decoded
    text, size = _text_of(passed), len(data)
    return Entry(
        number, seconds(at), endpoint, peer, kind, names, fields, text, size, refused, unexpected
    )


def _unexpected_of(decoder: Decoder, kind: Kind, decoded: Decoded) -> str:
    if kind != ">" or decoder.operations is None:
        return ""
    return unexpected_in(decoded.names, decoder.operations())


def _text_of(passed: Passed) -> str:
    data = passed.data
    text = escape(data[:LONGEST_TEXT]) + ("…" if len(data) > LONGEST_TEXT else "")
    return f"{passed.address[0]} {text}" if passed.address and passed.address[0] else text


# ── known operations ────────────────────────────────────────────────────────────────────────────


def unexpected_in(names: Sequence[str], operations: Operations) -> str:
    """Why a strict test fails because of these requests; empty if it does not."""
    return "; ".join(problem for name in names if (problem := _unexpected(name, operations)))


def _nearest(name: str, operations: Operations) -> str:
    """The most similar name; of several the first one in the alphabet."""
    near = get_close_matches(name, operations, n=8, cutoff=NEAREST)
    return max(sorted(near), key=lambda each: SequenceMatcher(None, each, name).ratio(), default="")


def _unexpected(name: str, operations: Operations) -> str:
    operation = operations.get(name)
    if operation is None:
        near = _nearest(name, operations)
        return f"{name} is unknown" + (f"; {near}?" if near else "")
    note = f": {operation.note}" if operation.note else ""
    if operation.status == "refused":
        return f"{name} is not emulated{note}"
    return (
        f"{name} is only accepted, it has no effect{note}" if operation.status == "formal" else ""
    )
