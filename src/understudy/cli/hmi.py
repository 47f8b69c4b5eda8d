"""Supervisor of the HMI process: starts it with the cell, restarts it if it dies, ends it.

The listening socket belongs to the cell's process, and the HMI process inherits it: the port stays
the same after a restart, and connections that arrive meanwhile wait instead of being refused.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

from understudy.cli.options import PAGE
from understudy.config import Hmi
from understudy.errors import ConfigError, needs
from understudy.hmi.access import (
    MONITORING,
    TOKEN_VARIABLE,
    VIEWER_TOKEN_VARIABLE,
    Access,
    read_access,
)
from understudy.ports import access
from understudy.wire import descriptors
from understudy.wire.child_process import ChildProcess, Program
from understudy.wire.interface import address_of
from understudy.wire.tcp import cannot_listen

log = logging.getLogger(__name__)

CLOSING_SECONDS = 1.0
REQUEST_SECONDS = 5.0
HEAD = """HTTP/1.1 %s\r
Content-Type: %s\r
Cache-Control: no-store\r
Retry-After: 2\r
Connection: close\r
"""
NOTICE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Understudy</title>
<style>body{background:#15181c;color:#e6e9ee;font:1.2em sans-serif;margin:20vh auto;max-width:32em;
padding:0 1em}</style>
<h1>The cell starts</h1><p>%s</p><p>This happens once. The page opens by itself.</p></html>
"""
NEEDS = {"nicegui": "nicegui", "zmq": "pyzmq"}


def missing_extra() -> str | None:
    """A line that names the extra that the HMI needs; None if they are installed."""
    missing = any(find_spec(module) is None for module in NEEDS)
    return f"the page is not served: it {needs(*NEEDS.values())}" if missing else None


@dataclass(frozen=True)
class Keys:
    """What opens the doors of the cell. `token` is that of the cell file; `real` says that the
    cell may command REAL robots."""

    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    real: bool = False

    def for_page(self, config: Hmi) -> str | None:
        """The token of visitors: the page's own, where other machines can reach it the cell's, and
        the secret of the run where orders could move a REAL robot."""
        own = os.environ.get(TOKEN_VARIABLE) or config.token
        everywhere = os.environ.get(access.TOKEN_VARIABLE) or self.token
        remote = None if access.is_loopback(config.host) else everywhere
        return own or remote or (self.secret if self.real else None)

    def access(self, config: Hmi) -> Access:
        """Access to the page; a ConfigError if a token is short, or missing where it is needed."""
        return read_access(config.host, self.for_page(config), config.viewer_token)


def _while_starting(request_line: bytes, text: str) -> bytes:
    """What a visitor gets who comes before the page: a browser loads it again; a supervisor reads
    that the process lives and is not ready yet."""
    address = b"".join(request_line.split(b" ")[1:2]).split(b"?")[0].decode("latin-1")
    if address not in MONITORING:
        return (HEAD % ("503 Service Unavailable", "text/html; charset=utf-8")).encode() + (
            "Refresh: 2\r\n\r\n" + NOTICE % text
        ).encode()
    status = "200 OK" if address == "/health" else "503 Service Unavailable"
    answer = json.dumps({"status": "starting", "reason": text})
    return f"{HEAD % (status, 'application/json')}\r\n{answer}".encode()


class PageProcess:
    """Owns the port from the beginning; supervises the process after `start`."""

    def __init__(self, config: Hmi, port: int, keys: Keys, *, or_free: bool = False) -> None:
        """Listens on this port; with ``or_free`` on any free one if this one is in use."""
        self._secret = keys.secret
        self._access = keys.access(config)
        self._limits = [
            f"--max-clients={min(config.max_clients, descriptors.share(1))}",
            f"--max-clients-per-address={config.max_clients_per_address}",
        ]
        self._listener = _listen(config.host, port, or_free=or_free)
        self._was_ready = False
        self._child: ChildProcess | None = None

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return address_of("http", host, port)

    @property
    def visit(self) -> str:
        """The address that a browser opens: with the token, if this run has made it."""
        made = self._access.token == self._secret
        return f"{self.address}/?token={self._secret}" if made else self.address

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @asynccontextmanager
    async def notice(self) -> AsyncIterator[Callable[[str], None]]:
        """Serves a page that only says why the real one is not there yet, and loads itself again
        until it is; the result changes its text."""
        text = "compiling kernels"

        def change(words: str) -> None:
            nonlocal text
            text = words

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(
                OSError, TimeoutError, ValueError, asyncio.IncompleteReadError
            ):
                asked = reader.readuntil(b"\r\n\r\n")
                line, *_ = (await asyncio.wait_for(asked, REQUEST_SECONDS)).split(b"\r\n")
                writer.write(_while_starting(line, text))
                await writer.drain()
            writer.close()

        copy = self._listener.dup()
        server = await asyncio.start_server(serve, sock=copy)
        try:
            yield change
        finally:
            server.close()

    def start(
        self,
        endpoints: Mapping[str, str],
        ready: Callable[[], None],
        with_password: Collection[str] = (),
    ) -> None:
        """Calls ``ready`` when the page is served for the first time. ``with_password`` names
        the endpoints whose wire asks for the secret."""
        link = next(name for name in endpoints if name.endswith("hmi_link"))
        doors = {"link": link, "status": f"{link}.status", "state": "state"}
        addresses = [f"--{door}={endpoints[name]}" for door, name in doors.items()]
        if doors["status"] in with_password:
            addresses.append("--status-password")
        fd = self._listener.fileno()
        own = [f"--host={self._access.host}", f"--fd={fd}", "--follow-stdin"]
        command = [sys.executable, "-m", "understudy.hmi", *addresses, *own, *self._limits]
        program = Program(
            "the page's process",
            lambda: command,
            env=_environment(self._access, self._secret),
            descriptors=(fd,),
            read_line=partial(self._read_line, ready=ready),
            stop_seconds=CLOSING_SECONDS,
        )
        self._child = ChildProcess(program)
        self._child.supervise()

    async def stop(self) -> int | None:
        """Ends the process, by force after a timeout; returns its exit code."""
        return await self._child.stop() if self._child else None

    def close(self) -> None:
        """Frees the port."""
        self._listener.close()

    def _read_line(self, line: str, ready: Callable[[], None]) -> None:
        if line != "ready":
            log.info("page: %s", line)
        elif not self._was_ready:
            self._was_ready = True
            ready()


def _listen(host: str, port: int, *, or_free: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as problem:
        if not or_free or getattr(problem, "errno", None) != errno.EADDRINUSE:
            raise cannot_listen(PAGE, host, port, problem) from None
    except OverflowError:
        raise ConfigError("hmi.port", value=port, allowed="0 to 65535") from None
    listener = _listen(host, 0)
    log.warning("port %d is in use; the page is on %d", port, listener.getsockname()[1])
    return listener


def _environment(tokens: Access, secret: str) -> dict[str, str]:
    """Tokens are passed by the environment: every user can read a command line."""
    given = {
        access.SECRET_VARIABLE: secret,
        TOKEN_VARIABLE: tokens.token,
        VIEWER_TOKEN_VARIABLE: tokens.viewer_token,
    }
    own = {name: token for name, token in given.items() if token}
    return {**os.environ, **own}
