"""Points of a depth image, in the frame of the camera."""

import numpy as np
from numpy.typing import NDArray

from understudy.sight.lens import Lens
from understudy.sight.render import lens_rays
from understudy.space.transform import Array


def cloud(depth: NDArray[np.float32], lens: Lens) -> Array:
    """(height, width, 3): the point of each pixel in metres; NaN where nothing was seen."""
    x, y = lens_rays(lens, 1)
    far = np.where((depth > 0.0) & np.isfinite(depth), depth, np.nan).astype(np.float64)
    return np.stack([x * far, y * far, far], axis=-1)


def thinned(points: Array, cell: float, *, fewest: int = 1) -> Array:
    """One of the points (n, 3) in each cube of this side: the one nearest to the camera. Cubes
    with fewer points than ``fewest`` have none."""
    if not len(points):
        return points
    cubes = np.floor(points / cell).astype(np.int64)
    cubes -= cubes.min(axis=0)
    spans = cubes.max(axis=0) + 1
    keys = (cubes[:, 0] * spans[1] + cubes[:, 1]) * spans[2] + cubes[:, 2]
    order = np.lexsort((points[:, 2], keys))
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    counts = np.diff(first, append=len(keys))
    return np.asarray(points[order[first[counts >= fewest]]])
