"""What a real controller is to be told: lines in their order, out of a program or one by one."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from understudy.errors import Refused
from understudy.gcode import ARM, GRBLHAL_ARM, Dialect, Problem, parse
from understudy.gcode.error_numbers import UNSUPPORTED
from understudy.ports import Joints, Ticket
from understudy.robots.grblhal.driver.picture import Machine
from understudy.robots.grblhal.driver.talk import Kind, Said
from understudy.robots.grblhal.driver.words import numbered, sayable

WAITING_LIMIT = 100_000
EXPRESSIONS = "EXPR"
TOO_MANY = Refused(f"{WAITING_LIMIT} lines are waiting already")


class LineWriter(Protocol):
    """Turns lines of a program into joint lines, and remembers what holds from line to line."""

    def stand_at(self, joints: Joints) -> None:
        """The program goes on from here."""
        ...

    def written(self, text: str, number: int) -> Sequence[str] | Refused:
        """The joint lines that a line of the program comes to."""
        ...


class Order(NamedTuple):
    """A line that waits; number 0: one of our own. What is no `line` waits until everything before
    it is done."""

    number: int
    text: str
    kind: Kind = "line"


class Progress(NamedTuple):
    """Of a program: lines read from it, lines that the controller has taken."""

    read: int
    taken: int


@dataclass
class Job:
    """A program under way; never more of it in memory than fits on the wire."""

    ticket: Ticket
    lines: Iterator[str]
    read: int = 0
    taken: int = 0
    over: bool = False


class Ended(NamedTuple):
    """A line that is not said: nothing is to be said for it, or it is refused."""

    number: int
    refused: Refused | None = None


class Lines:
    """The queue in front of the wire. ``writer``: for programs that are not joint lines."""

    def __init__(self, writer: LineWriter | None, machine: Machine) -> None:
        self._writer = writer
        self._machine = machine
        self._dialect: Dialect = ARM if writer else GRBLHAL_ARM
        self._waiting: deque[Order] = deque()
        self._pieces: deque[Said] = deque()
        self._writer_knows = False
        self.job: Job | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting or self._pieces or (self.job and not self.job.over))

    def __len__(self) -> int:
        return len(self._waiting)

    # ── in ──

    def check(self, text: str, number: int) -> str | Refused:
        """The line as it can be said; a code that only the controller may know is let through."""
        line = sayable(text)
        if isinstance(line, Refused) or not line or self._knows_more():
            return line
        block = parse(line, self._dialect, line=number)
        if isinstance(block, Problem) and (self._writer or block.code != UNSUPPORTED):
            return block.refused()
        return line

    def _knows_more(self) -> bool:
        """A controller that reckons with expressions reads lines that we cannot."""
        return self._writer is None and EXPRESSIONS in self._machine.options.split(",")

    def add(self, order: Order) -> Refused | None:
        if len(self._waiting) >= WAITING_LIMIT:
            return TOO_MANY
        self._waiting.append(order)
        return None

    def add_first(self, order: Order) -> Refused | None:
        """Ahead of the lines that wait; not ahead of what is left of the one being said."""
        if len(self._waiting) >= WAITING_LIMIT:
            return TOO_MANY
        self._waiting.appendleft(order)
        return None

    def lose_track(self) -> None:
        """Where the axes are must be asked before the next line is turned into joint lines."""
        self._writer_knows = False

    def begin_with(self, kind: Kind) -> bool:
        return bool(self._waiting) and self._waiting[0].kind == kind

    # ── out ──

    def next(self, where: Joints | None, fits: Callable[[str], bool]) -> Said | Ended | None:
        """What is to be said now; ``where`` the axes stand, if all is done that was said."""
        while not self._pieces:
            order = self._waiting[0] if self._waiting else self._read_on()
            if order is None or isinstance(order, Ended):
                return order
            if (order.kind != "line" or not self._may_write(order)) and where is None:
                return None
            self._waiting.popleft()
            if ended := self._write(order, where):
                return ended
        return self._pieces.popleft() if fits(self._pieces[0].text) else None

    def _may_write(self, order: Order) -> bool:
        return self._writer is None or self._writer_knows or not order.number

    def _write(self, order: Order, where: Joints | None) -> Ended | None:
        if order.kind != "line":
            self.lose_track()
            self._pieces.append(Said(order.text, order.kind, order.number))
            return None
        if self._writer is None or not order.number:
            text = numbered(order.text, order.number) if order.number else order.text
            self._pieces.append(Said(text, "line", order.number))
            return None
        if where is not None and not self._writer_knows:
            self._writer.stand_at(where)
            self._writer_knows = True
        texts = self._writer.written(order.text, order.number)
        if isinstance(texts, Refused):
            return Ended(order.number, texts)
        pieces = [Said(numbered(text, order.number), "line", order.number, False) for text in texts]
        self._pieces.extend(pieces[:-1])
        self._pieces.extend(replace(piece, last=True) for piece in pieces[-1:])
        return None if pieces else Ended(order.number)

    def _read_on(self) -> Order | Ended | None:
        """The next line of the program that says something."""
        job = self.job
        while job is not None and not job.over:
            text = next(job.lines, None)
            if text is None:
                job.over = True
                break
            job.read += 1
            line = self.check(text, job.read)
            if isinstance(line, Refused):
                return Ended(job.read, line)
            if line:
                self._waiting.append(Order(job.read, line))
                return self._waiting[0]
            job.taken += 1
        return None

    def drop(self) -> list[int]:
        """Forget all that was not said; the numbers of the lines."""
        dropped = [piece.number for piece in self._pieces if piece.last and piece.kind == "line"]
        dropped += [order.number for order in self._waiting if order.kind == "line"]
        self._waiting.clear()
        self._pieces.clear()
        self.lose_track()
        return dropped
