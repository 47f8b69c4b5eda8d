"""A package that cannot be written, and users without a home: kernels are never their trouble.

A file in the place of `__pycache__` cannot be written into by anybody, root included.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import understudy
from understudy.space import compiled

PACKAGE = Path(understudy.__file__).parent
KERNEL = """
import numpy as np
from understudy.gcode.program import split_lines
print(split_lines._cache.cache_path)
starts, _ = split_lines(np.frombuffer(b"G1", np.uint8))
assert list(starts) == [0]
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package into which no cache can be written."""
    folder = tmp_path_factory.mktemp("read_only")
    shutil.copytree(PACKAGE, folder / "understudy", ignore=shutil.ignore_patterns("__pycache__"))
    for inside in [folder / "understudy", *(folder / "understudy").rglob("*")]:
        if inside.is_dir():
            (inside / "__pycache__").write_text("")
    return folder


def run(
    sources: Path, temporary: Path, *words: str, **more: str
) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(sources),
        "HOME": "/proc/nobody",
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, *words]
    return subprocess.run(
        command,
        env=environment | more,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=temporary,
        check=False,
    )


def test_without_a_home_kernels_are_kept_in_a_folder_of_the_user_alone(
    sources: Path, tmp_path: Path
) -> None:
    done = run(sources, tmp_path, "-c", KERNEL)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("understudy-kernels-*")
    assert list(folder.rglob("*split_lines*.nbc"))
    assert done.stdout.startswith(str(folder))
    assert folder.stat().st_mode & 0o77 == 0


def test_doctor_says_where_they_are(sources: Path, tmp_path: Path) -> None:
    done = run(sources, tmp_path, "-m", "understudy", "doctor", COLUMNS="250")
    assert done.returncode == 0, done.stderr
    assert f"empty, in {tmp_path}/understudy-kernels-" in done.stdout


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreign = tmp_path / f"understudy-kernels-{os.getuid()}"
    foreign.mkdir()
    foreign.chmod(0o777)
    found = compiled.temporary_folder.__wrapped__()
    assert found != foreign
    assert found.stat().st_mode & 0o77 == 0


def test_a_read_only_folder_with_machine_code_is_used(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text("")
    locator = compiled.ReadOnlyLocator
    assert locator.from_function(lambda: 0, str(source)) is None, "it is empty"
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "kernels.f-1.py311.nbi").write_text("")
    assert locator.from_function(lambda: 0, str(source)).get_cache_path() == str(
        tmp_path / "__pycache__"
    )


def test_what_cannot_be_saved_is_compiled_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled.caching.IndexDataCacheFile, "save", full)

    @compiled.compiled
    def tripled(x: float) -> float:
        return 3.0 * x

    assert tripled(2.0) == 6.0
