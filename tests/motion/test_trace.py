"""The traced paths of the kernels equal those of the plain computation, knot by knot."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.motion.arms import AT_SCAN, G60, LIMITS, SCAN, joints_at, pose

from understudy.motion.cartesian import (
    MOST_PIECES,
    Blocked,
    TracedArm,
    allowed_on,
    empty_columns,
    first_pieces,
    greatest_steps,
    joint_path,
    joint_path_by_knots,
    knots_along,
    knots_on,
    lines_through,
    path_through,
    solved,
    trace_path,
    traced_arm,
)
from understudy.motion.lines import seam
from understudy.motion.path import Floats, Path, joined
from understudy.motion.tool_path import (
    NO_ARC,
    ArcShape,
    ToolArc,
    ToolLine,
    path_length,
    poses_on,
    rates_on,
    tool_arc,
    turn_between,
)
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.follow import FailureKind
from understudy.space.transform import axis_angle, translation
from understudy.units import DEG, MM


def arm_data_of(arm: Chain) -> TracedArm:
    found = traced_arm(arm, LIMITS, FOOT_AND_FLANGE)
    assert found is not None
    return found


ARM = arm_data_of(G60)
NEXT = pose(0.4017, -0.2, 0.5, 180.0, 0.0, 0.0)
WAYS: list[ToolLine | ToolArc] = [
    ToolLine(SCAN, NEXT),
    ToolLine(SCAN, pose(0.6, 0.2, 0.3, 180.0, 20.0, 30.0)),
    tool_arc(SCAN, pose(0.4, 0.2, 0.5, 180.0, 0.0, 0.0), (0.4, 0.0, 0.5)),
    tool_arc(SCAN, pose(0.4, 0.2, 0.45, 170.0, 0.0, 0.0), (0.4, 0.0, 0.5), turns=-2),
]
SHARES = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
angles = st.floats(-180.0, 180.0)
small = st.floats(-0.1, 0.1)


def arc_shape_of(way: ToolLine | ToolArc) -> ArcShape:
    if isinstance(way, ToolLine):
        return NO_ARC
    x, y, z = way.centre.tolist()
    u, v, w = way.axis.tolist()
    return ArcShape((x, y, z), (u, v, w), way.swept, way.climb)


def assert_same(traced: Path, plain: Path) -> None:
    """Compares every column; of the cubics the values and derivatives, not the coefficients."""
    assert len(traced) == len(plain)
    for column in fields(Path):
        if column.name != "shape":
            one, other = getattr(traced, column.name), getattr(plain, column.name)
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=column.name)
    for piece, length in enumerate(plain.length):
        for s in (0.0, 0.3 * length, 0.9 * length):
            here, there = traced.position(piece, s), plain.position(piece, s)
            np.testing.assert_allclose(here, there, rtol=0.0, atol=1e-9)
            leads, led = traced.tangent(piece, s), plain.tangent(piece, s)
            np.testing.assert_allclose(leads, led, rtol=1e-9, atol=1e-9)


# ── geometry ──


@given(st.tuples(angles, angles, angles), st.tuples(angles, angles, angles))
@settings(max_examples=60, deadline=None)
def test_rotation_as_axis_and_angle(
    before: tuple[float, float, float], after: tuple[float, float, float]
) -> None:
    """`axis_angle` is the oracle of turn_between."""
    start, end = pose(0, 0, 0, *before), pose(0, 0, 0, *after)
    axis, angle = axis_angle(start[:3, :3].T @ end[:3, :3])
    found = turn_between(start, end)
    assert found[3] == pytest.approx(angle, abs=1e-9)
    if 1e-6 < angle < np.pi - 1e-6:
        assert found[:3] == pytest.approx(axis, abs=1e-7)


def test_no_rotation_has_the_axis_z() -> None:
    assert turn_between(SCAN, NEXT) == (0.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_kernels_agree_with_the_tool_paths(way: ToolLine | ToolArc) -> None:
    """`ToolPath.poses`, `rates` and `length`: the oracle of poses_on, the oracle of rates_on, the
    oracle of path_length."""
    turn, shape = turn_between(way.start, way.end), arc_shape_of(way)
    length = path_length(way.start, way.end, shape)
    poses = poses_on(way.start, way.end, turn, shape, SHARES)
    rates = rates_on(way.start, way.end, turn, shape, poses, length)
    assert length == pytest.approx(way.length, rel=1e-12)
    np.testing.assert_allclose(poses, way.poses(SHARES), atol=1e-12)
    np.testing.assert_allclose(rates, way.rates(SHARES), atol=1e-12)


# ── knots and pieces ──


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_jacobian_is_solved(seed: int) -> None:
    """`numpy.linalg.solve` is the oracle of solved."""
    rng = np.random.default_rng(seed)
    J, rate = rng.normal(size=(6, 6)), rng.normal(size=6)
    found = rate.copy()
    if solved(J.copy(), found):
        np.testing.assert_allclose(found, np.linalg.solve(J, rate), rtol=1e-8, atol=1e-9)


def test_near_a_singular_pose_the_kernel_does_not_solve() -> None:
    assert solved(np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 1e-3]), np.ones(6))
    assert not solved(np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 1e-5]), np.ones(6))
    assert not solved(np.zeros((6, 6)), np.ones(6))


@pytest.mark.parametrize("way", WAYS)
def test_knots_agree_with_the_plain_ones(way: ToolLine | ToolArc) -> None:
    """`knots_along` is the oracle of knots_on."""
    plain = knots_along(G60, AT_SCAN, way)
    assert not isinstance(plain, Blocked)
    s, q, slope = knots_on(way.start, way.end, arc_shape_of(way), way.length, AT_SCAN, ARM)
    np.testing.assert_allclose(s, plain.s, atol=1e-12)
    np.testing.assert_allclose(q, plain.q, atol=1e-12)
    np.testing.assert_allclose(slope, plain.slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("feed", [0.01, 1.0])
def test_limits_of_a_piece_agree_with_the_plain_ones(feed: float) -> None:
    """`path_through` is the oracle of allowed_on."""
    knots = knots_along(G60, AT_SCAN, WAYS[1])
    assert not isinstance(knots, Blocked)
    path = path_through(knots, LIMITS, feed=feed)
    able = (LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk)
    steps = greatest_steps(path.shape, path.length[:, None])
    for k, shape in enumerate(path.shape):
        found = allowed_on(
            shape.copy(), path.length[k], feed, able, steps[k].copy(), np.empty((2, 6))
        )
        wanted = path.fastest[k], path.acceleration[k], path.jerk[k]
        assert found == pytest.approx(wanted, rel=1e-9)


# ── whole tool paths ──


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("feed", [0.01, 1.0])
def test_a_traced_path_equals_the_plain_one(way: ToolLine | ToolArc, feed: float) -> None:
    """`joint_path_by_knots` is the oracle of trace_path."""
    room = empty_columns(MOST_PIECES)
    assert trace_path(way.start, way.end, arc_shape_of(way), feed, 1.0, AT_SCAN, ARM, room, 0) > 0
    traced = joint_path(G60, AT_SCAN, way, limits=LIMITS, feed=feed, acceleration=1.0, line=7)
    plain = joint_path_by_knots(
        G60, AT_SCAN, way, limits=LIMITS, feed=feed, acceleration=1.0, line=7
    )
    assert isinstance(traced, Path)
    assert isinstance(plain, Path)
    assert_same(traced, plain)


@given(small, small, small, st.floats(-40, 40), st.floats(-40, 40), st.floats(-40, 40))
@settings(max_examples=25, deadline=None)
def test_random_traced_lines_equal_the_plain_ones(
    x: float, y: float, z: float, rx: float, ry: float, rz: float
) -> None:
    """With a tool, from another base."""
    frames = Frames(pose(0.1, 0.2, 0.0, 10.0, 0.0, 30.0), translation(0.02, 0.0, 0.1))
    here = frames.tcp(G60.flange(AT_SCAN))
    there = here @ pose(x, y, z, rx, ry, rz)
    assume(ToolLine(here, there).distance > 1 * MM)
    way = ToolLine(here, there)
    traced = joint_path(G60, AT_SCAN, way, limits=LIMITS, feed=0.1, frames=frames)
    plain = joint_path_by_knots(G60, AT_SCAN, way, limits=LIMITS, feed=0.1, frames=frames)
    if isinstance(plain, Blocked) or isinstance(traced, Blocked):
        assert traced == plain
    elif len(traced) != len(plain):  # rounding decides at the edge of how far a piece may bend
        assert abs(len(traced) - len(plain)) == 1
        np.testing.assert_allclose(traced.end[-1], plain.end[-1], rtol=0.0, atol=1e-9)
        assert traced.length.sum() == pytest.approx(plain.length.sum(), rel=1e-9)
    else:
        assert_same(traced, plain)


def test_uncommon_cases_are_computed_without_the_kernel() -> None:
    """Through a straight wrist, out of reach, or rotating in place: the kernel returns 0 pieces."""
    room = empty_columns(MOST_PIECES)
    for start, end in (
        (np.zeros(6), translation(-0.05, 0.0, -0.1) @ G60.flange(np.zeros(6))),
        (AT_SCAN, pose(1.5, -0.2, 0.5, 180.0, 0.0, 0.0)),
        (AT_SCAN, pose(0.4, -0.2, 0.5, 180.0, 10.0, 0.0)),
    ):
        here = G60.flange(start)
        assert trace_path(here, end, NO_ARC, 0.1, np.inf, start, ARM, room, 0) == 0
    far = ToolLine(SCAN, pose(1.5, -0.2, 0.5, 180.0, 0.0, 0.0))
    blocked = joint_path(G60, AT_SCAN, far, limits=LIMITS, feed=1.0)
    assert isinstance(blocked, Blocked)
    assert blocked.kind is FailureKind.LIMIT


# ── many lines ──


def spiral(count: int) -> Floats:
    """Short lines about SCAN, tilting a little."""
    turns = 0.05 * np.arange(1, count + 1)
    places = zip(0.4 + 0.03 * np.sin(turns), -0.2 + 0.03 * (1 - np.cos(turns)), turns, strict=True)
    return np.array([pose(x, y, 0.5, 180.0, 5.0 * np.sin(t), 0.0) for x, y, t in places])


def one_by_one(start: Floats, targets: Floats, feed: Floats, deviation: float) -> Path:
    """`joint_path` and `seam`, line by line, are the oracle of trace_lines."""
    paths: list[Path] = []
    for k, target in enumerate(targets):
        way = ToolLine(G60.flange(start), target)
        path = joint_path_by_knots(G60, start, way, limits=LIMITS, feed=float(feed[k]), line=k)
        assert isinstance(path, Path)
        entry = seam(paths[-1], path, LIMITS, deviation) if paths else 0.0
        paths.append(path.with_entry(entry))
        start = path.end[-1]
    return joined(paths)


@pytest.mark.parametrize("deviation", [0.0, 0.01])
def test_many_traced_lines_equal_single_ones(deviation: float) -> None:
    targets = spiral(40)
    feed, line = np.linspace(0.01, 0.5, 40), np.arange(40)
    path, done = lines_through(ARM, AT_SCAN, targets, feed=feed, line=line, deviation=deviation)
    assert done == 40
    assert_same(path, one_by_one(AT_SCAN, targets, feed, deviation))


@given(st.integers(0, 2**32), st.sampled_from([1e-4, 1e-3, 3e-3, 0.02]), st.sampled_from([0, 1, 8]))
def test_lines_of_one_piece_are_those_of_the_general_case(
    seed: int, step: float, turn: float
) -> None:
    """`trace_path` is the oracle of trace_piece: every bit is the same."""
    random, count = np.random.default_rng(seed), 20
    places = np.cumsum(random.normal(size=(count, 3)) * step, axis=0)
    tilts = np.cumsum(random.normal(size=(count, 3)) * turn, axis=0)
    targets = np.array([SCAN @ pose(*values) for values in np.hstack([places, tilts])])
    feed, line = random.uniform(0.01, 0.5, count), np.arange(count)
    path, done = lines_through(ARM, AT_SCAN, targets, feed=feed, line=line, deviation=1e-5)
    q, n, room = AT_SCAN, 0, empty_columns(MOST_PIECES)
    for k in range(done):
        found = trace_path(G60.flange(q), targets[k], NO_ARC, feed[k], np.inf, q, ARM, room, 0)
        assert found > 0
        rows = path.rows(n, n + found)
        for name in ("shape", "end", "length", "acceleration", "jerk", "fastest"):
            wanted = getattr(room, name)[:found]
            assert getattr(rows, name).tobytes() == wanted.tobytes(), (k, name)
        q, n = room.end[found - 1].copy(), n + found
    assert n == len(path)


def test_tracing_ends_before_the_first_uncommon_line() -> None:
    targets = np.array([*spiral(3), pose(1.5, -0.2, 0.5, 180.0, 0.0, 0.0), *spiral(3)])
    feed, line = np.full(7, 0.1), np.arange(100, 107)
    path, done = lines_through(ARM, AT_SCAN, targets, feed=feed, line=line, deviation=0.0)
    assert done == 3
    assert np.unique(path.line).tolist() == [100, 101, 102]
    assert path.end[-1] == pytest.approx(joints_at(targets[2]), abs=1e-9)


def test_no_lines_give_an_empty_path() -> None:
    none = np.empty(0)
    path, done = lines_through(
        ARM, AT_SCAN, np.empty((0, 4, 4)), feed=none, line=none.astype(np.int64), deviation=0.0
    )
    assert (len(path), done) == (0, 0)


def test_a_full_buffer_ends_the_path_between_two_lines() -> None:
    """Lines of 300 mm have far more pieces than there is room for."""
    far = [
        pose(0.4 + 0.15 * (k % 2), -0.2 + 0.3 * (k % 2), 0.5, 180.0, 0.0, 0.0)
        for k in range(1, 200)
    ]
    feed, line = np.full(len(far), 0.1), np.arange(len(far))
    path, done = lines_through(ARM, AT_SCAN, np.array(far), feed=feed, line=line, deviation=0.0)
    assert 0 < done < len(far)
    assert G60.flange(path.end[-1])[:3, 3] == pytest.approx(far[done - 1][:3, 3], abs=1 * MM * DEG)


def test_a_short_line_is_one_piece() -> None:
    near = pose(0.4005, -0.197, 0.5, 180.0, 0.0, 0.0)
    far = pose(0.4, -0.1835, 0.5, 180.0, 0.0, 0.0)
    for end, pieces in ((near, 1), (far, 4)):
        found = joint_path(G60, AT_SCAN, ToolLine(SCAN, end), limits=LIMITS, feed=0.05)
        assert isinstance(found, Path)
        assert len(found) == first_pieces(ToolLine(SCAN, end).length, 0.0, 0.0) == pieces


@pytest.mark.parametrize("turns", [1, 2, 4, 8, 9])
def test_a_small_arc_of_many_turns_is_round(turns: int) -> None:
    """Its knots are closer than a turn: else all of them could be the same place."""
    arc = tool_arc(SCAN, SCAN, SCAN[:3, 3] + np.array([3e-4, 0.0, 0.0]), turns=turns)
    found = joint_path(G60, AT_SCAN, arc, limits=LIMITS, feed=0.05)
    assert isinstance(found, Path)
    middles = [found.position(k, 0.5 * float(found.length[k])) for k in range(len(found))]
    away = G60.flanges(np.array(middles))[:, :3, 3] - arc.centre
    assert np.linalg.norm(away, axis=1) == pytest.approx(3e-4, abs=2e-6)
    assert found.length.sum() == pytest.approx(arc.length)
