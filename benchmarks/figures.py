"""Figures of the source tree: what six requests pass, sizes, and merges that are left to do.

`make figures` prints them beside the table that docs/tour.md has, `make figures ARGS=--names` also
the names that are counted, and `make figures ARGS=--write` writes the table anew. The package is
the one that `PYTHONPATH` names, so the same script measures any version of the tree. The figures
are no limits.

A request passes a file if a function of the file is called between the request and its answer. A
room is a folder of the package, or a folder in `robots`, `devices`, `jobs` or `doors`. The depth is
the largest number of frames of the package on one stack.

- `G1`, `MOVE_ABS`, `validate` and the cycle of pick & place run on virtual time, with all caches of
  the process warm. The exchange of bytes and the scheduler are counted, sockets are not.
- The command to a mobile robot and the click on Run programs run in a live cell in this process,
  with a NATS server and ZeroMQ sockets. The command is repeated, so that some of its answers
  coincide with a report of the robot; the files of all repetitions are counted. The click is the
  first one of a run, from the handler of the button to the answer. What the cell does by itself
  meanwhile is counted, so that the files differ by a few from run to run (68 to 73 of one tree).
"""

import argparse
import ast
import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import nats

import understudy
from understudy.app.build import build_cell
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.cell_state import CellState
from understudy.hmi.link import CellLink
from understudy.hmi.pages.cell.page import TimeScale
from understudy.hmi.texts import Texts
from understudy.wire.exchange import InProcessCell

PACKAGE = Path(understudy.__file__).parent
TOUR = Path(__file__).parents[1] / "docs" / "tour.md"
MARK = "<!-- figures -->"
COLUMNS = ("figure", "before the third edition", "now")
PROGRAM = "G21 G90 G94\nG28\nG0 X450 Y0 Z450 A180 B0 C0\nG1 Z380 F6000\n"
REPETITIONS, PAUSE_SECONDS = 16, 0.037
"""Of the command to a mobile robot: the pauses fall on different ticks and reports."""
FOLDERS_OF_ROOMS = ("robots", "devices", "jobs", "doors")
FOLDERS_OF_CAPABILITIES = (*FOLDERS_OF_ROOMS, "vision")
LEFT_OUT = ("robots/mobile", "jobs/pick_place", "vision")
"""Capabilities without which the lines are counted once more."""
CAPABILITIES = {
    "pick & place": ("jobs/pick_place", "pick_?place"),
    "vision": ("vision", "vision"),
    "fleet": ("robots/mobile", "fleet"),
    "hand-eye": ("jobs/hand_eye", "(?<!calibrate)(?<!calib_)hand_?eye"),
    "gripper": ("devices/gripper", "gripper"),
}
"""Capability → its folder, and how source outside the folder would name it. `calibrateHandEye` and
`CALIB_HAND_EYE_…` are names of OpenCV, not of a capability."""


class Figure(NamedTuple):
    """A row of the table. ``names``: what was counted, with `--names`."""

    title: str
    value: float
    names: list[str]


def counted(title: str, names: Iterable[str]) -> Figure:
    found = sorted(names)
    return Figure(title, len(found), found)


# ── requests ────────────────────────────────────────────────────────────────────────────────────


