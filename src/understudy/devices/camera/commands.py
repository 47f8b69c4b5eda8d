"""The query `camera_picture`: what the camera of a robot sees now, as a small picture."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.errors import Refused, unknown
from understudy.operator.pictures import LARGEST_WIDTH, SharedPictures, picture_answer
from understudy.operator.table import Command, commands_of, query
from understudy.ports.device import ShowsPicture

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

USUAL_WIDTH = 480


def commands(cell: "OperatedCell") -> list[Command]:
    cameras = {
        name.partition(".")[0]: component
        for name, component in cell.components.items()
        if isinstance(component, ShowsPicture)
    }
    return commands_of(CameraCommands(cell, cameras)) if cameras else []


class CameraCommands:
    """Pictures of the cameras of a cell, by robot."""

    def __init__(self, cell: "OperatedCell", cameras: Mapping[str, ShowsPicture]) -> None:
        self._cameras = cameras
        self._pump = cell.pump
        self._shared = SharedPictures(cell.runs, 2 * len(cameras))

    @query(large=True)
    def camera_picture(
        self,
        robot: str = "",
        depth: bool = False,
        width: Annotated[int, Meta(ge=16, le=LARGEST_WIDTH)] = USUAL_WIDTH,
    ) -> Any:
        """What the camera of a robot sees now; depth: its depth image.

        `robot`: may be left out if one robot has a camera.
        """
        name = robot or (next(iter(self._cameras)) if len(self._cameras) == 1 else "")
        if name not in self._cameras:
            return Refused(str(unknown("robot with a camera", name, self._cameras)))

        def begin() -> Callable[[], Any] | Refused:
            now = self._pump.now()
            make = self._cameras[name].preview(now, width, depth=depth)
            if isinstance(make, Refused):
                return make
            return lambda: picture_answer(name, now, make)

        return self._shared.answer((name, depth, width), begin)
