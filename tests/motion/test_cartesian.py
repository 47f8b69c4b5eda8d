"""Joint paths along tool paths: on the path, within joint limits, continuous, exact at the end."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.motion.arms import AT_SCAN, G60, LIMITS, SCAN, joints_at, pose

from understudy.motion.cartesian import (
    Blocked,
    Knots,
    greatest_bends,
    greatest_slopes,
    joint_path,
    knots_along,
    path_through,
)
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Limits, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import Stream, planned
from understudy.motion.tool_path import ToolArc, ToolLine, ToolPath, tool_arc
from understudy.space.kinematics.chain import Frames
from understudy.space.kinematics.follow import FailureKind, follow
from understudy.space.transform import angle_between, translation
from understudy.units import DEG, MM

ENDS = [
    pose(0.6, 0.2, 0.3, 180.0, 20.0, 30.0),
    pose(0.45, -0.2, 0.5, 180.0, 0.0, 0.0),
    pose(0.4, -0.2, 0.5, 180.0, 10.0, 50.0),
]
WAYS: list[ToolPath] = [
    *(ToolLine(SCAN, end) for end in ENDS),
    tool_arc(SCAN, pose(0.4, 0.2, 0.5, 180.0, 0.0, 0.0), (0.4, 0.0, 0.5)),
    tool_arc(SCAN, pose(0.4, 0.2, 0.45, 170.0, 0.0, 0.0), (0.4, 0.0, 0.5), turns=-2),
]


def path_along(way: ToolPath, feed: float, **options: Any) -> Path:
    path = joint_path(G60, AT_SCAN, way, limits=LIMITS, feed=feed, **options)
    assert isinstance(path, Path), path
    return path


def assert_lawful(plan: Plan) -> None:
    times = np.linspace(0.0, plan.ends, 4001)
    found = plan.sample(times)
    assert (np.abs(found.velocity) <= LIMITS.velocity * (1 + 1e-9)).all()
    assert (np.abs(found.acceleration) <= LIMITS.acceleration * (1 + 1e-9)).all()
    most = LIMITS.acceleration * times[1]
    assert (np.abs(np.diff(found.velocity, axis=0)) <= most * (1 + 1e-6) + 1e-12).all()
    step = 1e-6
    slope = (plan.positions(times + step) - plan.positions(times - step)) / (2 * step)
    assert np.abs(slope - found.velocity)[1:-1].max() < 1e-4


@pytest.mark.parametrize("way", WAYS, ids=lambda way: type(way).__name__)
@pytest.mark.parametrize("feed", [0.01, 0.1, 1.0, 10.0])
def test_limits_hold_and_velocity_has_no_step(way: ToolPath, feed: float) -> None:
    assert_lawful(planned(path_along(way, feed)))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: type(way).__name__)
def test_the_tool_stays_on_its_path_and_ends_exactly(way: ToolPath) -> None:
    plan = planned(path_along(way, 0.2))
    times = np.linspace(0.0, plan.ends, 500)
    there = G60.flanges(plan.positions(times))
    wanted = way.poses(np.array([plan.distance(t) for t in times]) / way.length)
    assert np.abs(there[:, :3, 3] - wanted[:, :3, 3]).max() < 2e-6
    assert max(angle_between(a, b) for a, b in zip(there, wanted, strict=True)) < 2e-6
    assert plan.at(plan.ends).position.tolist() == plan.path.end[-1].tolist()
    assert G60.flange(plan.target) == pytest.approx(way.poses(np.ones(1))[0], abs=1e-9)


def test_the_feed_is_the_speed_of_the_tip() -> None:
    way = ToolLine(SCAN, ENDS[1])
    plan = planned(path_along(way, 10 * MM))
    assert plan.duration == pytest.approx(50.0 / 10.0, abs=0.02)
    step = 1e-3
    tips = G60.flanges(plan.positions(np.array([2.0, 2.0 + step])))[:, :3, 3]
    assert np.linalg.norm(tips[1] - tips[0]) / step == pytest.approx(10 * MM, rel=1e-6)


def test_rotation_and_acceleration_of_the_tool_can_be_limited() -> None:
    """max(path/F, angle/4.2 deg/s), as the KUKA moves; 0.1 m/s² here, so that the ramp shows."""
    way = ToolLine(SCAN, pose(0.45, -0.2, 0.5, 180.0, 42.0, 0.0))
    plan = planned(path_along(way, 0.1, turning=4.2 * DEG, acceleration=0.1))
    cruise = way.length / 10.0
    assert plan.duration == pytest.approx(10.0 + cruise / 0.1, rel=1e-6)


def test_without_joint_limits_the_time_is_path_over_feed_plus_ramp() -> None:
    """200 mm at 100 mm/s and 10 m/s²: 2.01 s; the joints have no limits."""
    free = Limits.of(G60.velocity, np.inf)
    way = ToolLine(SCAN, pose(0.6, -0.2, 0.5, 180.0, 0.0, 0.0))
    path = joint_path(G60, AT_SCAN, way, limits=free, feed=0.1, acceleration=10.0)
    assert isinstance(path, Path)
    assert planned(path).duration == pytest.approx(2.01)


def test_a_tool_path_of_length_zero_has_no_pieces() -> None:
    assert len(path_along(ToolLine(SCAN, SCAN), 0.1)) == 0


def test_a_tool_path_that_cannot_be_followed_gives_place_and_reason() -> None:
    blocked = joint_path(
        G60, AT_SCAN, ToolLine(SCAN, pose(1.5, -0.2, 0.5, 180, 0, 0)), limits=LIMITS, feed=1.0
    )
    assert isinstance(blocked, Blocked)
    assert blocked.kind is FailureKind.LIMIT
    assert 0.0 < blocked.share < 1.0
    assert blocked.reason == "J2 = 60.5° is outside -120.0°…60.0°"


def test_straight_from_a_singular_pose_is_straight() -> None:
    """All zeros has joint 5 stretched; down the arm's own plane the joints still go smoothly."""
    start = G60.flange(np.zeros(6))
    lower = start.copy()
    lower[:3, 3] += (-0.05, 0.0, -0.1)
    path = joint_path(G60, np.zeros(6), ToolLine(start, lower), limits=LIMITS, feed=0.1)
    assert isinstance(path, Path), path
    assert_lawful(planned(path))


