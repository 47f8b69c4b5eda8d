"""The doorkeeper: everything that comes to the page's process passes here first (ASGI)."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from understudy.hmi.access import COOKIE, Access, Role, Visit, token_in_address, visit_of
from understudy.ports.hmi import NOT_ALLOWED

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY_VIOLATION = 1008
LOGIN = b"""<!doctype html><meta charset="utf-8"><title>Understudy</title>
<style>body{background:#1b1d21;color:#eee;font:20px sans-serif;display:grid;place-items:center;
height:90vh}input,button{font:inherit;padding:12px;min-height:48px}</style>
<form><label>Token <input name="token" type="password" autofocus></label> <button>Open</button>
</form>"""


class Guard:
    """Lets in who may come in, with a role (`access.role_of`)."""

    def __init__(self, app: App, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        visit = visit_of(dict(scope))
        reason = self._reason_against(visit)
        if reason:
            return await _turn_away(scope, receive, send, 403, reason)
        token = next((each for each in visit.tokens if self._access.role(each)), None)
        role = self._access.role(token)
        if role is None:
            reason = "a token is needed: Authorization: Bearer …, or ?token=… in a browser"
            return await _turn_away(scope, receive, send, 401, reason)
        if token and self._access.token and _first_visit(scope):
            return await _welcome(scope, send, token)
        return await self._app(_with_role(scope, role), receive, send)

    def _reason_against(self, visit: Visit) -> str | None:
        if not self._access.knows(visit.host):
            return f"{visit.host!r} is not a name of this page; it is served on loopback alone"
        return f"not from a page of {visit.origin}" if visit.is_foreign() else None


def _with_role(scope: Scope, role: Role) -> Scope:
    return {**scope, "state": {**scope.get("state", {}), "role": role}}


def _first_visit(scope: Scope) -> bool:
    """A browser with the token in the address of a page: it goes into a cookie instead."""
    page = scope["type"] == "http" and not scope["path"].startswith("/api")
    return page and scope["method"] == "GET" and token_in_address(dict(scope)) is not None


async def _welcome(scope: Scope, send: Send, token: str) -> None:
    cookie = f"{COOKIE}={quote(token, safe='')}; Path=/; HttpOnly; SameSite=Strict"
    place = "/" + quote(scope["path"].lstrip("/"))  # with two slashes it would be another's
    headers = [(b"location", place.encode()), (b"set-cookie", cookie.encode())]
    await _answer(send, 303, headers, b"")


async def _turn_away(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        close = {"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason[:100]}
        return await send(close)
    if status == 401 and not scope["path"].startswith("/api"):
        return await _answer(send, status, [(b"content-type", b"text/html")], LOGIN)
    body = json.dumps({"code": NOT_ALLOWED, "message": reason}).encode()
    headers = [(b"content-type", b"application/json")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return await _answer(send, status, headers, body)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
