"""A controller for programs on a robot that takes one line after the other.

    send_line ──▶ waiting ──▶ open ──▶ executed
                     │          └─▶ refused: the lines behind it are dropped
                     └─ kept back by `hold`, if the robot has no hold of its own

The robot says how many lines it takes ahead (`LineRobot`), and reports the end of each of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus, DigitalIO, Tally
from understudy.ports.operation import OperatorActions

OLDEST = 0
"""Ticket that stands for the oldest one that is open."""


class LineEvents(Protocol):
    """What a robot reports about the lines it has taken."""

    def finished(self, ticket: int, outcome: Refused | None, now: int) -> None:
        """A part of a line has ended; tickets of other requests are ignored."""
        ...

    def changed(self, now: int) -> None:
        """The robot may take lines again."""
        ...


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

    def report_to(self, events: LineEvents) -> None: ...


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
    ) -> None:
        self._actions = actions
        self.digital_io = digital_io
        self._robot = robot
        self._state = FeedState()
        self._early: list[tuple[int, Refused | None]] | None = None
        """Parts that ended while the robot was taking their line."""
        self._listeners: list[Callable[[ControllerStatus], None]] = []
        robot.report_to(self)

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
        return Tally(gcode_executed=self._state.executed)

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None:
        self._listeners.append(listener)

    # ── events of the robot ──

    def finished(self, ticket: int, outcome: Refused | None, now: int) -> None:
        if self._early is not None:
            self._early.append((ticket, outcome))
        elif self._settle(ticket, outcome):
            self.changed(now)

    def changed(self, now: int) -> None:
        self._feed(now)
        self._report(now)

    # ── snapshots ──

    def save(self) -> FeedState:
        state = self._state
        return msgspec.structs.replace(
            state, waiting=list(state.waiting), opened=list(state.opened)
        )

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, FeedState)

    # ── inside ──

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
