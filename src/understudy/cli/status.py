"""`understudy status` and `understudy stop`: talk to a cell that runs."""

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.pretty import Pretty

from understudy.app.ready_file import Ready, read_ready, running_cells
from understudy.errors import ConfigError

TIMEOUT_SECONDS = 5.0

ReadyOption = Annotated[
    Path | None,
    typer.Option("--ready-file", help="ready file of one cell; default: all running cells"),
]


def status(ready_file: ReadyOption = None) -> None:
    """Show the state of the running cells."""
    console = Console()
    for ready, answer in _answers(ready_file, {"do": "status"}):
        console.print(f"[bold]{escape(ready.cell)}[/bold]  pid {ready.pid}")
        console.print(Pretty(answer))


def stop(ready_file: ReadyOption = None) -> None:
    """Stop the running cells."""
    for ready, _ in _answers(ready_file, {"do": "quit"}):
        print(f"{ready.cell} (pid {ready.pid}) is stopping")


def ask(ready: Ready, request: dict[str, Any]) -> Any:
    """One request to a cell's control endpoint."""
    control = ready.endpoints.get("control")
    if control is None:
        raise ConfigError(f"{ready.cell} (pid {ready.pid}) has no control endpoint")
    host, _, port = control.removeprefix("tcp://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(connection.makefile("rb").readline() or b"{}")
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{ready.cell} (pid {ready.pid}) does not answer: {problem}") from None
    if not isinstance(answer, dict) or not answer.get("ok"):
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise ConfigError(f"{ready.cell} (pid {ready.pid}): {reason or 'no answer'}")
    return answer.get("result")


def _answers(ready_file: Path | None, request: dict[str, Any]) -> Iterator[tuple[Ready, Any]]:
    """Answers of one cell or of all running cells; prints which cell does not answer."""
    if ready_file:
        ready = read_ready(ready_file)
        yield ready, ask(ready, request)
        return
    cells, silent = running_cells(), 0
    for ready in cells:
        try:
            answer = ask(ready, request)
        except ConfigError as problem:
            print(problem, file=sys.stderr)
            silent += 1
        else:
            yield ready, answer
    if not cells:
        print("no cell is running", file=sys.stderr)
    if silent == len(cells):
        raise typer.Exit(1)
