"""What cameras and detectors of the vision process offer.

A module of the table CAMERAS offers `open_camera(address) -> CameraSource`; the kind is the part of
the address before the first colon: `understudy://HOST:5571/NAME`, `opencv:0`, `files:DIR`.

A module of the table DETECTORS offers `Config`, the keys of the detector in a file, and
`build(config, read_file) -> Detector`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from understudy.config.typed import FileKey
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.space.transform import Array

ReadFile = Callable[[str], bytes]
"""A file that a configuration names → its bytes."""
FileName = FileKey
"""A key of a detector that names a file for `read_file`. Detectors that a request brings may name
the files of the configuration only."""


class CameraError(Exception):
    """Why there is no picture, and what to do about it."""


class NoMorePicturesError(CameraError):
    """A folder or a film is at its end."""


class DetectionError(Exception):
    """Why a picture cannot be searched, and what to do about it."""


@dataclass(frozen=True)
class Shot:
    """How a picture is to be taken; None: the camera's own setting. `trigger`: of the request that
    the picture is for."""

    exposure_ms: float | None = None
    gain_db: float | None = None
    trigger: str = ""


class CameraSource(Protocol):
    """A camera, virtual or REAL, or a folder of pictures."""

    def grab(self, shot: Shot, seconds: float) -> Frame:
        """A new picture within this wall time; else a `CameraError`."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class View:
    """A frame as detectors see it. `camera`: its place in the frame of the robot's base, 4×4 in
    metres; None if the robot or the calibration is not known."""

    frame: Frame
    lens: Lens
    camera: Array | None = None


@dataclass(frozen=True)
class Seen:
    """An object in a picture. `place`: in the frame of the camera, 4×4 in metres. `bbox`: x, y,
    width and height in pixels. `number`: of a marker; objects without one are
    counted from 1 in the reply."""

    class_name: str
    confidence: float
    place: Array
    bbox: tuple[int, int, int, int]
    number: int | None = None


class Detector(Protocol):
    """Finds objects in a picture."""

    def detect(self, view: View) -> Sequence[Seen]: ...
