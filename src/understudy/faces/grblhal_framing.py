"""Bytes of a grblHAL wire: commands that act at once are taken out, the rest waits in a buffer.

    "G1 X1?0 F\\x91100\\n"   is   a status request, a feed override, and the line "G1 X10 F100"

CR LF and LF CR are one line end each, also across packets. Control characters and leading spaces
vanish; a line holds 256 characters, and what is longer is remembered as too long.
"""

from typing import NamedTuple

from msgspec import Struct

LONGEST_LINE = 256
RX_SIZE = 1023
"""Bytes that the firmware's buffer of 1024 holds."""
BACKSPACE, DELETE = 0x08, 0x7F
LINE_ENDS = b"\r\n"
PRINTABLE_COMMANDS = b"?!~"


class Piece(NamedTuple):
    """A byte that acts at once, or one that goes into the buffer."""

    byte: int
    acts: bool


class Line(NamedTuple):
    """A line without its end, and whether it was too long."""

    text: str
    too_long: bool


class SavedReader(Struct):
    """What a snapshot holds of a reader."""

    unread: bytes = b""
    part: bytes = b""
    too_long: bool = False
    last_end: int = 0
    kept: bool = False
    comment: str = ""


class Reader:
    """The firmware's receive buffer and the line it is reading from it."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._at = 0
        self._line = bytearray()
        self._too_long = False
        self._last_end = 0
        self._kept = False
        self._comment = ""

    # ── arriving ──

    def sort(self, byte: int, *, legacy: bool = True) -> Piece | None:
        """What a byte is; None if it is nothing.

        Without ``legacy`` ($39) the printable commands are plain text in `$` lines and comments.
        """
        if byte in LINE_ENDS:
            return Piece(byte, False)
        if byte in PRINTABLE_COMMANDS:
            return Piece(byte, legacy or not self._kept)
        if (byte < 0x20 and byte != BACKSPACE) or 0x80 <= byte <= 0xBF:
            return Piece(byte, True)
        if byte >= DELETE and not self._kept:
            return None
        return Piece(byte, False)

    def put(self, byte: int) -> None:
        self._unread.append(byte)

    @property
    def waiting(self) -> int:
        """How many bytes are received and not yet read."""
        return len(self._unread) - self._at

    def flush(self) -> None:
        """Forget everything that is not a whole line already handed out."""
        self.__init__()  # type: ignore[misc]

    # ── reading ──

    def next_line(self) -> Line | None:
        """Read up to the next line end; None if there is none yet."""
        unread = self._unread
        while self._at < len(unread):
            byte = unread[self._at]
            self._at += 1
            if byte not in LINE_ENDS:
                self._read(byte)
                continue
            other = self._last_end and byte != self._last_end
            if not self._line and not self._too_long and other:
                self._last_end = 0  # the second half of CR LF or LF CR
                continue
            self._last_end = byte
            self._forget_read()
            return self._end()
        self._forget_read()
        return None

    def _read(self, byte: int) -> None:
        line = self._line
        if byte in (BACKSPACE, DELETE):
            del line[-1:]
            return
        if byte == 0x20 and not line:
            return
        self._note(byte)
        if len(line) < LONGEST_LINE:
            line.append(byte)
        else:
            self._too_long = True

    def _note(self, byte: int) -> None:
        """Whether text is being read in which every byte counts: a `$` line or a comment."""
        if not self._line and byte in b"$[":
            self._kept = True
        elif byte == ord("(") and not self._kept and not self._comment:
            self._kept, self._comment = True, "("
        elif byte == ord(")") and self._comment == "(":
            self._kept, self._comment = False, ""
        elif byte == ord(";") and not self._comment and not self._kept:
            self._comment = ";"

    def _end(self) -> Line:
        line = Line(self._line.decode("latin-1"), self._too_long)
        self._line.clear()
        self._too_long, self._kept, self._comment = False, False, ""
        return line

    def _forget_read(self) -> None:
        if self._at > RX_SIZE or self._at == len(self._unread):
            del self._unread[: self._at]
            self._at = 0

    # ── snapshots ──

    def save(self) -> SavedReader:
        return SavedReader(
            unread=bytes(self._unread[self._at :]),
            part=bytes(self._line),
            too_long=self._too_long,
            last_end=self._last_end,
            kept=self._kept,
            comment=self._comment,
        )

    def load(self, saved: SavedReader) -> None:
        self._unread, self._at = bytearray(saved.unread), 0
        self._line = bytearray(saved.part)
        self._too_long, self._last_end = saved.too_long, saved.last_end
        self._kept, self._comment = saved.kept, saved.comment
