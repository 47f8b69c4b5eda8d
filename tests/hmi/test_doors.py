"""REST and the state websocket over the network: the HMI process with a live cell."""

import asyncio
import json
import re
import socket
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

from understudy.app.stand_in import StandIn
from understudy.config.files import find_cell

OPENAPI = "/api/openapi.json"
NOT_TRIED = ("quit", "snapshot", "save_program", "save_project", "start_run")
"""They end the cell, write files with random names, start processes."""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    """The cell default without its mobile robots: with them, hours of `advance` take minutes."""
    lines = find_cell("default")[1].splitlines(keepends=True)
    file = tmp_path_factory.mktemp("cell") / "default.yaml"
    file.write_text("".join(line for line in lines if "kind: mobile" not in line))
    with StandIn(str(file), rate=1.0, hmi=True) as cell:
        yield cell


@pytest.fixture(scope="module")
def page(page_process: Any) -> str:
    """Its address."""
    return str(page_process.url)


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


def test_a_query_is_a_get(page: str) -> None:
    status, answer = ask(page, "GET", "/api/now")
    assert (status, answer["rate"]) == (200, 1.0)


def test_a_rate_while_paused_is_the_same_by_rest_and_by_command(page: str, cell: StandIn) -> None:
    cell.do("pause")
    try:
        status, answer = ask(page, "POST", "/api/rate", b'{"rate": 2}')
        assert (status, answer["rate"], answer["paused"], answer["resumes_at"]) == (200, 0, True, 2)
        _, now = ask(page, "GET", "/api/now")
        _, metrics = ask(page, "GET", "/api/metrics")
        assert (now["rate"], metrics["state"]) == (0, "PAUSED")
        assert cell.do("metrics")["state"] == "PAUSED"
        assert cell.do("now")["rate"] == 0.0
    finally:
        cell.do("rate", rate=1.0)
        cell.do("resume")
    assert ask(page, "GET", "/api/now")[1]["rate"] == 1.0


def test_parameters_of_a_query_are_in_the_address(page: str) -> None:
    status, answer = ask(page, "GET", "/api/io?robot=g60")
    assert status == 200
    assert answer


def test_a_command_is_a_post(page: str) -> None:
    before = ask(page, "GET", "/api/now")[1]["now_s"]
    status, answer = ask(page, "POST", "/api/advance", b'{"seconds": 50}')
    assert status == 200
    assert answer["now_s"] >= before + 50.0


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
    got, answer = ask(page, method, path, body)
    assert (got, answer["code"]) == (status, code)
    assert answer["message"]


def test_a_form_of_another_site_is_refused(page: str) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert ask(page, "POST", "/api/stop", b"robot=g60", **form)[0] == 415
    assert ask(page, "POST", "/api/stop", b"{}", Origin="http://evil.example")[0] == 403
    assert ask(page, "GET", "/api/now", Host="evil.example")[0] == 403


def test_openapi_describes_every_command(page: str, cell: StandIn) -> None:
    document = ask(page, "GET", OPENAPI)[1]
    assert document["openapi"].startswith("3.1")
    table = {row["name"]: row["role"] for row in cell.do("commands")}
    assert {path.strip("/") for path in document["paths"]} == set(table)
    for name, role in table.items():
        methods = {"get", "post"} if role == "viewer" else {"post"}
        assert document["paths"][f"/{name}"].keys() == methods


# ── for supervisors and Prometheus, and the page of the commands ──


def text_of(page: str, path: str) -> tuple[int, str, str]:
    line = HTTPConnection(urlsplit(page).netloc, timeout=60)
    line.request("GET", path)
    answer = line.getresponse()
    found = answer.status, str(answer.headers["content-type"]), answer.read().decode()
    line.close()
    return found


def test_health_and_ready(page: str, cell: StandIn) -> None:
    assert ask(page, "GET", "/health") == (200, {"status": "ok"})
    status, answer = ask(page, "GET", "/ready")
    assert (status, answer["status"], answer["cell"]) == (200, "ready", cell.do("status")["cell"])


