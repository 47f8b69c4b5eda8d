"""Sections `pickplace`, `pallet` and `safety`: the cycle, its pallets, its limits and zones."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from understudy.errors import ConfigError
from understudy.space.pose import PoseMmDeg, Position, Speed
from understudy.units import nanoseconds

PatternType = Literal["SNAKE", "ZIGZAG", "ROW_BY_ROW", "COLUMN_BY_COLUMN", "SPIRAL"]
StartCorner = Literal["BOTTOM_LEFT", "BOTTOM_RIGHT", "TOP_LEFT", "TOP_RIGHT"]
Interleave = Literal["NONE", "MIRROR", "ROTATE", "SHIFT"]
Count = Annotated[int, Meta(ge=1, le=1000)]
Distance = Annotated[float, Meta(gt=0, le=10_000)]
MOST_CELLS = 100_000
SAME_LENGTH = 1e-6
"""Share by which two sides that are meant to be equal may differ."""


class PalletConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in mm. `origin`: the first cell; without it the place position. `corner2`: a point
    along the columns; `corner3`: a point along the rows; without them the axes of the cell.

    `start_corner`: where a layer begins, seen with the columns to the right and the rows upwards;
    without it `start_bottom_left` decides between BOTTOM_LEFT and TOP_LEFT. `interleave`: what is
    different in every second layer. MIRROR: it begins at the opposite corner. ROTATE: the layer and
    its parts are turned by 90°. SHIFT: it is shifted by half a pitch along the columns and has one
    column less. `depalletise`: the parts are taken off, in the reverse order.
    `clearance_mm`: between a carried part and the top of what is stacked.
    """

    rows: Count = 4
    columns: Count = 4
    layers: Count = 3
    pitch_x: Distance = 100.0
    pitch_y: Distance = 100.0
    layer_height: Distance = 50.0
    origin: Position | None = None
    corner2: Position | None = None
    corner3: Position | None = None
    pattern: PatternType = "SNAKE"
    start_bottom_left: bool = True
    start_corner: StartCorner | None = None
    interleave: Interleave = "NONE"
    depalletise: bool = False
    clearance_mm: Annotated[float, Meta(ge=0, le=1000)] = 20.0

    def __post_init__(self) -> None:
        cells = self.rows * self.columns * self.layers
        if cells > MOST_CELLS:
            raise ValueError(f"{cells} cells; allowed: at most {MOST_CELLS}")
        if self.start_corner is not None and not self.start_bottom_left:
            raise ValueError("start_corner and start_bottom_left: false are given; use one of them")
        if self.corner3 is not None and self.corner2 is None:
            raise ValueError("corner3 is given without corner2")
        if self.interleave == "SHIFT" and self.columns < 2:
            raise ValueError("interleave: SHIFT needs 2 columns or more")
        width, depth = self.columns * self.pitch_x, self.rows * self.pitch_y
        if self.interleave == "ROTATE" and not math.isclose(width, depth, rel_tol=SAME_LENGTH):
            raise ValueError(
                f"interleave: ROTATE needs square layers; this one is {width:g} × {depth:g} mm"
            )

    @property
    def corner(self) -> StartCorner:
        return self.start_corner or ("BOTTOM_LEFT" if self.start_bottom_left else "TOP_LEFT")


Millimetres = Annotated[float, Meta(ge=0, le=10_000)]
Confidence = Annotated[float, Meta(ge=0, le=1)]
Milliseconds = Annotated[float, Meta(gt=0, le=600_000)]
Tries = Annotated[int, Meta(ge=1, le=1000)]
SCAN = Position(400.0, 0.0, 500.0)
PLACE = Position(600.0, -200.0, 100.0)
PinName = int | Annotated[str, Meta(min_length=1, max_length=64)]
ClassName = Annotated[str, Meta(max_length=64)]
ANY_CLASS = "*"


class Grasp(Struct, frozen=True, forbid_unknown_fields=True):
    """How the tool grips a class of parts.

    `offset_mm_deg`: the tool in the frame of the part; without it the tool is at the centre of the
    part and points away from the camera. `symmetry_deg`: the part looks the same after this turn
    about the axis of the tool, so that the nearest of these grasps is taken; 0: none. `approach`:
    along the axis of the tool, or straight down.
    """

    offset_mm_deg: PoseMmDeg | None = None
    symmetry_deg: Annotated[float, Meta(ge=0, le=360)] = 0.0
    approach: Literal["tool", "up"] = "tool"


class HandshakeStep(Struct, frozen=True, forbid_unknown_fields=True):
    """A signal to or from a machine. `set`: switches an output; `wait`: waits until an input has
    the value. With both, the output is switched first."""

    set: PinName | None = None
    wait: PinName | None = None
    value: bool = True
    timeout_ms: Milliseconds = 10_000.0

    def __post_init__(self) -> None:
        if self.set is None and self.wait is None:
            raise ValueError("a step of a handshake needs `set`, `wait` or both")


Steps = Annotated[tuple[HandshakeStep, ...], Meta(max_length=32)]


class Handshake(Struct, frozen=True, forbid_unknown_fields=True):
    """Signals between the robot and a machine (door, chuck), in the order of a cycle.

    `before_pick`, `before_place`: over the part or the place, before the approach. `at_pick`: with
    the part gripped, before the retract. `at_place`: at the place, before the release.
    `after_pick`, `after_place`: after the retract.
    """

    before_pick: Steps = ()
    at_pick: Steps = ()
    after_pick: Steps = ()
    before_place: Steps = ()
    at_place: Steps = ()
    after_place: Steps = ()


