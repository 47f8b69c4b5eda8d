"""`--pty [[ROBOT.FACE=]PATH]` of `understudy run`: faces on pseudo-terminals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from understudy.config import CellConfig, Wire
from understudy.config.terminals import on_terminal, possible_terminals
from understudy.errors import ConfigError, unknown
from understudy.wire.terminal_link import link_path

Terminals = Annotated[
    list[str] | None,
    typer.Option(
        "--pty",
        metavar="[[ROBOT.FACE=]PATH]",
        help="a serial port instead of TCP: a pseudo-terminal behind a link at PATH, such as "
        "./ttyGRBL (a path has a /); without PATH: for every robot with a serial port, at a path "
        "that the table of addresses shows",
    ),
]


def terminals(given: Sequence[str], config: CellConfig, *, ephemeral: bool) -> dict[str, Wire]:
    """The wires of the endpoints that become terminals; with ``ephemeral``, those without a path
    on the command line have no link."""
    possible = possible_terminals(config)
    serial = [name for name, endpoint in possible.items() if endpoint.serial]
    wires: dict[str, Wire] = {}
    for text in given:
        endpoint, equals, path = text.rpartition("=")
        if equals and endpoint not in possible:
            raise unknown("endpoint that can be a terminal", endpoint, possible)
        names = [endpoint] if equals else serial
        if not names or (path and len(names) != 1):
            raise ConfigError(
                "--pty: name the endpoint, the cell has "
                + ("several with a serial port" if names else "none with a serial port"),
                value=text,
                allowed=", ".join(f"{each}={path or 'PATH'}" for each in serial or possible)
                or "a cell with a robot that can have a serial port",
            )
        link = str(link_path(str(Path(path).expanduser().absolute()))) if path else ""
        for name in names:
            wire = on_terminal(possible[name], link)
            wires[name] = wire if path else wire.placed(None, ephemeral=ephemeral)
    return wires
