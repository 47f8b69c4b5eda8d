"""Through a program without running it: its lines read, and handed to a walker."""

from collections.abc import Iterator

from understudy.errors import Refused
from understudy.gcode import Block, Modal, Problem, Step, interpret
from understudy.gcode import requests as ask
from understudy.gcode.dialect import Dialect
from understudy.gcode.program import ProgramLine, program_lines
from understudy.motion.path import Floats
from understudy.offline.setup import ExplainingMover, Met, Setup
from understudy.offline.straights import is_straight, straights
from understudy.offline.walker import (
    MOVES,
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
    "MOVES",
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

    def understood(self, line: ProgramLine) -> Step | Refused:
        """What a line asks for, if it comes next; changes nothing."""
        if isinstance(line.block, Problem):
            return line.block.refused()
        return interpret(
            line.block, self.modal, dialect=self._setup.dialect, position=self._walker.here
        )

    def carry_out(self, line: ProgramLine, step: Step | Refused) -> None:
        self._walker.events.append(line)
        if isinstance(step, Refused):
            self._refuse(line.number, step)
            return
        before, self.modal = self.modal, step.modal
        if step.requests:
            self._carry_out(line, step, before)

    def leave_out(self, line: ProgramLine, move: ask.Move, refused: Refused) -> None:
        """A line that moves, but cannot."""
        found = impossible(line.number, refused, line.text, self._obstacle(move))
        self._walker.events.append(found)

    def _carry_out(self, line: ProgramLine, step: Step, before: Modal) -> None:
        walker = self._walker
        for request in step.requests:
            move = request.move if isinstance(request, ask.GoHome | ask.Probe) else request
            if isinstance(move, MOVES):
                if refused := self._move(line.number, request, move):
                    self.leave_out(line, move, refused)
                    return
            elif refused := self._other(line.number, request, before):
                walker.events.append(impossible(line.number, refused, line.text))
                return
        if step.axes is not None and not isinstance(step.requests[-1], ask.Probe):
            walker.commanded = step.axes

    def _move(self, line: int, request: ask.Request, move: ask.Move) -> Refused | None:
        walker = self._walker
        walker.commanded = None
        if isinstance(request, ask.Probe):
            return walker.probe(request, line)
        refused = walker.move(move, line)
        if refused is None and isinstance(request, ask.GoHome) and request.name == "G28":
            self._come_home()
        return refused

    def _come_home(self) -> None:
        """Where G28 makes an arm homed, it comes to rest there."""
        if self._setup.dialect.two_frames:
            self._walker.rest()

    def _other(self, line: int, request: ask.Request, before: Modal) -> Refused | None:
        walker = self._walker
        if isinstance(request, ask.Dwell):
            walker.rest()
            walker.stand(line, "dwell", self._met(request, line))
        elif isinstance(request, ask.WaitInput):
            walker.rest()
            known = self._setup.stage is not None
            seconds = self._met(request, line)
            walker.stand(line, "io", seconds, None if known else request.timeout)
        elif isinstance(request, ask.SetOutput | ask.SetAnalog):
            walker.throw(request, line)
        elif isinstance(request, ask.PathMode):
            walker.exact = self._setup.dialect.two_frames and request.name != "G64"
        elif self._rests(request, before):
            arc = isinstance(request, ask.Spindle) and self._setup.dialect.arm
            walker.rest()
            walker.stand(line, "process" if arc else "io", self._met(request, line))
        if isinstance(request, ask.Spindle):
            walker.process = request.direction != "M5"
        if isinstance(request, ask.ProgramEnd):
            walker.process = False
        if isinstance(request, ask.ToolChange):
            return walker.change_tool(request.tool, line)
        return None

    def _met(self, request: ask.Request, line: int) -> float:
        """Seconds for which a request holds the program up, now that the robot stands."""
        walker, stage = self._walker, self._setup.stage
        if stage is not None:
            met: Met = stage.meet(request, line, walker.now)
            walker.events += met.remarks
            return met.seconds
        if isinstance(request, ask.Dwell):
            return request.seconds
        return 0.0 if isinstance(request, ask.WaitInput) else self._setup.hold_up(request)

    def _obstacle(self, move: ask.Move) -> Kind | None:
        """What is in the way of a move that was refused."""
        mover = self._walker.mover
        if not isinstance(mover, ExplainingMover):
            return None
        return OBSTACLES.get(mover.obstacle(move, self._walker.q))

    def _rests(self, request: ask.Request, before: Modal) -> bool:
        """Does motion end before this? A switch that is there already is none."""
        if isinstance(request, ask.Spindle):
            return (request.direction, request.speed) != (before.spindle, before.speed)
        if isinstance(request, ask.Coolant):
            return (request.mist, request.flood) != (before.mist, before.flood)
        if isinstance(request, ask.Overrides):
            return (request.speed, request.hold) != (before.speed_override, before.hold_allowed)
        if isinstance(request, ask.OffsetsChanged):
            return self._setup.rests_at_offsets and _zero(before) != _zero(self.modal)
        if isinstance(request, ask.ToolChange):
            return request.physical
        return isinstance(request, ask.ProgramPause | ask.ProgramEnd)

    def _refuse(self, line: int, refused: Refused) -> None:
        kind: Kind = "unsupported" if refused.code == UNSUPPORTED else "syntax"
        self._walker.events.append(Violation(line, kind, refused.reason, refused.code))


def _zero(modal: Modal) -> tuple[object, ...]:
    """All that makes the zero in force; a system that is not chosen has no part in it."""
    chosen = modal.coordinates
    return chosen, modal.offsets[chosen], modal.g92, modal.tool_length


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
