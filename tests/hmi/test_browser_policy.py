"""What the browser may do with an answer of the server: headers, and pages under their policy."""

import http.client
import re
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from tests.browsers import TIMEOUT_SECONDS, RunningCell, Screen

from understudy.hmi.server import FIXED, with_nonces

PAGES = ("/", "/program", "/plots", "/log", "/nowhere")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


# ── headers ──


def raw(cell: RunningCell, request: bytes) -> dict[str, list[str]]:
    """Headers of the answer to these bytes."""
    address = urlsplit(cell.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as peer:
        peer.sendall(request)
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        return {name: answer.headers.get_all(name) or [] for name in answer.headers}


def get(path: str, method: str = "GET", **headers: str) -> bytes:
    given = {"Host": "localhost", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items())]
    return "\r\n".join([*lines, "", ""]).encode()


ANSWERS = {
    "page": get("/plots", Accept="text/html"),
    "missing page": get("/nowhere", Accept="text/html"),
    "missing file": get("/static/frame/none.js"),
    "script": get("/static/frame/frame.js"),
    "file outside": get("/static/frame/..%2f..%2fserver.py"),
    "query": get("/api/now"),
    "unknown command": get("/api/none", "POST"),
    "wrong parameters": get("/api/now?x=1", "POST"),
    "refused method": get("/api/stop"),
    "foreign name": get("/", Host="evil.example"),
    "foreign page": get("/api/stop", "POST", Origin="http://evil.example"),
    "websocket": get("/ws/state", **UPGRADE),
    "no HTTP": b"NONSENSE\r\n\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_the_headers(cell: RunningCell, name: str) -> None:
    found = {key.lower(): values for key, values in raw(cell, ANSWERS[name]).items()}
    for header, value in FIXED:
        assert found.get(header.lower()) == [value], header
    if name not in ("websocket", "no HTTP"):
        (policy,) = found["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert ("script-src" in policy) == ("text/html" in found["content-type"][0])
        assert found["cache-control"] == (["no-cache"] if name == "script" else ["no-store"])
    assert "server" not in found


def test_the_policy_allows_no_inline_script_and_a_new_nonce_for_each_answer(
    cell: RunningCell,
) -> None:
    policies = [raw(cell, get("/log"))["content-security-policy"][0] for _ in range(2)]
    nonces = [re.findall(r"'nonce-([\w-]{22})'", policy) for policy in policies]
    assert nonces[0] != nonces[1]
    scripts = re.findall(r"script-src[^;]*", policies[0])
    assert not [each for each in scripts if "unsafe-inline" in each or "*" in each]


def test_a_script_that_a_value_brings_gets_no_nonce() -> None:
    assert with_nonces("<script>a</script>{{ v }}").count("nonce=") == 1
    assert with_nonces("{{ v }}") == "{{ v }}"


def test_the_page_has_something_to_show_before_its_scripts_are_there(cell: RunningCell) -> None:
    with urlopen(f"{cell.url}/log", timeout=TIMEOUT_SECONDS) as answer:
        page = answer.read().decode()
    shown = page.split('<div id="app" >')[1].split("<script")[0]
    assert '<div class="u-mode-word">SIMULATION</div>' in shown
    assert "E-STOP" not in shown  # it would not work yet


# ── pages ──


@pytest.fixture(scope="module")
def screen(cell: RunningCell, welding_screen: Screen) -> Screen:
    welding_screen.open(cell.url)
    return welding_screen


def test_every_page_works_without_a_violation(cell: RunningCell, screen: Screen) -> None:
    """In Vietnamese; `open_page` checks the same for every test with a page."""
    seen: list[str] = []
    screen.page.on("console", lambda message: seen.append(message.text))
    screen.page.context.add_cookies([{"name": "language", "value": "vi", "url": cell.url}])
    for path in PAGES:
        screen.page.goto(cell.url + path)
        screen.built()
        screen.press("keys")
        screen.page.locator("dialog").wait_for()
        screen.page.keyboard.press("Escape")
    assert not [text for text in seen if "Content Security Policy" in text]
    assert not screen.errors


def test_downloads_work_under_the_policy(cell: RunningCell, screen: Screen) -> None:
    screen.page.goto(cell.url + "/plots")
    screen.built()
    screen.until(lambda: screen.page.evaluate("window.plots.report().rows") > 0, "rows")
    for kind in ("csv", "png", "svg"):
        with screen.page.expect_download() as download:
            screen.page.evaluate(f"window.plots.download('{kind}')")
        assert download.value.path().stat().st_size > 100


INJECTED = {
    "inline script": "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    " document.body.append(s)",
    "handler attribute": "document.body.insertAdjacentHTML('beforeend',"
    " '<img src=x onerror=\"window.ran = 1\">')",
    "javascript link": "const a = document.createElement('a');"
    " a.href = 'javascript:window.ran = 1'; document.body.append(a); a.click()",
    "foreign script": "const s = document.createElement('script');"
    " s.src = 'http://evil.example/x.js'; document.body.append(s)",
    "frame": "const f = document.createElement('iframe'); f.src = '/'; document.body.append(f)",
    "foreign base": "const b = document.createElement('base'); b.href = 'http://evil.example/';"
    " document.head.append(b)",
}


def test_the_browser_blocks_what_is_injected(browser: Any, cell: RunningCell) -> None:
    page = browser.new_page()
    page.set_default_timeout(1000 * TIMEOUT_SECONDS)
    page.add_init_script(
        "window.blocked = []; document.addEventListener('securitypolicyviolation',"
        " (event) => window.blocked.push(event.effectiveDirective))"
    )
    page.goto(cell.url + "/log")
    for attack, script in INJECTED.items():
        page.evaluate(f"window.blocked = []; {{ {script} }}")
        page.wait_for_function("window.blocked.length > 0")
        assert page.evaluate("window.ran") is None, attack
    page.close()
