"""Access: loopback is open, every other address needs a token, foreign pages are refused."""

import asyncio
import json
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import ConfigError
from understudy.hmi.access import (
    COOKIE,
    FORM,
    LOCKED_AFTER,
    LONGEST_DELAY_S,
    MONITORING,
    MOST_ADDRESSES,
    MOST_WAITING,
    WINDOW_S,
    Access,
    Guard,
    WrongTokens,
    read_access,
    role_of,
)
from understudy.ports.access import SHORTEST_TOKEN

SECRET = "secret-of-the-operator"
LOOK = "token-of-a-viewer"

# ── addresses and tokens ──


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_no_token_and_every_visitor_is_operator(host: str) -> None:
    assert Access(host).role(None) == "operator"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "robot.local", ""])
def test_any_other_address_is_refused_without_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="UNDERSTUDY_HMI_TOKEN"):
        Access(host)
    assert Access(host, token=SECRET).role(None) is None


def test_a_viewer_token_needs_an_operator_token() -> None:
    with pytest.raises(ConfigError, match="viewer_token"):
        Access("127.0.0.1", viewer_token=LOOK)


@pytest.mark.parametrize(
    ("token", "role"),
    [(SECRET, "operator"), (LOOK, "viewer"), (SECRET[:-1], None), ("", None), (None, None)],
)
def test_the_token_decides_the_role(token: str | None, role: str | None) -> None:
    assert Access("0.0.0.0", token=SECRET, viewer_token=LOOK).role(token) == role


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_short_token_is_refused_and_not_shown(host: str) -> None:
    short = "x" * (SHORTEST_TOKEN - 1)
    for tokens in ({"token": short}, {"token": SECRET, "viewer_token": short}):
        with pytest.raises(ConfigError, match="16 or more") as refused:
            Access(host, **tokens)
        assert short not in str(refused.value)
    assert Access(host, token="x" * SHORTEST_TOKEN).token


def test_the_environment_takes_precedence_over_the_cell_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = read_access("0.0.0.0", "a token from the file", "a viewer of the file")
    assert (read.token, read.viewer_token) == ("a token from the file", "a viewer of the file")
    assert read_access("127.0.0.1", "", "") == Access()
    monkeypatch.setenv("UNDERSTUDY_HMI_TOKEN", "a token from outside")
    monkeypatch.setenv("UNDERSTUDY_HMI_VIEWER_TOKEN", "a viewer from outside")
    read = read_access("0.0.0.0", "a token from the file", "a viewer of the file")
    assert (read.token, read.viewer_token) == ("a token from outside", "a viewer from outside")


# ── requests ──


def scope_of(
    headers: dict[str, str],
    *,
    method: str = "GET",
    path: str = "/",
    query: str = "",
    scheme: str = "http",
) -> dict[str, Any]:
    websocket = method == "WEBSOCKET"
    return {
        "type": "websocket" if websocket else "http",
        "scheme": scheme,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode("utf-8")) for k, v in headers.items()],
        **({} if websocket else {"method": method}),
    }


async def answer_role(scope: Any, receive: Any, send: Any) -> None:
    """An application behind the guard: answers the role."""
    status = 0 if scope["type"] == "websocket" else 200
    await send({"type": "http.response.start", "status": status, "headers": []})
    body = role_of(SimpleNamespace(scope=scope)).encode()
    await send({"type": "http.response.body", "body": body})


async def answers(
    guard: Guard, scope: dict[str, Any], body: bytes = b""
) -> list[MutableMapping[str, Any]]:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        websocket = scope["type"] == "websocket"
        return {"type": "websocket.connect"} if websocket else {"body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return sent


def send_request(
    access: Access, headers: dict[str, str], *, body: bytes = b"", **request: str
) -> tuple[int, dict[str, str], bytes]:
    """Status (0: accepted websocket, 1008: refused websocket), headers, and the body, which is the
    role of an accepted request."""
    sent = asyncio.run(answers(Guard(answer_role, access), scope_of(headers, **request), body))
    if sent[0]["type"] == "websocket.close":
        return sent[0]["code"], {}, b""
    sent_headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], sent_headers, sent[1]["body"]


HOME = {"Host": "localhost:8080"}
LOCAL = Access()
TOKENS = Access("0.0.0.0", token=SECRET, viewer_token=LOOK)


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
    [{"Authorization": f"Bearer {SECRET}"}, {"Cookie": f"a=b; {COOKIE}={SECRET}"}],
)
def test_a_token_comes_in_a_header_or_a_cookie(headers: dict[str, str]) -> None:
    status, _, role = send_request(
        TOKENS, {"Host": "robot:8080", **headers}, method="POST", path="/api/x"
    )
    assert (status, role) == (200, b"operator")