def test_metrics_are_read_by_prometheus(page: str, cell: StandIn) -> None:
    """Each family has its help and type before its values; the values are those of the cell."""
    before = metrics(page)
    cell.do("inject", fault="wire_fault", on="g60.welder")
    with socket.create_connection(("127.0.0.1", cell.address("bench.text_tcp")[1])) as client:
        client.sendall(b"GET_POS\n")
        client.recv(200)
        after = metrics(page)
    assert before["understudy_up"] == before["understudy_rate"] == 1.0
    assert after['understudy_device_faults{device="g60.welder"}'] == 1.0
    assert after['understudy_clients{endpoint="bench.text_tcp"}'] == 1.0
    for direction in ("received", "sent"):
        name = f'understudy_messages_total{{endpoint="bench.text_tcp",direction="{direction}"}}'
        assert after[name] == before[name] + 1.0
    name = 'understudy_robots{kind="text_robot",mode="SIMULATION",state="Idle"}'
    assert after[name] == 1.0
    assert after["understudy_simulation_seconds_total"] > 0.0
    assert after["understudy_lateness_seconds"] >= 0.0
    cell.do("reset")


def metrics(page: str) -> dict[str, float]:
    """The values, as Prometheus reads them."""
    status, kind, text = text_of(page, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found: dict[str, float] = {}
    declared: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            declared = [*declared, line.split(" ")[2]][-2:]
        else:
            name, _, value = line.rpartition(" ")
            assert declared == [name.partition("{")[0]] * 2
            found[name] = float(value)
    return found


def test_the_page_of_the_commands_names_all_and_loads_nothing_from_elsewhere(
    page: str, cell: StandIn
) -> None:
    status, kind, text = text_of(page, "/api/docs")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    for row in cell.do("commands"):
        assert f'<details id="{row["name"]}"' in text
    addresses = re.findall(r'(?:href|src)="([^"]*)"', text)
    assert addresses
    assert all(each == "openapi.json" or each.startswith("/static/") for each in addresses)
    for each in addresses[:2]:
        assert text_of(page, each)[0] == 200


ignore_overflow = pytest.mark.filterwarnings("ignore::RuntimeWarning")
"""numpy warns when a value is too large to compute with."""


def try_everything(page: str, examples: int) -> int:
    """Sends valid and invalid parameters to every command; returns the number of commands."""
    schema = schemathesis.openapi.from_url(page + OPENAPI)
    operations = schema.exclude(path=[f"/{name}" for name in NOT_TRIED]).get_all_operations()
    count = 0
    for operation in operations:
        count += 1
        assert isinstance(operation, Ok), operation

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy())
        def no_server_error(case: Any) -> None:
            case.call_and_validate(checks=[not_a_server_error])

        no_server_error()
    return count


@ignore_overflow
def test_no_request_causes_a_server_error(page: str, cell: StandIn) -> None:
    assert try_everything(page, examples=2) > 50
    cell.do("reset")


@pytest.mark.soak
@ignore_overflow
def test_no_request_causes_a_server_error_in_a_long_run(page: str, cell: StandIn) -> None:
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


def test_a_websocket_of_a_foreign_page_is_refused(page: str) -> None:
    async def connect() -> None:
        address = page.replace("http", "ws") + "/ws/state"
        async with websockets.connect(address, origin=Origin("http://evil.example")):
            pass

    with pytest.raises(websockets.InvalidStatus):
        asyncio.run(connect())


def test_a_browser_that_does_not_read_slows_no_other(page: str) -> None:
    async def scene() -> list[Any]:
        address = page.replace("http", "ws") + "/ws/state"
        async with websockets.connect(address, max_queue=1) as slow:
            frames = await _frames(page, 30)
            await slow.recv()
            slow.transport.abort()
            return frames

    numbers = [frame["seq"] for frame in asyncio.run(scene())]
    assert numbers == sorted(set(numbers))
