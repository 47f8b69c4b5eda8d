"""The page's process: started with the cell, started again if it dies, ended with the cell.

The listening socket belongs to the cell's process and is lent to the page's: its port stays the
same when the page is started again, and who calls meanwhile waits a moment instead of being turned
away.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from understudy.config import Hmi
from understudy.errors import ConfigError
from understudy.hmi.access import (
    TOKEN_VARIABLE,
    VIEWER_TOKEN_VARIABLE,
    Access,
    read_access,
)
from understudy.wire.tcp import Address, cannot_listen

log = logging.getLogger(__name__)

ENDPOINT = "hmi"
NEEDS = {"nicegui": "nicegui", "zmq": "pyzmq"}
CLOSING_SECONDS = 1.0
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 0.25, 15.0
HEALTHY_SECONDS = 30.0
"""A page that lived so long did not fail to start."""


def missing_extra() -> str | None:
    """What has to be installed before there can be a page, in a line."""
    missing = [package for module, package in NEEDS.items() if find_spec(module) is None]
    if not missing:
        return None
    return f"the page is not served: {' and '.join(missing)} missing; pip install 'understudy[hmi]'"


class PageProcess:
    """From when it is made its port is taken; from `start` on it is looked after."""

    def __init__(self, config: Hmi, port: int) -> None:
        self._access = read_access(config.host, config.token, config.viewer_token)
        self._listener = _listen(config.host, port)
        self._told = False
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self, endpoints: Mapping[str, str], ready: Callable[[str], None]) -> None:
        """``ready`` is told the address when the page is served for the first time."""
        link = next(name for name in endpoints if name.endswith("hmi_link"))
        doors = {"link": link, "status": f"{link}.status", "state": "state"}
        addresses = [f"--{door}={endpoints[name]}" for door, name in doors.items()]
        self._keeper = asyncio.get_running_loop().create_task(self._keep(addresses, ready))

    async def stop(self) -> int | None:
        """It is told to end, and ended where it does not; returns its exit code."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        return await self._end()

    def close(self) -> None:
        """Its port is free again."""
        self._listener.close()

    # ── inside ──

    async def _keep(self, addresses: list[str], ready: Callable[[str], None]) -> None:
        rest = FIRST_REST_SECONDS
        while True:
            begun = time.monotonic()
            code = await self._live_once(addresses, ready)
            if time.monotonic() - begun > HEALTHY_SECONDS:
                rest = FIRST_REST_SECONDS
            log.warning("the page's process ended (%s); started again in %g s", code, rest)
            await asyncio.sleep(rest)
            rest = min(2.0 * rest, LONGEST_REST_SECONDS)

    async def _live_once(self, addresses: list[str], ready: Callable[[str], None]) -> int:
        fd = self._listener.fileno()
        own = [f"--host={self._access.host}", f"--fd={fd}", "--follow-stdin"]
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "understudy.hmi", *addresses, *own),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[fd],
            env=_environment(self._access),
            # Ctrl-C in a terminal goes to the whole group; this one ends when the cell does.
            start_new_session=True,
        )
        output = self._process.stdout
        assert output is not None
        while line := await output.readline():
            self._hear(line.decode("utf-8", "replace").rstrip(), ready)
        return await self._process.wait()

    def _hear(self, line: str, ready: Callable[[str], None]) -> None:
        if line != "ready":
            log.info("page: %s", line)
        elif not self._told:
            self._told = True
            ready(self.address)

    async def _end(self) -> int | None:
        process = self._process
        if process is None or process.returncode is not None:
            return None
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await process.communicate(b"")  # its input ends: without a word it would stay open
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        return process.returncode


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as problem:
        raise cannot_listen(ENDPOINT, Address(host=host, port=port), problem) from None
    except OverflowError:
        raise ConfigError("hmi.port", value=port, allowed="0 to 65535") from None


def _environment(access: Access) -> dict[str, str]:
    """The tokens go by the environment: everybody can read a command line."""
    tokens = {TOKEN_VARIABLE: access.token, VIEWER_TOKEN_VARIABLE: access.viewer_token}
    own = {name: token for name, token in tokens.items() if token}
    return {**os.environ, **own}
