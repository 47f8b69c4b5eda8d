"""A door on a websocket: its server, its lock, and for each client a bounded queue.

Replies are sent in their order; while too many wait nothing more is read from the client. Values
of topics wait by key: the oldest ones are dropped and counted when a client does not take them.
On loopback a door is open, but not for pages of other sites, which a browser names by their
origin; on other addresses the address (`?token=…`) or a header has the token, or the first message
of a client whose protocol has a place for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from understudy.app.live import Live
from understudy.doors.channels import CellChannels, Listener
from understudy.errors import UNREADABLE, ConfigError, NotInstalledError, Refused, needs
from understudy.operator.doors import FIRST_REQUEST_SECONDS, Admission, Lock, real_refusal
from understudy.ports.access import is_loopback
from understudy.ports.hmi import Later

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 4 * 1024 * 1024
MOST_CLIENTS = 64
MOST_REPLIES, MOST_REPLY_BYTES = 100, 16 * 1024 * 1024
"""Replies that wait for a client before nothing more is read from it, and their size."""
STALLED_SECONDS = 30.0
"""A client that takes no bytes for this time is disconnected."""
BYE = 1008
ENDING_SECONDS = 5.0

Frame = bytes | str
Make = Callable[[], Awaitable[Frame] | Frame]
"""Makes a message when its turn has come."""


class Client:
    """One client of a door. `dropped`: values that it did not take in time."""

    def __init__(self, live: Live, connection: Any, lock: Lock, *, text: bool) -> None:
        """``text``: bytes are sent as text; otherwise only strings are."""
        self.live = live
        self.dropped = 0
        self.admission = Admission(lock)
        self._connection = connection
        self._text = text
        self._replies: deque[Frame] = deque()
        self._reply_bytes = 0
        self._values: dict[str, deque[Make]] = {}
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._gone = False

    def reply(self, data: Frame) -> None:
        self._replies.append(data)
        self._reply_bytes += len(data)
        self._wake.set()

    def offer(self, key: str, make: Make, longest: int = 1) -> None:
        """A value of a topic; of more than ``longest`` that wait the oldest is dropped."""
        waiting = self._values.setdefault(key, deque())
        waiting.append(make)
        while len(waiting) > longest:
            waiting.popleft()
            self.dropped += 1
        self._wake.set()

    def replace(self, key: str, make: Make) -> None:
        """A value in place of the one that waits, which does not count as dropped."""
        self._values[key] = deque([make])
        self._wake.set()

    def forget(self, key: str) -> None:
        self._values.pop(key, None)

    async def room(self) -> None:
        """Waits until the client has taken replies; in any case the others have their turn."""
        await asyncio.sleep(0)
        while self._is_full() and not self._gone:
            self._room.clear()
            await self._room.wait()

    def _is_full(self) -> bool:
        return len(self._replies) >= MOST_REPLIES or self._reply_bytes >= MOST_REPLY_BYTES

    async def call(self, command: str, parameters: dict[str, Any]) -> Any | Refused:
        """The answer of a command or query of the cell."""
        commands = self.live.commands
        if not self.admission.trusted and commands.needs_secret(command):
            return real_refusal(command)
        answer = commands.call(command, parameters, "operator")
        if isinstance(answer, Later):
            later = asyncio.get_running_loop().create_future()
            answer.then(lambda found: None if later.done() else later.set_result(found))
            answer = await later
        return answer

    async def send_all(self) -> None:
        """Sends what waits, until the connection is closed."""
        try:
            while True:
                if not (data := await self._next()):
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                async with asyncio.timeout(STALLED_SECONDS):
                    text = self._text if isinstance(data, bytes) else None
                    await self._connection.send(data, text=text)
        finally:
            self._gone = True
            self._room.set()

    async def _next(self) -> Frame:
        if self._replies:
            data = self._replies.popleft()
            self._reply_bytes -= len(data)
            self._room.set()
            return data
        if not self._values:
            return b""
        key = next(iter(self._values))
        waiting = self._values.pop(key)
        make = waiting.popleft()
        if waiting:
            self._values[key] = waiting  # behind the other topics
        made = make()
        return made if isinstance(made, bytes | str) else await made

    async def close(self, why: str) -> None:
        await self._connection.close(BYE, why[:100])


class Session(Protocol):
    """What a door does with the messages of one client."""

    async def receive(self, data: str | bytes) -> None: ...

    def closed(self) -> None: ...


def object_of(data: bytes | str, like: str) -> dict[str, Any] | Refused:
    """A JSON object that a client has sent; ``like``: one as an example."""
    try:
        given = msgspec.json.decode(data)
    except UNREADABLE as problem:
        return Refused(f"not JSON: {str(problem)[:200]}")
    return given if isinstance(given, dict) else Refused(f"not a JSON object, as {like}")


class Feed:
    """The channels of a cell and a tick of the wall clock, while clients want them."""

    def __init__(
        self, channels: CellChannels, hear: Listener, tick: Callable[[], None], seconds: float
    ) -> None:
        self.listening = False
        self._channels, self._hear, self._tick, self._seconds = channels, hear, tick, seconds
        self._stop: Callable[[], None] = lambda: None
        self._timer: asyncio.TimerHandle | None = None

    def want(self, *, messages: bool, ticks: bool) -> None:
        if messages and not self.listening:
            self._stop = self._channels.listen(self._hear)
        elif self.listening and not messages:
            self._stop()
        self.listening = messages
        if ticks and self._timer is None:
            self._run()
        elif self._timer is not None and not ticks:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._run)
        self._tick()


def address_of(live: Live, option: str, value: str, port: int) -> tuple[str, int]:
    """Host and port of `[[HOST:]PORT]`; without a port the usual one, or a free one."""
    host, _, given = value.rpartition(":")
    if not given:
        return host or "127.0.0.1", 0 if live.ephemeral else port
    if not given.isdecimal() or int(given) > 65535:
        raise ConfigError(f"--{option}", value=value, allowed="PORT or HOST:PORT, as 0 or ::1:9090")
    return host.strip("[]") or "127.0.0.1", int(given)


@asynccontextmanager
async def served(
    live: Live,
    name: str,
    place: tuple[str, int],
    session: Callable[[Client], Session],
    *,
    text: bool = True,
    subprotocols: Sequence[str] = (),
    token_in_messages: bool = True,
) -> AsyncIterator[str]:
    """Serves websockets; the value is the address. ``session``: of a client that is connected.
    ``subprotocols``: one of them is needed, if any are given. ``token_in_messages``: the first
    message can have the token; otherwise a locked door refuses clients that connect without it."""
    try:
        from websockets.asyncio.server import serve
        from websockets.exceptions import ConnectionClosed
    except ImportError:
        raise NotInstalledError(f"the door {name} {needs('websockets')}") from None
    lock = live.lock_at(name, place[0])
    clients = 0

    def admit(connection: Any, request: Any) -> Any:
        """Refuses a request that no client may make; None: go on."""
        given = _token(request)
        fits = False if given is None else lock.check(given)
        if given is None and lock.required and not token_in_messages:
            words = "this door needs the token of the cell: open ws://…/?token=TOKEN\n"
            return connection.respond(HTTPStatus.UNAUTHORIZED, words)
        if isinstance(fits, Refused):
            return connection.respond(HTTPStatus.UNAUTHORIZED, f"{fits.reason}\n")
        origin = request.headers.get("Origin")
        if not fits and origin is not None and not is_loopback(urlsplit(origin).hostname or "-"):
            words = f"a page of {origin[:100]} needs the secret: open ws://…/?token=SECRET\n"
            return connection.respond(HTTPStatus.FORBIDDEN, words)
        if clients >= MOST_CLIENTS:
            words = f"at most {MOST_CLIENTS} clients at a time\n"
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, words)
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        if subprotocols and not {each.strip() for each in offered.split(",")} & {*subprotocols}:
            words = f"sub-protocol {offered[:100] or 'none'}; allowed: {', '.join(subprotocols)}\n"
            return connection.respond(HTTPStatus.BAD_REQUEST, words)
        return None

    async def handle(connection: Any) -> None:
        nonlocal clients
        clients += 1
        client = Client(live, connection, lock, text=text)
        client.admission.check(_token(connection.request))
        own = session(client)
        sender = asyncio.ensure_future(client.send_all())
        sender.add_done_callback(lambda done: _ended(done, connection))
        try:
            async with asyncio.timeout(None) as limit:
                if not client.admission.admitted:
                    limit.reschedule(asyncio.get_running_loop().time() + FIRST_REQUEST_SECONDS)
                async for data in connection:
                    await own.receive(data)
                    if client.admission.admitted:
                        limit.reschedule(None)
                    await client.room()
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            clients -= 1
            own.closed()
            sender.cancel()

    try:
        server = await serve(
            handle,
            *place,
            process_request=admit,
            subprotocols=subprotocols or None,  # type: ignore[arg-type]
            compression=None,
            max_size=LARGEST_MESSAGE,
            close_timeout=1.0,
            server_header=None,
            logger=_quiet(),
        )
    except OSError as problem:
        text_of = f"--{name}: {place[0]}:{place[1]} cannot be served: {problem.strerror}"
        raise ConfigError(text_of, allowed="a free port, or 0 for any") from None
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"
    finally:
        server.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), ENDING_SECONDS)


def _token(request: Any) -> str | None:
    """The token of a request: of the header `Authorization: Bearer …`, or `?token=…` of a page."""
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return str(given)
    found = parse_qs(urlsplit(request.path).query).get("token")
    return found[0] if found else None


def _ended(sender: "asyncio.Future[None]", connection: Any) -> None:
    """A sender that has failed, as after a time limit, ends its connection."""
    if not sender.cancelled() and sender.exception() is not None:
        connection.transport.abort()


def _quiet() -> logging.Logger:
    """Logs nothing: clients get an answer to what they do wrong."""
    quiet = logging.getLogger(f"{__name__}.server")
    quiet.setLevel(logging.CRITICAL)
    return quiet
