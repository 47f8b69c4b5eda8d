"""Section `vision`: where the detections come from, and the camera with its calibration file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct, field

from understudy.config.document import parse
from understudy.config.typed import IS_FILE, read
from understudy.errors import ConfigError, located_at
from understudy.sight.calibration_file import Calibration, Intrinsics
from understudy.sight.lens import (
    DEFAULT_LENS,
    CameraModel,
    Coefficients,
    Focus,
    Lens,
    Middle,
    five_coefficients,
)
from understudy.space.pose import PoseMmDeg, pose_of
from understudy.space.transform import matrix
from understudy.vision.cameras import check_camera
from understudy.vision.detector_config import (
    DetectorTables,
    FindFile,
    check_detectors,
    check_files,
)
from understudy.wire.zmq_request import check_address

VisionSource = Literal["ground_truth", "process"]
"""Where detections come from: the simulated parts themselves, or pictures."""
CALIBRATION_FILE = "hand_eye_calibration_file"
"""The key of the file with the place of the camera."""
CALIBRATE = "understudy calibrate hand-eye"
"""The command that writes it."""
Pixels = Annotated[int, Meta(ge=16, le=20_000)]


class VisionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Section `vision` of a robot. `source`: the vision process at `camera_address`, or the
    simulated parts themselves.

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
    calibration_file: Annotated[str, Meta(max_length=1024, extra={IS_FILE: True})] = field(
        name=CALIBRATION_FILE, default=""
    )
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

    def check_in_file(self, given: Mapping[str, Any], find: FindFile) -> None:
        """Raises ConfigError for a camera or detectors with which nothing can be seen. ``given``:
        the section as the file has it; ``find``: finds the files of detectors."""
        self.check_address()
        self.check_camera()
        # Without the key a calibration needs none, and `understudy vision` has its own.
        if self.source == "process" and "detectors" in given:
            check_detectors(self.detectors)
            check_files(self.detectors, find)


# ── the calibration file ────────────────────────────────────────────────────────────────────────


class CalibrationFile(Struct, frozen=True, forbid_unknown_fields=True):
    hand_eye_calibration: Calibration


def read_calibration(text: str, file: str) -> Calibration:
    document = parse(text, file)
    found: Any = document.at((), read, document.value, CalibrationFile)
    calibration: Calibration = found.hand_eye_calibration
    document.at((), calibration.place)
    return calibration


def camera_of(config: VisionConfig, calibration: Calibration | None) -> CameraModel:
    """The camera of the section `vision`: its own keys go before those of the calibration."""
    at, intrinsics = np.eye(4), None
    if calibration is not None:
        _check_use(config, calibration)
        at, intrinsics = calibration.place(), calibration.camera_intrinsics
    if config.camera_mm_deg is not None:
        at = matrix(pose_of(config.camera_mm_deg))
    on_flange = config.mount == "eye_in_hand"
    return CameraModel(_lens(config, intrinsics), at, on_flange)


def _check_use(config: VisionConfig, calibration: Calibration) -> None:
    """Raises ConfigError for a file of another mount, without the place of a camera that has
    no other, or of another size of the pictures."""
    if calibration.mount not in (None, config.mount):
        raise ConfigError(
            f"this calibration is one of a camera with mount: {calibration.mount}",
            key="mount",
            value=config.mount,
            allowed=calibration.mount,
        )
    if not calibration.has_place() and config.camera_mm_deg is None:
        raise ConfigError(
            "this calibration has intrinsics only: the place of the camera must be known, too",
            key=CALIBRATION_FILE,
            allowed=f"the file after `{CALIBRATE}`, or the key camera_mm_deg",
        )
    lens = calibration.camera_intrinsics
    if lens is None or not lens.width:
        return
    if (lens.width, lens.height) != (config.width_px, config.height_px):
        raise ConfigError(
            f"this calibration is one of pictures of {lens.width} × {lens.height} pixels",
            key="height_px" if lens.width == config.width_px else "width_px",
            value=f"{config.width_px} × {config.height_px}",
            allowed=f"{lens.width} × {lens.height}",
        )


def _lens(config: VisionConfig, calibrated: Intrinsics | None) -> Lens:
    """The lens of the calibration, or one that looks through the middle of the picture."""
    width, height = config.width_px, config.height_px
    usual = Intrinsics(DEFAULT_LENS.fx, DEFAULT_LENS.fy, width / 2.0, height / 2.0)
    known = calibrated or usual

    def chosen(key: str) -> float:
        given = getattr(config, f"{key}_px")
        return float(getattr(known, key) if given is None else given)

    fx, fy, cx, cy = (chosen(key) for key in ("fx", "fy", "cx", "cy"))
    given = known.distortion if config.distortion is None else config.distortion
    return Lens(width, height, fx, fy, cx, cy, five_coefficients(given))
