"""Processes that are killed while they write: afterwards a file is the older or the newer one, and
a project of many files is one save as a whole."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from understudy.cli.options import put_whole
from understudy.config.files import ProgramFile
from understudy.config.outside_files import FilesFolder
from understudy.config.project import (
    Project,
    SavedHead,
    SavedPoint,
    SavedRobot,
    read_project,
    write_project,
)

CALLS = ("open", "fsync", "rename", "unlink", "mkdir")


class KilledError(BaseException):
    """The process ends here: nothing catches it."""


@contextmanager
def killed_before(call: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process ends before this call to the system, counted from 0; it cleans nothing up."""
    left = call

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def work(*given: object, **keys: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return real(*given, **keys)

        return work

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        yield


def until_it_lives(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Does the work with one more call to the system each time, until it is done."""
    for call in range(1000):
        try:
            with killed_before(call, monkeypatch):
                work()
        except KilledError:
            yield call
        else:
            return
    raise AssertionError("it does not end")


def project_of(number: int) -> Project:
    point = SavedPoint((float(number), 0.0, 0.0, 0.0, 0.0, 0.0), [float(number)] * 6)
    names = ("a", "b")
    return Project(
        SavedHead(1, "cell"),
        {name: SavedRobot(program=f"{number}.gcode", points={"p": point}) for name in names},
        {name: [ProgramFile(f"{number}.gcode", f"G0 X{number}\n")] for name in names},
    )


def test_a_project_is_one_save_whenever_the_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # the machine does not end here
    found = set()
    for call in until_it_lives(
        lambda: write_project(FilesFolder(tmp_path / "0"), project_of(2)), monkeypatch
    ):
        folder = FilesFolder(tmp_path / str(call + 1))
        write_project(folder, project_of(1))
        with pytest.raises(KilledError), killed_before(call, monkeypatch):
            write_project(folder, project_of(2))
        seen = read_project(folder)
        assert seen in (project_of(1), project_of(2)), call
        found.add(seen.programs["a"][0].name)
        assert not folder.has(".understudy-save")
    assert found == {"1.gcode", "2.gcode"}


def test_a_save_that_was_cut_off_may_be_ended_and_killed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FilesFolder(tmp_path)
    write_project(folder, project_of(1))
    with pytest.raises(KilledError), killed_before(12, monkeypatch):
        write_project(folder, project_of(2))
    for _ in until_it_lives(lambda: read_project(folder), monkeypatch):
        pass
    assert read_project(folder) == project_of(2)


@pytest.mark.parametrize(
    "write",
    [
        lambda path, data: FilesFolder(path.parent).write(path.name, data, lambda head: True),
        put_whole,
    ],
    ids=["a calibration of a cell", "a calibration or a report of a command"],
)
def test_a_file_is_the_older_or_the_newer_one(
    write: Callable[[Path, bytes], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file.yaml"
    old, new = b"old" * 1000, b"newer" * 100_000
    calls = 0
    for _ in until_it_lives(lambda: write(file, new), monkeypatch):
        calls += 1
        assert not file.exists() or file.read_bytes() in (old, new)
        file.write_bytes(old)
    assert file.read_bytes() == new
    assert calls > 2


LOOP = """
import sys
from pathlib import Path
from tests.config.test_killed_writes import FilesFolder, project_of, write_project
folder = FilesFolder(Path(sys.argv[1]))
number = 1
while True:
    write_project(folder, project_of(number))
    print(number, flush=True)
    number += 1
"""


def kill_often(folder: Path, kills: int) -> None:
    chance = random.Random(3)
    root = Path(__file__).parents[2]
    for _ in range(kills):
        command = [sys.executable, "-c", LOOP, str(folder)]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 20)):
                saved = int(process.stdout.readline())
            for _ in range(chance.randrange(100_000)):
                pass
            process.send_signal(signal.SIGKILL)
            saved = max([saved, *map(int, process.stdout.read().split())])
        seen = read_project(FilesFolder(folder))
        assert seen in (project_of(saved), project_of(saved + 1))


def test_a_project_is_one_save_after_kill_9(tmp_path: Path) -> None:
    kill_often(tmp_path, 2)


@pytest.mark.soak
def test_a_project_is_one_save_after_40_times_kill_9(tmp_path: Path) -> None:
    kill_often(tmp_path, 40)
