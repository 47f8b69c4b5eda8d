"""HTTP server of the HMI: access control, REST, the state websocket, static files and pages."""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import nicegui
import uvicorn
from fastapi import FastAPI, Request, WebSocket
from nicegui import Client, ui
from nicegui import app as nicegui_app
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from understudy.hmi.access import Access, Guard, role_of
from understudy.hmi.camera import settings as camera_settings
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.cell_state import Caller, CellState
from understudy.hmi.frame.frame import frame
from understudy.hmi.frame.missing import MISSING
from understudy.hmi.headers import FIXED, SecurityHeaders
from understudy.hmi.limits import Bounded, protocols
from understudy.hmi.link import Link, LinkError
from understudy.hmi.page import STATIC, Page, head, pages_for
from understudy.hmi.rest import rest
from understudy.hmi.scene import scene
from understudy.hmi.state import StateFeed
from understudy.hmi.texts import Texts
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
    "camera": HERE / "camera",
    "three": Path(nicegui.__file__).parent / "elements" / "scene" / "dist",
}
"""Folders whose scripts every page may import."""
FRAME_SCRIPT = f"{STATIC}/frame/frame.js"
FRAME_STYLES = (f"{STATIC}/frame/frame.css", scene.STYLE, camera_settings.STYLE)
TITLE = "Understudy"
PROXIES_VARIABLE = "FORWARDED_ALLOW_IPS"
"""Names the proxies whose `X-Forwarded-For` and `-Proto` are believed (uvicorn's variable). By
default uvicorn believes loopback: each program there could choose the address it comes from."""
PUBLIC = (".js", ".map", ".css", ".svg", ".png", ".jpg", ".woff2")


async def command_table(link: Link) -> list[Any]:
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
    link: Link,
    feeds: Mapping[str, StateFeed],
    table: list[Any],
    access: Access,
    ready: Callable[[], None],
) -> Guard:
    """The ASGI application, behind its access control; calls ``ready`` when it is served.
    ``feeds``: by the name of their websocket, /ws/NAME."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.mount("/api", rest(link, table))

    for name, feed in feeds.items():
        app.websocket(f"/ws/{name}")(_socket_of(feed))

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


def _socket_of(feed: StateFeed) -> Callable[[WebSocket], Awaitable[None]]:
    async def serve(websocket: WebSocket) -> None:
        await feed.serve(websocket)

    return serve


class PageFiles(StaticFiles):
    """A folder of scripts, styles and pictures; no other file of the folder is served."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        return super().lookup_path(path) if path.endswith(PUBLIC) else ("", None)

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _add_pages(app: FastAPI, link: Caller, commands: Collection[str]) -> None:
    """Routes and files of every page of the registry that is for this cell."""
    for name, folder in SHARED.items():
        app.mount(f"{STATIC}/{name}", PageFiles(directory=folder))
    state, all_pages = CellState(link), pages_for(commands)

    async def show(page: Page, request: Request) -> None:
        """The frame with one page. The styles of all pages are loaded at once: later pages are
        opened without loading anything but their scripts."""
        if not state.alive:
            await state.refresh()
        styles = [style for each in all_pages for style in each.style_addresses]
        ui.add_head_html(head((FRAME_SCRIPT, *page.script_addresses), (*FRAME_STYLES, *styles)))
        frame(_browser(request, link, state), all_pages, page)

    for page in all_pages:
        app.mount(page.address, PageFiles(directory=page.folder))
        ui.page(page.route, title=TITLE, dark=True)(partial(show, page))
    nicegui_app.exception_handler(404)(partial(_missing, show))


async def _missing(
    show: Callable[[Page, Request], Awaitable[None]], request: Request, problem: Exception
) -> Response:
    """An address without a page: the frame, with the pages that there are."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"message": f"not found: {request.url.path}"}, 404)
    with Client(ui.page("", title=TITLE, dark=True), request=request) as client:
        await show(MISSING, request)
    return client.build_response(request, 404)


def _browser(request: Request, link: Caller, state: CellState) -> Browser:
    """The session of one browser, which keeps its language and its robot in cookies."""
    wanted = request.cookies.get("robot", "")
    known = list(state.robots)
    robot = wanted if wanted in known else (known[0] if known else "")
    texts = Texts(request.cookies.get("language", ""))
    return Browser(link, state, texts, robot=robot, role=role_of(request))


def server_of(guard: Guard, limits: ClientLimits[Any]) -> uvicorn.Server:
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
        **protocols(limits),
    )
    return uvicorn.Server(config)
