"""Moves of a plain machine as paths of its axes, in mm and deg.

The firmware replaces an arc by chords. It rotates the radius vector again and again by a short
series, cos φ ≈ 1 - φ²/2 and sin φ ≈ φ - φ³/6, and computes every 13th vector exactly. With a
coarse tolerance the chords differ visibly from even ones, and so do the times.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.gcode.dialect import AXIS_LETTERS, Axes
from understudy.gcode.requests import AxisArc, AxisMove, Move
from understudy.motion.arcs import CHORDS_AT_ONCE, MOST_CHORDS
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Limits, Path
from understudy.robots.grblhal.numbers import ALL_AXES, AlarmCode, ErrorCode
from understudy.robots.grblhal.settings import Settings
from understudy.units import MINUTE

# ── chords of an arc ──────────────────────────────────────────────────────────────────────────────


CORRECTED_EVERY = 13
"""Chords of an arc until the firmware computes its radius vector exactly again."""
FULL_CIRCLE_WITHIN = 5e-7


def turns(arc: AxisArc) -> list[float]:
    """Angles of the whole turns, followed by the angle of the rest."""
    whole = max(math.ceil(abs(arc.angle) / math.tau - FULL_CIRCLE_WITHIN) - 1, 0)
    turn = math.copysign(math.tau, arc.angle)
    return [turn] * whole + [arc.angle - whole * turn]


def segments(angle: float, radius: float, tolerance: float) -> int:
    """floor(0.5·|θ|·R / sqrt(tol·(2R - tol))); 0 if the arc is smaller than its tolerance."""
    if 2.0 * radius <= tolerance:
        return 0
    return math.floor(abs(0.5 * angle * radius) / math.sqrt(tolerance * (2.0 * radius - tolerance)))


def chord_count(arc: AxisArc, tolerance: float) -> int:
    """Approximate number of chords of all turns."""
    return segments(arc.angle, arc.radius, tolerance)


def chord_ends(arc: AxisArc, start: Floats, tolerance: float) -> Floats:
    """Ends of all chords, one row each; the last is the arc's target."""
    return np.concatenate(list(_turn_ends(arc, start, tolerance)))


def chord_stretches(arc: AxisArc, start: Floats, tolerance: float) -> Iterator[Floats]:
    """Like `chord_ends`, about CHORDS_AT_ONCE rows at a time."""
    rows: list[Floats] = []
    for turn in _turn_ends(arc, start, tolerance):
        rows += [turn[k : k + CHORDS_AT_ONCE] for k in range(0, len(turn), CHORDS_AT_ONCE)]
        while len(rows) > 1 and sum(map(len, rows)) >= CHORDS_AT_ONCE:
            yield np.concatenate(rows[:-1])
            rows = rows[-1:]
    yield np.concatenate(rows)


def _turn_ends(arc: AxisArc, start: Floats, tolerance: float) -> Iterator[Floats]:
    """Ends of the chords of each turn."""
    target = np.array(arc.target)
    spoke = _first_spoke(arc)
    here, swept, left = start, 0.0, len(turns(arc))
    for angle in turns(arc):
        swept, left = swept + angle, left - 1
        end = start + (target - start) * (swept / arc.angle)
        end[arc.plane[0]] = arc.centre[0] + spoke.real
        end[arc.plane[1]] = arc.centre[1] + spoke.imag
        rows = _one_turn(arc, here, end, angle=angle, spoke=spoke, tolerance=tolerance)
        if not left:
            rows[-1] = target
        yield rows
        here = end


def _first_spoke(arc: AxisArc) -> complex:
    """Radius vector from the centre to the start of the arc."""
    x, y = (arc.target[axis] - middle for axis, middle in zip(arc.plane, arc.centre, strict=True))
    begins = math.atan2(y, x) - arc.angle
    return complex(arc.radius * math.cos(begins), arc.radius * math.sin(begins))


