"""MCP: JSON-RPC 2.0 messages in, answers out. `Protocol.answer` does not know how they came."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from understudy import __version__
from understudy.errors import UNREADABLE, Refused
from understudy.operator.table import Command, Commands

log = logging.getLogger(__name__)

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol, the newest first; what the tools use is the same in all of them."""
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602
LONGEST_MESSAGE = 8 * 1024 * 1024
INSTRUCTIONS = (
    "Simulated robot cells that answer on the wire as real robots do. Usual order: cells, validate "
    "a program and mend its findings by line, start a cell, run_program or send, then status and "
    "journal. REAL robots cannot be commanded here."
)


class ProtocolError(Exception):
    """An answer with `error`: its code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Protocol:
    """Answers the requests of one client. ``tools``: rows of the table of tools."""

    def __init__(self, tools: list[Command]) -> None:
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
            return _encoded({"jsonrpc": "2.0", "id": number, "error": error})
        return None if number is None else _encoded({"jsonrpc": "2.0", "id": number} | result)

    def _result(self, method: str, parameters: Any) -> dict[str, Any]:
        if method.startswith("notifications/"):
            return {}
        if not isinstance(parameters, dict):
            raise ProtocolError(BAD_PARAMETERS, "params is an object")
        answers = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list,
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

    def _list(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"tools": [_described(tool) for tool in self._tools.values()]}

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
        return {"content": [_text(_encoded(value).decode())], "structuredContent": value}


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


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)
