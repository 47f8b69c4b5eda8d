"""The house keeps its shape: floors, sizes, words."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "understudy").rglob("*.py"))
MODULE_LIMIT = 400
FUNCTION_LIMIT = 40
KERNEL_LIMIT = 120
PROTOCOL_LIMIT = 6


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


def test_floors_hold() -> None:
    """import-linter's contracts: who may import whom."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
