"""The folders of a cell's own NATS server, each used by one cell only.

The lock of a folder is inherited by the server: it is free when both processes have ended.
Temporary folders of cells that were killed are removed by the next cell.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from understudy.errors import ConfigError

LOCK = "understudy.lock"
PREFIX = "understudy-nats-"


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
        reason = problem.strerror or str(problem)
        raise ConfigError(
            f"the store of the NATS server cannot be used: {reason}", key="nats.store",
            value=str(path), allowed="a folder that this user can write",
        ) from None  # fmt: skip
    if folder is None:
        raise ConfigError(
            "the store of the NATS server is in use by another running cell", key="nats.store",
            value=str(path), allowed="a folder of its own for each cell",
        )  # fmt: skip
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
