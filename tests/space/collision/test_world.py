"""A packed world: unpacking gives the same arrays, and checks give the same results."""

import numpy as np
import pytest
from numpy.typing import ArrayLike
from tests.space.collision.scenes import ball, crowd, with_tools

from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import scratch
from understudy.space.collision.solids import FAR
from understudy.space.collision.world import (
    NEAR,
    boxes_at,
    contact_in,
    contacts,
    enclose,
    enclosures,
    least_distance,
    packed,
    placement,
    pose,
    unpacked,
)
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box
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
    out, around, at, aside = unpacked(row.wholes)
    found = (*out.solids, *out[1:], *around, *at, *aside)
    wanted = (*world.solids, *world[1:], *enclosures(world), *placement(world), *scratch())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_arrays_are_views_of_the_packed_ones(g60: Chain) -> None:
    row = packed(crowded(g60).world)
    floats = (*row.at, row.world.boxes, row.q)
    assert all(np.shares_memory(array, row.numbers) for array in floats)
    assert np.shares_memory(row.world.partners, row.wholes)


def test_boxes_enclose_their_shapes(g60: Chain) -> None:
    """carry: oracle of enclose. gap_to_box: oracle of boxes_at."""
    world = crowded(g60).world
    row, sizes = packed(world), world.solids.sizes
    at, around = row.at, row.around
    rng = np.random.default_rng(4)
    counts = []
    for q in rng.uniform(g60.lower, g60.upper, (50, 6)):
        pose(world, q, at)
        ends = at.ends.copy()
        enclose(world.solids.traits, sizes, at.frames, around, at.ends)
        assert at.ends[: world.moving] == pytest.approx(ends[: world.moving], abs=1e-12)
        points = ends[: world.moving].reshape(-1, 2, 3)
        low, high = (
            points.min(axis=1) - sizes[: len(points), [FAR]],
            points.max(axis=1) + sizes[: len(points), [FAR]],
        )
        assert around.boxes == pytest.approx(np.hstack([(low + high) / 2, (high - low) / 2]))
        for i in range(world.foot, world.moving):
            apart = np.abs(around.boxes[i, :3] - world.boxes[:, :3])
            near = (apart < around.boxes[i, 3:] + world.boxes[:, 3:] + NEAR).all(axis=1)
            counts.append(boxes_at(around.boxes, i, around.columns))
            assert counts[-1] == near.sum()
    assert 0 < sum(counts) < len(counts) * len(world.boxes)


def test_a_contact_is_found_where_the_smallest_distance_is_none(g60: Chain) -> None:
    """least_distance: oracle of contact_at, oracle of contact_in, oracle of contacts."""
    detector = crowded(g60)
    detector.attach(as_object("plate", Box((0.1, 0.15, 0.002)), translation(0, 0, 0.2)))
    world = detector.world
    row, at = packed(world), placement(world)
    rng = np.random.default_rng(5)
    Q = rng.uniform(g60.lower, g60.upper, (400, 6))
    out = np.zeros(len(Q), dtype=bool)
    contacts(row.wholes, Q, out)
    for q, hit in zip(Q, out, strict=True):
        row.q[:] = q
        found = contact_in(row.wholes)
        pose(world, q, at)
        least, *_ = least_distance(world, at, np.inf, -np.inf, scratch())
        assert hit == (found >= 0) == (least <= 0.0) == detector.has_contact(q)
        if hit:
            assert np.array_equal(row.at.placed, at.placed)
            assert detector.distance_between(q, *divmod(found, len(world.solids.traits))) <= 0.0
    assert 50 < out.sum() < 350


def test_an_empty_world_can_be_packed() -> None:
    assert not CollisionDetector().check_collision([]).collision
    assert not CollisionDetector().has_contact([])


@pytest.mark.parametrize("q", [np.zeros(1), np.zeros((1, 6)), [0.0] * 5, 0.0, np.full(6, np.nan)])
def test_a_single_check_refuses_what_is_no_configuration(g60: Chain, q: ArrayLike) -> None:
    with pytest.raises(ValueError, match="joints"):
        crowded(g60).has_contact(q)
