"""A symbolic link with a stable name to a pseudo-terminal, whose own number is another every time.

    /run/user/1000/understudy-1000/machine.grblhal → /dev/pts/7

A hidden file beside the link, `.NAME.lock`, is locked while the cell runs and holds its process id
and the terminal. The lock is gone with the process, whatever ends it: the next cell replaces a link
that a killed one left behind. Nothing else is ever replaced: no file, no link to another place, no
link of another user, no link to a terminal of another program.
"""

import contextlib
import fcntl
import os
import re
import stat
from pathlib import Path

from understudy.errors import ConfigError

TERMINAL = re.compile(r"/dev/(?:pts/|ttys)[0-9]{1,7}")
"""Pseudo-terminals of Linux and of macOS."""
RECORD = re.compile(rf"([0-9]+) ({TERMINAL.pattern})\n")
"""What a lock holds: process id and terminal of a cell."""
LONGEST_RECORD = 60
LONGEST_PATH = 180
"""Characters of a path, which tables, ready files and senders show."""
ALLOWED = (
    f"an absolute path of at most {LONGEST_PATH} characters (~ is the home folder), without ?, @ "
    "and control characters"
)
ANOTHER_PATH = "another path, or remove it first"
PRIVATE = 0o600


def link_path(text: str) -> Path:
    """The path of a link as users write it; ConfigError if it cannot be one."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise ConfigError("there is no such home folder", value=text, allowed=ALLOWED) from None
    plain = str(path).isprintable() and not set("?@") & set(str(path))
    if not (path.is_absolute() and plain and path.name and len(str(path)) <= LONGEST_PATH):
        raise ConfigError("not a path for a terminal", value=text, allowed=ALLOWED)
    return path


class TerminalLink:
    """The link of one running cell; `make` and `remove` it once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_path = path.with_name(f".{path.name}.lock")
        self._lock = -1
        self._target = ""

    def make(self, target: str) -> None:
        """Links to a terminal; ConfigError if the path is not free."""
        try:
            self._lock = self._take_lock()
            self._remove_stale()
            self._write_record(target)
            os.symlink(target, self.path)
        except OSError as problem:
            self.remove()
            text = f"the link to the terminal cannot be made: {problem.strerror}"
            raise ConfigError(text, file=str(self.path)) from None
        except ConfigError:
            self.remove()
            raise

    def remove(self) -> None:
        """Removes the link, if it still is that of this cell, and gives up the path."""
        if self._lock < 0:
            return
        with contextlib.suppress(OSError):
            if os.readlink(self.path) == self._target:
                self.path.unlink()
        with contextlib.suppress(OSError):
            if self._target or not os.fstat(self._lock).st_size:  # else it names a link that stays
                self._lock_path.unlink()
        os.close(self._lock)
        self._lock = -1

    def _take_lock(self) -> int:
        """Opens and locks the file beside the link; ConfigError if a running cell has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        while True:
            lock = os.open(self._lock_path, flags, PRIVATE)
            try:
                found = os.fstat(lock)
                owned = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
                if not owned or found.st_nlink > 1 or not _is_record(lock):
                    raise ConfigError(
                        "this is no lock of yours", file=str(self._lock_path), allowed=ANOTHER_PATH
                    )
                self._try_lock(lock)
                if _is_at(found, self._lock_path):
                    return lock
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)  # the cell that had it has just removed it

    def _try_lock(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _ = _record(lock)
            raise ConfigError(
                f"this is the terminal of a running cell (pid {pid})",
                file=str(self.path),
                allowed=f"another path, --ephemeral, or end that cell: understudy stop {pid}",
            ) from None

    def _write_record(self, target: str) -> None:
        """Notes the terminal; done before the link is made, so that a dead link is always noted."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()} {target}\n".encode(), 0)
        self._target = target

    def _remove_stale(self) -> None:
        """Removes the link of a cell that has died; ConfigError for anything else at the path."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISLNK(found.st_mode):
            raise ConfigError(
                "there is something else, which is not replaced",
                file=str(self.path),
                allowed=ANOTHER_PATH,
            )
        target = os.readlink(self.path)
        terminal = TERMINAL.fullmatch(target) and found.st_uid == os.getuid()
        # The number of a terminal is used again: one that exists may be another program's.
        if not terminal or (os.path.exists(target) and _record(self._lock)[1] != target):
            raise ConfigError(
                f"there is a link to {target}, which no cell of yours has made: it is not replaced",
                file=str(self.path),
                allowed=ANOTHER_PATH,
            )
        self.path.unlink()


def _is_at(found: os.stat_result, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (there.st_dev, there.st_ino)


def _content(lock: int) -> str:
    return os.pread(lock, LONGEST_RECORD + 1, 0).decode("ascii", "replace")


def _is_record(lock: int) -> bool:
    """Whether the file is empty, or a cell wrote it."""
    content = _content(lock)
    return not content or (len(content) <= LONGEST_RECORD and RECORD.fullmatch(content) is not None)


def _record(lock: int) -> tuple[str, str]:
    """Process id and terminal of the cell that wrote the file last; empty if there was none."""
    found = RECORD.fullmatch(_content(lock))
    return (found[1], found[2]) if found else ("unknown", "")
