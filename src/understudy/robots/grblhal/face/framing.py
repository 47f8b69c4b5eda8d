"""Framing of a grblHAL wire: real-time bytes are taken out, the rest waits in a receive buffer.

    "G1 X1?0 F\\x91100\\n"   is   a status request, a feed override, and the line "G1 X10 F100"

CR LF and LF CR are one line end each, also across packets. Control characters and leading spaces
are dropped. A line has at most 256 characters; a longer one is marked as too long.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from understudy.robots.grblhal.numbers import LONGEST_LINE, RX_SIZE

BUFFER_BYTES = RX_SIZE - 1
"""Bytes that the receive buffer holds."""
BACKSPACE, DELETE = 0x08, 0x7F
LINE_ENDS = (b"\r", b"\n")
PRINTABLE_COMMANDS = b"?!~"
KEEPING = ("$", "[", "(")

_CUT = re.compile(rb"[\x00-\x07\x09-\x1f?!~\x80-\xbf]")
SILENT = re.compile(rb"(?s:[^\x00-\x1f?!~\x7f-\xff]+|.)")
"""Splits a stream into runs of text without an effect, and single bytes for the rest."""
_ORDINARY = re.compile(rb"[^\x00-\x1f$(;\[\x7f-\xff]*")
_LINE_END = re.compile(rb"[\r\n]")


class FirmwareLine(NamedTuple):
    """A line without its end, and whether it was too long."""

    text: str
    too_long: bool


def pieces(data: bytes) -> Iterator[tuple[bytes, int | None]]:
    """Split into text up to a line end, and the command byte after it, if there is one."""
    at = 0
    for found in _CUT.finditer(data):
        end = found.end()
        if found[0] in LINE_ENDS:
            yield data[at:end], None
        else:
            yield data[at : end - 1], data[end - 1]
        at = end
    yield data[at:], None


class SavedBuffer(Struct):
    """Snapshot of a receive buffer."""

    unread: bytes
    part: bytes
    too_long: bool
    last_end: bytes
    verbatim: str
    cancelled: bool = False
    aside: bytes | None = None


class ReceiveBuffer:
    """The firmware's receive buffer, and the line that is being read from it.

    ``verbatim`` is the character that began a text in which every byte is kept (``$``, ``[`` or
    ``(``), or ``;`` for a comment. ``aside`` are bytes that wait until a tool change has ended.
    """

    def __init__(self) -> None:
        self._unread = bytearray()
        self._at = 0
        self._line = bytearray()
        self._too_long = False
        self._last_end = b""
        self._verbatim = ""
        self._cancelled = False
        self.aside: bytes | None = None

    def put(self, text: bytes) -> None:
        self._unread += text

    def put_back(self, line: FirmwareLine) -> None:
        """Read this line, the last one that was returned, once more."""
        self._unread[self._at : self._at] = line.text.encode("latin-1") + self._last_end

    def flush(self) -> None:
        """Discard all bytes that ``next_line`` has not returned.

        If the last of them ended a line, the second half of that line end may still come.
        """
        dropped = bytes(self._line + self._unread[self._at :])[-1:]
        if dropped:
            self._last_end = dropped if dropped in LINE_ENDS else b""
        self._unread.clear()
        self._at = 0
        self._cancelled, self.aside = False, None
        self._begin()

    def cancel(self) -> None:
        """Discard all bytes. The firmware puts a CAN byte into the buffer, which counts in `Bf`."""
        self.flush()
        self._cancelled = True

    def take_cancel(self) -> bool:
        """Read the CAN byte of `cancel`; true if there was one."""
        cancelled, self._cancelled = self._cancelled, False
        return cancelled

    def set_aside(self) -> None:
        """Keep the unread bytes until `bring_back`."""
        self.aside = bytes(self._unread[self._at :])
        self._unread.clear()
        self._at = 0

    def bring_back(self) -> None:
        """Read on with the bytes that were set aside; newer ones are lost."""
        if self.aside is not None:
            self._unread, self._at, self.aside = bytearray(self.aside), 0, None

    @property
    def waiting(self) -> int:
        """Bytes that are received and not yet read."""
        return len(self._unread) - self._at + self._cancelled

    @property
    def keeps_commands(self) -> bool:
        """Whether printable commands may be plain text: in a `$` line or a comment in
        parentheses."""
        return self._verbatim in KEEPING

    def next_line(self) -> FirmwareLine | None:
        """Read up to the next line end; None if there is none yet."""
        while found := _LINE_END.search(self._unread, self._at):
            self._read(self._unread[self._at : found.start()])
            self._at = found.end()
            second = self._last_end not in (b"", found[0]) and not (self._line or self._too_long)
            if second:  # half of CR LF or LF CR
                self._last_end = b""
                continue
            self._last_end = bytes(found[0])
            return self._end()
        self._read(self._unread[self._at :])
        self._unread.clear()
        self._at = 0
        return None

    def _read(self, text: bytearray) -> None:
        room = LONGEST_LINE - len(self._line)
        if not self._verbatim and len(text) <= room and _ORDINARY.fullmatch(text):
            self._line += text if self._line else text.lstrip(b" ")
            return
        for byte in text:
            if self._too_long:
                return
            if byte == BACKSPACE or (byte == DELETE and self.keeps_commands):
                del self._line[-1:]
            elif byte < DELETE or self.keeps_commands:
                self._add(byte)

    def _add(self, byte: int) -> None:
        if byte == 0x20 and not self._line:
            return
        self._note(chr(byte))
        if len(self._line) < LONGEST_LINE:
            self._line.append(byte)
        else:
            self._too_long = True

    def _note(self, character: str) -> None:
        if (not self._line and character in "$[") or (not self._verbatim and character in "(;"):
            self._verbatim = character
        elif self._verbatim == "(" and character == ")":
            self._verbatim = ""

    def _begin(self) -> None:
        self._line.clear()
        self._too_long, self._verbatim = False, ""

    def _end(self) -> FirmwareLine:
        line = FirmwareLine(self._line.decode("latin-1"), self._too_long)
        self._begin()
        if self._at > BUFFER_BYTES:
            del self._unread[: self._at]
            self._at = 0
        return line

    # ── snapshots ──

    def save(self) -> SavedBuffer:
        return SavedBuffer(
            unread=bytes(self._unread[self._at :]),
            part=bytes(self._line),
            too_long=self._too_long,
            last_end=self._last_end,
            verbatim=self._verbatim,
            cancelled=self._cancelled,
            aside=self.aside,
        )

    def load(self, saved: SavedBuffer) -> None:
        self._unread, self._at = bytearray(saved.unread), 0
        self._line = bytearray(saved.part)
        self._too_long, self._last_end = saved.too_long, saved.last_end
        self._verbatim = saved.verbatim
        self._cancelled, self.aside = saved.cancelled, saved.aside
