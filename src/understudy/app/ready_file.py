"""Ready files: the addresses of a running cell as JSON, for scripts in any language."""

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports import Rate


class Ready(Struct, frozen=True):
    """Contents of a ready file; `starting`: endpoints that do not listen yet."""

    pid: Annotated[int, Meta(gt=0)]
    cell: str
    rate: float | str
    endpoints: dict[str, str]
    starting: list[str] = []


class ReadyFile:
    """The ready file of one cell: written atomically, removed when the cell ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = False

    def write(
        self, cell: str, rate: Rate, endpoints: dict[str, str], starting: Sequence[str] = ()
    ) -> None:
        """``starting``: endpoints that do not listen yet."""
        ready = Ready(os.getpid(), cell, rate, endpoints, list(starting))
        text = json.dumps(msgspec.to_builtins(ready), indent=2) + "\n"
        part = self.path.parent / f"{self.path.name}.{os.getpid()}.part"
        try:
            part.write_text(text)
            part.replace(self.path)
        except OSError as problem:
            with contextlib.suppress(OSError):
                part.unlink()
            raise ConfigError(
                f"the ready file cannot be written: {problem.strerror}", file=str(self.path)
            ) from None
        self._written = True

    def remove(self) -> None:
        """Removes the file if it was written; it may be gone already."""
        if self._written:
            with contextlib.suppress(OSError):
                self.path.unlink()


def registry_file() -> Path | None:
    """The file by which `status` and `stop` find this process."""
    folder = registry_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder / f"{os.getpid()}.json"


def registry_folder() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"understudy-{os.getuid()}"


def running_cells() -> list[Ready]:
    """All running cells of this user; removes the files of cells that died."""
    cells = []
    for file in sorted(registry_folder().glob("*.json")):
        try:
            ready = read_ready(file)
        except ConfigError:
            continue
        if is_alive(ready.pid):
            cells.append(ready)
        else:
            with contextlib.suppress(OSError):
                file.unlink()
    return cells


def read_ready(path: Path) -> Ready:
    try:
        content: Any = json.loads(path.read_text())
        return msgspec.convert(content, Ready)
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", file=str(path)) from None
    except (ValueError, msgspec.ValidationError) as problem:
        raise ConfigError(f"not a ready file: {problem}", file=str(path)) from None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
