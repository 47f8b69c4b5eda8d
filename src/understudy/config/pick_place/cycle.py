"""Section `pickplace`: positions, speeds and retries of the cycle."""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.config.pick_place.position import Position

Millimetres = Annotated[float, Meta(ge=0, le=10_000)]
Speed = Annotated[float, Meta(gt=0, le=10_000)]
Confidence = Annotated[float, Meta(ge=0, le=1)]
Milliseconds = Annotated[float, Meta(gt=0, le=600_000)]
Tries = Annotated[int, Meta(ge=1, le=1000)]
SCAN = Position(400.0, 0.0, 500.0)
PLACE = Position(600.0, -200.0, 100.0)


class CycleConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`vision_timeout_ms` and `min_confidence`: the stricter of these and those of `safety` counts.

    `fallback_position`: where the arm goes when vision fails; without it, the scan position.
    `gripper_timeout_ms`: 0 means the gripper's own. `vision_latency_s`: from the picture to the
    result, where time does not run by itself.
    """

    scan_position: Position = SCAN
    place_position: Position = PLACE
    approach_distance_mm: Millimetres = 50.0
    retract_distance_mm: Millimetres = 50.0
    move_speed_mm_s: Speed = 500.0
    approach_speed_mm_s: Speed = 100.0
    object_class_filter: str = ""
    min_confidence: Confidence = 0.8
    vision_timeout_ms: Milliseconds = 5000.0
    max_grip_retries: Tries = 3
    max_scan_retries: Tries = 5
    fallback_position: Position | None = None
    gripper_timeout_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0
    vision_latency_s: Annotated[float, Meta(ge=0, le=60)] = 0.05
