"""A program on a controller, simulated or real: sent line by line, followed by the file's numbers.

    idle ─▶ running ◀─▶ paused
               ├─▶ done
               └─▶ failed      (with the line and why)

The controller counts the lines it takes; which line of the file each of them was is known here. All
lines are read before the first is sent, and never so few of them wait in the controller that its
planner could run dry. Empty ones are not sent: to a controller with an error they would mean that
all is well again.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode.blocks import Block, Problem
from understudy.gcode.dialect import Dialect
from understudy.gcode.program import ProgramLine, program_lines
from understudy.jobs.restart import opening
from understudy.ports import ControllerStatus
from understudy.ports.controller import MotionController
from understudy.ports.refusals import SOFT_LIMIT
from understudy.units import NS_PER_MS, seconds

RunState = Literal["idle", "running", "paused", "done", "failed"]
Ended = Callable[[str, int], None]
"""Told how a run has ended, and when."""

LONGEST_PROGRAM = 16 * 1024 * 1024
AHEAD = 300
"""So many lines wait in the controller, while there are so many."""
LOOK = 50 * NS_PER_MS
"""How often more are sent; and how old the running line may be when something goes wrong."""

WAITING = ("Hold", "Door", "Tool")
"""For the operator."""

NOTHING_LOADED = Refused("no program is loaded")
UNDER_WAY = Refused("a program is under way: stop it first")
NOT_UNDER_WAY = Refused("no program is under way")
NOT_IN_STEPS = Refused("the program runs, all of it was sent: stop it, and run it with step")
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")


class Reading(Struct, frozen=True):
    """`line`: of the file, the one being run, or where it ended; `elapsed_s` since it began.

    `checksum`: of the text.
    """

    name: str
    state: RunState
    line: int
    lines: int
    error: str
    step: bool
    elapsed_s: float
    checksum: int = 0


class Sent(NamedTuple):
    """A line on its way: its number in the file (0: none), and how many up to it do anything."""

    number: int
    text: str
    acting: int


class Saved(Struct):
    """All that is remembered. `base`, `tally`, `stops`: what the controller had taken, carried out
    and cut off before; `opening`: lines of ours before the first of the file; `due`: when to look.
    """

    name: str = ""
    text: str = ""
    state: RunState = "idle"
    step: bool = False
    first: int = 1
    opening: list[str] = []
    sent: int = 0
    base: int = 0
    tally: int = 0
    stops: int = 0
    line: int = 0
    error: str = ""
    begun: int = 0
    ended: int = 0
    due: int | None = None


class ProgramRun:
    """A `Part`."""

    def __init__(self, controller: MotionController, dialect: Dialect) -> None:
        self._controller = controller
        self._dialect = dialect
        self._listeners: list[Ended] = []
        self._state = Saved()
        self._lines: Sequence[ProgramLine] = ()
        self._checksum = 0
        self._queue: list[Sent] = []
        self._listens = False

    # ── what an operator does ──

    def load_text(self, text: str, name: str) -> Refused | None:
        return self.take(text, name, tuple(program_lines(text, self._dialect)))

    def take(self, text: str, name: str, lines: Sequence[ProgramLine]) -> Refused | None:
        """A text that somebody has read already."""
        if self.under_way():
            return UNDER_WAY
        if len(text) > LONGEST_PROGRAM:
            return Refused(f"a program of more than {LONGEST_PROGRAM} characters")
        self._state = Saved(name=name, text=text)
        self._know(lines)
        return None

    def run(self, now: int, *, from_line: int = 1, step: bool = False) -> Refused | None:
        """From a line on, with what the lines before it have put in force; or one by one."""
        if refused := self._not_ready(now):
            return refused
        if refused := self._begin(now, from_line, step):
            self._state.state, self._state.error = "failed", refused.reason
            self._state.line = _line_in(refused.reason) or from_line
            return refused
        self._state.state = "running"
        self._go_on(now, 1 if step else AHEAD)
        return None

    def step(self, now: int) -> Refused | None:
        """The next line; the first one, if no run is under way."""
        if not self.under_way():
            return self.run(now, step=True)
        if not self._state.step:
            return NOT_IN_STEPS
        if self._state.state != "paused":
            return UNDER_WAY
        self._state.state = "running"
        self._go_on(now, 1)
        return None

    def pause(self, now: int) -> Refused | None:
        return self._controller.hold(now) if self.under_way() else NOT_UNDER_WAY

    def resume(self, now: int) -> Refused | None:
        """After a pause, or after M0; a run in steps goes on to its end."""
        if not self.under_way():
            return NOT_UNDER_WAY
        if self._state.step and self._state.state == "paused":
            self._state.step, self._state.state = False, "running"
            self._go_on(now, AHEAD)
            return None
        return self._controller.cycle_start(now)

    def stop(self, now: int) -> Refused | None:
        """The robot brakes and forgets the rest."""
        if not self.under_way():
            return NOT_UNDER_WAY
        line = self._line(self._controller.status(now))
        self._end("idle", line, "", f"{self._title} stopped at line {line}", now)
        return self._controller.stop(now)

    def on_end(self, listener: Ended) -> None:
        self._listeners.append(listener)

    # ── what can be read ──

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def under_way(self) -> bool:
        return self._state.state in ("running", "paused")

    @property
    def text(self) -> str:
        return self._state.text

    def reading(self, now: int) -> Reading:
        state, line, until = self._state.state, self._state.line, self._state.ended
        if self.under_way():
            until = now
            status = self._controller.status(now)
            line = self._line(status)
            state = "paused" if status.state in WAITING else state
        ours = self._state
        elapsed = seconds(until - ours.begun)
        return Reading(
            ours.name, state, line, len(self._lines), ours.error, ours.step, elapsed, self._checksum
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
        return msgspec.structs.replace(self._state, opening=list(self._state.opening))

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, Saved)
        self._know(tuple(program_lines(self._state.text, self._dialect)))
        self._queue = self._to_send()
        if self.under_way():
            self._listen()

    # ── inside ──

    @property
    def _title(self) -> str:
        return self._state.name or "program"

    def _know(self, lines: Sequence[ProgramLine]) -> None:
        self._lines = lines
        self._checksum = zlib.crc32(self._state.text.encode("utf-8", "surrogatepass"))

    def _not_ready(self, now: int) -> Refused | None:
        if self.under_way():
            return UNDER_WAY
        if not any(line.text.strip() for line in self._lines):
            return NOTHING_LOADED
        status = self._controller.status(now)
        if status.error:
            return Refused(status.error_message, status.error_code)
        if status.moving or status.state in WAITING:
            return AT_REST_ONLY
        if not (status.connected and status.enabled):
            return Refused("the drives are not enabled: enable them first")
        return None

    def _begin(self, now: int, from_line: int, step: bool) -> Refused | None:
        lines = self._lines
        for line in lines:
            if isinstance(line.block, Problem):
                return line.block.refused()
        if not 1 <= from_line <= len(lines):
            return Refused(f"there is no line {from_line}; there are 1…{len(lines)}")
        before = opening(lines, from_line) if from_line > 1 else []
        if isinstance(before, Refused):
            return before
        status = self._controller.status(now)
        self._state = Saved(
            name=self._state.name,
            text=self._state.text,
            step=step,
            first=from_line,
            opening=before,
            base=status.accepted,
            stops=status.stops,
            tally=self._controller.tally(now).gcode_executed,
            line=from_line,
            begun=now,
        )
        self._queue = self._to_send()
        self._listen()
        return None

    def _go_on(self, now: int, count: int) -> None:
        """Send so many lines more; the opening comes with the first of them."""
        state, queue = self._state, self._queue
        count += len(state.opening) if state.sent == 0 else 0
        for line in queue[state.sent : state.sent + count]:
            state.sent += 1
            if refused := self._controller.send_gcode(line.text, now):
                self._fail(self.in_file(refused.reason), line.number, now)
                return
        state.due = now + LOOK if state.sent < len(queue) and not state.step else now

    def _to_send(self) -> list[Sent]:
        """All that is sent in this run."""
        queue = [Sent(0, text, at) for at, text in enumerate(self._state.opening, 1)]
        acting = len(queue)
        for line in self._lines[self._state.first - 1 :]:
            if line.text.strip():
                acting += _acts(line)
                queue.append(Sent(line.number, line.text, acting))
        return queue

    def _listen(self) -> None:
        """From the first run on: a controller that nobody listens to has less to do."""
        if not self._listens:
            self._listens = True
            self._controller.on_status(self._told)

    def _told(self, status: ControllerStatus) -> None:
        """In the midst of whatever the controller does: looked at when it has done."""
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
            self._go_on(now, AHEAD - self._waiting(now))
        elif not status.moving and status.state == "Idle":
            self._come_to_rest(now)
        elif status.state not in WAITING:
            self._state.line, self._state.due = self._line(status), now + LOOK

    def _waiting(self, now: int) -> int:
        """How many lines the controller has not begun."""
        done = self._controller.tally(now).gcode_executed - self._state.tally
        return max(0, self._queue[self._state.sent - 1].acting - done)

    def _come_to_rest(self, now: int) -> None:
        """All that was sent is done; unless the controller has lost some of it."""
        state, line = self._state, self._queue[self._state.sent - 1].number
        if self._waiting(now):
            self._fail(f"the controller came to rest at line {state.line}", state.line, now)
        elif state.sent < len(self._queue):
            state.state, state.line = "paused", line
        else:
            self._end("done", line, "", f"{self._title} done", now)

    def _not_taken(self, now: int) -> int:
        """The first line that the controller has not taken: a soft limit is seen before motion."""
        taken = self._controller.tally(now).gcode_executed - self._state.tally
        after = (sent.number for sent in self._queue if sent.acting > taken)
        return next(after, self._state.line)

    def _fail(self, reason: str, line: int, now: int) -> None:
        at = _line_in(reason) or line
        where = "" if reason.startswith(f"line {at}:") else f"line {at}: "
        self._end("failed", at, reason, f"{self._title} failed at {where}{reason}", now)

    def _end(self, state: RunState, line: int, error: str, text: str, now: int) -> None:
        ours = self._state
        ours.state, ours.line, ours.error = state, line, error
        ours.ended, ours.due = now, None
        for listener in self._listeners:
            listener(text, now)

    def _line(self, status: ControllerStatus) -> int:
        """The line of the file that is being run; where none is, the last one that was seen."""
        place = status.line - self._state.base
        if 1 <= place <= len(self._queue):
            return self._queue[place - 1].number or self._state.first
        return self._state.line

    def in_file(self, reason: str) -> str:
        """The controller's numbers of lines as those of the file."""
        queue, base = self._queue, self._state.base

        def number(match: re.Match[str]) -> str:
            place = int(match[1]) - base
            known = 1 <= place <= len(queue)
            return f"line {queue[place - 1].number}" if known else match[0]

        return re.sub(r"\bline (\d+)", number, reason)


def _acts(line: ProgramLine) -> bool:
    """Remarks and messages are no matter of the axes; not every controller counts them."""
    block = line.block
    return isinstance(block, Block) and bool(block.commands or block.values)


def _line_in(reason: str) -> int:
    found = re.search(r"\bline (\d+)", reason)
    return int(found[1]) if found else 0
