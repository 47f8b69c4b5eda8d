"""Smooth surfaces in a cloud of points."""

import numpy as np
import pytest

from understudy.sight.surfaces import blurred, surfaces
from understudy.space.transform import Array

NOISE, WITHIN, BLUR = 2e-4, 3.6e-4, 5
FEWEST = 60


def roof(chance: np.random.Generator, tilt_deg: float) -> Array:
    """Two flat sides that meet in the middle, seen from 0.4 m with pixels of 0.6 mm, with noise."""
    y, x = np.mgrid[-20:21, -30:31] * 6e-4 / 0.4
    slope = np.tan(np.radians(tilt_deg))
    depth = 0.4 / (1.0 - slope * np.abs(x)) + chance.normal(0.0, NOISE, x.shape)
    return blurred(np.stack([x * depth, y * depth, depth], axis=2), BLUR)


def found_sides(seed: int, tilt_deg: float) -> int:
    cloud = roof(np.random.default_rng(seed), tilt_deg)
    return len([s for s in surfaces(cloud, within=WITHIN, fewest=FEWEST) if len(s.points) > 500])


@pytest.mark.parametrize("tilt_deg", [30.0, 45.0])
def test_noise_joins_no_two_sides_over_their_edge(tilt_deg: float) -> None:
    """A few pixels of an edge look smooth by chance."""
    assert {found_sides(seed, tilt_deg) for seed in range(40)} == {2}
