"""The kinds of things that go wrong, kept apart.

``Refused`` is a *value*: the robot would not do it, and each face says so in its own words.
``ConfigError`` is raised while a cell is read, never later. Everything else is a bug.
"""

from dataclasses import dataclass


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

    def _sentence(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = ": ".join(part for part in (place, self.key, self.problem) if part)
        if self.value is not None:
            text += f" (got {self.value!r})"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.nearest:
            text += f"; did you mean '{self.nearest}'?"
        return text
