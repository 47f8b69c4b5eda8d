"""Ready files: where a running cell says what listens where, for scripts in any language."""

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
    """What stands in a ready file."""

    pid: Annotated[int, Meta(gt=0)]
    cell: str
    rate: float | str
    endpoints: dict[str, str]
    starting: list[str] = []


class ReadyFile:
    """Written in one piece, rewritten when more listens, removed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = False

    def write(
        self, cell: str, rate: Rate, endpoints: dict[str, str], starting: Sequence[str] = ()
    ) -> None:
        """``starting``: what does not listen yet; then it is written again."""
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
        """Only what was written; somebody may have taken it away already, and its folder too."""
        if self._written:
            with contextlib.suppress(OSError):
                self.path.unlink()


def registry_file() -> Path | None:
    """Where `status` and `stop` find this process without being told."""
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
    """Every live cell of this user's; files of cells that died are cleared away."""
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
