"""Options that several commands have: one name, one meaning, and the names that a shell completes.

`--cell` is a cell file or the name of a shipped cell, `--running` a cell that runs. `--json` prints
JSON in place of the text; with a file it writes the file beside the text. `--html` writes a page to
read, `--out` the result itself. `-q` prints results and problems only, `-v` also details.
"""

import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from understudy import __version__
from understudy.cli.parameters import Argument, MistakeError, Option, Parameter
from understudy.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from understudy.html_page import Origin

PAGE = "hmi"
"""The endpoint of the page."""

# ── what a shell completes ──────────────────────────────────────────────────────────────────────


def _cells(incomplete: str) -> list[str]:
    """Shipped cells, and cell files below the folder that is typed."""
    from understudy.config.files import YAML_FILES, shipped_cells

    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    found = list(shipped_cells())
    with suppress(OSError):
        hidden = Path(incomplete).name.startswith(".")
        paths = [path for path in sorted(folder.iterdir()) if path.name[0] != "." or hidden]
        found += [str(path) for path in paths if path.suffix in YAML_FILES]
        found += [f"{path}/" for path in paths if path.is_dir()]
    return found


def _running(incomplete: str) -> list[str]:
    from understudy.app.ready_file import running_cells

    return [ready.cell for ready in running_cells()]


def _robots(ctx: Any, incomplete: str) -> list[str]:
    """The robots of the cell on the command line; those of the running cells if none is there."""
    from understudy.config import load_config

    cell = ctx.params.get("cell")
    with suppress(ConfigError):
        return list(load_config(str(cell)).robots) if cell else running_robots(ctx, incomplete)
    return []


def running_robots(ctx: Any, incomplete: str) -> list[str]:
    """The robots of all running cells."""
    from understudy.app.control_client import result_of
    from understudy.app.ready_file import running_cells

    found: list[str] = []
    for ready in running_cells():
        with suppress(ConfigError):
            robots = result_of(ready, {"do": "robots"}, timeout_s=1.0)["robots"]
            found += [str(robot["name"]) for robot in robots]
    return found


def faces(incomplete: str) -> list[str]:
    """The dialects."""
    from understudy.registry import kinds

    return list(kinds("faces"))


# ── the options ─────────────────────────────────────────────────────────────────────────────────


def cell_option(meaning: str) -> Any:
    """`--cell`; ``meaning``: what the command does with the cell."""
    return Option(
        "--cell", metavar="CELL", help=f"file or shipped name: {meaning}", autocompletion=_cells
    )


def cell_argument(meaning: str) -> Any:
    return Argument(metavar="CELL", help=meaning, autocompletion=_cells)


def robot_option(meaning: str) -> Any:
    return Option("--robot", metavar="NAME", help=meaning, autocompletion=_robots)


def robot_argument(meaning: str) -> Any:
    return Argument(metavar="ROBOT", help=meaning, autocompletion=running_robots)


RunningOption = Annotated[
    str,
    Option(
        "--running",
        metavar="NAME",
        help="name or process id of a running cell; default: the one that runs",
        autocompletion=_running,
    ),
]
RunningCells = Annotated[
    list[str] | None,
    Option(
        "--running",
        metavar="NAME",
        help="name or process id of a running cell; default: all that run",
        autocompletion=_running,
    ),
]
ReadyFileOption = Annotated[
    Path | None,
    Option(
        "--ready-file", metavar="FILE", help="ready file of a running cell, in place of its name"
    ),
]
JsonOption = Annotated[
    str | None,
    Option("--json", metavar="[FILE]", help="print JSON; with a FILE, write it there"),
]
HtmlOption = Annotated[
    Path | None, Option("--html", metavar="FILE", help="write a report for the browser")
]


# ── options that may stand without their value ──────────────────────────────────────────────────


PROGRAMS_AND_CELLS = (".gcode", ".nc", ".ngc", ".tap", ".cnc", ".txt", ".src", ".yaml", ".yml")


def _is_json_file(word: str) -> bool:
    """The next word is the FILE of `--json`, and no argument of the command."""
    return word == "-" or (
        bool({"/", "."} & set(word)) and not word.lower().endswith(PROGRAMS_AND_CELLS)
    )


def _is_bare(word: str) -> bool:
    return bool(word) and not {"/", "."} & set(word)


def _is_terminal_path(word: str) -> bool:
    """A path with a /, or ROBOT.FACE=PATH: `run --pty my_cell` runs my_cell."""
    return bool({"/", "="} & set(word))


OPTIONAL_VALUES: dict[str, Callable[[str], bool]] = {
    "--json": _is_json_file,
    "--pty": _is_terminal_path,
}
"""Options that may stand without their value, each with the test of the word behind it."""


TAKE_ANY_NAME = ("validate", "campaign")
"""Commands that need an argument: behind it, any word that follows `--json` is its FILE."""


