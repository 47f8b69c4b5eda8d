"""Two arms, compared with one arm among the shapes of the other as objects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.world import arm_parts
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Mesh, Solid
from understudy.space.model.shapes import Shape, as_object
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix

FOOT = matrix(Pose(1.1, 0.2, 0.1, 0.0, 0.0, np.pi))
shares = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6)


def shape_of(solid: Solid) -> Shape:
    assert not isinstance(solid.geometry, Mesh)
    return solid.geometry


def placed_arm(chain: Chain, foot: Array) -> PlacedArm:
    return PlacedArm(chain, foot, arm_parts(chain, {}), chain.velocity)


def among(chain: Chain, foot: Array, other: Chain, standing: Array, r: Array) -> CollisionDetector:
    """A detector with one arm, and the shapes of the other arm as objects."""
    things = [
        as_object(f"{body.name}.{n}", shape_of(solid), standing @ link @ matrix(solid.origin))
        for link, body in zip(other.links(r), other.bodies, strict=True)
        for n, solid in enumerate(body.collision)
    ]
    return CollisionDetector(chain, things, foot=foot, check_self_collision=False)


def spread(chain: Chain, share: list[float]) -> Array:
    return np.asarray(chain.lower + np.array(share) * (chain.upper - chain.lower))


@settings(max_examples=40, deadline=None)
@given(shares, shares)
def test_distance_equals_that_of_one_arm_to_the_shapes_of_the_other(
    g60: Chain, kr6: Chain, one: list[float], other: list[float]
) -> None:
    q, r = spread(g60, one), spread(kr6, other)
    between = ArmPair(placed_arm(g60, np.eye(4)), placed_arm(kr6, FOOT))
    here = among(g60, np.eye(4), kr6, FOOT, r).get_min_distance(q)
    there = among(kr6, FOOT, g60, np.eye(4), q).get_min_distance(r)
    apart = between.distance(q, r)
    if min(here, there) > 0.0:
        assert apart == pytest.approx(min(here, there), abs=1e-6)
        assert between.contacts(q, r) == []
    else:
        assert apart <= 1e-9
        assert between.contacts(q, r)


@settings(max_examples=40, deadline=None)
@given(shares, shares, shares, shares)
def test_arms_do_not_touch_within_the_safe_time(
    g60: Chain, one: list[float], other: list[float], way: list[float], way2: list[float]
) -> None:
    """At full speed in any direction, the arms stay apart for the safe time."""
    between = ArmPair(placed_arm(g60, np.eye(4)), placed_arm(g60, FOOT))
    q, r = spread(g60, one), spread(g60, other)
    apart = between.distance(q, r)
    if apart <= 0.0:
        return
    safe = min(between.safe_time(apart), 10.0)
    for share in (0.3, 0.7, 0.999):
        dq, dr = ((2.0 * np.array(w) - 1.0) * g60.velocity * safe * share for w in (way, way2))
        assert between.distance(q + dq, r + dr) > 0.0
