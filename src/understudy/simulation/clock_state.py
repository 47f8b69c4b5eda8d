"""The rate and the pause of a cell's time: the only object from which pump, engine and doors read
it.

| command | `rate` | `paused` | time |
|---|---|---|---|
| `rate N`, N > 0 | N | unchanged | runs N times as fast as the wall clock, unless paused |
| `rate 0` | 0 | unchanged | stands still |
| `rate max`, `rate step` | the word | unchanged | runs in lock-step, unless paused |
| `pause` | unchanged | true | stands still |
| `resume`, `start` | the last scale if it was 0 | false | runs |
"""

from collections.abc import Callable

from understudy.errors import Refused
from understudy.ports import Rate

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
