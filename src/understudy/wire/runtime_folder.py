"""The folder of this user for files of running cells: ready files and links to terminals."""

import os
import stat
import tempfile
from pathlib import Path

from understudy.errors import ConfigError


def runtime_folder() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"understudy-{os.getuid()}"


def make_runtime_folder() -> Path:
    """The folder, made if it is missing; OSError or ConfigError if it is not safe."""
    folder = runtime_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raises ConfigError unless it is a directory that only this user can use."""
    found = folder.lstat()
    cure = "remove it, or set XDG_RUNTIME_DIR to a folder of yours"
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"it is a link or no directory: {cure}", file=str(folder))
    if found.st_uid != os.getuid():
        raise ConfigError(f"it belongs to another user: {cure}", file=str(folder))
    if found.st_mode & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        raise ConfigError(
            "other users can use it", file=str(folder), value=mode, allowed=f"mode 0700, or {cure}"
        )
