"""Access to the HMI: loopback is open, every other address needs a token (ASGI middleware).

Even on loopback there are two threats, since the operator's browser also opens other sites: a page
of another site that posts here or opens our websockets (checked by `Origin`), and a foreign host
name that resolves to 127.0.0.1 (checked by `Host`).

A wrong token is answered after a delay, and an address that sends many of them is locked out. A
right token is never delayed, whatever its address sent before: an attacker behind the same address
(a router, a shared machine) cannot keep the operator from the emergency stop. So the delay keeps
wrong answers cheap for the server and makes an attack visible in the log; the length of the token
(`check_token`) makes it hopeless.
"""

import asyncio
import ipaddress
import json
import logging
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

from understudy.errors import ConfigError
from understudy.ports.access import check_reachable, check_token, is_loopback, same_secret
from understudy.ports.hmi import NOT_ALLOWED

log = logging.getLogger(__name__)

Role = Literal["viewer", "operator"]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "understudy_token"
TOKEN_VARIABLE = "UNDERSTUDY_HMI_TOKEN"
VIEWER_TOKEN_VARIABLE = "UNDERSTUDY_HMI_VIEWER_TOKEN"
MONITORING = ("/health", "/ready", "/metrics")
"""Addresses of programs that watch the cell."""
NOT_PAGES = ("/api", "/_nicegui", *MONITORING)
"""Beginnings of addresses under which no page is."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
POLICY_VIOLATION = 1008
FORM = "application/x-www-form-urlencoded"
LARGEST_FORM = 4096
"""Bytes of a login form."""
FREE_ATTEMPTS = 3
"""Wrong tokens without a delay: typing errors."""
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 8.0
LOCKED_AFTER = 10
"""Different wrong tokens of an address, each within `WINDOW_S` of the one before."""
WINDOW_S = 300.0
"""Duration of a lock-out, too; each further wrong token starts it again."""
MOST_ADDRESSES = 2048
"""The address whose last wrong token is oldest is forgotten first."""
MOST_WAITING = 4
"""Answers of one address that are delayed at a time; further ones are sent at once."""
MOST_WAITING_IN_ALL = 64
IPV6_SITE_BITS = 64
"""The addresses of one IPv6 network count as one: its user can choose among all of them."""
LOGIN = """<!doctype html><meta charset="utf-8"><title>Understudy</title>
<style>body{background:#1b1d21;color:#eee;font:20px sans-serif;display:grid;place-items:center;
height:90vh}input,button{font:inherit;padding:12px;min-height:48px}</style>
<form method="post"><p>%s</p><label>Token <input name="token" type="password" autofocus
autocomplete="current-password"></label> <button>Open</button>
</form>"""
WRONG = "Wrong token."
LOCKED = f"More than {LOCKED_AFTER} wrong tokens came from this address; a right one still opens."


@dataclass(frozen=True)
class Access:
    """The address that the HMI is served on, and its tokens; checked when it is made."""

    host: str = "127.0.0.1"
    token: str | None = None
    viewer_token: str | None = None

    def __post_init__(self) -> None:
        check_reachable("the page", self.host, self.token, set_by=f"hmi.token or {TOKEN_VARIABLE}")
        check_token(self.token, "hmi.token")
        check_token(self.viewer_token, "hmi.viewer_token")
        if self.viewer_token and not self.token:
            raise ConfigError(
                "hmi.viewer_token needs hmi.token: without it every visitor is operator"
            )

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    def role(self, given: str | None) -> Role | None:
        """The role that a token gives; if no token is set, every visitor is operator."""
        if not self.token:
            return "operator"
        if same_secret(given, self.token):
            return "operator"
        return "viewer" if same_secret(given, self.viewer_token) else None

    def knows(self, host: str | None) -> bool:
        """Whether a host name is ours. Where a token is needed, any name is accepted."""
        name = urlsplit(f"//{host or ''}").hostname if _is_plain(host or "") else None
        return not self.is_local or name in (*LOCAL_NAMES, self.host.lower())


def read_access(host: str, token: str | None = None, viewer_token: str | None = None) -> Access:
    """Access from the cell file; environment variables take precedence."""
    return Access(
        host,
        os.environ.get(TOKEN_VARIABLE) or token or None,
        os.environ.get(VIEWER_TOKEN_VARIABLE) or viewer_token or None,
    )


Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class Guard:
    """ASGI middleware: refuses a request, or passes it on with its role (`role_of`)."""

    def __init__(
        self,
        app: App,
        access: Access,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._app = app
        self._access = access
        self._clock = clock
        self._sleep = sleep
        self._wrong = WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        visit = visit_of(dict(scope))
        if self._access.token and _is_login(scope, visit):
            visit = replace(visit, origin=None, tokens=await _token_in_form(receive))
        reason = self._reason_against(visit)
        if reason:
            return await _refuse(scope, receive, send, 403, reason)
        token = next((each for each in visit.tokens if self._access.role(each)), None)
        role = self._access.role(token)
        if role is None:
            return await self._refuse_token(scope, receive, send, visit)
        if token and self._access.token and _gives_token(scope, visit):
            return await _set_cookie(scope, send, token)
        state = {**scope.get("state", {}), "role": role}
        return await self._app({**scope, "state": state}, receive, send)

    def _reason_against(self, visit: "Visit") -> str | None:
        if not self._access.knows(visit.host):
            return f"{visit.host!r} is not a name of this page; it is served on loopback alone"
        return f"not from a page of {visit.origin}" if visit.is_foreign() else None

    async def _refuse_token(
        self, scope: Scope, receive: Receive, send: Send, visit: "Visit"
    ) -> None:
        """Asks for a token; answers a wrong one after a delay that grows."""
        if not visit.tokens:
            reason = "a token is needed: Authorization: Bearer …, or open the page in a browser"
            return await _refuse(scope, receive, send, 401, reason)
        address = (scope.get("client") or ("",))[0]
        penalty = self._wrong.add(address, visit.tokens[0], self._clock())
        if penalty.newly_locked:
            log.warning(
                "%s sent %d wrong tokens: its wrong tokens are refused for %.0f s",
                *(address, LOCKED_AFTER, WINDOW_S),
            )
        if penalty.delay_s and self._wrong.begin_wait(address):
            try:
                await self._sleep(penalty.delay_s)
            finally:
                self._wrong.end_wait(address)
        status, reason = (429, LOCKED) if penalty.locked_s else (401, WRONG)
        retry = str(round(penalty.locked_s)) if penalty.locked_s else ""
        return await _refuse(scope, receive, send, status, reason, retry_after=retry)


def role_of(request: Any) -> Role:
    """The role of a request or websocket that passed the guard (starlette's)."""
    role: Role = request.scope["state"]["role"]
    return role


# ── requests ──


@dataclass(frozen=True)
class Visit:
    """The fields of a request that decide on its access."""

    method: str
    """The method of HTTP, or `WEBSOCKET`."""
    host: str | None
    origin: str | None
    tokens: tuple[str, ...]
    """The most recent first: a token just typed takes precedence over an older cookie."""
    content_type: str = ""

    def is_foreign(self) -> bool:
        """Sent by a page of another site, and able to change something."""
        if self.method in SAFE_METHODS or self.origin is None:
            return False
        return not _is_plain(self.origin) or urlsplit(self.origin).netloc != self.host


def visit_of(scope: dict[str, Any]) -> Visit:
    """The visit of an ASGI scope; a token may be in a header, in the address or in a cookie."""
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    bearer = headers.get("authorization", "")
    in_header = bearer[7:] if bearer[:7].lower() == "bearer " else None
    found = (in_header, _token_in_address(scope), _token_in_cookie(headers.get("cookie", "")))
    return Visit(
        method=scope.get("method", "WEBSOCKET"),
        host=headers.get("host"),
        origin=headers.get("origin"),
        tokens=tuple(token for token in found if token),
        content_type=headers.get("content-type", "").partition(";")[0].strip().lower(),
    )


def _token_in_address(scope: dict[str, Any]) -> str | None:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query["token"][-1] if "token" in query else None


def _token_in_cookie(text: str) -> str | None:
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return None
    return unquote(morsel.value) if morsel else None


def _is_login(scope: Scope, visit: Visit) -> bool:
    """The login form was sent. Its `Origin` is `null`, since no page here sends a referrer; a
    foreign page that sends it must know the token and learns nothing."""
    own = visit.origin in (None, "null") or not visit.is_foreign()
    return own and visit.method == "POST" and visit.content_type == FORM and _is_page(scope)


async def _token_in_form(receive: Receive) -> tuple[str, ...]:
    body = b""
    while len(body) <= LARGEST_FORM:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    found = parse_qs(body[:LARGEST_FORM].decode("latin-1"))
    return tuple(found.get("token", ()))[-1:]


def _gives_token(scope: Scope, visit: Visit) -> bool:
    """A browser that sends the token in a form or in the address; a cookie replaces it."""
    in_address = visit.method == "GET" and _token_in_address(dict(scope)) is not None
    return _is_page(scope) and (in_address or _is_login(scope, visit))


def _is_page(scope: Scope) -> bool:
    path = scope["path"]
    return scope["type"] == "http" and not path.startswith(NOT_PAGES)


def _is_plain(text: str) -> bool:
    """Whether `urlsplit` can read it; it raises on some texts."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname is not None
    except ValueError:
        return False


# ── answers ──


async def _set_cookie(scope: Scope, send: Send, token: str) -> None:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    cookie = f"{COOKIE}={quote(token, safe='')}; Path=/; HttpOnly; SameSite=Strict{secure}"
    # one slash only: two would name another host
    place = "/" + quote(scope["path"].lstrip("/"))
    query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
    if others := [(name, value) for name, value in query if name != "token"]:
        place += f"?{urlencode(others)}"
    headers = [(b"location", place.encode()), (b"set-cookie", cookie.encode())]
    await _answer(send, 303, headers, b"")


async def _refuse(
    scope: Scope, receive: Receive, send: Send, status: int, reason: str, *, retry_after: str = ""
) -> None:
    if scope["type"] == "websocket":
        await receive()
        close = {"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason[:100]}
        return await send(close)
    headers = [(b"retry-after", retry_after.encode())] if retry_after else []
    if status in (401, 429) and _is_page(scope):
        said = reason if reason in (WRONG, LOCKED) else ""
        headers.append((b"content-type", b"text/html; charset=utf-8"))
        return await _answer(send, status, headers, (LOGIN % said).encode())
    body = json.dumps({"code": NOT_ALLOWED, "message": reason}).encode()
    headers.append((b"content-type", b"application/json"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return await _answer(send, status, headers, body)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# ── wrong tokens ──


@dataclass(frozen=True, slots=True)
class Penalty:
    """Answer to a wrong token: sent after ``delay_s``; ``locked_s``: time until the lock-out ends,
    0 if there is none."""

    delay_s: float
    locked_s: float
    newly_locked: bool


@dataclass(slots=True)
class _Attempts:
    """Wrong tokens of one address; the digest of the last one, not the token, is kept."""

    count: int = 0
    last: float = 0.0
    digest: bytes = b""


class WrongTokens:
    """Wrong tokens of each address. ``now`` is in seconds, of a clock that never goes back."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[str, _Attempts] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._attempts)

    def add(self, address: str, token: str, now: float) -> Penalty:
        """Counts a wrong token. The same one again (an old cookie) is no further guess."""
        attempts = self._of(site(address))
        if now - attempts.last > WINDOW_S:
            attempts.count, attempts.digest = 0, b""
        digest = sha256(token.encode("utf-8", "replace")).digest()
        is_new = digest != attempts.digest
        if is_new:
            attempts.count, attempts.last, attempts.digest = attempts.count + 1, now, digest
        locked = attempts.count >= LOCKED_AFTER
        return Penalty(
            delay_s=_delay(attempts.count),
            locked_s=attempts.last + WINDOW_S - now if locked else 0.0,
            newly_locked=is_new and attempts.count == LOCKED_AFTER,
        )

    def begin_wait(self, address: str) -> bool:
        """Whether one more answer to this address may be delayed; then call `end_wait`."""
        place = site(address)
        if self._waiting[place] >= MOST_WAITING or self._waiting.total() >= MOST_WAITING_IN_ALL:
            return False
        self._waiting[place] += 1
        return True

    def end_wait(self, address: str) -> None:
        place = site(address)
        self._waiting[place] -= 1
        self._waiting += Counter()  # drops the addresses that have none

    def _of(self, place: str) -> _Attempts:
        attempts = self._attempts.setdefault(place, _Attempts())
        self._attempts.move_to_end(place)
        if len(self._attempts) > MOST_ADDRESSES:
            self._attempts.popitem(last=False)
        return attempts


def site(address: str) -> str:
    """The address, or its network for IPv6."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, IPV6_SITE_BITS), strict=False))


def _delay(count: int) -> float:
    if count <= FREE_ATTEMPTS:
        return 0.0
    return min(FIRST_DELAY_S * 2.0 ** min(count - FREE_ATTEMPTS - 1, 10), LONGEST_DELAY_S)
