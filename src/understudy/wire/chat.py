"""Transcripts: what was sent and answered on the wires, and when.

The recorder writes them, the golden tests play them.

    # face: text_tcp                 facts about the recording
    @ 0.500000000 bench.text_tcp 1   time, endpoint and peer of the lines below
    > GET_POS\\n                      the client sent these bytes
    < OK 0.00,0.00,…\\n               the robot answered
    ! open                           the client connected (open), ended (eof), left (closed)
    ! ending                         the cell ends: its parts send their last messages
    ! inject {"fault": …, "on": …}   the operator injected a fault
    >> g60.move _INBOX.1 {"x": 1}    the client sent a message: address, reply address, payload
    << _INBOX.1 - {"ok": true}       the robot sent a message without a reply address
    << / - {…} +12 bytes, crc32 0a…  a message with a further part: only its size and checksum

Bytes that are not printable ASCII are written as \\n, \\r, \\t, \\\\ or \\xNN, spaces at the end
as \\x20. In an address every space is \\x20; an empty one is written as -.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

import msgspec

from understudy.errors import UNREADABLE, ConfigError
from understudy.units import NS_PER_SECOND
from understudy.wire.connection import Event, Kind

LONGEST_PIECE = 4096
ENDING = b"ending"
INJECT = b"inject "
EVENTS = ("open", "eof", "closed", ENDING.decode())
MESSAGE_MARKS: dict[str, Kind] = {">>": ">", "<<": "<"}
EMPTY = "-"
MOST_RECORDED = 64 << 20
"""Bytes of a run that is recorded in memory."""
EVENT_SIZE = 200
"""Bytes that an event takes beside its data."""
_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x5C: "\\\\"}
_UNESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_PIECE = re.compile(r"\\x([0-9a-fA-F]{2})|\\([nrt\\])|([^\\]+)")
_PLACE = re.compile(r"([0-9]+)(?:\.([0-9]*))?(?: +(\S+))?(?: +(\S+))? *")


@dataclass(frozen=True, slots=True)
class Chat:
    """A transcript and the facts at its head."""

    facts: dict[str, str]
    events: tuple[Event, ...]


class Injected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that the operator injected."""

    fault: str
    on: str
    parameters: Mapping[str, float | str] = {}


def injected_by(data: bytes) -> Injected | None:
    """What an event of the cell injects; None if it is another event."""
    if not data.startswith(INJECT):
        return None
    try:
        return msgspec.json.decode(data.removeprefix(INJECT), type=Injected)
    except UNREADABLE as problem:
        raise ValueError(f"not a fault: {problem}") from None


def escape(data: bytes) -> str:
    text = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}")
        for byte in data
    )
    return text[:-1] + "\\x20" if text.endswith(" ") else text


def unescape(text: str) -> bytes:
    """The escaped bytes; ValueError if ``text`` is not escaped bytes."""
    if not text.isascii():
        raise ValueError("bytes that are not printable ASCII are written as \\xNN")
    data, at = b"", 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError(f"a backslash must be followed by n, r, t, \\ or xNN: {text[at:]!r}")
        code, letter, plain = piece.groups()
        if code:
            data += bytes.fromhex(code)
        else:
            data += _UNESCAPES[letter] if letter else plain.encode("ascii")
        at = piece.end()
    return data


def write_facts(facts: dict[str, str]) -> str:
    return "".join(f"# {key}: {value}\n" for key, value in facts.items())


