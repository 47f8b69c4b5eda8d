"""A program on a controller, simulated or real: sent line by line, followed by the file's numbers.

    idle ─▶ running ◀─▶ paused
               ├─▶ done
               └─▶ failed      (with the line and the reason)

The controller counts the lines it takes; `ProgramRun` knows the line of the file for each of them.
All lines are read before the first is sent, and enough lines wait in the controller to keep its
planner filled. Empty lines are not sent: they would clear the error of a controller.

A program can have a million lines: they are read once (`ProgramLines`), in steps between which
other work is done. Starting, stepping and following a run then costs the same for every length.

A robot that takes one line after the other has no controller for programs; `LineFeed` is one:

    send_line ──▶ waiting ──▶ open ──▶ executed
                     │          └─▶ refused: the lines behind it are dropped
                     └─ kept back by `hold`, if the robot has no hold of its own

The robot says how many lines it takes ahead (`LineRobot`), and reports the end of each of them.
"""

import re
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from math import dist
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus, DigitalIO, Tally
from understudy.ports.controller import MotionController
from understudy.ports.operation import OperatorActions
from understudy.ports.program import (
    LONGEST_LINE,
    LONGEST_PROGRAM,
    MOST_LINES,
    Ended,
    GoesOnInLine,
    HasWords,
    KnowsLoss,
    Language,
    LanguageWord,
    LineProblem,
    LineState,
    ProcessChoice,
    Reading,
    RunState,
    SourceLine,
    Switched,
    all_read,
)
from understudy.ports.refusals import INHIBITED, PROCESS_FAULT, SOFT_LIMIT
from understudy.units import MM, NS_PER_MS, seconds

AHEAD = 300
"""The number of lines that wait in the controller."""
LOOK = 50 * NS_PER_MS
"""Period in which more lines are sent; the reported line of a failure may be this old."""
LINE_NUMBER = r"(?P<opens>\(|, )?\bline (?P<number>\d+)(?P<rest>(?:, column \d+)?(?:: )?)"
"""Where an error text of a controller names a line: `line 3, column 1: …`, `… (line 3: G1 X9)`."""

WAITING = ("Hold", "Door", "Tool")
"""States of a controller that waits for the operator."""

NOTHING_LOADED = Refused("no program is loaded")
UNDER_WAY = Refused("a program is running: stop it first")
ONE_LINE = Refused("type one line that does something")
NOT_UNDER_WAY = Refused("no program is running")
NOT_LOST = Refused("the last run has lost no arc on a line of this program")
NOT_IN_STEPS = Refused("the program runs without steps: stop it, and run it with step")
PROCESS_OFF = 30
"""Code of the question whether the process is switched on again."""
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")
MOST_PROBLEMS = 200
"""Lines with a problem in one answer."""
COUNTED_AT_ONCE = 1_000_000
"""Characters in which line ends are counted at once: some milliseconds."""
OLDEST = 0
"""Ticket that stands for the oldest one that is open."""


# ── the lines of a program ────────────────────────────────────────────────────────────────────────


class Sent(NamedTuple):
    """A line to send: its number in the file (0: none) and the count of acting lines so far."""

    number: int
    text: str
    acting: int


class ProgramLines:
    """The lines of a file that were read. Empty lines are not sent; `problem` is that of the first
    line that cannot be read."""

    def __init__(self) -> None:
        self.lines: list[SourceLine] = []
        self.problem: Refused | None = None
        self._sent = array("q")  # index of each line that is sent
        self._acting = array("q")  # acting lines up to each of them

    def __len__(self) -> int:
        return len(self.lines)

    def read(self, lines: Iterable[SourceLine]) -> Generator[None, None, "ProgramLines"]:
        """Adds lines; yields after each of them."""
        for line in lines:
            self.problem = self.problem or line.problem
            if line.text.strip():
                self._sent.append(len(self.lines))
                self._acting.append(line.acts + (self._acting[-1] if self._acting else 0))
            self.lines.append(line)
            yield
        return self

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._sent

    def queue(self, opening: Sequence[str], first: int) -> "SentLines":
        """The lines of a run that starts at line ``first``, after the lines of ``opening``."""
        at = bisect_right(self._sent, first - 2)
        before = self._acting[at - 1] if at else 0
        return SentLines(self, opening, at, len(opening) - before)

    def sent_line(self, at: int, more: int) -> Sent:
        """A line that is sent; ``more``: acting lines besides those of the file."""
        line = self.lines[self._sent[at]]
        return Sent(line.number, line.text, self._acting[at] + more)

    def sent_count(self) -> int:
        return len(self._sent)

    def stops_at(self, lines: Iterable[int]) -> tuple[int, ...]:
        """The lines that are sent, from each of these on: of an empty line the next one."""
        places = {bisect_left(self._sent, line - 1) for line in lines if line >= 1}
        known = sorted(at for at in places if at < len(self._sent))
        return tuple(self.lines[self._sent[at]].number for at in known)

    def first_beyond(self, acting: int, begin: int) -> int:
        """The first sent line from ``begin`` on up to which more lines act than ``acting``."""
        return bisect_right(self._acting, acting, lo=begin)


