"""The workbench of one block: what it says, what it changes, what is still unexplained."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from understudy.errors import Refused
from understudy.gcode import faults
from understudy.gcode.blocks import Block
from understudy.gcode.commands import AxisUse, Group
from understudy.gcode.dialect import ZERO, Axes, Dialect, Frame
from understudy.gcode.modal import Modal
from understudy.gcode.requests import Request


class Position(Protocol):
    """Where the program stands: the last target commanded, not where the machine is by now."""

    @property
    def axes(self) -> Axes:
        """Axis positions, mm or deg."""
        ...

    @property
    def pose(self) -> Axes:
        """The tool: x y z in mm, rx ry rz in deg. Asked for only by dialects with two frames."""
        ...


@dataclass(slots=True)
class Work:
    """One block on its way through the steps.

    `left`: letters whose values nobody has used yet. `named`: the axis words by axis, in axis
    units once `convert_units` is through. `changes`: fields of the modal state to replace.
    """

    block: Block
    old: Modal
    dialect: Dialect
    position: Position
    jogging: bool
    motion: str
    plane: str
    imperial: bool
    incremental: bool
    feed_mode: str
    coordinates: int
    frame: Frame
    axis: AxisUse
    named: dict[int, float]
    left: set[str]
    feed: float = 0.0
    here: Axes = ZERO
    target: Axes = ZERO
    reached: Axes | None = None
    reached_frame: Frame = "axes"
    changes: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def command(self, group: Group) -> str:
        """The code of this group, empty if the line has none."""
        return self.block.commands.get(group, "")

    def has(self, letter: str) -> bool:
        """Is there such a word that nobody has used yet?"""
        return letter in self.left

    def value(self, letter: str, default: float = 0.0) -> float:
        return self.block.values.get(letter, default)

    def use(self, letters: str) -> None:
        self.left.difference_update(letters)

    def exact(self, value: float) -> float:
        return self.dialect.exact(value)

    def refuse(self, code: int, word: str, message: str) -> Refused:
        return self.block.problem(code, word, message).refused()

    def missing(self, command: str, letter: str) -> Refused:
        return self.refuse(faults.MISSING_WORD, command, f"needs a {letter} word")

    def offset(self, axis: int) -> float:
        """From the program's zero to the machine's, along one axis."""
        work, g92 = self.old.offsets[self.coordinates][axis], self.old.g92[axis]
        length = self.old.tool_length[axis]
        if not (work or g92 or length):
            return 0.0
        return self.exact(self.exact(work + g92) + length)


def six(values: list[float]) -> Axes:
    x, y, z, a, b, c = values
    return x, y, z, a, b, c
