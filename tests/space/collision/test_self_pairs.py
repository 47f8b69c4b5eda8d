"""Pairs of links that can touch: found from the model, or given by a list."""

import numpy as np
import pytest
from tests.space.arm_models import three_parallel

from understudy.errors import ConfigError
from understudy.space.collision.assembly import arm_parts, assembled
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.motion_bound import furthest
from understudy.space.collision.self_pairs import apart_everywhere
from understudy.space.collision.world import placement, pose
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Capsule
from understudy.space.model.shapes import as_object
from understudy.space.transform import translation

BY_DESIGN = {(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)}
SEED_LIST = [(0, 4), (0, 5), (1, 4), (1, 5)]


def test_links_of_the_g60_that_overlap_by_design_are_not_checked(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    found = set(detector.self_collision_pairs)
    assert not found & BY_DESIGN
    assert set(SEED_LIST) <= found
    assert detector.unproven_pairs() == ()


def test_unchecked_pairs_never_touch(arm: Chain) -> None:
    """Thousands of configurations: oracle of apart_everywhere."""
    detector = CollisionDetector(arm)
    parts = arm_parts(arm, {})
    world = assembled(arm, parts, ())
    at, marks = placement(world), scratch()
    kept = set(detector.self_collision_pairs)
    rng = np.random.default_rng(0)
    for j in range(len(parts)):
        for i in range(j):
            links = (parts[i].link, parts[j].link)
            if links in kept or links in BY_DESIGN or links[0] == links[1]:
                continue
            for q in rng.uniform(arm.lower, arm.upper, (3000, 6)):
                pose(world, q, at)
                args = (world.solids, at.placed, at.ends, i, j, np.inf, np.inf, -1, True, marks)
                assert distance(*args)[0] > 0.0


def test_no_proof_for_parts_that_can_touch(g60: Chain) -> None:
    parts = arm_parts(g60, {})
    world = assembled(g60, parts, ())
    caps = furthest(g60, world.solids, world.moving)
    base, wrist = 0, 5
    assert not apart_everywhere(
        world, base, wrist, g60.lower, g60.upper, caps, placement(world), scratch()
    )
    narrow = np.full(6, 0.01)
    assert apart_everywhere(world, base, wrist, -narrow, narrow, caps, placement(world), scratch())


def test_a_list_of_pairs_is_used_and_missing_pairs_are_reported(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    detector.set_self_collision_pairs(SEED_LIST)
    assert detector.self_collision_pairs == tuple(SEED_LIST)
    left = detector.unproven_pairs()
    assert (3, 5) in left
    assert not set(left) & set(SEED_LIST)
    detector.set_self_collision_pairs("auto")
    assert detector.unproven_pairs() == ()


def test_a_list_with_an_unknown_link_is_an_error(g60: Chain) -> None:
    with pytest.raises(ConfigError, match=r"no such link \(got 9\); allowed: 0 1 2 3 4 5"):
        CollisionDetector(g60).set_self_collision_pairs([(0, 9)])


def test_a_long_tool_can_reach_the_arm(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    detector.attach(as_object("stick", Capsule(0.01, 0.6), translation(0, 0, 0.32)))
    assert {(0, 5), (1, 5), (2, 5), (3, 5)} <= set(detector.self_collision_pairs)


def test_an_arm_without_shapes_has_no_pairs() -> None:
    assert CollisionDetector(three_parallel()).self_collision_pairs == ()
