"""`understudy status` and `understudy stop`: talk to a cell that runs."""

import json
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.pretty import Pretty

from understudy.errors import ConfigError
from understudy.ready import Ready, read_ready, running_cells

PATIENCE_SECONDS = 5.0

ReadyOption = Annotated[
    Path | None, typer.Option("--ready-file", help="of the cell; default: every cell that runs")
]


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: understudy status")(status)
    app.command(epilog="Example: understudy stop --ready-file ready.json")(stop)


def status(ready_file: ReadyOption = None) -> None:
    """What the running cells are at."""
    console = Console()
    for ready in _cells(ready_file):
        console.print(f"[bold]{ready.cell}[/bold]  pid {ready.pid}")
        console.print(Pretty(ask(ready, {"do": "status"})))


def stop(ready_file: ReadyOption = None) -> None:
    """End the running cells."""
    for ready in _cells(ready_file):
        ask(ready, {"do": "quit"})
        print(f"{ready.cell} (pid {ready.pid}) ends")


def ask(ready: Ready, request: dict[str, Any]) -> Any:
    """One request to a cell's control endpoint."""
    control = ready.endpoints.get("control")
    if control is None:
        raise ConfigError(f"{ready.cell} (pid {ready.pid}) names no control endpoint")
    host, _, port = control.removeprefix("tcp://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_SECONDS) as line:
            line.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(line.makefile("rb").readline() or b"{}")
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{ready.cell} (pid {ready.pid}) does not answer: {problem}") from None
    if not answer.get("ok"):
        raise ConfigError(f"{ready.cell}: {answer.get('error', 'no answer')}")
    return answer["result"]


def _cells(ready_file: Path | None) -> list[Ready]:
    cells = [read_ready(ready_file)] if ready_file else running_cells()
    if not cells:
        print("no cell runs", file=sys.stderr)
        raise typer.Exit(1)
    return cells
