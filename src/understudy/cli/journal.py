"""`understudy journal`: the last requests and answers on the wires of a running cell."""

from typing import Annotated

from understudy.app.control_client import newest_messages, result_of
from understudy.app.ready_file import printable
from understudy.cli.options import JsonOption, ReadyFileOption, RunningOption, put_json
from understudy.cli.parameters import Argument, Option
from understudy.cli.status import one_cell

LONGEST_LINE = 1000


def journal(
    endpoint: Annotated[
        str,
        Argument(metavar="[ENDPOINT]", help="a face, as g60.grblhal; default: all"),
    ] = "",
    name: Annotated[str, Option(help="only messages of this name, e.g. MOVE_ABS")] = "",
    unexpected: Annotated[
        bool,
        Option("--unexpected", help="only requests that are unknown or refused"),
    ] = False,
    last: Annotated[int, Option(min=1, help="number of messages")] = 40,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Show the last requests and answers on the wires of a running cell, decoded."""
    ready = one_cell(running, ready_file)
    asked = {"endpoint": endpoint, "name": name, "unexpected": unexpected, "fields": True}
    rows = newest_messages(
        lambda since: result_of(ready, {"do": "journal", "since": since, **asked}), last
    )
    if put_json(json, {"cell": ready.cell, "journal": rows}):
        return
    for row in rows:
        note = row["unexpected"] or ("refused" if row["refused"] else "")
        line = f"{row['endpoint']} {row['peer']} {row['kind']} {row['text']}"
        shown = printable(line, LONGEST_LINE) + (f"   # {printable(note)}" if note else "")
        print(f"{row['time_s']:12.6f}  {shown}")