def test_a_viewer_token_gives_the_role_viewer() -> None:
    status, _, role = send_request(TOKENS, {"Host": "robot", "Authorization": f"bearer {LOOK}"})
    assert (status, role) == (200, b"viewer")


def test_without_a_token_a_page_shows_the_login_form() -> None:
    status, _, body = send_request(TOKENS, {"Host": "robot"})
    assert status == 401
    assert b'<form method="post">' in body
    status, headers, body = send_request(TOKENS, {"Host": "robot"}, path="/api/now")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert json.loads(body)["code"] == 3
    assert send_request(TOKENS, {"Host": "robot"}, method="WEBSOCKET")[0] == 1008


@pytest.mark.parametrize("path", MONITORING)
def test_programs_that_watch_the_cell_need_a_token_and_get_json(path: str) -> None:
    status, headers, body = send_request(TOKENS, {"Host": "robot"}, path=path)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert json.loads(body)["code"] == 3
    bearer = {"Host": "robot", "Authorization": f"Bearer {LOOK}"}
    assert send_request(TOKENS, bearer, path=path)[2] == b"viewer"


def test_a_token_in_the_address_goes_into_a_cookie_that_pages_cannot_read() -> None:
    status, headers, _ = send_request(
        TOKENS, {"Host": "robot"}, path="/plots", query=f"token={SECRET}"
    )
    assert (status, headers["location"]) == (303, "/plots")
    assert headers["set-cookie"].startswith(f"{COOKIE}={SECRET};")
    link = f"robot=g60&token={SECRET}&line=3"
    _, headers, _ = send_request(TOKENS, {"Host": "robot"}, path="/program", query=link)
    assert headers["location"] == "/program?robot=g60&line=3"
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


@pytest.mark.parametrize("cookie", ["of-yesterday", LOOK, ""])
def test_a_token_just_given_counts_more_than_an_old_cookie(cookie: str) -> None:
    visit = {"Host": "robot", "Cookie": f"{COOKIE}={cookie}"}
    status, headers, _ = send_request(TOKENS, visit, query=f"token={SECRET}")
    assert status == 303
    assert headers["set-cookie"].startswith(f"{COOKIE}={SECRET};")


def test_an_old_token_in_the_address_does_not_override_a_valid_cookie() -> None:
    visit = {"Host": "robot", "Cookie": f"{COOKIE}={SECRET}"}
    assert send_request(TOKENS, visit, query="token=of-yesterday")[0] == 303
    assert send_request(TOKENS, visit)[2] == b"operator"


@pytest.mark.parametrize(
    "token",
    ["a;b;c;d;e;f;g;h;", 'with "quotes", and = spaces', "mật khẩu của tôi", "%41%41%41%41%41%41"],
)
def test_a_cookie_keeps_any_token(token: str) -> None:
    access = Access("0.0.0.0", token=token)
    _, headers, _ = send_request(access, {"Host": "robot"}, query=f"token={quote(token)}")
    cookie = headers["set-cookie"].partition(";")[0]
    assert send_request(access, {"Host": "robot", "Cookie": cookie})[2] == b"operator"


@pytest.mark.parametrize("path", ["//evil.example/", "/\r\nX-Evil: 1"])
def test_a_first_visit_never_redirects_to_another_host(path: str) -> None:
    _, headers, _ = send_request(TOKENS, {"Host": "robot"}, path=path, query=f"token={SECRET}")
    assert not headers["location"].startswith("//")
    assert "\n" not in headers["location"]


# ── login form ──