class SentLines(Sequence[Sent]):
    """The lines of a run in the order they are sent: the opening lines, then those of the file."""

    def __init__(self, lines: ProgramLines, opening: Sequence[str], at: int, more: int) -> None:
        self._lines = lines
        self._opening = [Sent(0, text, count) for count, text in enumerate(opening, 1)]
        self._at = at
        self._more = more

    def __len__(self) -> int:
        return len(self._opening) + self._lines.sent_count() - self._at

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        if place < len(self._opening):
            return self._opening[place]
        return self._lines.sent_line(self._at + place - len(self._opening), self._more)

    def not_executed(self, executed: int) -> Sent | None:
        """The first line that is not executed; ``executed``: number of acting lines that are."""
        opening = next((sent for sent in self._opening if sent.acting > executed), None)
        if opening is not None:
            return opening
        at = self._lines.first_beyond(executed - self._more, self._at)
        known = at < self._lines.sent_count()
        return self._lines.sent_line(at, self._more) if known else None


@dataclass(frozen=True)
class StartAt:
    """What a start at a line needs. `process`: what the lines before it switch on; `opening` and
    `restoring`: the lines to send before it, without and with that."""

    lines: ProgramLines
    line: int
    process: tuple[Switched, ...]
    opening: list[str] | Refused
    restoring: list[str] | Refused

    def before(self, *, restore: bool) -> list[str] | Refused:
        if isinstance(self.opening, Refused) or not (restore and self.process):
            return self.opening
        if isinstance(self.restoring, Refused):
            return self.restoring
        return [*self.opening, *self.restoring]


def start_at(language: Language, program: ProgramLines, line: int) -> StartAt:
    """What a start at ``line`` needs, from all lines before it."""
    if program.problem is not None:
        return StartAt(program, line, (), program.problem, [])
    if not 1 <= line <= len(program):
        unknown = Refused(f"there is no line {line}; there are 1…{len(program)}")
        return StartAt(program, line, (), unknown, [])
    if line == 1:
        return StartAt(program, line, (), [], [])
    lines = program.lines
    process = language.process_before(lines, line)
    restoring = language.restoring(lines, line) if process else []
    return StartAt(program, line, process, language.opening(lines, line), restoring)


def too_large(text: str) -> Generator[None, None, Refused | None]:
    """Why a text is too large for a program; yields often."""
    if len(text) > LONGEST_PROGRAM:
        return Refused(f"the program has {len(text)} characters, more than {LONGEST_PROGRAM}")
    ends = 0
    for begin in range(0, len(text), COUNTED_AT_ONCE):
        end = begin + COUNTED_AT_ONCE
        ends += text.count("\n", begin, end) + text.count("\r", begin, end)
        ends -= text.count("\r\n", begin, end + 1)  # a CR LF that begins in this part
        yield
    if ends > MOST_LINES:
        return Refused(f"the program has {ends} lines, more than {MOST_LINES}")
    for line in re.finditer(f"[^\\r\\n]{{1,{LONGEST_LINE + 1}}}", text):
        if line.end() - line.start() > LONGEST_LINE:
            number = len(re.findall(r"\r\n|\r|\n", text[: line.start()])) + 1
            return Refused(f"line {number} has more than {LONGEST_LINE} characters")
        yield
    return None


# ── a controller for a robot that takes one line after the other ──────────────────────────────────


