"""Wheels that are built from the tree, and environments in which they are installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/understudy"
EPOCH = "1700000000"
DEADLINE = 300


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command, cwd=folder, env=env | variables,
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, to: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a tree, as `make dist` builds them."""
    command = (sys.executable, "-m", "hatchling", "build", "-d", to)
    run(*command, folder=folder, SOURCE_DATE_EPOCH=EPOCH)
    [wheel], [sdist] = to.glob("*.whl"), to.glob("*.tar.gz")
    return wheel, sdist


def with_kernels(folder: Path) -> None:
    """Gives installed modules the machine code and the dates of the tree: a kernel whose source
    has another date is compiled again, which takes seconds."""
    tree = PACKAGE / folder.name
    for file in tree.rglob("*"):
        copy = folder / file.relative_to(tree)
        if file.suffix in (".nbi", ".nbc"):
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(file, copy)
        elif file.suffix == ".py":
            shutil.copystat(file, copy)


def installed(wheel: Path, folder: Path) -> Path:
    """A new environment with the dependencies and a wheel, without the tree: its programs."""
    venv.create(folder, symlinks=True)
    site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    paths = [path for path in sys.path if path.endswith("site-packages")]
    site.joinpath("dependencies.pth").write_text("\n".join(paths))
    pip = [shutil.which("python3") or sys.executable, "-m", "pip"]
    pip += ["--python", str(folder / "bin/python"), "install"]
    run(*pip, "-q", "--no-deps", "--no-index", "--no-compile", wheel, folder=folder)
    with_kernels(site / "understudy" / "space")
    return folder / "bin"
