"""Vectorised trigonometry agrees with the C library."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.space.kinematics.chain import arctan2, sincos

anything = st.floats(-1e6, 1e6)


def plain(y: float, x: float) -> float:
    """The oracle of arctan2."""
    return math.atan2(y, x)


@given(anything, anything)
def test_agrees_with_the_c_library(y: float, x: float) -> None:
    got = np.empty(1)
    arctan2(np.array([y]), np.array([x]), got)
    same = plain(y + 0.0, x + 0.0)  # adding zero drops the sign of a negative zero
    assert got[0] == pytest.approx(same, rel=1e-15, abs=1e-300)


def test_all_four_quadrants() -> None:
    angles = np.linspace(-math.pi, math.pi, 20_001)[1:]
    y, x, got = np.sin(angles), np.cos(angles), np.empty(len(angles))
    arctan2(y, x, got)
    expected = [plain(a, b) for a, b in zip(y, x, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=5e-16, atol=0)


def plain_sincos(angle: float) -> tuple[float, float]:
    """The oracle of sincos."""
    return math.sin(angle), math.cos(angle)


@given(st.lists(st.floats(-6000.0, 6000.0), min_size=1, max_size=9))
def test_sines_and_cosines(angles: list[float]) -> None:
    sin, cos = np.empty(len(angles)), np.empty(len(angles))
    sincos(np.array(angles), sin, cos)
    expected = np.array([plain_sincos(angle) for angle in angles])
    np.testing.assert_allclose(np.column_stack([sin, cos]), expected, rtol=0, atol=1e-15)
    if abs(angles[0]) < 0.5:
        assert sin[0] == pytest.approx(math.sin(angles[0]), rel=1e-15)