def with_values(
    words: list[str], known: Iterable[str] = OPTIONAL_VALUES, command: str = ""
) -> list[str]:
    """The words with an empty value for an option that stands without one. ``known``: the options
    that the command has."""
    any_name = command in TAKE_ANY_NAME and bool(words) and not words[0].startswith("-")
    end = words.index("--") if "--" in words else len(words)
    found = []
    for at, word in enumerate(words):
        value = words[at + 1] if at + 1 < end else ""
        if word in OPTIONAL_VALUES and word in known and at < end:
            is_option = value.startswith("-") and value != "-"
            is_value = OPTIONAL_VALUES[word](value) or (any_name and _is_bare(value))
            word += "=" if is_option or not is_value else ""
        found.append(word)
    return found


# ── output as JSON ──────────────────────────────────────────────────────────────────────────────


def is_printed(place: str | None) -> bool:
    """`--json` without a file: JSON is printed in place of the text."""
    return place in ("", "-")


def put_json(place: str | None, document: Any) -> bool:
    """Prints or writes a document, if `--json` is given; True if it is printed, and no text is."""
    if place is not None:
        put_bytes(place, [json.dumps(document).encode()])
    return is_printed(place)


def put_rows(place: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows as a table; as JSON they are objects with the columns as keys."""
    if put_json(place, [dict(zip(columns, row, strict=True)) for row in rows]):
        return
    from rich.console import Console

    table = folding_table(*columns)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def folding_table(*columns: str) -> "Table":
    """A table whose columns, but the first one, are folded where the terminal is narrow."""
    from rich.table import Table

    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    return table


def put_bytes(place: str | Path, parts: Iterable[bytes]) -> None:
    """Writes a file, or prints for `-` and an empty name, piece by piece; a line break ends it."""
    printed = is_printed(str(place))
    try:
        file = sys.stdout.buffer if printed else open(place, "wb")  # noqa: SIM115
        last = b"\n"
        for last in parts:
            file.write(last)
        if not last.endswith(b"\n"):
            file.write(b"\n")
        file.flush()
        if not printed:
            file.close()
    except BrokenPipeError:
        discard_output()
    except OSError as problem:
        if printed:
            raise
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(place)) from None


def put_whole(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; a pipe or a terminal as it is."""
    from understudy.config.outside_files import FilesFolder, anything

    place = path.resolve()
    if place.is_file() or (place.parent.is_dir() and not place.exists()):
        FilesFolder(place.parent).write(place.name, content, anything)
    else:
        put_bytes(path, [content])


def check_writable(place: str | Path | None) -> None:
    """Raises a ConfigError for a file that cannot be written: before long work, not after it."""
    if not place or is_printed(str(place)):
        return
    try:
        open(place, "ab").close()
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(place)) from None


def json_lines(place: str | None) -> TextIO | None:
    """Where JSON lines go that come one by one; None without `--json`."""
    if place is None or is_printed(place):
        return None if place is None else sys.stdout
    try:
        return open(place, "w", encoding="utf-8", buffering=1)
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=place) from None


@contextmanager
def json_beside_text(place: str | None) -> Iterator[TextIO | None]:
    """As `json_lines`; while JSON is printed, the text goes to the standard error."""
    lines = json_lines(place)
    with redirect_stdout(sys.stderr) if lines is sys.stdout else nullcontext():
        yield lines


def flush_output() -> None:
    """Writes what is still held back."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """The rest of the output goes nowhere: its reader has left (`| head`), and the command has done
    its work, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def origin(cell: str) -> "Origin":
    """The cell, command, date and version at the top of a report."""
    from understudy.html_page import Origin

    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return Origin(cell, command_line(), date, __version__)


# ── how much is printed ─────────────────────────────────────────────────────────────────────────

_given = {"quiet": False, "verbose": False}
"""The options of the command that runs."""
_words: list[str] = []


def is_quiet() -> bool:
    return _given["quiet"]


def is_verbose() -> bool:
    return _given["verbose"]


def log_level() -> int:
    """From which level on log lines are shown by a command that shows its log."""
    return logging.WARNING if is_quiet() else logging.DEBUG if is_verbose() else logging.INFO


def begin(words: Sequence[str]) -> None:
    """A new command line, of these words."""
    _given.update(quiet=False, verbose=False)
    _words[:] = words


def command_line() -> str:
    """The command that runs, as it can be pasted into a shell."""
    words = shlex.join(["understudy", *_words])
    return os.fsencode(words).decode("utf-8", "replace")  # names of files may be no UTF-8


def _keep(name: str, value: bool) -> None:
    if value:
        _given[name] = True
        if _given["quiet"] and _given["verbose"]:
            raise MistakeError("give -q or -v, not both")


COMMON = tuple(
    Parameter(
        name,
        bool,
        Option(f"-{name[0]}", f"--{name}", callback=partial(_keep, name), help=meaning),
        False,
    )
    for name, meaning in (
        ("quiet", "print results and problems only"),
        ("verbose", "print details, too"),
    )
)
"""Options of every command."""


def common_options(taken: Collection[str]) -> list[Parameter]:
    """The options of every command, but for names that this one has already."""
    return [option for option in COMMON if option.flags().keys().isdisjoint(taken)]
