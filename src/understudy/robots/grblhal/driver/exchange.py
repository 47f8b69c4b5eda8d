"""Lines to a grblHAL controller and its answers: the queue before the wire, and the exchange on it.

The driver sends lines as the receive buffer of the controller has room for them; each line gets one
answer. Before lines may be sent, some queries must be answered: `$I` and `$$` after connecting,
`$G` whenever lines were discarded and it is not known which answers are still to come. The answer
to a query begins with a message of its own, so that an `ok` before it belongs to an older line.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from understudy.errors import Refused
from understudy.gcode import ARM, GRBLHAL_ARM, Block, Dialect, Problem, parse
from understudy.gcode.error_numbers import UNSUPPORTED
from understudy.ports import Joints, Ticket
from understudy.protocol.sessions import LineReader, Outbox
from understudy.robots.grblhal.driver.messages import (
    Alarm,
    Banner,
    Info,
    LineAnswer,
    Message,
    Report,
    Setting,
    numbered,
    read_line,
    sendable,
)
from understudy.robots.grblhal.driver.state import STANDING, ControllerInfo, ControllerState
from understudy.robots.grblhal.numbers import EVENT_MESSAGES, Realtime
from understudy.units import NS_PER_MS, nanoseconds

# ── lines that can switch the arc on ──────────────────────────────────────────────────────────────


_SPINDLE = re.compile(r"M0*[34](\.0*)?(?![\d.])")
_OUTPUT = re.compile(r"M0*6[24](\.0*)?(?![\d.])")
_OTHER_PIN = re.compile(r"P[+]?0*\.?0*[1-9]")
_EXPRESSION = re.compile(r"[MP][\[#]")


def can_switch_arc_on(line: str) -> bool:
    """Whether a line without comments may switch the arc on."""
    words = "".join(line.split()).upper()
    if _SPINDLE.search(words) or _EXPRESSION.search(words):
        return True
    return bool(_OUTPUT.search(words)) and not _OTHER_PIN.search(words)


# ── lines in flight ───────────────────────────────────────────────────────────────────────────────


WAITING_LIMIT = 100_000
TOO_MANY = Refused(f"{WAITING_LIMIT} lines are waiting already")
EXPRESSIONS = "EXPR"
"""Option of a controller that evaluates expressions."""
LONGEST_ANSWER = 1024
MOST_TRIES = 3
MOST_UNSENT = 4096
LONGEST_WAIT = 1e6
LONGEST_HOMING = nanoseconds(600.0)
"""Time without a report while the axes home: firmware sends none then, unless $10 has the bit."""
STOPS = ((Realtime.STOP,), (Realtime.RESET,))

LineKind = Literal["line", "jog", "home", "unlock", "clear", "query"]


@dataclass(slots=True)
class SentLine:
    """A line that was sent and is not answered yet.

    ``number`` is the number of the program line, 0 for a line of the driver. ``last``: the program
    line ends with this line. ``error_cleared``: if it fails, the cause is an error that was
    cleared.
    """

    text: str
    kind: LineKind = "line"
    number: int = 0
    last: bool = True
    error_cleared: bool = False

    @property
    def size(self) -> int:
        return len(self.text) + 1

    @property
    def is_pin(self) -> bool:
        """A line of the driver itself that sets an output or reads an input."""
        return self.kind == "line" and not self.number

    def wait(self) -> int:
        """How long the controller may take to answer without a report of motion: the time of G4
        and M66, and of homing, during which it sends no reports unless $10 asks for them."""
        if self.kind == "home":
            return LONGEST_HOMING
        block = parse(self.text, GRBLHAL_ARM) if self.kind == "line" else None
        if not isinstance(block, Block):
            return 0
        dwells, waits = block.commands.get("nonmodal") == "G4", block.commands.get("io") == "M66"
        duration = block.values.get("P" if dwells else "Q", 0.0) if dwells or waits else 0.0
        return nanoseconds(min(max(duration, 0.0), LONGEST_WAIT))


# ── the queue before the wire ───────────────────────────────────────────────────────────────────


class LineWriter(Protocol):
    """Translates lines of a program into joint lines and keeps the modal state between them."""

    def start_from(self, joints: Joints) -> None:
        """Continue the program from these joint positions."""
        ...

    def written(self, text: str, number: int) -> Sequence[str] | Refused:
        """The joint lines for one line of the program."""
        ...


class QueuedLine(NamedTuple):
    """A line in the queue; number 0 is a line of the driver.

    A line of another kind than `line` waits until everything before it is done.
    """

    number: int
    text: str
    kind: LineKind = "line"

    @property
    def is_pin(self) -> bool:
        return self.kind == "line" and not self.number


class UnsentLine(NamedTuple):
    """A line without anything to send: it has no effect on the controller, or it is refused."""

    number: int
    refused: Refused | None = None


class Progress(NamedTuple):
    """Progress of a program: lines read from it, lines that the controller has accepted."""

    read: int
    accepted: int


@dataclass
class StreamedProgram:
    """A program in execution; its lines are read as they can be sent."""

    ticket: Ticket
    lines: Iterator[str]
    read: int = 0
    accepted: int = 0
    over: bool = False


class LineQueue:
    """Lines that wait to be sent, one by one or from a program.

    ``writer`` translates programs that are not joint lines. ``_parts`` are the lines not yet
    sent of the current program line. ``_writer_placed``: the writer knows where the axes are.
    """

    def __init__(self, writer: LineWriter | None, info: ControllerInfo) -> None:
        self._writer = writer
        self._info = info
        self._dialect: Dialect = ARM if writer else GRBLHAL_ARM
        self._waiting: deque[QueuedLine] = deque()
        self._parts: deque[SentLine] = deque()
        self._writer_placed = False
        self.program: StreamedProgram | None = None
        self.arc_refusal: Callable[[], Refused | None] = lambda: None
        """Why no line may switch the arc on now."""

    def __bool__(self) -> bool:
        return bool(self._waiting or self._parts or (self.program and not self.program.over))

    def __len__(self) -> int:
        return len(self._waiting)

    def only_pins(self) -> bool:
        """No program line is in the queue, only lines that set outputs or read inputs."""
        program = self.program is not None and not self.program.over
        parts = all(line.is_pin for line in self._parts)
        return not program and parts and all(line.is_pin for line in self._waiting)

    # ── in ──

    def check(self, text: str, number: int) -> str | Refused:
        """The line as it can be sent; a code that only the controller may know is accepted."""
        line = sendable(text)
        if isinstance(line, Refused) or not line:
            return line
        if (locked := self.arc_refusal()) and can_switch_arc_on(line):
            return locked
        if self._evaluates_expressions():
            return line
        block = parse(line, self._dialect, line=number)
        if isinstance(block, Problem) and (self._writer or block.code != UNSUPPORTED):
            return block.refused()
        return line

    def _evaluates_expressions(self) -> bool:
        """The controller accepts lines with expressions, which the driver cannot read."""
        return self._writer is None and EXPRESSIONS in self._info.options.split(",")

    def add(self, line: QueuedLine, *, first: bool = False) -> Refused | None:
        """Queue a line; ``first``: ahead of the other lines, after the one that is being sent."""
        if len(self._waiting) >= WAITING_LIMIT:
            return TOO_MANY
        if first:
            self._waiting.appendleft(line)
        else:
            self._waiting.append(line)
        return None

    def lose_position(self) -> None:
        """Read the position of the axes again before the next line is translated."""
        self._writer_placed = False

    def begins_with(self, kind: LineKind) -> bool:
        return bool(self._waiting) and self._waiting[0].kind == kind

    # ── out ──

    def next(
        self, position: Joints | None, fits: Callable[[str], bool]
    ) -> SentLine | UnsentLine | None:
        """The line to send now; ``position`` of the axes, if everything that was sent is done."""
        while not self._parts:
            line = self._waiting[0] if self._waiting else self._read_program()
            if line is None or isinstance(line, UnsentLine):
                return line
            if (line.kind != "line" or not self._can_write(line)) and position is None:
                return None
            self._waiting.popleft()
            if unsent := self._write(line, position):
                return unsent
        return self._parts.popleft() if fits(self._parts[0].text) else None

    def _can_write(self, line: QueuedLine) -> bool:
        return self._writer is None or self._writer_placed or not line.number

    def _write(self, line: QueuedLine, position: Joints | None) -> UnsentLine | None:
        if line.kind != "line":
            self.lose_position()
            self._parts.append(SentLine(line.text, line.kind, line.number))
            return None
        if self._writer is None or not line.number:
            text = numbered(line.text, line.number) if line.number else line.text
            self._parts.append(SentLine(text, "line", line.number))
            return None
        if position is not None and not self._writer_placed:
            self._writer.start_from(position)
            self._writer_placed = True
        texts = self._writer.written(line.text, line.number)
        if isinstance(texts, Refused):
            return UnsentLine(line.number, texts)
        parts = [
            SentLine(numbered(text, line.number), "line", line.number, False) for text in texts
        ]
        self._parts.extend(parts[:-1])
        self._parts.extend(replace(part, last=True) for part in parts[-1:])
        return None if parts else UnsentLine(line.number)

    def _read_program(self) -> QueuedLine | UnsentLine | None:
        """The next line of the program that is not empty."""
        program = self.program
        while program is not None and not program.over:
            text = next(program.lines, None)
            if text is None:
                program.over = True
                break
            program.read += 1
            line = self.check(text, program.read)
            if isinstance(line, Refused):
                return UnsentLine(program.read, line)
            if line:
                self._waiting.append(QueuedLine(program.read, line))
                return self._waiting[0]
            program.accepted += 1
        return None

    def drop(self) -> list[int]:
        """Discard all lines that were not sent; return their numbers."""
        dropped = [part.number for part in self._parts if part.last and part.kind == "line"]
        dropped += [line.number for line in self._waiting if line.kind == "line"]
        self._waiting.clear()
        self._parts.clear()
        self.lose_position()
        return dropped


# ── the exchange on the wire ────────────────────────────────────────────────────────────────────


class Answered(NamedTuple):
    """The controller has accepted a line (0) or refused it."""

    line: SentLine
    code: int


Received = Answered | Alarm | Banner | Report | Literal["stopped", "unexpected answer"]
MARKS = {"$I": "VER", "$G": "GC", "$$": "$"}
"""Query → name of the message that its answer begins with; `$` means settings."""
STOP_MESSAGE = Info("MSG", EVENT_MESSAGES["stop"])


class LineExchange:
    """Lines and answers of one connection; discarded when the connection ends.

    ``_queries`` are still to be answered. ``_marked``: the first message of the answer to the query
    in flight has arrived; ``_marked_before``: that of an abandoned query has arrived.
    ``_touched``: something was sent or answered since the last report was requested.
    """

    def __init__(
        self, state: ControllerState, ready: Callable[[], None], now: int, timeout: int
    ) -> None:
        self._state = state
        self._timeout = timeout
        self._outbox = Outbox(ready)
        self._lines = LineReader(LONGEST_ANSWER)
        self.in_flight: deque[SentLine] = deque()
        self._used = 0
        self._queries: deque[str] = deque()
        self._marked = self._marked_before = False
        self._tries = 0
        self._partial_line = True
        """Another client may have left a part of a line in the controller's buffer."""
        self.queries_allowed = True
        """False while a stop or a reset is not confirmed."""
        self.report_requested_at: int | None = None
        """Time of the last report request, while its report has not arrived."""
        self.fresh = False
        """The last report was requested after all lines were sent and answered."""
        self._touched = True
        self._at_rest_since: int | None = None
        self.restart(now)

    def restart(self, now: int) -> list[SentLine]:
        """Begin the exchange again with all queries; return the lines that stay unanswered."""
        lost = self.discard()
        self.queries_allowed = self._partial_line = True
        self._queries = deque(["$I", "$$"])
        self.report_requested_at = None
        self.request_report(now, full=True)
        return lost

    # ── sending ──

    @property
    def ready(self) -> bool:
        """Lines may be sent."""
        return not self._queries

    def send_realtime(self, *commands: int) -> None:
        """Send real-time commands; if the peer does not read, only a stop or a reset."""
        if self._outbox.size < MOST_UNSENT or commands in STOPS:
            self._outbox.send(bytes(commands))
        self._touch()

    def request_report(self, now: int, *, full: bool = False) -> None:
        """Request a report, unless one is awaited."""
        if self.report_requested_at is None:
            if self._outbox.size < MOST_UNSENT:
                self._outbox.send(bytes([Realtime.FULL_STATUS if full else Realtime.STATUS]))
            self.report_requested_at, self._touched = now, False

    def fits(self, text: str) -> bool:
        """Whether the receive buffer has room; it is a ring, so that one byte stays empty."""
        return self._used + len(text) + 1 < self._state.info.rx_bytes

    def send(self, line: SentLine) -> None:
        self.in_flight.append(line)
        self._used += line.size
        self._at_rest_since = None
        self._outbox.send(line.text.encode("ascii") + b"\n")
        self._touch()

    def discard(self) -> list[SentLine]:
        """Forget the lines in flight, which will not be answered; return all but queries."""
        lost, self.in_flight, self._used = list(self.in_flight), deque(), 0
        self._marked, self._tries = False, 0
        self._touch()
        return [line for line in lost if line.kind != "query"]

    def resynchronize(self) -> list[SentLine]:
        """Discard the lines in flight; answers count again once a query has been answered."""
        lost = self.discard()
        if not self._queries:
            self._queries.append("$G")
        return lost

    def awaits(self, kind: LineKind) -> bool:
        """Whether the lines in flight are of this kind; kinds are never mixed."""
        return bool(self.in_flight) and self.in_flight[0].kind == kind

    def unanswered_number(self) -> int:
        """Number of the program line that is answered next; 0 if there is none."""
        return self.in_flight[0].number if self.awaits("line") else 0

    def mark_error_cleared(self) -> None:
        """Mark the lines in flight: they may still fail because of an error that was cleared."""
        for line in self.in_flight:
            line.error_cleared = True

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    @property
    def unsent(self) -> bool:
        return self._outbox.size > 0

    # ── receiving ──

    def receive(self, data: bytes, now: int) -> Iterator[Received]:
        for line in self._lines.feed(data):
            if line.too_long:
                continue
            received = self._read(read_line(line.data), now)
            if received is not None:
                yield received

    def _read(self, message: Message, now: int) -> Received | None:
        if isinstance(message, LineAnswer):
            return self._answer(message, now)
        if isinstance(message, Report):
            self._report(message, now)
            return message
        if isinstance(message, Info | Setting):
            self._mark("$" if isinstance(message, Setting) else message.name)
            self._state.note(message)
            return "stopped" if message == STOP_MESSAGE else None
        return message if isinstance(message, Alarm | Banner) else None

    def _answer(self, answer: LineAnswer, now: int) -> Received | None:
        self._at_rest_since = None
        self._touch()
        if self._marked_before:  # the answer to an abandoned query
            self._marked_before = False
            return None
        if not self.in_flight:
            return None if self._queries else "unexpected answer"
        if not self.awaits("query"):
            line = self._next_answered()
            if not answer.code:
                self._state.pins.note_line(line.text, now)
            return Answered(line, answer.code)
        if self._marked or answer.code:
            self._answer_query(answered=self._marked)
        return None

    def _answer_query(self, *, answered: bool) -> None:
        """A refused query is sent again; after `MOST_TRIES` refusals it is abandoned."""
        self._next_answered()
        self._marked = False
        self._tries += 1
        if self._queries and (answered or self._tries >= MOST_TRIES):
            self._queries.popleft()
            self._tries = 0
        self._send_query()

    def _next_answered(self) -> SentLine:
        line = self.in_flight.popleft()
        self._used -= line.size
        return line

    def _mark(self, name: str) -> None:
        if self.awaits("query") and name == MARKS[self.in_flight[0].text]:
            self._marked = True
        elif name in MARKS.values():
            self._marked_before = True

    def _report(self, report: Report, now: int) -> None:
        self._state.apply(report, now)
        self.report_requested_at = None
        self.fresh = not self._touched
        if report.state not in STANDING or not self._state.drained:
            self._at_rest_since = None
        elif self._at_rest_since is None:
            self._at_rest_since = now
        self._send_query()

    def _send_query(self) -> None:
        """Send the next query if nothing moves: otherwise it is refused or, in Hold, unanswered."""
        allowed = self.queries_allowed and not self.in_flight and self._state.state in STANDING
        if self._queries and allowed:
            if self._partial_line:  # 0x85 discards a partial line and has no other effect at rest
                self._outbox.send(bytes([Realtime.JOG_CANCEL]))
                self._partial_line = False
            self.send(SentLine(self._queries[0], "query"))

    def _touch(self) -> None:
        self.fresh, self._touched = False, True

    # ── timeouts ──

    def _report_timeout(self) -> int:
        homing = self._state.state == "Home" or any(line.kind == "home" for line in self.in_flight)
        return LONGEST_HOMING if homing else self._timeout

    def due(self) -> int | None:
        """When the timeout ends, if nothing is received until then."""
        moments = []
        if self.report_requested_at is not None:
            moments.append(self.report_requested_at + self._report_timeout())
        if self.in_flight and self._at_rest_since is not None:
            moments.append(self._at_rest_since + self._timeout + self.in_flight[0].wait())
        return min(moments, default=None)

    def overdue(self, now: int) -> Refused | None:
        due = self.due()
        if due is None or now < due:
            return None
        asked, timeout = self.report_requested_at, self._report_timeout()
        if asked is not None and now >= asked + timeout:
            return Refused(f"the controller is silent: no report within {timeout // NS_PER_MS} ms")
        within = f"within {self._timeout // NS_PER_MS} ms"
        return Refused(f"no answer to {self.in_flight[0].text!r} {within} although nothing moves")
