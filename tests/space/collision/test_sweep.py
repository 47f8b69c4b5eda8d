"""Certified sweeps: a proven line has no contact, a line with verdict contact has one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.arm_models import built
from tests.space.collision.oracles import distances_from_axes as plain_distances
from tests.space.collision.oracles import moved_at_most as plain_bound
from tests.space.collision.scenes import (
    Coal,
    any_place,
    any_shape,
    ball,
    crowd,
    pair,
    sheet,
    tube,
    with_tools,
)
from tests.space.uncompiled import uncompiled

from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.solids import BODY, FAR, HALF_X, HALF_Z, SKIN
from understudy.space.collision.sweep import (
    CREEP,
    EPS,
    ContactSpot,
    LineResult,
    Sweeper,
    Verdict,
    _sweep_path,
    apart_along,
    body_motions,
    certified_until,
    directed_until,
    follow,
    greatest_bends,
    greatest_slopes,
    near,
    straight,
    sweep,
)
from understudy.space.collision.world import (
    distances_from_axes,
    furthest,
    moved_at_most,
    placement,
    pose,
)
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Shape, as_object
from understudy.space.transform import Array, rotation_about, translation
from understudy.units import DEG, MM

HOME = np.zeros(6)
EARLY = 1e-6
"""Distance (m) at which two shapes may count as touching: a search that begins with the simplex of
the place before takes a corner on a face for one inside. Seen: 0.4 µm in one of 70,000 contacts."""
seeds = st.integers(0, 2**32 - 1)


def samples(shape: Array, length: Array, count: int) -> Array:
    """Configurations spread evenly over all pieces."""
    each = max(count // len(length), 2)
    rows = []
    for piece, long in zip(shape, length, strict=True):
        powers = np.linspace(0.0, long, each)[:, None] ** np.arange(len(piece))
        rows.append(powers @ piece)
    return np.concatenate(rows)


def cubic(
    rng: np.random.Generator, start: Array, end: Array, pieces: int = 6
) -> tuple[Array, Array]:
    """A smooth path through random knots: pieces of degree 3."""
    knots = start + np.linspace(0.0, 1.0, pieces + 1)[:, None] * (end - start)
    knots[1:-1] += rng.normal(scale=0.05, size=(pieces - 1, 6))
    slopes = np.gradient(knots, axis=0) * pieces
    h = 1.0 / pieces
    q0, m0, m1 = knots[:-1], slopes[:-1], slopes[1:]
    chord = np.diff(knots, axis=0) / h
    shape = np.stack([q0, m0, (3 * chord - 2 * m0 - m1) / h, (m0 + m1 - 2 * chord) / h**2], axis=1)
    return shape, np.full(pieces, h)


def any_path(rng: np.random.Generator, arm: Chain) -> tuple[Array, Array]:
    start, end = rng.uniform(arm.lower, arm.upper, (2, 6))
    end = start + (end - start) * rng.uniform(0.05, 0.6)
    return straight(start, end) if rng.random() < 0.6 else cubic(rng, start, end)


def judge(
    detector: CollisionDetector, coal: Coal, rng: np.random.Generator, arm: Chain, *, looks: int
) -> Verdict:
    """One random segment, certified, then sampled densely: oracle of certify."""
    shape, length = any_path(rng, arm)
    (found,) = sweep_with(detector).sweep(shape, length)
    dense = samples(shape, length, looks)
    hits = detector.collides(dense)
    first = sweep_with(detector).first_contact(shape, length)
    assert (first is None) == (found.verdict is not Verdict.CONTACT)
    if found.verdict is Verdict.PROVEN:
        assert not hits.any()
        assert found.clearance >= EPS
        chosen = rng.choice(len(dense), 2)
        for q in dense[chosen]:
            assert coal.contact(q) is None
            assert coal.least(q) >= found.clearance - 1e-6
    elif found.verdict is Verdict.CONTACT:
        spot = found.spot
        assert spot is not None
        assert spot.distance <= 0.0
        assert detector.get_min_distance(spot.q) <= EARLY
        assert first is not None
        assert first.pair == spot.pair or first.s == pytest.approx(spot.s, abs=1e-3)
        assert detector.get_min_distance(first.q) <= EARLY
        assert detector.get_min_distance(first.q) > -3 * CREEP or first.s == 0.0
        before = samples(shape[: spot.piece + 1], np.append(length[: spot.piece], spot.s), looks)
        early = before[detector.collides(before)]
        assert all(detector.get_min_distance(q) > -3 * CREEP for q in early) or spot.s == 0.0
    else:
        assert min(detector.get_min_distance(q) for q in dense) < 20 * EPS
    return found.verdict


_sweepers: dict[int, tuple[CollisionDetector, Sweeper]] = {}


def sweep_with(detector: CollisionDetector) -> Sweeper:
    if id(detector) not in _sweepers:
        _sweepers.clear()
        _sweepers[id(detector)] = detector, Sweeper(detector)
    return _sweepers[id(detector)][1]


def soundness(arm: Chain, scenes: int, segments: int, looks: int) -> dict[Verdict, int]:
    counts = dict.fromkeys(Verdict, 0)
    for seed in range(scenes):
        rng = np.random.default_rng(seed)
        detector = with_tools(arm)
        crowd(detector, rng)
        if seed % 3 == 0:
            detector.attach(as_object("part", ball(0.06, 1), translation(0, 0.05, 0.15)))
        if seed % 3 == 1:
            detector.attach(as_object("plate", Box((0.1, 0.15, 0.002)), translation(0, 0, 0.2)))
        coal = Coal(detector)
        for _ in range(segments):
            counts[judge(detector, coal, rng, arm, looks=looks)] += 1
    return counts


def test_no_certified_segment_contains_a_contact(arm: Chain) -> None:
    counts = soundness(arm, scenes=6, segments=60, looks=200)
    assert counts[Verdict.PROVEN] > 100
    assert counts[Verdict.CONTACT] > 100


@pytest.mark.soak
def test_no_certified_segment_contains_a_contact_in_100_000(arm: Chain) -> None:
    counts = soundness(arm, scenes=200, segments=500, looks=400)
    assert sum(counts.values()) == 100_000
    assert counts[Verdict.UNDECIDED] < 500


# ── thin, near, inside ──────────────────────────────────────────────────────────────────────────


def spot_of(found: LineResult) -> ContactSpot:
    assert found.spot is not None
    return found.spot


def turning(by: float = 90 * DEG) -> tuple[Array, Array]:
    return straight(HOME, by * np.eye(6)[0])


@pytest.mark.parametrize("turn", [15 * DEG, 47.3 * DEG, 80 * DEG])
@pytest.mark.parametrize("thing", ["sheet of metal", "wire", "two triangles"])
def test_thin_objects_are_never_missed(g60: Chain, thing: str, turn: float) -> None:
    """0.2 mm of sheet or 1 mm of wire in the path of a joint that rotates by half a turn."""
    things: dict[str, Shape] = {
        "sheet of metal": Box((0.3, 0.0002, 0.3)),
        "wire": Cylinder(0.0005, 0.6),
        "two triangles": sheet(0.3, 0.3),
    }
    place = np.eye(4)
    if thing == "two triangles":
        place[:3, :3] = rotation_about((1, 0, 0), 90 * DEG)
    place[:3, 3] = 0.6, 0.0, 0.995
    swing = np.eye(4)
    swing[:3, :3] = rotation_about((0, 0, 1), turn)
    detector = CollisionDetector(g60, [as_object(thing, things[thing], swing @ place)])
    (found,) = sweep(detector, *turning())
    assert found.verdict is Verdict.CONTACT
    spot = spot_of(found)
    assert spot.object2_name == thing
    assert 0.0 < spot.s < turn
    assert spot.depth > 0.0


def test_a_wire_passed_closely_is_proven_clear(g60: Chain) -> None:
    """A wire a millimetre above the arm: no contact, and the proven clearance is below 1 mm."""
    height = 400 * MM + 560 * MM + 35 * MM + 65 * MM
    wire = Cylinder(0.0005, 0.6)
    place = translation(0.0, 0.0, height + 0.0005 + 0.001)
    place[:3, :3] = rotation_about((0, 1, 0), 90 * DEG)
    detector = CollisionDetector(g60, [as_object("wire", wire, place)])
    detector.set_self_collision_pairs([])
    shape, length = turning()
    least = min(detector.get_min_distance(q) for q in samples(shape, length, 500))
    (found,) = sweep(detector, shape, length)
    assert 0.0 < least < 2.0 * MM
    assert found.verdict is Verdict.PROVEN
    assert 0.4 * least <= found.clearance <= least


def test_the_verdict_within_eps_is_undecided(g60: Chain) -> None:
    """The flange passes a ball at 0.05 mm, again at 0.2 mm."""
    flange_end = 0.04
    for gap, wanted in ((0.05 * MM, Verdict.UNDECIDED), (0.2 * MM, Verdict.PROVEN)):
        away = 0.62 - 0.05 + 0.01 + flange_end + 0.1 + gap
        things = [as_object("ball", Sphere(0.1), translation(away, 0, 0.995))]
        detector = CollisionDetector(g60, things)
        (found,) = sweep(detector, *straight(-10 * DEG * np.eye(6)[0], 10 * DEG * np.eye(6)[0]))
        assert found.verdict is wanted
        assert found.proven is (wanted is Verdict.PROVEN)
        if wanted is Verdict.UNDECIDED:
            assert 0.0 <= spot_of(found).distance < 1.1 * EPS


def test_a_close_pair_affects_only_its_own_line(g60: Chain) -> None:
    """The flange passes a ball at 0.05 mm on the middle one of five lines, or rests there."""
    away = 0.62 - 0.05 + 0.01 + 0.04 + 0.1 + 0.05 * MM
    detector = CollisionDetector(g60, [as_object("ball", Sphere(0.1), translation(away, 0, 0.995))])
    J1 = np.eye(6)[0]
    ways = [straight(a * DEG * J1, b * DEG * J1) for a, b in pairwise((-20, -9, -3, 3, 9, 20))]
    shape, length = (np.concatenate(parts) for parts in zip(*ways, strict=True))
    found = sweep(detector, shape, length, lines=range(5))
    assert [line.proven for line in found] == [True, True, False, True, True]
    assert all(line.clearance >= EPS for line in found if line.proven)

    still = np.stack([HOME, HOME])[None]
    ways = [straight(-9 * DEG * J1, HOME), (still, np.zeros(1)), straight(HOME, 9 * DEG * J1)]
    shape, length = (np.concatenate(parts) for parts in zip(*ways, strict=True))
    found = sweep(detector, shape, length, lines=[3, 4, 7])
    assert [line.verdict for line in found] == [Verdict.UNDECIDED] * 3
    assert [line.line for line in found] == [3, 4, 7]


def test_a_larger_clearance_can_be_requested(g60: Chain) -> None:
    away = 0.62 - 0.05 + 0.01 + 0.04 + 0.1 + 0.005
    detector = CollisionDetector(g60, [as_object("ball", Sphere(0.1), translation(away, 0, 0.995))])
    way = straight(-10 * DEG * np.eye(6)[0], 10 * DEG * np.eye(6)[0])
    assert sweep(detector, *way, clearance=0.0045)[0].proven
    found = sweep(detector, *way, clearance=0.0055)[0]
    assert found.verdict is Verdict.UNDECIDED
    assert spot_of(found).distance == pytest.approx(0.005, abs=0.0006)


def test_a_part_that_starts_inside_a_mesh_is_a_contact(g60: Chain) -> None:
    detector = CollisionDetector(g60, [as_object("hall", ball(3.0, 2), np.eye(4))])
    (found,) = sweep(detector, *turning())
    assert found.verdict is Verdict.CONTACT
    assert spot_of(found).s == 0.0


def test_self_collision_is_swept_too(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    folded = np.array([0, -120, 165, 0, 0, 0]) * DEG
    (found,) = sweep(detector, *straight(HOME, folded))
    assert found.verdict is Verdict.CONTACT
    assert spot_of(found).self_collision


def test_a_contact_of_the_foot_is_a_contact_of_every_line(g60: Chain) -> None:
    detector = CollisionDetector(g60, [as_object("stool", Box((0.1, 0.1, 0.1)), np.eye(4))])
    shape, length = turning()
    found = sweep(detector, np.repeat(shape, 2, axis=0), np.repeat(length, 2), lines=[1, 2])
    assert [line.verdict for line in found] == [Verdict.CONTACT] * 2
    assert spot_of(found[0]).object2_name == "stool"


# ── lines ───────────────────────────────────────────────────────────────────────────────────────


def there_and_back(stops: int) -> tuple[Array, Array]:
    """J1 to 60° in steps and back, a line each."""
    angles = np.concatenate([np.linspace(0, 60, stops), np.linspace(60, 0, stops)[1:]]) * DEG
    ways = [straight(a * np.eye(6)[0], b * np.eye(6)[0]) for a, b in pairwise(angles)]
    return np.concatenate([shape for shape, _ in ways]), np.concatenate([s for _, s in ways])


def test_every_line_has_its_own_verdict(g60: Chain) -> None:
    block = as_object("block", Box((0.1, 0.1, 0.1)), translation(0.31, 0.537, 0.995))
    detector = CollisionDetector(g60, [block])
    shape, length = there_and_back(7)
    lines = np.arange(10, 10 + len(length))
    found = sweep(detector, shape, length, lines=lines)
    assert [line.line for line in found] == lines.tolist()
    hits = [
        detector.collides(samples(shape[k : k + 1], length[k : k + 1], 400)).any()
        for k in range(len(length))
    ]
    assert [line.verdict is Verdict.CONTACT for line in found] == hits
    assert any(hits)
    assert not all(hits)


@settings(max_examples=10)
@given(seed=seeds, cuts=st.integers(2, 12))
def test_cutting_a_path_into_pieces_changes_no_verdict(g60: Chain, seed: int, cuts: int) -> None:
    rng = np.random.default_rng(seed)
    detector = with_tools(g60)
    crowd(detector, rng, 6)
    start, end = rng.uniform(g60.lower, g60.upper, (2, 6))
    shape, length = straight(start, start + 0.3 * (end - start))
    (whole,) = sweep(detector, shape, length)
    marks = np.sort(np.concatenate([[0.0, length[0]], rng.uniform(0, length[0], cuts)]))
    pieces = np.stack([np.stack([shape[0, 0] + m * shape[0, 1], shape[0, 1]]) for m in marks[:-1]])
    (cut,) = sweep(detector, pieces, np.diff(marks))
    assert cut.verdict is whole.verdict
    if whole.spot is not None:
        spot = spot_of(cut)
        place = marks[spot.piece] + spot.s
        assert place == pytest.approx(whole.spot.s, abs=1e-3)


def test_dwells_are_checked(g60: Chain) -> None:
    block = as_object("block", Box((0.1, 0.1, 0.1)), translation(0.62, 0.0, 0.995))
    still = np.stack([HOME, HOME])[None]
    assert sweep(CollisionDetector(g60, [block]), still, [0.0])[0].verdict is Verdict.CONTACT
    assert sweep(CollisionDetector(g60), still, [0.0])[0].proven
    assert sweep(CollisionDetector(g60), np.zeros((0, 2, 6)), []) == ()
    # A dwell in a collision is a contact, too.
    shape = np.concatenate([straight(0.1 * np.eye(6)[0], HOME)[0], still, turning()[0]])
    found = sweep(CollisionDetector(g60, [block]), shape, [0.1, 0.0, 1.5], lines=[0, 1, 2])
    assert [line.verdict for line in found] == [Verdict.CONTACT] * 3


def test_distant_lines_need_few_configurations(g60: Chain) -> None:
    """A thousand short lines far from everything need a handful of configurations."""
    detector = CollisionDetector(g60, [as_object("far", Sphere(0.1), translation(5, 0, 0))])
    detector.set_self_collision_pairs([])
    sweeper = Sweeper(detector)
    shape, length = there_and_back(501)
    found = sweeper.sweep(shape, length, lines=np.arange(1000))
    assert all(line.proven and line.clearance > 1.0 for line in found)
    assert sweeper.configurations < 20


def test_a_search_for_contacts_needs_few_configurations_beside_a_wall(g60: Chain) -> None:
    """No tight clearance is proven: the steps are as long as the gap, not a tenth of it."""
    path = straight(HOME, np.array([1.5, 0, 0, 0, 0, 0]))

    def under(height: float) -> Sweeper:
        ceiling = as_object("ceiling", Box((4.0, 4.0, 0.1)), translation(0, 0, height))
        detector = CollisionDetector(g60, [ceiling])
        detector.set_self_collision_pairs([])
        return Sweeper(detector)

    (far,) = under(3.0).sweep(*path)
    sweeper = under(3.0 - far.seen + 1e-3)
    (found,) = sweeper.sweep(*path)
    assert found.proven
    assert found.seen == pytest.approx(1e-3, abs=1e-5)
    measured = sweeper.configurations
    assert sweeper.first_contact(*path) is None
    assert sweeper.configurations - measured < measured < 40


def test_added_objects_are_checked_from_the_next_sweep_on(g60: Chain) -> None:
    detector = CollisionDetector(g60)
    sweeper = Sweeper(detector)
    assert sweeper.sweep(*turning())[0].proven
    block = as_object("block", Box((0.1, 0.1, 0.1)), translation(0.31, 0.537, 0.995))
    detector.add_object(block)
    assert spot_of(sweeper.sweep(*turning())[0]).object2_name == "block"
    detector.remove_object("block")
    assert sweeper.sweep(*turning())[0].proven


def test_an_arm_without_objects_has_infinite_clearance(g60: Chain) -> None:
    quiet = CollisionDetector(g60, check_self_collision=False)
    (found,) = sweep(quiet, *turning())
    assert found.proven
    assert found.clearance == np.inf


def test_all_contacts_of_a_path_are_listed_in_order(g60: Chain) -> None:
    """A swing past two posts: the arm through the near one first, then through the far one."""
    posts = [
        as_object(name, Cylinder(0.02, 2.0), translation(0.6 * np.cos(a), 0.6 * np.sin(a), 1.0))
        for name, a in (("near", 20 * DEG), ("far", 50 * DEG))
    ]
    sweeper = Sweeper(CollisionDetector(g60, posts))
    end = np.array([80.0, 0, 0, 0, 0, 0]) * DEG
    path = straight(HOME, end)
    found = sweeper.contacts(*path, most=50)
    pairs = [(spot.object1_name, spot.object2_name) for spot in found]
    assert len(set(pairs)) == len(pairs)
    assert [spot.s for spot in found] == sorted(spot.s for spot in found)
    near, far = ({a for a, b in pairs if b == name} for name in ("near", "far"))
    assert near == far != set()
    assert len(sweeper.contacts(*path, most=2)) == 2
    (first, *rest) = found
    assert sweeper.contacts(*path, most=50, known=first) == found
    assert rest


def test_the_depth_of_a_contact_is_that_of_the_rest_of_the_line(g60: Chain) -> None:
    block = as_object("block", Box((0.1, 0.1, 0.1)), translation(0.31, 0.537, 0.995))
    detector = CollisionDetector(g60, [block])
    (found,) = sweep(detector, *turning())
    spot = spot_of(found)
    assert spot.depth > 10 * MM
    assert abs(spot.distance) < 0.1 * MM


# ── the bound ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=20)
@given(seed=seeds)
def test_no_shape_moves_further_than_its_bound(arm: Chain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    detector = with_tools(arm)
    world = detector.world
    caps = furthest(arm, world.solids, world.moving)
    at, radii = placement(world), np.zeros((world.moving, 6))
    start = rng.uniform(arm.lower, arm.upper)
    end = np.clip(
        start + rng.normal(scale=rng.choice([0.01, 0.3, 2.0]), size=6), arm.lower, arm.upper
    )
    way = np.abs(end - start)
    pose(world, start, at)
    before = at.ends.copy()
    rest = {}
    for i in range(world.foot, world.moving):
        body = int(world.solids.traits[i, BODY])
        around = world.solids.sizes[i, FAR]
        distances_from_axes(at.frames, at.ends, world.slides, around, i, body, radii)
        axes = arm.axes_of(start[None])[0, 1 : body + 1]
        assert radii[i, :body] == pytest.approx(
            plain_distances(axes, at.ends[i].reshape(2, 3), around)
        )
        assert (radii[i, :body] <= caps[i, :body] + 1e-9).all()
        bound = moved_at_most(radii, caps, world.slides, i, 0, body, way)
        plain = plain_bound(radii[i, :body], caps[i, :body], world.slides, way[:body])
        assert bound == pytest.approx(plain)
        rest[i] = bound
    for share in np.linspace(0.0, 1.0, 20):
        pose(world, start + share * (end - start), at)
        for i, bound in rest.items():
            steps = np.linalg.norm((at.ends[i] - before[i]).reshape(2, 3), axis=1)
            assert steps.max() <= bound + 1e-9


@settings(max_examples=20)
@given(seed=seeds)
def test_a_certificate_ends_where_its_budget_is_used(g60: Chain, seed: int) -> None:
    """Small steps along the path: oracle of certified_until."""
    rng = np.random.default_rng(seed)
    detector = with_tools(g60)
    sweeper = Sweeper(detector)
    world, certificates = detector.world, sweeper._certificates
    start, end = rng.uniform(g60.lower, g60.upper, (2, 6))
    shape, length = cubic(rng, start, end, 8)
    path = _sweep_path(shape, length, np.zeros(8, dtype=np.int64), None)
    piece = int(rng.integers(0, 6))
    s = path.start[piece] + rng.uniform(0.0, length[piece])
    i, at = world.moving - 1, placement(world)
    x = s - path.start[piece]
    pose(world, x ** np.arange(4) @ shape[piece], at)
    around = world.solids.sizes[i, FAR]
    distances_from_axes(at.frames, at.ends, world.slides, around, i, 6, certificates.radii)
    certificates.now[:] = path.run[piece] + path.slopes[piece] * x

    def moved(to: float) -> float:
        p = min(int(np.searchsorted(path.start, to, side="right")) - 1, 7)
        way = path.run[p] + path.slopes[p] * (to - path.start[p]) - certificates.now
        return moved_at_most(certificates.radii, certificates.caps, world.slides, i, 0, 6, way)

    budget = rng.uniform(0.001, 0.9) * moved(path.start[-1])
    found = uncompiled(certified_until)(
        path.start, path.slopes, path.run, certificates.radii, certificates.caps, world.slides,
        certificates.now, certificates.travel, i, 0, 6, piece, s, budget,
    )  # fmt: skip
    assert s < found < path.start[-1]
    assert moved(found) <= budget * (1 + 1e-9)
    assert moved(found) >= 0.3 * budget


def sliding_arm() -> Chain:
    """Revolute and prismatic joints, with axes in all directions."""
    axes = [
        ((0, 0, 0.1), (0, 0, 1)),
        ((0.1, 0, 0.4), (0, 1, 0)),
        ((0.2, 0.1, 0.4), (1, 0, 0.5)),
        ((0.5, 0.1, 0.5), (0.3, 1, 0)),
        ((0.6, 0.0, 0.6), (0, 0, 1)),
        ((0.7, 0.0, 0.6), (1, 0, 0)),
    ]
    kinds = ["revolute", "prismatic", "revolute", "revolute", "prismatic", "revolute"]
    return built(axes, translation(0.8, 0, 0.6), kinds=kinds)


def carrying(arm: Chain) -> CollisionDetector:
    """An arm with two capsules at its flange, and no pairs."""
    detector = CollisionDetector(arm, check_self_collision=False)
    detector.attach(as_object("one", Capsule(0.05, 0.3), translation(0.0, 0.1, 0.1)))
    detector.attach(
        as_object("other", Capsule(0.02, 0.1), any_place(np.random.default_rng(7), 0.2))
    )
    return detector


def relative_ends(detector: CollisionDetector, q: Array, i: int, low: int, turn: Array) -> Array:
    """Both ends of segment i as body ``low`` sees them, turned by ``turn``."""
    at = placement(detector.world)
    pose(detector.world, q, at)
    axes, shift = at.frames[low, :9].reshape(3, 3), at.frames[low, 9:]
    return np.asarray((at.ends[i].reshape(2, 3) - shift) @ axes @ turn.T)


@settings(max_examples=20)
@given(seed=seeds, slides=st.booleans(), low=st.integers(0, 5))
def test_speeds_and_accelerations_of_shapes(g60: Chain, seed: int, slides: bool, low: int) -> None:
    """Differences of places: oracle of body_motions, oracle of follow."""
    rng = np.random.default_rng(seed)
    arm = sliding_arm() if slides else g60
    detector = carrying(arm)
    world, at, i, x = detector.world, placement(detector.world), detector.world.moving - 1, 0.3
    shape = np.stack([rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6)])[None]
    motions, around, growth = np.zeros((7, 12)), np.zeros((1, 12)), np.zeros((1, 6))
    caps = furthest(arm, world.solids, world.moving)
    pose(world, shape[0, 0] + x * shape[0, 1], at)
    uncompiled(body_motions)(shape, 0, x, at.frames, world.slides, motions)
    uncompiled(follow)(
        motions, at.ends, np.abs(shape[:, 1]), caps, world.slides, around, growth, 0, i, low, 6, 0
    )  # fmt: skip
    turn, h = at.frames[low, :9].reshape(3, 3), 1e-4
    before, here, after = (
        relative_ends(detector, shape[0, 0] + (x + step) * shape[0, 1], i, low, turn)
        for step in (-h, 0.0, h)
    )
    found = around[0].reshape(2, 2, 3)
    assert found[:, 0] == pytest.approx((after - before) / (2 * h), abs=1e-6)
    assert found[:, 1] == pytest.approx((after - 2 * here + before) / h**2, abs=1e-5)
    assert (growth >= 0.0).all()


def pieces_of(rng: np.random.Generator, kind: str) -> tuple[Array, Array]:
    """A path of one straight piece, of several, or of several curves."""
    start, end = rng.uniform(-2, 2, (2, 6))
    if kind == "straight":
        return straight(start, end)
    shape, length = cubic(rng, start, start + 0.3 * (end - start), 5)
    if kind == "curves":
        return shape, length
    knots = shape[:, 0]
    ways = [straight(a, b) for a, b in pairwise(knots)]
    return np.concatenate([way for way, _ in ways]), np.concatenate([long for _, long in ways])


@pytest.mark.parametrize("kind", ["straight", "pieces", "curves"])
@settings(max_examples=40)
@given(
    seed=seeds,
    slides=st.booleans(),
    low=st.integers(0, 5),
    budget=st.sampled_from([1e-4, 0.01, 0.3]),
)
def test_a_plane_separates_as_far_as_is_proven(
    g60: Chain, kind: str, seed: int, slides: bool, low: int, budget: float
) -> None:
    """Small steps along the path: oracle of directed_until."""
    rng = np.random.default_rng(seed)
    arm = sliding_arm() if slides else g60
    detector = carrying(arm)
    sweeper, world = Sweeper(detector), detector.world
    table, at, i = sweeper._certificates, placement(world), world.moving - 1
    shape, length = pieces_of(rng, kind)
    path = _sweep_path(shape, length, np.zeros(len(length), dtype=np.int64), None)
    piece = int(rng.integers(0, len(length)))
    x = rng.uniform(0.0, 0.9) * length[piece]
    s = path.start[piece] + x
    table.q[:] = x ** np.arange(shape.shape[1]) @ shape[piece]
    table.now[:] = path.run[piece] + path.slopes[piece] * x
    pose(world, table.q, at)
    distances_from_axes(at.frames, at.ends, world.slides, 0.0, i, 6, table.radii)
    body_motions(shape, piece, x, at.frames, world.slides, table.motions)
    follow(
        table.motions, at.ends, path.slopes, table.caps, world.slides, table.shape_motion,
        table.growth, i, i, low, 6, piece,
    )  # fmt: skip
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    turn = at.frames[low, :9].reshape(3, 3)
    here = relative_ends(detector, table.q, i, low, turn) @ normal
    plane = here.min() - budget
    found = directed_until(
        path.shape, path.start, path.slopes, path.run, path.bends, at.frames, at.ends,
        table.shape_motion, table.growth, table.radii, table.caps, world.slides, table.q,
        table.now, table.push, i, i, low, 6, piece, s, normal[0], normal[1], normal[2],
        here[0] - plane, here[1] - plane,
    )  # fmt: skip
    assert s < found <= path.start[-1]
    for place in np.linspace(s, found, 100):
        p = min(int(np.searchsorted(path.start, place, side="right")) - 1, len(length) - 1)
        q = (place - path.start[p]) ** np.arange(shape.shape[1]) @ shape[p]
        assert (relative_ends(detector, q, i, low, turn) @ normal).min() >= plane - 1e-9


@given(seed=seeds)
def test_the_plane_between_two_cores(seed: int) -> None:
    """Points of both cores: oracle of apart_along."""
    rng = np.random.default_rng(seed)
    one = any_shape(rng.choice(["capsule", "sphere"]), rng)
    other = any_shape(rng.choice(["capsule", "sphere", "box", "cylinder"]), rng)
    solids, at = pair(one, any_place(rng, 0.5), other, any_place(rng, 0.5))
    d, *normal, first, last = uncompiled(apart_along)(
        solids.traits, solids.sizes, at.placed, at.ends, 0, 1
    )
    whole, _ = distance(solids, at.placed, at.ends, 0, 1, np.inf, np.inf, -1, True, scratch())
    skins = solids.sizes[:, SKIN].sum()
    assert d - skins == pytest.approx(whole, abs=1e-9)
    if d <= 1e-9:
        return
    assert np.linalg.norm(normal) == pytest.approx(1.0)
    assert min(first, last) == pytest.approx(d, abs=1e-6)
    ends = at.ends[0].reshape(2, 3)
    plane = float(ends[0] @ normal) - first
    assert float(ends[1] @ normal) - last == pytest.approx(plane, abs=1e-9)
    half = solids.sizes[1, HALF_X : HALF_Z + 1]
    local = rng.uniform(-1.0, 1.0, (500, 3))
    local[:250] = np.sign(local[:250])
    if isinstance(other, Cylinder):
        local[:, :2] /= np.maximum(np.linalg.norm(local[:, :2], axis=1), 1.0)[:, None]
    elif not isinstance(other, Box):
        local[:, :2] = 0.0
    points = local * half @ at.placed[1, :9].reshape(3, 3).T + at.placed[1, 9:]
    assert (points @ normal).max() <= plane + 1e-9


@given(seed=seeds)
def test_slopes_bound_the_polynomials(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for degree in (1, 2, 3, 5):
        shape, length = rng.normal(size=(3, degree + 1, 6)), rng.uniform(0.1, 2.0, 3)
        bound, bends = greatest_slopes(shape, length), greatest_bends(shape, length)
        for k in range(3):
            s = np.linspace(0.0, length[k], 50)[:, None]
            slope = sum(n * s ** (n - 1) * shape[k, n] for n in range(1, degree + 1))
            assert (np.abs(slope) <= bound[k] + 1e-9).all()
            terms = range(2, degree + 1)
            bend = sum((n * (n - 1) * s ** (n - 2) * shape[k, n] for n in terms), 0.0 * s)
            assert (np.abs(bend) <= bends[k] + 1e-9).all()


def test_the_fast_path_gives_the_same_distance(g60: Chain) -> None:
    """`distance`: oracle of near."""
    rng = np.random.default_rng(1)
    detector = with_tools(g60)
    crowd(detector, rng)
    world, at, marks = detector.world, placement(detector.world), scratch()
    solids = world.solids
    for q in rng.uniform(g60.lower, g60.upper, (20, 6)):
        pose(world, q, at)
        for i in range(world.moving):
            for j in range(world.moving, len(solids.traits)):
                whole, _ = distance(
                    solids, at.placed, at.ends, i, j, np.inf, np.inf, -1, True, marks
                )
                short, _ = uncompiled(near)(
                    solids, solids.traits, solids.sizes, at.placed, at.ends, i, j,
                    np.inf, -1, True, marks,
                )  # fmt: skip
                assert short <= whole + 1e-9
                assert short >= min(0.7 * whole, whole) - 1e-9


# ── open meshes ─────────────────────────────────────────────────────────────────────────────────


def test_the_verdict_on_an_open_mesh_does_not_depend_on_where_a_sweep_begins(g60: Chain) -> None:
    """The arm rises inside a tube that is open below and above, without touching it."""
    detector = with_tools(g60)
    detector.add_object(as_object("tube", tube(8.0, 1.3), translation(0.0, 0.0, 4.3)))
    low, high = np.array([[0, 40, 30, 0, 0, 0], [0, 0, -90, 0, 0, 0]]) * DEG
    ways = [straight(a, b) for a, b in pairwise(np.linspace(low, high, 9))]
    shape, length = (np.concatenate(parts) for parts in zip(*ways, strict=True))
    whole = sweep(detector, shape, length, lines=range(8))
    alone = [sweep(detector, *way)[0] for way in ways]
    assert all(line.proven for line in (*whole, *alone))
