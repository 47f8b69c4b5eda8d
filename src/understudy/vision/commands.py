"""Queries of the vision of robots, and the command that sets the detectors of its process.

`vision_picture` is the picture in which vision has seen its last objects, or none. A camera on the
flange sees something else as soon as the robot moves on. What it sees is therefore kept when a
result comes: the robot still stands where the picture was taken. It is drawn when it is asked for,
once for all viewers.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from msgspec import Meta, to_builtins

from understudy.config import CellConfig
from understudy.config.typed import fields_of
from understudy.errors import Refused, unknown
from understudy.operator.background import BackgroundRuns
from understudy.operator.pictures import picture_answer
from understudy.operator.robots import Jobs, Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports.device import Preview, ShowsPicture
from understudy.ports.hmi import Later
from understudy.ports.object_finder import DetectedObject, FoundObjects, ObjectFinder
from understudy.registry import modules
from understudy.sight.lens import CameraModel, Lens
from understudy.space.pose import pose_mm_deg
from understudy.space.transform import matrix
from understudy.units import seconds
from understudy.vision.assembly import section_in_use
from understudy.vision.bridge import ProcessVision
from understudy.vision.detector_config import DetectorTables, plain

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

WIDTH = 640
MISSES_KEPT = 5
UNASKED = 20
"""Results without a question for their picture after which pictures are kept no longer."""
NO_PICTURE = Refused("no picture is kept: the next result has one")
NO_MISS = Refused("no picture without objects is kept")
AXIS_M = 0.03
"""Length of the axes that are drawn at a detected object."""
Make = Callable[[], Preview]


def commands(cell: "OperatedCell") -> list[Command]:
    visions = Jobs(cell.robots, ObjectFinder, "vision", name=".vision")
    pictures, detectors = Pictures(cell.robots, cell.runs), Detectors(cell.config, cell.robots)
    found = commands_of(Results(visions)) if visions else []
    found += commands_of(pictures) if pictures else []
    return found + (commands_of(detectors) if detectors else [])


@runtime_checkable
class HasLens(Protocol):
    """Vision that knows its camera."""

    model: CameraModel


# ── results ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class LastResult:
    """The last answer of vision, and when it came."""

    result: FoundObjects | Refused | None = None
    at: int = 0


class Results:
    """The last result of each robot's vision."""

    def __init__(self, visions: Jobs[ObjectFinder]) -> None:
        self._visions = visions
        self._results: dict[str, LastResult] = {}
        for name, vision in visions.all().items():
            self._follow(name, vision)

    def _follow(self, name: str, vision: ObjectFinder) -> None:
        last = self._results[name] = LastResult()

        def answered(_: int, result: FoundObjects | Refused, now: int) -> None:
            last.result, last.at = result, now

        vision.on_result(answered)

    @query(large=True)
    def vision_result(self, robot: str = "") -> Any:
        """What vision has seen last (px; mm and deg from the camera)."""
        return self._visions.ask(
            robot, lambda of, vision: of.simulated.time.act(partial(self._shown, of, vision))
        )

    def _shown(self, robot: Robot, vision: ObjectFinder, now: int) -> dict[str, Any]:
        last = self._results[robot.name]
        model = vision.model if isinstance(vision, HasLens) else None
        lens = None if model is None else model.lens
        answer: dict[str, Any] = {
            "robot": robot.name,
            "camera": model
            and {"width": model.lens.width, "height": model.lens.height, "mount": model.mount},
            "frame_id": 0,
            "exposed_at_s": None,
            "age_s": None,
            "error": "",
            "objects": [],
        }
        result = last.result
        if result is None or last.at > now:  # the cell was restored to an earlier state
            return answer
        if isinstance(result, Refused):
            return {**answer, "age_s": seconds(now - last.at), "error": result.reason}
        return {
            **answer,
            "frame_id": result.frame_id,
            "exposed_at_s": seconds(result.exposed_at),
            "age_s": seconds(now - result.exposed_at),
            "objects": [object_facts(each, lens) for each in result.objects],
        }


def object_facts(seen: DetectedObject, lens: Lens | None) -> dict[str, Any]:
    """A detected object, as pages draw it; without a lens it has no axes."""
    return {
        "id": seen.id,
        "class": seen.class_name,
        "confidence": seen.confidence,
        "bbox": seen.bbox,
        "pose_mm_deg": pose_mm_deg(seen.pose),
        "axes_px": [] if lens is None else _axes(seen, lens),
    }


def _axes(seen: DetectedObject, lens: Lens) -> list[list[float]]:
    """The pixels of the origin of an object and of the ends of its axes; empty if one of them is
    not in front of the camera."""
    place = matrix(seen.pose)
    ends = np.vstack([np.zeros(3), AXIS_M * np.eye(3)]) @ place[:3, :3].T + place[:3, 3]
    if ends[:, 2].min() <= 0.0:
        return []
    pixels: list[list[float]] = lens.pixels(ends).round(2).tolist()
    return pixels


# ── pictures ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Kept:
    """A picture that can be drawn: in colours and as depth. `drawn`: by whether it is depth.
    `seen`: its number and the objects in it, for the page."""

    seen: dict[str, Any]
    at: int
    makes: dict[bool, Make]
    drawn: dict[bool, Later] = field(default_factory=dict)