class Tracer:
    """Files in which a function is called, and the deepest stack."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.depth = 0
        self._inside = f"{PACKAGE}/"

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(self._inside):
            return
        if frame.f_code.co_name != "<module>":
            self.files.add(name.removeprefix(self._inside))
            self.depth = max(self.depth, self._frames(frame))

    def _frames(self, frame: FrameType | None) -> int:
        count = 0
        while frame is not None:
            count += frame.f_code.co_filename.startswith(self._inside)
            frame = frame.f_back
        return count

    @contextmanager
    def tracing(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    def figures(self, request: str) -> list[Figure]:
        rooms = counted(f"{request}: rooms", {room_of(file) for file in self.files})
        files = counted(f"{request}: files", self.files)
        return [files, rooms, Figure(f"{request}: depth of the stack", self.depth, [])]


def room_of(file: str) -> str:
    """The room of a file, both relative to the package."""
    folder, *rest = Path(file).parts
    return f"{folder}/{rest[0]}" if folder in FOLDERS_OF_ROOMS and len(rest) > 1 else folder


def traced(work: Callable[[], object]) -> Tracer:
    tracer = Tracer()
    with tracer.tracing():
        work()
    return tracer


def asked(cell: str, endpoint: str, first: bytes, request: bytes) -> Tracer:
    """A request of a client in this process, after ``first``."""
    for _ in range(2):
        client = understudy.load_cell(cell).connect(endpoint)
        client.ask(first)
        tracer = traced(partial(client.ask, request))
    return tracer


def validated() -> Tracer:
    """Four lines are validated."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "four_lines.gcode"
        program.write_text(PROGRAM)
        validate = partial(understudy.validate, str(program), "g60_welding")
        validate()
        return traced(validate)


def picked_and_placed() -> Tracer:
    """The second cycle of two, from the end of the first."""
    built = build_cell(load_config("pick_place"))
    components: Mapping[str, Any] = built.components
    cell, arm, job = InProcessCell(built), components["g60"], components["g60.pick_place"]
    arm.connect(0)
    arm.enable(0)
    job.start(0, max_cycles=2)
    cell.run_while(lambda: job.status(built.now).cycle_count < 1)
    return traced(lambda: cell.run_while(job.is_running))


async def commanded() -> Tracer:
    """A command of a backend, until the robot's answer has come back through the server."""
    live = Live(load_config("mobile_robot"), Options(ephemeral=True))
    await live.start()
    client = await nats.connect(live.endpoints["nats"])
    answers = await client.subscribe("robot.robot-1.command.ack")
    await client.flush()
    tracer = Tracer()
    for number in range(REPETITIONS):
        await asyncio.sleep(PAUSE_SECONDS)
        parameters = {"x": 2.0 + number % 2, "y": 2.0}
        body = {"commandType": "MOVE_TO_POSE", "parameters": parameters}
        message = json.dumps({"messageId": f"m{number}", "payload": body}).encode()
        with tracer.tracing() if number else Tracer().tracing():  # the first one loads and compiles
            await client.publish("robot.robot-1.command.request", message)
            while f'"m{number}"'.encode() not in (await answers.next_msg(timeout=10)).data:
                pass
    await client.close()
    await live.stop()
    return tracer


async def played() -> Tracer:
    """A click on Run programs."""
    live = Live(load_config("g60_welding"), Options(ephemeral=True, hmi=True))
    await live.start()
    live.load()
    link = CellLink(live.endpoints["g60.hmi_link"], live.endpoints["g60.hmi_link.status"])
    await link.start()
    state, alive = CellState(link), asyncio.Event()
    state.on_change(alive.set)
    state.watch("g60")
    await alive.wait()
    button = TimeScale(Browser(link, state, Texts("en"), robot="g60", role="operator"))
    tracer = Tracer()
    with tracer.tracing():
        await button.run_programs()
    state.unwatch("g60")
    await link.stop()
    await live.stop()
    return tracer


def request_figures() -> Iterator[Figure]:
    first, second = b"G21\n", b"G1 X1 F100\n"
    yield from asked("grblhal_6axis", "machine.grblhal", first, second).figures("grblHAL G1")
    first, second = b"GET_POS\n", b"MOVE_ABS 100,200,150,0,0,90\n"
    yield from asked("text_robot", "bench.text_tcp", first, second).figures("text MOVE_ABS")
    yield from validated().figures("validate, 4 lines")
    yield from asyncio.run(commanded()).figures("command on NATS")
    yield from picked_and_placed().figures("cycle of pick & place")
    yield from asyncio.run(played()).figures("click on Run programs")


