"""A face on a pseudo-terminal: what a serial port would be, for programs that want one.

There is one line, and it is always open: nobody hears that a program has opened or closed the other
end, as on a serial cable. What nobody reads stays until somebody does, up to a bound. A cable is
not hung up on: if the face does, the next bytes begin a new conversation.
"""

import asyncio
import contextlib
import os

from understudy.wire.exchange import UNLIMITED, Line
from understudy.wire.read_budget import ReadBudget
from understudy.wire.tcp import LARGEST_BACKLOG, Switchboard
from understudy.wire.terminal import make_terminal


class PtyServer:
    """One endpoint on one terminal; `Sink` of its line."""

    def __init__(self, endpoint: str, board: Switchboard) -> None:
        self.endpoint = endpoint
        self._board = board
        self._line: Line | None = None
        self._ours = self._theirs = -1
        self._unsent = bytearray()
        self._helping = ReadBudget()

    async def start(self) -> str:
        """Make the terminal, and say where it is."""
        self._ours, self._theirs = make_terminal(self.endpoint)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours, self._read)
        self._line = self._board.open(self.endpoint, self)
        return f"pty:{os.ttyname(self._theirs)}"

    async def stop(self) -> None:
        if self._ours < 0:
            return
        if self._line is not None:
            self._board.closed(self._line)
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        os.close(self._ours)
        os.close(self._theirs)
        self._ours = self._theirs = -1

    # ── sink ──

    def room(self) -> int:
        return UNLIMITED if not self._unsent else max(0, LARGEST_BACKLOG - len(self._unsent))

    def send(self, data: bytes) -> None:
        self._unsent += data
        self._write()

    def listen(self, willing: bool) -> None:
        if willing:
            self._loop.add_reader(self._ours, self._read)
        else:
            self._loop.remove_reader(self._ours)

    def hang_up(self) -> None:
        """The cable stays; the conversation is over."""
        self._line = None

    # ── terminal ──

    def _read(self) -> None:
        try:
            data = os.read(self._ours, self._helping.size)
        except BlockingIOError:
            return
        if self._line is None:
            self._line = self._board.open(self.endpoint, self)
        with self._helping:
            self._board.receive(self._line, data)

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            del self._unsent[: os.write(self._ours, self._unsent)]
        if self._unsent:
            self._loop.add_writer(self._ours, self._drain)

    def _drain(self) -> None:
        self._loop.remove_writer(self._ours)
        self._write()
        if not self._unsent and self._line is not None:
            self._board.drained(self._line)
