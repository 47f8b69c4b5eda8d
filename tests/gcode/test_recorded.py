"""The real firmware's answers, line by line: same error numbers, modes, offsets, positions."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from understudy.errors import Refused
from understudy.gcode import (
    GRBLHAL_MACHINE,
    Axes,
    KnownPosition,
    Modal,
    Problem,
    after_reset,
    interpret,
    jog,
    modes_report,
    parse,
)
from understudy.gcode.blocks import COORDINATE_SYSTEMS

STEPS_PER_UNIT = (250, 250, 250, 100, 100, 100)
PRINTED_WITHIN = 0.0015


def sessions() -> Iterator[tuple[str, list[str]]]:
    text = (Path(__file__).parent / "recorded.txt").read_text()
    for part in text.split("\n== ")[1:]:
        head, *rows = part.strip("\n").split("\n")
        yield head.split(":")[0], rows


class Controller:
    """A minimal controller around the interpreter."""

    def __init__(self) -> None:
        self.modal = Modal()
        self.at = KnownPosition()

    def say(self, line: str) -> str:
        if line == "$G":
            return modes_report(self.modal)
        jogging = line.startswith("$J=")
        block = parse(line.removeprefix("$J="), GRBLHAL_MACHINE)
        if isinstance(block, Problem):
            return str(block.code)
        carry_out = jog if jogging else interpret
        step = carry_out(block, self.modal, dialect=GRBLHAL_MACHINE, position=self.at)
        if isinstance(step, Refused):
            return str(step.code)
        self.modal = step.modal
        self.at = KnownPosition(step.axes or self.at.axes)
        return "ok"

    def stored(self, name: str) -> Axes:
        if name in COORDINATE_SYSTEMS:
            return self.modal.offsets[COORDINATE_SYSTEMS.index(name)]
        modal = self.modal
        return {"G28": modal.g28, "G30": modal.g30, "G92": modal.g92, "TLO": modal.tool_length}[
            name
        ]


def on_steps(axes: Axes) -> list[float]:
    """Rounded to whole steps in single precision, halves away from zero."""
    steps = [
        np.float32(axis) * np.float32(per) for axis, per in zip(axes, STEPS_PER_UNIT, strict=True)
    ]
    return [
        float(np.copysign(np.floor(abs(float(step)) + 0.5), step)) / per
        for step, per in zip(steps, STEPS_PER_UNIT, strict=True)
    ]


def numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


SESSIONS = dict(sessions())


@pytest.mark.parametrize("name", SESSIONS)
def test_the_answers_equal_the_firmwares(name: str) -> None:
    controller = Controller()
    for row in SESSIONS[name]:
        if " | " in row:
            line, answer = row.rsplit(" | ", 1)
            assert controller.say(line) == answer, row
        elif row == "^X":
            controller.modal = after_reset(controller.modal)
        elif row.startswith("@ "):
            expected = pytest.approx(numbers(row[2:]), abs=PRINTED_WITHIN)
            assert on_steps(controller.at.axes) == expected, row
        elif stored := re.fullmatch(r"# (\S+):(.*)", row):
            expected = pytest.approx(numbers(stored[2]), abs=PRINTED_WITHIN)
            assert controller.stored(stored[1]) == expected, row
