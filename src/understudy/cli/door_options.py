"""Options of `run` that open doors, `--NAME [[HOST:]PORT]`, and `--log` by its ending."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from understudy.app.live import Live
from understudy.cli.options import OPTIONAL_VALUES
from understudy.cli.parameters import Option, Parameter
from understudy.registry import DoorRow, door_rows, kinds, module_of

_given: dict[str, str] = {}


def is_address(word: str) -> bool:
    """A port or HOST:PORT: `run --rosbridge my_cell` runs my_cell."""
    return word.rpartition(":")[2].isdecimal()


def door_options() -> list[Parameter]:
    OPTIONAL_VALUES.update({f"--{name}": is_address for name in door_rows()})
    return [_option(name, row) for name, row in door_rows().items()]


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


def _option(name: str, row: DoorRow) -> Parameter:
    keep = partial(_keep, name)
    declared = Option(f"--{name}", help=row.help, metavar=row.metavar, callback=keep)
    # A door may have the name of another option: options of one name would share a value.
    return Parameter(f"door_{name}", str | None, declared, None)


def _keep(name: str, value: str | None) -> None:
    if value is not None:
        _given[name] = value
