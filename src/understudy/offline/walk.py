"""Through a program without running it: its lines read, and handed to a walker."""

from collections.abc import Iterator

from understudy.errors import Refused
from understudy.gcode import Block, Interpretation, Modal, Problem, interpret
from understudy.gcode.dialect import Dialect
from understudy.gcode.meaning import (
    homes_arm,
    move_of,
    rests_motion,
    stand_kind,
    stops_at_corners,
)
from understudy.gcode.program import ProgramLine, program_lines
from understudy.gcode.requests import (
    Dwell,
    GoHome,
    Move,
    PathMode,
    Probe,
    ProgramEnd,
    Request,
    SetAnalog,
    SetOutput,
    Spindle,
    ToolChange,
    WaitInput,
)
from understudy.motion.path import Floats
from understudy.offline.setup import ExplainingMover, Met, Setup
from understudy.offline.straights import is_straight, straights
from understudy.offline.walker import (
    OBSTACLES,
    UNSUPPORTED,
    Event,
    Glide,
    Kind,
    Mounted,
    Run,
    Stand,
    Switch,
    Violation,
    Walker,
    impossible,
    spans_of,
)

__all__ = [
    "OBSTACLES",
    "UNSUPPORTED",
    "Event",
    "Glide",
    "Kind",
    "Mounted",
    "ReadAhead",
    "Reader",
    "Run",
    "Stand",
    "Switch",
    "Violation",
    "Walker",
    "impossible",
    "spans_of",
    "walk",
]

MOST_AHEAD = 256
"""Lines that are read before they are carried out together."""


class Reader:
    """Interprets lines and actions what they ask for to a walker."""

    def __init__(self, setup: Setup, walker: Walker) -> None:
        self._setup = setup
        self._walker = walker
        self.modal = setup.modal

    def read(self, line: ProgramLine) -> None:
        self.carry_out(line, self.understood(line))

    def understood(self, line: ProgramLine) -> Interpretation | Refused:
        """What a line asks for, if it comes next; changes nothing."""
        if isinstance(line.block, Problem):
            return line.block.refused()
        return interpret(
            line.block, self.modal, dialect=self._setup.dialect, position=self._walker.here
        )

    def carry_out(self, line: ProgramLine, step: Interpretation | Refused) -> None:
        self._walker.events.append(line)
        if isinstance(step, Refused):
            self._refuse(line.number, step)
            return
        before, self.modal = self.modal, step.modal
        if step.requests:
            self._carry_out(line, step, before)

    def leave_out(self, line: ProgramLine, move: Move, refused: Refused) -> None:
        """A line that moves, but cannot."""
        found = impossible(line.number, refused, line.text, self._obstacle(move))
        self._walker.events.append(found)

    def _carry_out(self, line: ProgramLine, step: Interpretation, before: Modal) -> None:
        walker = self._walker
        for request in step.requests:
            if (move := move_of(request)) is not None:
                if refused := self._move(line.number, request, move):
                    self.leave_out(line, move, refused)
                    return
            elif refused := self._other(line.number, request, before):
                walker.events.append(impossible(line.number, refused, line.text))
                return
        if step.axes is not None and not isinstance(step.requests[-1], Probe):
            walker.commanded = step.axes

    def _move(self, line: int, request: Request, move: Move) -> Refused | None:
        walker = self._walker
        walker.commanded = None
        if isinstance(request, Probe):
            return walker.probe(request, line)
        refused = walker.move(move, line)
        homes = isinstance(request, GoHome) and homes_arm(request, self._setup.dialect)
        if refused is None and homes:
            walker.rest()
        return refused

    def _other(self, line: int, request: Request, before: Modal) -> Refused | None:
        """Carries out a request that is no move."""
        walker, setup = self._walker, self._setup
        if isinstance(request, SetOutput | SetAnalog):
            walker.set_output(request, line)
        elif isinstance(request, PathMode):
            walker.exact = stops_at_corners(request, setup.dialect)
        elif rests_motion(
            request, before, self.modal, dialect=setup.dialect, at_offsets=setup.rests_at_offsets
        ):
            walker.rest()
            waits = setup.stage is None and isinstance(request, WaitInput)
            timeout = getattr(request, "timeout", None) if waits else None
            kind = stand_kind(request, setup.dialect)
            walker.stand(line, kind, self._met(request, line), timeout)
        if isinstance(request, Spindle):
            walker.process = request.direction != "M5"
        if isinstance(request, ProgramEnd):
            walker.process = False
        if isinstance(request, ToolChange):
            return walker.change_tool(request.tool, line)
        return None

    def _met(self, request: Request, line: int) -> float:
        """Seconds for which a request holds the program up, now that the robot stands."""
        walker, stage = self._walker, self._setup.stage
        if stage is not None:
            met: Met = stage.meet(request, line, walker.now)
            walker.events += met.remarks
            return met.seconds
        if isinstance(request, Dwell):
            return request.seconds
        return 0.0 if isinstance(request, WaitInput) else self._setup.hold_up(request)

    def _obstacle(self, move: Move) -> Kind | None:
        """What is in the way of a move that was refused."""
        mover = self._walker.mover
        if not isinstance(mover, ExplainingMover):
            return None
        return OBSTACLES.get(mover.obstacle(move, self._walker.q))

    def _refuse(self, line: int, refused: Refused) -> None:
        kind: Kind = "unsupported" if refused.code == UNSUPPORTED else "syntax"
        self._walker.events.append(Violation(line, kind, refused.reason, refused.code))


class ReadAhead:
    """Reads lines of the tool on, as if each could be run, and carries many out at once.

    If one cannot, what was read after it is read again: the arm is elsewhere then.
    """

    def __init__(self, reader: Reader, walker: Walker, dialect: Dialect) -> None:
        self._reader = reader
        self._walker = walker
        self._dialect = dialect
        self._waiting: list[ProgramLine] = []
        self._most = 1

    def read(self, line: ProgramLine) -> None:
        block = line.block
        if (
            self._dialect.two_frames
            and self._walker.takes_tool_lines
            and isinstance(block, Block)
            and is_straight(block, self._reader.modal)
        ):
            self._waiting.append(line)
            if len(self._waiting) >= self._most:
                self.settle()
            return
        self.settle()
        self._reader.read(line)

    def settle(self) -> None:
        """Carry out what waits."""
        if not self._waiting:
            return
        reader, walker = self._reader, self._walker
        waiting, self._waiting = self._waiting, []
        blocks = [line.block for line in waiting if isinstance(line.block, Block)]
        moves = straights(blocks, reader.modal, self._dialect, walker.here.pose)
        walker.commanded = None
        done, refused = walker.tool_lines(moves, [line.number for line in waiting])
        walker.events += waiting[:done]
        if refused is None:
            self._most = min(2 * self._most, MOST_AHEAD)
            reader.modal = moves.after(-1)
            return
        self._most = 1
        walker.events.append(waiting[done])
        reader.leave_out(waiting[done], moves.move(done), refused)
        reader.modal = moves.after(done)
        for line in waiting[done + 1 :]:
            self.read(line)
        self.settle()


def walk(program: str | bytes, setup: Setup, start: Floats | None = None) -> Iterator[Event]:
    """All that happens in a program, in the order in which it is known."""
    walker = Walker(setup, start)
    reader = ReadAhead(Reader(setup, walker), walker, setup.dialect)
    last = 0
    for line in program_lines(program, setup.dialect):
        reader.read(line)
        last = line.number if line.text.strip() else last
        if walker.events:
            yield from walker.take()
    reader.settle()
    walker.end(last)
    yield from walker.take()
