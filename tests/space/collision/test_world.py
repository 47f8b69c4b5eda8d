"""A packed world: unpacking gives the same arrays, and checks give the same results."""

import numpy as np
from tests.space.collision.scenes import ball, crowd, with_tools

from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import scratch
from understudy.space.collision.world import contact_at, contact_in, packed, placement, unpacked
from understudy.space.kinematics.chain import Chain
from understudy.space.model.shapes import as_object
from understudy.space.transform import translation


def crowded(arm: Chain) -> CollisionDetector:
    detector = with_tools(arm)
    crowd(detector, np.random.default_rng(3))
    detector.add_object(as_object("ball", ball(), translation(0.6, 0.4, 0.3)))
    return detector


def test_unpacking_returns_the_packed_arrays(g60: Chain) -> None:
    """oracle of unpacked: what was put in."""
    world = crowded(g60).world
    row = packed(world)
    out, at, aside = unpacked(*row.arrays)
    found = (*out.solids, *out[1:], *at, *aside)
    wanted = (*world.solids, *world[1:], *placement(world), *scratch())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_arrays_are_views_of_the_packed_ones(g60: Chain) -> None:
    row = packed(crowded(g60).world)
    numbers, wholes, points, *_ = row.arrays
    floats = (*row.at, row.world.boxes, row.q)
    assert all(np.shares_memory(array, numbers) for array in floats)
    assert np.shares_memory(row.world.partners, wholes)
    assert np.shares_memory(row.world.solids.points, points)


def test_packed_and_plain_worlds_give_the_same_contacts(g60: Chain) -> None:
    world = crowded(g60).world
    row, at, aside = packed(world), placement(world), scratch()
    rng = np.random.default_rng(5)
    for q in rng.uniform(g60.lower, g60.upper, (300, 6)):
        row.q[:] = q
        found = contact_in(*row.arrays)
        i, j = contact_at(world, q, at, aside)
        assert found == (-1 if i < 0 else i * len(world.solids.traits) + j)


def test_an_empty_world_can_be_packed() -> None:
    assert not CollisionDetector().check_collision([]).collision
