"""grblHAL's look-ahead: entry speed of each piece of a path, such that braking is always possible.

The square of the entry speed is bounded by the corner, by the nominal speeds of both neighbours, by
braking (backward pass; the last known block ends at rest) and by acceleration (forward pass). The
controller knows a window of blocks, the executing one included; when a block finishes the next one
enters the window. So a block's exit speed is what a backward pass from the end of *its own* window
allows. All windows together cost as much as one pass: a block maps the square of the speed at its
exit to that at its entry by x ↦ min(M, x + W), and such maps compose.
"""

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats, Path
from understudy.space.compiled import compiled

ENDLESS = 1 << 40
"""Window size that no program exceeds."""

SLACK = 1e-9
"""Relative amount by which braking may miss a bound because of rounding."""


@compiled
def ceilings(junction: Floats, nominal: Floats, dwell: Floats, out: Floats) -> None:
    """Square of the speed that corner and both neighbours allow at each piece's start."""
    before = np.inf
    for k in range(len(junction)):
        speed = nominal[k] * nominal[k]
        out[k] = 0.0 if dwell[k] > 0.0 else min(junction[k], before, speed)
        before = speed


@compiled
def windows(  # kernel
    ceiling: Floats, gain: Floats, first: NDArray[np.int64], window: int, bound: Floats
) -> None:
    """Square of the entry speed of each block, with the window of the block before it.

    ``gain`` is 2·a·L of each piece; ``first``: first piece of each block, and the number of pieces.
    The blocks are divided into chunks of window - 1, the number of known blocks after the executing
    one; a window is then the tail of one chunk and the head of the next.
    """
    blocks = len(first) - 1
    ahead = min(window - 1, blocks)
    bound[blocks] = 0.0
    if ahead < 1:
        bound[:] = 0.0
        return
    head = np.empty(blocks)
    tail_top = np.empty(blocks)
    tail_gain = np.empty(blocks)
    for start in range(0, blocks, ahead):
        stop = min(start + ahead, blocks)
        top, added = np.inf, 0.0
        for b in range(start, stop):
            for p in range(first[b], first[b + 1]):
                top = min(top, ceiling[p] + added)
                added += gain[p]
            head[b] = min(top, added)
        top, added = np.inf, 0.0
        for b in range(stop - 1, start - 1, -1):
            for p in range(first[b + 1] - 1, first[b] - 1, -1):
                top = min(ceiling[p], top + gain[p])
                added += gain[p]
            tail_top[b] = top
            tail_gain[b] = added
    for b in range(blocks):
        last = b + ahead - 1
        beyond = head[last] if b % ahead != 0 and last < blocks else 0.0
        if last >= blocks and b // ahead != (blocks - 1) // ahead:
            beyond = head[blocks - 1]
        bound[b] = min(tail_top[b], beyond + tail_gain[b])


@compiled
def forward(  # kernel
    ceiling: Floats,
    gain: Floats,
    first: NDArray[np.int64],
    bound: Floats,
    entry: Floats,
) -> None:
    """Square of the speed at each piece's start and at the end of the last, from entry[0] on.

    If a lower override has put the ceiling below the current speed, the pieces brake as hard as
    they can until the speed is below the ceiling.
    """
    for b in range(len(first) - 1):
        start, stop = first[b], first[b + 1]
        entry[stop] = bound[b + 1]
        for p in range(stop - 1, start, -1):
            entry[p] = min(ceiling[p], entry[p + 1] + gain[p])
        for p in range(start, stop):
            lowest = entry[p] - gain[p] * (1.0 + SLACK)
            entry[p + 1] = max(min(entry[p + 1], entry[p] + gain[p]), lowest)


@compiled
def block_starts(block: NDArray[np.int64], first: NDArray[np.int64]) -> int:
    """Sets the first piece of each block, then the number of pieces; returns how many blocks."""
    n = 0
    for p in range(len(block)):
        if p == 0 or block[p] != block[p - 1]:
            first[n] = p
            n += 1
    first[n] = len(block)
    return n


def entries(
    path: Path, nominal: Floats, *, window: int = ENDLESS, entry: float = 0.0, run: float = 0.0
) -> Floats:
    """Square of the speed at the start of each piece, and at the end of the last.

    The motion is at the distance ``run`` along the first piece; ``entry``: square of its speed.
    """
    gain = 2.0 * path.acceleration * path.length
    gain[:1] -= 2.0 * path.acceleration[:1] * run
    return passes(path, nominal, gain=gain, window=window, entry=entry)


def passes(path: Path, nominal: Floats, *, gain: Floats, window: int, entry: float) -> Floats:
    """Ceilings, then the backward pass over every window, then the forward pass."""
    count = len(path)
    ceiling = np.empty(count)
    ceilings(path.junction, nominal, path.dwell, ceiling)
    first = np.empty(count + 1, dtype=np.int64)
    blocks = block_starts(path.block, first)
    first = first[: blocks + 1]
    bound = np.empty(blocks + 1)
    windows(ceiling, gain, first, window, bound)
    speeds = np.empty(count + 1)
    speeds[0] = entry
    forward(ceiling, gain, first, bound, speeds)
    return speeds
