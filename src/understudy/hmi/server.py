"""HTTP server of the HMI: REST, the state websockets, static files and pages; around them access
control, limits of what clients may occupy, and the headers that bound what a browser does.

uvicorn's default protocol (httptools) has no limit on the headers of a request and parses all
requests of a packet before it answers the first. The protocol of h11 bounds an incomplete header
and stops reading while a request is under way. What it lacks is here: numbers of connections, time
limits, bodies, open pages. The answer to a client that meets a limit names it; nothing is logged.

The fixed headers go out with every answer, also with those that uvicorn writes itself. The content
security policy depends on the answer: a page may run our own scripts, anything else runs none.
"""

import asyncio
import json
import os
import re
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import h11
import nicegui
import uvicorn
from fastapi import FastAPI, Request
from jinja2 import BaseLoader, Environment
from jinja2.loaders import FileSystemLoader
from nicegui import Client, core, ui
from nicegui import app as nicegui_app
from nicegui.client import templates
from nicegui.language import Language
from nicegui.translations import translations
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from understudy.hmi.access import (
    MONITORING,
    Access,
    App,
    Guard,
    Receive,
    Scope,
    Send,
    role_of,
)
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.cell_state import CellState
from understudy.hmi.frame.frame import MISSING, first_paint, frame
from understudy.hmi.link import CellLink, LinkError
from understudy.hmi.page import STATIC, Page, head, pages_for, panels
from understudy.hmi.rest import add_monitoring, rest
from understudy.hmi.scene import scene
from understudy.hmi.state import StateFeed
from understudy.hmi.texts import Texts
from understudy.ports.hmi import NOT_A_REQUEST, TOO_MUCH_AT_ONCE
from understudy.protocol.client_limits import ClientLimits

TABLE_RETRIES = 20
TABLE_RETRY_SECONDS = 0.25
SHUTDOWN_SECONDS = 1
RECONNECT_SECONDS = 30.0
"""A browser may be busy for this long, for instance with building its first scene."""
HERE = Path(__file__).parent
SHARED = {
    "frame": HERE / "frame",
    "scene": HERE / "scene",
    "three": Path(nicegui.__file__).parent / "elements" / "scene" / "dist",
}
"""Folders whose scripts every page may import."""
FRAME_SCRIPT = f"{STATIC}/frame/frame.js"
FRAME_STYLES = (f"{STATIC}/frame/frame.css", scene.STYLE)
LIGHT_STYLE = f"{STATIC}/frame/light.css"
TITLE = "Understudy"
PROXIES_VARIABLE = "FORWARDED_ALLOW_IPS"
"""Names the proxies whose `X-Forwarded-For` and `-Proto` are believed (uvicorn's variable). By
default uvicorn believes loopback: each program there could choose the address it comes from."""
PUBLIC = (".js", ".map", ".css", ".svg", ".png", ".jpg", ".woff2")


async def command_table(link: CellLink) -> list[Any]:
    """The operator's command table; asks again while a cell that is just starting is slow."""
    for _ in range(TABLE_RETRIES):
        try:
            table: list[Any] = await link.call("commands", role="viewer")
            return table
        except LinkError as problem:
            last = problem
            await asyncio.sleep(TABLE_RETRY_SECONDS)
    raise last


