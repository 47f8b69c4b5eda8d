"""What a program is reckoned on: who moves, in what language, planned how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.dialect import Axes, Dialect
from understudy.gcode.requests import (
    AxisMove,
    Move,
    Probe,
    Request,
    SetAnalog,
    SetOutput,
)
from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Limits, Path
from understudy.motion.plan import Plan
from understudy.motion.profile import Profile
from understudy.space.kinematics.follow import FailureKind as Obstacle


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


@runtime_checkable
class ToolLineMover(Protocol):
    """A mover that takes many lines of the tool at once."""

    def tool_lines(
        self, targets: Floats, speeds: Floats, start: Floats, *, line: Sequence[int]
    ) -> tuple[Path, int]:
        """Through targets (lines, 6; m and rad) at m/s: the path, and of how many of them. It ends
        before the first line that `path` has to look at."""
        ...


@runtime_checkable
class ExplainingMover(Protocol):
    """A mover that says what is in the way of a move that it refused."""

    def obstacle(self, move: Move, start: Floats) -> Obstacle | None: ...


ARC_LEFT_ON = "the arc is left on at the end of the program"
"""Message of a remark, the same for every robot."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a line does that it should not; it is run all the same. `slight`: a warning."""

    line: int
    kind: Literal["process", "io", "velocity"]
    message: str
    time_s: float
    slight: bool = False


@dataclass(frozen=True, slots=True)
class Met:
    """For how many seconds a request holds the program up, and what is to be said about it."""

    seconds: float = 0.0
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Thrown:
    """A switch that is thrown while the arm moves, and the line that asked for it."""

    time_s: float
    switch: SetOutput | SetAnalog
    line: int


@dataclass(frozen=True, slots=True)
class Probed:
    """A probing move as far as it goes, and what is wrong with it."""

    path: Path
    problem: str = ""


class Stage(Protocol):
    """What stands around the arm and answers it: pins, power source, chance. Time only rises."""

    def meet(self, request: Request, line: int, now: float) -> Met:
        """Carry out what is no motion; the arm stands."""
        ...

    def moved(self, plan: Plan, mover: Mover, thrown: Sequence[Thrown]) -> tuple[Remark, ...]:
        """The arm has moved so, and switches were thrown on the way."""
        ...

    def probed(self, probe: Probe, path: Path, mover: Mover) -> Probed:
        """How far a probing move would go that starts from rest."""
        ...

    def over(self, line: int, now: float) -> tuple[Remark, ...]:
        """The program has ended, with this line."""
        ...


def _at_once(request: Request) -> float:
    return 0.0


AS_SWITCHED_ON = Modal()


@dataclass(frozen=True)
class Setup:
    """A robot as a program sees it.

    `mount`: the mover with another tool in hand. `hold_up`: seconds for which a switch holds the
    program up (spin-up, ignition). `rests_at_offsets`: motion ends before offsets change.
    `modal`, `start`: what is in force and where the joints are before the first line. `dynamics`:
    what the joints need, with the tool in hand. `stage`: who answers on the pins; without one
    switches take `hold_up` and waits no time.
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
    stage: Stage | None = None
