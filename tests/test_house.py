"""Shape of the source tree: layers, laws of file names, wording."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "understudy").rglob("*.py"))
TEXTS = [
    path
    for folder in ("src/understudy", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".js", ".css", ".yaml", ".md", ".urdf", ".gcode")
] + [ROOT / "README.md"]
BANNED = re.compile(
    r"\b(told|nobody|whoever|whom|whomever|somebody|so many|how manyeth|befalls?|befell|luck|"
    r"reckon|reckons|reckoned|reckoning|haze|mischief|whereabouts|stylus|lobby|habits|attendant)\b",
    re.IGNORECASE,
)
"""Idioms that a reader has to puzzle over: say who does what, in the words of the field."""
CODEC_ROOMS = ("errors", "units", "ports", "protocol", "gcode", "robots")
CODEC_VALUES = ("space.pose", "space.transform")
SIMULATED = ("robot", "server", "firmware", "machine", "drives", "mover", "assembly")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Module(NamedTuple):
    """What the rules ask of a module. Its syntax tree is not kept: it is large."""

    name: str
    docstring: str
    kernels: list[str]
    """Functions that are marked with `# kernel`."""
    imports: list[str]


@cache
def module(path: Path) -> Module:
    source = path.read_text()
    lines, tree = source.splitlines(), ast.parse(source)
    found = Module(name_of(path), ast.get_docstring(tree) or "", [], [])
    for node in _at_run_time(tree):
        match node:
            case ast.FunctionDef() if "# kernel" in lines[node.lineno - 1]:
                found.kernels.append(node.name)
            case ast.ImportFrom(module=str(origin)):
                found.imports.append(origin)
            case ast.Import():
                found.imports.extend(each.name for each in node.names)
    return found


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those that only a type checker sees."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
        for inside in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, inside, ())


def none_of(found: Iterable[str]) -> None:
    """Fails with everything that was found. One test looks at all files: a test per file costs more
    time than the file."""
    assert not (rows := list(found)), "\n".join(rows)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return [module(path) for path in SOURCES]


def test_modules_say_what_they_are(modules: list[Module]) -> None:
    assert modules
    none_of(f"{each.name}: no docstring" for each in modules if not each.docstring)


def test_every_kernel_has_a_plain_oracle_in_the_tests(modules: list[Module]) -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    oracles = set(re.findall(r"oracle of (\w+)", tests))
    none_of(
        f"{each.name}: {name}" for each in modules for name in each.kernels if name not in oracles
    )


def codecs() -> list[Path]:
    """The files of faces and drivers: `face*.py`, `driver*.py`, `face/`, `driver/`."""
    robots = ROOT / "src/understudy/robots"
    return [
        path
        for path in sorted(robots.rglob("*.py"))
        if any(part.startswith(("face", "driver")) for part in path.relative_to(robots).parts[1:])
    ]


@pytest.mark.parametrize("path", codecs(), ids=name_of)
def test_faces_and_drivers_know_no_physics_no_sockets_and_no_simulated_robot(path: Path) -> None:
    for name in module(path).imports:
        assert name.split(".")[0] not in ("asyncio", "socket", "time", "datetime"), name
        room, _, inside = name.removeprefix("understudy.").partition(".")
        if not name.startswith("understudy.") or f"{room}.{inside}" in CODEC_VALUES:
            continue
        assert room in CODEC_ROOMS, name
        if room == "robots":
            assert inside.partition(".")[2].split(".")[0] not in SIMULATED, name


def test_wording_is_plain() -> None:
    none_of(
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in TEXTS
        if BANNED.search(text := path.read_text())
        for number, line in enumerate(text.splitlines(), start=1)
        if BANNED.search(line)
    )


def test_floors_hold() -> None:
    """The contracts of import-linter in pyproject.toml."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
