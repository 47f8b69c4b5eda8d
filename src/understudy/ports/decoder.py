"""How the bytes and messages of an endpoint are read: journal, strict tests, replay, parity pages.

A face has a `Decoder` as its attribute `decoder`. Without one it is read as lines of text, or as
messages with JSON in them: `TEXT` and `MESSAGES`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from understudy.errors import UNREADABLE
from understudy.ports import AnyFace, LineAnswers

LARGEST_DECODED = 64 * 1024
"""Bytes of a message whose fields are read; of a larger one only the address is known."""
LONGEST_NAME = 64
ADDRESS, REPLY_ADDRESS = "address", "reply address"
"""Fields of a message beside its payload."""
DEEPEST = 32
"""Levels of JSON; of a deeper message no fields are read."""


class Decoded(NamedTuple):
    """What a message says. `names`: of the operations it asks for, or of the answer; `fields`: its
    values. `refused`: an answer that refuses something."""

    names: tuple[str, ...] = ()
    fields: Mapping[str, Any] = {}
    refused: bool = False


Cut = Callable[[bytes], tuple[list[bytes], bytes]]
"""Divides bytes into whole messages and the begin of the next one."""
Read = Callable[[bytes, str], Decoded]
"""Reads one message: its bytes, and its address if it has one."""

Status = Literal["emulated", "partly", "formal", "refused"]
"""`formal`: accepted without an effect. `refused`: known, and not emulated."""
Evidence = Literal["real firmware", "vendor's manual", "third-party client", "document", "us"]
"""What the emulation was compared with. `document`: the design document or standard of the wire;
`us`: only tests of our own."""


class Operation(NamedTuple):
    """One thing that a client can ask of an endpoint, how far it is emulated, and the test that
    shows it: a file, or `file::test`."""

    name: str
    meaning: str = ""
    status: Status = "emulated"
    verified: Evidence = "us"
    test: str = ""
    note: str = ""


Operations = Mapping[str, Operation]
Sections = Mapping[str, Sequence[Operation]]
"""The operations of a wire under headings: a page of docs/parity."""


def operations_by_name(rows: Iterable[Operation]) -> Operations:
    return {row.name: row for row in rows}


def all_rows(sections: Sections) -> Operations:
    return operations_by_name(row for rows in sections.values() for row in rows)


# ── lines of text ───────────────────────────────────────────────────────────────────────────────


def cut_lines(data: bytes) -> tuple[list[bytes], bytes]:
    *lines, rest = data.split(b"\n")
    return [line + b"\n" for line in lines], rest


def first_word(data: bytes) -> str:
    """The first word of a line in capitals."""
    word = data.split(None, 1)[:1]
    return word[0][:LONGEST_NAME].decode("ascii", "replace").upper() if word else ""


def read_line(data: bytes, address: str) -> Decoded:
    word = first_word(data)
    return Decoded((word,) if word else ())


def field_of_text(answer: bytes, byte: int) -> str:
    return f"byte {byte}"


# ── whole messages ──────────────────────────────────────────────────────────────────────────────


def cut_nothing(data: bytes) -> tuple[list[bytes], bytes]:
    """A message is whole already."""
    return ([data] if data else []), b""


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object of a message; empty if there is none."""
    if not data.startswith(b"{") or len(data) > LARGEST_DECODED:
        return {}
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
    except UNREADABLE:
        return {}
    return found if _is_flat(found, DEEPEST) else {}


def _is_flat(value: Any, levels: int) -> bool:
    """Whether a value has no more levels."""
    if isinstance(value, dict | list):
        within = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_flat(each, levels - 1) for each in within)
    return True


def read_message(data: bytes, address: str) -> Decoded:
    return Decoded((address,) if address else (), json_object(data))


_JSON_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{},:]')


def field_of_json(answer: bytes, byte: int) -> str:
    """Path of the value in a JSON message that a byte belongs to: `payload.pose.x`,
    `nodes.2.nodeId`. A byte outside of all values belongs to the object around it."""
    path: list[str | int] = []
    named = True  # whether the next string in an object is a value
    for token in _JSON_TOKEN.finditer(answer):
        if token.start() > byte:
            break
        text = token[0]
        if text in b"{[":
            path.append("" if text == b"{" else 0)
            named = text == b"["
        elif text in b"}]":
            del path[-1:]
            named = True
        elif text == b",":
            last = path[-1] if path else ""
            named = isinstance(last, int)
            if isinstance(last, int):
                path[-1] = last + 1
        elif text == b":":
            named = True
        elif not named and path:
            path[-1] = text.strip(b'"').decode("utf-8", "replace")
    return ".".join(str(each) for each in path if each != "") or f"byte {byte}"


# ── the decoder of a face ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Decoder:
    """Reads what passes at an endpoint.

    `cut_requests`, `cut_answers`: of a stream of bytes. `pause`: nanoseconds after which an
    unfinished request is given up, 0: never. `name_field(answer, byte)`: the field that a byte of
    an answer belongs to. `volatile`: last words of the names of fields that differ from run to run,
    as times of day and ids; a comparison with a REAL robot leaves them out. `operations` returns
    what clients can ask for by name; without it nothing is unknown. `line_answers`: how lines of
    text are answered; None: the face speaks none. `alarms_refuse`: a refusal shows as an alarm of
    the robot only.
    """

    cut_requests: Cut = cut_lines
    cut_answers: Cut = cut_lines
    pause: int = 0
    read_request: Read = read_line
    read_answer: Read = read_line
    name_field: Callable[[bytes, int], str] = field_of_text
    volatile: frozenset[str] = frozenset()
    operations: Callable[[], Operations] | None = None
    line_answers: LineAnswers | None = field(default_factory=LineAnswers)
    alarms_refuse: bool = False


TEXT = Decoder()
MESSAGES = Decoder(
    cut_requests=cut_nothing,
    cut_answers=cut_nothing,
    read_request=read_message,
    read_answer=read_message,
    name_field=field_of_json,
    line_answers=None,
)


def decoder_of(face: AnyFace) -> Decoder:
    """The decoder of a face, or the one for its kind of face."""
    usual = MESSAGES if hasattr(face, "addresses") else TEXT
    decoder: Decoder = getattr(face, "decoder", usual)
    return decoder


def cut_of(face: AnyFace) -> Cut | None:
    """How a face divides requests; None if it does not say it, or if pauses count."""
    decoder: Decoder | None = getattr(face, "decoder", None)
    return None if decoder is None or decoder.pause else decoder.cut_requests


def messages_in(data: bytes, cut: Cut) -> list[bytes]:
    """The messages of a whole stream; what is unfinished at its end is one, too."""
    whole, rest = cut(data)
    return [*whole, rest] if rest else whole
