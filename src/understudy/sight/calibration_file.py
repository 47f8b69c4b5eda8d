"""The hand-eye calibration file: where the camera is, and its intrinsics.

hand_eye_calibration:
  matrix: [[…, …, …, x], …]        T_flange_to_camera, 4×4 by rows, millimetres
  camera_intrinsics: {fx: 1200.5, fy: 1200.8, cx: 640.0, cy: 480.0, distortion: […]}

With `mount: eye_to_hand` the matrix is T_base_to_camera. Numbers are written with all their digits:
a file that is read again, as YAML 1.1 or 1.2, gives the same numbers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.sight.lens import Coefficients, Focus, Lens, Middle, Mount, five_coefficients
from understudy.space.transform import Array, Rows, from_rows_mm, rows_mm
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.sight.calibrator import CalibrationResult

LARGEST_SKEW = 1e-2
"""Deviation from a rotation that rounding of the file may explain; it is removed."""


class Intrinsics(Struct, frozen=True, forbid_unknown_fields=True):
    """Pixels. `distortion`: k1 k2 p1 p2 k3, as OpenCV has them; those not given are 0. `width`,
    `height`: of the pictures from which they come; 0 if that is not known."""

    fx: Focus
    fy: Focus
    cx: Middle
    cy: Middle
    distortion: Coefficients = ()
    width: Annotated[int, Meta(ge=0, le=20_000)] = 0
    height: Annotated[int, Meta(ge=0, le=20_000)] = 0

    @classmethod
    def of(cls, lens: Lens) -> "Intrinsics":
        return cls(lens.fx, lens.fy, lens.cx, lens.cy, lens.distortion, lens.width, lens.height)

    def lens(self) -> Lens:
        """The lens, with a width of 0 if the size of the pictures is not known."""
        size, bend = (self.width, self.height), five_coefficients(self.distortion)
        return Lens(*size, self.fx, self.fy, self.cx, self.cy, bend)


INTRINSICS_ONLY = "intrinsics only"
"""Method in a file whose matrix says nothing."""


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """The section `hand_eye_calibration`; the keys after the second say how it was made.

    `mount`: None if it is not known. `target_matrix`: T_base_to_target (eye in hand) or
    T_flange_to_target. `covariance_mm_deg`: of x, y, z and the turns about the axes of the camera.
    `held_out_error_mm`: of poses that were predicted from the others. `refined`: by the bundle.
    """

    matrix: Rows
    camera_intrinsics: Intrinsics | None = None
    method: str = ""
    date: str = ""
    reprojection_error_mm: float = 0.0
    num_poses_used: int = 0
    mount: Mount | None = None
    refined: bool = False
    reprojection_error_px: float | None = None
    held_out_error_mm: float | None = None
    target_matrix: Rows | None = None
    covariance_mm_deg: Annotated[tuple[tuple[float, ...], ...], Meta(max_length=6)] = ()
    residuals_mm: Annotated[tuple[float, ...], Meta(max_length=10_000)] = ()

    def has_place(self) -> bool:
        """False for a file of `understudy calibrate camera`, which knows only the lens."""
        return self.method != INTRINSICS_ONLY

    def place(self) -> Array:
        """The camera on the flange, 4×4 in metres; its rotation without the error of rounding."""
        given = from_rows_mm(self.matrix)
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
        out[:3, :3], out[:3, 3] = turn, given[:3, 3]
        return out


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


def calibration_of(result: "CalibrationResult", date: str) -> Calibration:
    """The contents of the file of a calibration."""
    held_out = result.held_out
    scale = np.repeat([1.0 / MM, 1.0 / DEG], 3)
    covariance = result.covariance * np.outer(scale, scale)
    return Calibration(
        rows_mm(result.camera),
        None if result.lens is None else Intrinsics.of(result.lens),
        result.method,
        date,
        result.rms_mm,
        len(result.poses),
        mount=result.mount,
        refined=result.refined,
        reprojection_error_px=result.pixel_rms,
        held_out_error_mm=None if held_out is None else held_out.rms_mm,
        target_matrix=rows_mm(result.target),
        covariance_mm_deg=tuple(tuple(row) for row in covariance.tolist()),
        residuals_mm=tuple(each.distance_mm for each in result.poses),
    )


def calibration_text(calibration: Calibration) -> str:
    """The file, with the keys of the design document first."""
    base = "base" if calibration.mount == "eye_to_hand" else "flange"
    seen_from = "flange" if calibration.mount == "eye_to_hand" else "base"
    lines = [
        "hand_eye_calibration:",
        f"  method: {_scalar(calibration.method)}",
        f"  date: {_scalar(calibration.date)}",
        "",
        f"  # T_{base}_to_camera (4x4 matrix, row-major, mm)",
        *_matrix_lines("matrix", calibration.matrix),
        "",
        f"  reprojection_error_mm: {_number(calibration.reprojection_error_mm)}",
        f"  num_poses_used: {calibration.num_poses_used}",
    ]
    if (lens := calibration.camera_intrinsics) is not None:
        lines += ["", "  camera_intrinsics:"]
        lines += [f"    {key}: {_number(getattr(lens, key))}" for key in ("fx", "fy", "cx", "cy")]
        lines += [f"    distortion: {_list(lens.distortion)}"]
        lines += [f"    {key}: {getattr(lens, key)}" for key in ("width", "height")]
    for key in ("mount", "refined", "reprojection_error_px", "held_out_error_mm"):
        value = getattr(calibration, key)
        lines += [] if value is None else [f"  {key}: {_scalar(value)}"]
    if calibration.target_matrix is not None:
        lines += [f"  # T_{seen_from}_to_target"]
        lines += _matrix_lines("target_matrix", calibration.target_matrix)
    if calibration.covariance_mm_deg:
        lines += _matrix_lines("covariance_mm_deg", calibration.covariance_mm_deg)
    if calibration.residuals_mm:
        lines += [f"  residuals_mm: {_list(calibration.residuals_mm)}"]
    return "\n".join([*lines, ""])


def _scalar(value: Any) -> str:
    """A word or a number in YAML; JSON is a part of it."""
    return _number(value) if isinstance(value, float) else msgspec.json.encode(value).decode()


def _number(value: float) -> str:
    """All digits of a number. YAML 1.1, and so PyYAML, takes a number for a text if it has an
    exponent and no dot: 1e-05 is written as 1.0e-05."""
    digits, exponent, power = repr(value).partition("e")
    return f"{digits}.0e{power}" if exponent and "." not in digits else repr(value)


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_number, values))}]"


def _matrix_lines(key: str, rows: Sequence[Sequence[float]]) -> list[str]:
    return [f"  {key}:", *(f"    - {_list(row)}" for row in rows)]