# ── source ──────────────────────────────────────────────────────────────────────────────────────


class Module(NamedTuple):
    """`file`: relative to the package. `tree`: without docstrings."""

    name: str
    file: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def folder(self) -> str:
        return str(Path(self.file).parent)


@cache
def modules() -> dict[str, Module]:
    """Every module of the package by its dotted name; a package by the name of its folder."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        parts = [PACKAGE.name, *file.with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        found[name] = Module(name, str(file), text, without_docstrings(ast.parse(text)))
    return found


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not is_docstring(each)]  # type: ignore[attr-defined]
    return tree


def is_docstring(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


def imported(module: Module) -> set[str]:
    """Modules of the package that a module imports, at its top or in a function."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(name if name in modules() else node.module for name in whole)
    return {name for name in names if name in modules() and name != module.name}


def single_importers() -> Figure:
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules().values():
        for name in imported(module):
            importers[name].add(module.name)
    return counted(
        "modules with one importer, in their own folder",
        (
            name
            for name, module in modules().items()
            if not module.file.endswith("__init__.py")
            and len(importers[name]) == 1
            and modules()[next(iter(importers[name]))].folder == module.folder
        ),
    )


def protocol_figures() -> Iterator[Figure]:
    """A class implements a Protocol if it, or a class of the package that it inherits from, has
    all its members."""
    protocols: dict[str, set[str]] = {}
    classes: dict[str, list[tuple[set[str], list[str]]]] = defaultdict(list)
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                bases = [name for base in node.bases if (name := name_of(base))]
                if "Protocol" in bases:
                    protocols[f"{module.name}.{node.name}"] = members(node)
                    classes[node.name].append((members(node), [*bases, "Protocol"]))
                else:
                    classes[node.name].append((members(node), bases))

    def all_members(own: set[str], bases: list[str], seen: frozenset[str]) -> set[str]:
        inherited = (
            all_members(*each, seen | {base})
            for base in bases
            if base not in seen
            for each in classes.get(base, [])
        )
        return own.union(*inherited)

    real = [
        all_members(own, bases, frozenset())
        for each in classes.values()
        for own, bases in each
        if "Protocol" not in bases
    ]
    yield counted("Protocols", protocols)
    yield counted(
        "Protocols with one implementation",
        (name for name, wanted in protocols.items() if sum(wanted <= has for has in real) == 1),
    )


