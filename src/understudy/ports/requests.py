"""The asking side of a request-and-reply wire: a part of the cell that asks another process.

The wire carries one question at a time. In lock-step (`step`, `max`) simulated time stands from
the question to its answer or loss, so that what the cell does does not depend on the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Question:
    """`number`: new for every question; `seconds`: wall time after which it counts as lost.
    `trigger`: requests to the cell that are made to answer it repeat it; also an equal question
    that is asked again after a restore has another one."""

    number: int
    payload: bytes
    seconds: float
    trigger: str = ""


@runtime_checkable
class AsksProcess(Protocol):
    """A part of a cell that asks a process. `where`: its address, as `tcp://127.0.0.1:5570`."""

    where: str

    def question(self) -> Question | None:
        """The question that waits for an answer now; another number replaces the former one."""
        ...

    def answered(self, number: int, payload: bytes, now: int) -> None: ...

    def unanswered(self, number: int, reason: str, now: int) -> None:
        """The process is gone or silent."""
        ...

    def superseded(self, trigger: str) -> bool:
        """Whether this is the trigger of a question that has ended without its answer."""
        ...

    def on_question(self, listener: Callable[[], None]) -> None:
        """Calls the listener when `question` has changed."""
        ...
