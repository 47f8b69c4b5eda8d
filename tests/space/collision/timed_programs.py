"""Programs of two arms on time axes, and the plain way to compare them: many pairs of times."""

import numpy as np
from numpy.random import Generator

from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.two_robots import (
    Proof,
    TimedPath,
    TimedPieces,
    TimedRobot,
    Wait,
    timed_path,
)
from understudy.space.collision.world import arm_parts
from understudy.space.kinematics.chain import Chain
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix


def joints_at(path: TimedPath, t: float) -> Array:
    """The joints at t, from the definition."""
    k = int(np.clip(np.searchsorted(path.begins, t, side="right") - 1, 0, len(path.piece) - 1))
    x = float(np.clip(t, path.begins[0], path.begins[-1]) - path.begins[k])
    a, b, c, d = path.law[k].tolist()
    s = min(max(a + b * x + c * x**2 / 2 + d * x**3 / 6, 0.0), path.length[path.piece[k]])
    rows = path.shape[path.piece[k]]
    return np.asarray(s ** np.arange(len(rows)) @ rows)


def random_program(chain: Chain, rng: Generator, duration: float) -> tuple[TimedPath, Array]:
    """Lines and bends of the joints from rest to rest, and where the lines begin."""
    middle = np.clip([0.0, 0.3, 0.3, 0.0, 0.5, 0.0], chain.lower, chain.upper)
    q, t, parts, lines = middle, 0.0, list[TimedPieces](), [0.0]
    while t < duration:
        target = np.clip(middle + rng.uniform(-0.6, 0.6, 6), chain.lower, chain.upper)
        length = float(np.linalg.norm(target - q))
        bend = rng.uniform(-0.3, 0.3, 6) * (rng.random() < 0.5)
        # q + (target - q)·x + bend·x·(1 - x), with x = s / length
        shape = np.stack([q, (target - q + bend) / length, -bend / length**2])
        half = max(float(np.max(np.abs(target - q) / chain.velocity)), 0.1)
        rate = length / half**2
        law = np.array([[0.0, 0.0, rate, 0.0], [length / 2, rate * half, -rate, 0.0]])
        begins = np.array([t, t + half, t + 2 * half])
        piece = np.zeros(2, dtype=np.int64)
        parts.append(TimedPieces(begins, piece, law, shape[None], np.array([length])))
        t, q = t + 2 * half, target
        lines.append(t)
        t += 0.3 * (rng.random() < 0.3)
    return timed_path(middle, parts), np.array(lines)


def two_robots(
    chain: Chain, rng: Generator, duration: float, gap: float
) -> tuple[TimedRobot, TimedRobot]:
    """Two arms face to face, each with a random program."""
    feet = np.eye(4), matrix(Pose(gap, 0.1, 0.0, 0.0, 0.0, np.pi))
    robots = []
    for foot in feet:
        path, lines = random_program(chain, rng, duration)
        arm = PlacedArm(chain, foot, arm_parts(chain, {}), chain.velocity)
        robots.append(TimedRobot(path, [(0.0, arm)], lines))
    return robots[0], robots[1]


def may_be(t: float, u: float, shift: float, waits: list[Wait]) -> bool:
    """Whether the robots can be at t and u at once."""
    if abs(t - u) > shift:
        return False
    for who, passed, signal in waits:
        here, there = (u, t) if who else (t, u)
        if here > passed and there < signal:
            return False
    return True


def pairs_of_times(
    rng: Generator, ends: float, shift: float | None, waits: list[Wait], count: int
) -> list[tuple[float, float]]:
    """Allowed pairs of times, drawn at random; half of them at the largest shifts."""
    times = rng.uniform(0.0, ends, count)
    if shift is None:
        return [(t, t) for t in times.tolist()]
    shifts = rng.uniform(-shift, shift, count)
    shifts[::4], shifts[1::4] = shift, -shift
    rows = [(t, t - s) for t, s in zip(times.tolist(), shifts.tolist(), strict=True)]
    rows += [(each.passed, each.signal) for each in waits if each.waiting == 0]
    return [(t, u) for t, u in rows if 0.0 <= u < ends and may_be(t, u, shift, waits)]


def compare(
    one: TimedRobot,
    other: TimedRobot,
    proof: Proof,
    rows: list[tuple[float, float]],
) -> float:
    """Compares a proof with the distance at pairs of times; returns the smallest distance."""
    pair = ArmPair(one.outfits[0][1], other.outfits[0][1])
    least, known = np.inf, {place.lines: place for place in proof.places}
    for t, u in rows:
        apart = pair.distance(joints_at(one.path, t), joints_at(other.path, u))
        least = min(least, apart)
        assert proof.clearance <= max(apart, 0.0) + 1e-9, (t, u)
        line, line_other = (
            max(int(np.searchsorted(robot.lines, x, side="right")) - 1, 0)
            for robot, x in ((one, t), (other, u))
        )
        if apart <= -1e-7:
            # Two lines that touch are found; no contact has a smaller shift than the reported one.
            place = known[line, line_other]
            assert place.distance <= 0.0
            assert abs(place.shift) <= abs(t - u) + 2e-3 or t == u
            if t == u and place.times[0] == place.times[1]:
                # A contact is found to 0.01 mm; slow robots take long for it.
                assert place.times[0] <= t + 1e-4 or apart > -2e-5
        elif (line, line_other) not in known:
            assert proof.by_line[0][line] <= apart + 1e-9
            assert proof.by_line[1][line_other] <= apart + 1e-9
    return float(least)
