"""Pairs of links that can touch: found from the model, or given by a list."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.space.arm_models import three_parallel

from understudy.errors import ConfigError
from understudy.space.collision import self_pairs
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.pair_store import SelfPairs
from understudy.space.collision.self_pairs import apart_everywhere, bodies
from understudy.space.collision.solids import Part
from understudy.space.collision.world import arm_parts, assembled, furthest, placement, pose
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.robot import Capsule
from understudy.space.model.shapes import TriangleMesh, as_object
from understudy.space.model.urdf import read
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
    """Thousands of configurations: oracle of divide."""
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
    body = bodies(g60, arm_parts(g60, {}))
    caps = furthest(g60, body.world.solids, body.world.moving)
    base, wrist = 0, 5
    assert not apart_everywhere(body, (base, wrist), g60.lower, g60.upper, caps)
    narrow = np.full(6, 0.01)
    assert apart_everywhere(body, (base, wrist), -narrow, narrow, caps)


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


# ── meshes ──────────────────────────────────────────────────────────────────────────────────────

BOX_SIDES = np.array(
    [
        (0, 1, 3), (0, 3, 2), (4, 7, 5), (4, 6, 7), (0, 5, 1), (0, 4, 5),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ]
)  # fmt: skip


def boxes(
    *spans: tuple[tuple[float, float], tuple[float, float], tuple[float, float]],
) -> TriangleMesh:
    """A mesh of boxes, each from its lowest to its highest x, y and z."""
    corners = [[(x, y, z) for x in xs for y in ys for z in zs] for xs, ys, zs in spans]
    triangles = [BOX_SIDES + 8 * k for k in range(len(spans))]
    return TriangleMesh(np.array(corners).reshape(-1, 3), np.concatenate(triangles))


CHANNEL = boxes(
    ((-0.2, 0.2), (-0.2, 0.2), (0.0, 0.02)),
    ((-0.2, 0.2), (-0.2, -0.18), (0.0, 0.3)),
    ((-0.2, 0.2), (0.18, 0.2), (0.0, 0.3)),
)
"""Open above and at both ends along x; its convex hull is a full block."""
ROD = boxes(((-0.1, 0.1), (-0.02, 0.02), (-0.02, 0.02)))


def rod_in_a_channel(turn: float) -> tuple[Chain, dict[str, TriangleMesh]]:
    """A rod in the middle of a channel, turned about two upright axes by up to ±turn (rad)."""
    limit = f"<limit lower='{-turn}' upper='{turn}' velocity='1'/><axis xyz='0 0 1'/>"
    text = f"""<robot name='rod'>
      <link name='base'><collision><geometry><mesh filename='channel'/>
        </geometry></collision></link>
      <link name='turn'/>
      <link name='rod'><collision><geometry><mesh filename='rod'/></geometry></collision></link>
      <joint name='a' type='revolute'><parent link='base'/><child link='turn'/>{limit}
        <origin xyz='0 0 0.15'/></joint>
      <joint name='b' type='revolute'><parent link='turn'/><child link='rod'/>{limit}</joint>
    </robot>"""
    return chain(read(text)), {"channel": CHANNEL, "rod": ROD}


def test_meshes_are_proven_apart_although_their_hulls_overlap() -> None:
    arm, meshes = rod_in_a_channel(turn=0.4)
    detector = CollisionDetector(arm, meshes=meshes)
    assert detector.self_collision_pairs == ()
    assert detector.overlapping_pairs() == ()


def test_a_hull_never_hides_a_contact_of_meshes() -> None:
    """The rod of 200 mm is turned across the channel of 360 mm: only its corners come near."""
    arm, meshes = rod_in_a_channel(turn=3.0)
    long = boxes(((-0.185, 0.185), (-0.02, 0.02), (-0.02, 0.02)))
    assert CollisionDetector(arm, meshes=meshes).self_collision_pairs == ()
    detector = CollisionDetector(arm, meshes={**meshes, "rod": long})
    assert detector.self_collision_pairs == ((0, 2),)


def test_samples_touch_and_part_as_full_distances_say() -> None:
    """The distances without hulls and without an upper bound: oracle of look."""
    arm, meshes = rod_in_a_channel(turn=3.0)
    long = boxes(((-0.185, 0.185), (-0.02, 0.02), (-0.02, 0.02)))
    body = bodies(arm, arm_parts(arm, {**meshes, "rod": long}))
    Q = np.random.default_rng(5).uniform(arm.lower, arm.upper, (200, 2))
    pairs, marks = np.array([(0, 1)]), scratch()
    found = set()
    for q in Q:
        seen = np.zeros(1, dtype=np.int64)
        self_pairs.look(body, q[None], pairs, self_pairs.BOTH, marks, seen)
        pose(body.world, q, body.at)
        at = (body.world.solids, body.at.placed, body.at.ends, 0, 1, np.inf, np.inf, -1, True)
        d, _ = distance(*at, marks)
        near = 0 if d <= self_pairs.BY_DESIGN else self_pairs.PARTED
        assert seen[0] == (self_pairs.TOUCHED if d <= 0.0 else near)
        found.add(int(seen[0]))
    assert {self_pairs.TOUCHED, self_pairs.PARTED} <= found


def test_pairs_that_come_within_a_millimetre_are_checked() -> None:
    """The corners of this rod pass 0.5 mm from the walls: no sample shows a contact."""
    arm, meshes = rod_in_a_channel(turn=3.0)
    half = float(np.sqrt(0.1795**2 - 0.02**2))
    near = boxes(((-half, half), (-0.02, 0.02), (-0.02, 0.02)))
    assert CollisionDetector(arm, meshes={**meshes, "rod": near}).touchable_pairs() == ((0, 2),)


def test_parts_that_always_overlap_are_named() -> None:
    arm, meshes = rod_in_a_channel(turn=0.4)
    block = boxes(((-0.2, 0.2), (-0.2, 0.2), (0.0, 0.3)))
    detector = CollisionDetector(arm, meshes={**meshes, "channel": block})
    assert detector.self_collision_pairs == ()
    assert detector.overlapping_pairs() == ((0, 2),)


def test_an_arm_is_analysed_once_for_all_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    arm, meshes = rod_in_a_channel(turn=0.41)
    runs: list[int] = []
    analysed = self_pairs.analysed

    def counted(chain: Chain, parts: Sequence[Part]) -> SelfPairs:
        runs.append(len(parts))
        return analysed(chain, parts)

    monkeypatch.setattr(self_pairs, "analysed", counted)
    detector = CollisionDetector(arm, meshes=meshes)
    detector.touchable_pairs()
    for length in (0.1, 0.2):
        other = CollisionDetector(arm, meshes=meshes)
        other.attach(as_object("stick", Capsule(0.01, length), translation(0, 0, 0.1)))
        other.touchable_pairs()
    assert runs == [2]


def test_a_list_of_pairs_is_used_without_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    arm, meshes = rod_in_a_channel(turn=0.42)

    def analysis(*given: object) -> SelfPairs:
        raise AssertionError("analysed")

    monkeypatch.setattr(self_pairs, "analysed", analysis)
    detector = CollisionDetector(arm, meshes=meshes)
    detector.set_self_collision_pairs([(0, 2)])
    assert detector.self_collision_pairs == ((0, 2),)
    assert detector.unproven_pairs() == ()
    assert not detector.check_collision(np.zeros(2)).collision
    detector.set_self_collision_pairs([])
    assert detector.unproven_pairs() == ((0, 2),)


def test_a_digest_covers_meshes_limits_and_places() -> None:
    arm, meshes = rod_in_a_channel(turn=0.4)
    wider, _ = rod_in_a_channel(turn=0.5)
    key = self_pairs.digest(arm, arm_parts(arm, meshes))
    assert key == self_pairs.digest(arm, arm_parts(arm, meshes))
    assert key != self_pairs.digest(wider, arm_parts(wider, meshes))
    assert key != self_pairs.digest(arm, arm_parts(arm, {**meshes, "rod": CHANNEL}))


def test_progress_of_an_analysis_ends_below_one_and_never_falls() -> None:
    arm, meshes = rod_in_a_channel(turn=0.4)
    shares: list[float] = []
    self_pairs.analysed(arm, arm_parts(arm, meshes), shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert 0.5 <= shares[-1] < 1.0


def test_carried_objects_are_analysed_once_for_each_place(
    g60: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another place of less than a micrometre counts as the same: every proof keeps 1 mm."""
    monkeypatch.setattr(self_pairs, "_carried", {})
    analysed: list[Part] = []
    analyse = self_pairs._links_touched

    def counted(chain: Chain, arm: Sequence[Part], part: Part) -> object:
        analysed.append(part)
        return analyse(chain, arm, part)

    monkeypatch.setattr(self_pairs, "_links_touched", counted)

    def touchable(*away: float) -> tuple[tuple[int, int], ...]:
        detector = CollisionDetector(g60)
        for number, z in enumerate(away):
            detector.attach(as_object(f"bar {number}", Capsule(0.02, 0.3), translation(0, 0, z)))
        return detector.touchable_pairs()

    first = touchable(0.1, 0.2)
    assert len(analysed) == 2
    assert touchable(0.1 + 1e-9, 0.2) == first
    assert len(analysed) == 2
    touchable(0.101)
    assert len(analysed) == 3
    monkeypatch.setattr(self_pairs, "_carried", {})
    assert touchable(0.2, 0.1) == first
