"""How fast the cell's time runs, as its parts ask for it; the edge obeys."""

from collections.abc import Callable

from understudy.errors import Refused

FASTEST = 1e6


class ClockState:
    """One per cell. Scale and pause are remembered; whoever drives the time listens."""

    def __init__(self) -> None:
        self.scale = 1.0
        self.paused = False
        self._listeners: list[Callable[[], None]] = []

    def set_scale(self, scale: float) -> Refused | None:
        if not 0.0 < scale <= FASTEST:
            return Refused(f"{scale:g} is no time scale; allowed: above 0, up to {FASTEST:g}")
        self.scale = scale
        self._tell()
        return None

    def pause(self) -> None:
        self.paused = True
        self._tell()

    def resume(self) -> None:
        self.paused = False
        self._tell()

    def keep_up(self, rate: float | str) -> None:
        """The edge has another rate now; a word is no scale, and 0 is a pause."""
        if isinstance(rate, int | float):
            self.paused = rate == 0.0
            self.scale = float(rate) or self.scale

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
