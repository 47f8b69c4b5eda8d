"""Programs on a KUKA: G-code as records, a few of them ahead so that lines pass into each other."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.blocks import Problem, number_text
from understudy.ports.program import Switched
from understudy.robots.kuka.frames import UNIT_OF
from understudy.robots.kuka.operator import KukaActions
from understudy.robots.kuka.program import ReadLine, Step, read_line, read_lines
from understudy.robots.kuka.records import BASES, HOMES, LINEAR, TOOLS, Record
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.program.run import LineEvents, LineFeed, ProgramRun

BEFORE_FIRST = -1
"""Line number of the records that are sent before the first line of a program."""


class RecordLanguage(NamedTuple):
    """`Language`: G-code that the server has records for. `tool`, `base`: those of home."""

    tool: int
    base: int

    @property
    def target_line(self) -> str:
        return "G1 X{x} Y{y} Z{z} A{rz} B{ry} C{rx}"

    def lines(self, text: str) -> Iterator[ReadLine]:
        return read_lines(text)

    def opening(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        """Tool, base and speed as they are at that line; the arc is not switched on."""
        tool = base = 0
        speed: float | None = None
        for step in _steps(lines, first):
            if step.kind in HOMES:
                tool, base = self.tool, BASES[self.base - 1]
            tool = step.kind if step.kind in TOOLS else tool
            base = step.kind if step.kind in BASES else base
            speed = step.words.get("F", speed)
        return [
            *([f"T{tool}"] if tool else []),
            *([f"G{base}"] if base else []),
            *([f"G1 F{number_text(speed / UNIT_OF['F'])}"] if speed is not None else []),
        ]

    def process_before(self, lines: Sequence[ReadLine], first: int) -> tuple[Switched, ...]:
        """The weld job of the last E word; 0 is off."""
        jobs = [(step.line, step.words["E"]) for step in _steps(lines, first) if "E" in step.words]
        if not jobs or not jobs[-1][1]:
            return ()
        line, job = jobs[-1]
        return (Switched(f"E{number_text(job)}", line),)

    def restoring(self, lines: Sequence[ReadLine], first: int) -> list[str] | Refused:
        place: dict[str, float] = {}
        for step in _steps(lines, first):
            place = {} if step.kind != LINEAR else place | step.words
        if not {"X", "Y", "Z"} <= place.keys():
            return Refused(
                f"line {first} begins where an earlier line ends, and no line before it names "
                "X, Y and Z of that place: begin at an earlier line"
            )
        words = (f"{word}{number_text(place[word] / UNIT_OF[word])}" for word in place)
        there = " ".join(word for word in words if word[0] not in "EF")
        return [f"G1 {there}", *(f"G1 {on.word}" for on in self.process_before(lines, first))]


def _steps(lines: Sequence[ReadLine], first: int) -> Iterator[Step]:
    """The steps of the lines before a line."""
    for line in lines[: first - 1]:
        yield from line.steps if isinstance(line.steps, list) else ()


class RecordFeed:
    """`LineRobot`. A refused record stops the robot: the server would skip it and go on."""

    def __init__(self, server: KukaGcodeServer) -> None:
        self._server = server
        self.stops = server.stops

    def has_room(self, opened: int, now: int) -> bool:
        return opened < self._server.records_ahead and bool(self._server.room())

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        if refused := self._server.motion_refusal():
            return refused
        steps = read_line(text, number)
        if isinstance(steps, Problem):
            return steps.refused()
        line = number or BEFORE_FIRST
        # The client follows the numbers; a new number would confirm a record that it never sent.
        seq = max(self._server.progress().completed, 0)
        for step in steps:
            self._server.submit(Record(seq, step.kind, step.words, line=line), now)
        return [line] * len(steps)

    def line(self, now: int) -> int:
        return self._server.line()

    def drop(self, now: int) -> None:
        """Drops the records: after a release the server would go on with them."""
        self._server.stop(now)

    def report_to(self, events: LineEvents) -> None:
        def completed(record: Record, refusal: str, now: int) -> None:
            events.finished(record.line, Refused(refusal) if refusal else None, now)
            if refusal:
                self.drop(now)

        self._server.on_program_record(completed)


def program_run(server: KukaGcodeServer) -> ProgramRun:
    start = server.model.start
    feed = LineFeed(KukaActions(server), RecordFeed(server))
    return ProgramRun(feed, RecordLanguage(start.tool, start.base))
