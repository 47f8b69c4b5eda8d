"""The table of commands and queries: name, typed parameters, role, doc; the order of changes."""

import inspect
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Struct

from understudy.config.typed import read
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.hmi import (
    BAD_PARAMETERS,
    BROKEN,
    NOT_ALLOWED,
    REFUSED,
    UNKNOWN_COMMAND,
    Later,
)

if TYPE_CHECKING:
    from understudy.wire.pump import Pump

log = logging.getLogger(__name__)

Role = Literal["viewer", "operator"]
SecretNeeded = Literal["while REAL", "always", "never"]
RANK: Mapping[str, int] = {"viewer": 0, "operator": 1}

MOST_QUESTIONS = 50


CommandListener = Callable[[str, Mapping[str, Any]], None]
"""Called with the name of a command and its parameters."""


AnswerListener = Callable[[str, Any], None]
"""Called with the name of a command and its answer."""


class NoParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a command that takes none."""


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    command: str
    parameters: dict[str, Any] = {}


def _no_parameters() -> type[Struct]:
    return NoParameters


@dataclass(frozen=True)
class Command:
    """A command or query; ``run`` returns a value that msgspec can write, `Refused` or `Later`.

    `declare`: makes the class of its parameters; a cell has some hundred commands and is asked for
    a few of them.
    `secret`: when an order needs the secret of the run, in a cell that may command REAL robots.
    `large`: its answer can be large, so that it is not one of the queries of a `glance`.
    """

    name: str
    doc: str
    run: Callable[[Any], Any]
    declare: Callable[[], type[Struct]] = _no_parameters
    role: Role = "operator"
    secret: SecretNeeded = "while REAL"
    large: bool = False

    @cached_property
    def parameters(self) -> type[Struct]:
        return self.declare()


Given = TypeVar("Given", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Marks:
    """What a decorator says of a method that is a command."""

    role: Role
    secret: SecretNeeded
    large: bool


def command(*, secret: SecretNeeded = "while REAL") -> Callable[[Given], Given]:
    """Makes a method a command of its name; see `commands_of`."""
    return _marked(Marks("operator", secret, large=False))


def query(*, large: bool = False) -> Callable[[Given], Given]:
    """Makes a method a query of its name, which viewers may ask and which changes nothing."""
    return _marked(Marks("viewer", "never", large))


def _marked(marks: Marks) -> Callable[[Given], Given]:
    def mark(method: Given) -> Given:
        method.command_marks = marks  # type: ignore[attr-defined]
        return method

    return mark


def commands_of(subject: object, *names: str) -> list[Command]:
    """The commands and queries of an object: its marked methods, in their order. Parameters and
    defaults are those of the signature. The docstring begins with the line of the table; what
    follows explains the parameters. ``names``: only these, if any are given."""
    methods = [
        getattr(subject, name)
        for kind in reversed(type(subject).__mro__)
        for name, member in vars(kind).items()
        if hasattr(member, "command_marks") and (not names or name in names)
    ]
    return [_command_of(method) for method in methods]


def _command_of(method: Callable[..., Any]) -> Command:
    marks: Marks = method.command_marks  # type: ignore[attr-defined]
    doc, _, about = inspect.cleandoc(method.__doc__ or "").partition("\n\n")

    def run(given: Struct) -> Any:
        return method(**{name: getattr(given, name) for name in given.__struct_fields__})

    declare = partial(_declared_by, method, about)
    return Command(method.__name__, _row(doc), run, declare, marks.role, marks.secret, marks.large)


def _declared_by(method: Callable[..., Any], about: str) -> type[Struct]:
    """The parameters in the signature of a method."""
    types = get_type_hints(method, include_extras=True)
    return msgspec.defstruct(
        "".join(word.capitalize() for word in method.__name__.split("_")),
        [
            (name, types[name]) if each.default is each.empty else (name, types[name], each.default)
            for name, each in inspect.signature(method).parameters.items()
        ],
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
        namespace={"__doc__": about or None},
    )


def _row(sentence: str) -> str:
    """The first sentence of a docstring as a row of the table: without capital letter and stop."""
    words = " ".join(sentence.split()).removesuffix(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


class Commands:
    """`CommandTable`: finds a command, checks role and parameters, runs it."""

    def __init__(
        self, commands: Iterable[Command], real: Callable[[], Collection[object]] | None = None
    ) -> None:
        """``real`` returns the robots that are REAL now; None: no robot can be."""
        self._real = real
        rows = (*commands, *commands_of(self))
        self._commands = {command.name: command for command in rows}
        self.on_change: list[CommandListener] = []
        """Called with each command that was carried out, once it has its effect; not with queries
        and refusals."""
        self.on_answer: list[AnswerListener] = []
        """Called with each command and its answer, which may be a refusal; not with queries."""

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def needs_secret(self, name: str) -> bool:
        """Whether a command would command a REAL robot, or make a robot REAL."""
        command = self._commands.get(name)
        if self._real is None or command is None or command.role == "viewer":
            return False
        return command.secret == "always" or (
            command.secret == "while REAL" and len(self._real()) > 0
        )

    def is_query(self, name: str) -> bool:
        """Whether there is a query of this name."""
        return name in self._commands and self._commands[name].role == "viewer"

    def check(self, name: str, parameters: Mapping[str, Any], key: str = "") -> None:
        """Raises a ConfigError for a command that there is not, or parameters it does not take."""
        if name not in self._commands:
            raise unknown("command", name, self._commands, key=f"{key}.command")
        wanted = self._commands[name].parameters
        try:
            read(parameters, wanted, f"{key}.parameters")
            msgspec.convert(dict(parameters), wanted)
        except msgspec.ValidationError as problem:
            raise ConfigError(str(problem), key=f"{key}.parameters") from None

    @query(large=True)
    def commands(self) -> list[dict[str, Any]]:
        """This table."""
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
        if (self.on_change or self.on_answer) and command.role == "operator":
            self._inform(name, parameters, result)
        return result.mapped(_with_code) if isinstance(result, Later) else _with_code(result)

    def _inform(self, name: str, parameters: Mapping[str, Any], result: Any) -> None:
        if isinstance(result, Later):
            result.then(lambda answer: self._inform(name, parameters, answer))
            return
        for informed in self.on_answer:
            informed(name, result)
        if not isinstance(result, Refused):
            for listener in self.on_change:
                listener(name, parameters)

    @query()
    def glance(
        self, questions: Annotated[list[Question], Meta(max_length=MOST_QUESTIONS)]
    ) -> list[Any]:
        """Several queries at one moment.

        The answers in order; null where a query is refused, needs time or has a large answer.
        """
        return [self._glance(question) for question in questions]

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
    """Wraps an action: an exception is logged and refused, since a bug of one command must not end
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


