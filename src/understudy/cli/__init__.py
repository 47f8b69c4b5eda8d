"""The command line: one table of commands; a command's module is imported when the command runs.

Exit codes: 0 success, 1 the robot program or check failed, 2 usage or configuration error.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from understudy import __version__
from understudy.cli.job_options import add_job_options
from understudy.errors import ConfigError
from understudy.registry import cli_rows


class LazyCommands(TyperGroup):
    """Lists the table's rows; imports the module of the command that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(cli_rows())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A row for the help page; the command itself comes by `resolve_command`."""
        row = cli_rows().get(cmd_name)
        return None if row is None else TyperCommand(cmd_name, help=row.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        command = load(str(name))
        rest = with_values(rest, cli_rows()[str(name)].valueless)
        refuse_swallowed_options(command, rest)
        if ctx.obj is not None:
            ctx.obj(name)
        return name, command, rest


def with_values(words: list[str], valueless: str) -> list[str]:
    """The words with an empty value for an option that stands without one.

    Its value is a path with a / or contains =; another word is an argument of the command:
    `run --pty my_cell` runs my_cell.
    """
    options = words[: words.index("--")] if "--" in words else words
    for at, word in enumerate(options):
        value = options[at + 1] if at + 1 < len(options) else ""
        if (
            valueless
            and word == valueless
            and (value.startswith("-") or not {"/", "="} & set(value))
        ):
            words = [*words[:at], f"{word}=", *words[at + 1 :]]
    return words


def refuse_swallowed_options(command: Any, words: list[str]) -> None:
    """Raises a usage error where an option that needs a value is followed by another option:
    `--json --cell g60` would write a file called `--cell`."""
    valued = {
        name
        for option in command.params
        if option.param_type_name == "option" and not option.is_flag and not option.count
        for name in option.opts
    }
    for word, value in pairwise(words):
        if word == "--":
            return
        if word in valued and value.startswith("--"):
            raise typer.BadParameter(f"a value is needed, got the option {value}", param_hint=word)


def load(name: str) -> Any:
    """The command of this name, with its parameters and its help."""
    row = cli_rows()[name]
    function = getattr(import_module(row.module), name.replace("-", "_"))
    if isinstance(function, typer.Typer):  # it has commands of its own
        group = get_command(function)
        group.name, group.epilog = name, f"Example: understudy {row.example}"
        add_job_options(group)
        return group
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    alone.command(name, epilog=f"Example: understudy {row.example}")(function)
    command = get_command(alone)
    if "cell" in function.__annotations__:
        command.params.append(_package_path())
    add_job_options(command)
    return command


def _add_package_paths(folders: list[Path] | None) -> None:
    if folders:
        from understudy.config.model_files import add_package_paths

        add_package_paths(folders)


PackagePath = Annotated[
    list[Path] | None,
    typer.Option(
        "--package-path",
        metavar="FOLDER",
        callback=_add_package_paths,
        expose_value=False,
        help="folder with ROS packages, for package:// names in robot descriptions",
    ),
]


def _package_path() -> Any:
    """`--package-path`, an option of every command that reads a cell file."""
    alone = typer.Typer()

    @alone.command()
    def command(package_path: PackagePath = None) -> None:
        """Has the option."""

    return next(each for each in get_command(alone).params if each.name == "package_path")


app = typer.Typer(
    name="understudy",
    cls=LazyCommands,
    help="Simulated robot cells: they answer on the wire as real robots do, and check programs "
    "before a real robot runs them.\n\nExample: understudy run text_robot --rate 10",
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
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    pass


def main(loaded: Callable[[str], None] | None = None) -> int:
    """Runs the command line and returns the exit code.

    Calls ``loaded`` with the name of the command when its modules are loaded, before it runs.
    """
    try:
        app(obj=loaded)
    except ConfigError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0
