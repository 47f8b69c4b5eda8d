"""An MCAP log as it is read: whole, while it is written, or with its end missing.

The file is looked through by the heads of its records once; later looks go on from there. A chunk
is decompressed when one of its messages is wanted. A record that is not whole is the end.
"""

import base64
import io
import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct

from understudy.doors.log.recording import FILES, HEADER, SNAPSHOT, Facts
from understudy.errors import ConfigError
from understudy.units import NS_PER_SECOND, seconds

MAGIC = b"\x89MCAP0\r\n"
HEAD = struct.Struct("<BQ")
KEPT_CHUNKS = 8
LONGEST_RECORD = 1 << 30
METADATA, ATTACHMENT, CHUNK, MESSAGE_INDEX, DATA_END = 0x0C, 0x09, 0x06, 0x07, 0x0F
DAMAGED: tuple[type[Exception], ...] = (ValueError, struct.error, EOFError, KeyError, IndexError)


class Entry(NamedTuple):
    """A message of a log. `sequence`: its place among all messages."""

    topic: str
    at: int
    sequence: int
    data: bytes

    @property
    def value(self) -> Any:
        return msgspec.json.decode(self.data)


class _Chunk(NamedTuple):
    offset: int
    length: int
    first: int
    last: int
    channels: frozenset[int]


class Mark(Struct, frozen=True):
    """A point of the time line. `kind`: alarm, collision, fault, line, snapshot or fork."""

    time_s: float
    kind: str
    robot: str
    text: str
    line: int = 0
    program: str = ""


