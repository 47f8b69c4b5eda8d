"""State frames for browsers: requested from the state socket while a browser is connected.

Two feeds use it: the frames of the cell, and those of its mobile robots (`want`).

All browsers get the same bytes. A trail grows from frame to frame, so a browser that missed a frame
gets one of its own that continues the trail it has. Each browser has one slot for the latest frame:
a browser that does not read neither slows the others nor takes memory.
"""

import asyncio
import contextlib
import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

log = logging.getLogger(__name__)

RATE_HZ = 30.0
GROUP_RATE_HZ = 10.0
TIMEOUT_SECONDS = 2.0
RETRY_SECONDS = 0.25
BYTES_PER_SECOND = 1.5e6
"""Of one feed: the frames of a cell with a thousand robots come at a lower rate."""
LARGEST_FRAME = 16 * 1024 * 1024
LENGTH = struct.Struct(">I")

Known = dict[str, tuple[int, int]]
"""Robot → (number of trail points, version of the trail)."""


class FrameHeader(Struct, frozen=True):
    """The fields of a frame that this process reads."""

    trail: dict[str, tuple[int, list[msgspec.Raw], int]] = {}
    error: dict[str, int | str] | None = None
    """The request was refused: this is no frame."""


_header = msgspec.msgpack.Decoder(FrameHeader)
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class StateFrame:
    """A frame, the trail points that it builds on, and those known after it."""

    data: bytes
    before: Known
    after: Known

    def fits(self, known: Known) -> bool:
        return all(not first or known.get(r) == (first, v) for r, (first, v) in self.before.items())


@dataclass(eq=False)
class Subscriber:
    """A browser that gets frames: the next one for it, and the trail points that it has."""

    _slot: StateFrame | None = None
    _filled: asyncio.Event = field(default_factory=asyncio.Event)
    known: Known = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether its slot is empty."""
        return self._slot is None

    def offer(self, frame: StateFrame) -> None:
        self._slot = frame
        self._filled.set()

    async def take(self) -> bytes:
        while (frame := self._slot) is None:
            await self._filled.wait()
        self._empty()
        self.known = frame.after
        return frame.data

    def restart(self) -> None:
        self._empty()
        self.known = {}

    def _empty(self) -> None:
        self._slot = None
        self._filled.clear()


class StateFeed:
    """Requests frames and gives them to the browsers; made and used on one event loop."""

    def __init__(
        self,
        address: str,
        *,
        want: str = "frame",
        rate_hz: float = RATE_HZ,
        secret: str | None = None,
    ) -> None:
        """``address``: tcp://… of the state socket; ``secret``: of the cell's run; ``want``: what
        is requested."""
        self._secret = secret
        self._want = want
        place = urlsplit(address)
        self._address = place.hostname or "", place.port or 0
        self._period = 1.0 / rate_hz
        self._subscribers: dict[Subscriber, None] = {}
        self._wanted = asyncio.Event()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._known: Known = {}
        self._task: asyncio.Task[None] | None = None
        self._size = 0

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._disconnect()

    @contextlib.contextmanager
    def subscribed(self) -> Iterator[Subscriber]:
        """Frames are requested while at least one subscriber is inside."""
        subscriber = Subscriber()
        self._subscribers[subscriber] = None
        self._wanted.set()
        try:
            yield subscriber
        finally:
            del self._subscribers[subscriber]
            if not self._subscribers:
                self._wanted.clear()

    async def serve(self, websocket: WebSocket) -> None:
        """Serves one browser until it disconnects."""
        await websocket.accept()
        with self.subscribed() as subscriber:
            sender = asyncio.get_running_loop().create_task(_send(websocket, subscriber))
            try:
                while (await websocket.receive())["type"] != "websocket.disconnect":
                    pass
            finally:
                sender.cancel()
                await asyncio.wait([sender])

    # ── state socket ──

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            begun = loop.time()
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await self._distribute()
            except (OSError, EOFError, ValueError, msgspec.MsgspecError) as problem:
                log.debug("no frame: %r", problem)
                self._disconnect()
                await asyncio.sleep(RETRY_SECONDS)
            period = max(self._period, self._size / BYTES_PER_SECOND)
            await asyncio.sleep(max(0.0, period - (loop.time() - begun)))

    async def _distribute(self) -> None:
        await self._connected()
        frame = await self._request(self._known)
        self._known = frame.after
        self._size = len(frame.data)
        for subscriber in list(self._subscribers):
            if frame.fits(subscriber.known):
                subscriber.offer(frame)
            elif subscriber.is_idle:
                subscriber.offer(await self._request(subscriber.known))

    async def _request(self, known: Known) -> StateFrame:
        reader, writer = await self._connected()
        key = {} if self._secret is None else {"secret": self._secret}
        request = _encoder.encode({"want": self._want, "trail_from": known, **key})
        writer.write(LENGTH.pack(len(request)) + request)
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        if length > LARGEST_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        data = await reader.readexactly(length)
        header = _header.decode(data)
        if header.error is not None:
            raise ValueError(f"refused: {header.error.get('message')}")
        trail = header.trail
        return StateFrame(
            data,
            before={robot: (first, version) for robot, (first, _, version) in trail.items()},
            after={robot: (n + len(points), v) for robot, (n, points, v) in trail.items()},
        )

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
            self._known = {}
            for subscriber in self._subscribers:
                subscriber.restart()  # it may be another cell
        return self._streams

    def _disconnect(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _send(websocket: WebSocket, subscriber: Subscriber) -> None:
    # `serve` notices a disconnect as well, where it receives.
    with contextlib.suppress(OSError, RuntimeError, WebSocketDisconnect):
        while True:
            await websocket.send_bytes(await subscriber.take())
