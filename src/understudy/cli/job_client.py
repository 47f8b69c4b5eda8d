"""What the commands of jobs share: requests to a running cell, files and tables of results."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.app.control_client import LONGEST_REASON, request, result_of
from understudy.app.ready_file import Ready, printable
from understudy.cli.parameters import Exit
from understudy.errors import ConfigError


def ask_job(ready: Ready, command: str, robot: str, **parameters: Any) -> dict[str, Any]:
    """The status of the job after a command; a refusal ends the program with exit code 1."""
    asked = {"do": command, **({"robot": robot} if robot else {}), **parameters}
    reply = request(ready, asked)
    if not reply.get("ok"):
        reason = str(reply.get("error"))
        if reason.startswith("unknown command"):
            reason = "no robot of this cell has such a job; --running NAME chooses another cell"
        fail(f"{ready.title}: {reason}")
    found: dict[str, Any] = reply["result"]
    return found


def refuse_real(ready: Ready, robot: str, *, allowed: bool) -> None:
    """Ends the program if a job would move a REAL robot by itself and --real was not given."""
    robots = {each["name"]: each for each in ask_job(ready, "robots", "")["robots"]}
    if robots[robot]["mode"] == "REAL" and not allowed:
        fail(f"{ready.title}: {robot} is REAL and would move by itself: add --real")


def warn_if_time_stands(ready: Ready) -> None:
    """A job in a cell without time does not go on."""
    now = result_of(ready, {"do": "now"})
    if now.get("paused") or now["rate"] in (0, "step"):
        said = f"{ready.title}: time stands still; `understudy ctl resume` lets it run"
        print(said, file=sys.stderr)


def fail(text: str) -> NoReturn:
    print(printable(text, LONGEST_REASON), file=sys.stderr)
    raise Exit(1)


# ── files and tables ────────────────────────────────────────────────────────────────────────────


def check_places(out: Path | None, html: Path | None = None) -> None:
    """Raises ConfigError if the files cannot be written there: before the robot moves, not after.
    ``out`` and ``html`` must be two files: the second would overwrite the first."""
    given = [file for file in (out, html) if file is not None]
    for file in given:
        if file.is_dir():
            raise ConfigError("is a folder", file=str(file), allowed="the name of a file")
        if not file.resolve().parent.is_dir():
            raise ConfigError("there is no such folder", file=str(file.parent))
    if len({file.resolve() for file in given}) < len(given):
        raise ConfigError(
            "--out and --html name the same file", file=str(html), allowed="two different files"
        )


def show_rows(rows: Mapping[str, str | list[str]]) -> None:
    """Prints a table of names and texts; a list is a text of several lines."""
    table = Table(show_header=False)
    for name, text in rows.items():
        lines = [text] if isinstance(text, str) else text
        table.add_row(name, escape("\n".join(map(printable, lines))))
    Console().print(table)