# ── changes, one after the other ────────────────────────────────────────────────────────────────

MOST_WAITING = 64
TOO_MANY = Refused(f"{MOST_WAITING} changes wait for one that takes time: try again later")


class Changes:
    """Begins each change when the one before has ended, so that the order of requests is the order
    of their effects, however long a file takes to read. Snapshots are in that order, too: they hold
    everything that was asked for before. In lock-step the cell's time waits meanwhile."""

    def __init__(self, pump: "Pump") -> None:
        self._pump = pump
        self._under_way = False
        self._waiting: deque[tuple[Callable[[], Any], Later]] = deque()

    def do(self, change: Callable[[], Any]) -> Any:
        """The answer of a change that is not delayed and answers at once, else a `Later`."""
        if not self._under_way:
            return self._begin(change)
        if len(self._waiting) >= MOST_WAITING:
            return TOO_MANY
        later = Later()
        self._waiting.append((change, later))
        return later

    def _begin(self, change: Callable[[], Any]) -> Any:
        answer = safely(change, "a change")()
        if isinstance(answer, Later):
            self._under_way = True
            self._pump.owe()
            answer.then(lambda _: self._ended())
        return answer

    def _ended(self) -> None:
        self._under_way = False
        self._pump.paid()
        while self._waiting and not self._under_way:
            change, later = self._waiting.popleft()
            answer = self._begin(change)
            if isinstance(answer, Later):
                answer.then(later.settle)
            else:
                later.settle(answer)
