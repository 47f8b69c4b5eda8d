"""Ready files: the addresses and the secret of a running cell as JSON, for scripts in any language.

Every cell also has one in the registry, a folder that only its user can read and write. A client
that knows the secret commands the cell, so the files are written with mode 0600 under a new name
(symbolic links are not followed) and then renamed.
"""

import contextlib
import json
import logging
import os
import re
import secrets
import socket
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.agenda import Rate
from understudy.errors import ConfigError
from understudy.ports.access import TOKEN_VARIABLE
from understudy.wire.interface import host_and_port
from understudy.wire.runtime_folder import check_private, make_runtime_folder, runtime_folder

log = logging.getLogger(__name__)

LARGEST_FILE = 1024 * 1024
LONGEST_TEXT = 200
"""Characters of a text that are shown."""
ESCAPE_CODE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.|\x9b[0-?]*[ -/]*[@-~]"
)
"""CSI sequences, strings such as window titles (OSC), and two-character codes."""
PRIVATE = 0o600
FOLDER = os.O_RDONLY | os.O_DIRECTORY
CONNECT_SECONDS = 1.0


class Ready(Struct, frozen=True):
    """Contents of a ready file. `starting` names the endpoints that do not listen yet, `files`
    is the folder for the files that clients name."""

    pid: Annotated[int, Meta(gt=0)]
    cell: str
    rate: float | str
    endpoints: dict[str, str]
    starting: list[str] = []
    secret: str = ""
    files: str = ""

    @property
    def title(self) -> str:
        """The cell in messages: its name and process; the address of one on another machine."""
        return f"{self.cell} (pid {self.pid})" if self.pid else self.cell


class ReadyFile:
    """The ready file of one cell: written atomically, removed when the cell ends."""

    def __init__(self, path: Path, secret: str, files: str = "") -> None:
        self.path = path
        self._files = files
        self._secret = secret
        self._written: tuple[int, int] | None = None

    def write(
        self, cell: str, rate: Rate, endpoints: dict[str, str], starting: Sequence[str] = ()
    ) -> None:
        """Writes the file; ``starting`` names the endpoints that do not listen yet."""
        ready = Ready(os.getpid(), cell, rate, endpoints, list(starting), self._secret, self._files)
        text = json.dumps(msgspec.to_builtins(ready), indent=2) + "\n"
        try:
            self._written = _write_private(self.path, text.encode())
        except OSError as problem:
            raise ConfigError(
                f"the ready file cannot be written: {problem.strerror}", file=str(self.path)
            ) from None

    def check_free(self) -> None:
        """Raises `ConfigError` if the file is that of another cell that is running."""
        try:
            other = read_ready(self.path)
        except ConfigError:
            return
        if other.pid != os.getpid() and is_alive(other.pid) and _listens(other):
            raise ConfigError(
                f"the ready file is that of the running cell {other.cell} (pid {other.pid})",
                file=str(self.path),
                allowed="another file for each cell, or stop that cell first: "
                f"understudy stop --ready-file {self.path}",
            )

    def remove(self) -> None:
        """Removes the file, unless it is gone or another cell has replaced it."""
        if self._written is not None:
            with contextlib.suppress(OSError):
                if _identity(self.path.lstat()) == self._written:
                    self.path.unlink()


def _write_private(path: Path, data: bytes) -> tuple[int, int]:
    """Writes a new file that only this user can read, and puts it there; returns its identity."""
    part = f".{path.name}.{secrets.token_hex(8)}.part"
    folder = os.open(path.parent, FOLDER)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(part, flags, PRIVATE, dir_fd=folder), "wb") as file:
            identity = _identity(os.fstat(file.fileno()))
            file.write(data)
        os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise
    finally:
        os.close(folder)
    return identity


def _identity(of: os.stat_result) -> tuple[int, int]:
    return of.st_dev, of.st_ino


# ── the registry ────────────────────────────────────────────────────────────────────────────────


