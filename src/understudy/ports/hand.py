"""The hand of a robot as jobs work with it: a gripper, a vacuum cup, a magnet.

Every call returns at once; a `Ticket` ends later, by `on_finished`. Lengths are metres, forces N.
"""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket

HandState = Literal["UNKNOWN", "OPENED", "CLOSED", "OPENING", "CLOSING", "GRIPPING", "ERROR"]


class HandStatus(Struct, frozen=True):
    """`vacuum_kpa`: negative below the pressure of the air. `opening`: between the fingers, m."""

    state: HandState = "UNKNOWN"
    part_detected: bool = False
    force_n: float = 0.0
    vacuum_kpa: float = 0.0
    sensor_closed: bool = False
    sensor_opened: bool = False
    opening: float = 0.0
    error: str = ""


@runtime_checkable
class Hand(Protocol):
    """A hand, simulated or REAL. A ticket ends with None (done) or with a refusal."""

    def start_grip(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        """Closes; done when a part is held. A refusal that begins with MISSED: closed, no part."""
        ...

    def start_release(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        """Opens; done when the part sensor is clear."""
        ...

    def halt(self, now: int) -> None:
        """Ends the ticket under way and changes no output: a held part stays held."""
        ...

    def status(self, now: int) -> HandStatus: ...

    def on_finished(self, listener: Finished) -> None: ...

    def on_lost(self, listener: Callable[[int], None]) -> None:
        """Calls the listener when the part sensor of a held part clears without a release."""
        ...
