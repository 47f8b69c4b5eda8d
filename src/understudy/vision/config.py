"""Section `vision`: where the detections come from."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.position import PoseMmDeg
from understudy.errors import located_at
from understudy.sight.lens import Coefficients, Focus, Middle
from understudy.vision.cameras import check_camera
from understudy.vision.detector_config import DetectorTables, check_detectors
from understudy.wire.zmq_request import check_address

VisionSource = Literal["ground_truth", "process"]
Pixels = Annotated[int, Meta(ge=16, le=20_000)]


class VisionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`source`: the vision process at `camera_address`, or the simulated parts themselves.

    `mount`: the camera is on the flange (`eye_in_hand`) or stands in the cell (`eye_to_hand`).
    `camera_mm_deg`: its pose there; without it that of the calibration file; without both the
    flange, or the origin of the cell, itself. The intrinsics go before those of the file, too;
    `distortion` is k1 k2 p1 p2 k3, as OpenCV has them.

    Of the process: `camera`: what it opens, as `understudy://127.0.0.1:5571/g60`; without it the
    virtual camera of the robot. `detectors`: each with its `kind` and the keys of this kind.
    `start`: `understudy run` starts the process; else it is started elsewhere.
    `exposure_ms`, `gain_db`: of every picture; without them those of the camera.
    """

    camera_address: str = "tcp://127.0.0.1:5570"
    hand_eye_calibration_file: Annotated[str, Meta(max_length=1024)] = ""
    source: VisionSource = "ground_truth"
    mount: Literal["eye_in_hand", "eye_to_hand"] = "eye_in_hand"
    camera_mm_deg: PoseMmDeg | None = None
    width_px: Pixels = 1280
    height_px: Pixels = 960
    fx_px: Focus | None = None
    fy_px: Focus | None = None
    cx_px: Middle | None = None
    cy_px: Middle | None = None
    distortion: Coefficients | None = None
    camera: Annotated[str, Meta(max_length=1024)] = ""
    detectors: DetectorTables = ()
    start: bool = True
    exposure_ms: Annotated[float, Meta(gt=0, le=60_000)] | None = None
    gain_db: Annotated[float, Meta(ge=-100, le=100)] | None = None

    def check_address(self) -> None:
        with located_at("camera_address"):
            check_address(self.camera_address)

    def check_camera(self) -> None:
        """Raises ConfigError for a camera of a kind that is not known."""
        if self.camera:
            with located_at("camera"):
                check_camera(self.camera)

    def check(self) -> None:
        """Raises ConfigError for a process that cannot be asked or finds nothing."""
        if self.source != "process":
            return
        self.check_address()
        self.check_camera()
        check_detectors(self.detectors)
