"""Wheel and sdist: `make dist` gives the same bytes again, and the wheel works on its own."""

import email
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from tests.wheels import PACKAGE, ROOT, build, installed, run

from understudy import __version__

METADATA = f"understudy-{__version__}.dist-info"

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


def test_the_wheel_works_without_the_repository(dist: tuple[Path, Path], tmp_path: Path) -> None:
    """A new environment with the dependencies, without the tree: the first steps of a newcomer."""
    programs = installed(dist[0], tmp_path / "env")
    assert run(programs / "understudy", "--version", folder=tmp_path).strip() == __version__
    said = run(programs / "python", "-c", FIRST_STEPS, folder=tmp_path)
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
