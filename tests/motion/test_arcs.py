"""Arcs divided into chords as in grblHAL."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.motion.arcs import chord_count, chords, swept_angle


def test_half_a_circle_has_the_contracts_number_of_chords() -> None:
    points = chords([0.0, 0.0], [10.0, 0.0], [5.0, 0.0], tolerance=0.002, turns=-1)
    assert len(points) == math.floor(0.5 * math.pi * 5 / math.sqrt(0.002 * (10 - 0.002)))
    assert points[-1].tolist() == [10.0, 0.0]
    assert points[len(points) // 2 - 1][1] > 4.9, "clockwise from the left goes over the top"


@given(st.floats(0.1, 100.0), st.floats(0.01, 6.2), st.sampled_from([1, -1]))
def test_ends_of_chords_lie_on_the_arc_within_tolerance(
    radius: float, angle: float, sense: int
) -> None:
    start = [radius, 0.0, 0.0]
    end = [radius * math.cos(angle), sense * radius * math.sin(angle), 1.0]
    points = chords(start, end, [0.0, 0.0], tolerance=0.002, turns=sense)
    assert np.hypot(points[:, 0], points[:, 1]) == pytest.approx(radius, rel=1e-9)
    assert np.diff(points[:, 2], prepend=0.0) == pytest.approx(1.0 / len(points))
    assert points[-1].tolist() == end
    sagitta = radius * (1 - math.cos(angle / len(points) / 2))
    if len(points) > 1:
        assert sagitta <= 0.002 * ((len(points) + 1) / len(points)) ** 2


def test_an_arc_back_to_its_start_is_a_whole_turn() -> None:
    assert swept_angle([1, 0], [1, 0], [0, 0], turns=1) == pytest.approx(math.tau)
    assert swept_angle([1, 0], [1, 0], [0, 0], turns=-1) == pytest.approx(-math.tau)


def test_additional_turns_are_divided_separately() -> None:
    """P3: two whole turns and then the arc, climbing at a constant rate."""
    points = chords([5.0, 0, 0], [0.0, 5.0, 9.0], [0, 0], tolerance=0.002, turns=3)
    whole, quarter = (chord_count(angle, 5.0, 0.002) for angle in (math.tau, math.tau / 4))
    assert len(points) == 2 * whole + quarter
    assert points[whole - 1] == pytest.approx([5.0, 0.0, 4.0])


def test_an_arc_smaller_than_the_tolerance_is_one_line() -> None:
    assert len(chords([0.0005, 0], [-0.0005, 0], [0, 0], tolerance=0.002)) == 1


def test_other_planes_use_their_own_axes() -> None:
    points = chords([0, 0, 0], [4, 0, 0], [0, 2], tolerance=0.01, plane=(2, 0), turns=1)
    assert np.hypot(points[:, 2], points[:, 0] - 2.0) == pytest.approx(2.0)
    assert not points[:, 1].any()
