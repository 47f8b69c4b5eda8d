"""The CollisionDetector: the tests and the checklist of the design document."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.collision.scenes import Coal, any_place, ball, crowd, with_tools

from understudy.errors import ConfigError
from understudy.space.collision.detector import FREE, CollisionDetector
from understudy.space.collision.distance import scratch
from understudy.space.collision.world import placement, pose
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import CollisionObject, ObjectType, as_object
from understudy.space.transform import inverse, translation
from understudy.units import DEG, MM

HOME = np.zeros(6)


def box(
    name: str, x: float = 0.0, y: float = 0.0, z: float = 0.0, side: float = 100 * MM
) -> CollisionObject:
    return CollisionObject(
        type=ObjectType.BOX, name=name, dimensions=(side,) * 3, transform=translation(x, y, z)
    )


# ── 10.1: the two tests of the document ─────────────────────────────────────────────────────────


def test_detects_box_box_collision() -> None:
    detector = CollisionDetector()
    detector.add_object(box("box1"))
    detector.add_object(box("box2", x=50 * MM))
    (found,) = detector.check_objects()
    assert (found.collision, found.object1_name, found.object2_name) == (True, "box1", "box2")
    assert found.penetration_depth == pytest.approx(50 * MM)
    assert found.contact_point[0] == pytest.approx(25 * MM)


def test_no_collision_when_separated() -> None:
    detector = CollisionDetector(objects=[box("box1"), box("box2", x=200 * MM)])
    assert detector.check_objects() == []


def test_adjacent_boxes_do_not_collide() -> None:
    assert CollisionDetector(objects=[box("a"), box("b", x=100 * MM)]).check_objects() == []


# ── 10.2: the checklist ─────────────────────────────────────────────────────────────────────────


def test_environment_collision(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    assert detector.check_collision(HOME) is FREE
    detector.add_object(box("block", 620 * MM, 0.0, 995 * MM))
    found = detector.check_collision(HOME)
    assert found.collision
    assert {found.object1_name, found.object2_name} <= {"wrist_1", "wrist_2", "flange", "block"}
    assert found.penetration_depth > 0.01
    assert np.linalg.norm(np.array(found.contact_point) - (0.62, 0, 0.995)) < 0.1
    assert not detector.check_collision([90 * DEG, 0, 0, 0, 0, 0]).collision
    detector.remove_object("block")
    assert not detector.check_collision(HOME).collision


def test_self_collision(g60: Chain) -> None:
    """The pose once taken for home puts the flange inside the base."""
    folded = np.array([0, -45, 90, 0, 45, 0]) * DEG
    detector = CollisionDetector(g60)
    deep = np.array([0, -120, 165, 0, 0, 0]) * DEG
    found = [detector.check_collision(q) for q in (folded, deep)]
    assert any(result.collision for result in found)
    quiet = CollisionDetector(g60, check_self_collision=False)
    assert not quiet.check_collision(deep).collision


def test_collision_visualization_has_names_point_and_depth(g60: Chain) -> None:
    detector = CollisionDetector(g60, [box("block", 0.62, 0.0, 0.995)])
    found = detector.check_collision(HOME)
    assert all(
        isinstance(value, float) for value in (*found.contact_point, found.penetration_depth)
    )
    assert found.object1_name in detector.names
    assert found.object2_name in detector.names


# ── robot, attached objects, environment ────────────────────────────────────────────────────────


def test_every_nth_point_and_the_last_of_a_trajectory_are_checked(g60: Chain) -> None:
    detector = CollisionDetector(g60, [box("block", 0.0, 0.62, 0.995)])
    turning = np.linspace(0.0, 90 * DEG, 36)[:, None] * np.eye(6)[0]
    found = detector.check_trajectory(turning)
    assert len(found) == 5
    assert [result.collision for result in found] == [False, False, False, False, True]
    assert detector.check_trajectory(turning, sample_rate=1)[-1].collision


def test_batches_and_single_checks_agree(g60: Chain) -> None:
    rng = np.random.default_rng(3)
    detector = with_tools(g60)
    crowd(detector, rng)
    Q = rng.uniform(g60.lower, g60.upper, (200, 6))
    assert detector.collides(Q).tolist() == [detector.check_collision(q).collision for q in Q]
    for q in Q[:50]:
        assert (detector.get_min_distance(q) <= 0.0) == detector.check_collision(q).collision


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_agrees_with_coal_on_random_scenes(g60: Chain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    detector = with_tools(g60)
    crowd(detector, rng)
    coal = Coal(detector)
    meshes = {f"thing{k}" for k in range(12)}
    for q in rng.uniform(g60.lower, g60.upper, (12, 6)):
        ours, truth = detector.check_collision(q), coal.contact(q)
        if truth is None and ours.collision:
            # coal does not detect a part completely inside a mesh.
            assert ours.object2_name in meshes
            assert detector.get_min_distance(q) < 0.0
        else:
            assert ours.collision == (truth is not None)
        if truth is None and not ours.collision:
            assert detector.get_min_distance(q) == pytest.approx(coal.least(q), abs=1e-6)


def test_frames_agree_with_the_chain(arm: Chain) -> None:
    """chain.links: oracle of joint_rows, oracle of carry."""
    detector = CollisionDetector(arm)
    at = placement(detector.world)
    q = np.random.default_rng(0).uniform(arm.lower, arm.upper)
    pose(detector.world, q, at)
    links = arm.links(q)
    shapes = [(b, solid) for b, body in enumerate(arm.bodies) for solid in body.collision]
    for row, ends, (b, solid) in zip(at.placed, at.ends, shapes, strict=False):
        place = np.eye(4)
        place[:3, :3], place[:3, 3] = row[:9].reshape(3, 3), row[9:]
        origin = np.array(solid.origin[:3])
        assert place[:3, 3] == pytest.approx(links[b][:3, :3] @ origin + links[b][:3, 3])
        assert isinstance(solid.geometry, Capsule | Cylinder)
        reach = solid.geometry.length / 2 * place[:3, 2]
        assert ends == pytest.approx(np.concatenate([place[:3, 3] - reach, place[:3, 3] + reach]))


def test_an_attached_tool_collides_and_a_detached_one_does_not(g60: Chain) -> None:
    detector = CollisionDetector(g60, [box("block", 0.8, 0.0, 0.995)])
    assert not detector.check_collision(HOME).collision
    detector.attach(as_object("torch", Capsule(0.02, 0.1), translation(0, 0, 0.07)))
    found = detector.check_collision(HOME)
    assert (found.object1_name, found.object2_name) == ("torch", "block")
    assert detector.detach("torch").name == "torch"
    assert not detector.check_collision(HOME).collision


def test_a_held_part_moves_with_the_flange(g60: Chain) -> None:
    detector = CollisionDetector(g60, [as_object("ball", ball(0.05), translation(0, 0.75, 0.995))])
    detector.attach(as_object("part", Box((0.1, 0.1, 0.1)), translation(0, 0, 0.1)))
    assert not detector.check_collision(HOME).collision
    assert detector.check_collision([90 * DEG, 0, 0, 0, 0, 0]).object1_name == "part"


def test_a_robot_with_another_foot_frame(g60: Chain) -> None:
    rng = np.random.default_rng(8)
    foot = any_place(rng, 2.0)
    here = CollisionDetector(g60, [box("block", 0.6, 0.0, 1.0)])
    moved = as_object("block", Box((0.1, 0.1, 0.1)), foot @ translation(0.6, 0.0, 1.0))
    there = CollisionDetector(g60, [moved], foot=foot)
    for q in rng.uniform(-0.1, 0.1, (20, 6)):
        a, b = here.check_collision(q), there.check_collision(q)
        assert a.penetration_depth == pytest.approx(b.penetration_depth)
        back = inverse(foot) @ np.append(b.contact_point, 1.0)
        assert a.contact_point == pytest.approx(back[:3]) or not a.collision
        assert here.get_min_distance(q) == pytest.approx(there.get_min_distance(q))


def test_the_foot_may_stand_on_a_table_but_not_in_it(g60: Chain) -> None:
    table = CollisionObject(
        type=ObjectType.BOX,
        name="table",
        dimensions=(2, 2, 0.1),
        transform=translation(0, 0, -0.05),
    )
    detector = CollisionDetector(g60, [table])
    assert not detector.check_collision(HOME).collision
    assert detector.get_min_distance(HOME) > 0.02
    detector.add_object(box("stool"))
    found = detector.check_collision(HOME)
    assert (found.object1_name, found.object2_name) == ("base", "stool")


def test_distance_without_pairs_is_infinite(g60: Chain) -> None:
    assert CollisionDetector(g60, check_self_collision=False).get_min_distance(HOME) == np.inf


def test_errors_suggest_the_right_name() -> None:
    detector = CollisionDetector(objects=[box("table")])
    with pytest.raises(ConfigError, match=r"unknown object .* did you mean 'table'"):
        detector.remove_object("tabel")
    with pytest.raises(ConfigError, match="name is used twice"):
        CollisionDetector(objects=[box("a"), box("a")])
    with pytest.raises(ConfigError, match=r"ball.radius: wrong size \(got 0.0\); allowed: above 0"):
        detector.add_object(CollisionObject(type=ObjectType.SPHERE, name="ball"))
    detector.clear_environment()
    assert detector.objects == ()


def test_detectors_do_not_share_working_memory(g60: Chain) -> None:
    """Two detectors do not change each other's results."""
    one = CollisionDetector(g60, [as_object("a", Sphere(0.1), translation(0.6, 0, 1.0))])
    other = CollisionDetector(g60)
    assert one.check_collision(HOME).collision
    assert not other.check_collision(HOME).collision
    assert one.check_collision(HOME).collision
    assert scratch()[0] is not scratch()[0]
