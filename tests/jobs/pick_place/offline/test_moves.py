"""Moves of a cycle: order, heights and speeds."""

import math

import pytest

from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.moves import (
    CycleMove,
    CyclePoses,
    above,
    carrying_moves,
    part_moves,
    pick_moves,
    place_moves,
    scan_moves,
)
from understudy.space.pose import pose_of

CONFIG = CycleConfig()
SCAN = CONFIG.scan_position.pose()
PICK = pose_of((450.0, 100.0, 60.0, 180.0, 0.0, 30.0))
PLACE = CONFIG.place_position.pose()


def heights(moves: list[CycleMove], leg: str) -> list[float]:
    placed = [(m, m.target.pose) for m in moves if m.leg == leg]
    return [at.z * 1000 for _, at in placed if at]


def test_a_cycle_goes_through_all_legs_at_their_speeds() -> None:
    moves = [*scan_moves(CONFIG), *part_moves(CONFIG, CyclePoses(PICK, PLACE), SCAN)]
    legs = list(dict.fromkeys(m.leg for m in moves))
    assert legs == [
        "MOVE_TO_SCAN", "MOVE_TO_PICK", "APPROACH_PICK", "RETRACT_PICK",
        "MOVE_TO_PLACE", "APPROACH_PLACE", "RETRACT_PLACE",
    ]  # fmt: skip
    assert all(m.target.line for m in moves)
    for move in moves:
        slow = move.leg.startswith(("APPROACH", "RETRACT"))
        assert move.target.speed == pytest.approx(0.1 if slow else 0.5)


def test_the_tool_is_over_part_and_place_by_the_configured_distances() -> None:
    config = CycleConfig(approach_distance_mm=40.0, retract_distance_mm=70.0)
    moves = part_moves(config, CyclePoses(PICK, PLACE), SCAN)
    assert heights(moves, "MOVE_TO_PICK")[-1] == pytest.approx(100.0)
    assert heights(moves, "APPROACH_PICK") == [pytest.approx(60.0)]
    assert heights(moves, "RETRACT_PICK") == [pytest.approx(130.0)]
    assert heights(moves, "MOVE_TO_PLACE")[-1] == pytest.approx(140.0)
    assert heights(moves, "APPROACH_PLACE") == [pytest.approx(100.0)]
    assert heights(moves, "RETRACT_PLACE") == [pytest.approx(170.0)]


def test_the_part_crosses_at_the_higher_end() -> None:
    over_pick = above(PICK, 0.05)
    moves = place_moves(CONFIG, CyclePoses(PICK, PLACE), over_pick)
    assert heights(moves, "MOVE_TO_PLACE") == [pytest.approx(150.0), pytest.approx(150.0)]
    rising, across = [m.target.pose for m in moves if m.leg == "MOVE_TO_PLACE"]
    assert rising is not None
    assert across is not None
    assert rising[:2] == pytest.approx(over_pick[:2])
    assert across[:2] == pytest.approx(PLACE[:2])


def test_a_part_in_the_hand_is_lifted_to_the_height_of_the_retract_before_it_crosses() -> None:
    config = CycleConfig(retract_distance_mm=200.0)
    moves = carrying_moves(config, CyclePoses(PICK, PLACE), above(PICK, 0.02))
    assert heights(moves, "RETRACT_PICK") == pytest.approx([260.0])
    assert heights(moves, "MOVE_TO_PLACE") == pytest.approx([260.0, 150.0])


def test_a_travel_height_lifts_every_crossing() -> None:
    poses = CyclePoses(PICK, PLACE, travel=0.3)
    placing = place_moves(CONFIG, poses, above(PICK, 0.05))
    assert heights(placing, "MOVE_TO_PLACE") == pytest.approx([300.0, 300.0, 150.0])
    assert heights(placing, "RETRACT_PLACE") == pytest.approx([150.0, 300.0])
    picking = pick_moves(CONFIG, poses, PLACE)
    assert heights(picking, "MOVE_TO_PICK") == pytest.approx([300.0, 300.0, 110.0])


def test_a_tilted_tool_approaches_along_its_own_axis_or_straight_down() -> None:
    tilted = pose_of((400.0, 0.0, 100.0, 180.0, 30.0, 0.0))
    along = above(tilted, 0.1)
    assert math.dist(along[:3], tilted[:3]) == pytest.approx(0.1)
    assert along.z - tilted.z == pytest.approx(0.1 * math.cos(math.radians(30)))
    assert above(tilted, 0.1, "up")[:2] == tilted[:2]


def test_moves_that_end_where_they_begin_are_left_out() -> None:
    moves = part_moves(CONFIG, CyclePoses(above(PICK, 0.1), PLACE), above(PICK, 0.15))
    assert moves[0].leg == "APPROACH_PICK"
