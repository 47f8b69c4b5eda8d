"""Inverse kinematics: branches, whole turns, singular poses, and reasons of failure."""

import math

import numpy as np
import pytest
from eaik.IK_HP import HPRobot
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.arm_models import (
    Axis,
    built,
    frame,
    gantry,
    puma,
    seven_axes,
    spherical_wrist_arm,
    three_parallel,
)

from understudy.errors import Refused
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.ik import (
    closed_form,
    nearest,
    refined,
    solve,
    solve_all,
    unlimited,
)
from understudy.space.pose import Pose
from understudy.space.transform import matrix, translation
from understudy.units import DEG, MM

HUNDREDTH_MM = 0.01 * MM
shares = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6)


def solved(
    arm: Chain,
    target: np.ndarray,
    *,
    frames: Frames = FOOT_AND_FLANGE,
    near: np.ndarray | None = None,
) -> np.ndarray:
    found = solve(arm, target, frames=frames, near=near)
    assert not isinstance(found, Refused), found
    return found


def wrapped(angles: np.ndarray) -> np.ndarray:
    return (angles + math.pi) % (2 * math.pi) - math.pi


def far(Q: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Largest joint difference of each row, whole turns not counted."""
    return np.asarray(np.abs(wrapped(Q - q)).max(axis=1))


# ── oracles ─────────────────────────────────────────────────────────────────────────────────────


def eight_ways(target: np.ndarray) -> np.ndarray:
    """The oracle of branches_at and the oracle of _prepare: the G60 by plain trigonometry.

    Dimensions straight from its table, angles by arc cosine, the wrist from Rz·Ry·Rz.
    """
    found = []
    wrist = target[:3, 3] - 0.080 * target[:3, 2]
    for back in (False, True):
        q1 = math.atan2(wrist[1], wrist[0]) + (math.pi if back else 0.0)
        ahead = wrist[0] * math.cos(q1) + wrist[1] * math.sin(q1) - 0.025
        up = wrist[2] - 0.400
        fore, span = math.hypot(0.035, 0.515), math.hypot(ahead, up)
        if not abs(0.560 - fore) <= span <= 0.560 + fore:
            continue
        inner = math.acos((0.560**2 + span**2 - fore**2) / (2 * 0.560 * span))
        elbow = math.acos((0.560**2 + fore**2 - span**2) / (2 * 0.560 * fore))
        for side in (1, -1):
            q2 = math.atan2(ahead, up) - side * inner
            q3 = side * (math.pi - elbow) - math.atan2(0.515, 0.035)
            found += [np.array([q1, q2, q3, *w]) for w in _wrist(target, q1, q2 + q3)]
    return np.array(found)


def _wrist(target: np.ndarray, q1: float, pitch: float) -> list[tuple[float, float, float]]:
    c1, s1, cp, sp = math.cos(q1), math.sin(q1), math.cos(pitch), math.sin(pitch)
    up = np.array([c1 * sp, s1 * sp, cp])
    along = np.array([c1 * cp, s1 * cp, -sp])
    left = np.cross(along, up)
    m = np.array([up, left, along]) @ target[:3, :3]
    bent = math.acos(max(-1.0, min(1.0, m[2, 2])))
    return [
        (math.atan2(s * m[1, 2], s * m[0, 2]), -s * bent, math.atan2(s * m[2, 1], -s * m[2, 0]))
        for s in (1, -1)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_plain_trigonometry_finds_the_same_branches(g60: Chain, seed: int) -> None:
    target = g60.flange(np.random.default_rng(seed).uniform(g60.lower, g60.upper))
    ours = unlimited(g60, target, frames=FOOT_AND_FLANGE, near=np.zeros(6))
    plain = eight_ways(target)
    for q in plain:
        np.testing.assert_allclose(g60.flange(q), target, atol=1e-9)
    assert len(ours) == len(plain)
    for q in plain:
        assert far(ours, q).min() < 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_eaik_finds_the_same_solutions(arm: Chain, seed: int) -> None:
    axes = arm.axes_of(np.zeros((1, 6)))[0, 1:]
    zero = arm.flange(np.zeros(6))
    points = np.vstack([np.zeros(3), axes[:, :3, 3], zero[:3, 3]])
    robot = HPRobot(axes[:, :3, 2], np.diff(points, axis=0))
    target = arm.flange(np.random.default_rng(seed).uniform(arm.lower, arm.upper))
    turned = target.copy()
    turned[:3, :3] = target[:3, :3] @ zero[:3, :3].T
    answer = robot.IK(turned)
    theirs = np.array(answer.Q)[~np.array(answer.is_LS, dtype=bool)]
    ours = unlimited(arm, target, frames=FOOT_AND_FLANGE, near=np.zeros(6))
    assert len(ours) == len(theirs)
    for q in theirs:
        assert far(ours, q).min() < 1e-6


# ── there and back ──────────────────────────────────────────────────────────────────────────────


@given(shares)
def test_every_solution_reaches_the_target(arm: Chain, share: list[float]) -> None:
    q = arm.lower + np.array(share) * (arm.upper - arm.lower)
    target = arm.flange(q)
    found = solved(arm, target, near=q)
    there = arm.flanges(found)
    assert np.linalg.norm(there[:, :3, 3] - target[:3, 3], axis=1).max() < HUNDREDTH_MM
    assert np.abs(there[:, :3, :3] - target[:3, :3]).max() < 3e-6
    assert (found >= arm.lower).all()
    assert (found <= arm.upper).all()


@given(shares)
def test_the_original_configuration_is_among_the_solutions(arm: Chain, share: list[float]) -> None:
    q = arm.lower + np.array(share) * (arm.upper - arm.lower)
    found = solved(arm, arm.flange(q), near=q)
    there = arm.flange(nearest(found, q))
    assert np.abs(nearest(found, q) - q).max() < 1e-3
    np.testing.assert_allclose(there, arm.flange(q), atol=3e-6)


@pytest.mark.parametrize("bend", [0.0, 1e-12, 1e-9, 1e-7, 9e-7, 1.1e-6, 1e-5, 1e-3])
def test_near_a_straight_wrist(arm: Chain, bend: float) -> None:
    q = np.array([0.3, -0.4, 0.5, 1.0, bend, -0.7])
    tool = Frames(np.eye(4), translation(0.0, 0.0, 0.25))
    target = tool.tcp(arm.flange(q))
    best = nearest(solved(arm, target, frames=tool, near=q), q)
    assert np.linalg.norm((tool.tcp(arm.flange(best)) - target)[:3, 3]) < HUNDREDTH_MM
    assert np.abs(best - q).max() < 1e-3


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6))
def test_random_anthropomorphic_arms_are_recognised_and_solved(seed: int, q: list[float]) -> None:
    arm = spherical_wrist_arm(seed)
    assert closed_form(arm) is not None
    target = arm.flange(q)
    found = unlimited(arm, target, frames=FOOT_AND_FLANGE, near=np.array(q))
    assert len(found) >= 1
    there = arm.flanges(found)
    assert np.linalg.norm(there[:, :3, 3] - target[:3, 3], axis=1).max() < HUNDREDTH_MM
    assert far(found, np.array(q)).min() < 1e-3


# ── turns, singular poses ───────────────────────────────────────────────────────────────────────


def test_home_is_singular_and_solved(g60: Chain) -> None:
    found = solved(g60, g60.flange(np.zeros(6)))
    np.testing.assert_allclose(nearest(found, np.zeros(6)), 0.0, atol=1e-9)


def test_in_a_straight_wrist_joints_4_and_6_share_the_rotation(g60: Chain) -> None:
    home = g60.flange(np.zeros(6))
    turned = home @ matrix(Pose(0, 0, 0, 0, 0, 0.6))
    best = nearest(solved(g60, turned, near=np.zeros(6)), np.zeros(6))
    np.testing.assert_allclose(best, [0, 0, 0, 0.3, 0, 0.3], atol=1e-9)


def test_above_the_column_joint_1_is_kept(g60: Chain) -> None:
    """The wrist centre on axis 1 leaves joint 1 free: it is taken from the reference."""
    q = np.array([0.7, 0.0, 0.0, 0.3, -0.8, 0.2])
    ahead = math.hypot(0.035, 0.515)
    pitch = math.asin(-0.025 / ahead) - math.atan2(0.515, 0.035)
    q[2] = pitch
    assert np.hypot(*_wrist_centre(g60, q)[:2]) < 1e-12
    found = unlimited(g60, g60.flange(q), frames=FOOT_AND_FLANGE, near=q)
    assert far(found, q).min() < 1e-6


def _wrist_centre(g60: Chain, q: np.ndarray) -> np.ndarray:
    return g60.links(q)[5, :3, 3]


def test_joint_6_offers_whole_turns(g60: Chain) -> None:
    q = np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6])
    found = solved(g60, g60.flange(q))
    same_arm = found[np.abs(found[:, :5] - q[:5]).max(axis=1) < 1e-6]
    np.testing.assert_allclose(sorted(same_arm[:, 5]), [0.6 - 2 * math.pi, 0.6], atol=1e-9)


def test_joint_4_offers_its_185_degrees(g60: Chain) -> None:
    q = np.array([0.1, -0.2, 0.3, 182 * DEG, 0.5, 0.0])
    found = solved(g60, g60.flange(q))
    fourth = {round(v / DEG) for v in found[np.abs(found[:, 4] - 0.5) < 1e-6][:, 3]}
    assert {182, -178} <= fourth


def test_of_two_equal_solutions_the_positive_one_is_nearest() -> None:
    two = np.array([[0.0, -math.pi], [0.0, math.pi + 1e-12]])
    assert nearest(two, [0.0, 0.0])[1] > 0


# ── the contract's poses ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length_mm", [0, 80, 150])
@pytest.mark.parametrize("place", [(400, 0, 500), (600, -200, 100)])
def test_scan_and_place_pose(g60: Chain, place: tuple[float, ...], length_mm: float) -> None:
    x, y, z = (v * MM for v in place)
    tool = Frames(np.eye(4), translation(0, 0, length_mm * MM))
    solved(g60, matrix(Pose(x, y, z, math.pi, 0, 0)), frames=tool)


EKI = Frames(translation(0.45, 0.0, 0.2), matrix(Pose(0, 0, 0.15, math.pi, 0, 0)))
HOME = np.array([0, -90, 90, 0, 45, 0]) * DEG


@pytest.mark.parametrize(("x", "a2", "a3", "a5"), [(0.0, -61, 127, 24), (0.2, -45, 94, 41)])
def test_kuka_line(kr6: Chain, x: float, a2: float, a3: float, a5: float) -> None:
    target = matrix(Pose(x, 0, 0, 0, 0, 0))
    best = nearest(solved(kr6, target, frames=EKI, near=HOME), HOME) / DEG
    np.testing.assert_allclose(best[[1, 2, 4]], [a2, a3, a5], atol=0.5)
    np.testing.assert_allclose(best[[0, 3]], 0.0, atol=1e-6)


# ── reasons ─────────────────────────────────────────────────────────────────────────────────────


def test_too_far(kr6: Chain) -> None:
    answer = solve(kr6, matrix(Pose(3, 0, 0, 0, 0, 0)), frames=EKI)
    assert isinstance(answer, Refused)
    assert answer.reason == (
        "out of reach: the wrist would be 3425.1 mm from the axis of A2, "
        "the arm spans 33.5…876.5 mm"
    )


def test_outside_the_limits(kr6: Chain) -> None:
    q = np.array([0, -100, 161.2, 0, 20, 0]) * DEG
    answer = solve(kr6, kr6.flange(q))
    assert isinstance(answer, Refused)
    assert answer.reason == "outside joint limits: A3 = 161.2° is outside -120.0°…156.0°"


def test_too_close_to_the_column() -> None:
    answer = solve(puma(), translation(0.0, 0.0, 1.0))
    assert isinstance(answer, Refused)
    assert "closer than 150.0 mm to the axis of j1" in answer.reason


def test_a_target_that_is_not_finite_is_out_of_reach(g60: Chain) -> None:
    assert isinstance(solve(g60, np.full((4, 4), np.nan)), Refused)


# ── many at once ────────────────────────────────────────────────────────────────────────────────


def test_many_targets_agree_with_single_ones(arm: Chain) -> None:
    Q = np.random.default_rng(2).uniform(arm.lower, arm.upper, (200, 6))
    targets = arm.flanges(Q)
    for target, rows in zip(targets, solve_all(arm, targets), strict=True):
        kept = rows[~np.isnan(rows[:, 0])]
        single = solved(arm, target)
        assert (kept >= arm.lower).all()
        assert (kept <= arm.upper).all()
        for q in kept:
            assert np.abs(single - q).max(axis=1).min() < 1e-9
        for q in single:
            assert far(kept, q).min() < 1e-9


# ── other arms ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lateral", [0.15, -0.1, 0.0])
def test_an_arm_beside_its_column(lateral: float) -> None:
    arm = puma(lateral=lateral)
    q = np.array([0.5, -0.6, 0.9, 0.4, 0.7, -0.3])
    found = solved(arm, arm.flange(q))
    assert np.abs(found - q).max(axis=1).min() < 1e-9


def test_a_file_with_rounded_angles_is_refined() -> None:
    """1.5708 for π/2: the closed form has an error of micrometres, the solution has not."""
    tilt = frame(np.eye(3), np.zeros(3))
    tilt[:3, :3] = matrix(Pose(0, 0, 0, 3.7e-6, 0, 0))[:3, :3]
    plain: list[Axis] = [
        ((0, 0, 0.1), (0, 0, 1)),
        ((0.1, 0, 0.4), tilt[:3, :3] @ (0, 1, 0)),
        ((0.1, 0, 0.9), (0, 1, 0)),
        ((0.1, 0, 1.0), (1, 0, 0)),
        ((0.6, 0, 1.0), (0, 1, 0)),
        ((0.6, 0, 1.0), (1, 0, 0)),
    ]
    arm = built(plain, frame(np.eye(3), (0.7, 0, 1.0)))
    known = closed_form(arm)
    assert known is not None
    assert not known.exact
    q = np.array([0.5, -0.6, 0.9, 0.4, 0.7, -0.3])
    found = solved(arm, arm.flange(q))
    assert np.abs(found - q).max(axis=1).min() < 1e-6
    np.testing.assert_allclose(
        arm.flanges(found), np.tile(arm.flange(q), (len(found), 1, 1)), atol=1e-7
    )
    assert np.nanmin(np.abs(solve_all(arm, arm.flange(q)[None])[0] - q).max(axis=1)) < 1e-6


@pytest.mark.parametrize(
    "arm", [three_parallel(), seven_axes(), gantry()], ids=["three parallel", "seven", "gantry"]
)
def test_arms_of_other_kinds(arm: Chain) -> None:
    assert closed_form(arm) is None
    for q in np.random.default_rng(4).uniform(arm.lower, arm.upper, (5, arm.dof)):
        target = arm.flange(q)
        found = solved(arm, target, near=q)
        for there in arm.flanges(found):
            np.testing.assert_allclose(there, target, atol=1e-6)
        if arm.dof == 6:
            assert far(found, q).min() < 1e-5


def test_a_search_distinguishes_limits_from_reach() -> None:
    arm = gantry()
    beyond = arm.flange([0.0, 2.5, 0.0, 0.1, 0.2, 0.3])
    answer = solve(arm, beyond)
    assert isinstance(answer, Refused)
    assert "j2 = 2500.0 mm is outside -2000.0 mm…2000.0 mm" in answer.reason
    far_away = solve(seven_axes(), translation(5, 0, 0))
    assert isinstance(far_away, Refused)
    assert far_away.reason.startswith("out of reach")


def plain_search(arm: Chain, target: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The oracle of search: Newton's steps with numpy's least squares."""
    for _ in range(30):
        here = arm.flange(q)
        turn = target[:3, :3] @ here[:3, :3].T
        spin = 0.5 * np.array(
            [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
        )
        error = np.concatenate([target[:3, 3] - here[:3, 3], spin])
        q = q + np.linalg.lstsq(arm.jacobian(q), error, rcond=None)[0]
    return q


def test_a_search_converges_to_newtons_solution(arm: Chain) -> None:
    q = np.array([0.3, -0.5, 0.6, 0.4, 0.7, -0.2])
    target, start = arm.flange(q), q + 0.05
    np.testing.assert_allclose(refined(arm, target[None], start[None])[0], q, atol=1e-7)
    np.testing.assert_allclose(plain_search(arm, target, start), q, atol=1e-7)
