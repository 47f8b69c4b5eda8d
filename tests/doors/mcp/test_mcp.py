"""Cells as tools of an agent: the protocol, the official client, HTTP, and no REAL robot."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import ClientSession, StdioServerParameters, stdio_client
from tests.operator.test_modes import TEXT, pair

from understudy.app.ready_file import Ready
from understudy.doors.mcp.command_line import MOST_CONNECTIONS, PATH, Protocol, http_server
from understudy.doors.mcp.tools import Tools, tools_of

WRONG = "G90 G21\nG1 X400 F6000\nG1 X2000\nM30\n"
NEAR_MM, MOST_TRIES = 400.0, 12
COMMAND = [sys.executable, "-m", "understudy", "mcp"]


@pytest.fixture(scope="module")
def protocol() -> Iterator[Protocol]:
    tools = Tools()
    yield Protocol(tools_of(tools))
    tools.close()


def asked(protocol: Protocol, method: str, **params: Any) -> Any:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = protocol.answer(json.dumps(request).encode())
    assert answer is not None
    return json.loads(answer)


def called(protocol: Protocol, tool: str, **arguments: Any) -> Any:
    return asked(protocol, "tools/call", name=tool, arguments=arguments)["result"]


# ── the protocol ────────────────────────────────────────────────────────────────────────────────


def test_nine_tools_with_schemas(protocol: Protocol) -> None:
    tools = asked(protocol, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == [
        "cells", "start", "status", "validate", "run_program",
        "send", "journal", "inject", "snapshot",
    ]  # fmt: skip
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        assert len(tool["description"]) > 20
    reading = {tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]}
    assert reading == {"cells", "status", "validate", "journal"}


def test_a_known_revision_is_taken_and_another_one_answered_with_the_newest(
    protocol: Protocol,
) -> None:
    for version, answered in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
        result = asked(protocol, "initialize", protocolVersion=version)["result"]
        assert result["protocolVersion"] == answered


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": [1], "method": "ping"}', -32600),
        (b'{"id": 1, "method": "nothing"}', -32601),
        (b'{"id": 1, "method": "tools/call", "params": 3}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "x"}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "commands"}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "cells", "arguments": 1}}', -32602),
    ],
)
def test_a_wrong_message_is_answered_with_its_code(
    protocol: Protocol, message: bytes, code: int
) -> None:
    answer = protocol.answer(message)
    assert answer is not None
    assert json.loads(answer)["error"]["code"] == code


def test_a_notification_is_not_answered(protocol: Protocol) -> None:
    assert protocol.answer(b'{"method": "notifications/initialized"}') is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
METHODS = st.sampled_from(["initialize", "tools/list", "tools/call", "ping", "x"])


@given(st.binary() | st.builds(lambda v: json.dumps(v).encode(), JSON))
def test_garbage_is_answered(protocol: Protocol, message: bytes) -> None:
    answer = protocol.answer(message)
    assert answer is None or json.loads(answer)["jsonrpc"] == "2.0"


@given(METHODS, JSON)
def test_wrong_parameters_are_answered(protocol: Protocol, method: str, params: Any) -> None:
    message = {"id": 1, "method": method, "params": params}
    answer = protocol.answer(json.dumps(message).encode())
    assert answer is not None
    assert {"result", "error"} & json.loads(answer).keys()


# ── the tools ───────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_argument_is_said(protocol: Protocol) -> None:
    result = called(protocol, "start", cell="text_robo")
    assert result["isError"]
    assert "did you mean 'text_robot'?" in result["content"][0]["text"]
    result = called(protocol, "start", sell="text_robot")
    assert "sell" in result["content"][0]["text"]
    result = called(protocol, "status", cell="nothing-of-this-name")
    assert result["isError"]


def test_why_a_cell_does_not_start_is_said(protocol: Protocol, tmp_path: Path) -> None:
    file = tmp_path / "open.yaml"
    file.write_text("control: {host: 0.0.0.0}\nrobots: {bench: {kind: text_robot}}\n")
    result = called(protocol, "start", cell=str(file))
    assert result["isError"]
    assert "the cell did not start: " in result["content"][0]["text"]
    assert "can be reached from other machines" in result["content"][0]["text"]


def test_real_is_refused(protocol: Protocol) -> None:
    result = called(protocol, "start", cell="text_robot", real=True)
    assert "REAL is not possible" in result["content"][0]["text"]


def test_a_cell_with_a_real_robot_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use() -> None:
        async with pair(TEXT) as (_, operator):
            live = operator.live
            ready = Ready(1, "c", 1.0, dict(live.endpoints), secret=live.secret)
            monkeypatch.setattr("understudy.doors.mcp.tools.one_cell", lambda name, file: ready)
            tools = Tools()
            protocol = Protocol(tools_of(tools))
            status = await asyncio.to_thread(called, protocol, "status")
            assert status["structuredContent"]["robots"][0]["mode"] == "REAL"
            for tool, arguments in (
                ("run_program", {"program": "MOVE_ABS 1,2,3,0,0,0\n"}),
                ("send", {"data": "STOP\\n", "endpoint": "bench.text_tcp"}),
                ("inject", {"fault": "motor_fault"}),
                ("snapshot", {"do": "save"}),
            ):
                result = await asyncio.to_thread(called, protocol, tool, **arguments)
                assert result["isError"]
                assert "bench is REAL" in result["content"][0]["text"], tool

    asyncio.run(asyncio.wait_for(use(), 120))


def nearer(program: str, violations: list[dict[str, Any]]) -> str:
    """The program with the X of each line of a violation half as far away."""
    lines = program.splitlines()
    for each in violations:
        at = each["line"] - 1
        assert lines[at] == each["text"]
        word, x = each["text"].split(" X")
        lines[at] = f"{word} X{(float(x) + NEAR_MM) / 2}"
    return "\n".join(lines) + "\n"


def test_the_official_client_mends_a_program_by_its_findings_and_runs_it() -> None:
    async def use() -> None:
        parameters = StdioServerParameters(
            command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ)
        )
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            await client.initialize()
            listed = await client.list_tools()
            assert 0 < len(listed.tools) <= 9
            refused = await client.call_tool("start", {"cell": "text_robot", "real": True})
            assert refused.is_error
            assert "REAL is not possible" in str(refused.content)

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            mended = WRONG
            for _ in range(MOST_TRIES):
                found = await call("validate", program=mended, cell="g60_welding")
                if found["verdict"] == "pass":
                    break
                mended = nearer(mended, found["violations"])
            assert found["verdict"] == "pass"
            assert mended != WRONG
            started = await call("start", cell="g60_welding", rate="max")
            await call("snapshot", do="save", name="before")
            run = await call("run_program", program=mended)
            assert (run["state"], run["error"], run["collisions"]) == ("done", "", 0)
            await call("inject", fault="emergency_stop")
            await call("snapshot", do="restore", name="before")
            status = await call("status")
            assert [robot["name"] for robot in status["robots"]] == started["robots"] == ["g60"]
            running = await call("cells")
            assert started["process"] in {each["process"] for each in running["running"]}

    asyncio.run(asyncio.wait_for(use(), 240))


def test_a_raw_request_and_its_trace_in_the_journal(protocol: Protocol) -> None:
    started = called(protocol, "start", cell="text_robot", rate="step")
    assert "structuredContent" in started, started
    sent = called(protocol, "send", data="GET_POS\\n", endpoint="bench.text_tcp", within_s=60)
    assert sent["structuredContent"]["answer"].startswith("OK ")
    messages = called(protocol, "journal", endpoint="bench.text_tcp", last=2)["structuredContent"]
    assert len(messages["messages"]) == 2
    wrong = called(protocol, "send", data="GET_POS\\n", endpoint="bench.text")
    assert "bench.text_tcp" in wrong["content"][0]["text"]
    wrong = called(protocol, "send", data="\\x1", endpoint="bench.text_tcp")
    assert "escapes" in wrong["content"][0]["text"]


# ── HTTP ────────────────────────────────────────────────────────────────────────────────────────


def test_http_needs_the_token_and_answers_one_message_a_post() -> None:
    token = "a-token-for-the-test"
    env = {**os.environ, "UNDERSTUDY_TOKEN": token}
    server = subprocess.Popen([*COMMAND, "--http", "0"], stderr=subprocess.PIPE, env=env, text=True)
    try:
        assert server.stderr is not None
        address = server.stderr.readline().strip()
        right = {"Authorization": f"Bearer {token}"}
        ping = b'{"id": 1, "method": "ping"}'

        def post(body: bytes, headers: dict[str, str], path: str = "") -> tuple[int, bytes]:
            request = Request(address + path, body, headers)
            try:
                with urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read()
            except HTTPError as refused:
                return refused.code, refused.read()

        assert post(ping, right) == (200, b'{"jsonrpc":"2.0","id":1,"result":{}}')
        assert post(b'{"method": "notifications/x"}', right) == (202, b"")
        assert post(ping, {})[0] == 401
        assert post(ping, {"Authorization": "Bearer x"})[0] == 401
        for origin in ("http://evil.example", "null"):
            assert post(ping, right | {"Origin": origin})[0] == 403
        assert post(ping, right | {"Origin": "http://localhost:8080"})[0] == 200
        assert post(ping, right, "/x")[0] == 404
    finally:
        server.terminate()
        server.communicate()


def test_more_connections_than_allowed_are_closed() -> None:
    token = "a-token-for-the-test"
    server = http_server(Protocol([]), 0, token)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    address = ("127.0.0.1", server.server_port)
    silent = [socket.create_connection(address, 60) for _ in range(MOST_CONNECTIONS)]
    try:
        with socket.create_connection(address, 60) as refused:
            assert refused.recv(1) == b""
        silent.pop().close()
        request = Request(
            f"http://127.0.0.1:{server.server_port}{PATH}",
            b'{"id": 1, "method": "ping"}',
            {"Authorization": f"Bearer {token}"},
        )
        assert answered_in_time(request) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    finally:
        for each in silent:
            each.close()
        server.shutdown()
        serving.join()
        server.server_close()


def answered_in_time(request: Request) -> bytes:
    """The answer, once the server has noticed that a client has gone."""
    end = time.monotonic() + 60
    while True:
        try:
            with urlopen(request, timeout=60) as answer:
                found: bytes = answer.read()
                return found
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
