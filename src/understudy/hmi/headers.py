"""Response headers that tell the browser what a page of this server may do (ASGI middleware).

The fixed headers go out with every answer, also with those that uvicorn writes itself. The content
security policy depends on the answer: a page may run our own scripts, anything else runs none.
"""

import re
import secrets
from typing import Any

from jinja2 import BaseLoader, Environment
from jinja2.loaders import FileSystemLoader
from nicegui.client import templates

from understudy.hmi.access import App, Receive, Scope, Send

Header = tuple[bytes, bytes]

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


def _added(headers: list[Header], nonce: str) -> list[Header]:
    given = {name.lower(): value for name, value in headers}
    is_page = given.get(b"content-type", b"").startswith(b"text/html")
    policy = "; ".join(PAGE_POLICY).format(nonce=nonce) if is_page else OTHER_POLICY
    added = [(b"content-security-policy", policy.encode())]
    return added if b"cache-control" in given else [*added, (b"cache-control", b"no-store")]


# ── NiceGUI's page ──


class NonceLoader(BaseLoader):
    """NiceGUI's templates, whose own script elements carry the nonce of the request.

    The template is changed before values are filled in: a script element that comes from a value
    has no nonce.
    """

    def __init__(self, loader: FileSystemLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> Any:
        source, path, is_current = self._loader.get_source(environment, template)
        return with_nonces(source), path, is_current


def with_nonces(source: str) -> str:
    return re.sub(r"<script(?=[\s>])", '<script nonce="{{ request.state.nonce }}"', source)


def _add_nonces(environment: Environment) -> None:
    loader = environment.loader
    if isinstance(loader, FileSystemLoader):
        environment.loader = NonceLoader(loader)