def _one_turn(
    arc: AxisArc, start: Floats, end: Floats, *, angle: float, spoke: complex, tolerance: float
) -> Floats:
    count = max(segments(angle, arc.radius, tolerance), 1)
    step = angle / count
    number = np.arange(1, count + 1)
    turned = complex(1.0 - 0.5 * step * step, step - step**3 / 6.0)
    since = number % CORRECTED_EVERY
    spokes = spoke * np.exp(1j * (number - since) * step) * turned**since
    points = start + (number / count)[:, None] * (end - start)
    points[:, arc.plane[0]] = arc.centre[0] + spokes.real
    points[:, arc.plane[1]] = arc.centre[1] + spokes.imag
    points[-1] = end
    return points


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────


SLOWEST = 1.0 / MINUTE
"""Least feed of the firmware: 1 unit per minute."""
TINY = 1e-300
ON_LIMIT = 1e-6
"""Tolerance of a soft limit in mm or deg."""


@dataclass(frozen=True)
class MachineMover:
    """`Mover` of the machine that settings describe, without soft limits."""

    settings: Settings
    limits: Limits
    deviation: float
    steps: Floats
    linear: NDArray[np.bool_]
    arc_tolerance: float
    feed_is_linear: bool

    @staticmethod
    def of(settings: Settings) -> "MachineMover":
        return MachineMover(
            settings,
            settings.limits,
            settings.junction_deviation,
            settings.steps,
            ~np.array(settings.rotary),
            settings.arc_tolerance,
            settings.feed_is_linear,
        )

    def axes(self, position: Floats) -> Axes:
        x, y, z, a, b, c = (float(value) for value in position)
        return x, y, z, a, b, c

    def pose(self, position: Floats) -> Axes:
        """The position of the axes: a machine has no other frame."""
        return self.axes(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        """Path from ``start``; ``line`` is its line number, ``exact`` stops at its end."""
        if isinstance(move, AxisMove):
            return self.straight([move], start, line=[line], exact=exact)
        if not isinstance(move, AxisArc):
            reason = "a machine has linear and rotary axes, not joints"
            return Refused(reason, ErrorCode.UNSUPPORTED)
        if refused := self._too_many_chords(move):
            return refused
        through = self.on_steps(chord_ends(move, start, self.arc_tolerance))
        feed, inverse = self._arc_feed(move)
        return self._lines(
            start, through, feed, inverse=inverse, line=line, exact=exact, chords=True
        )

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool = False
    ) -> Iterator[Path] | Refused | None:
        """An arc of many chords as consecutive paths, with the same result as `path`."""
        if not isinstance(move, AxisArc) or chord_count(move, self.arc_tolerance) <= CHORDS_AT_ONCE:
            return None
        return self._too_many_chords(move) or self._stretches(move, start, line=line, exact=exact)

    def _stretches(self, arc: AxisArc, start: Floats, *, line: int, exact: bool) -> Iterator[Path]:
        feed, inverse = self._arc_feed(arc)
        here = self.on_steps(start)
        for ends in chord_stretches(arc, start, self.arc_tolerance):
            through = self.on_steps(ends)
            yield self._lines(
                here, through, feed, inverse=inverse, line=line, exact=exact, chords=True
            )
            if self.feed_is_linear:
                mixed, length = self._mixed(here, through)
                feed /= float(np.prod(length[mixed & (not inverse)]))
            here = through[-1]

    def _too_many_chords(self, arc: AxisArc) -> Refused | None:
        count = chord_count(arc, self.arc_tolerance)
        if count <= MOST_CHORDS:
            return None
        reason = f"{count} chords are too many for an arc: {MOST_CHORDS} at most"
        return Refused(reason, ErrorCode.RANGE)

    def straight(
        self, moves: Sequence[AxisMove], start: Floats, *, line: Sequence[int], exact: bool = False
    ) -> Path:
        """Path of many lines; none of them is refused."""
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

    def on_steps(self, position: Floats) -> Floats:
        """Round to whole steps, half away from zero, in the firmware's single precision."""
        scaled = position.astype(np.float32) * self.steps.astype(np.float32)
        whole = np.copysign(np.floor(np.abs(scaled.astype(np.float64)) + 0.5), scaled)
        return np.asarray(whole / self.steps)

    def _arc_feed(self, arc: AxisArc) -> tuple[float, bool]:
        """Feed, and whether it is inverse time.

        Under G93 the firmware multiplies F by the chords of the first turn and uses the product as
        a plain feed.
        """
        count = segments(turns(arc)[0], arc.radius, self.arc_tolerance)
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
        """Path of lines; ``feed`` is per minute, ``chords``: the lines are those of one arc."""
        begin = self.on_steps(start)
        if self.feed_is_linear:
            mixed, length = self._mixed(begin, through)
            mixed &= ~(np.asarray(inverse) | rapid)
            share = np.where(mixed, length, 1.0)
            # The firmware divides the feed of an arc again at each chord and keeps the quotient.
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
        """Lines of linear and rotary axes together, and the length of the linear part.

        With $701 the feed of such a line is that of its linear axes.
        """
        difference = np.diff(through, axis=0, prepend=start[None])
        length = np.linalg.norm(difference[:, self.linear], axis=1)
        return (difference[:, ~self.linear] != 0.0).any(axis=1) & (length > 0.0), length


