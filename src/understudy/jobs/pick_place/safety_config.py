"""Section `safety`: limits of force, speed, confidence and zones of pick & place."""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.config.position import Speed
from understudy.jobs.pick_place.config import Confidence, Millimetres, Milliseconds

Point = tuple[float, float, float]


class Zone(Struct, frozen=True, forbid_unknown_fields=True):
    """A box of the cell in mm: the tool may pick, or place, inside it only."""

    min: Point
    max: Point


class SafetyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """PickPlaceSafetyConfig of the design document; a zone that is not given is not checked.

    `obstacle_check`: moves through unknown objects that the depth image shows are refused.
    `obstacle_margin_mm`: points nearer to known objects belong to them; unknown ones are larger by
    it."""

    max_grip_force_n: Annotated[float, Meta(gt=0, le=100_000)] = 100.0
    grip_monitor_interval_ms: Annotated[float, Meta(ge=1, le=60_000)] = 50.0
    require_part_sensor: bool = True
    vision_timeout_ms: Milliseconds = 5000.0
    min_detection_confidence: Confidence = 0.7
    max_approach_speed_mm_s: Speed = 200.0
    safe_retract_height_mm: Millimetres = 100.0
    enable_pick_zone: bool = True
    pick_zone: Zone | None = None
    enable_place_zone: bool = True
    place_zone: Zone | None = None
    obstacle_check: bool = False
    obstacle_margin_mm: Annotated[float, Meta(gt=0, le=1000)] = 10.0
