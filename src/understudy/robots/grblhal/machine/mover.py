"""What a line asks for, as a path of the machine's axes, in mm and deg."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.faults import RANGE
from understudy.gcode.requests import AxisArc, AxisMove, Move, Request, Spindle
from understudy.motion.arcs import MOST_CHORDS
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Limits, Path
from understudy.robots.grblhal.machine import arcs
from understudy.robots.grblhal.machine.settings import Settings
from understudy.units import MINUTE

WRONG_KIND = 20
SLOWEST = 1.0 / MINUTE
"""The firmware feeds at 1 unit per minute at least."""
TINY = 1e-300


@dataclass(frozen=True)
class MachineMover:
    """The machine that settings describe."""

    settings: Settings
    limits: Limits
    deviation: float
    steps: Floats
    linear: NDArray[np.bool_]

    @staticmethod
    def of(settings: Settings) -> "MachineMover":
        linear = ~np.array(settings.rotary)
        deviation = settings.junction_deviation
        return MachineMover(settings, settings.limits, deviation, settings.steps, linear)

    def axes(self, position: Floats) -> Axes:
        x, y, z, a, b, c = (float(value) for value in position)
        return x, y, z, a, b, c

    def pose(self, position: Floats) -> Axes:
        """A machine has no other frame than its axes."""
        return self.axes(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        """From ``start``; ``line`` is the number the path is known by, ``exact`` wants rest."""
        if isinstance(move, AxisMove):
            return self.straight([move], start, line=[line], exact=exact)
        if not isinstance(move, AxisArc):
            return Refused("a machine has linear and rotary axes, no joints", WRONG_KIND)
        tolerance = self.settings.arc_tolerance
        if (count := arcs.chord_count(move, tolerance)) > MOST_CHORDS:
            return Refused(f"{count} chords are too many for an arc: {MOST_CHORDS} at most", RANGE)
        through = self.on_steps(arcs.chord_ends(move, start, tolerance))
        feed, inverse = self._arc_feed(move)
        return self._lines(
            start, through, feed, inverse=inverse, line=line, exact=exact, chords=True
        )

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool = False
    ) -> Path:
        """Many lines at once; none is ever refused."""
        through = self.on_steps(np.array([move.target for move in moves]))
        rapid = np.array([move.rapid for move in moves])
        feed = np.array([move.feed for move in moves])
        return self._lines(
            start,
            through,
            np.where(rapid, np.inf, feed),
            inverse=np.array([move.inverse_time for move in moves]),
            line=line,
            exact=exact,
            rapid=rapid,
        )

    def hold_up(self, request: Request) -> float:
        """Seconds that a switch takes."""
        on = isinstance(request, Spindle) and request.direction != "M5"
        return self.settings.spindle_on_s if on else 0.0

    def on_steps(self, position: Floats) -> Floats:
        """Rounded to whole steps, half away from zero, in the firmware's single precision."""
        scaled = position.astype(np.float32) * self.steps.astype(np.float32)
        whole = np.copysign(np.floor(np.abs(scaled.astype(np.float64)) + 0.5), scaled)
        return np.asarray(whole / self.steps)

    def _arc_feed(self, arc: AxisArc) -> tuple[float, bool]:
        """Under G93 the firmware takes F times the chords of the first turn as the plain feed."""
        radius, tolerance = arc.radius, self.settings.arc_tolerance
        count = arcs.segments(arcs.turns(arc)[0], radius, tolerance)
        if arc.inverse_time and count:
            return arc.feed * count, False
        return arc.feed, arc.inverse_time

    def _lines(
        self,
        start: Floats,
        through: Floats,
        feed: Floats | float,
        *,
        inverse: NDArray[np.bool_] | bool,
        line: Sequence[int] | int,
        exact: bool,
        rapid: NDArray[np.bool_] | bool = False,
        chords: bool = False,
    ) -> Path:
        """``feed`` per minute; ``chords``: the lines are those of one arc."""
        begin = self.on_steps(start)
        if self.settings.feed_is_linear:
            mixed, reach = self._mixed(begin, through)
            mixed &= ~(np.asarray(inverse) | rapid)
            share = np.where(mixed, reach, 1.0)
            # The firmware divides the feed of an arc anew at each chord, and keeps the quotient.
            feed = np.asarray(feed) / (np.cumprod(share) if chords else share)
            inverse = mixed | inverse
        found = lines(
            begin,
            through,
            self.limits,
            feed=np.maximum(np.asarray(feed) / MINUTE, TINY),
            rapid=rapid,
            inverse_time=inverse,
            deviation=self.deviation,
            exact=exact,
            line=line,
        )
        return replace(found, feed=np.maximum(found.feed, SLOWEST))

    def _mixed(self, start: Floats, through: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """$701: where linear and rotary axes move together F is meant for the linear ones.

        Which lines are such, and how far the linear axes go in each.
        """
        way = np.diff(through, axis=0, prepend=start[None])
        reach = np.linalg.norm(way[:, self.linear], axis=1)
        return (way[:, ~self.linear] != 0.0).any(axis=1) & (reach > 0.0), reach
