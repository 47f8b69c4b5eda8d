"""The page's server: guard, REST, the websocket of frames, and NiceGUI's pages under one roof."""

import asyncio
import secrets
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvicorn
from fastapi import FastAPI, WebSocket
from nicegui import app as pages_app
from nicegui import ui

from understudy.hmi.access import Access
from understudy.hmi.guard import Guard
from understudy.hmi.link import Link, LinkError
from understudy.hmi.rest import rest
from understudy.hmi.state import StateFeed

TABLE_TRIES = 20
TABLE_SECONDS = 0.25
SHUTDOWN_SECONDS = 1
RECONNECT_SECONDS = 30.0
"""How long a browser may be busy, with its first picture for instance, before it is given up."""


async def command_table(link: Link) -> list[Any]:
    """The desk's table; the cell is up before its page, but may be slow."""
    for _ in range(TABLE_TRIES):
        try:
            table: list[Any] = await link.call("commands", role="viewer")
            return table
        except LinkError as problem:
            last = problem
            await asyncio.sleep(TABLE_SECONDS)
    raise last


def build(
    link: Link, feed: StateFeed, table: list[Any], access: Access, ready: Callable[[], None]
) -> Guard:
    """Everything that is served, behind the guard; ``ready`` is called when it is."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.mount("/api", rest(link, table))

    @app.websocket("/ws/state")
    async def state(websocket: WebSocket) -> None:
        await feed.serve(websocket)

    pages_app.on_startup(ready)
    _register_pages(link, feed)
    ui.run_with(
        app,
        title="Understudy",
        dark=True,
        reconnect_timeout=RECONNECT_SECONDS,
        storage_secret=secrets.token_hex(16),
        show_welcome_message=False,
    )
    return Guard(app, access)


def _register_pages(link: Link, feed: StateFeed) -> None:
    if find_spec("understudy.hmi.pages") is not None:
        import_module("understudy.hmi.pages").register(pages_app, link, feed)
        return

    @ui.page("/")
    async def index() -> None:
        ui.label("Understudy").classes("text-h3")
        ui.link("What can be asked", "/api/openapi.json")


def server_of(guard: Guard) -> uvicorn.Server:
    config = uvicorn.Config(
        guard,
        log_level="warning",
        lifespan="on",
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        server_header=False,
    )
    return uvicorn.Server(config)
