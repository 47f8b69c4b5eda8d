"""The commands as typer has them: help, shell completion, and the messages of typing mistakes.

They are made of the declarations in `parameters`. A command line without a mistake does not come
here: `main` reads it itself.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from understudy import __version__
from understudy.cli import added_to
from understudy.cli.options import COMMON, begin, with_values
from understudy.cli.parameters import Argument, Exit, Group, MistakeError, Option, Parameter
from understudy.errors import ConfigError, nearest_of
from understudy.registry import cli_rows

TYPO = 0.6
"""Similarity from which a word is a misspelt name."""


class LazyCommands(TyperGroup):
    """Lists the table's rows; imports the module of the command that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(cli_rows())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A row for the help page; the command itself comes by `resolve_command`."""
        row = cli_rows().get(cmd_name)
        return None if row is None else TyperCommand(cmd_name, help=row.summary)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        begin(args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, rest = args[0], args[1:]
        if name not in cli_rows():
            if ctx.resilient_parsing:  # a shell asks what could stand here
                return None, None, rest
            raise no_such_command(name, cli_rows())
        command = load(name)
        rest = with_values(rest, optional_values(command, rest), name)
        if ctx.resilient_parsing:
            return name, command, rest
        check_words(f"understudy {name}", command, rest)
        if ctx.obj is not None:
            ctx.obj(name)
        return name, command, rest


def no_such_command(name: str, known: Collection[str], group: str = "") -> ConfigError:
    command = f"understudy {group}".strip()
    is_cell = name.endswith((".yaml", ".yml"))
    nearest = f"{command} run {name}" if is_cell else nearest_of(name, known, TYPO)
    allowed = f"`{command} --help` lists them"
    return ConfigError("there is no such command", value=name, allowed=allowed, nearest=nearest)


def optional_values(command: Any, words: Sequence[str]) -> set[str]:
    """The options of the command, or of the command of a group, that may stand without a value."""
    command = getattr(command, "commands", {}).get(words[0] if words else "", command)
    return {
        name
        for option in command.params
        if option.param_type_name == "option" and not option.is_flag
        for name in option.opts
    }


def check_words(called: str, command: Any, words: Sequence[str]) -> None:
    """Raises an error for an unknown command of a group, for an unknown option with the nearest
    one, and where an option that needs a value is followed by another option: `--out --cell g60`
    would write a file called `--cell`."""
    commands = getattr(command, "commands", None)
    if commands is not None:
        if words and not words[0].startswith("-"):
            if words[0] not in commands:
                raise no_such_command(words[0], commands, called.removeprefix("understudy "))
            check_words(f"{called} {words[0]}", commands[words[0]], words[1:])
        return
    options = [each for each in command.params if each.param_type_name == "option"]
    valued = {n for each in options if not each.is_flag and not each.count for n in each.opts}
    known = {n: each for each in options for n in (*each.opts, *each.secondary_opts)}
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    room = float("inf") if any(each.nargs < 0 for each in arguments) else len(arguments)
    is_value = False
    for at, word in enumerate(words):
        if word == "--":
            return
        name, equals, _ = word.partition("=")
        if is_value:
            if word.startswith("--"):
                reason = f"a value is needed, got the option {word}"
                raise typer.BadParameter(reason, param_hint=words[at - 1])
        elif word.startswith("--") and name not in (*known, "--help"):
            shown = [each for each, option in known.items() if not option.hidden]
            raise _no_such_option(called, command, name, shown)
        elif not word.startswith("-"):
            room -= 1
            if room < 0:
                raise _too_many(called, word, known)
        is_value = not is_value and name in valued and not equals


def _no_such_option(called: str, command: Any, name: str, known: Collection[str]) -> ConfigError:
    """The error of an unknown option. `--cell` and `--running` are two things, so each is said
    where the other is given."""
    allowed, nearest = f"`{called} --help` lists them", nearest_of(name, known, TYPO)
    if name == "--cell" and "--running" in known:
        allowed, nearest = "--running NAME, for a cell that runs", ""
    elif name == "--running" and "--cell" in known:
        allowed, nearest = "--cell CELL, a cell file or the name of a shipped cell", ""
    elif name == "--cell" and any(each.name == "cell" for each in command.params):
        allowed, nearest = f"the cell without an option: {called} CELL", ""
    return ConfigError(f"{called} has no such option", value=name, allowed=allowed, nearest=nearest)


def _too_many(called: str, word: str, known: Collection[str]) -> ConfigError:
    """The error of an argument that the command does not take: a cell is often given like that."""
    option = "--cell" if "--cell" in known else "--running" if "--running" in known else ""
    return ConfigError(
        f"{called} takes no such argument",
        value=word,
        allowed=f"`{called} --help` lists what it takes",
        nearest=f"{option} {word}" if option else "",
    )


def load(name: str) -> Any:
    """The command of this name, with its parameters and its help."""
    row = cli_rows()[name]
    found = getattr(import_module(row.module), name.replace("-", "_"))
    epilog = f"Example: understudy {row.example}"
    if isinstance(found, typer.Typer):  # of a package from outside
        command = get_command(found)
        command.name, command.epilog = name, epilog
    elif isinstance(found, Group):
        group = _typer(help=found.help, no_args_is_help=True)
        for each, function in found.functions.items():
            group.command(each, epilog=found.epilogs[each] or None)(_with_typer(function))
        command = get_command(group)
        command.name, command.epilog = name, epilog
    else:
        alone = _typer()
        alone.command(name, epilog=epilog)(_with_typer(found))
        command = get_command(alone)
    for each in getattr(command, "commands", {"": command}).values():
        taken = {option for param in each.params for option in param.opts}
        own = [param.name for param in each.params]
        each.params += _params(added_to(name, each.callback, own, taken))
    return command


def _typer(**about: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown", **about
    )


def _with_typer(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the declarations of typer in its signature."""

    @functools.wraps(function)
    def run(**values: Any) -> None:
        try:
            function(**values)
        except Exit as end:
            raise typer.Exit(end.exit_code) from None

    types = get_type_hints(function, include_extras=True)
    own = inspect.signature(function)
    parameters = [
        each.replace(annotation=_annotation(types[each.name])) for each in own.parameters.values()
    ]
    _sign(run, own.replace(parameters=parameters))
    return run


def _sign(function: Callable[..., None], signature: inspect.Signature) -> None:
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {
        name: each.annotation for name, each in signature.parameters.items()
    }


def _annotation(annotated: Any) -> Any:
    """An annotation with the declaration of typer in place of ours; any other one as it is."""
    kind, *about = get_args(annotated) or (annotated,)
    declared = next((each for each in about if isinstance(each, Argument)), None)
    return annotated if declared is None else Annotated[kind, _declaration(declared)]


def _declaration(declared: Argument) -> Any:
    about: dict[str, Any] = {
        "help": declared.help or None,
        "metavar": declared.metavar,
        "min": declared.min,
        "max": declared.max,
        "autocompletion": declared.autocompletion,
        "hidden": declared.hidden,
    }
    if declared.callback is not None:
        about |= {"callback": _callback(declared.callback), "expose_value": False}
    is_option = isinstance(declared, Option)
    return typer.Option(*declared.names, **about) if is_option else typer.Argument(**about)


def _callback(keep: Callable[[Any], None]) -> Callable[[Any], None]:
    def callback(value: Any) -> None:
        try:
            keep(value)
        except MistakeError as mistake:
            raise typer.BadParameter(str(mistake)) from None

    return callback


def _params(parameters: Iterable[Parameter]) -> list[Any]:
    """Parameters as typer makes them of the signature of a function."""

    def command(**values: Any) -> None:
        """Has the parameters."""

    signed = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=Annotated[each.type, _declaration(each.declared)],
        )
        for each in parameters
    ]
    _sign(command, inspect.Signature(signed))
    alone = typer.Typer(add_completion=False)
    alone.command()(command)
    return [each for each in get_command(alone).params if each.name != "help"]


_quiet, _verbose = (_declaration(each.declared) for each in COMMON)

app = typer.Typer(
    name="understudy",
    cls=LazyCommands,
    help="Simulated robot cells: they answer on the wire as real robots do, and check programs "
    "before a real robot runs them.\n\nExample: understudy run text_robot --rate 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    quiet: Annotated[bool, _quiet] = False,
    verbose: Annotated[bool, _verbose] = False,
) -> None:
    pass


def end_with(problem: Exception) -> None:
    """Ends the process as typer ends a command that raises this."""

    def command() -> None:
        raise problem

    alone = _typer()
    alone.command()(command)
    alone([])
