"""What a session asks of a G-code sender, whichever program it is."""

from pathlib import Path
from typing import NamedTuple, Protocol


class Shown(NamedTuple):
    """What the sender shows: the machine's condition, X Y Z of the work, and the feed override."""

    state: str = ""
    position: tuple[float, ...] = ()
    feed_override: int = 100


class Buttons(Protocol):
    """What an operator does in the sender at any time."""

    def unlock(self) -> None: ...

    def home(self) -> None: ...

    def jog(self, move: str) -> None:
        """Jogs by an increment, e.g. ``X10``."""

    def zero(self) -> None:
        """Makes this position the origin of G54."""

    def override_feed(self, percent: int) -> None: ...

    def reset(self) -> None: ...


class Program(Protocol):
    """A program that is streamed."""

    def load(self, path: Path) -> None: ...

    def start(self) -> None: ...

    def hold(self) -> None: ...

    def resume(self) -> None: ...

    def confirm_tool(self) -> None:
        """Continues after M6."""

    def finished(self) -> bool: ...


class Sender(Buttons, Program, Protocol):
    """A sender that is connected to the machine."""

    name: str

    def shown(self) -> Shown: ...

    def errors(self) -> list[str]:
        """`error:…` and `ALARM:…` lines that the sender has shown since the last call."""
