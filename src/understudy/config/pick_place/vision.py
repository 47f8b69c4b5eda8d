"""Section `vision`: where the detections come from."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.pick_place.position import PoseMmDeg

Pixels = Annotated[int, Meta(ge=16, le=20_000)]
Focus = Annotated[float, Meta(gt=0, le=1e6)]


class VisionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`source`: the vision process at `camera_address`, or the simulated parts themselves.

    `mount`: the camera is on the flange (`eye_in_hand`) or stands in the cell (`eye_to_hand`).
    `camera_mm_deg`: its pose there; without it that of the calibration file; without both the
    flange, or the origin of the cell, itself. The intrinsics go before those of the file, too.
    """

    camera_address: str = "tcp://127.0.0.1:5570"
    hand_eye_calibration_file: Annotated[str, Meta(max_length=1024)] = ""
    source: Literal["ground_truth", "process"] = "ground_truth"
    mount: Literal["eye_in_hand", "eye_to_hand"] = "eye_in_hand"
    camera_mm_deg: PoseMmDeg | None = None
    width_px: Pixels = 1280
    height_px: Pixels = 960
    fx_px: Focus | None = None
    fy_px: Focus | None = None
    cx_px: float | None = None
    cy_px: float | None = None
