"""The moves of a pick & place cycle: from the configuration, a pick pose and a place pose.

    approach ──▶ pick ──▶ retract ──▶ up ──▶ across ──▶ approach ──▶ place ──▶ retract
       (over the part)                (travel height)    (over the place)

All poses are those of the tool in the cell. A move whose target is the end of the one before it is
left out.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from understudy.jobs.pick_place.config import CycleConfig
from understudy.ports.operation import Target
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose, translation
from understudy.units import MM

Leg = Literal[
    "MOVE_TO_SCAN",
    "MOVE_TO_PICK",
    "APPROACH_PICK",
    "RETRACT_PICK",
    "MOVE_TO_PLACE",
    "APPROACH_PLACE",
    "RETRACT_PLACE",
]
"""The states of the cycle in which the arm moves."""
Axis = Literal["tool", "up"]
SAME = 1e-9


class CycleMove(Struct, frozen=True):
    """A move of the cycle, and the state in which it is made."""

    leg: Leg
    target: Target


class CyclePoses(Struct, frozen=True):
    """Where a cycle picks and places. `travel`: the lowest height (m, in the cell) at which the
    tool crosses from the part to the place, and back; None: the height of approach and retract is
    enough. `pick_axis`: approach along the axis of the tool, or straight down."""

    pick: Pose
    place: Pose
    travel: float | None = None
    pick_axis: Axis = "tool"
    place_axis: Axis = "tool"


def above(at: Pose, distance: float, axis: Axis = "tool") -> Pose:
    """The pose at a distance before ``at``: back along the axis of the tool, or straight up."""
    if axis == "up":
        return at._replace(z=at.z + distance)
    return pose(matrix(at) @ translation(0.0, 0.0, -distance))


def risen(at: Pose, height: float) -> Pose:
    """The pose straight above ``at`` at this height; ``at`` if it is as high already."""
    return at._replace(z=max(at.z, height))


def line(target: Pose, speed_mm_s: float) -> Target:
    return Target(None, target, True, speed_mm_s * MM)


def scan_moves(config: CycleConfig) -> list[CycleMove]:
    return [_move("MOVE_TO_SCAN", config.scan_position.pose(), config.move_speed_mm_s)]


def pick_moves(config: CycleConfig, poses: CyclePoses, start: Pose) -> list[CycleMove]:
    """The moves from ``start`` to the part, and back from it to the height of the retract."""
    approach = above(poses.pick, config.approach_distance_mm * MM, poses.pick_axis)
    retract = above(poses.pick, config.retract_distance_mm * MM, poses.pick_axis)
    fast, slow = config.move_speed_mm_s, config.approach_speed_mm_s
    return _without_rests(
        start,
        [
            *_across("MOVE_TO_PICK", start, approach, poses.travel, fast),
            _move("APPROACH_PICK", poses.pick, slow),
            _move("RETRACT_PICK", retract, slow),
        ],
    )


def place_moves(config: CycleConfig, poses: CyclePoses, start: Pose) -> list[CycleMove]:
    """The moves from ``start`` with the part to the place, and back from it to the height of the
    retract.

    The part crosses at the height of the higher of both ends, or at the travel height if that is
    higher."""
    approach = above(poses.place, config.approach_distance_mm * MM, poses.place_axis)
    retract = above(poses.place, config.retract_distance_mm * MM, poses.place_axis)
    fast, slow = config.move_speed_mm_s, config.approach_speed_mm_s
    free = approach.z if poses.travel is None else poses.travel
    height = max(start.z, approach.z, free)
    return _without_rests(
        start,
        [
            *_across("MOVE_TO_PLACE", start, approach, height, fast),
            _move("APPROACH_PLACE", poses.place, slow),
            _move("RETRACT_PLACE", retract, slow),
            _move(
                "RETRACT_PLACE", risen(retract, retract.z if poses.travel is None else free), fast
            ),
        ],
    )


def carrying_moves(config: CycleConfig, poses: CyclePoses, start: Pose) -> list[CycleMove]:
    """From ``start``, where a run was stopped with the part in the hand, to the place: slowly
    straight up to the height of the retract, then as `place_moves`."""
    top = above(poses.pick, config.retract_distance_mm * MM, poses.pick_axis).z
    up = _move("RETRACT_PICK", risen(start, top), config.approach_speed_mm_s)
    ends = up.target.pose or start
    return [*_without_rests(start, [up]), *place_moves(config, poses, ends)]


def part_moves(config: CycleConfig, poses: CyclePoses, start: Pose) -> list[CycleMove]:
    """The moves from ``start``, where the part was seen, until it is placed and the hand is off."""
    picking = pick_moves(config, poses, start)
    ends = next((m.target.pose for m in reversed(picking) if m.target.pose), start)
    return [*picking, *place_moves(config, poses, ends)]


# ── inside ──────────────────────────────────────────────────────────────────────────────────────


def _across(
    leg: Leg, start: Pose, end: Pose, height: float | None, speed: float
) -> list[CycleMove]:
    """Up, across and down, at ``height`` or higher; straight if both ends are that high."""
    lowest = height if height is not None else min(start.z, end.z)
    ways = (risen(start, lowest), risen(end, lowest), end)
    return [_move(leg, at, speed) for at in ways]


def _move(leg: Leg, target: Pose, speed: float) -> CycleMove:
    return CycleMove(leg, line(target, speed))


def _without_rests(start: Pose, moves: Sequence[CycleMove]) -> list[CycleMove]:
    """The moves without those that end where they begin."""
    left: list[CycleMove] = []
    here = start
    for each in moves:
        there = each.target.pose
        assert there is not None
        if not np.allclose(matrix(here), matrix(there), atol=SAME):
            left.append(each)
        here = there
    return left
