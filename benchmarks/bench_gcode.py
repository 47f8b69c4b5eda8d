"""Lines of a program read per second: word by word in Python, and in compiled code.

They are timed in turns, so that other load on the machine affects all of them.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable

from benchmarks import Row
from understudy.gcode import (
    ARM,
    GRBLHAL_MACHINE,
    Block,
    Interpretation,
    KnownPosition,
    Modal,
    interpret,
    tokenize,
)
from understudy.gcode.program import program_lines, program_parts, read, warm
from understudy.offline.walk import straight_runs, straights

LINES, ROUNDS = 20_000, 7
PARSED = "blocks, line after line"
"""From text to blocks, none of them kept, as in the walk through a program."""
REQUESTS = "requests, in columns"
"""From text to targets, as in the walk through straight lines of the tool."""


def program(lines: int) -> bytes:
    """A spiral in short moves, as a CAM system writes it."""
    return b"\n".join(
        b"N%d G1 X%.3f Y%.3f Z%.3f F%d"
        % (i, 80 * math.cos(i / 90), 80 * math.sin(i / 90), i / 1000, 600 + i % 900)
        for i in range(lines)
    )


def carry_out(data: bytes) -> None:
    modal, at = Modal(), KnownPosition()
    for line in program_lines(data, GRBLHAL_MACHINE):
        assert isinstance(line.block, Block)
        step = interpret(line.block, modal, dialect=GRBLHAL_MACHINE, position=at)
        assert isinstance(step, Interpretation)
        modal, at = step.modal, KnownPosition(step.axes or at.axes)


def in_columns(data: bytes) -> None:
    """From text to targets and feeds as the walk reads straight lines of the tool."""
    modal, here = Modal(motion="G1", feed=600.0), (0.0,) * 6
    for part in program_parts(data, ARM):
        assert straight_runs(part, modal)[0] == len(part)
        moves = straights(part.values, modal, ARM, here)
        modal = moves.after(-1)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def rows() -> list[Row]:
    warm()
    data = program(LINES)
    texts = data.decode().split("\n")
    contests: dict[str, Callable[[], object]] = {
        "words, plain": lambda: [tokenize(text) for text in texts],
        "words, kernel": lambda: read(data),
        "words, kernel, single precision": lambda: read(data, GRBLHAL_MACHINE.spelling),
        PARSED: lambda: deque(program_lines(data, GRBLHAL_MACHINE), maxlen=0),
        "blocks, all of them kept": lambda: list(program_lines(data, GRBLHAL_MACHINE)),
        "requests, line after line": lambda: carry_out(data),
        REQUESTS: lambda: in_columns(data),
    }
    times: dict[str, list[float]] = {name: [] for name in contests}
    for _ in range(ROUNDS):
        for name, work in contests.items():
            times[name].append(seconds(work))
    plain = statistics.median(times["words, plain"])
    peer = f"{LINES / plain / 1000:,.0f} k lines/s words, plain"
    found = []
    for name, taken in times.items():
        median = statistics.median(taken)
        ours = f"{LINES / median / 1000:,.0f} k lines/s"
        aim = "≥ 500 k lines/s" if name in (PARSED, REQUESTS) else ""
        found.append(Row(name, ours, peer, f"{plain / median:.1f}×", aim))
    return found[1:]
