"""Client of the control endpoint of a running cell, which it finds by its ready file."""

import json
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from understudy.app.ready_file import Ready, printable
from understudy.errors import ConfigError
from understudy.wire.interface import host_and_port

TIMEOUT_SECONDS = 5.0
LONGEST_REASON = 4000
LONGEST_FIRST = 8 * 1024
"""Bytes of a request that carries the secret itself; before a longer one a short one is sent."""


def request(
    ready: Ready, asked: dict[str, Any], *, timeout_s: float | None = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """The reply to one request; ConfigError if the cell does not answer.

    The answer must come within ``timeout_s``; None waits until there is one.
    """
    name = ready.title
    control = ready.endpoints.get("control")
    if control is None:
        raise ConfigError(f"{name} has no control endpoint")
    try:
        with socket.create_connection(host_and_port(control), TIMEOUT_SECONDS) as connection:
            connection.settimeout(timeout_s)
            reply = _exchange(connection, asked, ready.secret)
    except (OSError, ValueError, OverflowError) as problem:
        raise ConfigError(f"{name} does not answer: {printable(str(problem))}") from None
    if not isinstance(reply, dict):
        raise ConfigError(f"{name}: no answer")
    return reply


def result_of(
    ready: Ready, asked: dict[str, Any], *, timeout_s: float | None = TIMEOUT_SECONDS
) -> Any:
    """The result of one request; ConfigError if it is refused."""
    reply = request(ready, asked, timeout_s=timeout_s)
    if not reply.get("ok"):
        reason = printable(str(reply.get("error") or "no answer"), LONGEST_REASON)
        raise ConfigError(f"{ready.title}: {reason}")
    return reply.get("result")


def newest_messages(journal: Callable[[int], Mapping[str, Any]], most: int) -> list[Any]:
    """The newest messages of the query `journal`; ``journal`` asks it for those after a number."""
    rows: deque[Any] = deque(maxlen=most)
    since, more = 0, 1
    while more:  # the oldest come first
        page = journal(since)
        rows.extend(page["journal"])
        since, more = page["last"], page["more"]
    return list(rows)


def _exchange(connection: socket.socket, asked: dict[str, Any], secret: str) -> Any:
    key = {"secret": secret} if secret else {}
    stream = connection.makefile("rb")
    line = json.dumps(asked | key).encode() + b"\n"
    if len(line) > LONGEST_FIRST:
        connection.sendall(json.dumps({"do": "now"} | key).encode() + b"\n")
        first = json.loads(stream.readline() or b"{}")
        if not isinstance(first, dict) or not first.get("ok"):
            return first
    connection.sendall(line)
    return json.loads(stream.readline() or b"{}")