def log_in(token: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    given = {"Host": "robot", "Content-Type": FORM, "Origin": "null", **headers}
    body = f"token={quote(token)}".encode()
    return send_request(TOKENS, given, method="POST", path="/plots", body=body)


def test_the_form_brings_the_token_in_its_body_and_gets_a_cookie() -> None:
    status, headers, _ = log_in(SECRET)
    assert (status, headers["location"]) == (303, "/plots")
    assert headers["set-cookie"] == f"{COOKIE}={SECRET}; Path=/; HttpOnly; SameSite=Strict"


def test_the_cookie_is_secure_where_the_page_is() -> None:
    sent = send_request(TOKENS, {"Host": "robot"}, query=f"token={SECRET}", scheme="https")
    assert sent[1]["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("origin", ["http://evil.example", "http://["])
def test_a_foreign_page_cannot_send_the_form(origin: str) -> None:
    assert log_in(SECRET, Origin=origin)[0] == 403


@pytest.mark.parametrize("token", ["wrong-token-of-a-guest", "", "x" * 100_000])
def test_a_wrong_token_shows_the_form_again_without_the_token(token: str) -> None:
    status, headers, body = log_in(token)
    assert status == 401
    assert "set-cookie" not in headers
    assert not token or token.encode() not in body


def test_a_form_opens_no_command() -> None:
    given = {"Host": "robot", "Content-Type": FORM, "Origin": "null"}
    body = f"token={SECRET}".encode()
    assert send_request(TOKENS, given, method="POST", path="/api/stop", body=body)[0] == 403


# ── wrong tokens: delay and lock-out, on virtual time ──


class Visitors:
    """A guard on virtual time; `ask` returns the status and the delay of the answer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.delays: list[float] = []
        self.guard = Guard(answer_role, TOKENS, clock=lambda: self.now, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.delays.append(seconds)

    def ask(self, address: str, token: str, *, path: str = "/api/stop") -> tuple[int, float]:
        self.delays.clear()
        scope = scope_of({"Host": "robot", "Authorization": f"Bearer {token}"}, path=path)
        sent = asyncio.run(answers(self.guard, {**scope, "client": (address, 1)}))
        return sent[0]["status"], sum(self.delays)


def test_wrong_tokens_are_answered_later_and_later_and_then_locked() -> None:
    visitors = Visitors()
    found = [visitors.ask("10.0.0.9", f"wrong-token-number-{n}") for n in range(12)]
    assert [delay for _, delay in found] == [0, 0, 0, 0.5, 1, 2, 4, 8, 8, 8, 8, 8]
    assert [status for status, _ in found] == [401] * (LOCKED_AFTER - 1) + [429] * 3


def test_a_right_token_passes_at_once_from_any_address_during_a_lock_out() -> None:
    visitors = Visitors()
    for n in range(50):
        visitors.ask("10.0.0.9", f"wrong-token-number-{n}")
    for address in ("10.0.0.9", "10.0.0.10"):
        assert visitors.ask(address, SECRET) == (200, 0.0)
    assert visitors.ask("10.0.0.9", "wrong-again-and-again")[0] == 429


def test_a_lock_out_ends() -> None:
    visitors = Visitors()
    for n in range(LOCKED_AFTER):
        visitors.ask("10.0.0.9", f"wrong-token-number-{n}")
    visitors.now = WINDOW_S - 1
    assert visitors.ask("10.0.0.9", "wrong-again") == (429, LONGEST_DELAY_S)
    visitors.now += WINDOW_S + 1
    assert visitors.ask("10.0.0.9", "wrong-later") == (401, 0.0)


def test_other_addresses_are_not_delayed() -> None:
    visitors = Visitors()
    for n in range(20):
        visitors.ask("10.0.0.9", f"wrong-token-number-{n}")
    assert visitors.ask("10.0.0.10", "a-typing-error-here") == (401, 0.0)


def test_an_old_cookie_that_comes_again_and_again_is_one_wrong_token() -> None:
    visitors = Visitors()
    assert {visitors.ask("10.0.0.9", "token-of-yesterday") for _ in range(100)} == {(401, 0.0)}


def test_a_page_shows_the_form_during_a_lock_out() -> None:
    visitors = Visitors()
    for n in range(LOCKED_AFTER):
        visitors.ask("10.0.0.9", f"wrong-token-number-{n}", path="/")
    scope = scope_of({"Host": "robot", "Authorization": "Bearer wrong-at-last"})
    sent = asyncio.run(answers(visitors.guard, {**scope, "client": ("10.0.0.9", 1)}))
    assert dict(sent[0]["headers"])[b"retry-after"] == b"300"
    assert b"<form" in sent[1]["body"]


def test_the_log_names_the_address_once_and_never_a_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    visitors = Visitors()
    for n in range(30):
        visitors.ask("10.0.0.9", f"wrong-token-number-{n}")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "10.0.0.9" in caplog.text
    assert "wrong-token" not in caplog.text


def test_the_table_of_addresses_is_bounded_and_networks_count_as_one() -> None:
    wrong = WrongTokens()
    for n in range(3 * MOST_ADDRESSES):
        wrong.add(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "wrong", 0.0)
    assert len(wrong) == MOST_ADDRESSES
    for n in range(LOCKED_AFTER):
        penalty = wrong.add(f"2001:db8::{n:x}", f"wrong {n}", 0.0)
    assert penalty.newly_locked
    assert wrong.add("::ffff:10.9.9.9", "wrong", 0.0).delay_s == 0.0


def test_few_answers_wait_at_a_time() -> None:
    wrong = WrongTokens()
    assert [wrong.begin_wait("10.0.0.9") for _ in range(MOST_WAITING + 1)][-2:] == [True, False]
    assert wrong.begin_wait("10.0.0.10")
    wrong.end_wait("10.0.0.9")
    assert wrong.begin_wait("10.0.0.9")
    assert sum(wrong.begin_wait(f"10.0.1.{n}") for n in range(200)) < 64
