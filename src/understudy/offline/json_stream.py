"""JSON documents with long lists, written piece by piece: memory does not grow with the lists."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

AT_ONCE = 1000
"""Elements of a list that are encoded at the same time."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A long list: elements, and the function that makes plain values of each."""

    elements: Sequence[Any]
    plain: Callable[[Any], Any]


def encoded(document: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes that `msgspec.json.encode` gives, in pieces; `Listed` values become lists."""
    for n, (name, value) in enumerate(document.items()):
        yield (b"," if n else b"{") + msgspec.json.encode(name) + b":"
        if not isinstance(value, Listed):
            yield msgspec.json.encode(value)
            continue
        yield b"["
        for k, part in enumerate(_parts(value)):
            yield (b"," if k else b"") + msgspec.json.encode(part)[1:-1]
        yield b"]"
    yield b"}"


def indented(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Like `encoded`, with an element on each line and an indent of 1."""
    for n, (name, value) in enumerate(document.items()):
        yield (b",\n " if n else b"{\n ") + msgspec.json.encode(name) + b": "
        if not isinstance(value, Listed) or not len(value.elements):
            yield _format([] if isinstance(value, Listed) else value, b" ")
            continue
        yield b"["
        for k, part in enumerate(_parts(value)):
            yield (b"," if k else b"") + _format(part, b" ")[1:-3]
        yield b"\n ]"
    yield b"\n}"


def indented_list(documents: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """A list of documents."""
    for n, document in enumerate(documents):
        yield b",\n " if n else b"[\n "
        for part in indented(document):
            yield part.replace(b"\n", b"\n ")
    yield b"\n]"


def _parts(value: Listed) -> Iterator[list[Any]]:
    for first in range(0, len(value.elements), AT_ONCE):
        yield [value.plain(each) for each in value.elements[first : first + AT_ONCE]]


def _format(value: Any, indent: bytes) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return text.replace(b"\n", b"\n" + indent)  # a line break inside a string is written as \n
