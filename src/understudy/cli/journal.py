"""`understudy journal`: the last requests and answers on the wires of a running cell."""

from collections import deque
from typing import Annotated, Any

import typer

from understudy.app.control_client import result_of
from understudy.app.ready_file import Ready, printable
from understudy.cli.options import JsonOption, ReadyFileOption, RunningOption, put_json
from understudy.cli.status import one_cell

LONGEST_LINE = 1000


def journal(
    endpoint: Annotated[
        str,
        typer.Argument(metavar="[ENDPOINT]", help="a face, as g60.grblhal; default: all"),
    ] = "",
    name: Annotated[str, typer.Option(help="only messages of this name, e.g. MOVE_ABS")] = "",
    unexpected: Annotated[
        bool,
        typer.Option("--unexpected", help="only requests that are unknown or refused"),
    ] = False,
    last: Annotated[int, typer.Option(min=1, help="number of messages")] = 40,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Show the last requests and answers on the wires of a running cell, decoded."""
    ready = one_cell(running, ready_file)
    asked = {"endpoint": endpoint, "name": name, "unexpected": unexpected, "fields": True}
    rows = _last_rows(ready, asked, last)
    if put_json(json, {"cell": ready.cell, "journal": rows}):
        return
    for row in rows:
        note = row["unexpected"] or ("refused" if row["refused"] else "")
        line = f"{row['endpoint']} {row['peer']} {row['kind']} {row['text']}"
        shown = printable(line, LONGEST_LINE) + (f"   # {printable(note)}" if note else "")
        print(f"{row['time_s']:12.6f}  {shown}")


def _last_rows(ready: Ready, asked: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The newest of all rows that the cell has, read in several requests."""
    rows: deque[dict[str, Any]] = deque(maxlen=count)
    since, more = 0, 1
    while more:
        answer = result_of(ready, {"do": "journal", "since": since, **asked})
        rows.extend(answer["journal"])
        since, more = answer["last"], answer["more"]
    return list(rows)