class LineRobot(Protocol):
    """A robot as programs are fed to it."""

    def has_room(self, opened: int, now: int) -> bool:
        """Whether it takes another line while ``opened`` parts of lines are not finished."""
        ...

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        """Begins line ``number`` of the file (0: none); returns a ticket per part of it."""
        ...

    def line(self, now: int) -> int:
        """The number of the line that is carried out; 0 if the robot does not know it."""
        ...

    def stops(self) -> int:
        """Number of stops so far; lines from before a stop are not continued."""
        ...

    def drop(self, now: int) -> None:
        """The program has failed: drops lines that the robot would still carry out later."""
        ...

    def report_to(self, feed: "LineFeed") -> None:
        """From now on, calls `LineFeed.finished` at the end of each line, and `LineFeed.changed`
        when it may take lines again."""
        ...


class Line(Struct, frozen=True):
    """A line that waits, and its number in the file."""

    number: int
    text: str


class FeedState(Struct):
    """State in snapshots. `opened`: ticket and line number of each part the robot has taken."""

    waiting: list[Line] = []
    opened: list[tuple[int, int]] = []
    executed: int = 0
    line: int = 0
    held: bool = False
    stops: int = 0
    error: tuple[str, int] | None = None


class LineFeed:
    """`ProgramController`. Its lines have the numbers of the file."""

    def __init__(
        self,
        actions: OperatorActions,
        robot: LineRobot,
        digital_io: Callable[[], DigitalIO] = DigitalIO,
        contacts: Callable[[int], int] = lambda now: 0,
    ) -> None:
        """``contacts``: counts those of the robot so far."""
        self._actions = actions
        self._contacts = contacts
        self.digital_io = digital_io
        self._robot = robot
        self._state = FeedState()
        self._early: list[tuple[int, Refused | None]] | None = None
        """Parts that ended while the robot was taking their line."""
        self._listeners: list[Callable[[ControllerStatus], None]] = []
        self._listens = False

    # ── lines ──

    def restart(self) -> None:
        """Begins a new program: without lines and errors of the last one."""
        self._state = FeedState(stops=self._robot.stops())

    def end(self, now: int, *, failed: bool) -> None:
        """Ends the program; lines that wait are dropped."""
        self._state.waiting = []
        if failed:
            self._robot.drop(now)

    def send_line(self, text: str, number: int, now: int) -> Refused | None:
        if self._state.error:
            return Refused(*self._state.error)
        self._listen()
        self._state.waiting.append(Line(number, text))
        self._feed(now)
        return Refused(*self._state.error) if self._state.error else None

    # ── program controller ──

    def hold(self, now: int) -> Refused | None:
        """Holds the robot; one that has no hold finishes the lines it has, and gets no others."""
        if (hold := getattr(self._actions, "hold", None)) is not None:
            hold(now)
        else:
            self._state.held = True
        self._report(now)
        return None

    def cycle_start(self, now: int) -> Refused | None:
        if (start := getattr(self._actions, "cycle_start", None)) is not None:
            start(now)
        self._state.held = False
        self.changed(now)
        return None

    def stop(self, now: int) -> Refused | None:
        self._state.waiting, self._state.opened = [], []
        refused: Refused | None = self._actions.stop(now)
        self._report(now)
        return refused

    def status(self, now: int) -> ControllerStatus:
        how, state = self._actions.condition(now), self._state
        message, code = state.error or (how.error, how.code)
        works = bool(state.opened or (state.waiting and not state.held))
        named = "Run" if works and how.state == "Idle" else how.state
        return ControllerStatus(
            connected=how.connected,
            enabled=how.enabled,
            moving=how.moving or works,
            error=bool(message),
            error_message=message,
            error_code=code,
            state="Hold" if state.held else named,
            line=self._robot.line(now) or (state.opened[0][1] if state.opened else state.line),
            stops=self._robot.stops(),
            at=now,
        )

    def tally(self, now: int) -> Tally:
        return Tally(self._state.executed, self._contacts(now))

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None:
        self._listeners.append(listener)

    # ── events of the robot ──

    def finished(self, ticket: int, outcome: Refused | None, now: int) -> None:
        """A part of a line has ended; tickets of other requests are ignored."""
        if self._early is not None:
            self._early.append((ticket, outcome))
        elif self._settle(ticket, outcome):
            self.changed(now)

    def changed(self, now: int) -> None:
        """The robot may take lines again."""
        self._feed(now)
        self._report(now)

    # ── snapshots ──

    def save(self) -> FeedState:
        return self._state

    def load(self, state: FeedState) -> None:
        self._state = state
        if state.opened or state.waiting:
            self._listen()

    # ── inside ──

    def _listen(self) -> None:
        """Subscribes to the robot with the first line: before it, nothing concerns a program."""
        if not self._listens:
            self._listens = True
            self._robot.report_to(self)

    def _feed(self, now: int) -> None:
        """Gives lines to the robot, as long as it takes them."""
        state = self._state
        while self._early is None and state.waiting and not (state.held or state.error):
            cut_off = self._robot.stops() != state.stops
            if cut_off or not self._robot.has_room(len(state.opened), now):
                return
            self._give(state.waiting.pop(0), now)

    def _give(self, line: Line, now: int) -> None:
        early: list[tuple[int, Refused | None]] = []
        self._early = early
        tickets = self._robot.take(line.text, line.number, now)
        self._early = None
        if isinstance(tickets, Refused):
            self._fail(line.number, tickets)
            return
        state = self._state
        state.line = line.number or state.line
        state.opened += [(ticket, line.number) for ticket in tickets]
        state.executed += not tickets
        for ticket, outcome in early:
            self._settle(ticket, outcome)

    def _settle(self, ticket: int, outcome: Refused | None) -> bool:
        """Closes a ticket; False if it is not one of this program."""
        state = self._state
        known = [each for each in state.opened if ticket in (OLDEST, each[0])]
        if not known:
            return False
        state.opened.remove(known[0])
        number = known[0][1]
        if outcome is not None:
            self._fail(number, outcome)
        else:
            state.executed += all(other != number for _, other in state.opened)
        return True

    def _fail(self, number: int, refused: Refused) -> None:
        place = f"line {number}: " if number and not refused.reason.startswith("line ") else ""
        self._state.error = place + refused.reason, refused.code
        self._state.line = number or self._state.line
        self._state.waiting = []

    def _report(self, now: int) -> None:
        if self._listeners:
            status = self.status(now)
            for listener in self._listeners:
                listener(status)


