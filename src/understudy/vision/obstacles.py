"""What the depth image shows of the surroundings: a thinned cloud for the check of obstacles.

The job that asks knows what stands in the cell; the vision process does not. It reports points
of every surface that it sees, and the job looks for those that it cannot explain.
"""

import numpy as np

from understudy.sight.cloud import cloud, thinned
from understudy.space.transform import Array
from understudy.units import MM
from understudy.vision.interface import DetectionError, View

MOST_POINTS = 4000
"""Of a reply; with more the cubes become larger."""
CELL = 0.008
"""Side of the cubes of which one point is reported, metres."""
FEWEST = 2
"""Pixels in a cube; fewer are noise at the border of an object."""
STRIDE_SIDE = 320
"""Larger pictures are read with a stride."""
GROWTH = 1.25


def obstacle_points(view: View) -> Array:
    """(n, 3): points in the frame of the camera, metres; at most MOST_POINTS."""
    depth = view.frame.depth
    if depth is None:
        raise DetectionError("the check of obstacles needs a camera with a depth image")
    step = max(1, max(depth.shape) // STRIDE_SIDE)
    points = cloud(depth, view.lens)[::step, ::step].reshape(-1, 3)
    points = points[np.isfinite(points[:, 2])]
    cell = CELL
    found = thinned(points, cell, fewest=FEWEST)
    while len(found) > MOST_POINTS:
        cell *= GROWTH
        found = thinned(points, cell, fewest=FEWEST)
    return found


def points_mm(points: Array) -> list[list[float]]:
    """The points as a reply has them: millimetres, to 1/100."""
    rows: list[list[float]] = np.round(points / MM, 2).tolist()
    return rows
