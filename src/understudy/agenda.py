"""The scheduler: advances simulated time from one wake to the next; there is no fixed tick."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

# More wakes of one instant than this mean an endless loop.
SAME_INSTANT_LIMIT = 10_000


class Wakes(Protocol):
    """A part that acts at times of its own: a queue, a timer, a delayed answer."""

    def next_wake(self) -> int | None: ...

    def wake(self, now: int) -> None: ...


def earliest(parts: Iterable[Wakes]) -> int | None:
    """Earliest next wake of all parts; None if no part has one."""
    return min((at for part in parts if (at := part.next_wake()) is not None), default=None)


def wake_all(parts: Sequence[Wakes], now: int, due: Sequence[Wakes]) -> None:
    """Wakes all parts due at ``now``, in cell-file order, until no part is due any more.

    ``due``: the parts due at first. A woken part may be due again at the same instant (a queue with
    blocks of no length), or make an earlier part due (an output wired to an input).
    """
    for _ in range(SAME_INSTANT_LIMIT):
        for part in due:
            if _is_due(part, now):
                part.wake(now)
        due = [part for part in parts if _is_due(part, now)]
        if not due:
            return
    names = ", ".join(type(part).__name__ for part in due)
    raise RuntimeError(f"endless loop at {now} ns: {names} is due again after every wake")


def advance(
    parts: Sequence[Wakes],
    to: int,
    settled: Callable[[int], None] = lambda now: None,
) -> None:
    """Carries out all wakes up to and including ``to``; calls ``settled`` after each instant."""
    while due := [
        (at, part) for part in parts if (at := part.next_wake()) is not None and at <= to
    ]:
        now = min(at for at, _ in due)
        wake_all(parts, now, [part for at, part in due if at == now])
        settled(now)


def _is_due(part: Wakes, now: int) -> bool:
    at = part.next_wake()
    return at is not None and at <= now