@dataclass(slots=True)
class KeptPictures:
    """The camera of a robot and its kept pictures. `unasked`: results since the last question."""

    camera: ShowsPicture
    lens: Lens | None = None
    last: Kept | None = None
    misses: deque[Kept] = field(default_factory=lambda: deque(maxlen=MISSES_KEPT))
    unasked: int = UNASKED

    def answered(self, result: FoundObjects | Refused, now: int) -> None:
        """Keeps what the camera sees, if viewers ask for pictures."""
        self.unasked += 1
        self.last = None
        if self.unasked > UNASKED:
            return
        makes = {depth: self.camera.preview(now, WIDTH, depth=depth) for depth in (False, True)}
        drawable = {depth: make for depth, make in makes.items() if not isinstance(make, Refused)}
        if len(drawable) < len(makes):
            return
        seen: dict[str, Any] = {"frame_id": 0, "objects": []}
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


class Pictures:
    """Pictures of the results of vision, for robots with a virtual camera."""

    def __init__(self, robots: Robots, runs: BackgroundRuns) -> None:
        self._runs = runs
        self._kept: dict[str, KeptPictures] = {}
        cameras = Jobs(robots, ShowsPicture, "camera").all()
        for name, vision in Jobs(robots, ObjectFinder, "vision", name=".vision").all().items():
            if name in cameras:
                self._follow(name, cameras[name], vision)

    def __bool__(self) -> bool:
        return bool(self._kept)

    def _follow(self, name: str, camera: ShowsPicture, vision: ObjectFinder) -> None:
        lens = vision.model.lens if isinstance(vision, HasLens) else None
        kept = self._kept[name] = KeptPictures(camera, lens)
        vision.on_result(lambda ticket, result, now: kept.answered(result, now))

    @query(large=True)
    def vision_picture(
        self,
        robot: str = "",
        which: Literal["last", "miss"] = "last",
        depth: bool = False,
        back: Annotated[int, Meta(ge=0, lt=MISSES_KEPT)] = 0,
    ) -> Any:
        """The picture of the last result of vision, or of one of the last without objects.

        `which`: of the last result, or of one without objects (`miss`): the last one, or as many
        before it as `back` says. `robot`: can be left out if one robot has a camera and vision.
        """
        name = robot or (next(iter(self._kept)) if len(self._kept) == 1 else "")
        if name not in self._kept:
            return Refused(str(unknown("robot with a camera and vision", name, self._kept)))
        pictures = self._kept[name]
        pictures.unasked = 0
        kept = pictures.find(which, back)
        if isinstance(kept, Refused):
            return kept
        if depth not in kept.drawn:
            make = kept.makes[depth]
            later = self._runs.beside(lambda: picture_answer(name, kept.at, make))
            if isinstance(later, Refused):
                return later
            kept.drawn[depth] = later.turned(lambda answer: {**answer, **kept.seen})
        misses = len(pictures.misses)
        return kept.drawn[depth].turned(lambda answer: {**answer, "misses": misses})


# ── detectors ───────────────────────────────────────────────────────────────────────────────────


class Detectors:
    """For the robots with a section `vision`, or a job that uses one."""

    def __init__(self, config: CellConfig, robots: Robots) -> None:
        sections = {name: section_in_use(robot.sections) for name, robot in config.robots.items()}
        self._sections = {name: each for name, each in sections.items() if each is not None}
        self._robots = robots
        self._visions = Jobs(robots, ObjectFinder, "vision", name=".vision")

    def __bool__(self) -> bool:
        return bool(self._sections)

    @query()
    def vision_detectors(self, robot: str = "") -> Any:
        """The detectors of the vision process, and their keys."""
        name = self._named(robot)
        return name if isinstance(name, Refused) else self._shown(name)

    @command()
    def set_vision_detectors(self, detectors: DetectorTables | None, robot: str = "") -> Any:
        """Other detectors from the next picture on; null: as in the cell file.

        `detectors`: as the section `vision` has them; null: those of the cell file.
        """
        name = self._named(robot)
        if isinstance(name, Refused):
            return name
        vision = self._vision(name)
        if vision is None:
            return Refused(
                f"{name} has no vision process: its vision knows where the parts are and has no "
                "detectors; start the cell with --vision process, or set vision.source: process"
            )
        if name in [each.name for each in self._robots.real()]:
            return Refused(f"{name} is REAL: the detectors of its simulated job cannot be set")
        return vision.set_detectors(detectors) or self._shown(name)

    def _named(self, robot: str) -> str | Refused:
        name = robot or (next(iter(self._sections)) if len(self._sections) == 1 else "")
        if name not in self._sections:
            return Refused(str(unknown("robot with vision", name, self._sections)))
        return name

    def _vision(self, robot: str) -> ProcessVision | None:
        vision = self._visions.all().get(robot)
        return vision if isinstance(vision, ProcessVision) else None

    def _shown(self, robot: str) -> dict[str, Any]:
        """`fields`: the keys of each kind, for detectors that can be set."""
        section, vision = self._sections[robot], self._vision(robot)
        configured = [plain(table) for table in section.detectors]
        settable = vision is not None and vision.can_set_detectors()
        present = list(vision.detectors()) if vision is not None and settable else configured
        return {
            "robot": robot,
            "source": section.source,
            "detectors": present,
            "configured": configured,
            "changed": present != configured,
            "settable": settable,
            "fields": {
                kind: to_builtins(fields_of(module.Config))
                for _, kind, module in modules("detectors")
                if settable
            },
        }
