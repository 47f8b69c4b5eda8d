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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.gcode.blocks import ARCS, Block, Group, Problem, number_text
from understudy.gcode.dialect import Dialect
from understudy.gcode.program import ProgramLine, program_lines
from understudy.ports import ControllerStatus
from understudy.ports.controller import MotionController
from understudy.ports.refusals import INHIBITED, SOFT_LIMIT
from understudy.units import NS_PER_MS, seconds

RunState = Literal["idle", "running", "paused", "done", "failed"]
Ended = Callable[[str, int], None]
"""Called with the outcome of a run, as text, and the time."""

LONGEST_PROGRAM = 16 * 1024 * 1024
AHEAD = 300
"""The number of lines that wait in the controller."""
LOOK = 50 * NS_PER_MS
"""Period in which more lines are sent; the reported line of a failure may be this old."""

WAITING = ("Hold", "Door", "Tool")
"""States of a controller that waits for the operator."""

NOTHING_LOADED = Refused("no program is loaded")
UNDER_WAY = Refused("a program is running: stop it first")
NOT_UNDER_WAY = Refused("no program is running")
NOT_IN_STEPS = Refused("the program runs without steps: stop it, and run it with step")
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")


class Reading(Struct, frozen=True):
    """The state of a program. `line`: the line of the file that is executed, or where it ended.

    `elapsed_s`: since the start. `checksum`: of the text.
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
    """A line to send: its number in the file (0: none) and the count of acting lines so far."""

    number: int
    text: str
    acting: int


class Saved(Struct):
    """The state that snapshots hold. `base`, `tally`, `stops`: lines taken, lines executed and
    stops of the controller before the run; `opening`: lines sent before the first line of the file;
    `due`: the time of the next check.
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
    started: int = 0
    ended: int = 0
    due: int | None = None


class ProgramRun:
    """A `Part` that runs a program on a controller."""

    def __init__(self, controller: MotionController, dialect: Dialect) -> None:
        self._controller = controller
        self._dialect = dialect
        self._listeners: list[Ended] = []
        self._state = Saved()
        self._lines: Sequence[ProgramLine] = ()
        self._checksum = 0
        self._queue: list[Sent] = []
        self._listens = False

    # ── operator ──

    def load_text(self, text: str, name: str) -> Refused | None:
        return self.load_lines(text, name, tuple(program_lines(text, self._dialect)))

    def load_lines(self, text: str, name: str, lines: Sequence[ProgramLine]) -> Refused | None:
        """Loads a program whose lines are already read."""
        if self.under_way():
            return UNDER_WAY
        if len(text) > LONGEST_PROGRAM:
            return Refused(f"the program has {len(text)} characters, more than {LONGEST_PROGRAM}")
        self._state = Saved(name=name, text=text)
        self._set_lines(lines)
        return None

    def run(self, now: int, *, from_line: int = 1, step: bool = False) -> Refused | None:
        """Starts at a line, with the modes that the lines before it set; `step`: line by line."""
        if refused := self._not_ready(now):
            return refused
        if refused := self._begin(now, from_line, step):
            self._state.state, self._state.error = "failed", refused.reason
            self._state.line = _line_in(refused.reason) or from_line
            return refused
        self._state.state = "running"
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

    def on_end(self, listener: Ended) -> None:
        self._listeners.append(listener)

    # ── readings ──

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
        elapsed = seconds(until - ours.started)
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
        self._set_lines(tuple(program_lines(self._state.text, self._dialect)))
        self._queue = self._to_send()
        if self.under_way():
            self._listen()

    # ── inside ──

    @property
    def _title(self) -> str:
        return self._state.name or "program"

    def _set_lines(self, lines: Sequence[ProgramLine]) -> None:
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
        if status.inhibited:
            return INHIBITED
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
            started=now,
        )
        self._queue = self._to_send()
        self._listen()
        return None

    def _send_lines(self, now: int, count: int) -> None:
        """Sends `count` more lines; the opening lines come before the first."""
        state, queue = self._state, self._queue
        count += len(state.opening) if state.sent == 0 else 0
        for line in queue[state.sent : state.sent + count]:
            state.sent += 1
            if refused := self._controller.send_gcode(line.text, now):
                self._fail(self.in_file(refused.reason), line.number, now)
                return
        state.due = now + LOOK if state.sent < len(queue) and not state.step else now

    def _to_send(self) -> list[Sent]:
        """The lines of this run in the order they are sent."""
        queue = [Sent(0, text, at) for at, text in enumerate(self._state.opening, 1)]
        acting = len(queue)
        for line in self._lines[self._state.first - 1 :]:
            if line.text.strip():
                acting += _acts(line)
                queue.append(Sent(line.number, line.text, acting))
        return queue

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
        return max(0, self._queue[self._state.sent - 1].acting - done)

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
        """The line of the file that is executed; if none, the last one that was seen."""
        place = status.line - self._state.base
        if 1 <= place <= len(self._queue):
            return self._queue[place - 1].number or self._state.first
        return self._state.line

    def in_file(self, reason: str) -> str:
        """A text with the controller's line numbers replaced by those of the file."""
        queue, base = self._queue, self._state.base

        def number(match: re.Match[str]) -> str:
            place = int(match[1]) - base
            known = 1 <= place <= len(queue)
            return f"line {queue[place - 1].number}" if known else match[0]

        return re.sub(r"\bline (\d+)", number, reason)


