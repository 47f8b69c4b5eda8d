"""Access: loopback is open, every other address needs a token, foreign pages are refused."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import ConfigError
from understudy.hmi.access import COOKIE, Access, Guard, read_access, role_of

# ── addresses and tokens ──


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_no_token_and_every_visitor_is_operator(host: str) -> None:
    assert Access(host).role(None) == "operator"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "robot.local", ""])
def test_any_other_address_is_refused_without_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="UNDERSTUDY_HMI_TOKEN"):
        Access(host)
    assert Access(host, token="secret").role(None) is None


def test_a_viewer_token_needs_an_operator_token() -> None:
    with pytest.raises(ConfigError, match="viewer_token"):
        Access("127.0.0.1", viewer_token="look")


@pytest.mark.parametrize(
    ("token", "role"),
    [("secret", "operator"), ("look", "viewer"), ("secre", None), ("", None), (None, None)],
)
def test_the_token_decides_the_role(token: str | None, role: str | None) -> None:
    assert Access("0.0.0.0", token="secret", viewer_token="look").role(token) == role


def test_the_environment_takes_precedence_over_the_cell_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UNDERSTUDY_HMI_TOKEN", "from outside")
    assert read_access("0.0.0.0", token="from the file").token == "from outside"


# ── requests ──


def send_request(
    access: Access,
    headers: dict[str, str],
    *,
    method: str = "GET",
    path: str = "/",
    query: str = "",
) -> tuple[int, dict[str, str], bytes]:
    """Status (0: accepted websocket, 1008: refused websocket), headers, and the body, which is the
    role of an accepted request."""
    websocket = method == "WEBSOCKET"
    scope: dict[str, Any] = {
        "type": "websocket" if websocket else "http",
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode("utf-8")) for k, v in headers.items()],
        **({} if websocket else {"method": method}),
    }
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        class Request:
            pass

        request: Any = Request()
        request.scope = scope
        body = role_of(request).encode()
        await send(
            {"type": "http.response.start", "status": 0 if websocket else 200, "headers": []}
        )
        await send({"type": "http.response.body", "body": body})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(Guard(app, access)(scope, receive, send))
    if sent[0]["type"] == "websocket.close":
        return sent[0]["code"], {}, b""
    sent_headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], sent_headers, sent[1]["body"]


HOME = {"Host": "localhost:8080"}
LOCAL = Access()
TOKENS = Access("0.0.0.0", token="secret", viewer_token="look")


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:8080", "[::1]:8080"])
def test_a_request_by_our_own_name_is_accepted(host: str) -> None:
    assert send_request(LOCAL, {"Host": host})[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil", "[", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_name_is_refused(host: str, method: str) -> None:
    status, _, body = send_request(LOCAL, {"Host": host}, method=method)
    assert status == 403
    assert json.loads(body)["code"] == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "WEBSOCKET"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://["]
)
def test_a_foreign_page_can_neither_post_nor_open_websockets(method: str, origin: str) -> None:
    assert send_request(LOCAL, {**HOME, "Origin": origin}, method=method)[0] in (403, 1008)


@pytest.mark.parametrize("method", ["POST", "WEBSOCKET"])
@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost:8080"}])
def test_our_own_page_and_other_programs_can(method: str, headers: dict[str, str]) -> None:
    assert send_request(LOCAL, {**HOME, **headers}, method=method)[0] in (200, 0)


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": "Bearer secret"}, {"Cookie": f"a=b; {COOKIE}=secret"}],
)
def test_a_token_comes_in_a_header_or_a_cookie(headers: dict[str, str]) -> None:
    status, _, role = send_request(
        TOKENS, {"Host": "robot:8080", **headers}, method="POST", path="/api/x"
    )
    assert (status, role) == (200, b"operator")


def test_a_viewer_token_gives_the_role_viewer() -> None:
    status, _, role = send_request(TOKENS, {"Host": "robot", "Authorization": "bearer look"})
    assert (status, role) == (200, b"viewer")


def test_without_a_token_a_page_shows_the_login_form() -> None:
    status, _, body = send_request(TOKENS, {"Host": "robot"})
    assert status == 401
    assert b"<form>" in body
    status, headers, body = send_request(TOKENS, {"Host": "robot"}, path="/api/now")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert json.loads(body)["code"] == 3
    assert send_request(TOKENS, {"Host": "robot"}, method="WEBSOCKET")[0] == 1008


def test_a_token_in_the_address_goes_into_a_cookie_that_pages_cannot_read() -> None:
    status, headers, _ = send_request(
        TOKENS, {"Host": "robot"}, path="/plots", query="token=secret"
    )
    assert (status, headers["location"]) == (303, "/plots")
    assert headers["set-cookie"].startswith(f"{COOKIE}=secret;")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]


@given(
    host=st.text(max_size=20),
    origin=st.text(max_size=20),
    cookie=st.text(max_size=20),
    query=st.text(max_size=20),
)
def test_headers_never_raise(host: str, origin: str, cookie: str, query: str) -> None:
    try:
        headers = {"Host": host, "Origin": origin, "Cookie": f"{COOKIE}={cookie}"}
        send_request(TOKENS, headers, query=query, method="POST")
        send_request(LOCAL, headers, query=query, method="POST")
    except UnicodeEncodeError:
        pass  # cannot be sent as bytes


@pytest.mark.parametrize("cookie", ["of-yesterday", "look", ""])
def test_a_token_just_given_counts_more_than_an_old_cookie(cookie: str) -> None:
    visit = {"Host": "robot", "Cookie": f"{COOKIE}={cookie}"}
    status, headers, _ = send_request(TOKENS, visit, query="token=secret")
    assert status == 303
    assert headers["set-cookie"].startswith(f"{COOKIE}=secret;")


def test_an_old_token_in_the_address_does_not_override_a_valid_cookie() -> None:
    visit = {"Host": "robot", "Cookie": f"{COOKIE}=secret"}
    assert send_request(TOKENS, visit, query="token=of-yesterday")[0] == 303
    assert send_request(TOKENS, visit)[2] == b"operator"


@pytest.mark.parametrize("token", ["a;b", 'with "quotes", and = spaces', "mật khẩu", "%41"])
def test_a_cookie_keeps_any_token(token: str) -> None:
    access = Access("0.0.0.0", token=token)
    _, headers, _ = send_request(access, {"Host": "robot"}, query=f"token={quote(token)}")
    cookie = headers["set-cookie"].partition(";")[0]
    assert send_request(access, {"Host": "robot", "Cookie": cookie})[2] == b"operator"


@pytest.mark.parametrize("path", ["//evil.example/", "/\r\nX-Evil: 1"])
def test_a_first_visit_never_redirects_to_another_host(path: str) -> None:
    _, headers, _ = send_request(TOKENS, {"Host": "robot"}, path=path, query="token=secret")
    assert not headers["location"].startswith("//")
    assert "\n" not in headers["location"]
