"""Limits of the HTTP server: what one client, one address and all together may occupy.

uvicorn's default protocol (httptools) has no limit on the headers of a request and parses all
requests of a packet before it answers the first. The protocol of h11 bounds an incomplete header
and stops reading while a request is under way. What it lacks is here: numbers of connections, time
limits, bodies, open pages. The answer to a client that meets a limit names it; nothing is logged.
"""

import asyncio
import json
import socket
import sys
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import h11
from nicegui import Client, core
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from understudy.hmi.access import App, Receive, Scope, Send
from understudy.ports.hmi import NOT_A_REQUEST, TOO_MUCH_AT_ONCE
from understudy.protocol.client_limits import ClientLimits

LARGEST_HEADER = 32 * 1024
"""Bytes of a request line with all headers."""
LARGEST_BODY = 8 * 1024 * 1024
ALL_BODIES = 64 * 1024 * 1024
"""Bytes of all bodies whose requests are under way."""
LARGEST_WS_MESSAGE = 1024 * 1024
LONGEST = {"headers": 10.0, "body": 60.0}
"""Seconds: from the connection, or the first byte of a later request, to the end of the headers;
from there to the end of the body."""
IDLE_SECONDS = 5
"""Between an answer and the next request of the same connection."""
STALLED_SECONDS = 30.0
"""A client that takes no bytes for this time, while some wait for it, is disconnected."""
MOST_PAGES = 100
"""Pages that are open, or were opened and not shown by a browser yet; each takes about 2 MB."""
MOST_PAGE_SOCKETS = 2 * MOST_PAGES
"""Connections of pages (socket.io), with those that were begun and not finished."""
UNSHOWN_SECONDS = 10.0
"""When all pages are taken, those that no browser has shown for this time are given up."""
TRY_AGAIN_LATER = 1013
SLICE = 16 * 1024


# ── connections ──


class BoundedHttp(H11Protocol):
    """uvicorn's HTTP over h11 with limits on connections and time. When all connections are taken,
    the oldest without a whole request yields to a new one."""

    def __init__(self, *args: Any, limits: ClientLimits[Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._phase = ""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        give_up_on_deaf_peer(transport)
        address = str((transport.get_extra_info("peername") or ("",))[0])
        if self._limits.is_full() and (oldest := self._limits.first_waiting()):
            oldest.abort()
            self._limits.leave(oldest)
        if reason := self._limits.enter(transport, address):
            self._refuse(503, reason)
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter_phase("")
        self._limits.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), SLICE):
            super().data_received(data[at : at + SLICE])
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._enter_phase("")
        self._limits.waits(self.transport, False)
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        """Called while the parser's error is handled, which says whether a limit was met."""
        problem = sys.exc_info()[1]
        if isinstance(problem, h11.RemoteProtocolError) and problem.error_status_hint == 431:
            self._refuse(431, f"the headers have more than {LARGEST_HEADER} bytes")
        else:
            self._refuse(400, msg)

    # ── time ──

    def _watch(self) -> None:
        """Begins the time limit of the phase that the client is in."""
        sends = self.conn.their_state
        self._limits.waits(self.transport, sends is h11.IDLE)
        if sends is h11.SEND_BODY:
            self._enter_phase("body")
        elif sends is h11.IDLE and (self.cycle is None or self.conn.trailing_data[0]):
            self._enter_phase("headers")
        else:
            self._enter_phase("")  # the server's turn, or idle, which uvicorn limits

    def _enter_phase(self, phase: str) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if phase:
            seconds = LONGEST[phase]
            reason = f"the {phase} took longer than {seconds:g} s"
            self._deadline = self.loop.call_later(seconds, self._refuse, 408, reason)

    def _refuse(self, status: int, reason: str) -> None:
        """Answers, if no answer has begun, and closes the connection."""
        self._enter_phase("")
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps({"code": NOT_A_REQUEST, "message": reason}).encode()
            fixed = b"".join(b"%s: %s\r\n" % each for each in self.server_state.default_headers)
            self.transport.write(
                b"HTTP/1.1 %d \r\ncontent-type: application/json\r\nconnection: close\r\n%s"
                b"content-length: %d\r\n\r\n%s" % (status, fixed, len(body), body)
            )
            self.transport.close()
        else:
            self.transport.abort()


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's websocket; it reads nothing while its client does not take the answers."""

    def __init__(self, *args: Any, limits: ClientLimits[Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.leave(self.transport)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Every ping is answered: without this a client that reads no pong fills the memory."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()


def protocols(limits: ClientLimits[Any]) -> dict[str, Any]:
    """Settings of a uvicorn server that keeps these limits."""
    return {
        "http": partial(BoundedHttp, limits=limits),
        "ws": partial(BoundedWebSocket, limits=limits),
        "h11_max_incomplete_event_size": LARGEST_HEADER,
        "timeout_keep_alive": IDLE_SECONDS,
        "ws_max_size": LARGEST_WS_MESSAGE,
    }


def give_up_on_deaf_peer(transport: asyncio.Transport) -> None:
    """Lets the system end a connection whose peer takes no bytes, also while it is being closed."""
    raw = transport.get_extra_info("socket")
    if raw is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * STALLED_SECONDS))


