"""Two robots on time axes, compared with the distance at many pairs of times."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from tests.space.collision.timed_programs import (
    compare,
    joints_at,
    may_be,
    pairs_of_times,
    random_program,
    two_robots,
)
from tests.space.uncompiled import uncompiled

from understudy.space.collision import two_robots as kernels
from understudy.space.collision.arm_pair import ArmPair
from understudy.space.collision.distance import scratch
from understudy.space.collision.solids import solids
from understudy.space.collision.two_robots import (
    NODES,
    SEEN,
    TimedRobot,
    Timing,
    Wait,
    prove_apart,
    timed_path,
)
from understudy.space.collision.world import Placement
from understudy.space.kinematics.chain import Chain


def timing(shift: float | None, waits: list[Wait]) -> Timing:
    rows = np.array([list(map(float, each)) for each in waits]).reshape(-1, 3)
    return Timing(shift is None, shift or 0.0, rows)


def test_joints_and_their_travel(g60: Chain) -> None:
    """The oracle of state_at: the definition of the path; joints keep to their bounds."""
    rng = np.random.default_rng(1)
    path, _ = random_program(g60, rng, 5.0)
    before, q, travel = np.zeros(6), np.zeros(6), np.zeros(6)
    last = joints_at(path, -1.0)
    for t in np.linspace(-0.5, path.begins[-1] + 0.5, 300).tolist():
        kernels.state_at(path, t, q, travel)
        assert q == pytest.approx(joints_at(path, t), abs=1e-12)
        assert np.all(np.abs(q - last) <= travel - before + 1e-9)
        before[:], last = travel, q.copy()


def test_no_shape_moves_more_than_the_bound_of_its_node(g60: Chain) -> None:
    """The oracle of fill_node: the ends of every shape's axis, at many times of the node."""
    rng = np.random.default_rng(2)
    one, _ = two_robots(g60, rng, 5.0, 1.5)
    tree = one.tree(0, 0.0, one.ends)
    fill_node = kernels.fill_node
    for _ in range(30):
        begin = rng.uniform(0.0, 4.0)
        end = begin + rng.choice([0.01, 0.1, 1.0])
        fill_node(tree, NODES, begin, end)
        middle, moved = tree.ends[NODES].copy(), tree.moved[NODES].copy()
        for t in np.linspace(begin, end, 9).tolist():
            fill_node(tree, NODES, t, t)
            gone = (tree.ends[NODES] - middle).reshape(len(moved), 2, 3)
            assert np.all(np.linalg.norm(gone, axis=2).max(axis=1) <= moved + 1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_no_cell_with_an_allowed_pair_of_times_is_excluded(compiled: bool) -> None:
    """The oracle of is_excluded: all pairs of a grid in the cell."""
    rng = np.random.default_rng(3)
    is_excluded = kernels.is_excluded if compiled else uncompiled(kernels.is_excluded)
    count = 0
    for _ in range(300):
        waits = [Wait(int(w), *rng.uniform(0.0, 4.0, 2)) for w in rng.integers(0, 2, 2)]
        shift = float(rng.choice([0.2, 1.0, np.inf]))
        a, c = rng.uniform(0.0, 4.0, 2).tolist()
        b, d = a + float(rng.uniform(0.0, 1.0)), c + float(rng.uniform(0.0, 1.0))
        grid = product(np.linspace(a, b, 5).tolist(), np.linspace(c, d, 5).tolist())
        allowed = any(may_be(t, u, shift, waits) for t, u in grid)
        excluded = is_excluded(timing(shift, waits), a, b, c, d)
        assert not (allowed and excluded)
        count += excluded
    assert 30 < count < 270


def test_the_first_look_sees_the_smallest_distance_of_its_places(g60: Chain) -> None:
    """The oracle of look: `ArmPair` at the same pairs of times."""
    rng = np.random.default_rng(4)
    one, other = two_robots(g60, rng, 3.0, 1.7)
    pair = ArmPair(one.outfits[0][1], other.outfits[0][1])
    rows = rng.uniform(0.0, 3.0, (40, 2))
    parts = (*one.outfits[0][1].parts, *other.outfits[0][1].parts)
    at = Placement(np.zeros((1, 12)), np.zeros((len(parts), 12)), np.zeros((len(parts), 6)))
    results = kernels._no_results()
    trees = one.tree(0, 0.0, 3.0), other.tree(0, 0.0, 3.0)
    kernels.look(solids(parts), *trees, rows, at, scratch(), False, results)
    least = min(pair.distance(joints_at(one.path, t), joints_at(other.path, u)) for t, u in rows)
    assert results.figures[SEEN] == pytest.approx(least, abs=1e-8)


class Case(NamedTuple):
    shift: float | None
    waits: int


CASES = [Case(None, 0), Case(0.5, 0), Case(0.5, 2), Case(float("inf"), 3)]


def check(chain: Chain, seed: int, case: Case, *, duration: float, count: int) -> bool:
    """Compares a proof with ``count`` pairs of times; whether the robots can touch."""
    rng = np.random.default_rng(seed)
    one, other = two_robots(chain, rng, duration, float(rng.uniform(1.3, 2.0)))
    ends = max(one.ends, other.ends)
    waits = []
    for _ in range(case.waits):
        signal = float(rng.uniform(0.0, ends))
        waits.append(Wait(int(rng.integers(0, 2)), signal + float(rng.uniform(0.0, 0.2)), signal))
    proof = prove_apart(one, other, shift=case.shift, waits=waits)
    if not proof.finished:  # more contacts than the search keeps, or looks for
        assert proof.places
        return True
    shift = case.shift if case.shift != np.inf else 2 * ends
    rows = pairs_of_times(rng, ends, shift, waits, count)
    least = compare(one, other, proof, rows)
    touches = any(place.distance <= 0.0 for place in proof.places)
    if not touches:
        # What is promised: 90 % of the true clearance, or at least 20 mm.
        assert proof.clearance >= min(0.9 * proof.seen, 0.02)
        assert least >= proof.clearance
    return touches


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_proven_that_is_not_so(g60: Chain, case: Case) -> None:
    """The oracle of prove: the distance at many pairs of times; contacts are found by lines."""
    touched = [check(g60, seed, case, duration=4.0, count=400) for seed in range(6)]
    assert 0 < sum(touched) < 6


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", range(100, 125))
def test_nothing_is_proven_that_is_not_so_at_full_size(arm: Chain, case: Case, seed: int) -> None:
    # Any timing compares every time of one program with every time of the other.
    duration = 8.0 if case.shift == np.inf else 30.0
    check(arm, seed, case, duration=duration, count=10_000)


def test_a_robot_that_stands(g60: Chain) -> None:
    rng = np.random.default_rng(5)
    one, other = two_robots(g60, rng, 4.0, 1.9)
    stands = TimedRobot(timed_path(joints_at(other.path, 0.0), []), other.outfits, np.zeros(1))
    known, any_time = prove_apart(one, stands), prove_apart(one, stands, shift=0.5)
    assert known.seen == pytest.approx(any_time.seen, rel=0.3)
    assert min(known.clearance, any_time.clearance) > 0.0


def test_a_handshake_keeps_robots_apart(g60: Chain) -> None:
    """Without the wait the arms touch at some shift; with it, one moves after the other."""
    rng = np.random.default_rng(7)
    one, other = two_robots(g60, rng, 4.0, 1.45)
    free = prove_apart(one, other, shift=np.inf)
    assert free.places
    place = min(free.places, key=lambda each: each.times[1])
    wait = Wait(1, 0.0, one.ends)
    held = prove_apart(one, other, shift=np.inf, waits=[wait])
    assert len(held.places) < len(free.places)
    assert all(t >= one.ends or u <= 0.0 for t, u in (each.times for each in held.places))
    assert place.names
