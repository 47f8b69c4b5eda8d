"""Lidar: every ray against the geometry that it should meet."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.robots.mobile.sensors import scan, to_circle, to_line

NOTHING = np.zeros((0, 4))


def distances(
    eye: tuple[float, float, float],
    angles: list[float],
    circles: list[tuple[float, float, float]] = [],  # noqa: B006 - never changed
    lines: list[tuple[float, float, float, float]] = [],  # noqa: B006 - never changed
    longest: float = 10.0,
) -> list[float]:
    found = np.zeros((1, len(angles)))
    scan(
        np.array([eye]),
        np.array(angles),
        longest,
        np.array(circles, dtype=float).reshape(-1, 3),
        np.array([[0, len(circles)]]),
        np.array(lines, dtype=float).reshape(-1, 4),
        np.array([[0, len(lines)]]),
        found,
    )
    return [float(value) for value in found[0]]


def test_a_circle_ahead_is_met_at_its_edge() -> None:
    found = distances((0, 0, 0), [0, math.pi / 2, math.pi], [(5, 0, 0.3)])
    assert found == pytest.approx([4.7, 10.0, 10.0])


def test_rays_turn_with_the_robot() -> None:
    assert distances((1, 2, math.pi / 2), [0.0], [(1, 5, 1)]) == [pytest.approx(2.0)]


def test_a_wall_is_met_between_its_ends_only() -> None:
    wall = (2.0, -1.0, 2.0, 1.0)
    assert distances((0, 0, 0), [0.0], lines=[wall]) == [pytest.approx(2.0)]
    assert distances((0, 3, 0), [0.0], lines=[wall]) == [10.0]
    assert distances((4, 0, 0), [0.0], lines=[wall]) == [10.0], "it is behind"


def test_inside_a_circle_every_distance_is_zero() -> None:
    assert distances((0, 0, 0), [0.0, 1.0, 3.0], [(0.1, 0, 0.5)]) == [0.0, 0.0, 0.0]


def test_a_robot_sees_its_own_world_only() -> None:
    eyes = np.zeros((2, 3))
    found = np.zeros((2, 1))
    circles = np.array([(5.0, 0.0, 1.0), (3.0, 0.0, 1.0)])
    spans = np.array([[0, 1], [1, 2]])
    none = np.zeros((2, 2), dtype=np.int64)
    scan(eyes, np.zeros(1), 10.0, circles, spans, NOTHING, none, found)
    assert found[:, 0] == pytest.approx([4.0, 2.0])


# ── the oracle: walk along the ray ──────────────────────────────────────────────────────────────

places = st.floats(-4, 4)


def walked(is_inside: Callable[[float, float], bool], angle: float) -> float:
    """The first distance in steps of a millimetre at which a point of the ray is in the shape."""
    steps = np.arange(0.0, 8.0, 0.001)
    hits = [s for s in steps if is_inside(s * math.cos(angle), s * math.sin(angle))]
    return hits[0] if hits else math.inf


@settings(max_examples=30, deadline=None)
@given(places, places, st.floats(0.2, 2), st.floats(-math.pi, math.pi))
def test_a_circle_is_where_walking_along_the_ray_finds_it(
    x: float, y: float, radius: float, angle: float
) -> None:
    expected = walked(lambda a, b: math.hypot(a - x, b - y) <= radius, angle)
    found = to_circle(x, y, radius, math.cos(angle), math.sin(angle))
    if math.isfinite(expected):
        assert found == pytest.approx(expected, abs=0.002)
    else:
        assert found > 7.9 or _grazes(x, y, radius, angle)


def _grazes(x: float, y: float, radius: float, angle: float) -> bool:
    """The ray cuts off less than a step of the walk."""
    beside = abs(x * math.sin(angle) - y * math.cos(angle))
    return math.sqrt(max(radius**2 - beside**2, 0.0)) < 0.001


@settings(max_examples=100, deadline=None)
@given(places, places, places, places, st.floats(-math.pi, math.pi))
def test_a_line_is_met_at_a_point_of_both_the_line_and_the_ray(
    x1: float, y1: float, x2: float, y2: float, angle: float
) -> None:
    found = to_line(x1, y1, x2, y2, math.cos(angle), math.sin(angle))
    side1 = x1 * math.sin(angle) - y1 * math.cos(angle)
    side2 = x2 * math.sin(angle) - y2 * math.cos(angle)
    if math.isfinite(found):
        x, y = found * math.cos(angle), found * math.sin(angle)
        length = math.dist((x1, y1), (x2, y2))
        assert math.dist((x, y), (x1, y1)) + math.dist((x, y), (x2, y2)) == pytest.approx(
            length, rel=1e-6, abs=1e-6
        )
    elif side1 * side2 < -1e-9:
        share = side1 / (side1 - side2)
        x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
        assert x * math.cos(angle) + y * math.sin(angle) <= 1e-9, "the line is behind"
