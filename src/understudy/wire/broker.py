"""What the wires to brokers share: attempts to connect, and the queue of messages to the broker."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from understudy.errors import ConfigError
from understudy.ports import UNLIMITED, WireMessage
from understudy.wire.task_shutdown import end_tasks

log = logging.getLogger(__name__)

LAST_MESSAGES_SECONDS = 2.0
"""Wall time for the last messages when the cell ends."""
LARGEST_PENDING = 16 << 20
"""Bytes that may wait to be sent, or were sent and not yet read by the broker."""
BEHIND = 256 * 1024
"""With more bytes than these the wire is behind: in lock-step time waits."""


class BrokerLink(Protocol):
    """One connection to a broker."""

    async def finish(self) -> None:
        """Returns when everything was sent."""
        ...


class BrokerConnection:
    """Connects an endpoint to its broker, and again when the connection is lost.

    ``serve`` is one connection from its begin to its end, which raises an error; it sets `link` and
    calls `connected`. ``pause`` waits before the next attempt. ``again`` is added to a message
    about a connection that cannot be made.
    """

    def __init__(
        self,
        endpoint: str,
        serve: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[None]],
        *,
        again: str = "",
    ) -> None:
        self.link: BrokerLink | None = None
        self._endpoint = endpoint
        self._serve = serve
        self._pause = pause
        self._again = again
        self._tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the first attempt has succeeded or failed."""
        self._task: asyncio.Task[None] | None = None
        self._said = ""

    @property
    def is_first(self) -> bool:
        """Whether no attempt to connect has ended yet."""
        return not self._tried.done()

    async def start(self) -> None:
        """Tries to connect once; later attempts come by themselves. A ConfigError of the first
        attempt ends it."""
        self._task = asyncio.create_task(self._run())
        await self._tried

    async def stop(self) -> None:
        """Sends the last messages, and disconnects."""
        if self.link is not None:
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self.link.finish(), LAST_MESSAGES_SECONDS)
        if self._task is not None:
            await end_tasks(self._task)

    def connected(self) -> None:
        """The connection can be used."""
        self._said = ""
        if not self._tried.done():
            self._tried.set_result(None)

    async def _run(self) -> None:
        while True:
            try:
                await self._serve()
            except ConfigError as problem:
                if not self._tried.done():
                    self._tried.set_exception(problem)
                    return
                self._say(str(problem))
            except OSError as problem:
                self._say(str(problem))
            except Exception:
                log.exception("%s: a bug; the connection is made anew", self._endpoint)
            self.link = None
            if not self._tried.done():
                self._tried.set_result(None)
            await self._pause()

    def _say(self, text: str) -> None:
        """Logs a problem once, not at every attempt."""
        if text != self._said:
            log.warning("%s: %s%s", self._endpoint, text, self._again)
            self._said = text


class BrokerQueue:
    """The parts of a `Sink` that do not depend on the broker. A message costs ``overhead`` bytes
    beside its address and payload."""

    def __init__(self, overhead: int) -> None:
        self._overhead = overhead
        self._pending = 0
        self._sendable = asyncio.Event()
        self._readable = asyncio.Event()
        self._readable.set()

    def room(self) -> int:
        return UNLIMITED if self._pending == 0 else max(0, LARGEST_PENDING - self._pending)

    def read_more(self, wanted: bool) -> None:
        if wanted:
            self._readable.set()
        else:
            self._readable.clear()

    def behind(self) -> bool:
        return self._pending > BEHIND

    def _note_waiting(self, size: int) -> None:
        """Messages of this size were queued."""
        self._pending += size
        self._sendable.set()

    def _size(self, message: WireMessage) -> int:
        return len(message.payload) + len(message.address) + self._overhead
