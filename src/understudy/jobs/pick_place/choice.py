"""The choice of the next part: which detected object is picked, where it goes, and by which moves.

Zone, reach and speed of all moves are checked before the first of them starts.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.jobs.pick_place.config import CycleConfig, Grasp
from understudy.jobs.pick_place.moves import (
    CycleMove,
    CyclePoses,
    Leg,
    carrying_moves,
    part_moves,
)
from understudy.jobs.pick_place.obstacles import ObstacleCheck
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.jobs.pick_place.status import PickPlaceError, PickPlaceMiss
from understudy.ports.job_arm import ArmReadings, Block, ReachCheck
from understudy.ports.object_finder import DetectedObject, FoundObjects, ObjectFinder
from understudy.space.pose import Pose, pose_of
from understudy.space.transform import Array, matrix, pose, rotation_about
from understudy.units import DEG

Z = (0.0, 0.0, 1.0)
TURNED_OVER = matrix(pose_of((0.0, 0.0, 0.0, 180.0, 0.0, 0.0)))
WHOLE_TURN = 360.0
MOST_TURNS = 8
"""Grasps of a symmetric part that are tried; a round part would have any number."""
TO_PART: tuple[Leg, ...] = ("MOVE_TO_PICK", "APPROACH_PICK", "RETRACT_PICK")
MOST_CHECKED = 8
"""Objects of one picture that are checked, the best ones first."""


Exhausted = Literal["", "PALLET_FULL", "SOURCE_EMPTY"]


class Chosen(Struct, frozen=True):
    """The next part. `cell`, `source_cell`: of the pallets, -1 if there is none."""

    class_name: str
    poses: CyclePoses
    moves: tuple[CycleMove, ...]
    seen: DetectedObject | None = None
    cell: int = -1
    source_cell: int = -1


class Unfit(Struct, frozen=True):
    """Why no part was chosen. An empty `code`: another scan may find one; `miss` says why this one
    has not."""

    reason: str
    code: PickPlaceError = ""
    miss: PickPlaceMiss = "NO_OBJECT"


DARK_GREY = 8.0
"""Mean grey value, of 255, up to which a picture without objects is a dark one."""
NEAREST_MISS: Sequence[PickPlaceMiss] = get_args(PickPlaceMiss)
"""Of several objects of a picture, the one that came furthest in this order tells the reason."""
FAULTS: Mapping[PickPlaceMiss, PickPlaceError] = {
    "PICK_OUT_OF_ZONE": "OUT_OF_ZONE",
    "PICK_OUT_OF_REACH": "OUT_OF_REACH",
    "PLACE_OUT_OF_REACH": "PLACE_OUT_OF_REACH",
    "PALLET_CELL_OUT_OF_REACH": "PALLET_CELL_OUT_OF_REACH",
}
"""What a miss is at a known position, where no other scan can help."""


class TargetPlace(Struct, frozen=True):
    at: Pose
    travel: float | None = None
    cell: int = -1


class TargetChoice:
    """Chooses parts; it moves nothing and keeps nothing."""

    def __init__(
        self,
        config: CycleConfig,
        safety: PickPlaceSafety,
        *,
        arm: ArmReadings,
        reach: ReachCheck,
        finder: ObjectFinder | None = None,
        pallet: PalletPattern | None = None,
        source: PalletPattern | None = None,
        obstacles: ObstacleCheck | None = None,
    ) -> None:
        self._config = config
        self._safety = safety
        self._arm = arm
        self._reach = reach
        self._finder = finder
        self._obstacles = obstacles
        self.pallet = pallet
        self.source = source

    def exhausted(self) -> Exhausted:
        """Why there is no next cycle: PALLET_FULL, SOURCE_EMPTY; empty if there is one."""
        if self.pallet is not None and not self._config.places and self.pallet.is_done():
            return "PALLET_FULL"
        if self.source is not None and self.source.is_done():
            return "SOURCE_EMPTY"
        return ""

    # ── vision ──

    def from_picture(self, result: FoundObjects, now: int) -> Chosen | Unfit:
        """The first object of the picture that can be picked and placed."""
        assert self._finder is not None
        camera = self._finder.camera(self._arm.flange(result.exposed_at))
        near = self._arm.tool(now)
        misses, found = [_no_object(result)], []
        around = () if self._obstacles is None else self._obstacles.unknown(result, camera)
        if isinstance(around, Refused):
            return Unfit(around.reason, miss="NO_DEPTH")
        for seen in result.objects:
            if unfit := self._unwanted(seen):
                misses.append(unfit)
                continue
            grasp = self._config.grasp(seen.class_name)
            found.append((seen, pick_poses(camera, seen.pose, grasp, near)))
        rank = _RANKS[self._config.order]
        found.sort(key=lambda pair: (rank(pair[0], pair[1][0], near), pair[0].id))
        for seen, grips in found[:MOST_CHECKED]:
            chosen = self._first_checked(seen, grips, now)
            if isinstance(chosen, Chosen):
                chosen = self._clear(chosen, around, camera, now)
            if isinstance(chosen, Chosen) or chosen.code:
                return chosen
            misses.append(chosen)
        furthest = max(NEAREST_MISS.index(each.miss) for each in misses)
        own = misses[1:] or misses  # an object of another class tells more than none
        return next((u for u in own if NEAREST_MISS.index(u.miss) == furthest), own[0])

    def _first_checked(self, seen: DetectedObject, grips: list[Pose], now: int) -> Chosen | Unfit:
        """The choice with the first of the grips that the arm can do; without one the reason of the
        first."""
        checks = (self._checked(seen.class_name, at, now, seen=seen) for at in grips)
        first = next(checks)
        if isinstance(first, Chosen) or first.code:
            return first
        return next((each for each in checks if isinstance(each, Chosen)), first)

    def _clear(
        self, chosen: Chosen, around: Sequence[Block], camera: Pose, now: int
    ) -> Chosen | Unfit:
        """The choice, if no unknown object is in the way of its moves."""
        if self._obstacles is None or not around or chosen.seen is None:
            return chosen
        at = pose(matrix(camera) @ matrix(chosen.seen.pose))
        held = self._obstacles.held(chosen.class_name, at, chosen.poses.pick, now)
        refused = self._obstacles.in_the_way(around, chosen.moves, held, now)
        return chosen if refused is None else Unfit(refused.reason, miss="OBSTACLE")

    def _unwanted(self, seen: DetectedObject) -> Unfit | None:
        wanted, least = self._config.object_class_filter, self._safety.min_confidence
        if wanted and seen.class_name != wanted:
            return Unfit(f"the object is a {seen.class_name}, not a {wanted}")
        if seen.confidence < least:
            below = f"confidence {seen.confidence:.2f} of {seen.class_name} is below {least:.2f}"
            return Unfit(below, miss="LOW_CONFIDENCE")
        return None

    # ── known positions ──

    def from_source(self, now: int) -> Chosen | Unfit:
        """The part at the next cell of the source pallet, or at the pick position."""
        wanted, source = self._config.object_class_filter, self.source
        if source is None:
            assert self._config.pick_position is not None
            chosen = self._checked(wanted, self._config.pick_position.pose(), now)
        else:
            index = source.get_current_index()
            at = source.get_position(index)
            if isinstance(at, Refused):
                return Unfit(at.reason, "OUT_OF_REACH")
            height = source.safe_height(index)
            chosen = self._checked(wanted, at, now, source_cell=index, travel=height)
        if isinstance(chosen, Unfit) and not chosen.code:
            return Unfit(chosen.reason, FAULTS[chosen.miss], chosen.miss)
        return chosen

    # ── place and checks ──

    def place(self, class_name: str) -> TargetPlace | Unfit:
        """Where a part of this class goes."""
        own = self._config.place(class_name)
        if own is not None:
            return TargetPlace(own.pose())
        if self.pallet is None:
            return TargetPlace(self._config.place_position.pose())
        index = self.pallet.get_current_index()
        at = self.pallet.get_position(index)
        if isinstance(at, Refused):
            return Unfit(at.reason, "PALLET_CELL_OUT_OF_REACH")
        return TargetPlace(at, self.pallet.safe_height(index), index)

    def _checked(
        self,
        class_name: str,
        at: Pose,
        now: int,
        *,
        seen: DetectedObject | None = None,
        source_cell: int = -1,
        travel: float | None = None,
    ) -> Chosen | Unfit:
        if refused := self._safety.validate_pick_position(at):
            return Unfit(refused.reason, miss="PICK_OUT_OF_ZONE")
        place = self.place(class_name)
        if isinstance(place, Unfit):
            return place
        if refused := self._safety.validate_place_position(place.at):
            return Unfit(refused.reason, "OUT_OF_ZONE")
        axis = self._config.grasp(class_name).approach
        poses = CyclePoses(at, place.at, _highest(travel, place.travel), axis)
        moves = tuple(part_moves(self._config, poses, self._arm.tool(now)))
        if refused := self._safety.validate_speeds(moves):
            return Unfit(refused.reason, "SPEED_LIMIT")
        if refused := self._reach.check([move.target for move in moves], now):
            return Unfit(refused.reason, miss=self._not_reached(moves, place, now))
        return Chosen(class_name, poses, moves, seen, place.cell, source_cell)

    # ── the part in the hand ──

    def from_hand(self, part: Chosen, now: int, *, back: bool = False) -> Chosen | Unfit:
        """The part that the hand has, carried from here to its place; ``back``: to where it was
        picked."""
        poses, axis = part.poses, part.poses.pick_axis
        place = TargetPlace(poses.pick) if back else self.place(part.class_name)
        if isinstance(place, Unfit):
            return place
        if not back and (refused := self._safety.validate_place_position(place.at)):
            return Unfit(refused.reason, "OUT_OF_ZONE")
        travel = _highest(poses.travel, place.travel)
        poses = CyclePoses(poses.pick, place.at, travel, axis, axis if back else "tool")
        moves = tuple(carrying_moves(self._config, poses, self._arm.tool(now)))
        if refused := self._safety.validate_speeds(moves):
            return Unfit(refused.reason, "SPEED_LIMIT")
        if refused := self._reach.check([move.target for move in moves], now):
            return Unfit(refused.reason, "OUT_OF_REACH")
        return replace(part, poses=poses, moves=moves, cell=place.cell)

    def _not_reached(
        self, moves: Sequence[CycleMove], place: TargetPlace, now: int
    ) -> PickPlaceMiss:
        """Which end of the way the arm does not reach."""
        to_part = [move.target for move in moves if move.leg in TO_PART]
        if self._reach.check(to_part, now):
            return "PICK_OUT_OF_REACH"
        return "PLACE_OUT_OF_REACH" if place.cell < 0 else "PALLET_CELL_OUT_OF_REACH"


def _no_object(result: FoundObjects) -> Unfit:
    if result.brightness is not None and result.brightness <= DARK_GREY:
        grey = f"its mean grey value is {result.brightness:.1f} of 255"
        return Unfit(f"the picture is dark: {grey}", miss="CAMERA_DARK")
    return Unfit("no object in the picture")


def _highest(*heights: float | None) -> float | None:
    return max((height for height in heights if height is not None), default=None)


_RANKS: Mapping[str, Callable[[DetectedObject, Pose, Pose], float]] = {
    "confidence": lambda seen, at, near: -seen.confidence,
    "highest": lambda seen, at, near: -at.z,
    "nearest": lambda seen, at, near: math.dist(at[:3], near[:3]),
}
"""The part with the smallest number is picked first."""


# ── the pose of the tool at a detected object ───────────────────────────────────────────────────


def pick_poses(camera: Pose, seen: Pose, grasp: Grasp, near: Pose) -> list[Pose]:
    """The poses of the tool that grip an object: several if the part is symmetric, the one with the
    least turn about the axis of the tool from ``near`` first.

    T_base_tcp = T_base_cam · T_cam_obj · T_obj_grasp, where ``camera``, T_base_cam, is the pose of
    the camera in the cell when the picture was taken, and ``seen`` is T_cam_obj.
    """
    in_cell = matrix(camera) @ matrix(seen)
    tool = in_cell @ (
        _from_camera_side(in_cell, camera)
        if grasp.offset_mm_deg is None
        else matrix(pose_of(grasp.offset_mm_deg))
    )
    return [pose(each) for each in _turned(tool, matrix(near), grasp.symmetry_deg)]


def _from_camera_side(in_cell: Array, camera: Pose) -> Array:
    """The grasp of a class without one: the tool points as the camera looks, along the object's
    own Z axis or against it. Detectors differ: the Z axis of a marker points to the camera, a
    flat detector gives angles as seen by the camera."""
    looks = matrix(camera)[:3, 2]
    return np.eye(4) if float(in_cell[:3, 2] @ looks) >= 0.0 else TURNED_OVER


def _turned(tool: Array, near: Array, symmetry_deg: float) -> Iterator[Array]:
    """``tool``, turned about its own axis by multiples of the symmetry, the nearest first."""
    if not 0.0 < symmetry_deg < WHOLE_TURN:
        yield tool
        return
    between = tool[:3, :3].T @ near[:3, :3]
    yaw = math.atan2(between[1, 0] - between[0, 1], between[0, 0] + between[1, 1])
    step, first = symmetry_deg * DEG, round(yaw / (symmetry_deg * DEG))
    count = min(round(WHOLE_TURN / symmetry_deg), MOST_TURNS)
    side = 1 if yaw >= first * step else -1
    for number in range(count):
        away = side * ((number + 1) // 2) * (1 if number % 2 else -1)
        turned = tool.copy()
        turned[:3, :3] = tool[:3, :3] @ rotation_about(Z, (first + away) * step)
        yield turned
