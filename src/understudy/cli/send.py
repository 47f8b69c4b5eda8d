"""`understudy send`: stream a program to a robot, virtual or real."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from understudy.app.ready_file import running_cells
from understudy.cli.cycle_time import known_dialect
from understudy.cli.senders import Job, send_grblhal, send_kuka, send_text
from understudy.cli.telemetry import FORMS, Telemetry
from understudy.config.files import read_program
from understudy.errors import ConfigError, Refused, unknown
from understudy.wire.dial import Destination, Place
from understudy.wire.place import parse_place

Sender = Callable[[Job], Coroutine[Any, Any, Refused | None]]
SENDERS: dict[str, tuple[str, Sender]] = {
    "grblhal": ("grblhal", send_grblhal),
    "kuka": ("kuka_eki.command", send_kuka),
    "text": ("text_tcp", send_text),
}
"""Name of the dialect → what its endpoints are called, and how to send."""


def send(
    robot: Annotated[str, typer.Argument(help="of a cell that runs; or grblhal, kuka, text")],
    file: Annotated[Path, typer.Argument(help="the program")],
    to: Annotated[
        str | None, typer.Option(help="HOST:PORT or /dev/NAME[@BAUD], also of a REAL robot")
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="of a program for grblhal; arm: in an arm's own words")
    ] = "grblhal",
    cell: Annotated[
        str | None, typer.Option(help="whose arm it is, for dialect arm; default: default")
    ] = None,
    telemetry: Annotated[
        str | None, typer.Option(help=f"of a kuka, to see that it moves: {FORMS}")
    ] = None,
) -> None:
    """Stream a program to a robot, and see it through."""
    dialect = known_dialect(dialect)
    sender, place, beside = _find(robot, to)
    seen = Telemetry.of(telemetry) if telemetry is not None else beside
    arm = cell or ("default" if dialect == "arm" else "")
    text = read_program(file).decode("utf-8", "replace")
    outcome = asyncio.run(sender(Job(text, place, dialect, arm, seen)))
    if outcome is not None:
        print(f"{file}: {outcome.reason}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{file}: done")


class Found(NamedTuple):
    """Who sends where; `telemetry`: what a cell that runs has beside it."""

    sender: Sender
    place: Place
    telemetry: Telemetry | None = None


def _find(robot: str, to: str | None) -> Found:
    """By dialect where an address is given, else by the endpoints of the cells that run."""
    if to is not None:
        if robot not in SENDERS:
            raise unknown("robot to send to", robot, SENDERS)
        return Found(SENDERS[robot][1], parse_place(to))
    there = {name: address for cell in running_cells() for name, address in cell.endpoints.items()}
    for ending, sender in SENDERS.values():
        if f"{robot}.{ending}" in there:
            return _at(f"{robot}.{ending}", sender, there)
    if robot in SENDERS:
        return _only(robot, there)
    endings = tuple(ending for ending, _ in SENDERS.values())
    able = [name.split(".")[0] for name in there if name.endswith(endings)]
    raise unknown("robot (no running cell has it; --to ADDR names another)", robot, able)


def _only(dialect: str, there: dict[str, str]) -> Found:
    """The one robot of this dialect in the cells that run."""
    ending, sender = SENDERS[dialect]
    able = [name for name in there if name.endswith(f".{ending}")]
    if len(able) != 1:
        problem = "no running cell has such a robot" if not able else "which of them is meant?"
        allowed = ", ".join(name.split(".")[0] for name in able) or "--to ADDR"
        raise ConfigError(problem, value=dialect, allowed=allowed)
    return _at(able[0], sender, there)


def _at(endpoint: str, sender: Sender, there: dict[str, str]) -> Found:
    beside = there.get(endpoint.removesuffix("command") + "telemetry")
    place = parse_place(beside) if beside else None
    telemetry = Telemetry(place) if isinstance(place, Destination) else None
    return Found(sender, parse_place(there[endpoint]), telemetry)
