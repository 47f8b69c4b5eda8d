"""What is told of a KUKA, and what a snapshot holds of it."""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from understudy.ports.kuka import KukaReading, Record
from understudy.robots.kuka.moves import Standing
from understudy.robots.kuka.outputs import Saved as SavedOutputs


@dataclass(frozen=True, slots=True)
class Status:
    """What is told of the robot. `outputs`: the numbers of those that are on."""

    reading: KukaReading
    waiting: int
    stopped: bool
    outputs: tuple[int, ...]
    weld_job: int
    speed_set: float
    messages: tuple[str, ...]


class Saved(Struct):
    """What a snapshot holds. `ahead`: how many of the waiting records are planned already;
    `behind`: how many pieces of path lie behind the present ones.
    """

    standing: Standing
    waiting: list[Record]
    in_flight: Record | None
    ahead: int
    course: dict[str, Any] | None
    completed: int
    flying: int
    taken: int
    flags: int
    next_check: int | None
    stopped: bool
    outputs: SavedOutputs
    messages: list[str]
    behind: int