def members(node: ast.ClassDef) -> set[str]:
    """Names of methods and attributes of a class, with those that its methods assign."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=target) | ast.Assign(targets=[target]):
                name = name_of(target)
                if name:
                    found.add(name)
    return found - {"__init__"}


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return name_of(value)
    return ""


def one_caller_figures() -> Iterator[Figure]:
    """Private functions that their module names once."""
    functions, single = 0, []
    for module in modules().values():
        used: Counter[str] = Counter()
        defined = []
        for node in ast.walk(module.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    functions += 1
                    if name.startswith("_") and not name.endswith("__"):
                        defined.append(name)
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    used[name] += 1
        single += [f"{module.name}.{name}" for name in defined if used[name] == 1]
    yield Figure("functions", functions, [])
    yield counted("private functions with one caller", single)


@cache
def code_of(module: str) -> str:
    """The code of a module without comments and docstrings."""
    return ast.unparse(modules()[module].tree)


def naming(title: str, folder: str, pattern: str) -> Figure:
    """Modules outside a folder whose code names its capability; comments do not count."""
    found = re.compile(pattern, re.IGNORECASE)
    return counted(
        f"files outside its folder that name {title}",
        (
            module.file
            for module in modules().values()
            if not module.file.startswith(f"{folder}/") and found.search(code_of(module.name))
        ),
    )


def lines_by_room() -> Mapping[str, int]:
    lines: Counter[str] = Counter()
    for module in modules().values():
        lines[room_of(module.file)] += module.lines
    return dict(lines.most_common())


def size_figures() -> Iterator[Figure]:
    rooms = lines_by_room()
    core = sum(n for room, n in rooms.items() if room.split("/")[0] not in FOLDERS_OF_CAPABILITIES)
    outside = sum(n for room, n in rooms.items() if room not in LEFT_OUT)
    yield Figure("modules", len(modules()), [])
    yield Figure("lines", sum(rooms.values()), [f"{room}: {n}" for room, n in rooms.items()])
    yield Figure("lines of the core, without robots, devices, jobs and vision", core, [])
    yield Figure("lines without mobile robots, pick & place, vision", outside, [])


def skips() -> Figure:
    marked = (m.file for m in modules().values() for _ in range(m.text.count("# fmt: skip")))
    return counted("`fmt: skip`", marked)


def import_time(module: str) -> Figure:
    """The least CPU time of five imports, each in a process of its own."""
    lines = (
        "from time import process_time",
        "start = process_time()",
        f"import {module}",
        "print(process_time() - start)",
    )
    words = [sys.executable, "-c", "\n".join(lines)]
    times = (float(subprocess.run(words, check=True, capture_output=True).stdout) for _ in range(5))
    return Figure(f"`import {module}`, ms", round(1000 * min(times)), [])


def source_figures() -> Iterator[Figure]:
    yield from size_figures()
    yield single_importers()
    yield from protocol_figures()
    yield from one_caller_figures()
    for title, (folder, pattern) in CAPABILITIES.items():
        yield naming(title, folder, pattern)
    yield skips()
    yield import_time("understudy")
    yield import_time("understudy.cli")


# ── the table ───────────────────────────────────────────────────────────────────────────────────


def committed(text: str) -> dict[str, tuple[str, str]]:
    """Figure → the two columns of the table in a text."""
    rows = {}
    for line in text.partition(MARK)[2].strip().partition("\n\n")[0].splitlines()[2:]:
        title, before, now = (cell.strip() for cell in line.strip("|").split("|"))
        rows[title] = before, now
    return rows


def written(text: str, figures: Iterable[Figure]) -> str:
    """The text with a new table: its second column stays."""
    known = committed(text)
    head, _, rest = text.partition(MARK)
    tail = rest.strip().partition("\n\n")[2] if known else rest.strip()
    rows = [COLUMNS, ("---", "---:", "---:")]
    for title, value, _ in figures:
        rows.append((title, known.get(title, ("–", ""))[0], f"{value:g}"))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{head}{MARK}\n\n{table}\n\n{tail}\n"


def verdict(value: float, before: str) -> str:
    """Compared with a figure of the table: less is better."""
    if not before or before == "–" or float(before) == value:
        return ""
    return "better" if value < float(before) else "worse"


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Figures of the source tree.")
    parser.add_argument("--names", action="store_true", help="print what was counted, too")
    parser.add_argument("--write", action="store_true", help="write the table in docs/tour.md")
    parser.add_argument("--source-only", action="store_true", help="leave the requests out")
    options = parser.parse_args(words)
    text = TOUR.read_text()
    known = committed(text)
    figures = [] if options.source_only else list(request_figures())
    figures += source_figures()
    print(f"{'now':>8} {'was':>8} {'first':>8}  figure")
    for title, value, names in figures:
        first, was = known.get(title, ("–", "–"))
        print(f"{value:8g} {was:>8} {first:>8}  {title}  {verdict(value, was)}".rstrip())
        for name in names if options.names else ():
            print(f"{'':26}  {name}")
    if not options.names:
        rooms = (f"{room} {lines}" for room, lines in lines_by_room().items())
        print(f"\nlines by room: {', '.join(rooms)}")
    if options.write:
        TOUR.write_text(written(text, figures))


if __name__ == "__main__":
    main(sys.argv[1:])
