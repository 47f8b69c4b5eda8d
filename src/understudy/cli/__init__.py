"""The command line: one table of commands; a command's module is imported when the command runs.

Exit codes: 0 success, 1 the robot program or check failed, 2 usage or configuration error.
"""

import errno
import os
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.cli.job_options import added_options
from understudy.cli.options import (
    begin,
    common_options,
    discard_output,
    flush_output,
    with_values,
)
from understudy.cli.parameters import CliCommand, Exit, Group, Option, Parameter, own_parameters
from understudy.errors import ConfigError
from understudy.registry import TABLES

if TYPE_CHECKING:
    from understudy.cli.typer_commands import app as app
    from understudy.cli.typer_commands import check_words as check_words
    from understudy.cli.typer_commands import load as load

COMPLETION = "_UNDERSTUDY_COMPLETE"
"""Variable by which a shell asks what could stand at the cursor."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk or a file that takes no more."""


def __getattr__(name: str) -> Any:
    """`app`, `load`, `check_words`: the commands as typer has them, which takes time to load."""
    if name not in ("app", "load", "check_words"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("understudy.cli.typer_commands"), name)


def added_to(
    name: str, function: Callable[..., Any], own: Collection[str], taken: Collection[str]
) -> list[Parameter]:
    """The parameters that a command has beside those of its signature. ``own``: the names of those;
    ``taken``: of their options."""
    added = [PACKAGE_PATH] if "cell" in own else []
    added += added_options(function)
    if name == "run":
        from understudy.cli.door_options import door_options

        added += door_options()
    return [*added, *common_options(taken)]


def _add_package_paths(folders: list[Path] | None) -> None:
    if folders:
        from understudy.config.model_files import add_package_paths

        add_package_paths(folders)


PACKAGE_PATH = Parameter(
    "package_path",
    list[Path] | None,
    Option(
        "--package-path",
        metavar="FOLDER",
        callback=_add_package_paths,
        help="folder with ROS packages, for package:// names in robot descriptions",
    ),
    None,
)
"""An option of every command that reads a cell file."""


def main(loaded: Callable[[str], None] | None = None) -> int:
    """Runs the command line and returns the exit code.

    Calls ``loaded`` with the name of the command when its modules are loaded, before it runs.
    """
    if sys.stdout is None:  # closed by the caller: `>&-`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        return _main(sys.argv[1:], loaded)
    except OSError as problem:
        if problem.errno not in NO_ROOM:
            raise
        discard_output()
        print(f"error: the output cannot be written: {problem.strerror}", file=sys.stderr)
        return 2


def _main(words: list[str], loaded: Callable[[str], None] | None) -> int:
    try:
        if plain := _read(words):
            command, values = plain
            if loaded is not None:
                loaded(words[0])
            return _call(command, values)
        from understudy.cli.typer_commands import app

        app(obj=loaded)
    except ConfigError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    finally:
        flush_output()
    return 0


def commands_of(name: str) -> dict[str, CliCommand]:
    """A shipped command, or those of a group by their names."""
    found = getattr(import_module(TABLES["cli"][name]), name.replace("-", "_"))
    functions = found.functions if isinstance(found, Group) else {"": found}
    return {each: _complete(name, function) for each, function in functions.items()}


def _complete(name: str, function: Callable[..., None]) -> CliCommand:
    own = own_parameters(function)
    taken = {option for each in own if each.is_option for option in each.flags()}
    return CliCommand(
        function, [*own, *added_to(name, function, [each.name for each in own], taken)]
    )


def _read(words: list[str]) -> tuple[CliCommand, dict[str, Any]] | None:
    """The command and its values, if the words are plain and right; else typer reads them."""
    if not words or words[0] not in TABLES["cli"] or COMPLETION in os.environ:
        return None
    begin(words)
    name, *given = words
    commands = commands_of(name)
    command = commands.get("") or commands.get(given.pop(0) if given else "")
    if command is None:
        return None
    values = command.read(with_values(given, command.optional_names(), name))
    return (command, values) if values is not None and command.keep(values) else None


def _call(command: CliCommand, values: dict[str, Any]) -> int:
    """Runs a command and returns its exit code."""
    try:
        command.call(values)
    except Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except (EOFError, BrokenPipeError, RuntimeError) as problem:  # `typer.Abort` is the last
        from understudy.cli.typer_commands import end_with

        end_with(problem)
    return 0
