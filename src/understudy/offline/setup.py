"""What an offline walk needs of a robot: its mover, its dialect, its planner, its devices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from understudy.errors import Refused
from understudy.gcode import Modal
from understudy.gcode.dialect import Axes, Dialect
from understudy.gcode.requests import (
    AxisMove,
    Move,
    Output,
    Probe,
    Request,
)
from understudy.motion.dynamics import Dynamics
from understudy.motion.path import Floats, Ints, Limits, Path
from understudy.motion.plan import Plan
from understudy.motion.profile import Profile
from understudy.space.kinematics.follow import FailureKind as Obstacle


class Mover(Protocol):
    """Plans moves as paths of the joints of an arm, or of the axes of a machine."""

    @property
    def limits(self) -> Limits: ...

    @property
    def deviation(self) -> float:
        """Deviation allowed at corners."""
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
    """A mover that takes many straight lines at once and refuses none."""

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool
    ) -> Path: ...


@runtime_checkable
class ToolLineMover(Protocol):
    """A mover that takes many lines of the tool at once."""

    def tool_lines(
        self, targets: Floats, speeds: Floats, start: Floats, *, line: Ints
    ) -> tuple[Path, int]:
        """The path through targets (lines, 6; m and rad) at m/s, and the number of lines in it.

        It ends before the first line that needs `path`.
        """
        ...


@runtime_checkable
class ArcMover(Protocol):
    """A mover that divides an arc of many chords in stretches, which need less memory."""

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool
    ) -> Iterator[Path] | Refused | None:
        """The consecutive paths of a long arc; None for any other move, which `path` takes."""
        ...


@runtime_checkable
class ExplainingMover(Protocol):
    """A mover that explains why it refused a move."""

    def obstacle(self, move: Move, start: Floats) -> Obstacle | None: ...


ARC_LEFT_ON = "the arc is left on at the end of the program"
NO_TOUCH = "the probe touches nothing"
"""Message of a remark, the same for every robot."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something wrong in a line that is run all the same. `slight`: a warning. A `time_s` of nan is
    the start of the line."""

    line: int
    kind: Literal["process", "io", "velocity", "unsupported"]
    message: str
    time_s: float
    slight: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds for which a request keeps the program, and remarks about it."""

    seconds: float = 0.0
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class TimedOutput:
    """An output that is set while the robot moves, and the line of its request."""

    time_s: float
    output: Output
    line: int


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A probing move up to its end, and what is wrong with it."""

    path: Path
    problem: str = ""


class OfflineDevices(Protocol):
    """Pins, devices and scenario of a cell beside the robot. Time only increases."""

    def carry_out(self, request: Request, line: int, now: float) -> Delay:
        """Carries out a request that is no motion; the robot stands."""
        ...

    def motion_ended(
        self, plan: Plan, mover: Mover, outputs: Sequence[TimedOutput]
    ) -> tuple[Remark, ...]:
        """Advances through a motion, with the outputs that were set on the way."""
        ...

    def probe_end(self, probe: Probe, path: Path, mover: Mover) -> ProbeResult:
        """Where a probing move from rest ends."""
        ...

    def program_ended(self, line: int, now: float) -> tuple[Remark, ...]:
        """The program has ended with this line."""
        ...


def _no_time(request: Request) -> float:
    return 0.0


INITIAL_MODAL = Modal()


@dataclass(frozen=True)
class Setup:
    """A robot as programs are walked on it.

    `mount`: the mover with another tool. `switch_seconds`: time that a switch takes (spin-up,
    ignition) where there are no `devices`. `rests_at_offsets`: motion ends before offsets change.
    `modal`, `start`: modal state and joints before the first line. `dynamics`: of the joints with
    the first tool. `devices`: makes what answers on the pins, anew for each walk; without them
    waits take no time.
    """

    mover: Mover
    dialect: Dialect
    window: int = 100
    profile: Profile = "trapezoid"
    mount: Callable[[int], Mover | Refused] | None = None
    switch_seconds: Callable[[Request], float] = _no_time
    rests_at_offsets: bool = False
    modal: Modal = INITIAL_MODAL
    start: tuple[float, ...] = ()
    dynamics: Dynamics | None = None
    devices: Callable[[], OfflineDevices] | None = None
