"""REST and the websocket of frames, over the wire: the page's process in front of a live cell."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import schemathesis
import websockets
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from websockets.typing import Origin

from understudy.testing import StandIn

OPENAPI = "/api/openapi.json"
NOT_TRIED = ("quit", "snapshot", "start_run")
"""It would end the cell, write files by chance names, start processes."""


@pytest.fixture(scope="module")
def cell() -> Iterator[StandIn]:
    with StandIn("default", rate=1.0) as cell:
        yield cell


@pytest.fixture(scope="module")
def page(cell: StandIn) -> Iterator[str]:
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        doors = {"link": "g60.hmi_link", "status": "g60.hmi_link.status", "state": "state"}
        addresses = [f"--{door}={cell.endpoints[name]}" for door, name in doors.items()]
        command = [sys.executable, "-m", "understudy.hmi"]
        process = subprocess.Popen(
            [*command, *addresses, f"--fd={listener.fileno()}", "--follow-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield f"http://127.0.0.1:{port}"
    process.stdin.close()
    process.stdout.close()
    assert process.wait(10) == 0


def ask(
    page: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any]:
    line = HTTPConnection(urlsplit(page).netloc, timeout=60)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, {"Content-Type": "application/json", **fields})
    answer = line.getresponse()
    data = answer.read()
    line.close()
    return answer.status, json.loads(data)


# ── REST ──


def test_what_a_viewer_may_ask_is_got(page: str) -> None:
    status, told = ask(page, "GET", "/api/now")
    assert (status, told["rate"]) == (200, 1.0)


def test_parameters_of_a_query_stand_in_its_address(page: str) -> None:
    status, told = ask(page, "GET", "/api/io?robot=g60")
    assert status == 200
    assert told


def test_what_an_operator_does_is_posted(page: str) -> None:
    before = ask(page, "GET", "/api/now")[1]["now_s"]
    status, told = ask(page, "POST", "/api/advance", b'{"seconds": 50}')
    assert status == 200
    assert told["now_s"] >= before + 50.0


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/api/nwo", None, 404, 1),
        ("GET", "/api/advance", None, 405, 10),
        ("POST", "/api/advance", b'{"seconds": -1}', 422, 2),
        ("POST", "/api/advance", b'{"secnds": 1}', 422, 2),
        ("POST", "/api/advance", b"", 422, 2),
        ("POST", "/api/advance", b"{", 400, 10),
        ("POST", "/api/advance", b"[1]", 400, 10),
        ("POST", "/api/advance", b'{"seconds": 1e999}', 400, 10),
        ("POST", "/api/inject", b'{"fault": "tea", "on": "g60"}', 409, 4),
        ("GET", "/api/io?robot=nobody", None, 409, 4),
    ],
)
def test_an_error_has_a_code_and_a_message(
    page: str, method: str, path: str, body: bytes | None, status: int, code: int
) -> None:
    got, told = ask(page, method, path, body)
    assert (got, told["code"]) == (status, code)
    assert told["message"]


def test_what_a_foreign_form_can_send_is_not_taken(page: str) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert ask(page, "POST", "/api/stop", b"robot=g60", **form)[0] == 415
    assert ask(page, "POST", "/api/stop", b"{}", Origin="http://evil.example")[0] == 403
    assert ask(page, "GET", "/api/now", Host="evil.example")[0] == 403


def test_every_command_of_the_desk_is_described(page: str, cell: StandIn) -> None:
    document = ask(page, "GET", OPENAPI)[1]
    assert document["openapi"].startswith("3.1")
    table = {row["name"]: row["role"] for row in cell.do("commands")}
    assert {path.strip("/") for path in document["paths"]} == set(table)
    for name, role in table.items():
        methods = {"get", "post"} if role == "viewer" else {"post"}
        assert document["paths"][f"/{name}"].keys() == methods


numbers_without_sense = pytest.mark.filterwarnings("ignore::RuntimeWarning")
"""numpy says so when a figure is too large to be reckoned with."""


def try_everything(page: str, examples: int) -> int:
    """Parameters that fit and that do not, for every command; how many commands."""
    schema = schemathesis.openapi.from_url(page + OPENAPI)
    operations = schema.exclude(path=[f"/{name}" for name in NOT_TRIED]).get_all_operations()
    count = 0
    for operation in operations:
        count += 1
        assert isinstance(operation, Ok), operation

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy())
        def nothing_breaks(case: Any) -> None:
            case.call_and_validate(checks=[not_a_server_error])

        nothing_breaks()
    return count


@numbers_without_sense
def test_nothing_that_is_sent_breaks_it(page: str, cell: StandIn) -> None:
    assert try_everything(page, examples=2) > 50
    cell.do("reset")


@pytest.mark.soak
@numbers_without_sense
def test_nothing_that_is_sent_breaks_it_however_long(page: str, cell: StandIn) -> None:
    assert try_everything(page, examples=80) > 50
    cell.do("reset")


# ── frames ──


async def _frame(line: websockets.ClientConnection) -> Any:
    frame = await line.recv()
    assert isinstance(frame, bytes)
    return msgspec.msgpack.decode(frame)


async def _frames(page: str, count: int) -> list[Any]:
    async with websockets.connect(page.replace("http", "ws") + "/ws/state") as line:
        return [await _frame(line) for _ in range(count)]


def test_browsers_get_frames_of_all_robots(page: str) -> None:
    async def both() -> list[list[Any]]:
        return list(await asyncio.gather(_frames(page, 5), _frames(page, 5)))

    for frames in asyncio.run(both()):
        assert [frame["seq"] for frame in frames] == sorted(frame["seq"] for frame in frames)
        assert frames[0]["robots"].keys() == {"g60", "bench", "kuka"}
        assert len(frames[0]["robots"]["g60"]["q"]) == 6


def test_a_websocket_of_a_foreign_page_is_turned_away(page: str) -> None:
    async def knock() -> None:
        address = page.replace("http", "ws") + "/ws/state"
        async with websockets.connect(address, origin=Origin("http://evil.example")):
            pass

    with pytest.raises(websockets.InvalidStatus):
        asyncio.run(knock())


def test_a_browser_that_does_not_read_slows_no_other(page: str) -> None:
    async def scene() -> list[Any]:
        address = page.replace("http", "ws") + "/ws/state"
        async with websockets.connect(address, max_queue=1) as deaf:
            frames = await _frames(page, 30)
            await deaf.recv()
            deaf.transport.abort()
            return frames

    numbers = [frame["seq"] for frame in asyncio.run(scene())]
    assert numbers == sorted(set(numbers))
