"""Ready files and the registry: private, and never written or read through a link."""

import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.app import ready_file
from understudy.app.ready_file import (
    LARGEST_FILE,
    LONGEST_TEXT,
    ReadyFile,
    printable,
    read_ready,
    registry_file,
    running_cells,
)
from understudy.errors import ConfigError
from understudy.wire import runtime_folder as runtime_folder_module
from understudy.wire.runtime_folder import runtime_folder

SECRET = "the-secret"
ENDPOINTS = {"control": "tcp://127.0.0.1:1"}


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def write(path: Path) -> ReadyFile:
    file = ReadyFile(path, SECRET)
    file.write("cell", 1.0, ENDPOINTS)
    return file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def entry(**fields: Any) -> str:
    ready = {"pid": os.getpid(), "cell": "c", "rate": 1.0, "endpoints": ENDPOINTS}
    return json.dumps(ready | fields)


# ── writing ──


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_user_can_read_a_ready_file(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "ready.json"
    before = os.umask(umask)
    try:
        write(path)
        write(path)  # once more, as when the page is up
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600
    assert read_ready(path).secret == SECRET
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["ready.json"]


def test_a_readable_file_of_before_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("old")
    path.chmod(0o666)
    with path.open() as open_before:
        write(path)
        assert open_before.read() == "old"
    assert mode_of(path) == 0o600


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "precious", tmp_path / "ready.json"
    target.write_text("precious")
    path.symlink_to(target)
    write(path)
    assert target.read_text() == "precious"
    assert not path.is_symlink()
    assert read_ready(path).cell == "cell"


def test_a_pipe_is_replaced_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    os.mkfifo(path)
    write(path)
    assert read_ready(path).cell == "cell"


def test_a_link_under_the_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / ".ready.json.guessed.part").symlink_to(target)
    with pytest.raises(ConfigError, match="cannot be written"):
        write(tmp_path / "ready.json")
    assert target.read_text() == "precious"


def test_a_cell_removes_its_own_file_only(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    first = write(path)
    second = write(path)
    first.remove()
    assert path.exists()
    second.remove()
    assert not path.exists()
    second.remove()


# ── the folder ──


def test_the_registry_is_a_folder_of_the_user(runtime: Path) -> None:
    file = registry_file()
    assert file is not None
    write(file)
    assert (mode_of(file.parent), mode_of(file)) == (0o700, 0o600)
    assert [ready.secret for ready in running_cells()] == [SECRET]


def test_a_registry_that_is_a_link_is_not_used(
    runtime: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    (foreign / "1.json").write_text(entry())
    runtime_folder().symlink_to(foreign)
    refused(caplog, "a link or no directory")
    assert [each.name for each in foreign.iterdir()] == ["1.json"]


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o720, 0o755, 0o777, 0o1777])
def test_a_registry_that_others_can_use_is_not_used(
    mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    runtime_folder().mkdir()
    runtime_folder().chmod(mode)
    refused(caplog, f"{mode & 0o7777:04o}")


def test_a_registry_of_another_user_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = runtime_folder()
    folder.mkdir(mode=0o700)
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    monkeypatch.setattr(ready_file, "runtime_folder", lambda: folder)
    monkeypatch.setattr(runtime_folder_module, "runtime_folder", lambda: folder)
    refused(caplog, "belongs to another user")


def test_a_registry_that_is_a_file_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    runtime_folder().write_text("")
    assert registry_file() is None
    assert "`status` will not find this cell" in caplog.text
    with pytest.raises(ConfigError, match="a link or no directory"):
        running_cells()


def refused(caplog: pytest.LogCaptureFixture, reason: str) -> None:
    """A cell runs without the registry and says why; `status` and `stop` end with an error."""
    assert registry_file() is None
    assert reason in caplog.text
    assert "`status` will not find this cell" in caplog.text
    with pytest.raises(ConfigError, match=reason):
        running_cells()


# ── entries ──


def put(name: str, text: str) -> Path:
    folder = runtime_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_entries_that_are_no_regular_files_are_passed_over(tmp_path: Path) -> None:
    put("1.json", entry(cell="good"))
    folder = runtime_folder()
    os.mkfifo(folder / "2.json")
    (tmp_path / "elsewhere").write_text(entry(cell="linked"))
    (folder / "3.json").symlink_to(tmp_path / "elsewhere")
    (folder / "4.json").symlink_to("/dev/zero")
    (folder / "5.json").mkdir()
    put("6.json", "[" * 100_000)
    put("7.json", entry(cell="x" * LARGEST_FILE))
    put("8.json", '{"pid": -1}')
    assert [ready.cell for ready in running_cells()] == ["good"]


@pytest.mark.parametrize("pid", [10**30, 2**22 + 1])
def test_the_entry_of_a_dead_process_is_removed(pid: int) -> None:
    file = put("1.json", entry(pid=pid))
    assert running_cells() == []
    assert not file.exists()


def test_the_entry_of_another_users_process_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number was given to another process after the cell had died."""

    def kill(pid: int, number: int) -> None:
        raise PermissionError

    file = put("1.json", entry())
    monkeypatch.setattr(os, "kill", kill)
    assert running_cells() == []
    assert not file.exists()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "."])
def test_a_ready_file_that_is_no_regular_file_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"no regular file|Is a directory"):
        read_ready(Path(path))


def test_texts_are_shown_without_escape_codes() -> None:
    evil = "\x1b[2J\x1b]0;owned\x07c\x1b[31me\x9b1mll\r\n\x08\u202e\x00"
    put("1.json", entry(cell=evil, rate=evil, endpoints={evil: evil}, starting=[evil]))
    (ready,) = running_cells()
    assert (ready.cell, ready.rate, ready.endpoints) == ("cell", "cell", {"cell": "cell"})
    assert ready.starting == ["cell"]


@given(st.text())
def test_no_control_character_is_shown(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c.isspace() for c in shown)
    assert not set(shown) & {"\x1b", "\x9b", "\n", "\r", "\x07"}
    assert len(shown) <= LONGEST_TEXT


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=LONGEST_TEXT))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text