class ChatWriter:
    """Writes events as lines; an `@` line only where time, endpoint or peer change.

    Bytes that a client sends one by one at the same time become one line.
    """

    def __init__(self) -> None:
        self._place: tuple[int, str, str] | None = None
        self._said: Event | None = None

    def lines(self, event: Event) -> Iterator[str]:
        said = self._said
        if said and _continues(said, event):
            event = Event(event.at, event.endpoint, event.peer, ">", said.data + event.data)
        else:
            yield from self.rest()
        whole = event.data.endswith(b"\n") or len(event.data) >= LONGEST_PIECE or event.address
        self._said = event if event.kind == ">" and not whole else None
        if self._said is None:
            yield from self._write(event)

    def rest(self) -> Iterator[str]:
        """The lines of events that have not been written yet."""
        if self._said is not None:
            yield from self._write(self._said)
            self._said = None

    def _write(self, event: Event) -> Iterator[str]:
        if _place_of(event) != self._place:
            self._place = _place_of(event)
            whole, rest = divmod(event.at, NS_PER_SECOND)
            yield f"@ {whole}.{rest:09d} {event.endpoint} {event.peer}\n"
        if event.address is None:
            yield f"{event.kind} {escape(event.data)}\n"
        else:
            address, reply_to = map(_escape_address, event.address)
            yield f"{event.kind * 2} {address} {reply_to} {escape(event.data)}\n"


def write(facts: dict[str, str], events: Iterable[Event]) -> str:
    writer = ChatWriter()
    lines = [line for event in events for line in writer.lines(event)]
    return write_facts(facts) + "".join([*lines, *writer.rest()])


class EventRecord:
    """The events of a run from its start on, up to a number of bytes; `whole`: nothing is left
    out."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._size = 0
        self.whole = True

    def note(self, event: Event) -> None:
        self._size += len(event.data) + EVENT_SIZE
        self.whole = self._size <= MOST_RECORDED
        if self.whole:
            self._events.append(event)

    def written(self, facts: dict[str, str]) -> str:
        return write(facts, list(self._events))


def _continues(said: Event, event: Event) -> bool:
    """Whether both are bytes of one client at the same time."""
    return event.kind == ">" and not event.address and _place_of(said) == _place_of(event)


def _escape_address(address: str) -> str:
    if not address:
        return EMPTY
    return "\\x2d" if address == EMPTY else escape(address.encode()).replace(" ", "\\x20")


def _unescape_address(text: str) -> str:
    return "" if text == EMPTY else unescape(text).decode()


def _place_of(event: Event) -> tuple[int, str, str]:
    return event.at, event.endpoint, event.peer


def parse(text: str, file: str = "") -> Chat:
    facts: dict[str, str] = {}
    events: list[Event] = []
    place = (0, "", "1")
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        try:
            if mark == "#":
                key, colon, value = rest.partition(":")
                facts |= {key.strip(): value.strip()} if colon else {}
            elif mark == "@":
                place = _place(rest, place)
            elif mark in get_args(Kind):
                events.append(_event(place, mark, rest))
            elif mark in MESSAGE_MARKS:
                events.append(_message(place, MESSAGE_MARKS[mark], rest))
            elif line.strip():
                raise ValueError("a line begins with '@', '>', '<', '>>', '<<', '!' or '#'")
        except ValueError as problem:
            raise ConfigError(str(problem), file=file, line=number, value=line) from None
    return Chat(facts, tuple(events))


def _event(place: tuple[int, str, str], mark: str, text: str) -> Event:
    data = unescape(text)
    if mark == "!" and text not in EVENTS and injected_by(data) is None:
        raise ValueError(
            "a client connects (open), ends (eof) or leaves (closed); the operator injects a fault "
            '(inject {"fault": …, "on": …, "parameters": {…}})'
        )
    return Event(*place, mark, data)  # type: ignore[arg-type]


def _message(place: tuple[int, str, str], kind: Kind, text: str) -> Event:
    address, _, rest = text.partition(" ")
    reply_to, space, payload = rest.partition(" ")
    if not address or not reply_to or not space:
        raise ValueError("a message has an address, a reply address and a payload; - is empty")
    addresses = (_unescape_address(address), _unescape_address(reply_to))
    return Event(*place, kind, unescape(payload), addresses)


def _place(text: str, before: tuple[int, str, str]) -> tuple[int, str, str]:
    parts = _PLACE.fullmatch(text)
    if parts is None:
        raise ValueError("'@' is followed by seconds, endpoint and peer")
    whole, part, endpoint, peer = parts.groups()
    now = int(whole) * NS_PER_SECOND + int((part or "").ljust(9, "0")[:9])
    return now, endpoint or before[1], peer or before[2]
