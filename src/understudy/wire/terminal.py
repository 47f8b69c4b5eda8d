"""Pseudo-terminals, and streams over whatever terminal there is."""

import asyncio
import os
import tty
from asyncio.streams import FlowControlMixin

from understudy.errors import ConfigError

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def make_terminal(whose: str) -> tuple[int, int]:
    """Our end of it and theirs, raw: every byte goes through as it is.

    Who keeps their end open, too, never hears that a program has closed it: as on a cable.
    """
    try:
        ours, theirs = os.openpty()
    except OSError as problem:
        raise ConfigError(f"{whose} gets no pseudo-terminal: {problem.strerror}") from None
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    return ours, theirs


class _WriteEnd(FlowControlMixin):
    """Takes the reading end along when it is closed."""

    def __init__(self, read_end: asyncio.BaseTransport) -> None:
        super().__init__()
        self._read_end = read_end

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._read_end.close()


async def streams_over(terminal: int) -> Streams:
    """Streams over an open terminal, which stays open when they are closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, sink = (os.fdopen(os.dup(terminal), mode, buffering=0) for mode in ("rb", "wb"))
    read_end, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    write_end, flow = await loop.connect_write_pipe(lambda: _WriteEnd(read_end), sink)
    return reader, asyncio.StreamWriter(write_end, flow, None, loop)
