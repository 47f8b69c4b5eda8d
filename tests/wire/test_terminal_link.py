"""Links to terminals: what is replaced, what is never touched, what is left behind."""

import os
import re
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from understudy.errors import ConfigError
from understudy.wire.terminal_link import LONGEST_PATH, TerminalLink, link_path

DEAD = "/dev/pts/9999999"
"""A terminal that does not exist."""


@pytest.fixture
def terminal() -> Iterator[str]:
    """A terminal that exists."""
    ours, theirs = os.openpty()
    yield os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ttyGRBL"


def died(path: Path, target: str) -> None:
    """A cell that was killed: link and lock are there, the lock is free."""
    link = TerminalLink(path)
    link.make(target)
    os.close(link._lock)


def test_a_link_is_made_and_removed_without_a_trace(path: Path, terminal: str) -> None:
    link = TerminalLink(path)
    link.make(terminal)
    assert os.readlink(path) == terminal
    lock = path.with_name(".ttyGRBL.lock")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert lock.read_text() == f"{os.getpid()} {terminal}\n"
    link.remove()
    link.remove()
    assert list(path.parent.iterdir()) == []


def test_the_link_of_a_running_cell_is_not_replaced(path: Path, terminal: str) -> None:
    link = TerminalLink(path)
    link.make(terminal)
    with pytest.raises(ConfigError, match=rf"running cell \(pid {os.getpid()}\)"):
        TerminalLink(path).make(terminal)
    assert os.readlink(path) == terminal
    link.remove()
    again = TerminalLink(path)
    again.make(terminal)
    again.remove()


def test_the_link_of_a_dead_cell_is_replaced(path: Path, terminal: str) -> None:
    died(path, DEAD)
    link = TerminalLink(path)
    link.make(terminal)
    assert os.readlink(path) == terminal
    link.remove()
    assert list(path.parent.iterdir()) == []


def test_a_dead_cells_link_is_replaced_although_its_number_is_used_again(
    path: Path, terminal: str
) -> None:
    died(path, terminal)
    link = TerminalLink(path)
    link.make(DEAD)
    assert os.readlink(path) == DEAD
    link.remove()


def test_a_link_to_a_gone_terminal_is_replaced_without_a_lock(path: Path, terminal: str) -> None:
    path.symlink_to(DEAD)
    link = TerminalLink(path)
    link.make(terminal)
    assert os.readlink(path) == terminal
    link.remove()


def a_file(path: Path, terminal: str) -> None:
    path.write_text("precious")


def a_folder(path: Path, terminal: str) -> None:
    path.mkdir()


def a_pipe(path: Path, terminal: str) -> None:
    os.mkfifo(path)


def a_link_to_a_file(path: Path, terminal: str) -> None:
    (path.parent / "other").write_text("precious")
    path.symlink_to("other")


def a_link_to_an_unplugged_device(path: Path, terminal: str) -> None:
    path.symlink_to("/dev/ttyACM99")


def a_link_to_another_programs_terminal(path: Path, terminal: str) -> None:
    path.symlink_to(terminal)


def a_link_that_leaves_the_folder_of_terminals(path: Path, terminal: str) -> None:
    path.symlink_to("/dev/pts/../../gone")


Put = Callable[[Path, str], None]


@pytest.mark.parametrize(
    "put",
    [
        a_file,
        a_folder,
        a_pipe,
        a_link_to_a_file,
        a_link_to_an_unplugged_device,
        a_link_to_another_programs_terminal,
        a_link_that_leaves_the_folder_of_terminals,
    ],
)
def test_nothing_else_is_replaced(put: Put, path: Path, terminal: str) -> None:
    put(path, terminal)
    before = path.lstat()
    with pytest.raises(ConfigError, match="not replaced") as refused:
        TerminalLink(path).make(DEAD)
    assert str(path) in str(refused.value)
    assert path.lstat().st_ino == before.st_ino
    assert not path.is_file() or path.read_text() == "precious"
    assert not path.with_name(".ttyGRBL.lock").exists()


def test_a_link_that_was_replaced_meanwhile_is_not_removed(path: Path, terminal: str) -> None:
    link = TerminalLink(path)
    link.make(terminal)
    path.unlink()
    path.write_text("precious")
    link.remove()
    assert path.read_text() == "precious"


def test_a_lock_that_is_a_link_is_not_followed(path: Path, terminal: str) -> None:
    (path.parent / "victim").write_text("precious")
    path.with_name(".ttyGRBL.lock").symlink_to("victim")
    with pytest.raises(ConfigError, match="cannot be made"):
        TerminalLink(path).make(terminal)
    assert (path.parent / "victim").read_text() == "precious"
    assert not path.is_symlink()


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_that_is_no_lock_of_a_cell_is_kept(path: Path, linked: bool) -> None:
    """A hidden file of another program; or a file of the user behind a second name, which a lock
    would overwrite."""
    lock, victim = path.with_name(".ttyGRBL.lock"), path.with_name("victim")
    victim.write_text("" if linked else "precious")
    lock.hardlink_to(victim) if linked else victim.rename(lock)
    with pytest.raises(ConfigError, match="no lock of yours"):
        TerminalLink(path).make(DEAD)
    assert lock.read_text() == ("" if linked else "precious")
    assert not path.is_symlink()


def test_a_full_disk_is_named_and_nothing_is_left(path: Path) -> None:
    """A file may have no byte: what a full file system says to the record in the lock."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(ConfigError, match="cannot be made: File too large"):
            TerminalLink(path).make(DEAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory"):
        TerminalLink(path / "x").make(DEAD)


@pytest.mark.parametrize(
    "text", ["ttyGRBL", "./x", "/", "/tmp/a\nb", "/tmp/a@9600", "/x?", "/" + "a" * LONGEST_PATH]
)
def test_a_path_that_cannot_be_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("an absolute path")):
        link_path(text)


def test_the_home_folder_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert link_path("~/ttyGRBL") == tmp_path / "ttyGRBL"
