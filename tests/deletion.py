"""A copy of the source tree without one capability, and what is tried on it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from understudy import registry

ROOT = Path(__file__).parents[1]
PARTS = ("src", "tests", "docs", "examples", "pyproject.toml", "README.md")
"""What a copy has."""
NEEDS = {"robots/grblhal": ("robots/arm",)}
"""Capability → others that go with it: the arm has grblHAL's firmware."""
OFFERS = ("understudy/__init__.py", "understudy/testing.py")
"""Files with the public names and fixtures of all capabilities, imported when they are used."""
LONGEST_SECONDS = 3600
IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module
import understudy
names = [each.name for each in pkgutil.walk_packages(understudy.__path__, "understudy.")]
for name in names:
    if not name.endswith("__main__"):
        import_module(name)
print(len(names))
"""
LOAD_CELLS = """
import sys
import understudy
from understudy.config.files import shipped_cells
from understudy.errors import ConfigError
for name in shipped_cells():
    try:
        understudy.load_cell(name).advance(0.5)
    except ConfigError as problem:
        print(name, "refused", problem)
    else:
        print(name, "runs")
"""


def capabilities() -> list[str]:
    """The folder of every capability."""
    folders = [
        f"{room}/{folder.name}"
        for room in ("robots", "devices", "jobs", "doors")
        for folder in sorted((ROOT / "src/understudy" / room).iterdir())
        if (folder / "__init__.py").exists()
    ]
    return [*folders, "vision"]


class Tree:
    """A copy of this tree in a folder, without some capabilities."""

    def __init__(self, folder: Path, capability: str) -> None:
        self.root = folder / "tree"
        self.removed = (capability, *NEEDS.get(capability, ()))
        for file in _files():
            target = self.root / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, target)  # with the time: kernels stay compiled
        for each in self.removed:
            self._remove(each)
        self._adapt_contracts()

    def _remove(self, capability: str) -> None:
        for room in ("src/understudy", "tests"):
            shutil.rmtree(self.root / room / capability, ignore_errors=True)
        for page in self.root.glob(f"docs/{capability}*.md"):
            page.unlink()
        remove_row(self.root / "src/understudy/registry.py", capability)

    def _adapt_contracts(self) -> None:
        """Takes the modules that are gone out of the contracts of import-linter."""
        file = self.root / "pyproject.toml"
        lines = file.read_text().splitlines()
        gone = "|".join(each.replace("/", r"\.") for each in self.removed)
        listed = re.compile(rf'"understudy\.(?:{gone})[^"]*",? ?')
        file.write_text("\n".join(listed.sub("", line) for line in lines) + "\n")

    def run(self, *words: str) -> str:
        """Runs Python in the copy; the output, with the reason first if it failed."""
        path = os.pathsep.join([str(self.root / "src"), str(self.root)])
        done = subprocess.run(
            [sys.executable, *words], cwd=self.root, env=os.environ | {"PYTHONPATH": path},
            capture_output=True, text=True, timeout=LONGEST_SECONDS,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else f"FAILED\n{done.stdout}{done.stderr}"


def _files() -> list[str]:
    """Files of the tree, with those that are new, and its compiled kernels."""
    words = ["git", "ls-files", "-co", "--exclude-standard", "--", *PARTS]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kernels = [str(each.relative_to(ROOT)) for each in ROOT.glob("src/**/__pycache__/*.nb[ci]")]
    return [each for each in listed.splitlines() if (ROOT / each).is_file()] + kernels


def remove_row(file: Path, capability: str) -> None:
    """Takes the row of a capability out of the registry; one without a row has none to remove."""
    package = f"understudy.{capability.replace('/', '.')}"
    if all(row.package != package for row in registry.CAPABILITIES):
        return
    lines = file.read_text().splitlines(keepends=True)
    [row] = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Capability"
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == package
    ]
    assert row.end_lineno is not None
    del lines[row.lineno - 1 : row.end_lineno]
    file.write_text("".join(lines))


# ── what is tried ───────────────────────────────────────────────────────────────────────────────


def imports(tree: Tree) -> str:
    """Every module that is left is imported."""
    return _failure(tree.run("-c", IMPORT_ALL))


def names(tree: Tree) -> str:
    """No module imports what is gone, not even for the type checker. The files that offer
    capabilities to users name them."""
    gone = tuple(f"understudy.{each.replace('/', '.')}." for each in tree.removed)
    words = {each.rpartition("/")[2] for each in tree.removed}
    source = tree.root / "src"
    return "\n".join(
        f"{path.relative_to(source)} imports {name}"
        for path in sorted(source.rglob("*.py"))
        if path.relative_to(source).as_posix() not in OFFERS
        and any(word in path.read_text() for word in words)
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _imported(node)
        if f"{name}.".startswith(gone)
    )


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{each.name}" for each in node.names]
    return []


def types(tree: Tree) -> str:
    """mypy accepts the source, with the results that it keeps of this tree for a faster start. The
    files that offer capabilities to users import what is gone, for the type checker only."""
    kept = ROOT / ".mypy_cache"
    if kept.is_dir():
        shutil.copytree(kept, tree.root / kept.name)
    said = tree.run("-m", "mypy", "--no-error-summary", "src/understudy")
    offered = tuple(f"src/understudy/{each.removeprefix('understudy/')}" for each in OFFERS)
    errors = [line for line in said.splitlines() if ": error:" in line]
    wrong = [line for line in errors if not line.startswith(offered)]
    return "\n".join(wrong) if errors else _failure(said)


def contracts(tree: Tree) -> str:
    """import-linter finds all contracts kept."""
    words = "from importlinter.cli import lint_imports_command as run; run()"
    return _failure(tree.run("-c", words, "--no-cache", "--no-logo"))


def helps(tree: Tree) -> str:
    return _failure(tree.run("-m", "understudy", "--help"))


def cells(tree: Tree) -> str:
    """The shipped cells run; one that names what is gone is refused, and belongs to it."""
    said = tree.run("-c", LOAD_CELLS)
    if said.startswith("FAILED"):
        return said
    outcomes = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    wrong = [
        f"{name}: {outcome}"
        for name, outcome in outcomes.items()
        if outcome.startswith("refused") and not re.search(r"unknown|no kind", outcome)
    ]
    if "runs" not in outcomes.values():
        wrong.append("no cell is left")
    refused = {name for name, outcome in outcomes.items() if outcome != "runs"}
    for file in tree.root.glob("src/understudy/**/catalog/cells/*.yaml"):
        if file.stem in refused:
            file.unlink()
    return "\n".join(wrong)


def tests_of(*rooms: str) -> Callable[[Tree], str]:
    """The tests of these rooms pass, without those that were removed."""

    def run(tree: Tree) -> str:
        there = [room for room in rooms if (tree.root / "tests" / room).exists()]
        paths = [f"tests/{room}" for room in there]
        return _failure(tree.run("-m", "pytest", "-q", "-x", "-n", "0", *paths))

    return run


def _failure(said: str) -> str:
    return said if said.startswith("FAILED") else ""
