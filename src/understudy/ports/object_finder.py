"""Protocols between a job and what finds objects for it: a camera with its detectors.

Every call returns at once. Lengths are metres, angles rad, times ns.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.space.pose import Pose

FINDER = "vision"
"""Name of the component on its robot."""


class FinderUse(Struct, frozen=True):
    """How a job uses the vision of its robot.

    `name`: of the component. `latency`: from a picture to its result, where time does not run by
    itself. `timeout`: after which a question without an answer is lost. `points`: results have
    points of the depth image. `pictures`: the job looks at pictures itself, so that knowing where
    the workpieces are is not enough.
    """

    name: str
    latency: int
    timeout: int
    points: bool = False
    pictures: bool = False


class DetectedObject(Struct, frozen=True):
    """An object that the camera sees. `pose`: in the frame of the camera, metres and radians (the
    JSON of the vision process has millimetres and degrees). `bbox`: pixels, x y w h.

    `part`: the name of the simulated part, known to ground-truth vision only.
    """

    id: int
    class_name: str
    confidence: float
    pose: Pose
    bbox: tuple[int, int, int, int] = (0, 0, 0, 0)
    part: str = ""


class FoundObjects(Struct, frozen=True):
    """An answer of the vision system. `exposed_at`: simulated time of the picture. `points`: of
    every surface in the picture, in the frame of the camera, metres; empty unless they were asked
    for (`FinderUse.points`). `brightness`: mean grey value of the picture, 0 to 255; None: not
    known."""

    exposed_at: int
    frame_id: int
    objects: tuple[DetectedObject, ...] = ()
    points: tuple[tuple[float, float, float], ...] = ()
    brightness: float | None = None


ResultListener = Callable[[Ticket, FoundObjects | Refused, int], None]


@runtime_checkable
class ObjectFinder(Protocol):
    """A camera with its detectors, simulated or REAL. `takes_pictures`: False for vision that knows
    where the simulated parts are."""

    takes_pictures: bool

    def request(self, class_filter: str, now: int) -> Ticket | Refused:
        """Takes a picture now; the result comes to the listeners. Empty filter: every class."""
        ...

    def cancel(self, now: int) -> None:
        """The result of the request under way is not wanted any more."""
        ...

    def camera(self, flange: Pose) -> Pose:
        """The pose of the camera in the cell for this pose of the flange (eye in hand) or for
        every one (eye to hand)."""
        ...

    def on_result(self, listener: ResultListener) -> None: ...
