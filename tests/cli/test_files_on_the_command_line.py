"""Files that the user names: what is no regular file or too large ends the command with code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CELL = "robots: {bench: {kind: text_robot}}\n"


def understudy(folder: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "understudy", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe.yaml")
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "cell.yaml").write_text(CELL)
    (tmp_path / "passwd").write_text("root:x:hunter2:0\n")
    (tmp_path / "by_name.yaml").write_text("robots: {bench: {kind: text_robot, program: passwd}}\n")
    (tmp_path / "include.yaml").write_text("include: {environment: passwd}\nrobots: {}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("check", "pipe.yaml"), "not a regular file"),
        (("check", "huge.yaml"), "more than 1048576 bytes"),
        (("check", "by_name.yaml"), "ends in .gcode"),
        (("check", "include.yaml"), "allowed: a mapping"),
        (("run", "/dev/zero"), "not a regular file"),
        (("validate", "/dev/zero", "--cell", "g60_welding"), "not a regular file"),
        (("run", "cell.yaml", "--files", "none", "--no-hmi"), "--files: there is no such folder"),
        (("run", "cell.yaml", "--files", "passwd", "--no-hmi"), "--files: this is not a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_it_ends_with_code_2_and_quotes_nothing(
    folder: Path, words: tuple[str, ...], says: str
) -> None:
    code, said = understudy(folder, *words)
    assert (code, says in said, "hunter2" in said) == (2, True, False), said


def test_a_mistyped_project_is_reported(folder: Path) -> None:
    (folder / "my_project").mkdir()
    (folder / "my_project/project.yaml").write_text("format: 1\n")
    words = ("run", "cell.yaml", "--no-hmi", "--ephemeral", "--for", "0", "--rate", "max")
    code, said = understudy(folder, *words, "--project", "my_projct")
    assert code == 0, said
    assert "my_projct: this folder does not exist yet; a new project begins" in said
    assert "did you mean 'my_project'?" in said
    assert not (folder / "my_projct").exists()
