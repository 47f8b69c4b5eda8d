"""Who may do what on the page: loopback is open, everywhere else asks for a token.

Two things threaten even a page on loopback, since the operator's browser also visits others'
pages: a foreign page that posts to it or opens its websockets (`Origin` tells), and a foreign name
that resolves to 127.0.0.1 (`Host` tells).
"""

import hmac
import ipaddress
import os
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from understudy.errors import ConfigError

Role = Literal["viewer", "operator"]

COOKIE = "understudy_token"
TOKEN_VARIABLE = "UNDERSTUDY_HMI_TOKEN"
VIEWER_TOKEN_VARIABLE = "UNDERSTUDY_HMI_VIEWER_TOKEN"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """Where the page is served, and the tokens that open it; checked when it is made."""

    host: str = "127.0.0.1"
    token: str | None = None
    viewer_token: str | None = None

    def __post_init__(self) -> None:
        if not self.token and not self.is_local:
            raise ConfigError(
                f"the page on {self.host} can be reached from other machines and has no token; "
                f"set hmi.token or {TOKEN_VARIABLE}, or serve it on 127.0.0.1"
            )
        if self.viewer_token and not self.token:
            raise ConfigError("hmi.viewer_token without hmi.token: everybody would be operator")

    @property
    def is_local(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def role(self, given: str | None) -> Role | None:
        """What a token makes of who has it; nobody needs one where none is set."""
        if not self.token:
            return "operator"
        if _same(given, self.token):
            return "operator"
        return "viewer" if _same(given, self.viewer_token) else None

    def knows(self, host: str | None) -> bool:
        """Is this a name of ours? Where a token is needed, that decides and not the name."""
        name = urlsplit(f"//{host or ''}").hostname if _is_plain(host or "") else None
        return not self.is_local or name in (*LOCAL_NAMES, self.host.lower())


def read_access(host: str, token: str | None = None, viewer_token: str | None = None) -> Access:
    """What the cell file says, unless the environment says otherwise."""
    return Access(
        host,
        os.environ.get(TOKEN_VARIABLE) or token or None,
        os.environ.get(VIEWER_TOKEN_VARIABLE) or viewer_token or None,
    )


@dataclass(frozen=True)
class Visit:
    """What of a request decides whether it may come in."""

    method: str
    """Of HTTP, or `WEBSOCKET`."""
    host: str | None
    origin: str | None
    tokens: tuple[str, ...]
    """The latest word first: what was just typed counts more than a cookie of another day."""

    def is_foreign(self) -> bool:
        """Sent by another site's page, and not just to look."""
        if self.method in SAFE_METHODS or self.origin is None:
            return False
        return not _is_plain(self.origin) or urlsplit(self.origin).netloc != self.host


def visit_of(scope: dict[str, Any]) -> Visit:
    """Out of an ASGI scope; tokens are in a header, the address of a first visit, a cookie."""
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    bearer = headers.get("authorization", "")
    in_header = bearer[7:] if bearer[:7].lower() == "bearer " else None
    found = (in_header, token_in_address(scope), _in_cookie(headers.get("cookie", "")))
    return Visit(
        method=scope.get("method", "WEBSOCKET"),
        host=headers.get("host"),
        origin=headers.get("origin"),
        tokens=tuple(token for token in found if token),
    )


def token_in_address(scope: dict[str, Any]) -> str | None:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query["token"][-1] if "token" in query else None


def role_of(request: Any) -> Role:
    """Of a request or websocket that has come in (starlette's)."""
    role: Role = request.scope["state"]["role"]
    return role


def _in_cookie(text: str) -> str | None:
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return None
    return unquote(morsel.value) if morsel else None


def _same(given: str | None, wanted: str | None) -> bool:
    if not given or not wanted:
        return False
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode("utf-8", "replace"))


def _is_plain(text: str) -> bool:
    """`urlsplit` refuses some texts by an exception."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname is not None
    except ValueError:
        return False