# ── the program of an operator ────────────────────────────────────────────────────────────────────


Count = Annotated[int, Meta(ge=0)]


class ProgramState(Struct):
    """The state that snapshots hold. `base`, `tally`, `contacts`, `stops`: lines taken, lines
    executed, contacts and stops of the controller before the run; `opening`: lines sent before the
    first line of the file; `due`: the time of the next check; `collisions`: those of a run that
    has ended; `breakpoints`: lines that are sent only when the operator goes on. `line_from`: the
    tool where the present line began; `lost`: metres along the line where the process was lost that
    ended the run; `along`: metres of the first line that an earlier run has done.
    """

    name: str = ""
    text: str = ""
    state: RunState = "idle"
    step: bool = False
    first: Annotated[int, Meta(ge=1)] = 1
    opening: list[str] = []
    sent: Count = 0
    base: Count = 0
    tally: Count = 0
    contacts: Count = 0
    stops: Count = 0
    line: Count = 0
    error: str = ""
    started: Count = 0
    ended: Count = 0
    due: int | None = None
    warning: str = ""
    collisions: Count = 0
    feed: FeedState | None = None
    breakpoints: tuple[int, ...] = ()
    line_from: tuple[float, float, float] | None = None
    lost: float | None = None
    along: float = 0.0


