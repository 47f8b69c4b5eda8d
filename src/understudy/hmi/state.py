"""Frames for browsers: pulled from the state socket while somebody looks, the same bytes for all.

A trail grows from frame to frame, so whoever missed a frame is given one of his own that begins
where his knowledge ends. Per browser there is one slot, which holds the latest frame or none: a
browser that does not read slows nobody and takes no memory.
"""

import asyncio
import contextlib
import logging
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

log = logging.getLogger(__name__)

RATE_HZ = 30.0
PATIENCE_SECONDS = 2.0
RETRY_SECONDS = 0.25
LARGEST_FRAME = 16 * 1024 * 1024
LENGTH = struct.Struct(">I")

Known = dict[str, tuple[int, int]]
"""Robot → how many points of its trail, and of which version of it."""


class Header(Struct, frozen=True):
    """The part of a frame that matters on the way."""

    trail: dict[str, tuple[int, list[msgspec.Raw], int]] = {}


_header = msgspec.msgpack.Decoder(Header)
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Frame:
    """What goes to a browser: what he must know to make sense of it, and what he knows with it."""

    data: bytes
    before: Known
    after: Known

    def fits(self, known: Known) -> bool:
        return all(not first or known.get(r) == (first, v) for r, (first, v) in self.before.items())


@dataclass(eq=False)
class Listener:
    """One browser: its slot, and what it knows."""

    _slot: Frame | None = None
    _filled: asyncio.Event = field(default_factory=asyncio.Event)
    known: Known = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """It has taken all there was."""
        return self._slot is None

    def offer(self, frame: Frame) -> None:
        self._slot = frame
        self._filled.set()

    async def take(self) -> bytes:
        while (frame := self._slot) is None:
            await self._filled.wait()
        self._empty()
        self.known = frame.after
        return frame.data

    def start_anew(self) -> None:
        self._empty()
        self.known = {}

    def _empty(self) -> None:
        self._slot = None
        self._filled.clear()


class StateFeed:
    """The one who pulls; made and used on one event loop."""

    def __init__(self, address: str, *, rate_hz: float = RATE_HZ) -> None:
        """``address``: tcp://… of the state socket."""
        where = urlsplit(address)
        self._where = where.hostname or "", where.port or 0
        self._period = 1.0 / rate_hz
        self._listeners: dict[Listener, None] = {}
        self._wanted = asyncio.Event()
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._known: Known = {}
        self._task: asyncio.Task[None] | None = None
        self._heard = float("-inf")

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._pull_for_ever())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._hang_up()

    @property
    def stale(self) -> float:
        """Seconds since the last frame; infinite if there was none."""
        return time.monotonic() - self._heard

    @contextlib.contextmanager
    def listening(self) -> Iterator[Listener]:
        """Frames are pulled as long as somebody is in here."""
        listener = Listener()
        self._listeners[listener] = None
        self._wanted.set()
        try:
            yield listener
        finally:
            del self._listeners[listener]
            if not self._listeners:
                self._wanted.clear()

    async def serve(self, websocket: WebSocket) -> None:
        """A browser, until it goes."""
        await websocket.accept()
        with self.listening() as listener:
            sender = asyncio.get_running_loop().create_task(_send(websocket, listener))
            try:
                while (await websocket.receive())["type"] != "websocket.disconnect":
                    pass
            finally:
                sender.cancel()
                await asyncio.wait([sender])

    # ── inside ──

    async def _pull_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            begun = loop.time()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._give_all()
            except (OSError, EOFError, ValueError, msgspec.MsgspecError) as problem:
                log.debug("no frame: %r", problem)
                self._hang_up()
                await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(max(0.0, self._period - (loop.time() - begun)))

    async def _give_all(self) -> None:
        await self._connected()
        frame = await self._pull(self._known)
        self._known, self._heard = frame.after, time.monotonic()
        for listener in list(self._listeners):
            if frame.fits(listener.known):
                listener.offer(frame)
            elif listener.waits:
                listener.offer(await self._pull(listener.known))

    async def _pull(self, known: Known) -> Frame:
        reader, writer = await self._connected()
        request = _encoder.encode({"want": "frame", "trail_from": known})
        writer.write(LENGTH.pack(len(request)) + request)
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        if length > LARGEST_FRAME:
            raise ValueError(f"a frame of {length} bytes")
        data = await reader.readexactly(length)
        trail = _header.decode(data).trail
        return Frame(
            data,
            before={robot: (first, version) for robot, (first, _, version) in trail.items()},
            after={robot: (n + len(points), v) for robot, (n, points, v) in trail.items()},
        )

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._line is None:
            self._line = await asyncio.open_connection(*self._where)
            self._known = {}
            for listener in self._listeners:
                listener.start_anew()  # it may be another cell
        return self._line

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line[1].transport.abort()
            self._line = None


async def _send(websocket: WebSocket, listener: Listener) -> None:
    # One that has gone is also noticed where its messages are awaited.
    with contextlib.suppress(OSError, RuntimeError, WebSocketDisconnect):
        while True:
            await websocket.send_bytes(await listener.take())
