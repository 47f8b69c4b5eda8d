"""The scheduler: advances simulated time from one wake to the next; there is no fixed tick."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from understudy.units import seconds

SAME_INSTANT_LIMIT = 10_000
"""More wakes of one instant than this mean an endless loop."""


class StuckError(RuntimeError):
    """Parts that are due again after every wake, so that time cannot go on: a fault in them."""

    def __init__(self, now: int, parts: "Sequence[Wakes]", names: Sequence[str]) -> None:
        self.now = now
        self.parts = parts
        named = ", ".join(names)
        super().__init__(
            f"time stands at {seconds(now):.9f} s: {named} is due again after every wake "
            f"({SAME_INSTANT_LIMIT:,} times)"
        )


class Wakes(Protocol):
    """A part that acts at times of its own: a queue, a timer, a delayed answer."""

    def next_wake(self) -> int | None:
        """When it acts next; a time that has passed means now. Its cost must not grow with the time
        since the last wake."""
        ...

    def wake(self, now: int) -> None: ...


def earliest(parts: Iterable[Wakes]) -> int | None:
    """Earliest next wake of all parts; None if no part has one."""
    return min((at for part in parts if (at := part.next_wake()) is not None), default=None)


def never() -> bool:
    return False


def wake_all(
    parts: Sequence[Wakes], now: int, due: Sequence[Wakes], interrupted: Callable[[], bool] = never
) -> None:
    """Wakes all parts due at ``now``, in cell-file order, until no part is due any more.

    ``due`` holds the parts that are due at first. A woken part may be due again at the same instant
    (a queue with blocks of no length), or make an earlier part due (an output wired to an input).
    """
    for _ in range(SAME_INSTANT_LIMIT):
        for part in due:
            if _is_due(part, now):
                part.wake(now)
        due = [part for part in parts if _is_due(part, now)]
        if not due or interrupted():
            return
    raise StuckError(now, due, [type(part).__name__ for part in due])


def advance(
    parts: Sequence[Wakes],
    to: int,
    settled: Callable[[int], None] = lambda now: None,
    *,
    since: int = 0,
    interrupted: Callable[[], bool] = never,
) -> None:
    """Carries out all wakes up to and including ``to``; calls ``settled`` after each instant.

    ``interrupted`` says whether to leave the work of an instant; the next call continues with it.

    ``since`` is the present time. A part that was due before it (a new plan that follows a long
    rest) is woken once, at the present: no part runs through time that has passed.
    """
    while due := [
        (at, part) for part in parts if (at := part.next_wake()) is not None and at <= to
    ]:
        now = max(min(at for at, _ in due), since)
        wake_all(parts, now, [part for at, part in due if at <= now], interrupted)
        settled(now)
        if interrupted():
            return


def _is_due(part: Wakes, now: int) -> bool:
    at = part.next_wake()
    return at is not None and at <= now
