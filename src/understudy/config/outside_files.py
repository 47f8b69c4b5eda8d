"""Files from outside: regular ones of a limited size, and the one folder that clients may name.

`read_regular` reads a file that the user names: on the command line or in the cell file. A pipe or
a device is refused without waiting for it, and no more than the limit is read.

`FilesFolder` is for names that clients of a running cell give. Every part of such a name is opened
from the folder before it and without following symbolic links, so that no name leads out of the
folder, also if a file is exchanged while it is opened. A file is replaced by another of its kind
only, whole or not at all: a full disk leaves the older one.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from understudy.errors import ConfigError

MOST_ENTRIES = 10_000
"""Files and folders in one folder that are looked at."""
LONGEST_NAME, DEEPEST_NAME = 1024, 32
"""Characters of a name that a client gives, and its parts: folders are made on the way to it."""
HEAD_SIZE = 4096
"""Bytes of an existing file by which its kind is known."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

IsOurs = Callable[[bytes], bool]
"""Whether a file that begins with these bytes may be replaced."""


def anything(head: bytes) -> bool:
    """`IsOurs` of files that are known by their folder and name."""
    return True


def nothing(head: bytes) -> bool:
    """`IsOurs` where there must be no file yet."""
    return False


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes; raises a ConfigError."""
    try:
        return regular_bytes(path, limit)
    except (OSError, ValueError) as problem:
        missing = isinstance(problem, FileNotFoundError)
        allowed = "a file that exists, named from the working directory on" if missing else ""
        reason = f"cannot be read: {why(problem)}"
        raise ConfigError(reason, file=str(path), allowed=allowed) from None


def regular_bytes(path: Path, limit: int) -> bytes:
    """As `read_regular`; raises an OSError, or a ValueError for a name that no file can have."""
    return _content(os.open(path, _READ), limit)


def why(problem: Exception) -> str:
    """The reason in words; a ValueError is a name that no file can have."""
    return getattr(problem, "strerror", None) or str(problem)


def append_regular(path: Path, line: str, limit: int) -> None:
    """Adds a line to a regular file, which grows to at most ``limit`` bytes; raises an OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        data = f"{line}\n".encode()
        if (size := _regular_size(file.fileno())) + len(data) > limit:
            raise OSError(0, f"it has {size} bytes, and at most {limit} are written")
        file.write(data)


