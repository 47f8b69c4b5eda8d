"""Step moves, TCP by four points, base frame by three points: recovered from generated poses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import Refused
from understudy.space.kinematics.teach import (
    TipCalibration,
    frame_by_three,
    moved_frame,
    tcp_by_points,
)
from understudy.space.pose import Pose
from understudy.space.transform import Array, is_rigid, matrix, rotation

lengths = st.floats(-0.5, 0.5)
angles = st.floats(-math.pi, math.pi)
poses = st.builds(Pose, lengths, lengths, lengths, angles, angles, angles)
vectors = st.tuples(lengths, lengths, lengths).map(np.array)
TURNS = ((0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.6, 0.0), (-0.3, 0.2, 0.9))


def touching(point: Array, offset: Array, turns: tuple[tuple[float, ...], ...] = TURNS) -> Array:
    """Frames of a flange whose tip is on the point in each of them."""
    flanges = np.tile(np.eye(4), (len(turns), 1, 1))
    for flange, turn in zip(flanges, turns, strict=True):
        flange[:3, :3] = rotation(*turn)
        flange[:3, 3] = point - flange[:3, :3] @ offset
    return flanges


# ── step moves ──


@given(poses, st.integers(0, 2), st.floats(-0.1, 0.1))
def test_a_step_along_a_base_axis_changes_that_coordinate(
    here: Pose, axis: int, way: float
) -> None:
    frame = matrix(here)
    there = moved_frame(frame, axis, way, in_tool=False)
    expected = frame[:3, 3].copy()
    expected[axis] += way
    assert np.allclose(there[:3, 3], expected)
    assert np.allclose(there[:3, :3], frame[:3, :3])


@given(poses, st.integers(0, 5), st.floats(-0.1, 0.1))
def test_a_step_in_the_tool_frame_does_not_depend_on_the_base(
    here: Pose, axis: int, amount: float
) -> None:
    alone = moved_frame(np.eye(4), axis, amount, in_tool=True)
    assert np.allclose(moved_frame(matrix(here), axis, amount, in_tool=True), matrix(here) @ alone)


@given(poses, st.integers(0, 5), st.floats(-0.1, 0.1), st.booleans())
def test_a_step_back_returns_to_the_start(
    here: Pose, axis: int, amount: float, in_tool: bool
) -> None:
    there = moved_frame(matrix(here), axis, amount, in_tool=in_tool)
    assert is_rigid(there)
    back = moved_frame(there, axis, -amount, in_tool=in_tool)
    assert np.allclose(back, matrix(here))


# ── TCP ──


@given(vectors, vectors)
def test_the_tcp_is_recovered(point: Array, offset: Array) -> None:
    found = tcp_by_points(touching(point, offset))
    assert isinstance(found, TipCalibration)
    assert np.allclose(found.offset, offset, atol=1e-9)
    assert np.allclose(found.point, point, atol=1e-9)
    assert found.residual < 1e-9


@settings(max_examples=30)
@given(vectors, vectors, st.floats(1e-4, 1e-3))
def test_a_wrong_touch_shows_in_the_residual(point: Array, offset: Array, miss: float) -> None:
    flanges = touching(point, offset)
    flanges[2, 0, 3] += miss
    found = tcp_by_points(flanges)
    assert isinstance(found, TipCalibration)
    assert 0.01 * miss < found.residual <= miss


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        (TURNS[:3], "four points are needed, got 3"),
        ((TURNS[0],) * 4, "rotate the tool about two axes"),
        (((0.0, 0.0, 0.0), (0.0, 0.0, 0.4), (0.0, 0.0, 0.8), (0.0, 0.0, 1.2)), "about two axes"),
    ],
    ids=["three points", "never turned", "turned about one axis"],
)
def test_points_that_do_not_determine_the_tcp(
    turns: tuple[tuple[float, ...], ...], says: str
) -> None:
    refused = tcp_by_points(touching(np.zeros(3), np.array([0.0, 0.0, 0.15]), turns))
    assert isinstance(refused, Refused)
    assert says in refused.reason


# ── base frame ──


@given(poses, st.floats(0.01, 0.5), st.floats(0.02, 0.5), st.floats(-0.5, 0.5))
def test_the_frame_is_recovered_for_any_third_point(
    at: Pose, along: float, aside: float, shift: float
) -> None:
    frame = matrix(at)
    origin, x, y = frame[:3, 3], frame[:3, 0], frame[:3, 1]
    found = frame_by_three(origin, origin + along * x, origin + aside * y + shift * x)
    assert not isinstance(found, Refused)
    assert np.allclose(found, frame, atol=1e-6)


@pytest.mark.parametrize(
    ("on_x", "on_plane", "says"),
    [
        ((0.0, 0.0, 0.0005), (0.0, 0.1, 0.0), "less than 1 mm apart"),
        ((0.1, 0.0, 0.0), (0.0, 0.0, 0.0), "less than 1 mm apart"),
        ((0.1, 0.0, 0.0), (0.2, 0.001, 0.0), "on one line"),
    ],
)
def test_points_that_do_not_determine_a_frame(
    on_x: tuple[float, ...], on_plane: tuple[float, ...], says: str
) -> None:
    refused = frame_by_three(np.zeros(3), np.array(on_x), np.array(on_plane))
    assert isinstance(refused, Refused)
    assert says in refused.reason
