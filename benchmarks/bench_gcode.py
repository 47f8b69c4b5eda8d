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
    GRBLHAL_MACHINE,
    Block,
    Interpretation,
    KnownPosition,
    Modal,
    interpret,
    tokenize,
)
from understudy.gcode.program import program_lines, read, warm

LINES, ROUNDS = 20_000, 7
PARSED = "blocks, line after line"
"""From text to blocks, none of them kept, as in the walk through a program."""


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
        "requests": lambda: carry_out(data),
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
        aim = "≥ 500 k lines/s" if name == PARSED else ""
        found.append(Row(name, ours, peer, f"{plain / median:.1f}×", aim))
    return found[1:]
