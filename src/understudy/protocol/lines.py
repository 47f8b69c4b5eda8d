"""Lines out of a stream: ended by LF or CR LF, of bounded length, however the packets fall."""

from typing import NamedTuple

from msgspec import Struct


class Line(NamedTuple):
    """A line without its end; if it was too long, as much of its beginning as is kept."""

    data: bytes
    too_long: bool


class SavedLine(Struct):
    """The line that has not ended yet."""

    part: bytes = b""
    cut: bool = False


class LineReader:
    """Never holds more than one line of ``limit`` bytes."""

    def __init__(self, limit: int, saved: SavedLine | None = None) -> None:
        self._limit = limit
        self._part = bytearray(saved.part if saved else b"")
        self._cut = saved.cut if saved else False

    def feed(self, data: bytes) -> list[Line]:
        *ended, rest = data.split(b"\n")
        lines = []
        for piece in ended:
            self._add(piece)
            lines.append(self._end())
        self._add(rest)
        return lines

    def save(self) -> SavedLine:
        return SavedLine(bytes(self._part), self._cut)

    def _add(self, piece: bytes) -> None:
        room = self._limit + 1 - len(self._part)  # one more for a CR
        self._part += piece[:room]
        self._cut |= len(piece) > room

    def _end(self) -> Line:
        line = bytes(self._part).removesuffix(b"\r")
        too_long = self._cut or len(line) > self._limit
        self._part.clear()
        self._cut = False
        return Line(line[: self._limit], too_long)
