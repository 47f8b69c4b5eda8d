"""Programs on a plain machine under grblHAL: sent line by line, as a sender does.

Each line goes out when the one before it is answered; `error:n` ends the program. Lines get the N
word of their line in the file, so that status reports (`Ln:`) show it.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from understudy.errors import Refused
from understudy.gcode import Problem, parse
from understudy.robots.grblhal.controller import Notice
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.robots.grblhal.operator import MachineActions
from understudy.robots.grblhal.texts import ERRORS
from understudy.simulation.program.run import OLDEST, LineEvents, LineFeed, ProgramRun

if TYPE_CHECKING:
    from understudy.robots.grblhal.machine.machine import Machine

OWN_NUMBER = re.compile(r"(\s*/?)\s*(?:[Nn]\s*[0-9.]+)?(.*)", re.DOTALL)
DROPPED = Refused("the machine has dropped the line")


class LineSender:
    """`LineRobot`: one line at a time, the next one after its answer."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._firmware = machine.firmware

    def has_room(self, opened: int, now: int) -> bool:
        lines = self._firmware.lines
        free = opened == 0 and lines.accepts_line(now)
        return free and lines.gcode_refusal(now) is None

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        self._firmware.lines.execute(self._numbered(text, number), now)
        return (number or OLDEST,)

    def line(self, now: int) -> int:
        return self._firmware.reading(now).line

    def stops(self) -> int:
        return self._firmware.runner.state.stops

    def drop(self, now: int) -> None:
        """Nothing: the machine finishes the lines that it has accepted; an alarm drops them."""

    def report_to(self, events: LineEvents) -> None:
        def receive(notice: Notice, now: int) -> None:
            if notice.kind == "answer":
                events.finished(OLDEST, _refusal(notice.code), now)
            elif notice.kind == "void":
                events.finished(OLDEST, DROPPED, now)
            elif notice.kind == "settled":
                events.changed(now)

        self._firmware.listen(receive)

    def _numbered(self, text: str, number: int) -> str:
        """The line with its number as N word, if the firmware reads it as the same line."""
        dialect = self._firmware.runner.options.wire
        block = parse(text, dialect)
        found = OWN_NUMBER.fullmatch(text)
        if isinstance(block, Problem) or not number or found is None:
            return text
        if not (block.commands or block.values):
            return text
        numbered = f"{found[1]}N{number} {found[2].lstrip()}"
        return text if isinstance(parse(numbered, dialect), Problem) else numbered


def _refusal(code: int) -> Refused | None:
    return Refused(f"error:{code} ({ERRORS.get(code, 'unknown')})", code) if code else None


def program_run(machine: "Machine") -> ProgramRun:
    feed = LineFeed(MachineActions(machine), LineSender(machine), machine.io.digital)
    return ProgramRun(feed, GcodeLanguage(machine.firmware.runner.options.wire))
