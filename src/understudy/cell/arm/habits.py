"""How a controller goes about its work, and where its queue ends."""

from dataclasses import dataclass
from typing import Protocol

from understudy.errors import Refused
from understudy.gcode import Dialect, Modal
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import Move
from understudy.motion.path import Floats, Path


class Mover(Protocol):
    """Moves as paths of the joints."""

    def path(self, move: Move, start: Floats, *, line: int, exact: bool) -> Path | Refused: ...

    def axes(self, q: Floats) -> Axes: ...

    def pose(self, q: Floats) -> Axes: ...


class Arc(Protocol):
    """A power source, as far as a program waits for it."""

    @property
    def phase(self) -> str: ...

    @property
    def reason(self) -> str:
        """Why there is a fault, if there is one."""
        ...

    def program_ended(self, now: int) -> None: ...


@dataclass(frozen=True)
class Habits:
    """How this controller goes about its work.

    ``home`` in degrees; ``homing_share`` of the rapid speed; ``deviation`` at corners;
    ``arc_wait``: M3 and M5 wait for the arc by themselves.
    """

    dialect: Dialect
    modal: Modal
    home: Axes
    homing_share: float
    deviation: float
    arc_wait: bool = True


class Here:
    """`Position`: where the queue ends; the pose is reckoned only if a line needs it."""

    def __init__(self, mover: Mover, q: Floats, axes: Axes | None) -> None:
        self._mover = mover
        self._q = q
        self._axes = axes

    @property
    def axes(self) -> Axes:
        return self._axes or self._mover.axes(self._q)

    @property
    def pose(self) -> Axes:
        return self._mover.pose(self._q)
