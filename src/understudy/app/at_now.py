"""A part of a cell whose methods are called without the time."""

from collections.abc import Callable
from inspect import signature
from typing import Any


class AtNow:
    """Calls the methods of a part at the present time of its cell.

    `io.set_digital_output(3, True)` calls `set_digital_output(3, True, now=…)` of the part; methods
    that take no time, and values, are those of the part.
    """

    def __init__(self, part: Any, now: Callable[[], int]) -> None:
        self._part = part
        self._now = now

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._part, name)
        if not callable(member) or "now" not in (names := list(signature(member).parameters)):
            return member
        place = names.index("now")

        def call(*arguments: Any, **named: Any) -> Any:
            if len(arguments) < place:
                return member(*arguments, now=self._now(), **named)
            return member(*arguments[:place], self._now(), *arguments[place:], **named)

        call.__doc__ = member.__doc__
        return call

    def __dir__(self) -> list[str]:
        return dir(self._part)
