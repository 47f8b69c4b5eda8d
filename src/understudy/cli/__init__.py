"""The command line: thin, one module per kind of command, the same exit codes everywhere.

0 all right · 1 the robot program or check failed · 2 usage or configuration error
"""

import sys
from typing import Annotated

import typer

from understudy import __version__
from understudy.cli import (
    cells,
    chats,
    kernels,
    look,
    programs,
    reach,
    run,
    running,
    send,
    validate,
)
from understudy.errors import ConfigError

app = typer.Typer(
    name="understudy",
    help="Stand-in robots: a robot cell that is not there, but answers on the wire as the real "
    "one does.\n\nExample: understudy run text_robot --rate 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def understudy(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say it, and end")
    ] = False,
) -> None:
    pass


for module in (run, validate, reach, programs, cells, look, chats, running, send, kernels):
    module.add_to(app)


def main() -> int:
    try:
        app()
    except ConfigError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0
