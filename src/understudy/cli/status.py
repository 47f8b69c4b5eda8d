"""`understudy status` and `understudy stop`: talk to a cell that runs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.app import ready_file as ready_files
from understudy.app.control_client import result_of
from understudy.app.ready_file import NoCellRunsError, Ready, printable
from understudy.cli.options import (
    JsonOption,
    ReadyFileOption,
    RunningCells,
    is_printed,
    json_lines,
    put_json,
)
from understudy.cli.parameters import Argument, Exit, Option
from understudy.errors import ConfigError

MOST_SHOWN = 10
"""Unexpected requests of a strict cell."""

Cells = Annotated[
    list[str] | None,
    Argument(metavar="[NAME...]", help="names or process ids, as with --running"),
]


def status(
    cells: Cells = None,
    running: RunningCells = None,
    ready_file: ReadyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Show the state of the running cells: robots, programs, addresses.

    `--json` gives the status of every part, one JSON line per cell.
    """
    chosen = chosen_cells([*(cells or ()), *(running or ())], ready_file)
    if lines := json_lines(json):
        for _, answer in _answers(chosen, "status"):
            print(dumps(answer), file=lines)
    if is_printed(json):
        return
    console = Console()
    queries = ("now", "metrics", "robots", "unexpected")
    for ready, (now, metrics, robots, unexpected) in _answers(chosen, *queries):
        rate = now["rate"]
        console.print(
            f"[bold]{escape(ready.cell)}[/bold]  pid {ready.pid}  {_text(metrics['state'])}  "
            f"{now['now_s']:.1f} s  {'paused' if now.get('paused') else f'rate {_text(rate)}'}"
        )
        console.print(_robot_table(robots["robots"]))
        if unexpected["strict"]:
            console.print(_strict_lines(unexpected), soft_wrap=True)
        console.print(_address_table(ready))


def _robot_table(robots: Iterable[dict[str, Any]]) -> Table:
    table = Table("robot", "kind", "mode", "state", "problem")
    for robot in robots:
        state = robot["state"] if robot["enabled"] else f"{robot['state']}, drives off"
        texts = (robot["name"], robot["kind"], robot["mode"], state, robot["error"])
        table.add_row(*map(_text, texts))
    return table


def _strict_lines(unexpected: dict[str, Any]) -> str:
    count = f"strict: {unexpected['count']} unexpected requests"
    return "\n  ".join([count, *map(_text, unexpected["requests"][-MOST_SHOWN:])])


def _text(value: object) -> str:
    """A value of an answer, without control characters and markup."""
    return escape(printable(str(value)))


def _address_table(ready: Ready) -> Table:
    table = Table("endpoint", "address")
    for endpoint, address in ready.endpoints.items():
        table.add_row(escape(endpoint), escape(address))
    for endpoint in ready.starting:
        table.add_row(escape(endpoint), "is starting")
    return table


def stop(
    cells: Cells = None,
    running: RunningCells = None,
    ready_file: ReadyFileOption = None,
    all_: Annotated[bool, Option("--all", help="stop several cells without asking")] = False,
    json: JsonOption = None,
) -> None:
    """Stop running cells: the one that runs, or those named; asks before it stops several."""
    names = [*(cells or ()), *(running or ())]
    chosen = chosen_cells(names, ready_file)
    if len(chosen) > max(1, len(names)) and not all_:
        _confirm(chosen)
    stopping = []
    for ready, _ in _answers(chosen, "quit"):
        stopping.append({"cell": ready.cell, "pid": ready.pid})
        if not is_printed(json):
            print(f"{ready.title} is stopping")
    put_json(json, stopping)


def _confirm(cells: list[Ready]) -> None:
    """Asks on a terminal; elsewhere raises a ConfigError that names the choices."""
    names = ", ".join(ready.title for ready in cells)
    if not sys.stdin.isatty():
        allowed = "the pid of a cell, a name that one of them has, --ready-file FILE or --all"
        raise ConfigError(f"{len(cells)} cells are running: {names}", allowed=allowed)
    from typer import confirm

    confirm(f"Stop {len(cells)} cells: {names}?", abort=True)


def chosen_cells(names: list[str], ready_file: Path | None) -> list[Ready]:
    """As in `ready_file`; no running cell is no error of the command line."""
    with _none_is_no_error():
        return ready_files.chosen_cells(names, ready_file)


def one_cell(name: str, ready_file: Path | None) -> Ready:
    with _none_is_no_error():
        return ready_files.one_cell(name, ready_file)


@contextmanager
def _none_is_no_error() -> Iterator[None]:
    try:
        yield
    except NoCellRunsError as problem:
        print(problem, file=sys.stderr)
        raise Exit(1) from None


def _answers(cells: list[Ready], *queries: str) -> Iterator[tuple[Ready, Any]]:
    """Each cell with its answer (a tuple if there are several queries); prints which is silent."""
    silent = 0
    for ready in cells:
        try:
            answers = tuple(result_of(ready, {"do": query}) for query in queries)
        except ConfigError as problem:
            print(problem, file=sys.stderr)
            silent += 1
        else:
            yield ready, answers if len(answers) > 1 else answers[0]
    if silent == len(cells):
        raise Exit(1)
