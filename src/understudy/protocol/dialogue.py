"""Questions and answers by the line, where answers come in the order of the questions."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from understudy.ports import Ticket
from understudy.protocol.lines import Line, LineReader
from understudy.protocol.outbox import Outbox


@dataclass(slots=True)
class Question:
    """What was said and is not answered; the ticket that its answer ends, if there is one."""

    verb: str
    due: int
    ticket: Ticket | None = None


class Dialogue:
    """What is unsent, unanswered and half heard; thrown away as a whole when the call ends."""

    def __init__(self, longest_line: int, stir: Callable[[], None]) -> None:
        self.awaited: deque[Question] = deque()
        self._outbox = Outbox(stir)
        self._lines = LineReader(longest_line)

    def say(self, request: bytes, question: Question) -> None:
        self.awaited.append(question)
        self._outbox.say(request)

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def hear(self, data: bytes) -> list[Line]:
        """The lines that end here; one that is too long already is not waited for."""
        lines = self._lines.feed(data)
        return [*lines, Line(b"", too_long=True)] if self._lines.save().cut else lines

    def awaits(self, verb: str) -> bool:
        return any(question.verb == verb for question in self.awaited)

    def tickets(self) -> list[Ticket]:
        return [question.ticket for question in self.awaited if question.ticket is not None]

    def disown(self) -> None:
        """The answers are still awaited, but no ticket waits for them."""
        for question in self.awaited:
            question.ticket = None
