"""Options of `run` that open doors, `--NAME [[HOST:]PORT]`, and `--log` by its ending."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from understudy.app.live import Live
from understudy.cli.options import OPTIONAL_VALUES
from understudy.registry import DoorRow, door_rows, kinds, module_of

_given: dict[str, str] = {}


def is_address(word: str) -> bool:
    """A port or HOST:PORT: `run --rosbridge my_cell` runs my_cell."""
    return word.rpartition(":")[2].isdecimal()


def add_door_options(command: Any) -> None:
    for name, row in door_rows().items():
        OPTIONAL_VALUES[f"--{name}"] = is_address
        command.params.append(_option(name, row))


def log_kind(file: Path | None) -> str:
    """The row of the table `logs` that writes this file; empty: a transcript."""
    ending = "" if file is None else file.suffix.removeprefix(".").lower()
    return ending if ending in kinds("logs") else ""


def open_doors(
    live: Live, log_file: Path | None
) -> list[AbstractAsyncContextManager[dict[str, str]]]:
    """The doors that the command line asks for, not opened yet."""
    doors = [module_of("doors", name).open_door(live, value) for name, value in _given.items()]
    if kind := log_kind(log_file):
        doors.append(module_of("logs", kind).open_door(live, str(log_file)))
    return doors


def _option(name: str, row: DoorRow) -> Any:
    """An option as typer makes it of the signature of a function."""
    declared = typer.Option(
        f"--{name}", help=row.help, metavar=row.metavar, expose_value=False, callback=_keep
    )
    alone = typer.Typer()

    @alone.command()
    def command(value: Annotated[str | None, declared] = None) -> None:
        """Has the option."""

    option = next(each for each in get_command(alone).params if f"--{name}" in each.opts)
    option.name = f"door_{name}"  # options of one name would share a value
    return option


def _keep(option: typer.CallbackParam, value: str | None) -> None:
    if value is not None:
        _given[option.opts[0].removeprefix("--")] = value