def build(
    link: CellLink,
    feeds: Mapping[str, StateFeed],
    table: list[Any],
    access: Access,
    ready: Callable[[], None],
) -> Guard:
    """The ASGI application, behind its access control; calls ``ready`` when it is served.
    ``feeds``: by the name of their websocket, /ws/NAME."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.mount("/api", rest(link, table))
    add_monitoring(app, link, lambda: len(core.sio.eio.sockets))

    for name, feed in feeds.items():
        app.websocket(f"/ws/{name}")(feed.serve)

    nicegui_app.on_startup(ready)
    _add_pages(app, link, {row["name"] for row in table})
    ui.run_with(
        app,
        title=TITLE,
        dark=True,
        reconnect_timeout=RECONNECT_SECONDS,
        storage_secret=secrets.token_hex(16),
        show_welcome_message=False,
        tailwind=False,  # a compiler in the browser; frame.css has the little that pages need
    )
    return Guard(app, access)


class PageFiles(StaticFiles):
    """A folder of scripts, styles and pictures; no other file of the folder is served."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        return super().lookup_path(path) if path.endswith(PUBLIC) else ("", None)

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _add_pages(app: FastAPI, link: CellLink, commands: Collection[str]) -> None:
    """Routes and files of every page of the registry that is for this cell."""
    for name, folder in SHARED.items():
        app.mount(f"{STATIC}/{name}", PageFiles(directory=folder))
    state, all_pages = CellState(link, commands), pages_for(commands)

    async def show(page: Page, request: Request) -> None:
        """The frame with one page. The styles of all pages are loaded at once: later pages are
        opened without loading anything but their scripts."""
        if not state.alive:
            await state.refresh()
        styles = [style for panel in panels() for style in panel.style_addresses]
        styles += [style for each in all_pages for style in each.style_addresses]
        if request.cookies.get("theme") == "light":
            styles.append(LIGHT_STYLE)
            ui.dark_mode(False)
        ui.add_head_html(head((FRAME_SCRIPT, *page.script_addresses), (*FRAME_STYLES, *styles)))
        shown = [each for each in all_pages if not each.skill or state.any_can(each.skill)]
        browser = _browser(request, link, state)
        _set_language(ui.context.client, browser.texts)
        request.state.first_paint = first_paint(browser, shown)
        frame(browser, shown, page)

    for panel in panels():
        app.mount(panel.address, PageFiles(directory=panel.folder))
    for page in all_pages:
        app.mount(page.address, PageFiles(directory=page.folder))
        ui.page(page.route, title=TITLE, dark=True)(partial(show, page))

    @app.get("/")
    async def start(request: Request) -> Response:
        """The page of what the cell is for."""
        if not state.alive:
            await state.refresh()
        route, question = _start_page(all_pages, state).route, request.url.query
        return RedirectResponse(f"{route}?{question}" if question else route)

    nicegui_app.exception_handler(404)(partial(_missing, show))


def _start_page(pages: Sequence[Page], state: CellState) -> Page:
    """The page for a part of the cell as a whole; else the first that is for every robot of the
    cell, else the first of all."""
    parts = state.status.get("parts", {})
    for page in pages:
        if page.opens_for in parts:
            return page

    def fits(page: Page) -> bool:
        return page.opens_for != "" and all(
            facts.get("kind") == page.opens_for or f"{robot}.{page.opens_for}" in parts
            for robot, facts in state.robots.items()
        )

    return next((page for page in pages if state.robots and fits(page)), pages[0])


async def _missing(
    show: Callable[[Page, Request], Awaitable[None]], request: Request, problem: Exception
) -> Response:
    """An address without a page: the frame, with the pages that there are."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"message": f"not found: {request.url.path}"}, 404)
    with Client(ui.page("", title=TITLE, dark=True), request=request) as client:
        await show(MISSING, request)
    return client.build_response(request, 404)


QUASAR_LANGUAGES: Mapping[str, Language] = {"en": "en-US", "vi": "vi"}
"""Language of the page → its name for NiceGUI's own widgets."""
OWN_NOTICES = (
    "connection_lost",
    "trying_to_reconnect",
    "message_too_long",
    "message_too_long_body",
)
"""The notices that NiceGUI shows by itself."""


def _set_language(client: Client, texts: Texts) -> None:
    """Sets the language of the page, and of what NiceGUI shows itself, to that of the browser."""
    name = QUASAR_LANGUAGES[texts.language]
    translations[name] = {key: texts(f"frame.{key}") for key in OWN_NOTICES}
    client.page = copy(client.page)  # the others keep their language
    client.page.language = name


def _browser(request: Request, link: CellLink, state: CellState) -> Browser:
    """The session of one browser, which keeps its language and its robot in cookies. A robot in the
    address comes first: a link shows what it showed."""
    wanted = request.query_params.get("robot") or request.cookies.get("robot", "")
    known = list(state.robots)
    robot = wanted if wanted in known else (known[0] if known else "")
    texts = Texts(request.cookies.get("language", ""))
    return Browser(link, state, texts, robot=robot, role=role_of(request))


def server_of(guard: Guard, limits: ClientLimits[Any]) -> uvicorn.Server:
    """The server of the application, with the limits and headers below."""
    config = uvicorn.Config(
        SecurityHeaders(Bounded(guard)),
        log_level="error",
        access_log=False,  # an address may contain a token
        lifespan="on",
        proxy_headers=PROXIES_VARIABLE in os.environ,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        server_header=False,
        headers=list(FIXED),
        http=partial(BoundedHttp, limits=limits),  # type: ignore[arg-type]
        ws=partial(BoundedWebSocket, limits=limits),  # type: ignore[arg-type]
        h11_max_incomplete_event_size=LARGEST_HEADER,
        timeout_keep_alive=IDLE_SECONDS,
        ws_max_size=LARGEST_WS_MESSAGE,
    )
    return uvicorn.Server(config)