@dataclass(frozen=True)
class TravelMover:
    """`Mover` of a machine with soft limits ($20, $130 …).

    A path that leaves the range ``lower`` … ``upper`` is refused. Axes that are not homed have no
    range; ``limited`` is false if none has one.
    """

    mover: MachineMover
    lower: Floats
    upper: Floats
    limited: bool

    @staticmethod
    def of(settings: Settings, homed: int = ALL_AXES) -> "TravelMover":
        """The mover of a machine of which these axes are homed, as a mask."""
        free = np.array([not homed >> axis & 1 for axis in range(len(AXIS_LETTERS))])
        free |= (settings.travel == 0.0) | (not settings.soft_limits)
        lower, upper = settings.travel_range
        return TravelMover(
            MachineMover.of(settings),
            np.where(free, -np.inf, lower),
            np.where(free, np.inf, upper),
            not bool(free.all()),
        )

    @property
    def limits(self) -> Limits:
        return self.mover.limits

    @property
    def deviation(self) -> float:
        return self.mover.deviation

    def axes(self, position: Floats) -> Axes:
        return self.mover.axes(position)

    def pose(self, position: Floats) -> Axes:
        return self.mover.pose(position)

    def on_steps(self, position: Floats) -> Floats:
        return self.mover.on_steps(position)

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        path = self.mover.path(move, start, line=line, exact=exact)
        if isinstance(path, Refused):
            return path
        return self._beyond(path) or path

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool = False
    ) -> Iterator[Path] | Refused | None:
        """Like `MachineMover.stretches`; the whole arc is checked before its first stretch."""
        found = self.mover.stretches(move, start, line=line, exact=exact)
        if found is None or isinstance(found, Refused) or not self.limited:
            return found
        for path in found:
            if refused := self._beyond(path):
                return refused
        return self.mover.stretches(move, start, line=line, exact=exact)

    def _beyond(self, path: Path) -> Refused | None:
        """The refusal of a path that leaves the travel; None if it stays within."""
        if not self.limited or not len(path):
            return None
        over = (path.end > self.upper + ON_LIMIT) | (path.end < self.lower - ON_LIMIT)
        if not over.any():
            return None
        row, axis = np.argwhere(over)[0]
        within = f"{self.lower[axis]:g}…{self.upper[axis]:g}"
        reason = f"{AXIS_LETTERS[axis]} {path.end[row, axis]:g} is outside {within}"
        return Refused(reason, AlarmCode.SOFT_LIMIT)
