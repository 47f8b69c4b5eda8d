"""Section `pickplace`: positions, speeds and retries of the cycle."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.position import PoseMmDeg, Position, Speed
from understudy.jobs.pick_place.pallet.config import PalletConfig

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
    """`set`: switches an output; `wait`: waits until an input has the value. With both, the output
    is switched first."""

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
    result, where time does not run by itself. `scan_retry_ms`: until the next request after an
    answer with an error.

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
    max_grip_retries: Tries = 3
    max_scan_retries: Tries = 5
    fallback_position: Position | None = None
    gripper_timeout_ms: Annotated[float, Meta(ge=0, le=600_000)] = 0.0
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

    def grasp(self, class_name: str) -> Grasp:
        return self.grasps.get(class_name) or self.grasps.get(ANY_CLASS) or Grasp()

    def place(self, class_name: str) -> Position | None:
        """The place of a class; None: the pallet, or the place position."""
        return self.places.get(class_name) or self.places.get(ANY_CLASS)
