"""The kinds of things that go wrong, kept apart.

``Refused`` is a *value*: the robot would not do it, and each face says so in its own words.
``ConfigError`` is raised while a cell is read, never later. Everything else is a bug.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

LONGEST_SHOWN = 120
"""Letters of a value in a message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request was not carried out; ``code`` is the dialect's own number where it has one."""

    reason: str
    code: int = 0


class ConfigError(Exception):
    """A configuration that cannot be used: where it stands, what came, what is allowed."""

    def __init__(
        self,
        problem: str,
        *,
        file: str = "",
        line: int = 0,
        key: str = "",
        value: object = None,
        allowed: str = "",
        nearest: str = "",
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.key = key
        self.value = value
        self.allowed = allowed
        self.nearest = nearest
        super().__init__(self._sentence())

    def within(self, key: str, *, file: str = "", line: int = 0) -> "ConfigError":
        """The same error, seen from further out."""
        return ConfigError(
            self.problem,
            file=self.file or file,
            line=self.line or line,
            key=".".join(part for part in (key, self.key) if part),
            value=self.value,
            allowed=self.allowed,
            nearest=self.nearest,
        )

    def _sentence(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.key, self.problem) if part)
        if self.value is not None:
            text += f" (got {_shown(self.value)})"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.nearest:
            text += f"; did you mean '{self.nearest}'?"
        return text


def _shown(value: object) -> str:
    """As it was written; of what is long, the beginning."""
    told = repr(value)
    return told if len(told) <= LONGEST_SHOWN else f"{told[:LONGEST_SHOWN]}…"


def unknown(kind: str, value: str, known: Iterable[str], *, key: str = "") -> ConfigError:
    """A name that is not on the list, with the list and the nearest name on it."""
    names = list(known)
    return ConfigError(
        f"unknown {kind}",
        key=key,
        value=value,
        allowed=", ".join(names) or "none",
        nearest=next(iter(get_close_matches(value, names, n=1, cutoff=0.5)), ""),
    )


@contextmanager
def located_at(key: str) -> Iterator[None]:
    """Adds ``key`` in front of the key of every ConfigError that is raised inside."""
    try:
        yield
    except ConfigError as problem:
        raise problem.within(key) from None
