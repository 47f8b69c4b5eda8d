"""A hand-eye calibration in the vision process: pictures of a target, and what they give.

Every capture keeps the pose of the flange and the time of its exposure.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.sight.bundle import Corners
from understudy.sight.calibrator import (
    CalibrationPose,
    HandEyeCalibrator,
    HandEyeResult,
    Validation,
)
from understudy.sight.hand_eye import Mount
from understudy.sight.lens import Lens
from understudy.sight.markers import target_finder
from understudy.sight.targets import CalibrationTarget
from understudy.space.transform import Array
from understudy.units import MM
from understudy.vision.interface import View
from understudy.vision.messages import RequestError, place_rows

MOST_POSES = 200


# ── session ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Capture:
    """A picture of the target. `exposed_at`: seconds, on the clock of the camera."""

    frame_id: int
    exposed_at: float
    pose: CalibrationPose
    lens: Lens

    def facts(self, number: int) -> dict[str, Any]:
        """As the replies have it."""
        return {
            "number": number,
            "frame_id": self.frame_id,
            "timestamp_us": round(self.exposed_at * 1e6),
            "t_exposure": self.exposed_at,
            "T_base_flange": place_rows(self.pose.flange),
            "T_camera_target": place_rows(self.pose.target),
        }

    def corner_facts(self) -> dict[str, Any]:
        """The corners of the target, millimetres and pixels, and the lens that shows them."""
        corners = self.pose.corners or Corners(np.zeros((0, 3)), np.zeros((0, 2)))
        return {
            "corners": len(corners.pixels),
            "corner_pixels": corners.pixels.tolist(),
            "corner_points": (corners.points / MM).tolist(),
            "K": self.lens.matrix.tolist(),
            "distortion": list(self.lens.distortion),
            "size": [self.lens.width, self.lens.height],
        }


class CalibrationSession:
    """Captures of one target, and the camera that they give."""

    def __init__(self, target: CalibrationTarget, mount: Mount) -> None:
        self.target = target
        self.mount: Mount = mount
        self.captures: list[Capture] = []
        self._calibrator = HandEyeCalibrator(mount)
        try:
            self._find = target_finder(target)
        except ConfigError as problem:
            raise RequestError(f"calibrate_start: target: {problem}") from None

    def see(self, view: View, flange: Array | None) -> Capture:
        """The target in a picture, not yet added."""
        frame = view.frame
        if flange is None:
            raise RequestError(
                "the pose of the flange is not known: the camera does not send it, and "
                "params.T_base_flange is missing"
            )
        seen = self._find(frame.picture, view.lens)
        if isinstance(seen, str):
            raise RequestError(f"the target is not found: {seen}")
        pose = CalibrationPose(flange, seen.place, seen.corners)
        return Capture(frame.frame_id, frame.exposed_at, pose, view.lens)

    def add(self, capture: Capture) -> None:
        if len(self.captures) >= MOST_POSES:
            raise RequestError(f"{MOST_POSES} poses are captured; compute, or start again")
        if self.captures and self.captures[0].lens != capture.lens:
            raise RequestError("the lens is not that of the first pose; start again")
        pose = capture.pose
        _unless(self._calibrator.add_pose(pose.flange, pose.target, pose.corners))
        self._calibrator.lens = capture.lens
        self.captures.append(capture)

    def delete_last(self) -> None:
        _unless(self._calibrator.delete_last())
        self.captures.pop()

    def compute(self, method: str, *, refine: bool) -> HandEyeResult:
        result = self._calibrator.compute(method, refined=refine)
        if isinstance(result, Refused):
            raise RequestError(result.reason)
        return result

    def validate(self, capture: Capture, tolerance_mm: float) -> Validation:
        found = self._calibrator.validate(capture.pose, tolerance_mm)
        if isinstance(found, Refused):
            raise RequestError(found.reason)
        return found

    def directions(self) -> list[dict[str, Any]]:
        """How far the poses turn about each axis of the flange."""
        return [
            {"name": each.name, "turned_deg": each.turned_deg, "missing": each.missing}
            for each in self._calibrator.coverage()
        ]


def _unless(refused: Refused | None) -> None:
    if refused is not None:
        raise RequestError(refused.reason)


def result_facts(result: HandEyeResult) -> dict[str, Any]:
    """A result as the replies have it."""
    held_out, (mm, deg) = result.held_out, result.deviations_mm_deg
    pixels = [each.pixel_rms for each in result.poses]
    return {
        "method": result.method,
        "mount": result.mount,
        "refined": result.refined,
        "matrix": place_rows(result.camera),
        "T_target": place_rows(result.target),
        "poses": len(result.poses),
        "reprojection_error_px": result.pixel_rms,
        "reprojection_error_mm": result.rms_mm,
        "held_out_error_mm": None if held_out is None else held_out.rms_mm,
        "held_out_largest_mm": None if held_out is None else held_out.largest_mm,
        "deviation_mm": mm.tolist(),
        "deviation_deg": deg.tolist(),
        "residuals_px": None if None in pixels else pixels,
        "residuals_mm": [each.distance_mm for each in result.poses],
        "residuals_deg": [each.angle_deg for each in result.poses],
    }