# ── in a queue ──────────────────────────────────────────────────────────────────────────────────


def queued(*ways: ToolPath, deviation: float = 0.0) -> Stream:
    stream = Stream(AT_SCAN, LIMITS)
    for way in ways:
        path = joint_path(G60, stream.end, way, limits=LIMITS, feed=0.1)
        assert isinstance(path, Path), path
        stream.append(path, 0.0, deviation=deviation)
    return stream


MIDDLE = pose(0.45, -0.1, 0.45, 180.0, 0.0, 0.0)
STRAIGHT_ON = pose(0.5, 0.0, 0.4, 180.0, 0.0, 0.0)
ROUND_THE_CORNER = pose(0.45, -0.1, 0.3, 180.0, 0.0, 0.0)


def test_straight_continuations_are_run_without_a_stop() -> None:
    stream = queued(ToolLine(SCAN, MIDDLE), ToolLine(MIDDLE, STRAIGHT_ON))
    between = float(stream.plan.lines()[1][1])
    assert stream.plan.speed(between) == pytest.approx(0.1)
    assert_lawful(stream.plan)


def test_corners_follow_the_deviation_in_joint_space() -> None:
    corner = (ToolLine(SCAN, MIDDLE), ToolLine(MIDDLE, ROUND_THE_CORNER))
    stopped, rounded = queued(*corner), queued(*corner, deviation=1e-5)
    assert stopped.plan.speed(float(stopped.plan.lines()[1][1])) == 0.0
    assert 0.0 < rounded.plan.speed(float(rounded.plan.lines()[1][1])) < 0.1


