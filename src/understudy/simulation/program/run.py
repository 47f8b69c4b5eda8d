"""A program on a controller, simulated or real: sent line by line, followed by the file's numbers.

    idle ─▶ running ◀─▶ paused
               ├─▶ done
               └─▶ failed      (with the line and the reason)

The controller counts the lines it takes; this part knows the line of the file for each of them. All
lines are read before the first is sent, and enough lines wait in the controller to keep its planner
filled. Empty lines are not sent: they would clear the error of a controller.
"""

import re
import zlib
from collections.abc import Callable, Generator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.ports.controller import MotionController
from understudy.ports.program import (
    Ended,
    Language,
    LineState,
    ProcessChoice,
    Reading,
    RunState,
    Switched,
)
from understudy.ports.refusals import INHIBITED, SOFT_LIMIT
from understudy.simulation.program.line_feed import FeedState, LineFeed
from understudy.simulation.program.lines import (
    ProgramLines,
    Sent,
    StartAt,
    all_read,
    start_at,
    too_large,
)
from understudy.units import NS_PER_MS, seconds

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
NOT_IN_STEPS = Refused("the program runs without steps: stop it, and run it with step")
PROCESS_OFF = 30
"""Code of the question whether the process is switched on again."""
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")


Count = Annotated[int, Meta(ge=0)]


class Saved(Struct):
    """The state that snapshots hold. `base`, `tally`, `stops`: lines taken, lines executed and
    stops of the controller before the run; `opening`: lines sent before the first line of the file;
    `due`: the time of the next check.
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
    stops: Count = 0
    line: Count = 0
    error: str = ""
    started: Count = 0
    ended: Count = 0
    due: int | None = None
    warning: str = ""
    feed: FeedState | None = None


class ProgramRun:
    """`ProgramControl` and `Part`: runs a program on a controller.

    A `LineFeed` counts lines by the file, and its state is saved with the program; another
    controller counts all lines it has ever taken.
    """

    def __init__(self, controller: MotionController | LineFeed, language: Language) -> None:
        self._controller = controller
        self._feed = controller if isinstance(controller, LineFeed) else None
        self._language = language
        self._listeners: list[Ended] = []
        self._state = Saved()
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

    def load_prepared(self, name: str) -> Refused | None:
        """Loads the text that was prepared last."""
        if self.under_way():
            return UNDER_WAY
        if self._prepared is None:
            return NOTHING_LOADED
        text, lines = self._prepared
        self._prepared = None
        self._state = Saved(name=name, text=text)
        self._set_lines(lines)
        return None

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
        self._state.state, self._state.warning = "running", _without(left_off)
        self._send_lines(now, 1 if step else AHEAD)
        return None

    def step(self, now: int) -> Refused | None:
        """Runs the next line; the first one if no program runs."""
        if not self.under_way():
            return self.run(now, step=True)
        if not self._state.step:
            return NOT_IN_STEPS
        if self._state.state != "paused":
            return UNDER_WAY
        self._state.state = "running"
        self._send_lines(now, 1)
        return None

    def pause(self, now: int) -> Refused | None:
        return self._controller.hold(now) if self.under_way() else NOT_UNDER_WAY

    def resume(self, now: int) -> Refused | None:
        """Continues after a pause or M0; a stepped run continues to its end."""
        if not self.under_way():
            return NOT_UNDER_WAY
        if self._state.step and self._state.state == "paused":
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
            line = self._line(status)
            state = "paused" if status.state in WAITING else state
        ours = self._state
        elapsed = seconds(until - ours.started)
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

    def save(self) -> Saved:
        feed = self._feed.save() if self._feed is not None else None
        return msgspec.structs.replace(self._state, opening=list(self._state.opening), feed=feed)

    def load(self, state: Any) -> None:
        known = {self._state.text: self._lines} | dict([self._prepared] if self._prepared else [])
        self._state = msgspec.convert(state, Saved)
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
        status = self._controller.status(now)
        self._state = Saved(
            name=self._state.name,
            text=self._state.text,
            step=step,
            first=start.line,
            opening=before,
            base=status.accepted,
            stops=status.stops,
            tally=self._controller.tally(now).gcode_executed,
            line=start.line,
            started=now,
        )
        self._queue = self._lines.queue(before, start.line)
        self._listen()
        return None

    def _send_lines(self, now: int, count: int) -> None:
        """Sends `count` more lines; the opening lines come before the first."""
        state, queue = self._state, self._queue
        count += len(state.opening) if state.sent == 0 else 0
        for line in queue[state.sent : state.sent + count]:
            state.sent += 1
            if refused := self._send(line, now):
                self._fail(self.in_file(refused.reason), line.number, now)
                return
        state.due = now + LOOK if state.sent < len(queue) and not state.step else now

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
        elif self._state.sent < len(self._queue) and not self._state.step:
            self._state.line = self._line(status)
            self._send_lines(now, AHEAD - self._waiting(now))
        elif not status.moving and status.state == "Idle":
            self._come_to_rest(now)
        elif status.state not in WAITING:
            self._state.line, self._state.due = self._line(status), now + LOOK

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
            state.state, state.line = "paused", line
        else:
            self._end("done", line, "", f"{self._title} done", now)

    def _not_taken(self, now: int) -> int:
        """The first line that is not executed: a soft limit is checked before the motion."""
        taken = self._controller.tally(now).gcode_executed - self._state.tally
        after = self._queue.not_executed(taken)
        return self._state.line if after is None else after.number

    def _fail(self, reason: str, line: int, now: int) -> None:
        at = _line_in(reason) or line
        where = "" if reason.startswith(f"line {at}:") else f"line {at}: "
        self._end("failed", at, reason, f"{self._title} failed at {where}{reason}", now)

    def _end(self, state: RunState, line: int, error: str, text: str, now: int) -> None:
        ours = self._state
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


def _question(line: int, missing: Sequence[Switched]) -> str:
    words = " and ".join(f"{each.word} (line {each.line})" for each in missing)
    return (
        f"line {line} lies after {words}, off now: give process 'restore' to switch on again at "
        "the start of that line, or 'leave' to run without"
    )


def _without(left_off: Sequence[Switched]) -> str:
    return f"runs without {', '.join(each.word for each in left_off)}" if left_off else ""