class LogFile:
    """A log; `look` reads what has been added since. The file is open only while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                allowed = "run --log FILE.mcap"
                raise ConfigError("this is no MCAP file", file=str(path), allowed=allowed)
        self.whole = False
        """Whether the file has its end: it is not cut, and not being written."""
        self.files: dict[str, bytes] = {}
        self.schemas: dict[str, str] = {}
        self.topics: dict[int, str] = {}
        self._channel_kinds: dict[str, Mapping[str, str]] = {}
        self._metadata: dict[str, str] = {}
        self._chunks: list[_Chunk] = []
        self._at = len(MAGIC)
        self._cache: OrderedDict[int, list[Entry]] = OrderedDict()
        self.look()

    def _opened(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as problem:
            raise ConfigError(f"no log: {problem.strerror}", file=str(self.path)) from None

    # ── what is there ──

    @property
    def facts(self) -> Facts:
        if not self._metadata:
            raise ConfigError("this log has no facts about a run", file=str(self.path))
        return msgspec.convert(self._metadata, Facts, strict=False)

    @property
    def span(self) -> tuple[int, int]:
        """First and last time, ns."""
        if not self._chunks:
            return 0, 0
        return min(c.first for c in self._chunks), max(c.last for c in self._chunks)

    def is_state(self, topic: str) -> bool:
        return "state" in self._channel_kinds.get(topic, ())

    def messages(
        self, topics: Iterable[str] = (), first: int = 0, last: int = 1 << 62
    ) -> Iterator[Entry]:
        """In their order in the file; of these topics, or of all."""
        wanted = set(topics)
        for chunk in self._chunks:
            if chunk.last < first or chunk.first > last or not self._may_have(chunk, wanted):
                continue
            for entry in self._read(chunk):
                if first <= entry.at <= last and (not wanted or entry.topic in wanted):
                    yield entry

    def at(self, topics: Iterable[str], now: int) -> dict[str, Entry]:
        """The last message of each topic up to a time."""
        missing, found = set(topics), dict[str, Entry]()
        for chunk in reversed(self._chunks[: self._count_until(now)]):
            if not missing:
                break
            if not self._may_have(chunk, missing):
                continue
            here = {
                entry.topic: entry
                for entry in self._read(chunk)
                if entry.at <= now and entry.topic in missing
            }
            found |= here
            missing -= here.keys()
        return found

    def _count_until(self, now: int) -> int:
        """Number of chunks that begin up to a time; times may be set back by a restore."""
        firsts = [chunk.first for chunk in self._chunks]
        if firsts == sorted(firsts):
            return bisect_right(firsts, now)
        return len(firsts)

    def _may_have(self, chunk: _Chunk, topics: set[str]) -> bool:
        if not topics or not chunk.channels:
            return True
        return any(self.topics.get(channel) in topics for channel in chunk.channels)

    # ── reading ──

    def look(self) -> None:
        """Reads the heads of the records that are whole by now."""
        with self._opened() as stream:
            size = stream.seek(0, io.SEEK_END)
            while not self.whole and self._at + HEAD.size <= size:
                stream.seek(self._at)
                opcode, length = HEAD.unpack(stream.read(HEAD.size))
                if length > LONGEST_RECORD or self._at + HEAD.size + length > size:
                    break
                try:
                    self._note(stream, opcode, length)
                except DAMAGED:
                    break
                self._at += HEAD.size + length

    def _note(self, stream: IO[bytes], opcode: int, length: int) -> None:
        body = self._at + HEAD.size
        if opcode == CHUNK:
            first, last = struct.unpack("<QQ", stream.read(16))
            self._chunks.append(_Chunk(body, length, first, last, frozenset()))
            self._read(self._chunks[-1])  # channels are described in the chunk that uses them first
        elif opcode == MESSAGE_INDEX:
            (channel,) = struct.unpack("<H", stream.read(2))
            chunk = self._chunks[-1]
            self._chunks[-1] = chunk._replace(channels=chunk.channels | {channel})
        elif opcode == METADATA:
            self._note_metadata(stream.read(length))
        elif opcode == ATTACHMENT:
            self._note_attachment(stream.read(length))
        elif opcode == DATA_END:
            self.whole = True

    def _note_metadata(self, data: bytes) -> None:
        from mcap.data_stream import ReadDataStream
        from mcap.records import Metadata

        found = Metadata.read(ReadDataStream(io.BytesIO(data)))
        if found.name == HEADER:
            self._metadata = dict(found.metadata)

    def _note_attachment(self, data: bytes) -> None:
        from mcap.data_stream import ReadDataStream
        from mcap.records import Attachment

        found = Attachment.read(ReadDataStream(io.BytesIO(data)))
        if found.name.startswith(FILES):
            self.files[found.name.removeprefix(FILES)] = found.data

    def _read(self, chunk: _Chunk) -> list[Entry]:
        if chunk.offset in self._cache:
            self._cache.move_to_end(chunk.offset)
            return self._cache[chunk.offset]
        from mcap.data_stream import ReadDataStream
        from mcap.records import Channel, Chunk, Message, Schema
        from mcap.stream_reader import breakup_chunk

        with self._opened() as stream:
            stream.seek(chunk.offset)
            body = stream.read(chunk.length)
        data = Chunk.read(ReadDataStream(io.BytesIO(body)))
        found, names = list[Entry](), dict[int, str]()
        for record in breakup_chunk(data):
            if isinstance(record, Schema):
                names[record.id] = record.name
            elif isinstance(record, Channel):
                self.topics[record.id] = record.topic
                self._channel_kinds[record.topic] = record.metadata
                self.schemas[record.topic] = names.get(record.schema_id, "")
            elif isinstance(record, Message):
                topic = self.topics.get(record.channel_id, "")
                found.append(Entry(topic, record.log_time, record.sequence, record.data))
        self._cache[chunk.offset] = found
        while len(self._cache) > KEPT_CHUNKS:
            self._cache.popitem(last=False)
        return found


# ── what the time line shows ────────────────────────────────────────────────────────────────────

MOST_LINES = 2000


def marks_of(log: LogFile, since: int = -1) -> list[Mark]:
    """Alarms, faults, collisions, program lines and snapshots after a time, in their order."""
    programs = [topic for topic in log.schemas if topic.endswith("/program")]
    found: list[Mark] = []
    lines = 0
    line_of: dict[str, tuple[int, str]] = {}
    for entry in log.messages(["/alarms", "/violations", SNAPSHOT.topic, *programs]):
        at = seconds(entry.at)
        if entry.topic in programs:
            value, robot = entry.value, entry.topic.split("/")[1]
            line_of[robot] = (value["line"], value["program"]) if value["line"] else (0, "")
            lines += 1
            if value["line"] and lines <= MOST_LINES and entry.at > since:
                text = value["text"] or value["state"]
                found.append(Mark(at, "line", robot, text, value["line"], value["program"]))
        elif entry.at <= since:
            continue
        elif entry.topic == SNAPSHOT.topic:
            found.append(Mark(at, "snapshot", "", ""))
        else:
            value = entry.value
            robot = value["robot"].partition(".")[0]
            line, program = line_of.get(robot, (0, ""))
            found.append(Mark(at, value["kind"], value["robot"], value["text"], line, program))
    return found


def event_of(entry: Entry) -> Any:
    """What passed at a wire, from its message."""
    from understudy.wire.connection import Event

    value = entry.value
    address = value["address"]
    data = base64.b64decode(value["data"])
    pair = (address[0], address[1]) if address else None
    return Event(entry.at, value["endpoint"], value["peer"], value["kind"], data, pair)


def ns(time_s: float) -> int:
    return round(time_s * NS_PER_SECOND)
