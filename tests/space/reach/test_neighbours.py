"""Reach maps of six-axis arms without a closed form here: cobots with offset wrists."""

import itertools
import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from understudy.cli.reach import Progress
from understudy.space.kinematics.chain import Chain, Frames, chain
from understudy.space.kinematics.ik import TURN, closed_form, solve_all
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.reach.neighbours import (
    LONGEST,
    SLOW,
    SOLVED,
    STEPS,
    TRIES,
    attempt,
    fill,
    placed,
)
from understudy.space.reach.reach_map import ReachabilityAnalyzer, directions
from understudy.space.transform import matrix

ROBOTS = Path(__file__).parents[1] / "model" / "public"
FRAMES = Frames(
    matrix(Pose(0.1, 0.2, 0.3, 0.1, 0.2, 0.3)), matrix(Pose(0.0, 0.02, 0.1, 0.1, 0.2, 0.3))
)


def newton_step(model: Chain, target: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, float]:
    """The next configuration, and the error of this one; the damped matrix is solved by numpy."""
    here = model.flange(q)
    turn = target[:3, :3] @ here[:3, :3].T
    skew = 0.5 * np.array(
        [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
    )
    angle = math.atan2(float(np.linalg.norm(skew)), (float(np.trace(turn)) - 1.0) / 2.0)
    axis = skew / max(float(np.linalg.norm(skew)), 1e-300)
    error = np.array([*(target[:3, 3] - here[:3, 3]), *(angle * axis)])
    left = float(error @ error)
    J = model.jacobians(q[None])[0]
    damped = J @ J.T + (0.5 * left + 1e-12) * np.eye(6)
    q = q + np.clip(J.T @ np.linalg.solve(damped, error), -LONGEST, LONGEST)
    q = np.where((q > model.upper) & (q - TURN >= model.lower), q - TURN, q)
    q = np.where((q < model.lower) & (q + TURN <= model.upper), q + TURN, q)
    return np.clip(q, model.lower, model.upper), math.sqrt(left)


def plain_attempt(model: Chain, target: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """The oracle of attempt: the configuration that is reached, None if the search ends before."""
    before = math.inf
    for step in range(STEPS + 1):
        following, left = newton_step(model, target, q)
        if left < SOLVED:
            return q
        if step == STEPS or (step > 3 and left > SLOW * before):
            return None
        before, q = left, following
    return None


def tried(model: Chain, target: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    q = start.copy()
    work = (np.empty((6, 6)), np.eye(4), np.empty((6, 6)), np.empty((6, 6)), np.empty(6))
    limits = model.lower, model.upper
    found = attempt(target, q, model.rest, model.slides, model.tip, *limits, work)
    return q if found else None


@pytest.mark.parametrize("name", ["ur20", "crx"])
def test_an_attempt_goes_as_with_numpy(name: str) -> None:
    model, rng = arm(name), np.random.default_rng(3)
    outcomes = set()
    for number in range(60):
        start = rng.uniform(model.lower, model.upper)
        target = model.flange(np.clip(start + rng.normal(0.0, 0.25, 6), model.lower, model.upper))
        target[:3, 3] *= 4.0 if number % 10 == 0 else 1.0  # too far away
        ours, plain = tried(model, target, start), plain_attempt(model, target, start)
        assert (ours is None) == (plain is None)
        if ours is not None and plain is not None:
            np.testing.assert_allclose(ours, plain, atol=1e-6)
        outcomes.add(ours is None)
    assert outcomes == {True, False}


def test_the_flange_is_placed_as_the_chain_says() -> None:
    """`Chain.flange` is the oracle of placed; the Jacobian follows from the axes."""
    model = arm("crx")
    axes, T = np.empty((6, 6)), np.eye(4)
    for q in np.random.default_rng(4).uniform(model.lower, model.upper, (20, 6)):
        placed(q, model.rest, model.slides, model.tip, axes, T)
        np.testing.assert_allclose(T, model.flange(q), atol=1e-12)
        turns = np.cross(axes[:, :3], T[:3, 3] - axes[:, 3:])
        expected = model.jacobians(q[None])[0]
        np.testing.assert_allclose(np.vstack([turns.T, axes[:, :3].T]), expected, atol=1e-9)


def plain_fill(
    model: Chain, side: int, first: np.ndarray, way: np.ndarray, turn: np.ndarray, start: np.ndarray
) -> set[int]:
    """The oracle of fill: the points that are reached from one start at point 0, breadth first."""

    def target_of(point: tuple[int, ...]) -> np.ndarray:
        target = np.eye(4)
        target[:3, :3], target[:3, 3] = turn, first + way @ np.array(point)
        return target

    origin = tried(model, target_of((0, 0, 0)), start)
    if origin is None:
        return set()
    solved, waiting = {(0, 0, 0): origin}, [(0, 0, 0)]
    tries: Counter[tuple[int, ...]] = Counter()
    for here in waiting:
        for axis, step in itertools.product(range(3), (1, -1)):
            x, y, z = (value + step * (n == axis) for n, value in enumerate(here))
            there = (x, y, z)
            if there in solved or not all(0 <= v < side for v in there) or tries[there] >= TRIES:
                continue
            tries[there] += 1
            near = solved[here].astype(np.float32).astype(float)
            found = tried(model, target_of(there), near)
            if found is not None:
                solved[there] = found
                waiting.append(there)
    return {(x * side + y) * side + z for x, y, z in solved}


def test_points_are_filled_from_their_neighbours() -> None:
    model, side = arm("ur20"), 5
    start = np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    flange = model.flange(start)
    way, turn = 0.25 * np.eye(3), flange[:3, :3].copy()
    q, solved = np.empty((side**3, 6), dtype=np.float32), np.zeros(side**3, dtype=np.bool_)
    at_0 = np.zeros(1, dtype=np.int64)
    parts = (model.rest, model.slides, model.tip, model.lower, model.upper)
    fill(side, flange[:3, 3].copy(), way, turn, start[None], at_0, *parts, q, solved)
    expected = plain_fill(model, side, flange[:3, 3], way, turn, start)
    assert set(np.flatnonzero(solved).tolist()) == expected
    assert 5 < len(expected) < side**3


def arm(name: str) -> Chain:
    found = chain(read((ROBOTS / f"{name}.urdf").read_text()))
    assert closed_form(found) is None
    return found


@pytest.mark.parametrize("name", ["ur20", "crx"])
def test_the_map_agrees_with_single_poses(name: str) -> None:
    """Every 47th point: nothing is reached that cannot be, and 97 % of the directions that
    can be reached are found."""
    model = arm(name)
    found = ReachabilityAnalyzer(model, frames=FRAMES).generate_map(200.0, orientations=6)
    ours = exact = wrong = 0
    for k in range(0, len(found.points), 47):
        targets = directions(6)
        targets[:, :3, 3] = found.points[k]
        solved = solve_all(model, targets, frames=FRAMES)
        count = int((~np.isnan(solved[:, :, 0])).any(axis=1).sum())
        ours, exact = ours + int(found.orientations[k]), exact + count
        wrong += found.orientations[k] > count
    assert wrong == 0
    assert exact > 50
    assert ours >= 0.97 * exact


def test_configurations_are_inside_the_limits() -> None:
    model = arm("ur20")
    limited = replace(model, lower=np.full(6, -0.3), upper=np.full(6, 0.3))
    everywhere = ReachabilityAnalyzer(model).generate_map(300.0, orientations=6)
    narrow_map = ReachabilityAnalyzer(limited).generate_map(300.0, orientations=6)
    assert len(narrow_map.reachable_points) < 0.2 * len(everywhere.reachable_points)


def test_a_part_of_the_space_is_as_in_the_whole_map() -> None:
    analyzer = ReachabilityAnalyzer(arm("ur20"))
    found = analyzer.generate_map(100.0, (0.8, 0.3, 0.4), extent=0.1)
    assert found.orientations.min() >= 10


def test_progress_is_said_at_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    ReachabilityAnalyzer(arm("ur20")).generate_map(300.0, orientations=6, progress=Progress())
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "reach: 100 %"
    assert 5 <= len(said) <= 10


@pytest.mark.soak
@pytest.mark.parametrize("name", ["ur20", "crx"])
def test_the_default_resolution_takes_20_s_of_one_core(name: str) -> None:
    analyzer = ReachabilityAnalyzer(arm(name))
    analyzer.generate_map(500.0)  # compiles
    begun = time.process_time()
    found, _ = analyzer.generate_maps()
    assert time.process_time() - begun < 20.0
    assert len(found.reachable_points) > 10_000
    assert math.isfinite(found.workspace_max.max())
