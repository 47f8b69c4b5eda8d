"""What a program is reckoned on: who moves, in what language, planned how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.dialect import Axes, Dialect
from understudy.gcode.requests import AxisMove, Move, Request
from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Limits, Path
from understudy.motion.profile import Profile


class Mover(Protocol):
    """Moves as paths of the joints of an arm, or of the axes of a machine."""

    @property
    def limits(self) -> Limits: ...

    @property
    def deviation(self) -> float:
        """How closely corners are rounded."""
        ...

    def axes(self, q: Floats, /) -> Axes:
        """Axis positions, mm or deg."""
        ...

    def pose(self, q: Floats, /) -> Axes:
        """The tool: mm and deg."""
        ...

    def path(self, move: Move, start: Floats, *, line: int, exact: bool) -> Path | Refused: ...


@runtime_checkable
class StraightMover(Protocol):
    """A mover that takes many straight lines at once, since it refuses none."""

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool
    ) -> Path: ...


def _at_once(request: Request) -> float:
    return 0.0


AS_SWITCHED_ON = Modal()


@dataclass(frozen=True)
class Setup:
    """A robot as a program sees it.

    `mount`: the mover with another tool in hand. `hold_up`: seconds for which a switch holds the
    program up (spin-up, ignition). `rests_at_offsets`: motion ends before offsets change.
    `modal`, `start`: what is in force and where the joints are before the first line. `dynamics`:
    what the joints need, with the tool in hand.
    """

    mover: Mover
    dialect: Dialect
    window: int = 100
    profile: Profile = "trapezoid"
    mount: Callable[[int], Mover | Refused] | None = None
    hold_up: Callable[[Request], float] = _at_once
    rests_at_offsets: bool = False
    modal: Modal = AS_SWITCHED_ON
    start: tuple[float, ...] = ()
    dynamics: Dynamics | None = None
