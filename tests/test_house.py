"""Shape of the source tree: layers, sizes, laws of file names, wording."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "understudy").rglob("*.py"))
MODULE_LIMIT = 600
FUNCTION_LIMIT = 40
KERNEL_LIMIT = 120
PROTOCOL_LIMIT = 6
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


@pytest.fixture(params=SOURCES, ids=name_of)
def source(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return path.read_text()


def test_module_is_short_and_says_what_it_is(source: str) -> None:
    assert len(source.splitlines()) <= MODULE_LIMIT
    assert ast.get_docstring(ast.parse(source)), "every module begins with a docstring"


def test_functions_fit_a_screen(source: str) -> None:
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        kernel = "# kernel" in lines[node.lineno - 1]
        limit = KERNEL_LIMIT if kernel else FUNCTION_LIMIT
        assert node.end_lineno is not None
        length = node.end_lineno - node.lineno + 1
        assert length <= limit, f"{node.name} has {length} lines, {limit} are allowed"


def test_protocols_are_small(source: str) -> None:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
            assert len(methods) <= PROTOCOL_LIMIT, f"{node.name} wants to be two Protocols"


def test_every_kernel_has_a_plain_oracle_in_the_tests() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    for path in SOURCES:
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef) and "# kernel" in lines[node.lineno - 1]:
                assert f"oracle of {node.name}" in tests, f"{name_of(path)}: {node.name}"


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
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [node.module] if isinstance(node, ast.ImportFrom) else []
        modules += [each.name for each in node.names] if isinstance(node, ast.Import) else []
        for module in filter(None, modules):
            assert module.split(".")[0] not in ("asyncio", "socket", "time", "datetime"), module
            room, _, inside = module.removeprefix("understudy.").partition(".")
            if not module.startswith("understudy.") or f"{room}.{inside}" in CODEC_VALUES:
                continue
            assert room in CODEC_ROOMS, module
            if room == "robots":
                assert inside.partition(".")[2].split(".")[0] not in SIMULATED, module


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_wording_is_plain(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), start=1)
    found = [f"{number}: {line.strip()}" for number, line in lines if BANNED.search(line)]
    assert not found, "\n".join(found)


def test_floors_hold() -> None:
    """The contracts of import-linter in pyproject.toml."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
