"""A KUKA with its G-code server, as its face and its driver see it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from msgspec import Struct

from understudy.ports import Joints
from understudy.space.pose import Pose


class Record(Struct, frozen=True):
    """A command: its kind, and the words given (X Y Z m, A B C rad, F m/s, E as it came).

    `flaw`: why no motion can be made of it.
    """

    seq: int
    kind: int
    words: dict[str, float] = {}
    flaw: str = ""


class Progress(NamedTuple):
    """Numbers of the last completed record and of the one in flight, and how many waited."""

    completed: int
    in_flight: int
    waiting: int
    under_way: bool


@dataclass(frozen=True, slots=True)
class KukaReading:
    """The tool in the active base, the axes (rad), its speed (m/s); bit n: channel n is up."""

    pose: Pose
    axes: Joints
    speed: float
    tool: int
    base: int
    flags: int
    progress: Progress


class GcodeServer(Protocol):
    """Carries out records one after the other."""

    def room(self) -> int:
        """How many records it can take."""
        ...

    def submit(self, record: Record, now: int) -> None: ...

    def connect(self, channel: int, up: bool, now: int) -> None:
        """A channel to the robot is up, or down."""
        ...

    def progress(self) -> Progress: ...

    def reading(self, now: int) -> KukaReading: ...

    def on_executed(self, listener: Callable[[int], None]) -> None:
        """Be told the moment of every record that was carried out."""
        ...
