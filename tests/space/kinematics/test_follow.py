"""Following a tool path: continuous configurations, and the reason where it fails."""

import numpy as np
import pytest
from tests.space.arm_models import manipulability, seven_axes

from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.follow import FailureKind, branch, distances, follow, kinds
from understudy.space.kinematics.ik import nearest, solve, unlimited
from understudy.space.pose import Pose
from understudy.space.transform import line, matrix, translation
from understudy.units import DEG, MM

STEPS = np.linspace(0.0, 1.0, 401)
FINE = np.linspace(0.0, 1.0, 20_001)
BENT = np.array([0.2, -0.3, 0.6, 0.4, 0.8, -0.5])
FOLDED = np.array([0.2, -1.3, 1.6, 0.4, 0.8, -0.5])


def shifted(frame: np.ndarray, *by: float) -> np.ndarray:
    return np.asarray(translation(*by) @ frame)


def plain_follow(arm: Chain, start: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The oracle of follow_branches: all branches at every point, the nearest is taken."""
    path = []
    for target in targets:
        ways = unlimited(arm, target, frames=FOOT_AND_FLANGE, near=start)
        moves = (ways - start + np.pi) % (2 * np.pi) - np.pi
        start = start + min(moves, key=lambda move: float(move @ move))
        path.append(start)
    return np.array(path)


@pytest.mark.parametrize("by", [(0.1, 0.1, -0.1), (-0.2, 0.1, 0.0), (0.0, -0.3, -0.2)])
def test_a_line_is_followed_smoothly(arm: Chain, by: tuple[float, ...]) -> None:
    begin = BENT if arm.names[0] == "J1" else FOLDED
    start = arm.flange(begin)
    targets = line(start, shifted(start, *by), STEPS)
    path = follow(arm, begin, targets)
    assert path.failure is None
    np.testing.assert_allclose(arm.flanges(path.q), targets, atol=1e-9)
    assert np.abs(np.diff(path.q, axis=0)).max() < 0.02
    np.testing.assert_allclose(path.q, plain_follow(arm, begin, targets), atol=1e-9)


@pytest.mark.parametrize("way", range(8))
def test_the_branch_of_the_start_is_kept(g60: Chain, way: int) -> None:
    start = g60.flange(BENT)
    ways = unlimited(g60, start, frames=FOOT_AND_FLANGE, near=np.zeros(6))
    inside = [q for q in ways if (q >= g60.lower).all() and (q <= g60.upper).all()]
    q = inside[way % len(inside)]
    path = follow(g60, q, line(start, shifted(start, 0.0, 0.0, 0.05), STEPS))
    assert path.failure is None
    assert branch(g60, path.q[-1]) == branch(g60, q)


def test_whole_turns_are_kept(g60: Chain) -> None:
    q = BENT + np.array([0, 0, 0, 0, 0, 5.5])
    start = g60.flange(q)
    path = follow(g60, q, line(start, shifted(start, 0.05, 0, 0), STEPS))
    assert path.failure is None
    assert abs(path.q[-1, 5] - q[5]) < 0.5


@pytest.mark.parametrize("by", [(0.1, 0.0, 0.0), (-0.3, 0.0, 0.0), (-0.3, 0.0, -0.3)])
def test_from_the_singular_home_position(g60: Chain, by: tuple[float, ...]) -> None:
    home = g60.flange(np.zeros(6))
    targets = line(home, shifted(home, *by), STEPS)
    path = follow(g60, np.zeros(6), targets)
    assert path.failure is None
    assert np.linalg.norm((g60.flanges(path.q) - targets)[:, :3, 3], axis=1).max() < 0.01 * MM
    assert np.abs(np.diff(path.q, axis=0)).max() < 0.02
    assert [(close.kind, close.index) for close in path.close] == [("wrist", 0)]


def test_through_a_straight_wrist(g60: Chain) -> None:
    """Joint 5 goes through zero and joint 4 stays: no flip."""
    q = np.array([0.0, -0.2, 0.1, 0.0, 0.05, 0.0])
    start, end = g60.flange(q), g60.flange(q - [0, 0, 0, 0, 0.1, 0])
    path = follow(g60, q, line(start, end, STEPS))
    assert path.failure is None
    assert path.q[-1, 4] == pytest.approx(-0.05, abs=1e-6)
    assert path.close[0].kind == "wrist"


def test_sideways_from_home_the_wrist_would_jump(g60: Chain) -> None:
    home = g60.flange(np.zeros(6))
    path = follow(g60, np.zeros(6), line(home, shifted(home, 0.0, 0.3, 0.0), STEPS))
    assert path.failure is not None
    assert (path.failure.kind, path.failure.index) == (FailureKind.SINGULAR, 1)
    assert path.failure.reason.startswith("close to the wrist singularity: J")


def test_a_joint_limit_is_named(g60: Chain) -> None:
    home = g60.flange(np.zeros(6))
    path = follow(g60, np.zeros(6), line(home, shifted(home, 0.6, 0.0, 0.0), STEPS))
    assert path.failure is not None
    assert path.failure.kind is FailureKind.LIMIT
    assert path.failure.reason.startswith("J3 = -8")
    assert path.failure.reason.endswith("is outside -80.0°…165.0°")
    assert len(path.q) == path.failure.index
    assert (path.q >= g60.lower).all()


def test_out_of_reach_is_named(kr6: Chain) -> None:
    start = kr6.flange(FOLDED)
    path = follow(kr6, FOLDED, line(start, shifted(start, 0.0, 0.0, 1.5), FINE))
    assert path.failure is not None
    assert path.failure.kind is FailureKind.UNREACHABLE
    assert path.failure.reason.startswith("out of reach: the wrist would be 876.")
    assert path.close[0].kind == "elbow"


def test_a_flip_is_named(g60: Chain) -> None:
    """With the other wrist branch the same pose needs a jump."""
    target = g60.flange(BENT)
    other = BENT + np.array([0, 0, 0, -np.pi, -1.6, np.pi])
    path = follow(g60, other, target[None])
    assert path.failure is None  # the same pose in another branch
    path = follow(g60, np.array([0.2, -0.3, 0.6, 0.4, -0.8, -0.5]), target[None])
    assert path.failure is not None
    assert path.failure.kind is FailureKind.FLIP
    assert "wrist flip" in path.failure.reason


def test_kuka_line_from_end_to_end(kr6: Chain) -> None:
    frames = Frames(translation(0.45, 0.0, 0.2), matrix(Pose(0, 0, 0.15, np.pi, 0, 0)))
    home = np.array([0, -90, 90, 0, 45, 0]) * DEG
    targets = line(matrix(Pose(0, 0, 0, 0, 0, 0)), matrix(Pose(0.2, 0, 0, 0, 0, 0)), STEPS)
    found = solve(kr6, targets[0], frames=frames, near=home)
    assert isinstance(found, np.ndarray)
    path = follow(kr6, nearest(found, home), targets, frames=frames)
    assert path.failure is None
    assert path.close == ()
    np.testing.assert_allclose(kr6.flanges(path.q, frames), targets, atol=1e-9)
    for axis, start, end in ((1, -61, -45), (2, 127, 94), (4, 24, 41)):
        assert path.q[[0, -1], axis] / DEG == pytest.approx([start, end], abs=0.5)


def test_an_arm_of_seven_axes_follows_too() -> None:
    arm = seven_axes()
    q = np.array([0.1, 0.5, 0.2, -1.0, 0.1, 0.8, 0.0])
    start = arm.flange(q)
    targets = line(start, shifted(start, 0.05, 0.1, -0.1), STEPS[::10])
    path = follow(arm, q, targets)
    assert path.failure is None
    np.testing.assert_allclose(arm.flanges(path.q), targets, atol=1e-6)
    away = follow(arm, q, line(start, shifted(start, 3.0, 0, 0), STEPS[::10]))
    assert away.failure is not None
    assert away.failure.kind is FailureKind.UNREACHABLE


def test_no_targets_give_an_empty_path(g60: Chain) -> None:
    path = follow(g60, BENT, np.empty((0, 4, 4)))
    assert (len(path.q), path.failure, path.close) == (0, None, ())


# ── measures ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("q", "kind"),
    [
        ([0.1, -0.2, 0.3, 0.4, 0.0, 0.5], "wrist"),
        ([0.1, -0.2, -1.5029395, 0.4, 0.6, 0.5], "elbow"),
    ],
)
def test_singular_poses_of_the_g60(g60: Chain, q: list[float], kind: str) -> None:
    measured = dict(zip(kinds(g60), distances(g60, np.array([q]))[0], strict=True))
    assert measured.pop(kind) < 1e-6
    assert min(measured.values()) > 0.1
    assert manipulability(g60, q) < 1e-6


def test_manipulability_is_the_product_of_singular_values(arm: Chain) -> None:
    values = np.linalg.svd(arm.jacobian(BENT), compute_uv=False)
    assert manipulability(arm, BENT) == pytest.approx(values.prod())


def test_arms_without_closed_form_have_one_measure() -> None:
    arm = seven_axes()
    assert kinds(arm) == ("arm",)
    assert distances(arm, np.zeros((1, 7)))[0, 0] < 1e-9
    assert branch(arm, np.zeros(7)) == ()
