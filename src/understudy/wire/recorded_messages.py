"""Messages of a broker or bus in the bytes of a recorded connection; without one, the bytes.

NATS   PUB subject [reply] size, HPUB …      the client publishes; size counts the headers too
       MSG subject sid [reply] size, HMSG …  the server delivers
other lines of NATS (CONNECT, SUB, PING, +OK) are no messages
"""

from collections.abc import Callable, Iterator, Mapping

from understudy.ports import WireMessage

LONGEST_LINE = 1 << 20
"""Bytes of a line that has no end yet; beyond that, what is kept is dropped."""
Reader = Callable[[bytes], Iterator[bytes | WireMessage]]


def read_bytes(data: bytes) -> Iterator[bytes | WireMessage]:
    yield data


class NatsReader:
    """The messages of one direction of a NATS connection; the bytes may come in any pieces."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def __call__(self, data: bytes) -> Iterator[bytes | WireMessage]:
        self._unread += data
        while (end := self._unread.find(b"\r\n")) >= 0:
            words = bytes(self._unread[:end]).split()
            verb = words[0].upper() if words else b""
            if verb not in (b"PUB", b"HPUB", b"MSG", b"HMSG") or not words[-1].isdigit():
                del self._unread[: end + 2]
                continue
            size = int(words[-1])
            if len(self._unread) < end + 2 + size + 2:
                return
            body = bytes(self._unread[end + 2 : end + 2 + size])
            del self._unread[: end + 2 + size + 2]
            yield _message(verb, words[1:], body)
        if len(self._unread) > LONGEST_LINE:
            self._unread.clear()


def _message(verb: bytes, words: list[bytes], body: bytes) -> WireMessage:
    headers = 0
    if verb.startswith(b"H"):
        headers = int(words[-2]) if words[-2:-1] and words[-2].isdigit() else 0
        del words[-2:-1]
    names = words[:-1] if verb.endswith(b"PUB") else [words[0], *words[2:-1]]
    reply_to = names[1] if len(names) > 1 else b""
    return WireMessage(
        names[0].decode("utf-8", "replace"), body[headers:], reply_to.decode("utf-8", "replace")
    )


READERS: Mapping[str, Callable[[], Reader]] = {"nats": NatsReader}
"""Wire → the reader of one direction; other wires carry bytes."""


def reader_of(wire: str) -> Reader:
    return READERS[wire]() if wire in READERS else read_bytes
