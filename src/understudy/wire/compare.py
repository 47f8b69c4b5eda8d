"""Compares recorded answers with those of a cell: the first difference, and a score per message.

The answers to one client are aligned first, so that one that is missing does not make all behind it
differ. Aligned answers of one type are *matched*; their distance is the mean over their fields: 0
for equal ones, |a - b| / (|a| + |b|) for numbers, 1 for others. The score of a type is the share of
matched answers times (1 - their mean distance).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec import Struct

from understudy.ports.decoder import ADDRESS, REPLY_ADDRESS, Decoder
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import escape

_NUMBER = re.compile(r"([+-]?\d+\.?\d*)")
_NUMBER_BYTES = re.compile(_NUMBER.pattern.encode())
Peer = tuple[str, str]
LOOK_AHEAD = 64
"""Answers in a row that may be missing or additional."""
WHOLE, TIME = "the whole answer", "the time"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed difference of numbers and of times; ``seconds`` None: times are not compared.
    ``volatile``: fields that the face declares as volatile may differ."""

    number: float = 0.0
    seconds: float | None = 0.0
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """One message, and when its last byte was sent; ``address`` as of an `Event`."""

    at: int
    data: bytes
    address: tuple[str, str] | None = None


class Stream(NamedTuple):
    """The answers to one client: recorded, and of the cell."""

    peer: Peer
    decoder: Decoder
    expected: Sequence[SentAnswer]
    got: Sequence[SentAnswer]


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that differs. ``number``: of the recorded answer, of that of the cell if none was
    recorded; ``byte``: the first one that differs, in the address if ``field`` is one."""

    peer: Peer
    number: int
    byte: int
    field: str
    expected: SentAnswer | None
    got: SentAnswer | None

    def __str__(self) -> str:
        endpoint, peer = self.peer
        return (
            f"{endpoint} {peer}, answer {self.number}: byte {self.byte} ({self.field}) differs\n"
            f"  expected {_written(self.expected)}\n"
            f"  got      {_written(self.got)}"
        )


class Fidelity(Struct, frozen=True):
    """How well the messages of one type fit. `matched`: pairs of a recorded and an own message;
    `distance`: their mean one; `latest_s`, `mean_s`: differences of their times."""

    endpoint: str
    type: str
    recorded: int
    own: int
    matched: int
    distance: float
    latest_s: float
    mean_s: float
    score: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """``answers``: number of the recorded ones; ``differences``: of those that differ."""

    answers: int
    differences: int
    first: Difference | None
    fidelity: Sequence[Fidelity]

    @property
    def score(self) -> float:
        """The scores of all types by their number of messages; 1 if there are none."""
        weights = [max(each.recorded, each.own) for each in self.fidelity]
        whole = sum(w * each.score for w, each in zip(weights, self.fidelity, strict=True))
        return whole / sum(weights) if weights else 1.0


def compare(streams: Iterable[Stream], tolerance: Tolerance) -> Comparison:
    first: Difference | None = None
    answers = differences = 0
    types: dict[tuple[str, str], _Tally] = {}
    for stream in streams:
        answers += len(stream.expected)
        for pair in _aligned(stream):
            _count(types, stream, pair, tolerance)
            found = _difference(pair, stream.decoder, tolerance)
            if found is not None:
                differences += 1
                a, b = pair.expected, pair.got
                first = first or Difference(stream.peer, pair.number, *found, a, b)
    scores = [tally.fidelity(*name) for name, tally in sorted(types.items())]
    return Comparison(answers, differences, first, scores)


# ── alignment ───────────────────────────────────────────────────────────────────────────────────


class _Pair(NamedTuple):
    """``number``: of the recorded answer, or of the other one."""

    number: int
    expected: SentAnswer | None
    got: SentAnswer | None
    types: tuple[str, str]


class _Side(NamedTuple):
    answers: Sequence[SentAnswer]
    types: Sequence[str]

    def same(self, n: int, other: "_Side", m: int) -> bool:
        """Whether the n-th answer is the other's m-th one; behind their ends both are the same."""
        a, b = self.answers, other.answers
        if n >= len(a) or m >= len(b):
            return n >= len(a) and m >= len(b)
        return a[n].data == b[m].data and a[n].address == b[m].address

    def same_type(self, n: int, other: "_Side", m: int) -> bool:
        a, b = self.types, other.types
        if n >= len(a) or m >= len(b):
            return n >= len(a) and m >= len(b)
        return a[n] == b[m]


