"""Protocol of the parts in a cell: what grippers hold, place and drop. Metres, kg."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct
from numpy import float64
from numpy.typing import NDArray

from understudy.space.pose import Pose

PartState = Literal["resting", "held", "falling"]


class WorkpieceReading(Struct, frozen=True):
    """A part of the cell. `pose`: of its centre, in the cell. `size`: along its own axes.

    `holder`: the robot that holds it, empty if none does. `type`: box or cylinder. `color`: as in
    `#d9822b`.
    """

    name: str
    class_name: str
    pose: Pose
    size: tuple[float, float, float]
    mass: float
    state: PartState = "resting"
    holder: str = ""
    type: str = "box"
    color: str = ""


class SeenWorkpieces(Protocol):
    """The parts of a cell, as a camera sees them."""

    def names(self) -> Sequence[str]: ...

    def reading(self, name: str, now: int) -> WorkpieceReading: ...


class WorkpiecesInReach(Protocol):
    """The parts of the cell, as a simulated gripper meets them."""

    def near(self, tool: Pose, region: tuple[float, float, float], now: int) -> Sequence[str]:
        """Names of the resting parts that reach into a box of this size around the tool point,
        along the axes of the tool; the nearest first."""
        ...

    def reading(self, name: str, now: int) -> WorkpieceReading: ...

    def take(self, name: str, robot: str, now: int) -> None:
        """The robot holds this part from now on; it moves with the flange."""
        ...

    def let_go(self, robot: str, now: int) -> None:
        """The robot holds nothing from now on: the part rests on what is below it, or falls."""
        ...

    def held_by(self, robot: str) -> str:
        """The name of the held part; empty if there is none."""
        ...


# ── what the parts need of a robot ──────────────────────────────────────────────────────────────


@runtime_checkable
class HasFlange(Protocol):
    """A robot that can hold parts."""

    def flange(self, now: int) -> NDArray[float64]:
        """The flange in the cell at ``now``, 4×4."""
        ...


class Load(Struct, frozen=True):
    """What a flange carries beside the tool: kg, centre of mass and inertia about it (rows of a
    3×3 matrix), both in the axes of the flange."""

    mass: float
    com: tuple[float, float, float]
    inertia: tuple[tuple[float, float, float], ...]


@runtime_checkable
class CarriesLoad(Protocol):
    """A robot whose torques depend on what it holds."""

    def carry(self, load: Load | None) -> None: ...


@runtime_checkable
class AttachesShapes(Protocol):
    """A collision watch that checks held parts together with the arm."""

    def attach(self, thing: Any, now: int) -> Any: ...

    def detach(self, name: str, now: int) -> Any: ...

    def flange(self, now: int) -> NDArray[float64]: ...
