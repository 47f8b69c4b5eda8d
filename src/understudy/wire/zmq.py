"""ZeroMQ: a ROUTER that answers, and a publisher that tells what is new ten times a second.

pyzmq belongs to the extra `understudy[hmi]` and is imported when a socket is opened.
"""

import asyncio
import contextlib
import logging
import socket as sockets
from collections.abc import Awaitable, Coroutine
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from understudy.ports.hmi import MessageFace
from understudy.wire.tcp import Address, Port, cannot_listen

if TYPE_CHECKING:
    import zmq.asyncio

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 8 * 1024 * 1024
MOST_WAITING = 100
"""Messages that wait for, or from, one peer; a peer that takes none loses what is beyond."""
NEWS_SECONDS = 0.1
MISSING = "needs pyzmq: pip install 'understudy[hmi]'"

SUBSCRIBED, UNSUBSCRIBED = 1, 0


class Bound(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a ZeroMQ socket listens. Port 0: a free one."""

    host: str = "127.0.0.1"
    port: Port = 0


def is_installed() -> bool:
    return find_spec("zmq") is not None


class ZmqRouter:
    """Answers every message; plain REQ clients are served as well as DEALERs."""

    def __init__(self, endpoint: str, address: Bound, face: MessageFace) -> None:
        self.endpoint = endpoint
        self._address = address
        self._face = face
        self._open: _Open | None = None

    async def start(self) -> str:
        import zmq

        self._open = await _bind(self.endpoint, self._address, zmq.ROUTER)
        self._open.begin(self._serve(self._open.socket))
        return self._open.where

    async def stop(self) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def _serve(self, socket: "zmq.asyncio.Socket") -> None:
        while True:
            *envelope, data = await socket.recv_multipart()
            self._answer(envelope, data)
            # A future that is done does not give way, and there may always be another message.
            await asyncio.sleep(0)

    def _answer(self, to: list[bytes], data: bytes) -> None:
        """Whatever goes wrong with one message, the next may be a stop."""
        try:
            self._face.receive(data, lambda answer: self._send(to, answer))
        except Exception:
            log.exception("%s: a message that could not be answered", self.endpoint)
            self._send(to, self._face.apology(data))

    def _send(self, to: list[bytes], answer: bytes) -> None:
        if self._open is not None:
            _forget(self._open.socket.send_multipart([*to, answer]))


class ZmqPublisher:
    """Tells the news at 10 Hz of wall time while somebody listens, and at once to who joins."""

    def __init__(self, endpoint: str, address: Bound, face: MessageFace) -> None:
        self.endpoint = endpoint
        self._address = address
        self._face = face
        self._open: _Open | None = None
        self._listeners = 0

    async def start(self) -> str:
        import zmq

        self._open = await _bind(self.endpoint, self._address, zmq.XPUB)
        self._open.begin(self._greet(self._open.socket))
        self._open.begin(self._tell(self._open.socket))
        return self._open.where

    async def stop(self) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def _greet(self, socket: "zmq.asyncio.Socket") -> None:
        """Every subscription is told to a publisher of this kind."""
        while True:
            message = await socket.recv()
            if message[:1] == bytes([SUBSCRIBED]):
                self._listeners += 1
                _forget(socket.send(self._face.news()))
            elif message[:1] == bytes([UNSUBSCRIBED]):
                self._listeners -= 1
            await asyncio.sleep(0)

    async def _tell(self, socket: "zmq.asyncio.Socket") -> None:
        while True:
            await asyncio.sleep(NEWS_SECONDS)
            if self._listeners > 0:
                _forget(socket.send(self._face.news()))


class _Open:
    """A socket that listens, and the tasks that serve it."""

    def __init__(self, socket: "zmq.asyncio.Socket", context: "zmq.asyncio.Context") -> None:
        import zmq

        self.socket = socket
        self.where = socket.get_string(zmq.LAST_ENDPOINT)
        self._context = context
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.socket.close(0)
        self._context.term()


async def _bind(endpoint: str, address: Bound, kind: int) -> _Open:
    import zmq
    import zmq.asyncio

    context = zmq.asyncio.Context()
    socket = context.socket(kind)
    socket.set(zmq.LINGER, 0)
    socket.set(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
    socket.set(zmq.SNDHWM, MOST_WAITING)
    socket.set(zmq.RCVHWM, MOST_WAITING)
    if kind == zmq.XPUB:
        socket.set(zmq.XPUB_VERBOSER, 1)
    try:
        host = await _resolved(address)
        socket.set(zmq.IPV6, int(":" in host))
        socket.bind(f"tcp://{f'[{host}]' if ':' in host else host}:{address.port}")
        return _Open(socket, context)
    except (OSError, UnicodeError, zmq.ZMQError) as problem:
        socket.close(0)
        context.term()
        if isinstance(problem, zmq.ZMQError):
            problem = OSError(problem.errno, problem.strerror)
        where = Address(host=address.host, port=address.port)
        raise cannot_listen(endpoint, where, problem) from None


async def _resolved(address: Bound) -> str:
    """ZeroMQ binds to addresses, not to names."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=sockets.SOCK_STREAM)
    return str(found[0][4][0])


def _forget(sending: Awaitable[Any]) -> None:
    """Neither kind of socket waits for a peer that takes nothing; what it misses is lost."""
    future = asyncio.ensure_future(sending)
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