def _aligned(stream: Stream) -> Iterator[_Pair]:
    """Pairs of answers; one without a partner is alone."""
    both = stream.expected, stream.got
    a, b = (_Side(each, [_type(stream.decoder, answer) for answer in each]) for each in both)
    n = m = 0
    while n < len(a.answers) or m < len(b.answers):
        skip_a, skip_b = _skips(a, n, b, m)
        for _ in range(skip_a):
            yield _Pair(n + 1, a.answers[n], None, (a.types[n], ""))
            n += 1
        for _ in range(skip_b):
            yield _Pair(m + 1, None, b.answers[m], ("", b.types[m]))
            m += 1
        if n < len(a.answers) and m < len(b.answers):
            yield _Pair(n + 1, a.answers[n], b.answers[m], (a.types[n], b.types[m]))
            n, m = n + 1, m + 1


def _type(decoder: Decoder, answer: SentAnswer) -> str:
    names = decoder.read_answer(answer.data, answer.address[0] if answer.address else "").names
    return " ".join(names) or "other"


def _skips(a: _Side, n: int, b: _Side, m: int) -> tuple[int, int]:
    """How many answers of either side have no partner here."""
    left_a, left_b = len(a.answers) - n, len(b.answers) - m
    if not left_a or not left_b:
        return left_a, left_b
    if a.same(n, b, m) or (a.same(n + 1, b, m + 1) and a.same(n + 2, b, m + 2)):
        return 0, 0
    for skip in range(1, LOOK_AHEAD + 1):
        if skip < left_a and a.same(n + skip, b, m) and a.same(n + skip + 1, b, m + 1):
            return skip, 0
        if skip < left_b and a.same(n, b, m + skip) and a.same(n + 1, b, m + skip + 1):
            return 0, skip
    if a.same_type(n, b, m) or a.same_type(n + 1, b, m + 1):
        return 0, 0
    for skip in range(1, LOOK_AHEAD + 1):
        if skip < left_a and a.same_type(n + skip, b, m):
            return skip, 0
        if skip < left_b and a.same_type(n, b, m + skip):
            return 0, skip
    return 0, 0


# ── the first difference ────────────────────────────────────────────────────────────────────────


def _difference(pair: _Pair, decoder: Decoder, tolerance: Tolerance) -> tuple[int, str] | None:
    """The first byte of the recorded answer that differs, and the field it belongs to."""
    a, b = pair.expected, pair.got
    if a is None or b is None:
        return 0, WHOLE
    if a.address is not None and b.address is not None:
        for name, x, y in zip((ADDRESS, REPLY_ADDRESS), a.address, b.address, strict=True):
            if x != y and not (tolerance.volatile and name in decoder.volatile):
                return _first_unequal(x, y), name
    found = _first_difference(a.data, b.data, decoder, tolerance)
    if found is not None:
        return found
    if tolerance.seconds is not None and abs(a.at - b.at) > nanoseconds(tolerance.seconds):
        return 0, TIME
    return None


def _first_difference(
    a: bytes, b: bytes, decoder: Decoder, tolerance: Tolerance
) -> tuple[int, str] | None:
    """The first byte that differs and its field; numbers may differ by the tolerance, volatile
    fields may have any values."""
    begin_a = begin_b = 0
    while (byte := _first_byte(a[begin_a:], b[begin_b:], tolerance.number)) is not None:
        at, other = begin_a + byte, begin_b + byte
        name = decoder.name_field(a, min(at, len(a) - 1))
        if not tolerance.volatile or not _is_volatile(name, decoder):
            return at, name
        begin_a, begin_b = (_end_of_field(decoder, *of, name) for of in ((a, at), (b, other)))
    return None


def _is_volatile(name: str, decoder: Decoder) -> bool:
    return name.rpartition(".")[2] in decoder.volatile


def _end_of_field(decoder: Decoder, data: bytes, byte: int, name: str) -> int:
    """The first byte behind a field."""
    while byte < len(data) and decoder.name_field(data, byte) == name:
        byte += 1
    return byte