# ── limits of connections ──

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
TOO_MANY_SOCKETS = f"at most {MOST_PAGE_SOCKETS} connections of pages at a time"
TOO_LARGE = f"a body of more than {LARGEST_BODY} bytes"
NOT_PAGES = ("api", "_nicegui", "_nicegui_ws", "static", "ws", *(a[1:] for a in MONITORING))
"""First parts of the addresses under which no page is opened."""
TRY_AGAIN_LATER = 1013
SLICE = 16 * 1024


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


def give_up_on_deaf_peer(transport: asyncio.Transport) -> None:
    """Lets the system end a connection whose peer takes no bytes, also while it is being closed."""
    raw = transport.get_extra_info("socket")
    if raw is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * STALLED_SECONDS))


# ── limits of requests ──


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


def _length(scope: Scope) -> int:
    """The declared length of the body; h11 has checked that it is a number."""
    return next((int(v) for name, v in scope["headers"] if name == b"content-length"), 0)


def _begins_page_socket(scope: Scope) -> bool:
    """A first request of socket.io: the server has given it no id yet."""
    return scope["path"].startswith("/_nicegui_ws") and b"sid=" not in scope["query_string"]


def _opens_page(scope: Scope) -> bool:
    parts = scope["path"].split("/")
    return scope["method"] == "GET" and not parts[-1].count(".") and parts[1] not in NOT_PAGES


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


# ── headers of answers ──

SWITCHED_OFF = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "publickey-credentials-get",
    "serial",
    "usb",
    "xr-spatial-tracking",
)
"""Features of the browser that no page uses."""

FIXED: tuple[tuple[str, str], ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", ", ".join(f"{name}=()" for name in SWITCHED_OFF)),
)

PAGE_POLICY = (
    "default-src 'self'",
    # 'unsafe-eval': NiceGUI evaluates event handlers, and Vue compiles templates to functions.
    "script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",
    "script-src-attr 'none'",
    # 'unsafe-inline': NiceGUI adds style elements while the page runs.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'none'",
    "frame-src 'none'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
)
OTHER_POLICY = "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
"""Of an answer that is no page: opened by its address it loads nothing and runs no script."""


class SecurityHeaders:
    """Adds the content security policy, and `Cache-Control: no-store` where nothing is said."""

    def __init__(self, app: App) -> None:
        self._app = app
        _add_nonces(templates.env)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        nonce = secrets.token_urlsafe(16)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", [])]
                message = {**message, "headers": [*headers, *_added(headers, nonce)]}
            await send(message)

        state = {**scope.get("state", {}), "nonce": nonce}
        return await self._app({**scope, "state": state}, receive, send_with_headers)


def _added(headers: list[tuple[bytes, bytes]], nonce: str) -> list[tuple[bytes, bytes]]:
    given = {name.lower(): value for name, value in headers}
    is_page = given.get(b"content-type", b"").startswith(b"text/html")
    policy = "; ".join(PAGE_POLICY).format(nonce=nonce) if is_page else OTHER_POLICY
    added = [(b"content-security-policy", policy.encode())]
    return added if b"cache-control" in given else [*added, (b"cache-control", b"no-store")]


# ── NiceGUI's page ──


class NonceLoader(BaseLoader):
    """NiceGUI's templates, whose own script elements carry the nonce of the request, and whose
    element for the page has something to show until the scripts have built the page in its place.

    The template is changed before values are filled in: a script element that comes from a value
    has no nonce.
    """

    def __init__(self, loader: FileSystemLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> Any:
        source, path, is_current = self._loader.get_source(environment, template)
        return with_first_paint(with_nonces(source)), path, is_current


def with_nonces(source: str) -> str:
    return re.sub(r"<script(?=[\s>])", '<script nonce="{{ request.state.nonce }}"', source)


def with_first_paint(source: str) -> str:
    return re.sub(
        r'(<div id="app"[^>]*>)(?=</div>)', r"\1{{ request.state.first_paint | safe }}", source
    )


def _add_nonces(environment: Environment) -> None:
    loader = environment.loader
    if isinstance(loader, FileSystemLoader):
        environment.loader = NonceLoader(loader)
