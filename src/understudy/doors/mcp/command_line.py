"""`understudy mcp`: MCP and its two transports, standard input and output, and HTTP: one POST a
message, on this machine only, with a token."""

import os
import secrets
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from understudy import __version__
from understudy.cli.options import ReadyFileOption, RunningOption
from understudy.cli.parameters import Option
from understudy.doors.mcp.tools import Tools, tools_of
from understudy.errors import UNREADABLE, ConfigError, Refused
from understudy.operator.table import Command, Commands
from understudy.ports.access import TOKEN_VARIABLE, check_token, is_loopback, same_secret

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol, the newest first; what the tools use is the same in all of them."""
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602
LONGEST_MESSAGE = 8 * 1024 * 1024
INSTRUCTIONS = (
    "Simulated robot cells that answer on the wire as real robots do. Usual order: cells, validate "
    "a program and mend its findings by line, start a cell, run_program or send, then status and "
    "journal. REAL robots cannot be commanded here."
)
PATH = "/mcp"
READ_SECONDS = 30.0
MOST_CONNECTIONS = 64
"""Connections at a time; each has a thread."""


# ── the protocol ────────────────────────────────────────────────────────────────────────────────


class ProtocolError(Exception):
    """An answer with `error`: its code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Protocol:
    """JSON-RPC 2.0 messages in, answers out: the requests of one client."""

    def __init__(self, tools: list[Command]) -> None:
        """``tools``: rows of the table of tools."""
        self._tools = {tool.name: tool for tool in tools}
        self._table = Commands(tools)

    def answer(self, message: bytes) -> bytes | None:
        """The answer to a message; None to a notification."""
        number: Any = None
        try:
            request = _request(message)
            number = request.get("id")
            result = self._result(request["method"], request.get("params") or {})
        except ProtocolError as problem:
            error = {"code": problem.code, "message": str(problem)}
            return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})
        return (
            None
            if number is None
            else msgspec.json.encode({"jsonrpc": "2.0", "id": number} | result)
        )

    def _result(self, method: str, parameters: Any) -> dict[str, Any]:
        if method.startswith("notifications/"):
            return {}
        if not isinstance(parameters, dict):
            raise ProtocolError(BAD_PARAMETERS, "params is an object")
        answers = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": lambda _: {"tools": [_described(each) for each in self._tools.values()]},
            "tools/call": self._call,
        }
        if method not in answers:
            raise ProtocolError(NO_METHOD, f"{method}: no such method; {', '.join(answers)}")
        return {"result": answers[method](parameters)}

    def _initialize(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        asked = parameters.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "understudy", "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    def _call(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        name, given = parameters.get("name"), parameters.get("arguments") or {}
        if name not in self._tools:
            there = ", ".join(self._tools)
            raise ProtocolError(BAD_PARAMETERS, f"there is no tool {name!r}; there are: {there}")
        if not isinstance(given, dict):
            raise ProtocolError(BAD_PARAMETERS, "arguments is an object")
        result = self._table.call(str(name), given, "operator")
        if isinstance(result, Refused):
            return {"content": [_text(result.reason)], "isError": True}
        value = msgspec.to_builtins(result)
        return {"content": [_text(msgspec.json.encode(value).decode())], "structuredContent": value}


def _request(message: bytes) -> dict[str, Any]:
    if len(message) > LONGEST_MESSAGE:
        raise ProtocolError(INVALID_REQUEST, f"a message over {LONGEST_MESSAGE} bytes")
    try:
        request = msgspec.json.decode(message)
    except UNREADABLE as problem:
        raise ProtocolError(PARSE_ERROR, f"not JSON: {problem}") from None
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise ProtocolError(INVALID_REQUEST, "a request is one JSON object with a method")
    if not isinstance(request.get("id"), str | int | float | None):
        raise ProtocolError(INVALID_REQUEST, "id is a text or a number")
    return request


def _described(tool: Command) -> dict[str, Any]:
    (schema,), defined = msgspec.json.schema_components([tool.parameters])
    own = defined.pop(schema["$ref"].rpartition("/")[2])
    about = own.pop("description", "")
    return {
        "name": tool.name,
        "description": f"{tool.doc[:1].upper()}{tool.doc[1:]}. {about}".strip(),
        "inputSchema": own | ({"$defs": defined} if defined else {}),
        "annotations": {"readOnlyHint": tool.role == "viewer", "openWorldHint": False},
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


# ── the command and its transports ──────────────────────────────────────────────────────────────

Http = Annotated[
    int | None,
    Option(
        "--http",
        metavar="PORT",
        min=0,
        max=65535,
        help="serve on http://127.0.0.1:PORT/mcp with a token, which is printed; 0: a free port",
    ),
]


def mcp(running: RunningOption = "", ready_file: ReadyFileOption = None, http: Http = None) -> None:
    """Serve simulated cells as tools to an agent (Model Context Protocol).

    Without options an agent starts this command itself and talks over standard input and output. No
    tool commands a REAL robot; cells that the agent starts end with it.
    """
    tools = Tools(running, ready_file)
    protocol = Protocol(tools_of(tools))
    try:
        if http is None:
            _serve_stdio(protocol)
        else:
            _serve_http(protocol, http)
    finally:
        tools.close()


def _serve_stdio(protocol: Protocol) -> None:
    """One message a line, until the agent closes its side."""
    while line := sys.stdin.buffer.readline(LONGEST_MESSAGE + 1):
        if not line.strip():
            continue
        answer = protocol.answer(line)
        if len(line) > LONGEST_MESSAGE:
            while line and not line.endswith(b"\n"):
                line = sys.stdin.buffer.readline(LONGEST_MESSAGE)
        if answer is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


def _serve_http(protocol: Protocol, port: int) -> None:
    """Serves until Ctrl-C."""
    given = os.environ.get(TOKEN_VARIABLE)
    check_token(given, TOKEN_VARIABLE)
    token = given or secrets.token_urlsafe(24)
    try:
        server = http_server(protocol, port, token)
    except OSError as problem:
        raise ConfigError(
            f"--http {port}: {problem.strerror}", allowed="a free port, or 0"
        ) from None
    print(f"http://127.0.0.1:{server.server_port}{PATH}", file=sys.stderr)
    if not given:
        print(f"Authorization: Bearer {token}", file=sys.stderr)
    with server:
        server.serve_forever()


class _Server(ThreadingHTTPServer):
    """A connection beyond the limit is closed at once."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, *given: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def http_server(protocol: Protocol, port: int, token: str) -> ThreadingHTTPServer:
    return _Server(("127.0.0.1", port), _handler(protocol, token))


def _handler(protocol: Protocol, token: str) -> type[BaseHTTPRequestHandler]:
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = READ_SECONDS

        def do_POST(self) -> None:
            if refused := self._refused():
                return self._reply(*refused)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with one_at_a_time:
                answer = protocol.answer(body)
            return self._reply(202, b"") if answer is None else self._reply(200, answer)

        def do_GET(self) -> None:
            self._reply(405, b"POST a message; this server sends nothing by itself")

        def _refused(self) -> tuple[int, bytes] | None:
            """Why a request is not read: status and words. A page of another site has an Origin."""
            length = self.headers.get("Content-Length", "")
            origin = self.headers.get("Origin", "http://127.0.0.1")
            _, _, given = self.headers.get("Authorization", "").partition(" ")
            if self.path != PATH:
                return 404, f"the address is {PATH}".encode()
            if not is_loopback(urlsplit(origin).hostname or "-"):
                return 403, b"from this machine only"
            if not same_secret(given, token):
                return 401, b"the header Authorization: Bearer TOKEN is missing or wrong"
            if not length.isdecimal() or int(length) > LONGEST_MESSAGE:
                return 413, f"Content-Length of at most {LONGEST_MESSAGE} bytes is needed".encode()
            return None

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            json = body.startswith(b"{")
            self.send_header("Content-Type", "application/json" if json else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            if status >= 400:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            """Standard error is for problems."""

    return Handler
