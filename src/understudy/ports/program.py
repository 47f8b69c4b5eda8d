"""Programs on a robot: what operators do with them, and what the language of a robot declares.

A kind of robot offers `program_run(robot)`, a part that is a `ProgramControl`.
`simulation.program.run.ProgramRun` is one for every robot that takes lines: it needs a `Language`
and a controller (`simulation.program.run.LineFeed` for a robot that has none).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Component, ControllerStatus, Tally

ProcessChoice = Literal["restore", "leave"]
"""On a start in the middle: switch on again what earlier lines switched on, or leave it off."""
LineState = Literal["running", "done", "failed"]
RunState = Literal["idle", "running", "paused", "done", "failed"]
Outcome = TypeVar("Outcome")
Ended = Callable[[str, int], None]
"""Called with the outcome of a run, as text, and the time."""

LONGEST_PROGRAM = 16 * 1024 * 1024
"""Characters of a program."""
MOST_LINES = 1_000_000
LONGEST_LINE = 10_000
"""Characters of a line."""
MOST_BREAKPOINTS = 1000


class Reading(Struct, frozen=True):
    """The state of a program. `line`: the line of the file that is executed, or where it ended.

    `elapsed_s`: since the start. `checksum`: of the text. `warning`: what earlier lines switch on
    and this run left off. `collisions`: of the robot in this run. `breakpoints`: lines before which
    a run stops. `lost_mm`: how far along its line the arc was lost that has ended the run.
    """

    name: str
    state: RunState
    line: int
    lines: int
    error: str
    step: bool
    elapsed_s: float
    checksum: int = 0
    warning: str = ""
    collisions: int = 0
    breakpoints: tuple[int, ...] = ()
    lost_mm: float | None = None


class Switched(Struct, frozen=True):
    """A command of an earlier line that has switched something on: `M3`, `M7`, `M64 P3`.

    `output`: the number of the digital output; None for spindle (arc) and coolant (gas).
    `analog`: it sets a value, and switches nothing."""

    word: str
    line: int
    output: int | None = None
    analog: bool = False


class LanguageWord(Struct, frozen=True):
    """A word of a language: `G4`, `dwell`, `P: seconds`."""

    word: str
    meaning: str
    parameters: str = ""


class LineProblem(Struct, frozen=True):
    """Why a line cannot be read. `column`: where it begins, from 1 on; 0: the whole line."""

    line: int
    column: int
    message: str


class SourceLine(Protocol):
    """A line of a program, read and not carried out."""

    @property
    def number(self) -> int:
        """The number of the line in the file, from 1 on."""
        ...

    @property
    def text(self) -> str: ...

    @property
    def acts(self) -> bool:
        """Whether it does something: not empty, no comment."""
        ...

    @property
    def problem(self) -> Refused | None:
        """Why it cannot be read."""
        ...


class Language(Protocol):
    """The language in which programs of a robot are written."""

    @property
    def target_line(self) -> str:
        """A straight line to a taught point: `{x}` … `{rz}` are its pose (mm, deg), `{j1}` … its
        joints (deg)."""
        ...

    def lines(self, text: str) -> Iterator[SourceLine]:
        """All lines up to the end of the program; reading goes on after one with a problem."""
        ...

    def opening(self, lines: Sequence[Any], first: int) -> list[str] | Refused:
        """The lines to send before line ``first`` so that it has the same effect as in a full run.

        ``lines`` come from `lines` and have no problem.
        """
        ...

    def process_before(self, lines: Sequence[Any], first: int) -> tuple[Switched, ...]:
        """What the lines before ``first`` have switched on and not off again, in their order."""
        ...

    def restoring(self, lines: Sequence[Any], first: int) -> list[str] | Refused:
        """The lines that bring the robot to the start of ``first`` and switch it on there."""
        ...


@runtime_checkable
class GoesOnInLine(Protocol):
    """A language in which a straight line can be begun in the middle."""

    def going_on(self, lines: Sequence[Any], first: int, along: float) -> list[str] | Refused:
        """As `restoring`, at a place on line ``first``: metres from its start."""
        ...


@runtime_checkable
class KnowsLoss(Protocol):
    """A controller that knows where a process has gone out by itself."""

    def process_lost(self) -> tuple[float, float, float] | None:
        """The place of the tool, metres; None: it has not."""
        ...


@runtime_checkable
class HasWords(Protocol):
    """A language that lists its words, for completion and explanations in an editor."""

    def words(self) -> Sequence[LanguageWord]: ...


class ProgramController(Protocol):
    """A controller that carries out the lines of a program, simulated or real."""

    def hold(self, now: int) -> Refused | None: ...

    def cycle_start(self, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None: ...

    def status(self, now: int) -> ControllerStatus: ...

    def tally(self, now: int) -> Tally: ...

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None: ...


# ── the operator's side ─────────────────────────────────────────────────────────────────────────


class LongPrograms(Protocol):
    """Work on all lines of a program, which can take seconds and changes nothing by itself."""

    def prepare(self, text: str) -> Generator[None, None, Refused | None]:
        """Reads the lines of a text; yields often. The loaded program stays as it is."""
        ...

    def load_prepared(self, name: str, breakpoints: Sequence[int] = ()) -> Refused | None:
        """Loads the text that was prepared last; nothing moves."""
        ...

    def problems(self, text: str) -> Generator[None, None, list[LineProblem]]:
        """The lines of a text that cannot be read; yields often. The loaded program stays."""
        ...

    def starting(self, from_line: int) -> Callable[[], Any]:
        """A function that finds what a start at a line needs. It reads all lines before that one;
        a thread can call it."""
        ...

    def use_start(self, start: Any) -> None:
        """Keeps what `starting` found, for the next start at that line."""
        ...


class ProgramCommands(Protocol):
    """What an operator does with a program."""

    def run(
        self,
        now: int,
        *,
        from_line: int = 1,
        step: bool = False,
        process: ProcessChoice | None = None,
    ) -> Refused | None:
        """Starts at a line, with the modes that the lines before it set; `step`: line by line.

        ``process``: about arc, gas and outputs that the lines before it switched on.
        """
        ...

    def go_on(self, overlap: float, now: int) -> Refused | None:
        """Starts on the line on which the process was lost, ``overlap`` metres before that place,
        and switches it on there."""
        ...

    def step(self, now: int) -> Refused | None: ...

    def pause(self, now: int) -> Refused | None: ...

    def resume(self, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None: ...

    def set_breakpoints(self, lines: Sequence[int], now: int) -> tuple[int, ...]:
        """Sets the lines before which a run stops, instead of those of before. Returns lines that
        the controller has already: there it stops from the next run on."""
        ...


class SingleLines(Protocol):
    """Lines that an operator types, while no program runs."""

    def run_line(self, text: str, now: int) -> Refused | None: ...

    def line_outcome(self, now: int) -> tuple[LineState, str]:
        """The state of the last line, and why it failed."""
        ...


class ProgramText(Protocol):
    """The loaded program, and its language."""

    @property
    def text(self) -> str: ...

    @property
    def target_line(self) -> str:
        """The line of a target, as in `Language`."""
        ...

    def words(self) -> Sequence[LanguageWord]:
        """The words of the language; none if it does not list them."""
        ...

    def missing_process(self, from_line: int) -> tuple[Switched, ...]:
        """What the lines before ``from_line`` switch on and is off now."""
        ...


@runtime_checkable
class ProgramReadings(Protocol):
    """What an operator sees of a running program."""

    def under_way(self) -> bool: ...

    def reading(self, now: int) -> Reading: ...

    def in_file(self, reason: str) -> str:
        """A text with the controller's line numbers replaced by those of the file."""
        ...

    def on_end(self, listener: Ended) -> None: ...


def all_read(work: Generator[None, None, Outcome]) -> Outcome:
    """The outcome of work that is not interrupted."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


class ProgramControl(
    LongPrograms, ProgramCommands, SingleLines, ProgramText, ProgramReadings, Component, Protocol
):
    """A program on a robot."""