def _acts(line: ProgramLine) -> bool:
    """Whether every controller counts the line as executed: comments and messages are not."""
    block = line.block
    return isinstance(block, Block) and bool(block.commands or block.values)


def _line_in(reason: str) -> int:
    found = re.search(r"\bline (\d+)", reason)
    return int(found[1]) if found else 0


# ── start in the middle ─────────────────────────────────────────────────────────────────────────
#
# The lines before the first one are not run. Those of them that only select or store are sent as
# they are; of those that move or switch only the modes are sent. Arc, gas, spindle and outputs stay
# as they are: a restart switches nothing on.

MODES: tuple[Group, ...] = (
    "units", "distance", "plane", "feed mode", "coordinates", "path", "retract", "overrides",
    "kinematics",
)  # fmt: skip
STORING: tuple[Group, ...] = ("tool", "tool offset", "scaling")
HERE = ("G92", "G28.1", "G30.1")
"""Commands that store the position of the robot."""
RELATIVE_G10 = 20.0


class _Modes:
    """The modes so far, and those that were not sent yet. F is kept with its units."""

    def __init__(self) -> None:
        self.motion = ""
        self.codes: dict[Group, str] = {}
        self._unsent: dict[Group, str] = {}
        self._feed: tuple[str, float] | None = None

    def note(self, block: Block) -> None:
        for group in MODES:
            if group in block.commands:
                self.codes[group] = self._unsent[group] = block.commands[group]
        self.motion = block.commands.get("motion", self.motion)
        if "F" in block.values and self.codes.get("feed mode") != "G93":
            self._feed = self.codes.get("units", ""), block.values["F"]

    def take(self) -> list[str]:
        """Lines for the modes that were not sent yet."""
        lines = []
        if self._feed is not None:
            units, feed = self._feed
            lines.append(f"{units} F{number_text(feed)}".strip())
            if units:
                self._unsent["units"] = self.codes["units"]
        if self._unsent:
            lines.append(" ".join(self._unsent.values()))
        self._unsent, self._feed = {}, None
        return lines


def opening(lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
    """The lines to send before line ``first`` so that it has the same effect as in a full run."""
    modes = _Modes()
    sent: list[str] = []
    for line in lines[: first - 1]:
        if refused := _stores_place(line):
            return refused
        block = _block(line)
        if _only_stores(block):
            sent += [*modes.take(), line.text.strip()]
        modes.note(block)
    sent += modes.take()
    if modes.motion in ("G0", "G1"):
        sent.append(modes.motion)
    return _needs_its_start(lines[first - 1 :], modes) or sent


def _block(line: ProgramLine) -> Block:
    assert isinstance(line.block, Block), "a program is checked before it starts"
    return line.block


def _only_stores(block: Block) -> bool:
    groups = set(block.commands)
    storing = groups & set(STORING) or block.commands.get("nonmodal") == "G10"
    others = groups - set(STORING) - set(MODES) - {"nonmodal"}
    selects = "T" in block.values and not groups
    return bool(storing and not others) or selects


def _moves(block: Block) -> bool:
    return block.axis in ("motion", "") and any(letter in block.values for letter in "XYZABCUVW")


def _stores_place(line: ProgramLine) -> Refused | None:
    block = _block(line)
    code = block.commands.get("nonmodal", "")
    if code in HERE or (code == "G10" and block.values.get("L") == RELATIVE_G10):
        place = f"line {line.number}: {code} stores the position of the robot at that line"
        return Refused(f"{place}; begin at that line or before it")
    return None


def _needs_its_start(lines: Iterable[ProgramLine], modes: _Modes) -> Refused | None:
    """Refuses a first move that depends on the end of the line before it: an arc, or relative."""
    for line in lines:
        block = _block(line)
        modes.note(block)
        if not _moves(block):
            continue
        relative = modes.codes.get("distance") == "G91"
        if relative or modes.motion in ARCS:
            what = "is relative (G91)" if relative else "is an arc"
            return Refused(
                f"line {line.number} {what} and needs its starting point; "
                "begin at a straight line to an absolute target"
            )
        return None
    return None
