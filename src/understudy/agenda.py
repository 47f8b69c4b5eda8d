"""The whole scheduler: jump from wake to wake; nothing ticks when nothing happens."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

# A part that asks to be woken at the same instant this often is stuck, not busy.
SAME_INSTANT_LIMIT = 10_000


class Wakes(Protocol):
    """Whatever acts by itself."""

    def next_wake(self) -> int | None: ...

    def wake(self, now: int) -> None: ...


def earliest(parts: Iterable[Wakes]) -> int | None:
    """The next instant at which any of the parts wants to act."""
    return min((at for part in parts if (at := part.next_wake()) is not None), default=None)


def wake_all(parts: Sequence[Wakes], now: int, due: Sequence[Wakes]) -> None:
    """Everything that happens at one instant: in cell-file order, until nobody wants this instant.

    ``due``: who wants it at first. A part may ask for the instant it is being woken at (a queue
    that goes on without a pause), or make an earlier part do so (an output that moves an input).
    """
    for _ in range(SAME_INSTANT_LIMIT):
        for part in due:
            if _is_due(part, now):
                part.wake(now)
        due = [part for part in parts if _is_due(part, now)]
        if not due:
            return
    names = ", ".join(type(part).__name__ for part in due)
    raise RuntimeError(f"time does not get past {now} ns: {names} asks for it again and again")


def advance(
    parts: Sequence[Wakes],
    to: int,
    settled: Callable[[int], None] = lambda now: None,
) -> None:
    """Carry out every wake up to and including ``to``; ``settled`` is told after each instant."""
    while due := [
        (at, part) for part in parts if (at := part.next_wake()) is not None and at <= to
    ]:
        now = min(at for at, _ in due)
        wake_all(parts, now, [part for at, part in due if at == now])
        settled(now)


def _is_due(part: Wakes, now: int) -> bool:
    at = part.next_wake()
    return at is not None and at <= now
