"""The query `vision_picture`: the picture in which vision has seen its last objects, or none.

A camera on the flange sees something else as soon as the robot moves on. What it sees is therefore
kept when a result comes: the robot still stands where the picture was taken. It is drawn when it is
asked for, once for all viewers.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.errors import Refused, unknown
from understudy.operator.background import BackgroundRuns
from understudy.operator.job_views import HasLens, object_facts
from understudy.operator.pictures import picture_answer
from understudy.operator.robots import Robots
from understudy.operator.table import Command
from understudy.ports.device import Preview, ShowsPicture
from understudy.ports.hmi import Later
from understudy.ports.vision import VisionResult

if TYPE_CHECKING:
    from understudy.sight.lens import Lens

WIDTH = 640
MISSES_KEPT = 5
UNASKED = 20
"""Results without a question for their picture after which pictures are kept no longer."""
NO_PICTURE = Refused("no picture is kept: the next result has one")
NO_MISS = Refused("no picture without objects is kept")

Make = Callable[[], Preview]


class WhichResult(Struct, frozen=True, forbid_unknown_fields=True):
    """`which`: of the last result, or of one without objects (`miss`): the last one, or as many
    before it as `back` says. `robot`: can be left out if one robot has a camera and vision."""

    robot: str = ""
    which: Literal["last", "miss"] = "last"
    depth: bool = False
    back: Annotated[int, Meta(ge=0, lt=MISSES_KEPT)] = 0


@dataclass(slots=True)
class Kept:
    """A picture that can be drawn: in colours and as depth. `drawn`: by whether it is depth.
    `seen`: its number and the objects in it, for the page."""

    seen: dict[str, Any]
    at: int
    makes: dict[bool, Make]
    drawn: dict[bool, Later] = field(default_factory=dict)


@dataclass(slots=True)
class Eye:
    """The camera of a robot and its kept pictures. `unasked`: results since the last question."""

    camera: ShowsPicture
    lens: "Lens | None" = None
    last: Kept | None = None
    misses: deque[Kept] = field(default_factory=lambda: deque(maxlen=MISSES_KEPT))
    unasked: int = UNASKED

    def answered(self, result: VisionResult | Refused, now: int) -> None:
        """Keeps what the camera sees, if viewers ask for pictures."""
        self.unasked += 1
        self.last = None
        if self.unasked > UNASKED:
            return
        makes = {depth: self.camera.preview(now, WIDTH, depth=depth) for depth in (False, True)}
        drawable = {depth: make for depth, make in makes.items() if not isinstance(make, Refused)}
        if len(drawable) < len(makes):
            return
        seen = {"frame_id": 0, "objects": []}
        if not isinstance(result, Refused):
            objects = [object_facts(each, self.lens) for each in result.objects]
            seen = {"frame_id": result.frame_id, "objects": objects}
        self.last = Kept(seen, now, drawable)
        if not seen["objects"]:
            self.misses.append(self.last)

    def find(self, which: str, back: int) -> Kept | Refused:
        if which == "last":
            return self.last or NO_PICTURE
        return self.misses[-1 - back] if back < len(self.misses) else NO_MISS


class VisionPictures:
    """Pictures of the results of vision, for robots with a virtual camera."""

    def __init__(self, robots: Robots, runs: BackgroundRuns) -> None:
        self._runs = runs
        self._eyes: dict[str, Eye] = {}
        for robot in robots:
            parts = robots.components[robot.name]
            camera: object = parts.get(f"{robot.name}.camera")
            vision: Any = parts.get(f"{robot.name}.vision")
            if isinstance(camera, ShowsPicture) and vision is not None:
                self._follow(robot.name, camera, vision)

    def _follow(self, name: str, camera: ShowsPicture, vision: Any) -> None:
        lens = vision.model.lens if isinstance(vision, HasLens) else None
        eye = self._eyes[name] = Eye(camera, lens)
        vision.on_result(lambda ticket, result, now: eye.answered(result, now))

    def commands(self) -> list[Command]:
        if not self._eyes:
            return []
        doc = "the picture of the last result of vision, or of one of the last without objects"
        return [
            Command("vision_picture", doc, self._picture, WhichResult, role="viewer", large=True)
        ]

    def _picture(self, given: WhichResult) -> Any:
        robot = given.robot or (next(iter(self._eyes)) if len(self._eyes) == 1 else "")
        if robot not in self._eyes:
            return Refused(str(unknown("robot with a camera and vision", robot, self._eyes)))
        eye = self._eyes[robot]
        eye.unasked = 0
        kept = eye.find(given.which, given.back)
        if isinstance(kept, Refused):
            return kept
        if given.depth not in kept.drawn:
            make = kept.makes[given.depth]
            later = self._runs.beside(lambda: picture_answer(robot, kept.at, make))
            if isinstance(later, Refused):
                return later
            kept.drawn[given.depth] = later.turned(lambda answer: {**answer, **kept.seen})
        misses = len(eye.misses)
        return kept.drawn[given.depth].turned(lambda answer: {**answer, "misses": misses})
