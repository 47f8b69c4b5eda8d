"""How a controller goes about its work, where its queue ends, and who attends to the rest."""

from dataclasses import dataclass
from typing import Protocol

from understudy.errors import Refused
from understudy.gcode import Dialect, Modal
from understudy.gcode.dialect import Axes
from understudy.gcode.requests import Coolant, Move, Spindle
from understudy.motion.path import Floats, Path
from understudy.simulation.program.steps import Entry, Probed, Step


class Mover(Protocol):
    """Moves as paths of the axes."""

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


class ProgramHooks(Protocol):
    """Whoever does what is not motion, and hears what a program has done."""

    def spin(self, step: Spindle, now: int) -> Refused | None: ...

    def cool(self, step: Coolant, now: int) -> Refused | None: ...

    def switch_off(self, now: int) -> None:
        """The program is over, or was cut off: nothing turns or flows any more."""
        ...

    def probed(self, step: Probed, now: int) -> Refused | None:
        """A probing move has ended."""
        ...

    def tell(self, step: Step, now: int) -> None:
        """Something was carried out that others may want to know of."""
        ...

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        """A line is through, or cannot be carried out."""
        ...


class Probe(Protocol):
    """What answers when it touches something."""

    def touches(self, q: Floats) -> bool: ...

    def answers(self, path: Path, *, toward: bool) -> tuple[int, float] | None:
        """The first place of a path, piece and distance, where it begins or ceases to touch."""
        ...


@dataclass(frozen=True)
class ControllerOptions:
    """How this controller goes about its work.

    ``wire`` is the dialect of lines that come over a wire. ``home`` in degrees; ``homing_share``
    of the rapid speed; ``deviation`` at corners. ``rests_at_offsets``: motion ends before the zero
    of the work shifts. ``arc_wait``: M3 and M5 wait for the arc by themselves.
    ``probes_overridden``: the feed override acts on probing moves, too.
    """

    dialect: Dialect
    modal: Modal
    home: Axes
    homing_share: float
    deviation: float
    wire: Dialect
    rests_at_offsets: bool = False
    arc_wait: bool = True
    probes_overridden: bool = False


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
