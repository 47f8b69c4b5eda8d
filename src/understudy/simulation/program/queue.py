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
    """A `Stream` in nanoseconds: a motion has ended at the first whole one not before its end."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.cut: Callable[[int], None] = lambda now: None
        """Called when queued motion is dropped."""

    # ── commands ──

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

    # ── readings ──

    @property
    def plan(self) -> Plan:
        return self._stream.plan

    @property
    def first(self) -> int:
        """The number of the plan's first piece, counted from the beginning."""
        return self._stream.first

    @property
    def end(self) -> Floats:
        """The position at the end of the queue."""
        return self._stream.end

    @property
    def held(self) -> bool:
        return self._stream.held

    def used(self, now: int) -> int:
        """Blocks in the queue, with the executing one."""
        return self._stream.used(self._time(now))

    def room(self, now: int) -> int:
        """Blocks that can still be queued."""
        return max(0, self._stream.window - self.used(now))

    @property
    def window(self) -> int:
        return self._stream.window

    def at_rest(self, now: int) -> bool:
        return whole_ns(self.plan.ends) <= now and self.used(now) == 0

    def line_at(self, now: int) -> int:
        return self.plan.line_at(self._time(now)) or 0

    def next_change(self, now: int, *, room: bool, starts: bool) -> int | None:
        """The next time at which the motion ends, there is more ``room``, or a block ``starts``.

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
        """Those of these lines that have begun to move."""
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
    """The first of these increasing times (in seconds) that is after now."""
    for moment in moments[np.searchsorted(moments, seconds(now)) :]:
        if whole_ns(moment) > now:
            return [whole_ns(moment)]
    return []


def whole_ns(t: float) -> int:
    """The first whole nanosecond that is not before t, within the rounding of t."""
    return math.ceil(t * NS_PER_SECOND - 1e-3)


def time_in(plan: Plan, now: int) -> float:
    """Time in a plan in seconds; its end if the motion has ended by this nanosecond."""
    t = seconds(now)
    return max(t, plan.ends) if whole_ns(plan.ends) <= now else max(t, plan.begins)


def blocks(path: Path, after: int, count: int) -> tuple[Path, bool]:
    """``count`` blocks of a path behind the first ``after``, and whether they are its last."""
    first = np.flatnonzero(np.diff(path.block, prepend=path.block[:1] - 1))
    if not after and len(first) <= count:
        return path, True
    stop = first[after + count] if after + count < len(first) else len(path)
    return path.rows(int(first[after]), int(stop)), after + count >= len(first)


def ending_at(path: Path, place: tuple[int, float] | None) -> Path:
    """A path up to a place on it: the index of a piece, and the distance along it."""
    if place is None:
        return path
    piece, s = place
    rows = path.rows(0, piece + 1)
    length, end = rows.length.copy(), rows.end.copy()
    length[piece], end[piece] = s, path.position(piece, s)
    return replace(rows, length=length, end=end)


def as_programmed(path: Path) -> Path:
    """A path on which the feed override does not act."""
    return replace(path, fixed=np.ones(len(path), dtype=np.bool_))


def slowed(path: Path, share: float) -> Path:
    """A path at a share of the fastest speed of the axes."""
    return replace(path, feed=path.fastest * share, rapid=np.zeros(len(path), dtype=np.bool_))