def test_motion_rests_between_joint_lines_and_tool_lines() -> None:
    stream = queued(ToolLine(SCAN, MIDDLE), deviation=0.1)
    stream.append(lines(stream.end, np.zeros(6), LIMITS, rapid=True), 0.0, deviation=0.1)
    assert stream.plan.speed(float(stream.plan.lines()[1][1])) == 0.0
    assert_lawful(stream.plan)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["hold", "resume", "half", "full"]), st.floats(0, 0.6))))
def test_holds_and_overrides_keep_the_tool_on_its_path(commands: list[tuple[str, float]]) -> None:
    way = WAYS[3]
    stream, now = Stream(AT_SCAN, LIMITS), 0.0
    stream.append(path_along(way, 0.3), 0.0)
    for command, wait in commands:
        now += wait
        if command in ("hold", "resume"):
            getattr(stream, command)(now)
        else:
            stream.override(now, feed=0.5 if command == "half" else 1.0)
    stream.resume(now + 1.0)
    assert_lawful(stream.plan)
    tips = G60.flanges(stream.plan.positions(np.linspace(0, stream.plan.ends, 200)))[:, :3, 3]
    assert np.hypot(tips[:, 0] - 0.4, tips[:, 1]) == pytest.approx(0.2, abs=2e-6)
    assert stream.at(stream.plan.ends).position.tolist() == stream.end.tolist()


def test_a_jerk_limited_line_has_no_step_of_acceleration() -> None:
    plan = planned(path_along(WAYS[0], 0.2), profile="jerk_limited")
    times = np.linspace(0.0, plan.ends, 4001)
    jumps = np.abs(np.diff(plan.sample(times).acceleration, axis=0))
    assert (jumps < 0.05 * LIMITS.acceleration).all()
    assert plan.at(plan.ends).position.tolist() == plan.path.end[-1].tolist()


# ── near singular poses ─────────────────────────────────────────────────────────────────────────


def beside(offset: float) -> tuple[np.ndarray, ToolLine]:
    """A line that passes a singular pose of the wrist, ``offset`` rad of joint 5 away; and where
    the arm is at its beginning."""
    there = np.array([0.0, 20.0 * DEG, 10.0 * DEG, 0.0, offset, 0.0])
    start, end = (G60.flange(there) for _ in range(2))
    start[1, 3] -= 0.1
    end[1, 3] += 0.1
    back = follow(
        G60, there, ToolLine(G60.flange(there), start).poses(np.linspace(0.0, 1.0, 50_001))
    )
    assert back.failure is None
    return back.q[-1], ToolLine(start, end)


@pytest.mark.parametrize("offset", [0.05, 0.01, 0.001])
def test_near_a_singular_pose_a_joint_moves_fast_without_a_jump(offset: float) -> None:
    start, way = beside(offset)
    path = joint_path(G60, start, way, limits=LIMITS, feed=0.01)
    assert isinstance(path, Path), path
    turn = np.abs(np.diff(path.shape[:, 0, 3], append=path.end[-1:, 3]))
    assert turn.sum() > 90 * DEG
    assert turn.max() < 0.5
    plan = planned(path)
    assert_lawful(plan)
    tips = G60.flanges(plan.positions(np.linspace(0.0, plan.ends, 2001)))[:, :3, 3]
    off = tips - way.start[:3, 3]
    assert np.abs(off[:, [0, 2]]).max() < 2e-6


def test_a_joint_that_jumps_at_any_knot_distance_blocks_the_path() -> None:
    home = G60.flange(np.zeros(6))
    aside = home.copy()
    aside[:3, 3] += (0.0, 0.1, -0.1)
    blocked = joint_path(G60, np.zeros(6), ToolLine(home, aside), limits=LIMITS, feed=0.001)
    assert isinstance(blocked, Blocked)
    assert blocked.kind is FailureKind.SINGULAR
    assert blocked.share < 0.001


