"""The query `camera_picture`: what the camera of a robot sees now, as a small picture."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused, unknown
from understudy.operator.background import BackgroundRuns
from understudy.operator.pictures import LARGEST_WIDTH, SharedPictures, picture_answer
from understudy.operator.table import Command
from understudy.ports import Component
from understudy.ports.device import ShowsPicture
from understudy.wire.pump import Pump

USUAL_WIDTH = 480


class WhichPicture(Struct, frozen=True, forbid_unknown_fields=True):
    """`robot`: may be left out if one robot has a camera."""

    robot: str = ""
    depth: bool = False
    width: Annotated[int, Meta(ge=16, le=LARGEST_WIDTH)] = USUAL_WIDTH


class CameraCommands:
    """Pictures of the cameras of a cell."""

    def __init__(self, parts: Mapping[str, Component], pump: Pump, runs: BackgroundRuns) -> None:
        self._cameras = {
            name.partition(".")[0]: part
            for name, part in parts.items()
            if isinstance(part, ShowsPicture)
        }
        self._pump = pump
        self._shared = SharedPictures(runs, 2 * len(self._cameras))

    def commands(self) -> list[Command]:
        if not self._cameras:
            return []
        doc = "what the camera of a robot sees now; depth: its depth image"
        return [
            Command("camera_picture", doc, self._picture, WhichPicture, role="viewer", large=True)
        ]

    def _picture(self, given: WhichPicture) -> Any:
        robot = given.robot or (next(iter(self._cameras)) if len(self._cameras) == 1 else "")
        if robot not in self._cameras:
            return Refused(str(unknown("robot with a camera", robot, self._cameras)))

        def begin() -> Callable[[], Any] | Refused:
            now = self._pump.now()
            make = self._cameras[robot].preview(now, given.width, depth=given.depth)
            if isinstance(make, Refused):
                return make
            return lambda: picture_answer(robot, now, make)

        return self._shared.answer(given, begin)
