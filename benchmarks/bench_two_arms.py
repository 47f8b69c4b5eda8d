"""Several robots in one proof: twelve axes, one minute of motion, beside samples at 1 kHz; an arm
and a mobile robot beside the time of their motion."""

from math import pi
from statistics import median
from time import process_time

import numpy as np

from benchmarks import Row
from understudy.app.validate_several import own_programs, validate_together
from understudy.config import load_config
from understudy.config.files import read_model
from understudy.motion.path import Floats
from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.two_robots import (
    TimedPath,
    TimedPieces,
    TimedRobot,
    prove_apart,
    state_at,
    timed_path,
)
from understudy.space.collision.world import arm_parts
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.transform import matrix

MINUTE, GAP = 60.0, 1.6
SHIFT = 0.5
KNOWN_MS, ANY_MS = 50.0, 2000.0
SEEDS = range(1, 6)
SAMPLES, PAIRS = 3000, 3000
ROUNDS = 5
MIDDLE = (0.0, 0.3, 0.3, 0.0, 0.5, 0.0)


def rows() -> list[Row]:
    arm = chain(read(read_model("g60", beside="").decode()))
    scenes = [_scene(arm, seed) for seed in SEEDS]
    known, shifted, sampled, drawn = [], [], [], []
    for one, other in scenes:
        prove_apart(one, other)
        known.append(_timed(one, other, None))
        shifted.append(_timed(one, other, SHIFT))
        sampled.append(_samples(one, other, SAMPLES, 0.0) * MINUTE * 1e3 / SAMPLES)
        # A grid of 1 ms × 1 ms is what samples would need for any timing.
        drawn.append(_samples(one, other, PAIRS, SHIFT) * MINUTE * 2 * SHIFT * 1e6 / PAIRS)
    return [
        _row("two arms, one minute, planned timing", known, sampled, KNOWN_MS),
        _row(f"two arms, one minute, any timing within ±{SHIFT:g} s", shifted, drawn, ANY_MS),
        _arm_and_cart(),
    ]


def _arm_and_cart() -> Row:
    """The whole validation of the cell `dock`: the run of the cart is recorded each time."""
    config = load_config("dock")
    programs, times = own_programs(config), []
    for _ in range(ROUNDS + 1):
        begun = process_time()
        reports = validate_together(programs, config, timing_s=SHIFT)
        times.append(process_time() - begun)
    assert all(report.passed for report in reports)
    ours, motion = median(times[1:]), max(report.total_s for report in reports)
    return Row(
        f"an arm and a mobile robot, validated within ±{SHIFT:g} s",
        f"{ours * 1e3:.0f} ms",
        f"{motion:.1f} s of motion",
        f"{motion / ours:,.0f}×",
        "",
        "with the simulated run of the mobile robot, which has no closed form",
    )


def _timed(one: TimedRobot, other: TimedRobot, shift: float | None) -> float:
    """CPU milliseconds of a proof, without what earlier ones have kept."""
    fresh = [TimedRobot(each.path, each.outfits, each.lines) for each in (one, other)]
    begun = process_time()
    proof = prove_apart(*fresh, shift=shift)
    took = process_time() - begun
    assert proof.finished
    return took * 1e3


def _samples(one: TimedRobot, other: TimedRobot, count: int, shift: float) -> float:
    """CPU milliseconds of so many distances at single times."""
    pair = ArmPair(one.outfits[0][1], other.outfits[0][1])
    rng, joints = np.random.default_rng(0), np.zeros((3, 6))
    times = rng.uniform(0.0, MINUTE, count)
    begun = process_time()
    for t, s in zip(times.tolist(), rng.uniform(-shift, shift, count).tolist(), strict=True):
        state_at(one.path, t, joints[0], joints[2])
        state_at(other.path, t - s, joints[1], joints[2])
        pair.distance(joints[0], joints[1])
    return (process_time() - begun) * 1e3


def _row(what: str, ours: list[float], peer: list[float], aim: float) -> Row:
    mine, its = median(ours), median(peer)
    return Row(
        what,
        f"{mine:.1f} ms ({min(ours):.1f}…{max(ours):.1f})",
        f"{its:,.0f} ms: samples at 1 kHz",
        f"{its / mine:,.0f}×",
        f"≤ {aim:g} ms",
        "12 axes at half speed; the peer is no proof and its time is that of some samples, scaled",
    )


def _scene(arm: Chain, seed: int) -> tuple[TimedRobot, TimedRobot]:
    rng = np.random.default_rng(seed)
    robots = []
    for foot in (np.eye(4), matrix(Pose(GAP, 0.0, 0.0, 0.0, 0.0, pi))):
        placed = PlacedArm(arm, foot, arm_parts(arm, {}), arm.velocity)
        path, lines = _program(arm, rng)
        robots.append(TimedRobot(path, [(0.0, placed)], lines))
    return robots[0], robots[1]


def _program(arm: Chain, rng: np.random.Generator) -> tuple[TimedPath, Floats]:
    """Lines of the joints from rest to rest, at half of the highest speeds."""
    middle = np.clip(MIDDLE, arm.lower, arm.upper)
    q, t, parts, lines = middle, 0.0, list[TimedPieces](), [0.0]
    while t < MINUTE:
        target = np.clip(middle + rng.uniform(-0.5, 0.5, 6), arm.lower, arm.upper)
        length = float(np.linalg.norm(target - q))
        half = max(float(np.max(np.abs(target - q) / arm.velocity)), 0.1)
        rate = length / half**2
        law = np.array([[0.0, 0.0, rate, 0.0], [length / 2, rate * half, -rate, 0.0]])
        begins, shape = np.array([t, t + half, t + 2 * half]), np.stack([q, (target - q) / length])
        piece = np.zeros(2, dtype=np.int64)
        parts.append(TimedPieces(begins, piece, law, shape[None], np.array([length])))
        t, q = t + 2 * half, target
        lines.append(t)
    return timed_path(middle, parts), np.array(lines)