class ProgramRun:
    """`ProgramControl` and `Component`: runs a program on a controller.

    A `LineFeed` counts lines by the file, and its state is saved with the program; another
    controller counts all lines it has ever taken.
    """

    def __init__(self, controller: MotionController | LineFeed, language: Language) -> None:
        self._controller = controller
        self._feed = controller if isinstance(controller, LineFeed) else None
        self._language = language
        self._listeners: list[Ended] = []
        self._state = ProgramState()
        self._lines = ProgramLines()
        self._prepared: tuple[str, ProgramLines] | None = None
        self._start: StartAt | None = None
        self._checksum = 0
        self._queue = self._lines.queue((), 1)
        self._listens = False

    # ── operator ──

    def load_text(self, text: str, name: str) -> Refused | None:
        refused = all_read(self.prepare(text))
        return refused or self.load_prepared(name)

    def prepare(self, text: str) -> Generator[None, None, Refused | None]:
        """Reads the lines of a text; yields often. The loaded program stays as it is."""
        self._prepared = None
        refused = yield from too_large(text)
        if refused is not None:
            return refused
        lines = yield from ProgramLines().read(self._language.lines(text))
        self._prepared = text, lines
        return None

    def load_prepared(self, name: str, breakpoints: Sequence[int] = ()) -> Refused | None:
        """Loads the text that was prepared last."""
        if self.under_way():
            return UNDER_WAY
        if self._prepared is None:
            return NOTHING_LOADED
        text, lines = self._prepared
        self._prepared = None
        self._state = ProgramState(name=name, text=text, breakpoints=lines.stops_at(breakpoints))
        self._set_lines(lines)
        return None

    def problems(self, text: str) -> Generator[None, None, list[LineProblem]]:
        """The lines of a text that cannot be read; yields often."""
        refused = yield from too_large(text)
        if refused is not None:
            return [LineProblem(_line_in(refused.reason) or 1, 0, refused.reason)]
        found: list[LineProblem] = []
        for line in self._language.lines(text):
            if line.problem is not None:
                found.append(_problem(line.number, line.problem.reason))
            if len(found) >= MOST_PROBLEMS:
                break
            yield
        return found

    def words(self) -> Sequence[LanguageWord]:
        """The words of the language; none if it does not list them."""
        return self._language.words() if isinstance(self._language, HasWords) else ()

    def set_breakpoints(self, lines: Sequence[int], now: int) -> tuple[int, ...]:
        """Sets the lines before which a run stops, instead of those of before. Returns lines that
        the controller has already."""
        state = self._state
        before, state.breakpoints = state.breakpoints, self._lines.stops_at(lines)
        if not self.under_way():
            return ()
        last, here = self._queue[state.sent - 1].number, self.reading(now).line
        return tuple(
            line for line in state.breakpoints if line not in before and here < line <= last
        )

    def run(
        self,
        now: int,
        *,
        from_line: int = 1,
        step: bool = False,
        process: ProcessChoice | None = None,
    ) -> Refused | None:
        """Starts at a line, with the modes that the lines before it set; `step`: line by line.

        Refused with the code `PROCESS_OFF` if earlier lines switched on what is off now (arc, gas,
        outputs), unless ``process`` says what to do about it."""
        if self.under_way():
            return UNDER_WAY
        if self._feed is not None:
            self._feed.restart()
        if refused := self._not_ready(now):
            return refused
        start = self._start_at(from_line)
        missing = self._missing(start)
        if missing and process is None:
            return Refused(_question(from_line, missing), PROCESS_OFF)
        left_off = missing if process == "leave" else ()
        if refused := self._begin(now, start, step, restore=process == "restore"):
            self._state.state, self._state.error = "failed", refused.reason
            self._state.line = _line_in(refused.reason) or from_line
            return refused
        words = ", ".join(each.word for each in left_off)
        self._state.state = "running"
        self._state.warning = f"runs without {words}" if words else ""
        self._send_lines(now, 1 if step else AHEAD)
        return None

    def go_on(self, overlap: float, now: int) -> Refused | None:
        """Starts on the line on which the process was lost, ``overlap`` metres before that place,
        and switches it on there."""
        if self.under_way():
            return UNDER_WAY
        ours, language = self._state, self._language
        if ours.lost is None or not isinstance(language, GoesOnInLine):
            return NOT_LOST
        if refused := self._not_ready(now):
            return refused
        along, start = max(ours.lost - overlap, 0.0), self._start_at(ours.line)
        restoring = language.going_on(self._lines.lines, ours.line, along)
        start = replace(start, restoring=restoring)
        if refused := self._begin(now, start, step=False, restore=True):
            return refused
        self._state.state, self._state.along = "running", along
        self._send_lines(now, AHEAD)
        return None

    def step(self, now: int) -> Refused | None:
        """Runs the next line; the first one if no program runs."""
        if not self.under_way():
            return self.run(now, step=True)
        if not self._state.step and self._state.state != "paused":
            return NOT_IN_STEPS
        if self._state.state != "paused":
            return UNDER_WAY
        self._state.step, self._state.state = True, "running"
        self._send_lines(now, 1)
        return None

    def pause(self, now: int) -> Refused | None:
        return self._controller.hold(now) if self.under_way() else NOT_UNDER_WAY

    def resume(self, now: int) -> Refused | None:
        """Continues after a pause, a breakpoint or M0; a stepped run continues to its end."""
        if not self.under_way():
            return NOT_UNDER_WAY
        if self._state.state == "paused":
            self._state.step, self._state.state = False, "running"
            self._send_lines(now, AHEAD)
            return None
        return self._controller.cycle_start(now)

    def stop(self, now: int) -> Refused | None:
        """Brakes the robot and drops the rest."""
        if not self.under_way():
            return NOT_UNDER_WAY
        line = self._line(self._controller.status(now))
        self._end("idle", line, "", f"{self._title} stopped at line {line}", now)
        return self._controller.stop(now)

    def run_line(self, text: str, now: int) -> Refused | None:
        """Runs one line that an operator types; the loaded program stays as it is."""
        if self.under_way():
            return UNDER_WAY
        lines = tuple(self._language.lines(text))
        if problem := next((line.problem for line in lines if line.problem), None):
            return problem
        if len(lines) != 1 or not lines[0].acts:
            return ONE_LINE
        if self._feed is not None:
            self._feed.restart()
        return self._robot_not_ready(now) or self._send(Sent(0, text.strip(), 1), now)

    def line_outcome(self, now: int) -> tuple[LineState, str]:
        """The state of the last line of `run_line`, and why it failed."""
        status = self._controller.status(now)
        if status.error:
            return "failed", status.error_message
        return ("running" if status.moving or status.state != "Idle" else "done"), ""

    def on_end(self, listener: Ended) -> None:
        self._listeners.append(listener)

    # ── readings ──

    @property
    def target_line(self) -> str:
        return self._language.target_line

    def under_way(self) -> bool:
        return self._state.state in ("running", "paused")

    @property
    def text(self) -> str:
        return self._state.text

    def starting(self, from_line: int) -> Callable[[], StartAt]:
        """Finds what a start at a line needs. It reads all lines before that one and nothing else,
        so that a thread can do it."""
        lines, language = self._lines, self._language
        return lambda: start_at(language, lines, from_line)

    def use_start(self, start: StartAt) -> None:
        """Keeps what `starting` found, for the next start at that line."""
        self._start = start

    def missing_process(self, from_line: int) -> tuple[Switched, ...]:
        """What the lines before ``from_line`` switch on and is off now. Whether arc and gas are on
        is not known of every controller; a stop has switched them off."""
        return self._missing(self._start_at(from_line))

    def _missing(self, start: StartAt) -> tuple[Switched, ...]:
        outputs = self._controller.digital_io().outputs
        return tuple(
            each for each in start.process if each.output is None or not outputs >> each.output & 1
        )

    def _start_at(self, from_line: int) -> StartAt:
        known = self._start
        if known is None or known.lines is not self._lines or known.line != from_line:
            known = self._start = self.starting(from_line)()
        return known

    def reading(self, now: int) -> Reading:
        state, line, until = self._state.state, self._state.line, self._state.ended
        if self.under_way():
            until = now
            status = self._controller.status(now)
            line = line if state == "paused" else self._line(status)
            state = "paused" if status.state in WAITING else state
        ours = self._state
        elapsed = seconds(until - ours.started)
        collisions = self._contacts(now) if self.under_way() else ours.collisions
        return Reading(
            ours.name,
            state,
            line,
            len(self._lines),
            ours.error,
            ours.step,
            elapsed,
            self._checksum,
            ours.warning,
            collisions,
            ours.breakpoints,
            None if ours.lost is None else ours.lost / MM,
        )

    # ── part ──

    def next_wake(self) -> int | None:
        return self._state.due

    def wake(self, now: int) -> None:
        self._state.due = None
        if self.under_way():
            self._look(now)

    def busy(self) -> bool:
        return self._state.due is not None

    def status(self, now: int) -> Reading:
        return self.reading(now)

    def save(self) -> ProgramState:
        feed = self._feed.save() if self._feed is not None else None
        return msgspec.structs.replace(self._state, feed=feed)

    def load(self, state: Any) -> None:
        known = {self._state.text: self._lines} | dict([self._prepared] if self._prepared else [])
        self._state = msgspec.convert(state, ProgramState)
        if self._state.text not in known:
            known[self._state.text] = all_read(
                ProgramLines().read(self._language.lines(self._state.text))
            )
        self._prepared = None
        self._set_lines(known[self._state.text])
        self._queue = self._lines.queue(self._state.opening, self._state.first)
        self._check_sent()
        if self._feed is not None:
            self._feed.load(self._state.feed or FeedState())
        if self.under_way():
            self._listen()

    def _check_sent(self) -> None:
        """Raises a ValidationError if a restored state has sent lines that the program has not."""
        first = 1 if self.under_way() else 0
        if not first <= self._state.sent <= len(self._queue):
            allowed = f"{first} to {len(self._queue)} lines while it is {self._state.state}"
            raise msgspec.ValidationError(f"sent: {self._state.sent}; allowed: {allowed}")

    # ── inside ──

    @property
    def _title(self) -> str:
        return self._state.name or "program"

    def _set_lines(self, lines: ProgramLines) -> None:
        self._lines = lines
        self._checksum = zlib.crc32(self._state.text.encode("utf-8", "surrogatepass"))

    def _not_ready(self, now: int) -> Refused | None:
        if self._lines.empty:
            return NOTHING_LOADED
        return self._robot_not_ready(now)

    def _robot_not_ready(self, now: int) -> Refused | None:
        status = self._controller.status(now)
        if status.error:
            return Refused(status.error_message, status.error_code)
        if status.inhibited:
            return INHIBITED
        if status.moving or status.state in WAITING:
            return AT_REST_ONLY
        if not (status.connected and status.enabled):
            return Refused("the drives are not enabled: enable them first")
        return None

    def _begin(self, now: int, start: StartAt, step: bool, *, restore: bool) -> Refused | None:
        before = start.before(restore=restore)
        if isinstance(before, Refused):
            return before
        status, counted = self._controller.status(now), self._controller.tally(now)
        self._state = ProgramState(
            name=self._state.name,
            text=self._state.text,
            step=step,
            first=start.line,
            opening=before,
            base=status.accepted,
            stops=status.stops,
            tally=counted.gcode_executed,
            contacts=counted.collisions_detected,
            line=start.line,
            started=now,
            breakpoints=self._state.breakpoints,
        )
        self._queue = self._lines.queue(before, start.line)
        self._listen()
        return None

    def _send_lines(self, now: int, count: int, *, past_breakpoint: bool = True) -> None:
        """Sends `count` more lines, up to the next breakpoint; the opening lines come before the
        first. ``past_breakpoint``: the first line is sent although it is one."""
        state, queue = self._state, self._queue
        first = state.sent or len(state.opening)
        count += first - state.sent
        for line in queue[state.sent : state.sent + count]:
            if self._is_breakpoint(line) and not (past_breakpoint and state.sent == first):
                break
            state.sent += 1
            if refused := self._send(line, now):
                self._fail(self.in_file(refused.reason), line.number, now)
                return
        state.due = now + LOOK if state.sent < len(queue) and not state.step else now

    def _is_breakpoint(self, line: Sent) -> bool:
        return line.number in self._state.breakpoints

    def _send(self, line: Sent, now: int) -> Refused | None:
        controller = self._controller
        if isinstance(controller, LineFeed):
            return controller.send_line(line.text, line.number, now)
        return controller.send_gcode(line.text, now)

    def _listen(self) -> None:
        """Subscribes to the controller at the first run: without listeners it has less to do."""
        if not self._listens:
            self._listens = True
            self._controller.on_status(self._status_changed)

    def _status_changed(self, status: ControllerStatus) -> None:
        """Called while the controller is busy: the check follows at the same time, in `wake`."""
        cut_off = status.error or status.stops != self._state.stops
        if self._state.state == "running" or (self.under_way() and cut_off):
            self._state.due = status.at

    def _look(self, now: int) -> None:
        status = self._controller.status(now)
        if status.error:
            soft_limit = status.error_code == SOFT_LIMIT
            line = self._not_taken(now) if soft_limit else self._state.line
            self._fail(self.in_file(status.error_message), line, now)
        elif status.stops != self._state.stops:
            self._fail(f"stopped at line {self._state.line}", self._state.line, now)
        elif self._sends_on():
            self._follow_line(status, now)
            self._send_lines(now, AHEAD - self._waiting(now), past_breakpoint=False)
        elif not status.moving and status.state == "Idle":
            self._come_to_rest(now)
        elif status.state not in WAITING:
            self._follow_line(status, now)
            self._state.due = now + LOOK

    def _follow_line(self, status: ControllerStatus, now: int) -> None:
        """Notes the line, and where the tool is when it begins: not later than one look after."""
        state, line = self._state, self._line(status)
        if isinstance(self._controller, LineFeed):
            state.line = line
            return
        if status.line - state.base <= len(state.opening):
            state.line_from = None
        elif line != state.line or state.line_from is None:
            x, y, z, *_ = self._controller.tcp(now)
            state.line_from = x, y, z
        state.line = line

    def _lost_along(self, line: int, now: int) -> float | None:
        """Metres of ``line`` up to the place where the process was lost; None: it was not."""
        controller, state = self._controller, self._state
        if isinstance(controller, LineFeed) or state.line_from is None or line != state.line:
            return None
        place = controller.process_lost() if isinstance(controller, KnowsLoss) else None
        if place is None and controller.status(now).error_code == PROCESS_FAULT:
            place = controller.tcp(now)[:3]
        if place is None:
            return None
        return dist(place, state.line_from) + (state.along if line == state.first else 0.0)

    def _sends_on(self) -> bool:
        """Whether lines are left that need no word of the operator."""
        sent, queue = self._state.sent, self._queue
        return sent < len(queue) and not self._state.step and not self._is_breakpoint(queue[sent])

    def _waiting(self, now: int) -> int:
        """The number of lines that the controller has not started."""
        done = self._controller.tally(now).gcode_executed - self._state.tally
        sent: Sent = self._queue[self._state.sent - 1]
        return max(0, sent.acting - done)

    def _come_to_rest(self, now: int) -> None:
        """The controller is at rest: all lines are done, unless it lost some."""
        state, line = self._state, self._queue[self._state.sent - 1].number
        if self._waiting(now):
            self._fail(f"the controller came to rest at line {state.line}", state.line, now)
        elif state.sent < len(self._queue):
            stops_before = 0 if state.step else self._queue[state.sent].number
            state.state, state.line = "paused", stops_before or line
        else:
            found = self._contacts(now)
            met = f", {found} collision{'s' * (found > 1)}" if found else ""
            self._end("done", line, "", f"{self._title} done{met}", now)

    def _contacts(self, now: int) -> int:
        """Contacts of the robot since the start of the run."""
        return self._controller.tally(now).collisions_detected - self._state.contacts

    def _not_taken(self, now: int) -> int:
        """The first line that is not executed: a soft limit is checked before the motion."""
        taken = self._controller.tally(now).gcode_executed - self._state.tally
        after = self._queue.not_executed(taken)
        return self._state.line if after is None else after.number

    def _fail(self, reason: str, line: int, now: int) -> None:
        at = _line_in(reason) or line
        self._state.lost = self._lost_along(at, now)
        where = "" if reason.startswith(f"line {at}:") else f"line {at}: "
        self._end("failed", at, reason, f"{self._title} failed at {where}{reason}", now)

    def _end(self, state: RunState, line: int, error: str, text: str, now: int) -> None:
        ours = self._state
        ours.collisions = self._contacts(now)
        ours.state, ours.line, ours.error = state, line, error
        ours.ended, ours.due = now, None
        if self._feed is not None:
            self._feed.end(now, failed=state == "failed")
        for listener in self._listeners:
            listener(text, now)

    def _line(self, status: ControllerStatus) -> int:
        """The line of the file that is executed; if none, the last one that was seen."""
        if self._feed is not None:
            return status.line or self._state.line
        place = status.line - self._state.base
        if 1 <= place <= len(self._queue):
            return self._queue[place - 1].number or self._state.first
        return self._state.line

    def in_file(self, reason: str) -> str:
        """A text with the controller's line numbers replaced by those of the file.

        The controller counts all lines of its session. A line that this program did not send has
        no number in a file: its number is left out.
        """
        if self._feed is not None:
            return reason
        queue, state = self._queue, self._state

        def number(match: re.Match[str]) -> str:
            place = int(match["number"]) - state.base
            if not 1 <= place <= state.sent:
                return "(" if match["opens"] == "(" else ""
            return f"{match['opens'] or ''}line {queue[place - 1].number}{match['rest']}"

        return re.sub(LINE_NUMBER, number, reason)


def _line_in(reason: str) -> int:
    found = re.search(r"\bline (\d+)", reason)
    return int(found[1]) if found else 0


def _problem(line: int, reason: str) -> LineProblem:
    found = re.match(r"line \d+(?:, column (\d+))?: ", reason)
    column = int(found[1] or 0) if found else 0
    return LineProblem(line, column, reason[found.end() :] if found else reason)


def _question(line: int, missing: Sequence[Switched]) -> str:
    words = " and ".join(f"{each.word} (line {each.line})" for each in missing)
    return (
        f"line {line} lies after {words}, off now: give process 'restore' to switch on again at "
        "the start of that line, or 'leave' to run without"
    )
