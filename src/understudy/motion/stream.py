"""`Stream`, the motion queue of a controller: blocks are executed while more are appended; `Queue`,
the same on the time axis of whole nanoseconds.

Each append, hold, resume, stop and override cuts the time law at that time and plans the rest of
the same path from the state there. ``commit``: seconds of motion that are already sent to the
drives and cannot be changed: 0 in process, 0.09 for grblHAL with its nine segments of 10 ms.

`PartPlanner` plans a long path part by part, with the same result as `planned` for the whole path.
The speed at the start of a block is final as soon as everything that can change it is known: with
a trapezoidal profile the window of blocks behind it; with a jerk-limited one, a block behind it
whose entry speed is limited by its own corner and feed and not by braking. So what is before can
be planned, used and forgotten while the rest of the program is read: memory does not grow with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from understudy.errors import ConfigError
from understudy.motion import smooth
from understudy.motion.lines import seam
from understudy.motion.path import Floats, GrowingPath, Limits, Path, empty_path, joined
from understudy.motion.plan import Motion, PathPosition, Plan, TimeLaw, empty_law
from understudy.motion.profile import Profile, Stop, block_starts, brake, entries, trapezoid
from understudy.motion.saved import SavedStream, plan_from, position_from
from understudy.units import NS_PER_SECOND, seconds, whole_ns

FIRMWARE_COMMIT = 0.09
"""Seconds of motion in grblHAL's step segments."""

REMEMBERED = 1.0
"""Seconds of past motion that can still be sampled."""
MANY = 1024
"""Number of finished pieces or segments above which they are removed."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Overrides of the programmed speeds; 1 is as programmed."""

    feed: float = 1.0
    rapid: float = 1.0


AS_PROGRAMMED = Overrides()


def trapezoid_law(
    path: Path, nominal: Floats, place: PathPosition, *, at: float, window: int
) -> TimeLaw:
    """Trapezoidal time law of a path from a place on its first piece."""
    past = place.s if path.dwell[0] == 0.0 else 0.0
    speeds = entries(path, nominal, window=window, entry=place.v**2, run=past)
    return trapezoid(path, nominal, speeds, at=at, run=place.s)


TIME_LAWS: dict[Profile, Callable[..., TimeLaw | None]] = {
    "trapezoid": trapezoid_law,
    "jerk_limited": smooth.jerk_limited_law,
}
BRAKES: dict[Profile, Callable[[Plan, float], Stop]] = {
    "trapezoid": brake,
    "jerk_limited": smooth.brake,
}


def planned(
    path: Path,
    *,
    window: int = 100,
    overrides: Overrides = AS_PROGRAMMED,
    profile: Profile = "trapezoid",
    at: float = 0.0,
) -> Plan:
    """Plans a whole path from rest to rest, as if streamed as fast as the window allows."""
    nominal = path.nominal(overrides.feed, overrides.rapid)
    law = TIME_LAWS[profile](path, nominal, PathPosition(0), at=at, window=window)
    assert law is not None, "from rest every block can be run"
    return Plan(path, law, path.end[-1])


