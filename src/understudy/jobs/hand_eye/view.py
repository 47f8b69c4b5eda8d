"""The query `hand_eye_view`: what the camera sees now, and the target of the calibration in it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.jobs.hand_eye.commands import HAND_EYE
from understudy.operator.background import BackgroundRuns
from understudy.operator.jobs import Jobs
from understudy.operator.pictures import LARGEST_WIDTH, SharedPictures, picture_answer
from understudy.operator.robots import Robots
from understudy.operator.table import Command
from understudy.ports.device import Preview, ShowsPicture
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.sight.lens import Lens
    from understudy.sight.targets import CalibrationTarget

USUAL_WIDTH = 640
NO_CAMERA = "the cell has no picture of this camera; the corners of the last pose are shown"
Make = Callable[[], Preview]


class WhichView(Struct, frozen=True, forbid_unknown_fields=True):
    """`robot`: can be left out if one robot is calibrated. `depth`: the depth image instead, in
    which the target is not looked for."""

    robot: str = ""
    depth: bool = False
    width: Annotated[int, Meta(ge=160, le=LARGEST_WIDTH)] = USUAL_WIDTH


class HandEyeView:
    """Pictures are made, and the target is looked for, in a thread; viewers who ask at the same
    time share one answer."""

    def __init__(self, robots: Robots, pump: Pump, runs: BackgroundRuns) -> None:
        self._robots = robots
        self._pump = pump
        self._jobs = Jobs(robots)
        self._shared = SharedPictures(runs, 2 * len(self._jobs.having(HAND_EYE)))

    def commands(self) -> list[Command]:
        if not self._jobs.having(HAND_EYE):
            return []
        doc = "what the camera sees now, with the target of the calibration"
        return [Command("hand_eye_view", doc, self._view, WhichView, role="viewer", large=True)]

    def _view(self, given: WhichView) -> Any:
        found = self._jobs.part(given.robot, HAND_EYE)
        if isinstance(found, Refused):
            return found
        robot, job = found
        camera: object = self._robots.components[robot.name].get(f"{robot.name}.camera")
        if not isinstance(camera, ShowsPicture):
            return without_picture(robot.name, job)
        target = None if given.depth else job.config.target

        def begin() -> Callable[[], Any] | Refused:
            now = self._pump.now()
            make = camera.preview(now, given.width, depth=given.depth)
            if isinstance(make, Refused):
                return make
            return lambda: view_answer(robot.name, now, make, job.lens, target)

        return self._shared.answer(given, begin)


def without_picture(robot: str, job: Any) -> dict[str, Any]:
    """The answer for a camera that the cell does not draw."""
    corners, lens = job.last_corners(), job.lens
    return {
        "robot": robot,
        "width": lens.width,
        "height": lens.height,
        "data": "",
        "corners": corners,
        "found": bool(corners),
        "reason": NO_CAMERA,
    }


def view_answer(
    robot: str, now: int, make: Make, lens: "Lens", target: "CalibrationTarget | None"
) -> dict[str, Any]:
    """`corners`: pixels of the corners of the target; `reason`: why it is not found."""
    preview = make()
    answer = picture_answer(robot, now, lambda: preview)
    if target is None:
        return answer | {"corners": [], "found": None, "reason": ""}
    return answer | sighting_facts(preview, lens, target)


def sighting_facts(preview: Preview, lens: "Lens", target: "CalibrationTarget") -> dict[str, Any]:
    # Here: the commands of a cell without cameras must not load OpenCV.
    from understudy.sight.lens import resized
    from understudy.sight.markers import target_finder

    height, width, _ = preview.picture.shape
    seen = target_finder(target)(preview.picture, resized(lens, width, height))
    if isinstance(seen, str):
        return {"corners": [], "found": False, "reason": seen}
    return {"corners": seen.corners.pixels.tolist(), "found": True, "reason": ""}
