"""Options of jobs (`--vision process`) for the commands that run a cell."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.main import get_command

from understudy.registry import OPTIONS, OptionRow

Function = TypeVar("Function", bound=Callable[..., Any])
_given: dict[str, str | None] = {}


def takes_job_options(function: Function) -> Function:
    """Marks a command that runs a cell; it calls `job_options`."""
    function.takes_job_options = True  # type: ignore[attr-defined]
    return function


def add_job_options(command: Any) -> None:
    """Adds the options to a marked command, or to the marked ones of a group."""
    for each in getattr(command, "commands", {"": command}).values():
        if getattr(each.callback, "takes_job_options", False):
            each.params += [_option(name, row) for name, row in OPTIONS.items()]


def job_options() -> dict[str, str | None]:
    """The values that the command line has; None: not given."""
    return dict(_given)


def _option(name: str, row: OptionRow) -> Any:
    """An option as typer makes it of the signature of a function."""
    declared = typer.Option(f"--{name}", help=row.help, expose_value=False, callback=_keep)
    alone = typer.Typer()

    @alone.command()
    def command(value: Annotated[Literal[row.choices] | None, declared] = None) -> None:  # type: ignore[name-defined]
        """Has the option."""

    return next(each for each in get_command(alone).params if f"--{name}" in each.opts)


def _keep(option: typer.CallbackParam, value: str | None) -> None:
    _given[option.opts[0].removeprefix("--")] = value
