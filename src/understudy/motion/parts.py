"""Plans a long path part by part, with the same result as `stream.planned` for the whole path.

The speed at the start of a block is final as soon as everything that can change it is known: with
a trapezoidal profile the window of blocks behind it; with a jerk-limited one, a block behind it
whose entry speed is limited by its own corner and feed and not by braking. So what is before can
be planned, used and forgotten while the rest of the program is read: memory does not grow with it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from understudy.motion import smooth
from understudy.motion.path import Path, joined
from understudy.motion.plan import PathPosition, Plan, TimeLaw
from understudy.motion.profile import Profile, block_starts, entries, trapezoid

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
