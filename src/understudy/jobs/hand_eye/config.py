"""Section `hand_eye`: the calibration of the camera as a job of the robot."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from understudy.sight.targets import ENOUGH_POSES, CalibrationTarget
from understudy.space.pose import Position
from understudy.space.transform import Array
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.sight.bundle import Noise

Method = Literal["best", "tsai_lenz", "tsai", "park", "horaud", "andreff", "daniilidis"]
MOST_POSES = 100
USUAL_FILE = "hand_eye_calib.yaml"
PoseCount = Annotated[int, Meta(ge=ENOUGH_POSES, le=MOST_POSES)]


class HandEyeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Section `hand_eye`. `target`: a board (charuco, chessboard) or a marker. `start_position`: of
    the tool, where the camera sees the target; without it the job starts where the arm is. `poses`:
    for the calibration; `check_poses`: more, that only check it. `distance_mm`: from the camera to
    the target, 0: as the size of the target wants it. `tolerance_mm`: of the poses that check, of
    the residuals, and of what a wrong size of the target would move the camera by. `robot_error_mm`
    and `robot_error_deg`: standard deviations of the reported pose of the flange; without them they
    are estimated from the residuals, with one of them the other is as usual."""

    target: CalibrationTarget = CalibrationTarget()
    start_position: Position | None = None
    poses: PoseCount = 15
    check_poses: Annotated[int, Meta(ge=0, le=20)] = 3
    method: Method = "best"
    settle_ms: Annotated[float, Meta(ge=0, le=60_000)] = 200.0
    distance_mm: Annotated[float, Meta(ge=0, le=10_000)] = 0.0
    tolerance_mm: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    robot_error_mm: Annotated[float, Meta(ge=0, le=100)] | None = None
    robot_error_deg: Annotated[float, Meta(ge=0, le=10)] | None = None
    latency_s: Annotated[float, Meta(ge=0, le=60)] = 0.05
    timeout_ms: Annotated[float, Meta(gt=0, le=600_000)] = 5000.0

    def noise(self) -> "Noise | None":
        """Noise of corners and robot, by axis; None: not given."""
        if self.robot_error_mm is None and self.robot_error_deg is None:
            return None
        from understudy.sight.calibrator import USUAL_ROBOT

        per_axis, shift, turn = 3.0**-0.5, USUAL_ROBOT.shift, USUAL_ROBOT.turn
        if self.robot_error_mm is not None:
            shift = self.robot_error_mm * MM * per_axis
        if self.robot_error_deg is not None:
            turn = self.robot_error_deg * DEG * per_axis
        return replace(USUAL_ROBOT, shift=shift, turn=turn)

    def target_outline(self) -> Array:
        """The corners of the target's paper in its own frame, (4, 3)."""
        target = self.target
        if target.type == "marker":
            half = 0.5 * target.size_mm * MM
            low, high = (-half, -half), (half, half)
        else:
            square = target.square_mm * MM
            low, high = (0.0, 0.0), (target.columns * square, target.rows * square)
        return np.array([(x, y, 0.0) for x in (low[0], high[0]) for y in (low[1], high[1])])
