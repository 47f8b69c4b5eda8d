"""The motion queue on the controller's time axis of whole nanoseconds."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import Overrides, Stream
from understudy.units import NS_PER_SECOND, seconds


class Queue:
    """A `Stream` whose motions have ended at the first nanosecond that is not before their end."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.cut: Callable[[int], None] = lambda now: None
        """Told when what was queued is not run any more."""

    # ── what comes in ──

    def append(self, path: Path, now: int, *, deviation: float, exact: bool) -> None:
        self._stream.append(path, self._time(now), deviation=deviation, exact=exact)

    def hold(self, now: int) -> None:
        self._stream.hold(self._time(now))

    def resume(self, now: int) -> None:
        self._stream.resume(self._time(now))

    def override(self, now: int, *, feed: float | None, rapid: float | None) -> None:
        self._stream.override(self._time(now), feed=feed, rapid=rapid)

    @property
    def overrides(self) -> Overrides:
        return self._stream.overrides

    def stop(self, now: int) -> None:
        self._stream.stop(self._time(now))
        self.cut(now)

    def halt(self, now: int) -> None:
        self._stream.halt(self._time(now))
        self.cut(now)

    def set_position(self, position: Floats, now: int) -> None:
        self._stream.set_position(position, self._time(now))
        self.cut(now)

    # ── what can be read ──

    @property
    def plan(self) -> Plan:
        return self._stream.plan

    @property
    def first(self) -> int:
        """The number of the plan's first piece, counted from the beginning."""
        return self._stream.first

    @property
    def end(self) -> Floats:
        """Where the queue ends."""
        return self._stream.end

    @property
    def held(self) -> bool:
        return self._stream.held

    def used(self, now: int) -> int:
        """How many blocks are queued, the executing one included."""
        return self._stream.used(self._time(now))

    def room(self, now: int) -> int:
        """How many more blocks it takes."""
        return max(0, self._stream.window - self.used(now))

    @property
    def window(self) -> int:
        return self._stream.window

    def at_rest(self, now: int) -> bool:
        return whole_ns(self.plan.ends) <= now and self.used(now) == 0

    def line_at(self, now: int) -> int:
        return self.plan.line_at(self._time(now)) or 0

    def next_change(self, now: int, *, room: bool, starts: bool) -> int | None:
        """When the motion ends; or before, when there is more ``room``, or when a block starts.

        A block makes room when the next one starts, less what is handed on ahead of its time.
        """
        if self.at_rest(now):
            return None
        plan, ahead = self.plan, self._stream.commit
        moments = [whole_ns(plan.ends)]
        if room or starts:
            _, begins = plan.lines_since(seconds(now - 1))
            if starts or not ahead:
                moments += _next_after(now, begins)
            if room and ahead:
                leaves = np.append(begins, plan.ends) - ahead
                moments += [at + 1 for at in _next_after(now - 1, leaves)]
        return min((moment for moment in moments if moment > now), default=None)

    def lines_ahead(self) -> set[int]:
        """The lines that are queued or being run; some that have just ended may be among them."""
        return set(self.plan.path.line.tolist())

    def begun(self, lines: set[int], now: int) -> set[int]:
        """Which of these lines have begun to move."""
        known, begins = self.plan.lines()
        ahead = set(known[begins * NS_PER_SECOND > now + 1e-3].tolist())
        # What lies beyond the end of a hold is not in the plan; what is long past is not, either.
        return (lines & set(known.tolist()) if self.held else lines) - ahead

    # ── snapshots ──

    def save(self) -> dict[str, Any]:
        return self._stream.save()

    def load(self, state: dict[str, Any]) -> None:
        self._stream.load(state)

    def _time(self, now: int) -> float:
        return time_in(self._stream.plan, now)


def _next_after(now: int, moments: Floats) -> list[int]:
    """The first of these rising moments (in seconds) that is still to come."""
    for moment in moments[np.searchsorted(moments, seconds(now)) :]:
        if whole_ns(moment) > now:
            return [whole_ns(moment)]
    return []


def whole_ns(t: float) -> int:
    """The first whole nanosecond that is not before t, as far as t can be told."""
    return math.ceil(t * NS_PER_SECOND - 1e-3)


def time_in(plan: Plan, now: int) -> float:
    """Seconds; a motion that has ended by this nanosecond has ended."""
    t = seconds(now)
    return max(t, plan.ends) if whole_ns(plan.ends) <= now else max(t, plan.begins)


def blocks(path: Path, after: int, count: int) -> tuple[Path, bool]:
    """So many blocks of a path after the first ones, and whether these are its last."""
    first = np.flatnonzero(np.diff(path.block, prepend=path.block[:1] - 1))
    if not after and len(first) <= count:
        return path, True
    stop = first[after + count] if after + count < len(first) else len(path)
    return path.rows(int(first[after]), int(stop)), after + count >= len(first)


def ending_at(path: Path, place: tuple[int, float] | None) -> Path:
    """A path up to a place on it: the number of a piece, and the distance along it."""
    if place is None:
        return path
    piece, s = place
    rows = path.rows(0, piece + 1)
    length, end = rows.length.copy(), rows.end.copy()
    length[piece], end[piece] = s, path.position(piece, s)
    return replace(rows, length=length, end=end)


def as_programmed(path: Path) -> Path:
    """Whatever the feed override."""
    return replace(path, fixed=np.ones(len(path), dtype=np.bool_))


def slowed(path: Path, share: float) -> Path:
    """At a share of what the axes can do."""
    return replace(path, feed=path.fastest * share, rapid=np.zeros(len(path), dtype=np.bool_))