class Stream:
    """The motion queue of a robot. Times are in seconds and never decrease."""

    def __init__(
        self,
        position: ArrayLike,
        limits: Limits,
        *,
        window: int = 100,
        commit: float = 0.0,
        profile: Profile = "trapezoid",
        at: float = 0.0,
    ) -> None:
        if profile == "jerk_limited" and not np.isfinite(limits.jerk).all():
            problem = "a jerk-limited profile needs the jerk of every axis"
            raise ConfigError(problem, key="profile", value=profile, allowed="trapezoid, or jerks")
        self.limits = limits
        self.window = window
        self.commit = commit
        self.profile: Profile = profile
        self.overrides = AS_PROGRAMMED
        self.held = False
        self.end: Floats = np.array(position, dtype=np.float64)
        """End position of the queue."""
        self.plan = Plan(empty_path(len(self.end)), empty_law(at), self.end)
        """The plan of everything queued; after a hold it ends with the hold."""
        self.first = 0
        """Number of the plan's first piece, counted from the start of the stream."""
        self._roll = GrowingPath()
        self._next = PathPosition(0)
        self._final = at
        self._since = at

    # ── input ───────────────────────────────────────────────────────────────────────────────────

    def append(
        self, path: Path, now: float, *, deviation: float = 0.0, exact: bool = False
    ) -> None:
        """Queues a path that starts where the queue ends; ``exact``: come to rest before it.

        The speed of the corner between the queue and the new path is computed here; the corners
        inside the new path are part of it.
        """
        if not len(path):
            return
        known = self.plan.path
        rests = exact or self._idle(now)
        entry = 0.0 if rests else seam(known, path, self.limits, deviation)
        self._since = now
        self.end = path.end[-1]
        self._follow(self._roll.joined(known, path.with_entry(entry)), self.plan.law)
        if not self.held:
            self._run(*self._first_change(known, *self._cut(now)))
        self._drop_the_past(now)

    def override(
        self, now: float, *, feed: float | None = None, rapid: float | None = None
    ) -> None:
        """Changes the overrides from ``now`` on."""
        self.overrides = Overrides(
            self.overrides.feed if feed is None else feed,
            self.overrides.rapid if rapid is None else rapid,
        )
        if not self.held and not self._idle(now):
            self._run(*self._cut(now))
            self._drop_the_past(now)

    # ── hold and stop ───────────────────────────────────────────────────────────────────────────

    def hold(self, now: float) -> float:
        """Brakes along the path and waits there; returns the time of rest."""
        if not self.held:
            self._brake(*self._cut(now, commit=self._committed(now)))
            self.held = True
        return self.plan.ends

    def resume(self, now: float) -> None:
        """Continues along the same path, from rest or from the remaining speed."""
        if self.held:
            self.held = False
            self._run(*self._cut(now, commit=0.0))
            self._drop_the_past(now)

    def stop(self, now: float) -> float:
        """Brakes along the path and drops the rest of it; returns the time of rest."""
        self._brake(*self._cut(now, commit=self._committed(now)))
        self._drop_the_rest()
        return self.plan.ends

    def halt(self, now: float) -> None:
        """Stops at once (emergency stop) and empties the queue."""
        plan = self.plan
        if now < plan.ends:
            here = plan.place(now)
            self._next = PathPosition(here.piece, here.s)
            self.plan = Plan(plan.path, plan.law.until(now), plan.at(now).position)
        self._drop_the_rest()

    def set_position(self, position: ArrayLike, now: float) -> None:
        """Sets another position and empties the queue: after a jog, or after a manual change."""
        self.first += len(self.plan.path)
        self._next, self._final, self._since = PathPosition(0), now, now
        self.end = np.array(position, dtype=np.float64)
        self.plan = Plan(empty_path(len(self.end)), empty_law(now), self.end)
        self.held = False

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def at(self, now: float) -> Motion:
        return self.plan.at(now)

    def used(self, now: float) -> int:
        """Number of queued blocks, the executing one included."""
        if self._idle(now):
            return 0
        fixed, plan = max(now + self.commit, self._final), self.plan
        if fixed >= plan.ends:
            return plan.path.blocks_from(self._next.piece)
        return plan.path.blocks_from(plan.piece_at(fixed))

    def save(self) -> dict[str, Any]:
        """State for a snapshot, without the configuration."""
        return {
            "plan": self.plan.to_state(),
            "next": list(self._next),
            "end": self.end.tolist(),
            "final": self._final,
            "since": self._since,
            "first": self.first,
            "held": self.held,
            "overrides": [self.overrides.feed, self.overrides.rapid],
        }

    def load(self, state: dict[str, Any]) -> None:
        saved, axes = msgspec.convert(state, SavedStream), len(self.end)
        plan = plan_from(saved.plan, axes)
        saved.check(plan)
        self.end = position_from(saved.end, axes, "end")
        self.plan, self._next = plan, PathPosition(*saved.next)
        self._final, self._since = saved.final, saved.since
        self.first, self.held = saved.first, saved.held
        self.overrides = Overrides(*saved.overrides)

    # ── planning ────────────────────────────────────────────────────────────────────────────────

    def _idle(self, now: float) -> bool:
        fixed = max(now + self.commit, self._final)
        return self._next.piece >= len(self.plan.path) and fixed >= self.plan.ends

    def _follow(self, path: Path, law: TimeLaw) -> None:
        """Changes the path or the time law of the plan; it ends in the same position."""
        self.plan = Plan(path, law, self.plan.target)

    def _cut(self, now: float, commit: float | None = None) -> tuple[float, PathPosition]:
        """The first time that can still be changed, and the place on the path then."""
        fixed = max(now + (self.commit if commit is None else commit), self._final)
        if fixed < self.plan.ends:
            return fixed, self.plan.place(fixed)
        return max(now, self.plan.ends), self._next

    def _committed(self, now: float) -> float:
        """Seconds that cannot be changed any more; a dwell can be cut at once."""
        plan = self.plan
        dwells = now < plan.ends and plan.path.dwell[plan.piece_at(now)] > 0.0
        return 0.0 if dwells else self.commit

    def _first_change(
        self, known: Path, at: float, place: PathPosition
    ) -> tuple[float, PathPosition]:
        """The first place that new blocks change: the last window of the known ones."""
        if self.profile != "trapezoid" or known.blocks_from(0) < self.window:
            return at, place
        law = self.plan.law
        piece = int(np.searchsorted(known.block, known.block[-1] - self.window + 2))
        segment = int(np.searchsorted(law.piece, piece))
        if piece <= place.piece or segment == len(law):
            return at, place
        return self._begin_of(segment)

    def _begin_of(self, segment: int) -> tuple[float, PathPosition]:
        law = self.plan.law
        row = (float(column[segment]) for column in (law.s, law.v, law.a))
        return float(law.begins[segment]), PathPosition(int(law.piece[segment]), *row)

    def _run(self, at: float, place: PathPosition) -> None:
        """Plans everything from a place on again."""
        path, target = self.plan.path, self.plan.target
        law = self.plan.law.until(at)
        rest = path.rows(place.piece, len(path))
        if len(rest):
            if at > law.begins[-1]:
                law = law.then(_standing(float(law.begins[-1]), at, place))
            nominal = rest.nominal(self.overrides.feed, self.overrides.rapid)
            follow = TIME_LAWS[self.profile](rest, nominal, place, at=at, window=self.window)
            if follow is None:
                self._run(*self._block_after(place))
                return
            law, target = law.then(follow.numbered(place.piece)), path.end[-1]
        self.plan = Plan(path, law, target)
        self._next = PathPosition(len(path))

    def _block_after(self, place: PathPosition) -> tuple[float, PathPosition]:
        """Begin of the block after the running one, the first that can be changed."""
        blocks, law = self.plan.path.block, self.plan.law
        piece = int(np.searchsorted(blocks, blocks[place.piece], side="right"))
        segment = int(np.searchsorted(law.piece, piece))
        if segment < len(law):
            return self._begin_of(segment)
        return float(law.begins[-1]), PathPosition(piece)

    def _brake(self, at: float, place: PathPosition) -> None:
        if at >= self.plan.ends:
            return
        stop, path = BRAKES[self.profile](self.plan, at), self.plan.path
        self._next = PathPosition(stop.piece, stop.s)
        self.plan = Plan(path, stop.law, path.position(stop.piece, stop.s))

    def _drop_the_rest(self) -> None:
        """Drops the path beyond the end of the time law."""
        self._follow(self.plan.path.rows(0, self._next.piece + 1), self.plan.law)
        self._next = PathPosition(len(self.plan.path))
        self.end = self.plan.target
        self._final = self.plan.ends
        self.held = False

    def _drop_the_past(self, now: float) -> None:
        """Drops what ended longer ago than REMEMBERED, many pieces or segments at a time: each
        change of an override and each hold adds segments."""
        law = self.plan.law.since(now - REMEMBERED)
        if len(law) and (law.piece[0] > MANY or len(self.plan.law) - len(law) > MANY):
            past, path = int(law.piece[0]), self.plan.path
            self.first += past
            self._follow(path.rows(past, len(path)), law.numbered(-past))
            self._next = self._next._replace(piece=self._next.piece - past)


