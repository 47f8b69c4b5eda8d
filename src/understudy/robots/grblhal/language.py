"""G-code as the language of a program: reading its lines, and starting in the middle."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.dialect import Dialect
from understudy.gcode.program import ProgramLine, program_lines
from understudy.ports.program import Switched
from understudy.robots.grblhal.restart import opening, process_before, restoring

TO_POSE = "G1 X{x} Y{y} Z{z} A{rx} B{ry} C{rz}"
TO_JOINTS = "G1 X{j1} Y{j2} Z{j3} A{j4} B{j5} C{j6}"


class GcodeLanguage(NamedTuple):
    """`Language` of a controller that reads G-code."""

    dialect: Dialect

    @property
    def target_line(self) -> str:
        return TO_POSE if self.dialect.two_frames else TO_JOINTS

    def lines(self, text: str) -> Iterator[ProgramLine]:
        return program_lines(text, self.dialect)

    def opening(self, lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
        return opening(lines, first)

    def process_before(self, lines: Sequence[ProgramLine], first: int) -> tuple[Switched, ...]:
        return process_before(lines, first)

    def restoring(self, lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
        return restoring(lines, first, self.dialect)