class Insert(Struct, frozen=True, forbid_unknown_fields=True):
    """The last part of the approach to the place, which ends at a contact.

    The tool begins `distance_mm` before the place position and moves on at `speed_mm_s` until the
    input `contact` is on, or the analog input `force_input` reaches `force_volts`. Without contact
    up to the place position the cycle fails, unless `required` is false.
    """

    distance_mm: Annotated[float, Meta(gt=0, le=1000)] = 10.0
    speed_mm_s: Speed = 5.0
    contact: PinName | None = None
    force_input: PinName | None = None
    force_volts: Annotated[float, Meta(ge=-10, le=10)] = 1.0
    required: bool = True

    def __post_init__(self) -> None:
        if self.required and self.contact is None and self.force_input is None:
            raise ValueError(
                "a contact is required, and no input reports it; give `contact`, `force_input` or "
                "`required: false`"
            )


class CycleConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`vision_timeout_ms` and `min_confidence`: the stricter of these and those of `safety` counts.

    `fallback_position`: where the arm goes when vision fails; without it, the scan position.
    `gripper_timeout_ms`: 0 means the gripper's own. `vision_latency_s`: from the picture to the
    result, where time does not run by itself. `vision_answer_timeout_ms`: an answer that has not
    come by then is lost, and another picture is asked for. `scan_retry_ms`: until the next request
    after an answer with an error.

    `source`: parts are seen by vision, taken from `source_pallet` in reverse order, or from the one
    `pick_position`. `order`: which of several detected parts is picked first. `grasps` and `places`
    by class; the class `*` is every other one. Without a place of its own a part goes to the
    pallet, or to the place position.
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
    vision_answer_timeout_ms: Milliseconds = 2000.0
    max_grip_retries: Tries = 3
    max_scan_retries: Tries = 5
    fallback_position: Position | None = None
    grip_timeout_ms: Annotated[float, Meta(ge=0, le=600_000)] = field(
        name="gripper_timeout_ms", default=0.0
    )
    vision_latency_s: Annotated[float, Meta(ge=0, le=60)] = 0.05
    scan_retry_ms: Milliseconds = 100.0
    source: Literal["vision", "pallet", "fixed"] = "vision"
    pick_position: Position | None = None
    source_pallet: PalletConfig | None = None
    order: Literal["confidence", "highest", "nearest"] = "confidence"
    grasps: dict[ClassName, Grasp] = {}
    places: dict[ClassName, Position] = {}
    handshake: Handshake = Handshake()
    insert: Insert | None = None

    @property
    def looks(self) -> bool:
        """Whether parts are found by a camera."""
        return self.source == "vision"

    @property
    def look_latency(self) -> int:
        return nanoseconds(self.vision_latency_s)

    def grasp(self, class_name: str) -> Grasp:
        return self.grasps.get(class_name) or self.grasps.get(ANY_CLASS) or Grasp()

    def place(self, class_name: str) -> Position | None:
        """The place of a class; None: the pallet, or the place position."""
        return self.places.get(class_name) or self.places.get(ANY_CLASS)


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


# ── checks of sections that must fit together ─────────────────────────────────────────────────────


def check_sections(cycle: CycleConfig, safety: SafetyConfig) -> list[str]:
    """Warnings about zones that are not given; raises ConfigError for values that do not fit."""
    for name, zone in (("pick_zone", safety.pick_zone), ("place_zone", safety.place_zone)):
        if zone is not None and any(a >= b for a, b in zip(zone.min, zone.max, strict=True)):
            allowed = "each number of `min` below that of `max`"
            raise ConfigError(
                "the zone is empty", key=f"safety.{name}", value=zone, allowed=allowed
            )
    _check_source(cycle)
    _check_speeds(cycle, safety)
    enabled = {"pick_zone": safety.enable_pick_zone, "place_zone": safety.enable_place_zone}
    return [
        f"safety.{name} is not given: positions are not checked"
        for name, wanted in enabled.items()
        if wanted and getattr(safety, name) is None
    ]


def _check_source(cycle: CycleConfig) -> None:
    """Raises ConfigError if the source of the parts lacks its keys."""
    if cycle.source == "fixed" and cycle.pick_position is None:
        raise ConfigError("source: fixed needs a position", key="pickplace.pick_position")
    if cycle.source != "pallet":
        return
    if cycle.source_pallet is None:
        raise ConfigError("source: pallet needs a pallet", key="pickplace.source_pallet")
    if not cycle.source_pallet.depalletise:
        raise ConfigError(
            "parts are taken off in reverse order",
            key="pickplace.source_pallet.depalletise",
            value=False,
            allowed="true",
        )


def _check_speeds(cycle: CycleConfig, safety: SafetyConfig) -> None:
    most = safety.max_approach_speed_mm_s
    speeds = {"approach_speed_mm_s": cycle.approach_speed_mm_s}
    if cycle.insert is not None:
        speeds["insert.speed_mm_s"] = cycle.insert.speed_mm_s
    for key, speed in speeds.items():
        if speed > most:
            raise ConfigError(
                "faster than safety.max_approach_speed_mm_s",
                key=f"pickplace.{key}",
                value=speed,
                allowed=f"up to {most:g}",
            )
