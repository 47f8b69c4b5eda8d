"""A ZeroMQ ROUTER socket: request and reply with any number of peers, each with its identity.

pyzmq belongs to the extra `understudy[hmi]` and is imported when a socket is opened. The identity
of a peer is its name; the frames between identity and payload (REQ clients send an empty one) are
the reply address of its messages, in hexadecimal, each after a slash.
"""

import asyncio
import contextlib
import logging
import socket as sockets
from collections.abc import Awaitable, Callable, Coroutine
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from understudy.errors import NotInstalledError, install_command
from understudy.ports import UNLIMITED, WireMessage
from understudy.wire.connection import Connection
from understudy.wire.interface import PeerEvents, Port, Server
from understudy.wire.tcp import cannot_listen

if TYPE_CHECKING:
    import zmq.asyncio

log = logging.getLogger(__name__)

SELECTED_BY: dict[str, Any] = {}
LARGEST_MESSAGE = 8 * 1024 * 1024
MOST_QUEUED = 100
"""Messages that wait to be sent to, or read from, one peer; ZeroMQ drops what is beyond."""
MOST_PEERS = 1000
"""Sessions that are kept. ZeroMQ does not report that a peer has left: the session that was idle
for the longest time is closed when one more is opened."""
ZAP_ADDRESS, ZAP_DOMAIN = "inproc://zeromq.zap.01", b"understudy"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a ZeroMQ socket listens; port 0: any free one."""

    host: str = "127.0.0.1"
    port: Port = 0

    def placed(self, port: int | None, *, ephemeral: bool) -> "Config":
        free = 0 if ephemeral else self.port
        return msgspec.structs.replace(self, port=free if port is None else port)

    def listens_on(self) -> tuple[str, int] | None:
        return self.host, self.port

    def server(self, endpoint: str, events: PeerEvents) -> Server:
        return ZmqRouter(endpoint, self, events)


def is_installed() -> bool:
    return find_spec("zmq") is not None


class ZmqRouter:
    """One endpoint on one ROUTER; plain REQ clients are served as well as DEALERs."""

    def __init__(self, endpoint: str, config: Config, events: PeerEvents) -> None:
        self.endpoint = endpoint
        self._config = config
        self._events = events
        self._peers: dict[bytes, Connection] = {}
        self.socket: ZmqSocket | None = None

    async def start(self) -> str:
        self.socket = await bind(self.endpoint, self._config, "ROUTER")
        self.socket.begin(self._serve(self.socket.raw))
        return self.socket.where

    async def stop(self) -> None:
        if self.socket is not None:
            await self.socket.close()
            self.socket = None

    async def _serve(self, raw: "zmq.asyncio.Socket") -> None:
        while True:
            identity, *envelope, payload = await raw.recv_multipart()
            connection = self._peers.pop(identity, None) or self._open(identity)
            self._peers[identity] = connection  # the last one used is the last in the dict
            reply_to = "".join(f"/{frame.hex()}" for frame in envelope)
            self._events.receive(connection, WireMessage("", payload, reply_to))
            # A future that is done does not give way, and there may always be another message.
            await asyncio.sleep(0)

    def _open(self, identity: bytes) -> Connection:
        idle = (i for i, c in self._peers.items() if not c.session.owed())
        if len(self._peers) >= MOST_PEERS and (oldest := next(idle, None)) is not None:
            self._events.closed(self._peers.pop(oldest))
        return self._events.open(self.endpoint, RouterPeer(self, identity), identity.hex())

    def forget(self, identity: bytes) -> None:
        self._peers.pop(identity, None)


class RouterPeer:
    """`Sink` of one peer: sends messages to its identity."""

    def __init__(self, router: ZmqRouter, identity: bytes) -> None:
        self._router = router
        self._identity = identity

    def room(self) -> int:
        return UNLIMITED

    def send(self, message: WireMessage) -> None:
        envelope = [bytes.fromhex(frame) for frame in message.address.split("/")[1:]]
        if self._router.socket is not None:
            self._router.socket.send([self._identity, *envelope, message.payload])

    def read_more(self, wanted: bool) -> None:
        return None  # a ROUTER cannot stop reading from one peer; its messages wait in the inbox

    def close(self) -> None:
        self._router.forget(self._identity)


# ── sockets ─────────────────────────────────────────────────────────────────────────────────────


class ZmqSocket:
    """A socket that listens, and the tasks that serve it."""

    def __init__(self, raw: "zmq.asyncio.Socket", context: "zmq.asyncio.Context") -> None:
        import zmq

        self.raw = raw
        self.where = raw.get_string(zmq.LAST_ENDPOINT)
        self._context = context
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def send(self, frames: list[bytes]) -> None:
        """Neither kind of socket waits for a peer that takes nothing; its messages are dropped."""
        sending: Awaitable[Any] = self.raw.send_multipart(frames)
        future = asyncio.ensure_future(sending)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.raw.close(0)
        self._context.term()


async def bind(
    endpoint: str, config: Config, kind: str, password: "PasswordCheck | None" = None
) -> ZmqSocket:
    """Opens a socket of a kind (`ROUTER`, `XPUB`) that listens; ``password``: checks its peers'."""
    if not is_installed():
        raise NotInstalledError(f"needs pyzmq: {install_command('pyzmq')}")
    import zmq
    import zmq.asyncio

    context = zmq.asyncio.Context()
    raw = context.socket(getattr(zmq, kind))
    raw.set(zmq.LINGER, 0)
    raw.set(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
    raw.set(zmq.SNDHWM, MOST_QUEUED)
    raw.set(zmq.RCVHWM, MOST_QUEUED)
    # With a ZAP domain, peers that speak ZMTP 1 or 2 are refused. ZMTP 1 has no greeting: the bytes
    # of an HTTP request, sent by any web page, would be read as messages.
    raw.set(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
    if password is not None:
        raw.set(zmq.PLAIN_SERVER, 1)
    if kind == "XPUB":
        raw.set(zmq.XPUB_VERBOSER, 1)
    handler = None if password is None else _password_handler(context)
    try:
        host = await _resolved(config)
        raw.set(zmq.IPV6, int(":" in host))
        raw.bind(f"tcp://{f'[{host}]' if ':' in host else host}:{config.port}")
        bound = ZmqSocket(raw, context)
        if password is not None and handler is not None:
            bound.begin(_check_passwords(handler, password))
        return bound
    except (OSError, UnicodeError, zmq.ZMQError) as problem:
        raw.close(0)
        if handler is not None:
            handler.close(0)
        context.term()
        if isinstance(problem, zmq.ZMQError):
            problem = OSError(problem.errno, problem.strerror)
        raise cannot_listen(endpoint, config.host, config.port, problem) from None


async def _resolved(config: Config) -> str:
    """ZeroMQ binds to addresses, not to names."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(config.host, config.port, type=sockets.SOCK_STREAM)
    return str(found[0][4][0])


# ── passwords ───────────────────────────────────────────────────────────────────────────────────


PasswordCheck = Callable[[bytes], bool]


def _password_handler(context: "zmq.asyncio.Context") -> "zmq.asyncio.Socket":
    """The socket on which ZeroMQ asks whether a peer may connect (ZAP, RFC 27)."""
    import zmq

    handler = context.socket(zmq.REP)
    handler.set(zmq.LINGER, 0)
    handler.bind(ZAP_ADDRESS)
    return handler


async def _check_passwords(handler: "zmq.asyncio.Socket", password: PasswordCheck) -> None:
    """Answers ZeroMQ's questions: version, request id, domain, address, identity, mechanism, user
    and password."""
    try:
        while True:
            version, number, _, _, _, mechanism, *credentials = await handler.recv_multipart()
            fits = mechanism == b"PLAIN" and len(credentials) == 2 and password(credentials[1])
            status = [b"200", b"OK"] if fits else [b"400", b"wrong password"]
            await handler.send_multipart([version, number, *status, b"", b""])
    finally:
        handler.close(0)
