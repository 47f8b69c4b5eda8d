"""One call to a grblHAL: lines as its receive buffer has room for them, and what it answers.

Before lines may go out some questions must be answered (`$I`, `$$` at first; `$G` whenever lines
were thrown away and nobody knows which answers are still to come). A question's answer begins with
words of its own, so that a verdict before them is known to belong to something older.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from understudy.errors import Refused
from understudy.gcode import GRBLHAL_ARM, Block, parse
from understudy.protocol.sessions import LineReader, Outbox
from understudy.robots.grblhal.driver.picture import STANDING, Picture
from understudy.robots.grblhal.driver.words import (
    FULL_STATUS,
    JOG_CANCEL,
    RESET,
    STATUS,
    STOP,
    Alarm,
    Banner,
    Info,
    Report,
    Setting,
    Verdict,
    Word,
    read_line,
)
from understudy.units import NS_PER_MS, nanoseconds

LONGEST_ANSWER = 1024
MOST_TRIES = 3
MOST_UNSAID = 4096
LONGEST_HOLD_UP = 1e6
Kind = Literal["line", "jog", "home", "unlock", "clear", "question"]


@dataclass(slots=True)
class Said:
    """A line that was said and is not answered; ``last``: its program line ends with it.

    ``forgiven``: if it fails, that is the consequence of an error that is over.
    """

    text: str
    kind: Kind = "line"
    number: int = 0
    last: bool = True
    forgiven: bool = False

    @property
    def size(self) -> int:
        return len(self.text) + 1


def hold_up(said: Said) -> int:
    """How long it may stand without an answer although nothing moves: G4, M66."""
    block = parse(said.text, GRBLHAL_ARM) if said.kind == "line" else None
    if not isinstance(block, Block):
        return 0
    dwells, waits = block.commands.get("nonmodal") == "G4", block.commands.get("io") == "M66"
    duration = block.values.get("P" if dwells else "Q", 0.0) if dwells or waits else 0.0
    return nanoseconds(min(max(duration, 0.0), LONGEST_HOLD_UP))


class Answered(NamedTuple):
    """The controller has taken the line, or refused it."""

    said: Said
    code: int


Heard = Answered | Alarm | Banner | Report | Literal["stopped", "nothing was asked"]
MARKS = {"$I": "VER", "$G": "GC", "$$": "$"}
"""Question → the name of the information that its answer begins with; $: settings."""


class Talk:
    """What is unsent, unanswered and half heard; thrown away as a whole when the call ends."""

    def __init__(self, picture: Picture, stir: Callable[[], None], now: int, patience: int) -> None:
        self._picture = picture
        self._patience = patience
        self._outbox = Outbox(stir)
        self._lines = LineReader(LONGEST_ANSWER)
        self.in_flight: deque[Said] = deque()
        self._used = 0
        self._questions: deque[str] = deque()
        self._marked = self._marked_before = False
        self._tries = 0
        self._unclear = True
        """Somebody may have left a line half said."""
        self.asks = True
        """Questions may be asked; not while a stop or a reset is under way."""
        self.asked_at: int | None = None
        """When it was asked for a report that has not come yet."""
        self.fresh = False
        """The last report was asked for after all that was said and answered."""
        self._touched = True
        self._stands_since: int | None = None
        self.begin(now)

    def begin(self, now: int) -> list[Said]:
        """Nothing is known of the other side, nor what it may still have in its buffer."""
        lost = self.void()
        self.asks = self._unclear = True
        self._questions = deque(["$I", "$$"])
        self.asked_at = None
        self.look(now, full=True)
        return lost

    # ── what is said ──

    @property
    def ready(self) -> bool:
        """Lines may go out."""
        return not self._questions

    def byte(self, data: bytes) -> None:
        """Bytes that act at once; to one that does not read only those that stop it."""
        if self._outbox.size < MOST_UNSAID or data in (STOP, RESET):
            self._outbox.send(data)
        self._touch()

    def look(self, now: int, *, full: bool = False) -> None:
        """Ask for a report, unless one is awaited."""
        if self.asked_at is None:
            if self._outbox.size < MOST_UNSAID:
                self._outbox.send(FULL_STATUS if full else STATUS)
            self.asked_at, self._touched = now, False

    def fits(self, text: str) -> bool:
        """The receive buffer is a ring: one byte of it stays empty."""
        return self._used + len(text) + 1 < self._picture.machine.rx_bytes

    def say(self, said: Said) -> None:
        self.in_flight.append(said)
        self._used += said.size
        self._stands_since = None
        self._outbox.send(said.text.encode("ascii") + b"\n")
        self._touch()

    def void(self) -> list[Said]:
        """Nobody will answer what is in flight."""
        lost, self.in_flight, self._used = list(self.in_flight), deque(), 0
        self._marked, self._tries = False, 0
        self._touch()
        return [said for said in lost if said.kind != "question"]

    def find_out(self) -> list[Said]:
        """Lines were thrown away: no answer counts until a question has been answered."""
        lost = self.void()
        if not self._questions:
            self._questions.append("$G")
        return lost

    def awaits(self, kind: Kind) -> bool:
        """What is in flight is of this kind: kinds never mix."""
        return bool(self.in_flight) and self.in_flight[0].kind == kind

    def unanswered_line(self) -> int:
        """The number of the program line that is answered next."""
        return self.in_flight[0].number if self.awaits("line") else 0

    def forgive(self) -> None:
        """What is in flight may still fail because of an error that is over."""
        for said in self.in_flight:
            said.forgiven = True

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    @property
    def unsaid(self) -> bool:
        return self._outbox.size > 0

    # ── what is heard ──

    def hear(self, data: bytes, now: int) -> Iterator[Heard]:
        for line in self._lines.feed(data):
            if line.too_long:
                continue
            heard = self._understand(read_line(line.data), now)
            if heard is not None:
                yield heard

    def _understand(self, word: Word, now: int) -> Heard | None:
        if isinstance(word, Verdict):
            return self._verdict(word)
        if isinstance(word, Report):
            self._report(word, now)
            return word
        if isinstance(word, Info | Setting):
            self._mark("$" if isinstance(word, Setting) else word.name)
            self._picture.note(word)
            return "stopped" if word == Info("MSG", "Stop") else None
        return word if isinstance(word, Alarm | Banner) else None

    def _verdict(self, verdict: Verdict) -> Heard | None:
        self._stands_since = None
        self._touch()
        if self._marked_before:  # the answer to a question that was given up
            self._marked_before = False
            return None
        if not self.in_flight:
            return None if self._questions else "nothing was asked"
        if not self.awaits("question"):
            said = self._next_answered()
            if not verdict.code:
                self._picture.pins.note_line(said.text)
            return Answered(said, verdict.code)
        if self._marked or verdict.code:
            self._answer_question(answered=self._marked)
        return None

    def _answer_question(self, *, answered: bool) -> None:
        """A question that is refused is asked again; one that always is, is given up."""
        self._next_answered()
        self._marked = False
        self._tries += 1
        if self._questions and (answered or self._tries >= MOST_TRIES):
            self._questions.popleft()
            self._tries = 0
        self._ask()

    def _next_answered(self) -> Said:
        said = self.in_flight.popleft()
        self._used -= said.size
        return said

    def _mark(self, name: str) -> None:
        if self.awaits("question") and name == MARKS[self.in_flight[0].text]:
            self._marked = True
        elif name in MARKS.values():
            self._marked_before = True

    def _report(self, report: Report, now: int) -> None:
        self._picture.hear(report, now)
        self.asked_at = None
        self.fresh = not self._touched
        if report.state not in STANDING or not self._picture.drained:
            self._stands_since = None
        elif self._stands_since is None:
            self._stands_since = now
        self._ask()

    def _ask(self) -> None:
        """In Hold nobody would answer, and while it moves some questions are refused."""
        stands = self.asks and not self.in_flight and self._picture.state in STANDING
        if self._questions and stands:
            if self._unclear:  # throws away what is half said, and disturbs nothing at rest
                self._outbox.send(JOG_CANCEL)
                self._unclear = False
            self.say(Said(self._questions[0], "question"))

    def _touch(self) -> None:
        self.fresh, self._touched = False, True

    # ── patience ──

    def due(self) -> int | None:
        """When patience ends, if nothing is heard until then."""
        moments = []
        if self.asked_at is not None:
            moments.append(self.asked_at + self._patience)
        if self.in_flight and self._stands_since is not None:
            moments.append(self._stands_since + self._patience + hold_up(self.in_flight[0]))
        return min(moments, default=None)

    def overdue(self, now: int) -> Refused | None:
        due = self.due()
        if due is None or now < due:
            return None
        within = f"within {self._patience // NS_PER_MS} ms"
        if self.asked_at is not None and now >= self.asked_at + self._patience:
            return Refused(f"the controller is silent: no report {within}")
        return Refused(f"no answer to {self.in_flight[0].text!r} {within} although nothing moves")
