"""Convex shapes in a plane."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.space.flat import hull


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=30))
def test_all_points_are_inside_their_hull(points: list[tuple[float, float]]) -> None:
    corners = hull(points)
    assert set(corners) <= {(x, y) for x, y in points}
    for (x1, y1), (x2, y2) in zip(corners, (*corners[1:], corners[0]), strict=True):
        for x, y in points:
            assert (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= -1e-9
