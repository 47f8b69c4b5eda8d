"""Wheel and sdist: `make dist` gives the same bytes again, and the wheel works on its own."""

import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from understudy import __version__

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/understudy"
METADATA = f"understudy-{__version__}.dist-info"
EPOCH = "1700000000"
DEADLINE = 300

FIRST_STEPS = """
import sys
from importlib.metadata import version
from pathlib import Path

import understudy
from understudy.cli import main

assert Path(understudy.__file__).is_relative_to(sys.prefix), understudy.__file__
assert version("understudy") == understudy.__version__
cell = understudy.load_cell("text_robot")
client = cell.connect("bench.text_tcp")
print(client.ask(b"MOVE_ABS 100,0,150,0,0,0\\n").decode(), end="")
for words in (["cells"], ["check", "default"]):
    sys.argv = ["understudy", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""


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


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_another_build_gives_the_same_bytes(dist: tuple[Path, Path], tmp_path: Path) -> None:
    """The second one is built from the sdist: in another folder, with files of another date."""
    with tarfile.open(dist[1]) as packed:
        packed.extractall(tmp_path, filter="data")
    [tree] = tmp_path.iterdir()
    (tree / "PKG-INFO").unlink()  # was added to the sdist
    for first, second in zip(dist, build(tree, tmp_path / "again"), strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_wheel_has_the_package_and_nothing_else(dist: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(dist[0]) as packed:
        names = {name for name in packed.namelist() if not name.startswith(METADATA)}
        rest = {name.partition("/")[2] for name in packed.namelist()} - {
            name.partition("/")[2] for name in names
        }
    files = (path for path in PACKAGE.rglob("*") if path.is_file())
    shipped = (path for path in files if "__pycache__" not in path.parts)
    assert names == {str(path.relative_to(PACKAGE.parent)) for path in shipped}
    assert rest == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert {"understudy/py.typed", "understudy/catalog/cells/default.yaml"} <= names
    assert any(name.startswith("understudy/hmi/") and name.endswith(".js") for name in names)
    assert not any("/tests/" in name or Path(name).name.startswith("test_") for name in names)


def test_the_sdist_has_all_that_the_tests_need(dist: tuple[Path, Path]) -> None:
    with tarfile.open(dist[1]) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"README.md", "Makefile", "constraints.txt", "tests/test_dist.py"} <= names
    assert {f"docs/pictures/{path.name}" for path in (ROOT / "docs/pictures").iterdir()} <= names
    assert not any(name.startswith((".git/", ".venv/", "dist/")) for name in names)


def test_the_metadata_names_versions_and_extras(dist: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(dist[0]) as packed:
        text = packed.read(f"{METADATA}/METADATA").decode()
    head, _, readme = text.partition("\n\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    fields = email.message_from_string(head)
    assert set(fields.get_all("Provides-Extra", [])) == set(extras)
    named = extras["all"][0].partition("[")[2].rstrip("]").split(",")
    assert set(named) == set(extras) - {"all", "dev", "docs", "peers"}
    classifiers = fields.get_all("Classifier", [])
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert fields["Requires-Python"] == ">=3.11"
    assert fields["License-Expression"] == "Apache-2.0"
    assert readme == (ROOT / "README.md").read_text()


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


def test_the_wheel_works_without_the_repository(dist: tuple[Path, Path], tmp_path: Path) -> None:
    """A new environment with the dependencies, without the tree: the first steps of a newcomer."""
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env/bin/python"
    site = tmp_path / "env/lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    paths = [path for path in sys.path if path.endswith("site-packages")]
    site.joinpath("dependencies.pth").write_text("\n".join(paths))
    pip = (shutil.which("python3") or sys.executable, "-m", "pip", "--python", python, "install")
    run(*pip, "-q", "--no-deps", "--no-index", "--no-compile", dist[0], folder=tmp_path)
    with_kernels(site / "understudy" / "space")
    assert run(tmp_path / "env/bin/understudy", "--version", folder=tmp_path).strip() == __version__
    said = run(python, "-c", FIRST_STEPS, folder=tmp_path)
    assert said.startswith("OK Movement completed\n")
    assert "text_robot" in said
    assert said.endswith("default: valid (robots: 5, faces: 5)\n")


def test_the_citation_and_the_forms_of_issues_are_complete() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    forms = [yaml.safe_load(path.read_text()) for path in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")]
    assert forms
    for form in forms:
        assert {"name", "description", "body"} <= set(form)
        assert all(field["attributes"]["label"] for field in form["body"])
