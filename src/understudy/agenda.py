"""Simulated time: the scheduler, and the rate and pause of a cell's time.

The scheduler advances from one wake to the next; there is no fixed tick. `ClockState` is the only
object from which pump, engine and doors read rate and pause:

| command | `rate` | `paused` | time |
|---|---|---|---|
| `rate N`, N > 0 | N | unchanged | runs N times as fast as the wall clock, unless paused |
| `rate 0` | 0 | unchanged | stands still |
| `rate max`, `rate step` | the word | unchanged | runs in lock-step, unless paused |
| `pause` | unchanged | true | stands still |
| `resume`, `start` | the last scale if it was 0 | false | runs |
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from understudy.errors import Refused
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


# ── rate and pause ──────────────────────────────────────────────────────────────────────────────

Rate = float | Literal["max", "step"]
"""How fast simulated time runs: times real time, as fast as possible, or on request only."""

HIGHEST_RATE = 1e6


class ClockState:
    """Rate and pause of one cell. Listeners are called after every change.

    `rate`: the rate that was set; `scale`: the last one that was a number above 0.
    """

    def __init__(self, rate: Rate = 1.0) -> None:
        self.rate: Rate = rate
        self.scale = 1.0
        self.paused = False
        self._listeners: list[Callable[[], None]] = []
        self.set_rate(rate)

    @property
    def running_rate(self) -> Rate:
        """The rate at which time runs now: 0 while it is paused."""
        return 0.0 if self.paused else self.rate

    def set_rate(self, rate: Rate) -> None:
        """Sets the rate; a pause lasts until `resume`."""
        self.rate = rate
        if not isinstance(rate, str):
            self.rate = float(rate)
            self.scale = self.rate or self.scale
        self._changed()

    def run_in_real_time(self) -> None:
        """Sets the rate of real time and ends a pause."""
        self.set_rate(1.0)
        self.resume()

    def set_scale(self, scale: float) -> Refused | None:
        """Like `set_rate`, but a cell in lock-step or at rate 0 stays so and keeps the scale for
        later."""
        if not 0.0 < scale <= HIGHEST_RATE:
            return Refused(
                f"{scale:g} is not a time scale; allowed: above 0, up to {HIGHEST_RATE:g}"
            )
        self.scale = scale
        if self.rate not in ("max", "step", 0.0):
            self.rate = scale
        self._changed()
        return None

    def pause(self) -> None:
        self.paused = True
        self._changed()

    def resume(self) -> None:
        """Ends a pause, and a rate of 0."""
        self.paused = False
        self.rate = self.rate or self.scale
        self._changed()

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()


def parse_rate(text: str) -> Rate:
    """Reads `1`, `0.5`, `0`, `max` or `step`; ValueError for anything else."""
    if text in ("max", "step"):
        return "max" if text == "max" else "step"
    rate = float(text)
    if not 0.0 <= rate <= HIGHEST_RATE:
        raise ValueError(text)
    return rate
