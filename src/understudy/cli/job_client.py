"""Requests of `understudy pick-place` and `understudy calibrate` to the jobs of a running cell."""

import sys
from typing import Any, NoReturn

import typer

from understudy.app.control_client import LONGEST_REASON, request, result_of
from understudy.app.ready_file import Ready, printable


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


def warn_if_time_stands(ready: Ready) -> None:
    """A job in a cell without time does not go on."""
    now = result_of(ready, {"do": "now"})
    if now.get("paused") or now["rate"] in (0, "step"):
        said = f"{ready.title}: time stands still; `understudy ctl resume` lets it run"
        print(said, file=sys.stderr)


def fail(text: str) -> NoReturn:
    print(printable(text, LONGEST_REASON), file=sys.stderr)
    raise typer.Exit(1)
