"""Options of jobs (`--vision process`) for the commands that run a cell."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

from understudy.cli.parameters import Option, Parameter
from understudy.registry import OPTIONS, OptionRow

Function = TypeVar("Function", bound=Callable[..., Any])
_given: dict[str, str | None] = {}


def takes_job_options(function: Function) -> Function:
    """Marks a command that runs a cell; it calls `job_options`."""
    function.takes_job_options = True  # type: ignore[attr-defined]
    return function


def added_options(function: Callable[..., Any]) -> list[Parameter]:
    """The options that a marked command has."""
    marked = getattr(function, "takes_job_options", False)
    return [_option(name, row) for name, row in OPTIONS.items()] if marked else []


def job_options() -> dict[str, str | None]:
    """The values that the command line has; None: not given."""
    return dict(_given)


def _option(name: str, row: OptionRow) -> Parameter:
    declared = Option(f"--{name}", help=row.help, callback=partial(_given.__setitem__, name))
    return Parameter(name, Literal[row.choices] | None, declared, None)
