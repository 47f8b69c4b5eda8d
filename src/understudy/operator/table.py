"""The table of commands and queries: name, typed parameters, role, doc."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.ports.hmi import (
    BAD_PARAMETERS,
    BROKEN,
    NOT_ALLOWED,
    REFUSED,
    UNKNOWN_COMMAND,
    Later,
)

log = logging.getLogger(__name__)

Role = Literal["viewer", "operator"]
SecretNeeded = Literal["while REAL", "always", "never"]
RANK: Mapping[str, int] = {"viewer": 0, "operator": 1}

MOST_QUESTIONS = 50


class NoParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a command that takes none."""


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    command: str
    parameters: dict[str, Any] = {}


class Questions(Struct, frozen=True, forbid_unknown_fields=True):
    """Queries that a viewer may ask and that are answered at once."""

    questions: Annotated[list[Question], Meta(max_length=MOST_QUESTIONS)]


@dataclass(frozen=True, slots=True)
class Command:
    """A command or query; ``run`` returns a value that msgspec can write, `Refused` or `Later`.

    `secret`: when an order needs the secret of the run, in a cell that may command REAL robots.
    `large`: its answer can be large, so that it is not one of the queries of a `glance`.
    """

    name: str
    doc: str
    run: Callable[[Any], Any]
    parameters: type[Struct] = NoParameters
    role: Role = "operator"
    secret: SecretNeeded = "while REAL"
    large: bool = False


class Commands:
    """`CommandTable`: finds a command, checks role and parameters, runs it."""

    def __init__(self, commands: Iterable[Command]) -> None:
        own = (
            Command(
                "commands", "this table", lambda _: self.described(), role="viewer", large=True
            ),
            Command("glance", "several queries at one moment", self._look, Questions, "viewer"),
        )
        self._commands = {command.name: command for command in (*commands, *own)}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def needs_secret(self, name: str, *, real: bool) -> bool:
        """Whether the caller must know the secret; ``real``: a robot of the cell is REAL now."""
        command = self._commands.get(name)
        if command is None or command.role == "viewer":
            return False
        return command.secret == "always" or (real and command.secret == "while REAL")

    def described(self) -> list[dict[str, Any]]:
        """The table as plain values; parameters as JSON schemas."""
        return [
            {
                "name": command.name,
                "doc": command.doc,
                "role": command.role,
                "parameters": msgspec.json.schema(command.parameters),
            }
            for command in self
        ]

    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any | Refused:
        command = self._commands.get(name)
        if command is None:
            return Refused(_no_such(name, self._commands), code=UNKNOWN_COMMAND)
        if RANK.get(role, -1) < RANK[command.role]:
            return Refused(f"{name} needs role {command.role}, not {role}", code=NOT_ALLOWED)
        try:
            checked = msgspec.convert(dict(parameters), command.parameters)
        except msgspec.ValidationError as problem:
            fields = ", ".join(_fields(command.parameters)) or "none"
            words = _in_words(parameters, command.parameters, problem)
            return Refused(f"{name}: {words}; parameters: {fields}", code=BAD_PARAMETERS)
        result = safely(command.run, f"command {name}")(checked)
        return result.mapped(_with_code) if isinstance(result, Later) else _with_code(result)

    def _look(self, given: Questions) -> list[Any]:
        """The answers in order; None where a query is refused, needs time or has a large answer."""
        return [self._glance(question) for question in given.questions]

    def _glance(self, question: Question) -> Any:
        command = self._commands.get(question.command)
        if command is None or command.large or command.name == "glance":
            return None
        answer = self.call(question.command, question.parameters, "viewer")
        return None if isinstance(answer, Refused | Later) else answer


def _with_code(result: Any) -> Any:
    """A refusal that has no code of its own gets the common one."""
    if isinstance(result, Refused):
        return Refused(result.reason, code=result.code or REFUSED)
    return result


def safely(action: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same action; an exception is logged and refused, since a bug of one command must not end
    the connection of its client, nor keep those waiting who come after it."""

    def run(*given: Any) -> Any:
        try:
            return action(*given)
        except Exception:
            log.exception("%s failed", name)
            return Refused("a bug; see the log", code=BROKEN)

    return run


def _in_words(
    given: Mapping[str, Any], wanted: type[Struct], problem: msgspec.ValidationError
) -> str:
    """The problem in the words of configuration errors: key, value, what is allowed."""
    try:
        read(given, wanted)
    except ConfigError as found:
        return str(found)
    return str(problem)  # a limit that only msgspec knows, such as the length of a text


def _fields(parameters: type[Struct]) -> Iterator[str]:
    """The names of the parameters, with the allowed words of those that have a few."""
    for field in msgspec.structs.fields(parameters):
        kinds = (field.type, *get_args(field.type))
        words = [
            repr(word) for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)
        ]
        yield f"{field.name} ({', '.join(words)})" if words else field.name


def _no_such(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown command {name!r}; there are: {', '.join(names)}{hint}"