# ── requests ──


class Bounded:
    """ASGI middleware: limits of bodies, and of pages that are open."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        if _begins_page_socket(scope) and len(core.sio.eio.sockets) >= MOST_PAGE_SOCKETS:
            return await _refuse(scope, send, 503, TOO_MUCH_AT_ONCE, TOO_MANY_SOCKETS)
        if scope["type"] == "websocket":
            return await self._app(scope, receive, send)
        if _length(scope) > LARGEST_BODY:
            return await _refuse(scope, send, 413, NOT_A_REQUEST, TOO_LARGE)
        if _opens_page(scope) and not _room_for_page():
            reason = f"at most {MOST_PAGES} pages at a time; close some, or try again later"
            return await _refuse(scope, send, 503, TOO_MUCH_AT_ONCE, reason)
        size = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal size
            message = await receive()
            piece = len(message.get("body", b""))
            size += piece
            self._bodies += piece
            if size > LARGEST_BODY:
                raise HTTPException(413, TOO_LARGE)
            if self._bodies > ALL_BODIES:
                raise HTTPException(503, f"more than {ALL_BODIES} bytes of bodies are under way")
            return message

        try:
            await self._app(scope, counted, send)
        except ClientDisconnect:
            return None  # before the end of its body; uvicorn would log it with a traceback
        finally:
            self._bodies -= size


TOO_MANY_SOCKETS = f"at most {MOST_PAGE_SOCKETS} connections of pages at a time"
TOO_LARGE = f"a body of more than {LARGEST_BODY} bytes"


def _length(scope: Scope) -> int:
    """The declared length of the body; h11 has checked that it is a number."""
    return next((int(v) for name, v in scope["headers"] if name == b"content-length"), 0)


def _begins_page_socket(scope: Scope) -> bool:
    """A first request of socket.io: the server has given it no id yet."""
    return scope["path"].startswith("/_nicegui_ws") and b"sid=" not in scope["query_string"]


def _opens_page(scope: Scope) -> bool:
    parts = scope["path"].split("/")
    return scope["method"] == "GET" and not parts[-1].count(".") and parts[1] not in NOT_PAGES


NOT_PAGES = ("api", "_nicegui", "_nicegui_ws", "static", "ws")
"""First parts of the addresses under which no page is opened."""


def _room_for_page() -> bool:
    if len(Client.instances) >= MOST_PAGES:
        Client.prune_instances(client_age_threshold=UNSHOWN_SECONDS)
    return len(Client.instances) < MOST_PAGES


async def _refuse(scope: Scope, send: Send, status: int, code: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})
        return
    body = json.dumps({"code": code, "message": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
