"""Simulated time against the wall: a rate, a pause, lock-step, or as fast as it goes."""

import time
from collections.abc import Callable
from typing import Literal

from understudy.units import NS_PER_SECOND

Rate = float | Literal["max", "step"]
HIGHEST_RATE = 1e6


class Clock:
    """Reads the wall; changing the rate never jumps."""

    def __init__(self, rate: Rate = 1.0, wall: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall = wall
        self._rate = rate
        self._since_wall = wall()
        self._since = 0
        self.started = self._since_wall

    @property
    def rate(self) -> Rate:
        return self._rate

    @property
    def lock_step(self) -> bool:
        """Time runs because somebody is owed something, not because the wall's does."""
        return self._rate in ("max", "step")

    def now(self) -> int:
        return self._since + round((self._wall() - self._since_wall) * self._speed())

    def set_rate(self, rate: Rate) -> None:
        self.set_now(self.now())
        self._rate = rate

    def set_now(self, now: int) -> None:
        """Simulated time is this, from here on."""
        self._since = now
        self._since_wall = self._wall()

    def seconds_until(self, at: int) -> float | None:
        """Wall seconds until simulated time gets there; None when it never does by itself."""
        speed = self._speed()
        if speed == 0.0:
            return None
        return max(at - self.now(), 0) / speed / NS_PER_SECOND

    def real_seconds(self) -> float:
        return (self._wall() - self.started) / NS_PER_SECOND

    def _speed(self) -> float:
        if self._rate == "step":
            return 0.0
        return 1.0 if self._rate == "max" else float(self._rate)


def parse_rate(text: str) -> Rate:
    """`1`, `0.5`, `0`, `max` or `step`; ValueError otherwise."""
    if text in ("max", "step"):
        return "max" if text == "max" else "step"
    rate = float(text)
    if not 0.0 <= rate <= HIGHEST_RATE:
        raise ValueError(text)
    return rate
