"""The hand-eye calibration file: where the camera is, and its intrinsics.

hand_eye_calibration:
  matrix: [[…, …, …, x], …]        T_flange_to_camera, 4×4 by rows, millimetres
  camera_intrinsics: {fx: 1200.5, fy: 1200.8, cx: 640.0, cy: 480.0, distortion: […]}
"""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from understudy.config.document import parse
from understudy.config.pick_place.vision import Focus, VisionConfig
from understudy.config.typed import read as read_typed
from understudy.errors import ConfigError
from understudy.sight.lens import NO_DISTORTION, Lens
from understudy.simulation.ground_truth_vision import DEFAULT_LENS, CameraModel
from understudy.space.pose import pose_of
from understudy.space.transform import Array, matrix
from understudy.units import MM

Row = tuple[float, float, float, float]
LARGEST_SKEW = 1e-2
"""Deviation from a rotation that rounding of the file may explain; it is removed."""


class Intrinsics(Struct, frozen=True, forbid_unknown_fields=True):
    """Pixels. `distortion`: k1 k2 p1 p2 k3, as OpenCV has them; those not given are 0."""

    fx: Focus
    fy: Focus
    cx: float
    cy: float
    distortion: Annotated[tuple[float, ...], Meta(max_length=len(NO_DISTORTION))] = ()


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """The section `hand_eye_calibration`; the last four keys say how it was made."""

    matrix: tuple[Row, Row, Row, Row]
    camera_intrinsics: Intrinsics | None = None
    method: str = ""
    date: str = ""
    reprojection_error_mm: float = 0.0
    num_poses_used: int = 0

    def place(self) -> Array:
        """The camera on the flange, 4×4 in metres; its rotation without the error of rounding."""
        given = np.array(self.matrix)
        u, _, v = np.linalg.svd(given[:3, :3])
        turn = u @ v
        skew = float(np.abs(given[:3, :3] - turn).max())
        if skew > LARGEST_SKEW or np.linalg.det(turn) < 0.0 or given[3].tolist() != [0, 0, 0, 1]:
            raise ConfigError(
                "not a rotation and a translation",
                key="hand_eye_calibration.matrix",
                allowed=f"a rigid 4×4 matrix; rounding may change it by {LARGEST_SKEW:g}",
            )
        out = np.eye(4)
        out[:3, :3], out[:3, 3] = turn, given[:3, 3] * MM
        return out


class CalibrationFile(Struct, frozen=True, forbid_unknown_fields=True):
    hand_eye_calibration: Calibration


def read_calibration(text: str, file: str) -> Calibration:
    document = parse(text, file)
    found: Any = document.at((), read_typed, document.value, CalibrationFile)
    calibration: Calibration = found.hand_eye_calibration
    document.at((), calibration.place)
    return calibration


def camera_of(config: VisionConfig, calibration: Calibration | None) -> CameraModel:
    """The camera of the section `vision`: its own keys go before those of the calibration."""
    at, intrinsics = np.eye(4), None
    if calibration is not None:
        at, intrinsics = calibration.place(), calibration.camera_intrinsics
    if config.camera_mm_deg is not None:
        at = matrix(pose_of(config.camera_mm_deg))
    on_flange = config.mount == "eye_in_hand"
    return CameraModel(_lens(config, intrinsics), at, on_flange)


def _lens(config: VisionConfig, calibrated: Intrinsics | None) -> Lens:
    """The lens of the calibration, or one that looks through the middle of the picture."""
    width, height = config.width_px, config.height_px
    usual = Intrinsics(DEFAULT_LENS.fx, DEFAULT_LENS.fy, width / 2.0, height / 2.0)
    known = calibrated or usual

    def chosen(key: str) -> float:
        given = getattr(config, f"{key}_px")
        return float(getattr(known, key) if given is None else given)

    fx, fy, cx, cy = (chosen(key) for key in ("fx", "fy", "cx", "cy"))
    k1, k2, p1, p2, k3 = (*known.distortion, *NO_DISTORTION[len(known.distortion) :])
    return Lens(width, height, fx, fy, cx, cy, (k1, k2, p1, p2, k3))