# ── rates and bounds ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS, ids=lambda way: type(way).__name__)
def test_rates_are_the_derivatives_of_the_poses(way: ToolPath) -> None:
    shares, step = np.linspace(0.1, 0.9, 5), 1e-6
    ahead, back = way.poses(shares + step), way.poses(shares - step)
    ds = 2 * step * way.length
    assert (ahead - back)[:, :3, 3] / ds == pytest.approx(way.rates(shares)[:, :3], abs=1e-6)
    turn = (ahead - back)[:, :3, :3] / ds @ np.swapaxes(way.poses(shares)[:, :3, :3], 1, 2)
    rates = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
    assert rates == pytest.approx(way.rates(shares)[:, 3:], abs=1e-6)


def test_an_arc_that_ends_at_its_start_is_a_whole_turn() -> None:
    whole = tool_arc(SCAN, SCAN, (0.4, 0.0, 0.5), turns=-1)
    assert isinstance(whole, ToolArc)
    assert whole.swept == pytest.approx(-2 * np.pi)
    assert whole.length == pytest.approx(2 * np.pi * 0.2)


@given(st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4))
def test_bounds_of_a_cubic_are_reached_and_never_exceeded(row: list[float]) -> None:
    shape, h = np.array(row).reshape(1, 4, 1), np.array([[0.7]])
    s = np.linspace(0.0, 0.7, 2001)
    _, b, c, d = row
    slope, bend = np.abs(b + 2 * c * s + 3 * d * s**2), np.abs(2 * c + 6 * d * s)
    assert greatest_slopes(shape, h)[0, 0] == pytest.approx(slope.max(), rel=1e-4, abs=1e-6)
    assert greatest_slopes(shape, h)[0, 0] >= slope.max() - 1e-12
    assert greatest_bends(shape, h)[0, 0] == pytest.approx(bend.max())


def test_cubics_go_through_their_knots() -> None:
    s = np.array([0.0, 0.1, 0.3])
    knots = Knots(s, np.sin(s)[:, None] * np.ones(6), np.cos(s)[:, None] * np.ones(6))
    path = path_through(knots, LIMITS, feed=0.1)
    assert path.position(0, 0.05)[0] == pytest.approx(np.sin(0.05), abs=1e-6)
    assert path.tangent(1, 0.2)[0] == pytest.approx(np.cos(0.3))
    assert joints_at(G60.flange(AT_SCAN)) == pytest.approx(AT_SCAN, abs=1e-9)


@dataclass(frozen=True, eq=False)
class CountedPath(ToolLine):
    """A line that counts how often its poses are asked for."""

    asked: list[int] = field(default_factory=list)

    def poses(self, shares: Floats) -> Floats:
        self.asked.append(len(shares))
        return super().poses(shares)


def test_a_joint_that_jumps_a_little_is_found_without_endless_division() -> None:
    """Joint 2 reaches its limit of 60° on this line, and only a solution 28° away goes on: less
    than `follow` refuses, but no knots are close enough for the tool to stay on its path."""
    start = np.array([155.5, 52.828, 95.342, -162.707, 75.626, 85.721]) * DEG
    frames = Frames(np.eye(4), translation(0.0, 0.0, 150 * MM))
    begin = G60.flanges(start[None], frames)[0]
    end = translation(-12.478 * MM, 30.072 * MM, -26.067 * MM) @ begin
    way = CountedPath(begin, end)
    found = knots_along(G60, start, way, frames)
    assert isinstance(found, Blocked)
    assert found.kind is FailureKind.LIMIT
    assert found.reason.startswith("J2 = 60.")
    assert found.share == pytest.approx(0.2275, abs=1e-4)
    assert len(way.asked) < 100
    assert max(way.asked) < 100
