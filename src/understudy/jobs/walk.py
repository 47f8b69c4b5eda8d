"""Through a program without running it: its lines read, and handed to a walker."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode import Block, Modal, Problem, Step, interpret
from understudy.gcode import requests as ask
from understudy.gcode.dialect import Axes
from understudy.gcode.program import ProgramLine, program_lines
from understudy.jobs.setup import ExplainingMover, Met, Setup
from understudy.jobs.walker import (
    MOVES,
    OBSTACLES,
    UNSUPPORTED,
    Event,
    Glide,
    Here,
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
from understudy.motion.path import Floats
from understudy.space.transform import rotation, turns
from understudy.units import DEG

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
PLAIN_GROUPS = frozenset({"motion", "distance", "units", "feed mode"})
TOOL_LETTERS = frozenset("XYZ")


class Reader:
    """Interprets lines and hands what they ask for to a walker."""

    def __init__(self, setup: Setup, walker: Walker) -> None:
        self._setup = setup
        self._walker = walker
        self._here = Here(walker)
        self.modal = setup.modal

    def read(self, line: ProgramLine) -> None:
        self.carry_out(line, self.understood(line))

    def understood(self, line: ProgramLine) -> Step | Refused:
        """What a line asks for, if it comes next; changes nothing."""
        if isinstance(line.block, Problem):
            return line.block.refused()
        return interpret(line.block, self.modal, dialect=self._setup.dialect, position=self._here)

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
        return walker.move(move, line)

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


class _Ahead(NamedTuple):
    """A line of the tool that was read, but not carried out."""

    line: ProgramLine
    step: Step
    move: ask.LineMove


class ReadAhead:
    """Reads lines of the tool on, as if each could be run, and carries many out at once.

    If one cannot, what was read after it is read again: the arm is elsewhere then.
    """

    def __init__(self, reader: Reader, walker: Walker) -> None:
        self._reader = reader
        self._walker = walker
        self._waiting: list[_Ahead] = []
        self._most = 1

    def read(self, line: ProgramLine) -> None:
        if not self._may_wait(line.block):
            self.settle()
            self._reader.read(line)
            return
        step = self._reader.understood(line)
        move = _line_of_the_tool(step)
        if move is None or isinstance(step, Refused):
            # What was assumed when it was understood may have been wrong.
            self.settle()
            self._reader.read(line)
            return
        self._waiting.append(_Ahead(line, step, move))
        self._reader.modal = step.modal
        self._walker.assumed = _as_reckoned(step.pose)
        if len(self._waiting) >= self._most:
            self.settle()

    def settle(self) -> None:
        """Carry out what waits."""
        if not self._waiting:
            return
        walker, waiting, self._waiting = self._walker, self._waiting, []
        walker.assumed = walker.commanded = None
        moves, numbers = [each.move for each in waiting], [each.line.number for each in waiting]
        done, refused = walker.tool_lines(moves, numbers)
        walker.events += [each.line for each in waiting[:done]]
        if refused is None:
            self._most = min(2 * self._most, MOST_AHEAD)
            return
        self._most = 1
        line, step, move = waiting[done]
        walker.events.append(line)
        self._reader.leave_out(line, move, refused)
        self._reader.modal = step.modal
        for each in waiting[done + 1 :]:
            self.read(each.line)
        self.settle()

    def _may_wait(self, block: Block | Problem) -> bool:
        """Nothing but a line of the tool, for which where the joints are does not matter."""
        return (
            isinstance(block, Block)
            and not TOOL_LETTERS.isdisjoint(block.values)
            and PLAIN_GROUPS.issuperset(block.commands)
            and self._walker.takes_tool_lines
        )


def _line_of_the_tool(step: Step | Refused) -> ask.LineMove | None:
    if isinstance(step, Refused) or len(step.requests) != 1:
        return None
    move = step.requests[0]
    if not isinstance(move, ask.LineMove) or not move.speed or move.duration is not None:
        return None
    return move


def _as_reckoned(pose: Axes | None) -> Axes | None:
    """A commanded pose with its angles as they would be read from the joints."""
    if pose is None:
        return None
    x, y, z, *angles = pose
    return (x, y, z, *_plain_angles(*angles))


@lru_cache(maxsize=1024)
def _plain_angles(rx: float, ry: float, rz: float) -> tuple[float, float, float]:
    """Degrees of the same rotation."""
    a, b, c = turns(rotation(rx * DEG, ry * DEG, rz * DEG))
    return a / DEG, b / DEG, c / DEG


def walk(program: str | bytes, setup: Setup, start: Floats | None = None) -> Iterator[Event]:
    """All that happens in a program, in the order in which it is known."""
    walker = Walker(setup, start)
    reader = ReadAhead(Reader(setup, walker), walker)
    last = 0
    for line in program_lines(program, setup.dialect):
        reader.read(line)
        last = line.number if line.text.strip() else last
        yield from walker.take()
    reader.settle()
    walker.end(last)
    yield from walker.take()
