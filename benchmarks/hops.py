"""Source files that a request passes through, and the size of the source tree.

Run `python benchmarks/hops.py [--files]`. The package is the one that `PYTHONPATH` names, so the
same script measures any version of the tree. It prints five figures:

1. files that execute between the bytes of a grblHAL `G1` and its `ok`;
2. files that execute between the bytes of a text robot's `MOVE_ABS` and its answer;
3. files that execute while a program of four lines is validated on `g60_welding`;
4. modules that only one module of their own folder imports, and no other module;
5. lines of source.

Figures 1 and 2 are taken from a client in the same process: the exchange of bytes and the scheduler
are counted, sockets are not. `--files` also prints the names. The figures are no limits.
"""

import ast
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import understudy

ROOT = Path(understudy.__file__).parent
PROGRAM = "G21 G90 G94\nG28\nG0 X450 Y0 Z450 A180 B0 C0\nG1 Z380 F6000\n"


class Tracer:
    """Source files of the package in which a function is called, in the order of the first call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            name = frame.f_code.co_filename
            if name.startswith(str(ROOT)):
                self.files.setdefault(name[len(str(ROOT)) + 1 :])


def traced(work: Callable[[], object]) -> list[str]:
    """Files in which ``work`` calls a function."""
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(tracer.files)


def request_files(cell: str, endpoint: str, first: bytes, request: bytes) -> list[str]:
    """Files between the bytes of a request and its answer, with every cache of the process warm.

    The client sends ``first`` before, untraced.
    """
    for _ in range(2):
        client = understudy.load_cell(cell).connect(endpoint)
        client.ask(first)
        files = traced(partial(client.ask, request))
    return files


def validation_files() -> list[str]:
    """Files that execute while four lines are validated."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "four_lines.gcode"
        program.write_text(PROGRAM)
        understudy.validate(str(program), "g60_welding")
        return traced(lambda: understudy.validate(str(program), "g60_welding"))


# ── imports ─────────────────────────────────────────────────────────────────────────────────────


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package by the name of its folder."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the package that a file imports, at its top or in a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(name if name in known else node.module for name in whole)
    return {name for name in names if name in known and known[name] != path}


def single_importers() -> list[str]:
    """Modules whose only importer is one module of their own folder."""
    known = modules()
    importers: dict[str, set[Path]] = defaultdict(set)
    for path in known.values():
        for name in imported(path, known):
            importers[name].add(path)
    named = {name: path for name, path in known.items() if path.name != "__init__.py"}
    return sorted(
        name
        for name, path in named.items()
        if len(importers[name]) == 1 and next(iter(importers[name])).parent == path.parent
    )


def source_lines() -> int:
    return sum(len(path.read_text().splitlines()) for path in modules().values())


def main() -> None:
    lists = {
        "grblHAL G1, bytes to ok: files": request_files(
            "grblhal_6axis", "machine.grblhal", b"G21\n", b"G1 X1 F100\n"
        ),
        "text robot MOVE_ABS, bytes to answer: files": request_files(
            "text_robot", "bench.text_tcp", b"GET_POS\n", b"MOVE_ABS 100,200,150,0,0,90\n"
        ),
        "validate, 4 lines on g60_welding: files": validation_files(),
        "modules with a single importer in their own folder": single_importers(),
    }
    for title, names in lists.items():
        print(f"{len(names):6}  {title}")
        for name in names if "--files" in sys.argv else ():
            print(f"        {name}")
    print(f"{source_lines():6}  lines of source in {len(modules())} modules")


if __name__ == "__main__":
    main()
