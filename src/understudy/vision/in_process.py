"""The vision process of a robot without a process: the same server, asked by a call.

Its camera is the virtual camera of the cell, or whatever else the section `vision` names. A cell on
virtual time, headless or in a test, so sees through pixels, and does the same in every run.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from understudy.config import CellConfig
from understudy.errors import located_at
from understudy.sight.frame import Frame
from understudy.simulation.cell import Cell, Responder
from understudy.vision.assembly import camera_of_robot, section_in_use
from understudy.vision.bridge import ProcessVision
from understudy.vision.cameras import open_camera
from understudy.vision.config import VisionConfig
from understudy.vision.detector_config import (
    DetectorChoice,
    build_detectors,
    require_opencv,
)
from understudy.vision.interface import CameraError, CameraSource, Shot

CAMERA = "camera"


@runtime_checkable
class TakesFrames(Protocol):
    """A virtual camera."""

    name: str

    def grab(
        self, now: int, exposure_ms: float | None = None, gain_db: float | None = None
    ) -> Frame | None:
        """Takes a picture; None if the camera does not answer."""
        ...


class CameraOfCell:
    """`CameraSource`: the virtual camera of a robot, at the present time of its cell."""

    def __init__(self, camera: TakesFrames, now: Callable[[], int]) -> None:
        self._camera = camera
        self._now = now

    def grab(self, shot: Shot, seconds: float) -> Frame:
        frame = self._camera.grab(self._now(), shot.exposure_ms, shot.gain_db)
        if frame is None:
            raise CameraError(f"{self._camera.name} does not answer")
        return frame

    def close(self) -> None:
        return None


def answer_in_process(cell: Cell, config: CellConfig) -> None:
    """Parts of the cell that ask a vision process are answered in this one."""
    for name in cell.asking():
        if isinstance(cell.components[name], ProcessVision):
            cell.answer_questions(name, _responder(cell, config, name.partition(".")[0]))


def _responder(cell: Cell, config: CellConfig, robot: str) -> Responder:
    """The handler of a server that is built with the first question."""
    made: list[Responder] = []

    def answer(question: bytes) -> bytes | None:
        if not made:
            made.append(_handler(cell, config, robot))
        return made[0](question)

    return answer


def _handler(cell: Cell, config: CellConfig, robot: str) -> Responder:
    require_opencv()
    from understudy.vision.server import Eye, Named, VisionServer

    section = section_in_use(config.robots[robot].sections) or VisionConfig()
    model = camera_of_robot(robot, section, config.document.file)
    with located_at(f"robots.{robot}.vision"):
        rows = build_detectors(section.detectors, config.read_beside)
    eye = Eye(model.mount, model.at, model.lens)
    build = partial(DetectorChoice(section.detectors).build, read_file=config.read_beside)
    server = VisionServer(
        _camera(cell, robot, section.camera), [Named(*row) for row in rows], eye, build=build
    )
    return server.handle


def _camera(cell: Cell, robot: str, address: str) -> CameraSource:
    own: object = cell.components.get(f"{robot}.{CAMERA}")
    if isinstance(own, TakesFrames) and address.partition(":")[0] in ("", "understudy"):
        return CameraOfCell(own, lambda: cell.now)
    return open_camera(address)