def _standing(begins: float, ends: float, place: PathPosition) -> TimeLaw:
    """Time law of a rest at a place of the path."""
    s, nothing_more = np.array([place.s]), np.zeros(1)
    when = np.array([begins, ends])
    return TimeLaw(when, np.array([place.piece]), s, nothing_more, nothing_more, nothing_more)


# ── the queue in nanoseconds ─────────────────────────────────────────────────────────────────────


class Queue:
    """A `Stream` in nanoseconds: a motion has ended at the first whole one not before its end."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.cut: Callable[[int], None] = lambda now: None
        """Called when queued motion is dropped."""
        self.before_change: Callable[[int], None] = lambda now: None
        """Called before the plan changes."""

    # ── commands ──

    def append(self, path: Path, now: int, *, deviation: float, exact: bool) -> None:
        self.before_change(now)
        self._stream.append(path, self._time(now), deviation=deviation, exact=exact)

    def hold(self, now: int) -> None:
        self.before_change(now)
        self._stream.hold(self._time(now))

    def resume(self, now: int) -> None:
        self.before_change(now)
        self._stream.resume(self._time(now))

    def override(self, now: int, *, feed: float | None, rapid: float | None) -> None:
        self.before_change(now)
        self._stream.override(self._time(now), feed=feed, rapid=rapid)

    @property
    def overrides(self) -> Overrides:
        return self._stream.overrides

    def stop(self, now: int) -> None:
        self.before_change(now)
        self._stream.stop(self._time(now))
        self.cut(now)

    def halt(self, now: int) -> None:
        self.before_change(now)
        self._stream.halt(self._time(now))
        self.cut(now)

    def set_position(self, position: Floats, now: int) -> None:
        self.before_change(now)
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
        """Which of these lines have begun to move."""
        known, begins = self.plan.lines()
        # A line has begun with the first of its blocks: an arc has many.
        is_ahead = begins * NS_PER_SECOND > now + 1e-3
        ahead = set(known[is_ahead].tolist()) - set(known[~is_ahead].tolist())
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


# ── a long path, part by part ─────────────────────────────────────────────────────────────────────


ENOUGH = 8192
"""Pieces from which a part is planned."""


class Part(NamedTuple):
    """The first pieces of a path with their time law; `entry`: the speed with which the next piece
    begins, squared for a trapezoidal profile."""

    pieces: int
    law: TimeLaw
    entry: float


class PartPlanner:
    """Collects paths that follow each other and plans what is final of them."""

    def __init__(self, window: int, profile: Profile, *, enough: int = ENOUGH) -> None:
        self._window = window
        self._profile: Profile = profile
        self._enough = self._next = enough
        self._paths: list[Path] = []
        self._pieces = 0
        self._entry = 0.0

    def __bool__(self) -> bool:
        return bool(self._paths)

    @property
    def last(self) -> Path:
        """The path that was appended last."""
        return self._paths[-1]

    def append(self, path: Path) -> None:
        self._paths.append(path)
        self._pieces += len(path)

    def part(self, at: float) -> Plan | None:
        """The plan of the first part, if enough pieces are known; motion goes on behind it."""
        if self._pieces < self._next:
            return None
        path = joined(self._paths)
        found = PARTS[self._profile](path, self._entry, at, self._window)
        pieces = found.pieces if found else 0
        self._keep(path, pieces)
        if found is None:
            return None
        self._entry = found.entry
        return Plan(path.rows(0, pieces), found.law, path.end[pieces - 1])

    def rest(self, at: float) -> Plan | None:
        """The plan of everything that is left, to rest; None if nothing is."""
        if not self._paths:
            return None
        path, entry = joined(self._paths), self._entry
        self._paths, self._pieces, self._entry, self._next = [], 0, 0.0, self._enough
        return Plan(path, WHOLE[self._profile](path, entry, at, self._window), path.end[-1])

    def _keep(self, path: Path, first: int) -> None:
        self._paths = [path.rows(first, len(path))]
        self._pieces = len(path) - first
        self._next = max(self._enough, 2 * self._pieces)


# ── trapezoidal profiles ────────────────────────────────────────────────────────────────────────


def _trapezoid_part(path: Path, entry: float, at: float, window: int) -> Part | None:
    """The look-ahead divides blocks into chunks of window - 1, so a part is whole chunks: then the
    rest is divided as the whole path would be, and every bit of the result is the same."""
    first = np.empty(len(path) + 1, dtype=np.int64)
    blocks, ahead = block_starts(path.block, first), window - 1
    chunks = (blocks - ahead) // ahead if ahead > 0 else blocks - 1
    last = chunks * max(ahead, 1)
    if last <= 0:
        return None
    nominal, pieces = path.nominal(), int(first[last])
    speeds = entries(path, nominal, window=window, entry=entry)
    known = path.rows(0, pieces)
    law = trapezoid(known, nominal[:pieces], speeds[: pieces + 1], at=at)
    return Part(pieces, law, float(speeds[pieces]))


def _trapezoid_whole(path: Path, entry: float, at: float, window: int) -> TimeLaw:
    nominal = path.nominal()
    return trapezoid(path, nominal, entries(path, nominal, window=window, entry=entry), at=at)


# ── jerk-limited profiles ───────────────────────────────────────────────────────────────────────


def _smooth_part(path: Path, entry: float, at: float, window: int) -> Part | None:
    nominal = path.nominal()
    blocks = smooth.blocks_of(path, nominal, first=0, run=0.0)
    last = smooth.last_free_block(blocks)
    if last < 1:
        return None
    pieces = blocks[last].first
    place = PathPosition(0, 0.0, entry)
    law, speed = smooth.law_of_blocks(path, blocks, place, at=at, count=last)
    assert law is not None, "at the start of a block every block can be run"
    return Part(pieces, law, speed)


def _smooth_whole(path: Path, entry: float, at: float, window: int) -> TimeLaw:
    place = PathPosition(0, 0.0, entry)
    law = smooth.jerk_limited_law(path, path.nominal(), place, at=at, window=window)
    assert law is not None, "at the start of a block every block can be run"
    return law


PARTS: dict[Profile, Callable[[Path, float, float, int], Part | None]] = {
    "trapezoid": _trapezoid_part,
    "jerk_limited": _smooth_part,
}
WHOLE: dict[Profile, Callable[[Path, float, float, int], TimeLaw]] = {
    "trapezoid": _trapezoid_whole,
    "jerk_limited": _smooth_whole,
}
