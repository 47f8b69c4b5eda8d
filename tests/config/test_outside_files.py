"""Files from outside: the attacks, by name, by kind of file, by size and by a full disk."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from understudy.config.files import append_line, find_cell, find_program, read_model, read_program
from understudy.config.outside_files import (
    DEEPEST_NAME,
    LONGEST_NAME,
    FilesFolder,
    anything,
    append_regular,
    nothing,
    read_regular,
)
from understudy.errors import ConfigError

SECRET = b"the secret"
FEW = 1000


@pytest.fixture
def files(tmp_path: Path) -> FilesFolder:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "run").mkdir()
    return FilesFolder(tmp_path / "run")


# ── names ──


@pytest.mark.parametrize(
    "name", ["../secret", "a/../../secret", "/etc/passwd", "/", "/proc/self/environ", "~/../secret"]
)
def test_no_name_leads_out_of_the_folder(files: FilesFolder, name: str) -> None:
    for attempt in (
        lambda: files.read(name, FEW),
        lambda: files.write(name, b"", anything),
        lambda: files.folder(name),
        lambda: files.beside(name),
        lambda: files.folder("inner").read(name, FEW),
    ):
        with pytest.raises(ConfigError, match=r"outside the folder for files of this run.*--files"):
            attempt()
    assert (files.root.parent / "secret").read_bytes() == SECRET


def test_no_symbolic_link_is_followed(files: FilesFolder) -> None:
    (files.root / "file").symlink_to(files.root.parent / "secret")
    (files.root / "folder").symlink_to(files.root.parent)
    (files.root / "zero").symlink_to("/dev/zero")
    for name in ("file", "folder/secret", "zero"):
        with pytest.raises(ConfigError, match=r"cannot be read: .*is a symbolic link"):
            files.read(name, FEW)
        with pytest.raises(ConfigError, match="cannot be written"):
            files.write(name, b"ours", anything)
    assert (files.root.parent / "secret").read_bytes() == SECRET
    assert files.names() == []
    assert files.names(folders=True) == []


def test_a_file_that_is_exchanged_for_a_link_is_not_followed(files: FilesFolder) -> None:
    """A second thread exchanges file and link all the time; what is read is never the secret."""
    target, part, ended = files.root / "file", files.root / "part", threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            part.write_bytes(b"ours")
            part.replace(target)
            part.symlink_to("../secret")
            part.replace(target)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        found: set[bytes] = set()
        while len(found) < 2:  # until both were met
            try:
                found.add(files.read("file", FEW))
            except ConfigError:
                found.add(b"refused")
    finally:
        ended.set()
        thread.join()
    assert found <= {b"ours", b"refused", b""}


def test_a_client_cannot_make_a_tower_of_folders(files: FilesFolder) -> None:
    for name in ("deep/" * DEEPEST_NAME + "x.json", "n" * (LONGEST_NAME + 1)):
        with pytest.raises(ConfigError, match="at most"):
            files.write(name, b"{}", anything)
    assert not (files.root / "deep").exists()
    files.write("deep/" * (DEEPEST_NAME - 1) + "x.json", b"{}", anything)


def test_the_message_names_the_link_on_the_way_to_a_file(files: FilesFolder) -> None:
    (files.root / "way").symlink_to(files.root)
    with pytest.raises(ConfigError, match="way is a symbolic link, and those are not followed"):
        files.read("way/x.json", 100)


def test_names_inside_the_folder_are_found(files: FilesFolder) -> None:
    path = files.write("a/b/moment.json", b"1", nothing)
    assert path == files.root / "a/b/moment.json"
    for name in ("a/b/moment.json", "./a/b/moment.json", str(path)):
        assert files.read(name, FEW) == b"1"
    assert files.folder("a").folder("b").read("moment.json", FEW) == b"1"
    assert files.folder("a").names(folders=True) == ["b"]
    assert files.folder("none").names() == []


# ── kinds of files, sizes ──


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "pipe.gcode"
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    return path


def test_a_pipe_is_refused_without_waiting(files: FilesFolder, pipe: Path) -> None:
    with pytest.raises(ConfigError, match="it is not a regular file"):
        files.read(pipe.name, FEW)
    with pytest.raises(ConfigError, match="cannot be written: it is not a regular file"):
        files.write(pipe.name, b"", anything)
    for attempt in (
        lambda: read_program(pipe),
        lambda: find_program(pipe.name, beside=str(pipe)),
        lambda: find_cell(str(pipe)),
        lambda: read_model(str(pipe.rename(pipe.with_suffix(".stl"))), beside=""),
    ):
        with pytest.raises(ConfigError, match="it is not a regular file"):
            attempt()
    with pytest.raises(OSError, match="No such device"):
        append_regular(pipe.with_suffix(".stl"), "line", FEW)


def test_a_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read: it is not a regular file"):
        read_regular(Path("/dev/zero"), FEW)


def test_a_file_over_the_limit_is_refused_unread(files: FilesFolder) -> None:
    huge = files.root / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # no blocks: a terabyte that takes no space
    with pytest.raises(ConfigError, match="it has more than 1000 bytes"):
        files.read("huge.yaml", FEW)
    with pytest.raises(ConfigError, match="it has more than 1000 bytes"):
        read_regular(huge, FEW)
    with pytest.raises(ConfigError, match=r"it has more than \d+ bytes"):
        find_cell(str(huge))


def test_a_log_that_robots_write_has_a_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "ex3.log"
    append_regular(file, "x" * 900, FEW)
    with pytest.raises(OSError, match="at most 1000 are written"):
        append_regular(file, "x" * 900, FEW)
    append_line(str(tmp_path), "into a folder")  # logged, not raised
    assert file.stat().st_size == 901


def test_a_folder_with_too_many_files_is_refused(
    files: FilesFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.config.outside_files.MOST_ENTRIES", 3)
    for number in range(4):
        (files.root / str(number)).touch()
    with pytest.raises(ConfigError, match="it holds more than 3 files and folders"):
        files.names()


# ── writing ──


@contextmanager
def full_disk(after: int) -> Iterator[None]:
    """No file of this process grows beyond a size: writing fails in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_older_file(files: FilesFolder) -> None:
    files.write("moment.json", b"older", nothing)
    with full_disk(after=100_000), pytest.raises(ConfigError, match="cannot be written: File too"):
        files.write("moment.json", b"x" * 1_000_000, anything)
    assert files.read("moment.json", FEW) == b"older"
    assert files.names() == ["moment.json"], "no part of the new file is left"


def test_a_file_of_another_kind_stays(files: FilesFolder) -> None:
    files.write("own.json", b"ours 1", nothing)
    for is_ours in (nothing, lambda head: bool(head.startswith(b"theirs"))):
        with pytest.raises(ConfigError, match="there is a file of another kind"):
            files.write("own.json", b"ours 2", is_ours)
    assert files.read("own.json", FEW) == b"ours 1"
    files.write("own.json", b"ours 2", lambda head: head.startswith(b"ours"))
    assert files.read("own.json", FEW) == b"ours 2"
