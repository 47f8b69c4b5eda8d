"""How many of a peer's bytes are read at a time: few, if there is much work in them.

Three bytes can ask for four thousand. Whoever floods one wire keeps the others waiting for about
as long as one helping takes, so what the last one took decides on the size of the next.
"""

from time import thread_time

SMALLEST, FIRST, LARGEST = 16, 64, 2048
"""Bytes."""
LONG, SHORT = 0.010, 0.002
"""Seconds of work in a helping that was too large, and in one that could be larger."""


def following(size: int, took: float) -> int:
    """How many bytes to read after so many, in which there were so many seconds of work."""
    if took > LONG:
        return max(SMALLEST, size // 4)
    return min(LARGEST, size * 2) if took < SHORT else size


class ReadBudget:
    """Of one peer. Work is counted in this thread's own time: a busy machine is no busy peer."""

    def __init__(self) -> None:
        self.size = FIRST
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = thread_time()

    def __exit__(self, *problem: object) -> None:
        self.size = following(self.size, thread_time() - self._begun)
