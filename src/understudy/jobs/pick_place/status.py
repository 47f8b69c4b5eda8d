"""State, faults, status and statistics of the cycle."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from understudy.ports.object_finder import DetectedObject

RunningState = Literal[
    "MOVE_TO_SCAN",
    "SCANNING",
    "MOVE_TO_PICK",
    "APPROACH_PICK",
    "GRIPPING",
    "RETRACT_PICK",
    "MOVE_TO_PLACE",
    "APPROACH_PLACE",
    "RELEASING",
    "RETRACT_PLACE",
]
"""The states of a cycle, in their order."""
PickPlaceState = Literal["IDLE", RunningState, "ERROR", "PAUSED"]
PickPlaceError = Literal[
    "",
    "EMERGENCY_STOP",
    "ARM_FAULT",
    "OUT_OF_REACH",
    "PLACE_OUT_OF_REACH",
    "PALLET_CELL_OUT_OF_REACH",
    "OUT_OF_ZONE",
    "SPEED_LIMIT",
    "VISION_TIMEOUT",
    "GRIP_FAILED",
    "GRIPPER_FAULT",
    "PART_LOST",
    "PART_UNEXPECTED",
    "PART_NOT_RELEASED",
    "FORCE_LIMIT",
    "HANDSHAKE_TIMEOUT",
    "OUTPUT_REFUSED",
    "NO_CONTACT",
]
"""The fault of a job that is in ERROR."""
NO_PICTURE: PickPlaceError = "VISION_TIMEOUT"
HAND_FAULT: PickPlaceError = "GRIPPER_FAULT"
PickPlaceMiss = Literal[
    "NO_OBJECT",
    "CAMERA_DARK",
    "LOW_CONFIDENCE",
    "PICK_OUT_OF_ZONE",
    "PICK_OUT_OF_REACH",
    "PLACE_OUT_OF_REACH",
    "PALLET_CELL_OUT_OF_REACH",
    "OBSTACLE",
    "NO_DEPTH",
]
"""Why a scan has found no part that can be picked and placed."""
ADVICE: Mapping[str, str] = {
    "NO_OBJECT": "bring parts or check the camera, then start",
    "CAMERA_DARK": "switch the light on, or check exposure, lens and cable, then start",
    "LOW_CONFIDENCE": "check light, focus and detector, or lower min_confidence, then start",
    "PICK_OUT_OF_ZONE": "bring the part into safety.pick_zone or correct the zone, then start",
    "PICK_OUT_OF_REACH": "move the part nearer to the arm or change its grasp, then start",
    "OBSTACLE": "take the object out of the way of the arm, then start",
    "NO_DEPTH": "use a camera with a depth image, or switch safety.obstacle_check off",
    "EMERGENCY_STOP": "reset the robot, enable its drives, reset the job; the hand has not changed",
    "ARM_FAULT": "see the robot's message, then reset the job",
    "OUT_OF_REACH": "move the part or the position, then reset the job",
    "PLACE_OUT_OF_REACH": "move the place position nearer to the arm, then start",
    "PALLET_CELL_OUT_OF_REACH": "move the pallet, or skip the cell, then start",
    "SPEED_LIMIT": "lower approach_speed_mm_s of the section pickplace",
    "OUT_OF_ZONE": "correct the position or the zone, then reset the job",
    "VISION_TIMEOUT": "check camera and vision process, then reset the job",
    "GRIP_FAILED": "check part, grasp and air, then reset the job; the hand is open",
    "GRIPPER_FAULT": "check gripper and air, then reset the job",
    "PART_LOST": "find the part, then reset the job",
    "PART_UNEXPECTED": "look at the hand; release the part by the command, then reset the job",
    "PART_NOT_RELEASED": "look at the hand; release the part by the command, then reset the job",
    "FORCE_LIMIT": "check the grip force; release the part by the command, then reset the job",
    "HANDSHAKE_TIMEOUT": "check the machine and its signals, then reset the job",
    "OUTPUT_REFUSED": "check the pins of the handshake, then reset the job",
    "NO_CONTACT": "check part and place; the hand still has the part",
}
"""What to do about each fault, and about each reason of a scan without a part."""
PickPlaceReason = Literal["", "DONE", "STOPPED", "PALLET_FULL", "SOURCE_EMPTY", PickPlaceMiss]
"""Why the last run has ended without a fault."""
GOOD_ENDS: tuple[PickPlaceReason, ...] = (
    "DONE",
    "NO_OBJECT",
    "PICK_OUT_OF_ZONE",
    "PALLET_FULL",
    "SOURCE_EMPTY",
)
"""Ends of a run that has done what there was to do: objects outside the pick zone are left."""

ALARMS: Mapping[str, str] = {
    "NO_OBJECT": "the source is empty: no part is seen",
    "CAMERA_DARK": "the camera is dark",
    "LOW_CONFIDENCE": "parts are seen, and not for certain",
    "PICK_OUT_OF_ZONE": "the part is outside the pick zone",
    "PICK_OUT_OF_REACH": "the part is out of reach",
    "OBSTACLE": "an object is in the way of the arm",
    "NO_DEPTH": "the camera has no depth image",
    "OUT_OF_REACH": "a position is out of reach",
    "PLACE_OUT_OF_REACH": "the place is out of reach",
    "PALLET_CELL_OUT_OF_REACH": "a place of the pallet is out of reach",
    "OUT_OF_ZONE": "a position is outside its zone",
    "SPEED_LIMIT": "a move is too fast",
    "VISION_TIMEOUT": "vision does not answer",
    "GRIP_FAILED": "the gripper gets no part",
    "GRIPPER_FAULT": "the gripper has a fault",
    "PART_LOST": "the part is lost",
    "PART_UNEXPECTED": "the hand has a part that it should not have",
    "PART_NOT_RELEASED": "the hand does not release the part",
    "FORCE_LIMIT": "the grip force is too high",
    "HANDSHAKE_TIMEOUT": "the machine does not answer",
    "OUTPUT_REFUSED": "an output cannot be switched",
    "NO_CONTACT": "the place was reached without a contact",
}
"""Ends of a run that pages show as an alarm, in plain words; the arm reports its own faults."""
NOTICES: Mapping[str, str] = {
    "SOURCE_EMPTY": "source empty",
    "PALLET_FULL": "pallet full",
}
"""Ends of a run that has done all there was to do, and needs an operator to go on."""


class PickPlaceStatistics(Struct, frozen=True):
    """Times of the successful cycles in seconds, 0 before the first one, and parts by class."""

    last_s: float = 0.0
    mean_s: float = 0.0
    shortest_s: float = 0.0
    longest_s: float = 0.0
    by_class: dict[str, int] = {}


class PickPlaceStatus(Struct, frozen=True):
    """State, counts and target of the cycle. `last_error`: why the last cycle failed or ended, and
    what to do. `cycles_left`: that follow the present one, -1 without an end. `holding`: the hand
    has a part; `goes_on`: and the next start carries on with it. `progress`: 0 to 1 of the present
    cycle. `paused_in`: the state before a pause. `alarm`, `advice`, `clears`: why the last run has
    ended, what to do about it, and the command that ends the alarm; `notice`: an end that is no
    alarm."""

    state: PickPlaceState = "IDLE"
    cycle_count: int = 0
    success_count: int = 0
    fail_count: int = 0
    current_target: DetectedObject | None = None
    last_error: str = ""
    code: PickPlaceError = ""
    reason: PickPlaceReason = ""
    running: bool = False
    cycles_left: int = 0
    holding: bool = False
    goes_on: bool = False
    scan_misses: int = 0
    grip_misses: int = 0
    progress: float = 0.0
    paused_in: PickPlaceState | Literal[""] = ""
    alarm: str = ""
    advice: str = ""
    clears: str = ""
    notice: str = ""
    statistics: PickPlaceStatistics = PickPlaceStatistics()
