"""Parameters of commands, declared in signatures, and a reader of command lines without a mistake.

    def send(file: Annotated[Path, Argument(help="the program")],
             last: Annotated[int, Option(help="number of lines", min=1)] = 40) -> None: ...

`Command.read` gives the values of a plain, correct command line. Anything else, such as `--help`, a
mistake or a word that might be one, is left to typer, which reads the same declarations
(`typer_commands`): loading it and preparing its checks takes as long as building a cell.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

WHOLE = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class Exit(Exception):  # noqa: N818 - it is no error
    """Ends the command with this exit code."""

    def __init__(self, code: int = 0) -> None:
        self.exit_code = code


class MistakeError(Exception):
    """A `callback` found a mistake in its value."""


class Argument:
    """What a parameter of a command is, beside its type and its default. ``autocompletion`` gives
    what could stand here."""

    names: tuple[str, ...] = ()
    callback: Callable[[Any], None] | None = None
    hidden = False

    def __init__(
        self,
        *,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        autocompletion: Callable[..., list[str]] | None = None,
    ) -> None:
        self.help = help
        self.metavar = metavar
        self.min = min
        self.max = max
        self.autocompletion = autocompletion


class Option(Argument):
    """A parameter with a name, `--NAME` if none is given; `--yes/--no` are the two of a flag.

    ``callback`` is given the value, and the function of the command is not."""

    def __init__(
        self,
        *names: str,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        autocompletion: Callable[..., list[str]] | None = None,
        callback: Callable[[Any], None] | None = None,
        hidden: bool = False,
    ) -> None:
        super().__init__(
            help=help, metavar=metavar, min=min, max=max, autocompletion=autocompletion
        )
        self.names = names
        self.callback = callback
        self.hidden = hidden


class Parameter(NamedTuple):
    """A parameter of a command; ``type`` is what its annotation says without its declaration."""

    name: str
    type: Any
    declared: Argument
    default: Any = inspect.Parameter.empty

    @property
    def one(self) -> Any:
        """The type of one value: without `None` and `list`."""
        kind = self.type
        if get_origin(kind) in (Union, UnionType):
            kind = next(each for each in get_args(kind) if each is not NoneType)
        return get_args(kind)[0] if self.is_list else kind

    @property
    def is_list(self) -> bool:
        kinds = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        return any(get_origin(each) is list for each in kinds)

    @property
    def is_option(self) -> bool:
        return isinstance(self.declared, Option)

    @property
    def is_flag(self) -> bool:
        return self.is_option and self.one is bool

    def flags(self) -> dict[str, bool]:
        """The names of an option; those of a flag with the value that each stands for."""
        own = "--" + self.name.replace("_", "-")
        names = self.declared.names or ((f"{own}/--no-{own[2:]}",) if self.is_flag else (own,))
        pairs = [name.partition("/") for name in names]
        return {yes: True for yes, _, _ in pairs} | {no: False for _, _, no in pairs if no}

    def value(self, word: str) -> Any:
        """The value of a word; None if there is doubt about it."""
        kind = self.one
        if kind is str:
            return word
        if kind is Path:
            return Path(word) if word else None
        if get_origin(kind) is Literal:
            return word if word in get_args(kind) else None
        if kind is int or kind is float:
            if not (WHOLE if kind is int else DECIMAL).fullmatch(word):
                return None
            number = kind(word)
            low, high = self.declared.min, self.declared.max
            in_range = (low is None or number >= low) and (high is None or number <= high)
            return number if in_range else None
        return None


class CliCommand(NamedTuple):
    """A function that the command line calls, and all its parameters, also those that other
    modules add: their ``callback`` takes their values."""

    function: Callable[..., None]
    parameters: Sequence[Parameter]

    def keep(self, values: Mapping[str, Any]) -> bool:
        """Gives the callbacks their values; False if one finds a mistake."""
        try:
            for each in self.parameters:
                if each.declared.callback is not None:
                    each.declared.callback(values[each.name])
        except MistakeError:
            return False
        return True

    def call(self, values: Mapping[str, Any]) -> None:
        own = (each for each in self.parameters if each.declared.callback is None)
        self.function(**{each.name: values[each.name] for each in own})

    def optional_names(self) -> set[str]:
        """The options with a value."""
        options = (each for each in self.parameters if each.is_option and not each.is_flag)
        return {name for each in options for name in each.flags()}

    def read(self, words: Sequence[str]) -> dict[str, Any] | None:
        """The values of all parameters; None unless the words are plain and right."""
        options = {
            name: (each, meaning)
            for each in self.parameters
            if each.is_option
            for name, meaning in each.flags().items()
        }
        found: dict[str, Any] = {}
        free: list[str] = []
        rest = iter(words)
        for word in rest:
            if not word.startswith("-") or word == "-":
                free.append(word)
                continue
            name, equals, text = word.partition("=")
            option, meaning = options.get(name, (None, False))
            if option is None:
                return None
            if option.is_flag:
                value = None if equals else meaning
            else:
                if not equals:
                    text = next(rest, "--")
                value = None if text.startswith("-") and text != "-" else option.value(text)
            if value is None or not _put(found, option, value):
                return None
        return found if self._fill(found, free) else None

    def _fill(self, found: dict[str, Any], free: list[str]) -> bool:
        """Adds the arguments, and the defaults of what is not given."""
        for each in self.parameters:
            if not each.is_option:
                taken, free = (free, []) if each.is_list else (free[:1], free[1:])
                for word in taken:
                    if (value := each.value(word)) is None or not _put(found, each, value):
                        return False
            if each.name not in found:
                if each.default is inspect.Parameter.empty:
                    return False
                found[each.name] = each.default
        return not free


def _put(found: dict[str, Any], parameter: Parameter, value: Any) -> bool:
    """Adds a value; False if an option that is no list is given twice."""
    if parameter.is_list:
        found.setdefault(parameter.name, []).append(value)
        return True
    return found.setdefault(parameter.name, value) is value


def own_parameters(function: Callable[..., None]) -> list[Parameter]:
    """The parameters in the signature of a function."""
    types = get_type_hints(function, include_extras=True)
    return [
        _parameter(name, types[name], each.default)
        for name, each in inspect.signature(function).parameters.items()
    ]


def _parameter(name: str, annotated: Any, default: Any) -> Parameter:
    kind, *about = get_args(annotated)
    declared = next(each for each in about if isinstance(each, Argument))
    return Parameter(name, kind, declared, default)


class Group:
    """A command that has commands of its own."""

    def __init__(self, help: str) -> None:
        self.help = help
        self.functions: dict[str, Callable[..., None]] = {}
        self.epilogs: dict[str, str] = {}

    def command(
        self, name: str = "", *, help: str = "", epilog: str = ""
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Adds a function, by its own name if none is given. ``help`` is in place of its docstring;
        ``epilog`` stands below it."""

        def add(function: Callable[..., None]) -> Callable[..., None]:
            own = name or function.__name__.replace("_", "-")
            function.__doc__ = help or function.__doc__
            self.functions[own], self.epilogs[own] = function, epilog
            return function

        return add