def registry_file() -> Path | None:
    """The file by which `status` and `stop` find this process; None if there is no folder that is
    safe: the cell runs without it."""
    try:
        folder = make_runtime_folder()
    except OSError as problem:
        place = runtime_folder()
        log.warning("%s: %s; `status` will not find this cell", place, problem.strerror)
        return None
    except ConfigError as problem:
        log.warning("%s; `status` will not find this cell", problem)
        return None
    return folder / f"{os.getpid()}.json"


def running_cells() -> list[Ready]:
    """All running cells of this user; removes the files of cells that died."""
    folder = runtime_folder()
    try:
        check_private(folder)
        files = sorted(folder.glob("*.json"))
    except OSError:
        return []
    return list(_alive(files))


def _alive(files: Sequence[Path]) -> Iterator[Ready]:
    for file in files:
        try:
            ready = read_ready(file, follow_links=False)
        except ConfigError:
            continue
        if is_alive(ready.pid):
            yield ready
        else:
            with contextlib.suppress(OSError):
                file.unlink()


def _listens(ready: Ready) -> bool:
    """Whether the control endpoint accepts connections: the pid alone may be another process'."""
    try:
        control = host_and_port(ready.endpoints.get("control", ""))
        socket.create_connection(control, CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether a process of this user has this id."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        return False
    return True


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


class NoCellRunsError(ConfigError):
    """There is no cell to talk to."""


def chosen_cells(names: Sequence[str] = (), ready_file: Path | None = None) -> list[Ready]:
    """The cells of the ready file or of these names; all running ones if neither is given."""
    if ready_file is not None:
        if names:
            raise ConfigError("give names of cells or --ready-file, not both")
        return [read_ready(ready_file)]
    cells = running_cells()
    if not cells:
        raise NoCellRunsError("no cell is running")
    for name in names:
        if not any(name in (ready.cell, str(ready.pid)) for ready in cells):
            running = ", ".join(ready.title for ready in cells)
            raise ConfigError("no running cell has this name", value=name, allowed=running)
    return [ready for ready in cells if not names or {ready.cell, str(ready.pid)} & set(names)]


def one_cell(name: str = "", ready_file: Path | None = None) -> Ready:
    """The cell of the ready file or of this name; the only one that runs if neither is given."""
    running = chosen_cells([name] if name else [], ready_file)
    if len(running) != 1:
        names = ", ".join(ready.title for ready in running)
        raise ConfigError(
            f"several cells are running: {names}", allowed="--running NAME, or --ready-file FILE"
        )
    return running[0]


def cell_elsewhere(address: str, token: str = "") -> Ready:
    """A cell that is known by its address only. ``token``: default is TOKEN_VARIABLE."""
    _, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ConfigError("no address", value=address, allowed="HOST:PORT, e.g. 192.168.0.7:5550")
    control = {"control": f"tcp://{address}"}
    return Ready(0, address, 0.0, control, secret=token or os.environ.get(TOKEN_VARIABLE, ""))


def read_ready(path: Path, *, follow_links: bool = True) -> Ready:
    """The contents of a ready file; its texts are fit to be shown."""
    try:
        content: Any = json.loads(_read_regular(path, follow_links=follow_links))
        ready = msgspec.convert(content, Ready)
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", file=str(path)) from None
    except (ValueError, RecursionError, msgspec.ValidationError) as problem:
        raise ConfigError(f"not a ready file: {printable(str(problem))}", file=str(path)) from None
    return msgspec.structs.replace(
        ready,
        cell=printable(ready.cell),
        rate=printable(ready.rate) if isinstance(ready.rate, str) else ready.rate,
        endpoints={printable(k): printable(v) for k, v in ready.endpoints.items()},
        starting=[printable(name) for name in ready.starting],
    )


def _read_regular(path: Path, *, follow_links: bool) -> bytes:
    """The contents of a regular file of limited size; a pipe or device is not opened for long."""
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"it has over {LARGEST_FILE} bytes")
    return data


def printable(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text without escape codes and other control characters, cut after ``longest``."""
    plain = ESCAPE_CODE.sub("", text[: 4 * longest])
    return "".join(c for c in plain if not unicodedata.category(c).startswith("C"))[:longest]
