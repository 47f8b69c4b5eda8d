"""Section `vision`: where the detections come from."""

from typing import Literal

from msgspec import Struct


class VisionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`source`: the vision process at `camera_address`, or the simulated parts themselves.

    `mount`: the camera is on the flange (`eye_in_hand`) or stands in the cell (`eye_to_hand`).
    """

    camera_address: str = "tcp://127.0.0.1:5570"
    hand_eye_calibration_file: str = ""
    source: Literal["ground_truth", "process"] = "ground_truth"
    mount: Literal["eye_in_hand", "eye_to_hand"] = "eye_in_hand"