def _content(descriptor: int, limit: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        size = _regular_size(descriptor)
        data = b"" if size > limit else file.read(limit + 1)
        if max(size, len(data)) > limit:
            raise OSError(0, f"it has more than {limit} bytes, the largest size that is read")
        return data


def _regular_size(descriptor: int) -> int:
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise OSError(0, "Is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(0, "it is not a regular file")
    return found.st_size


@dataclass(frozen=True)
class FilesFolder:
    """A folder for the files that clients name, or a folder in it.

    ``root`` is trusted, the user chose it; the names of ``inside`` are not.
    """

    root: Path
    inside: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.inside)

    def folder(self, name: str) -> "FilesFolder":
        return FilesFolder(self.root, self._parts(name))

    def beside(self, name: str) -> "FilesFolder":
        """The folder in which a file is."""
        return FilesFolder(self.root, self._parts(name)[:-1])

    def has(self, name: str) -> bool:
        """Whether there is something of this name, of whatever kind."""
        *above, last = self._parts(name)
        try:
            with self._opened(above) as place:
                os.stat(last, dir_fd=place, follow_symlinks=False)
        except (OSError, ConfigError):
            return False
        return True

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a regular file of at most ``limit`` bytes; raises a ConfigError."""
        *above, last = self._parts(name)
        try:
            with self._opened(above) as place:
                return _content(os.open(last, _READ | os.O_NOFOLLOW, dir_fd=place), limit)
        except OSError as problem:
            raise self._problem("cannot be read", name, problem) from None

    def read_text(self, name: str, limit: int) -> str:
        try:
            return self.read(name, limit).decode()
        except UnicodeDecodeError:
            raise ConfigError(
                "cannot be read: not UTF-8 text", file=str(self.path / name)
            ) from None

    def names(self, *, folders: bool = False) -> list[str]:
        """The regular files of this folder, or the folders; empty if it does not exist."""
        found = []
        try:
            with self._opened(self.inside) as place, os.scandir(place) as entries:
                for number, entry in enumerate(entries, start=1):
                    if number > MOST_ENTRIES:
                        raise OSError(0, f"it holds more than {MOST_ENTRIES} files and folders")
                    is_it = entry.is_dir if folders else entry.is_file
                    if is_it(follow_symlinks=False):
                        found.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise self._problem("cannot be read", "", problem) from None
        return sorted(found)

    def write(self, name: str, data: bytes, is_ours: IsOurs) -> Path:
        """Writes a file whole or not at all; the folders on the way to it are made.

        An existing file is replaced only if it is a regular one and ``is_ours`` accepts it.
        """
        *above, last = self._parts(name)
        try:
            with self._opened(above, make=True) as place:
                _check_replaced(last, place, is_ours)
                _replace(last, place, data)
        except OSError as problem:
            raise self._problem("cannot be written", name, problem) from None
        return self.root.joinpath(*above, last)

    def remove(self, name: str) -> None:
        """Removes a file; it may be gone already."""
        *above, last = self._parts(name)
        try:
            with self._opened(above) as place, contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=place)
        except OSError as problem:
            raise self._problem("cannot be removed", name, problem) from None

    # ── names ──

    def _parts(self, name: str) -> tuple[str, ...]:
        """The parts of a name from the root; an absolute name must begin with the root."""
        if len(name) > LONGEST_NAME:
            raise ConfigError(f"a name of {len(name)} characters; at most {LONGEST_NAME}")
        given = PurePosixPath(name)
        parts = (*self.inside, *given.parts)
        if given.is_relative_to(self.root):
            given = given.relative_to(self.root)
            parts = given.parts
        if given.is_absolute() or ".." in parts:
            raise ConfigError(
                f"{name!r} is outside the folder for files of this run, {self.root}",
                allowed="a name in this folder; `understudy run --files DIR` chooses another",
            )
        if not parts or not name.isprintable():
            raise ConfigError(f"{name!r} is not the name of a file")
        if len(parts) > DEEPEST_NAME:
            raise ConfigError(f"a name of {len(parts)} parts; at most {DEEPEST_NAME}")
        return parts

    @contextmanager
    def _opened(self, parts: "tuple[str, ...] | list[str]", *, make: bool = False) -> Iterator[int]:
        """The descriptor of a folder below the root."""
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        place = os.open(self.root, _FOLDER)
        try:
            for part in parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=place)
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=place)
                os.close(place)
                place = inner
            yield place
        finally:
            os.close(place)

    def _problem(self, failed: str, name: str, problem: OSError) -> ConfigError:
        path = self.path / name
        reason = why(problem)
        below = [each for each in (path, *path.parents) if each.is_relative_to(self.root)]
        if link := next((each for each in below[:-1] if os.path.islink(each)), None):
            whose = "it" if link == path else str(link)
            reason = f"{whose} is a symbolic link, and those are not followed"
        return ConfigError(f"{failed}: {reason}", file=str(path))


def _check_replaced(name: str, place: int, is_ours: IsOurs) -> None:
    """Raises an OSError if there is a file of this name that must stay."""
    try:
        descriptor = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=place)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        _regular_size(descriptor)
        if not is_ours(file.read(HEAD_SIZE)):
            raise OSError(0, "there is a file of another kind; choose another name")


def _replace(name: str, place: int, data: bytes) -> None:
    part = f".understudy-{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        with os.fdopen(os.open(part, _NEW, 0o666, dir_fd=place), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, name, src_dir_fd=place, dst_dir_fd=place)
        os.fsync(place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=place)
        raise
