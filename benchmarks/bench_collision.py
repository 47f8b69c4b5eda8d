"""Collision: certified sweeps and single checks compared with pinocchio's sort and sweep (SSaP).

One dense cell per seed (see ``cells``). The segments are planned joint moves without
contact; the peer checks each of them every millisecond. Rounds alternate; medians of CPU time.
"""

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from benchmarks import Row
from benchmarks.cells import Pinocchio, dense_cell, g60
from understudy.motion.lines import lines
from understudy.motion.path import Limits
from understudy.motion.plan import Plan
from understudy.motion.stream import planned
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.kinematics.chain import Chain

SEEDS = range(1, 6)
SEGMENTS = 40
ROUNDS = 5
CHECKS = 2000


def rows() -> list[Row]:
    arm = g60()
    swept: list[float] = []
    sampled: list[float] = []
    batch: list[float] = []
    single: list[float] = []
    peer: list[float] = []
    for seed in SEEDS:
        detector, rng = dense_cell(arm, seed)
        pin = Pinocchio(detector)
        plans = free_moves(arm, detector, rng)
        a, b = certified(detector, pin, plans)
        swept.append(a)
        sampled.append(b)
        Q = rng.uniform(arm.lower, arm.upper, (CHECKS, 6))
        for rates, rate in zip((batch, single, peer), checks(detector, pin, Q), strict=True):
            rates.append(rate)
    ours, theirs = median(swept), median(sampled)
    many, one, other = median(batch), median(single), median(peer)
    return [
        Row(
            "certified sweep", f"{ours:,.0f}× real time",
            f"{theirs:,.0f}× pin SSaP at 1 kHz", f"{ours / theirs:.0f}×", "≥ 10,000×, ≥ 40×",
        ),
        Row(
            "collision check, in batches", f"{many / 1e3:.0f} k/s",
            f"{other / 1e3:.0f} k/s pin SSaP", f"{many / other:.1f}×", "≥ 3×",
        ),
        Row(
            "collision check, one call each", f"{one / 1e3:.0f} k/s",
            f"{other / 1e3:.0f} k/s pin SSaP", f"{one / other:.1f}×", "≥ 3×",
        ),
    ]  # fmt: skip


def free_moves(arm: Chain, detector: CollisionDetector, rng: np.random.Generator) -> list[Plan]:
    """Random moves at full speed that the sweep proves clear."""
    limits = Limits.of(arm.velocity, arm.acceleration)
    sweeper = Sweeper(detector)
    found: list[Plan] = []
    while len(found) < SEGMENTS:
        start, end = rng.uniform(arm.lower, arm.upper, (2, 6))
        path = lines(start, end[None], limits, feed=np.inf, rapid=True)
        if sweeper.sweep(path.shape, path.length)[0].proven:
            found.append(planned(path))
    return found


def certified(
    detector: CollisionDetector, pin: Pinocchio, plans: list[Plan]
) -> tuple[float, float]:
    """Seconds of motion checked per second, by us and by the peer."""
    sweeper = Sweeper(detector)
    motion = sum(plan.duration for plan in plans)
    few = plans[: SEGMENTS // 8]

    def ours() -> None:
        for plan in plans:
            assert sweeper.sweep(plan.path.shape, plan.path.length)[0].proven

    def theirs() -> None:
        for plan in few:
            for q in plan.positions(np.arange(plan.begins, plan.ends, 1e-3)):
                assert not pin.collides(q)

    a, b = alternately(ours, theirs)
    return motion / a, sum(plan.duration for plan in few) / b


def checks(
    detector: CollisionDetector, pin: Pinocchio, Q: np.ndarray
) -> tuple[float, float, float]:
    """Configurations per second: in a batch, the free ones one by one, and by the peer; all give
    the same results."""
    hits = detector.collides(Q)
    assert hits.tolist() == [pin.collides(q) for q in Q]
    free = Q[~hits]
    many, _ = alternately(lambda: detector.collides(Q), lambda: None)
    one, other = alternately(
        lambda: [detector.has_contact(q) for q in free], lambda: [pin.collides(q) for q in free]
    )
    return len(Q) / many, len(free) / one, len(free) / other


def alternately(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Median CPU seconds of both."""
    ours()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, found in zip((ours, theirs), times, strict=True):
            begun = process_time()
            work()
            found.append(process_time() - begun)
    return median(times[0]), median(times[1])
