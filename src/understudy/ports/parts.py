"""Protocol of the parts in a cell: what grippers hold, place and drop. Metres, kg."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from understudy.space.pose import Pose

PartState = Literal["resting", "held", "falling"]


class PartReading(Struct, frozen=True):
    """A part of the cell. `pose`: of its centre, in the cell. `size`: along its own axes.

    `holder`: the robot that holds it, empty if none does.
    """

    name: str
    class_name: str
    pose: Pose
    size: tuple[float, float, float]
    mass: float
    state: PartState = "resting"
    holder: str = ""


class PartsInReach(Protocol):
    """The parts of the cell, as a simulated gripper meets them."""

    def near(self, tool: Pose, region: tuple[float, float, float], now: int) -> Sequence[str]:
        """Names of the resting parts that reach into a box of this size around the tool point,
        along the axes of the tool; the nearest first."""
        ...

    def reading(self, name: str, now: int) -> PartReading: ...

    def take(self, name: str, robot: str, now: int) -> None:
        """The robot holds this part from now on; it moves with the flange."""
        ...

    def let_go(self, robot: str, now: int) -> None:
        """The robot holds nothing from now on: the part rests on what is below it, or falls."""
        ...

    def held_by(self, robot: str) -> str:
        """The name of the held part; empty if there is none."""
        ...