def _first_byte(a: bytes, b: bytes, tolerance: float) -> int | None:
    """Index of the first different byte; numbers between the words may differ by the tolerance."""
    if a == b:
        return None
    at = 0
    pieces = zip_longest(_NUMBER_BYTES.split(a), _NUMBER_BYTES.split(b), fillvalue=b"")
    for index, (x, y) in enumerate(pieces):
        numbers = index % 2 == 1 and x and y and tolerance > 0.0
        if x != y and not (numbers and abs(float(x) - float(y)) <= tolerance):
            return at + _first_unequal(x, y)
        at += len(x)
    return None


def _first_unequal(x: Sequence[Any], y: Sequence[Any]) -> int:
    return next(n for n, (i, j) in enumerate(zip_longest(x, y)) if i != j)


def _written(answer: SentAnswer | None) -> str:
    if answer is None:
        return "nothing"
    address = "" if answer.address is None else f"{' '.join(filter(None, answer.address))} "
    return f"{seconds(answer.at):.6f} s  {address}{escape(answer.data)}"


# ── fidelity ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Tally:
    """What was counted for one type of messages."""

    recorded: int = 0
    own: int = 0
    distances: list[float] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def fidelity(self, endpoint: str, name: str) -> Fidelity:
        matched = len(self.distances)
        distance = sum(self.distances) / matched if matched else 0.0
        share = 2 * matched / (self.recorded + self.own)
        return Fidelity(
            endpoint,
            name,
            self.recorded,
            self.own,
            matched,
            distance,
            seconds(max(self.late, default=0)),
            seconds(round(sum(self.late) / matched)) if matched else 0.0,
            share * (1.0 - distance),
        )


def _count(
    types: dict[tuple[str, str], _Tally], stream: Stream, pair: _Pair, tolerance: Tolerance
) -> None:
    endpoint, (a, b) = stream.peer[0], pair.types
    if pair.expected is not None:
        types.setdefault((endpoint, a), _Tally()).recorded += 1
    if pair.got is not None:
        types.setdefault((endpoint, b), _Tally()).own += 1
    if pair.expected is not None and pair.got is not None and a == b:
        tally = types[endpoint, a]
        tally.distances.append(_distance(stream.decoder, pair.expected, pair.got, tolerance))
        tally.late.append(abs(pair.expected.at - pair.got.at))


def _distance(decoder: Decoder, a: SentAnswer, b: SentAnswer, tolerance: Tolerance) -> float:
    """The mean distance of the fields of two messages of one type, 0 to 1."""
    if a.data == b.data:
        return 0.0
    x, y = (_fields(decoder, each) for each in (a, b))
    names = [n for n in x | y if not (tolerance.volatile and _is_volatile(n, decoder))]
    distances = [_apart(x.get(name), y.get(name), tolerance.number) for name in names]
    return sum(distances) / len(distances) if distances else 0.0


def _fields(decoder: Decoder, answer: SentAnswer) -> dict[str, Any]:
    """The values of a message by their paths; one without fields is one text."""
    read = decoder.read_answer(answer.data, answer.address[0] if answer.address else "")
    return dict(_leaves(read.fields, "")) or {"": answer.data.decode("latin-1")}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Decoders limit the depth."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}.{number}")
    else:
        yield path, value


def _apart(a: Any, b: Any, tolerance: float) -> float:
    """The distance of two values; of texts with numbers in them that of the numbers."""
    if a == b:
        return 0.0
    if _is_number(a) and _is_number(b):
        return _numbers_apart(float(a), float(b), tolerance)
    if isinstance(a, str) and isinstance(b, str):
        x, y = _NUMBER.split(a), _NUMBER.split(b)
        if x[::2] == y[::2]:
            pairs = list(zip(x[1::2], y[1::2], strict=True))
            return sum(_numbers_apart(float(i), float(j), tolerance) for i, j in pairs) / len(pairs)
    return 1.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers_apart(a: float, b: float, tolerance: float) -> float:
    if abs(a - b) <= tolerance:
        return 0.0
    whole = abs(a) + abs(b)
    return abs(a - b) / whole if math.isfinite(whole) else 1.0
