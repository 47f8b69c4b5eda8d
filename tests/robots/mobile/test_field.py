"""The protective field: exact distances, and never farther than the outline can go."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.robots.mobile import field
from understudy.robots.mobile.field import Spans
from understudy.robots.mobile.wheels import moved_on_arc, pace, wrapped

Pose = tuple[float, float, float]
Circle = tuple[float, float, float]
Line = tuple[float, float, float, float]
OUTLINE = (0.45, 0.325, 0.0)
SHIFTED = (0.45, 0.325, 0.3)
FREE = math.inf


def tables(
    circles: list[Circle], lines: list[Line]
) -> tuple[field.Floats, Spans, field.Floats, Spans]:
    return (
        np.array(circles, dtype=float).reshape(-1, 3),
        np.array([[0, len(circles)]]),
        np.array(lines, dtype=float).reshape(-1, 4),
        np.array([[0, len(lines)]]),
    )


def free(
    speeds: Pose,
    circles: list[Circle] | None = None,
    lines: list[Line] | None = None,
    *,
    pose: Pose = (0, 0, 0),
    outline: Pose = OUTLINE,
    margin: float = 0.0,
    widening: float = 0.0,
) -> float:
    round_ones, round_span, straight, straight_span = tables(circles or [], lines or [])
    return field.free_way(
        np.array(pose, dtype=float),
        np.array(outline),
        np.array(speeds, dtype=float),
        10.0,
        margin,
        widening,
        round_ones,
        round_span[0],
        straight,
        straight_span[0],
    )


def clearance(
    circles: list[Circle], lines: list[Line], pose: Pose, outline: Pose = OUTLINE
) -> float:
    found = np.zeros(1)
    field.outline_clearances(np.array([pose]), np.array([outline]), *tables(circles, lines), found)
    return float(found[0])


def test_a_wall_ahead_is_met_by_the_front() -> None:
    wall = (2.0, -5.0, 2.0, 5.0)
    assert free((1, 0, 0), lines=[wall]) == pytest.approx(1.55, abs=1e-3)
    assert free((0.1, 0, 0), lines=[wall], outline=SHIFTED) == pytest.approx(1.25, abs=1e-3)
    assert free((-1, 0, 0), lines=[wall]) == FREE
    assert free((0, 1, 0), lines=[wall]) == FREE, "along the wall"
    assert free((0, 0, 0), lines=[wall]) == FREE, "it stands"


def test_a_thin_post_beside_the_middle_is_met() -> None:
    assert free((1, 0, 0), [(1.0, 0.31, 0.005)]) == pytest.approx(0.545, abs=1e-3)
    assert free((1, 0, 0), [(1.0, 0.331, 0.005)]) == FREE
    assert free((1, 0, 0), [(1.0, 0.331, 0.005)], margin=0.005) < 0.56, "the field is wider"
    assert 2.4 < free((1, 0, 0), [(3.0, 0.4, 0.005)], widening=0.05) < 2.5, "and widens ahead"


def test_a_corner_that_turns_beside_a_wall_is_met() -> None:
    wall = (-5.0, 0.4, 5.0, 0.4)
    turned = free((0, 0, 1), lines=[wall])
    radius = math.hypot(0.45, 0.325)
    angle = math.asin(0.4 / radius) - math.atan2(0.325, 0.45)
    assert turned == pytest.approx(angle * radius, abs=2e-3)
    assert free((0, 0, -1), lines=[(-5, 0.56, 5, 0.56)]) == FREE, "a full turn touches nothing"


def test_a_robot_can_leave_a_wall_that_it_nearly_touches() -> None:
    wall = (0.4501, -5.0, 0.4501, 5.0)
    assert free((1, 0, 0), lines=[wall], margin=0.005, widening=0.03) <= 1e-4
    assert free((-1, 0, 0), lines=[wall], margin=0.005, widening=0.03) == FREE


def test_a_robot_inside_an_obstacle_goes_nowhere() -> None:
    assert free((1, 0, 0), [(0.1, 0.1, 0.3)]) == 0.0
    assert free((-1, 0, 0), lines=[(0.2, -1, 0.2, 1)]) == 0.0
    assert clearance([], [(-5, 0, 5, 0)], (0, 0, 0)) == -0.325
    assert clearance([(0.1, 0.1, 0.3)], [], (0, 0, 0)) == pytest.approx(-0.225 - 0.3)


def test_a_robot_meets_its_own_world_only() -> None:
    circles, spans = np.array([(3.0, 0, 1), (2.0, 0, 1)]), np.array([[0, 1], [1, 2]])
    lines, none, ahead = np.zeros((0, 4)), np.array([0, 0]), np.array([1.0, 0, 0])
    for span, expected in zip(spans, (1.55, 0.55), strict=True):
        found = field.free_way(
            np.zeros(3), np.array(OUTLINE), ahead, 10.0, 0.0, 0.0, circles, span, lines, none
        )
        assert found == pytest.approx(expected, abs=1e-3)


# ── oracles: dense points of the outline and of the path ────────────────────────────────────────

places = st.floats(-3, 3)
circle_lists = st.lists(st.tuples(places, places, st.floats(0.005, 0.5)), max_size=3)
line_lists = st.lists(st.tuples(places, places, places, places), max_size=3)
poses = st.tuples(places, places, st.floats(-math.pi, math.pi))
speeds = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(-2, 2))
STEP = 0.01


def rim(pose: Pose, outline: Pose) -> field.Floats:
    """Points of the outline, a step apart."""
    length, width, ahead = outline
    sides = [np.linspace(-half, half, math.ceil(2 * half / STEP) + 1) for half in (length, width)]
    ends = [(x, y) for x in (-length, length) for y in sides[1]]
    points = np.array([*ends, *((x, y) for y in (-width, width) for x in sides[0])])
    points[:, 0] += ahead
    turn = np.array(
        [[math.cos(pose[2]), -math.sin(pose[2])], [math.sin(pose[2]), math.cos(pose[2])]]
    )
    turned: field.Floats = points @ turn.T + np.array(pose[:2])
    return turned


def plain_clearance(circles: list[Circle], lines: list[Line], pose: Pose, outline: Pose) -> float:
    """Between points of the outline and points of the lines; too large by a step at most. Without
    a sign: overlaps are not distinguished."""
    points, least = rim(pose, outline), math.inf
    for x, y, radius in circles:
        least = min(least, *(np.hypot(points[:, 0] - x, points[:, 1] - y) - radius))
    for x1, y1, x2, y2 in lines:
        count = math.ceil(math.dist((x1, y1), (x2, y2)) / STEP) + 1
        along = np.linspace((x1, y1), (x2, y2), count)
        least = min(least, np.min(np.hypot(*(points[:, None, :] - along[None, :, :]).T)))
    return least


@settings(max_examples=100, deadline=None)
@given(circle_lists, line_lists, poses, st.sampled_from([OUTLINE, SHIFTED]))
def test_the_clearance_is_that_of_dense_points(
    circles: list[Circle], lines: list[Line], pose: Pose, outline: Pose
) -> None:
    found = clearance(circles, lines, pose, outline)
    if found > 0.0:
        assert not overlap(circles, lines, pose, outline)
        assert found == pytest.approx(
            plain_clearance(circles, lines, pose, outline), abs=1.5 * STEP
        )
    elif found < -2 * STEP:
        assert overlap(circles, lines, pose, outline)


def overlap(circles: list[Circle], lines: list[Line], pose: Pose, outline: Pose) -> bool:
    """A circle or a point of a line is in the outline, or a point of the outline in a circle."""
    points = rim(pose, outline)
    return any(
        _inside(pose, outline, x, y) or np.min(np.hypot(points[:, 0] - x, points[:, 1] - y)) < r
        for x, y, r in circles
    ) or any(
        _inside(pose, outline, *point)
        for x1, y1, x2, y2 in lines
        for point in np.linspace((x1, y1), (x2, y2), 500)
    )


def _inside(pose: Pose, outline: Pose, x: float, y: float) -> bool:
    dx, dy = x - pose[0], y - pose[1]
    along = dx * math.cos(pose[2]) + dy * math.sin(pose[2]) - outline[2]
    across = dy * math.cos(pose[2]) - dx * math.sin(pose[2])
    return abs(along) <= outline[0] and abs(across) <= outline[1]


@settings(max_examples=60, deadline=None)
@example([(1.0, 0.33, 0.005)], [], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), OUTLINE)
@example([(0.0, 0.0, 0.3)], [], (0.0, 0.0, 0.0), (1e-310, 0.0, 0.0), OUTLINE)
@example([], [(-1.0, 0.0, 1.0, 0.0)], (0.0, 0.0, 0.0), (1e-310, 0.0, 0.0), OUTLINE)
@given(circle_lists, line_lists, poses, speeds, st.sampled_from([OUTLINE, SHIFTED]))
def test_the_way_is_free_as_far_as_it_says_and_ends_at_something(
    circles: list[Circle], lines: list[Line], pose: Pose, speed: Pose, outline: Pose
) -> None:
    """Dense poses of the path: clear before the end of the free travel, something touches there."""
    start = clearance(circles, lines, pose, outline)
    found = free(speed, circles, lines, pose=pose, outline=outline)
    if start <= 0.0:
        assert found == 0.0 or (found == FREE and not any(speed))
        return
    metres = pace(*speed, math.hypot(outline[0] + outline[2], outline[1]))
    if metres < 1e-3:
        return
    horizon = 10.0 / metres
    if speed[:2] == (0.0, 0.0):
        horizon = min(horizon, 2 * math.pi / abs(speed[2]))
    last = min(found / metres, horizon)
    for seconds in np.linspace(0.0, last, 200, endpoint=False):
        at = moved_on_arc(*pose, *(value * seconds for value in speed))
        assert clearance(circles, lines, at, outline) > 0.0
    if found < FREE:
        end = moved_on_arc(*pose, *(value * last for value in speed))
        assert -1e-9 <= clearance(circles, lines, end, outline) <= 2e-2


@pytest.mark.parametrize("count", [3, 40])
def test_while_a_certificate_holds_nothing_is_in_the_way(count: int) -> None:
    """`free_way` is the oracle: along straight ways, circles and turns on the spot, with jumps."""
    draw = np.random.default_rng(count)
    round_ones = np.column_stack([draw.uniform(-9, 9, (count, 2)), draw.uniform(0.005, 0.4, count)])
    begins = draw.uniform(-9, 9, (count, 2))
    straight = np.hstack([begins, begins + draw.uniform(-2, 2, (count, 2))])
    span, outline = np.array([0, count]), np.array(OUTLINE)
    world, kept = (round_ones, span, straight, span), {False: 0, True: 0}
    for _ in range(120):
        spot, near = np.full(3, -1.0), np.zeros(2 + field.NEAR, dtype=np.int64)
        certificate, pose = np.zeros(field.CERTIFICATE), np.zeros(3)
        pose[:2] = draw.uniform(-8, 8, 2)
        speeds = np.array([draw.uniform(-1, 1), 0.0, draw.choice([0.0, 0.01, 0.3, 1.0])])
        speeds[0] *= draw.choice([0.0, 1.0, 1.0])
        longest = draw.uniform(0.8, 3.0)
        for step in range(150):
            pose[:] = moved_on_arc(*pose.tolist(), *(0.02 * speeds).tolist())
            pose[2] = wrapped(pose[2])
            if step % 40 == 30:
                pose[:] += draw.uniform(-0.2, 0.2, 3)
            if not field.still_free(pose, speeds, certificate):
                field.watched_way(pose, outline, speeds, longest, *world, spot, near, certificate)
                continue
            kept[bool(certificate[field.ROUND])] += 1
            way = field.free_way(
                pose, outline, speeds, longest, field.MARGIN, field.WIDENING, *world
            )
            assert way == math.inf
        assert not field.still_free(pose, speeds + 1e-3, certificate)
    assert min(kept.values()) > 500


@pytest.mark.parametrize("count", [0, 3, 40, 300], ids=["empty", "few", "many", "too many to keep"])
def test_the_obstacles_near_a_robot_give_the_same_as_all_of_them(count: int) -> None:
    """`free_way` is the oracle of watched_way, to the last bit: along a drive through a world, with
    jumps, turns on the spot, very small speeds and standing."""
    draw = np.random.default_rng(count)
    round_ones = np.column_stack([draw.uniform(-9, 9, (count, 2)), draw.uniform(0.005, 0.4, count)])
    begins = draw.uniform(-9, 9, (count, 2))
    straight = np.hstack([begins, begins + draw.uniform(-2, 2, (count, 2))])
    span, outline = np.array([0, count]), np.array(OUTLINE)
    spot, near = np.full(3, -1.0), np.zeros(2 + field.NEAR, dtype=np.int64)
    certificate, pose, met = np.zeros(field.CERTIFICATE), np.zeros(3), 0
    for step in range(4000):
        speeds = draw.uniform(-1, 1, 3) * (0.8, step % 2, 1.0)
        if step % 3 == 0:
            speeds[2] *= 10.0 ** draw.uniform(-4, 0)
        if step % 50 == 7:
            speeds *= 10.0 ** draw.uniform(-320, -3)
        if step % 50 == 11:
            speeds[:2] = 0.0
        if step % 100 == 13:
            speeds[:] = 0.0
        longest = draw.uniform(0.5, 3.0 if step % 5 else 12.0)
        found = field.watched_way(
            pose,
            outline,
            speeds,
            longest,
            round_ones,
            span,
            straight,
            span,
            spot,
            near,
            certificate,
        )
        assert found == field.free_way(
            pose,
            outline,
            speeds,
            longest,
            field.MARGIN,
            field.WIDENING,
            round_ones,
            span,
            straight,
            span,
        )
        met += found < FREE
        pose[:] = moved_on_arc(*pose.tolist(), *(0.3 * draw.uniform(-1, 1, 3)).tolist())
        if step % 400 == 399:
            pose[:2] = draw.uniform(-8, 8, 2)
    assert (met > 100) == (count > 0)
