"""A page of another site in the operator's browser posts orders to the ports of a cell."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from understudy.app.stand_in import StandIn

TIMEOUT_MS = 60_000
TURNS = 200
"""Turns of the cell's event loop in which it would read what the browser has sent."""
ORDERS = "\nMOVE_ABS 1,2,3,0,0,0\n" + '{"do": "advance", "seconds": 9}\n'
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
POST = """async ([address, body]) => {
  try { await fetch(address, {method: "POST", mode: "no-cors", body}); return "answered"; }
  catch (problem) { return String(problem); }
}"""
FORM = """([address, body]) => {
  const form = document.createElement("form");
  Object.assign(form, {action: address, method: "POST", enctype: "text/plain", target: "_blank"});
  const field = document.createElement("input");
  Object.assign(field, {name: "x", value: body, type: "hidden"});
  form.append(field);
  document.body.append(form);
  form.submit();
}"""


@pytest.fixture(scope="module")
def cell() -> Iterator[StandIn]:
    with StandIn("text_robot", rate=0.0) as cell:
        yield cell


@pytest.fixture
def site() -> Iterator[str]:
    """The address of the foreign site."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    visitor, _ = listener.accept()
                except OSError:
                    return
                with visitor:
                    if visitor.recv(65536):
                        visitor.sendall(PAGE)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("way", [POST, FORM], ids=["fetch", "form"])
@pytest.mark.parametrize("door", ["bench.text_tcp", "control"])
def test_its_orders_are_not_read(
    browser: Any, cell: StandIn, site: str, door: str, way: str
) -> None:
    host, port = cell.address(door)
    before = (cell.do("status")["parts"]["bench"], cell.now)
    context = browser.new_context()
    page = context.new_page()
    page.goto(site, timeout=TIMEOUT_MS)
    target = f"http://{host}:{port}/"
    if way is POST:
        assert page.evaluate(way, [target, ORDERS]) == "TypeError: Failed to fetch"
    else:
        with context.expect_event("requestfailed", timeout=TIMEOUT_MS):
            page.evaluate(way, [target, ORDERS])
    context.close()
    for _ in range(TURNS):
        cell.do("now")
    assert (cell.do("status")["parts"]["bench"], cell.now) == before
