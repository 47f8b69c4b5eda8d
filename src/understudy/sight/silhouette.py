"""Outlines of boxes and cylinders as a camera sees them, and the poses that fit to edges.

Without distortion, at z = 1 in front of the camera, the outline of a convex body is the convex
hull of its projected corners. It holds edges of the top, of the foot and of the sides alike, each
at its own height: a pose that fits to it has no parallax error. Needs the extra `vision`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from understudy.sight.lens import Lens
from understudy.space.transform import Array, rotation_about

Shape = Literal["box", "cylinder"]
Bytes = NDArray[np.uint8]
SUBPIXEL_BITS = 8
SUBPIXELS = float(1 << SUBPIXEL_BITS)
FARTHEST = float(1 << 24)
"""Of a corner that is drawn, in parts of a pixel."""
RIM_POINTS = 72
"""Corners of the polygon that stands for a circle."""
FIT_STEPS = 20
DAMPINGS = 5
"""Larger dampings that are tried before a fit ends."""
FITTED = 1e-7
"""Ends a fit: the largest step, in metres and radians."""
STEP = 1e-7
"""Step of the numeric derivatives, metres and radians."""
OUTLIER_SCALE = 2.0
"""Residuals beyond this many standard deviations have less weight."""


@dataclass(frozen=True)
class Solid:
    """A box (`size`: along x, y and z) or a cylinder along z (`size`: diameter, diameter, height);
    its origin is in its middle. Metres."""

    shape: Shape
    size: tuple[float, float, float]

    @property
    def corners(self) -> Array:
        """(n, 3): points whose convex hull the solid is."""
        x, y, z = (0.5 * each for each in self.size)
        if self.shape == "box":
            signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
            return np.asarray(signs * (x, y, z))
        turns = np.linspace(0.0, 2.0 * np.pi, RIM_POINTS, endpoint=False)
        # between the inner and the outer polygon: the mean radius is that of the circle
        radius = x * 2.0 / (1.0 + np.cos(np.pi / RIM_POINTS))
        rim = radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        return np.vstack([np.column_stack([rim, np.full(len(rim), h)]) for h in (-z, z)])

    def distances(self, points: Array) -> Array:
        """(n,): of points in the frame of the solid to its surface; negative inside."""
        x, y, z = (0.5 * each for each in self.size)
        if self.shape == "box":
            off = np.abs(points) - (x, y, z)
        else:
            off = np.stack([np.hypot(points[:, 0], points[:, 1]) - x, np.abs(points[:, 2]) - z], 1)
        outside = np.sqrt((np.maximum(off, 0.0) ** 2).sum(axis=1))
        return np.asarray(outside + np.minimum(off.max(axis=1), 0.0))

    def entered(self, points: Array, place: Array) -> Array:
        """(n,): the share of the way from the camera to each point at which it enters the box
        around the solid at ``place`` in the frame of the camera; inf if it does not."""
        eye = -place[:3, 3] @ place[:3, :3]
        ways = points @ place[:3, :3]
        half = 0.5 * np.array(self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, two = (-half - eye) / ways, (half - eye) / ways
        enters, leaves = np.minimum(one, two).max(axis=1), np.maximum(one, two).min(axis=1)
        return np.asarray(np.where(enters <= leaves, enters, np.inf))


def outline(corners: Array) -> Array:
    """(n, 2): the convex hull at z = 1 of points in front of the camera."""
    flat = corners[:, :2] / corners[:, 2:3]
    order = cv2.convexHull(np.asarray(flat, dtype=np.float32), returnPoints=False)
    return np.asarray(flat[order[:, 0]])


def distances(polygon: Array, points: Array) -> Array:
    """Distance of each point to the border of a convex polygon; negative inside. Outside, next to
    a corner, it is the distance to the line through an edge, which is a little less."""
    way = np.roll(polygon, -1, axis=0) - polygon
    length = np.hypot(way[:, 0], way[:, 1])
    kept = length > 0.0
    out = np.column_stack([way[kept, 1], -way[kept, 0]]) / length[kept, None]
    out *= np.sign(_area(polygon)) or 1.0
    return np.asarray((points @ out.T - (polygon[kept] * out).sum(axis=1)).max(axis=1))


def _area(polygon: Array) -> float:
    x, y = polygon[:, 0], polygon[:, 1]
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


@dataclass(frozen=True)
class Fit:
    """The result of a least-squares fit.

    `values`: the fitted parameters; `residuals`: at them, unweighted.
    """

    values: Array
    residuals: Array


def fit(
    residuals: Callable[[Array], Array], start: Array, *, least: float, fitted: float = FITTED
) -> Fit:
    """Damped least squares; far residuals have less weight (Cauchy). ``least``: the
    smallest standard deviation that is assumed; ``fitted``: ends the fit."""
    values = np.array(start, dtype=np.float64)
    found, damping = residuals(values), 1e-6
    for _ in range(FIT_STEPS):
        slope = np.empty((len(found), len(values)))
        for k in range(len(values)):
            by = np.zeros(len(values))
            by[k] = STEP
            slope[:, k] = (residuals(values + by) - found) / STEP
        spread = max(1.4826 * float(np.median(np.abs(found))), least) * OUTLIER_SCALE
        weight = 1.0 / (1.0 + (found / spread) ** 2)
        normal = slope.T @ (slope * weight[:, None])
        scale, right = np.diag(normal), -slope.T @ (found * weight)
        for _ in range(DAMPINGS):
            step = np.linalg.lstsq(normal + damping * np.diag(scale), right, rcond=None)[0]
            there = residuals(values + step)
            if _cost(there, spread) <= _cost(found, spread):
                break
            damping = max(damping, 1e-5) * 30.0
        else:
            break
        values, found, damping = values + step, there, damping / 30.0
        if np.abs(step).max() < fitted:
            break
    return Fit(values, found)


def _cost(residuals: Array, spread: float) -> float:
    return float(np.log1p((residuals / spread) ** 2).sum())


def standing(values: Sequence[float] | Array, height: float) -> Array:
    """4×4: a solid at x, y and yaw whose middle is at this height."""
    x, y, yaw = (float(each) for each in values)
    out = np.eye(4)
    out[:3, :3] = rotation_about((0.0, 0.0, 1.0), yaw)
    out[:3, 3] = x, y, height
    return out


def on_plane(rays: Array, camera: Array, height: float) -> Array:
    """(n, 2): where rays (x and y at z = 1) of a camera at this place meet the level plane at this
    height: the exact compensation of parallax. NaN for rays that do not meet it."""
    ways = np.column_stack([rays, np.ones(len(rays))]) @ camera[:3, :3].T
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (height - camera[2, 3]) / ways[:, 2]
    met = camera[:2, 3] + far[:, None] * ways[:, :2]
    return np.asarray(np.where((far > 0.0)[:, None], met, np.nan))


def parallax_error(at: Array, higher: float | Array, reference: float) -> Array:
    """X_err = X · ΔZ / Z_ref, of the design document. ``at``: X and Y of a point as a camera that
    looks straight at the reference plane measures them there, from the principal point and without
    distortion; ``higher``: how much nearer to the camera the point is; ``reference``: distance of
    the plane. X - X_err is where the point is."""
    return np.asarray(at * (higher / reference))


def drawn(polygon: Array, window: tuple[int, int], corner: tuple[int, int]) -> Bytes:
    """A mask of height × width = ``window`` whose first pixel is x, y = ``corner``: 1 inside a
    convex polygon of pixels."""
    mask = np.zeros(window, dtype=np.uint8)
    spots = np.clip(np.round((polygon - corner) * SUBPIXELS), -FARTHEST, FARTHEST)
    cv2.fillConvexPoly(mask, spots.astype(np.int32), 1, lineType=cv2.LINE_8, shift=SUBPIXEL_BITS)
    return mask


def common_share(polygon: Array, mask: Bytes, corner: tuple[int, int]) -> float:
    """Area that a polygon of pixels and a mask have in common, as a share of that of both."""
    inside = drawn(polygon, mask.shape, corner)
    both = float(np.count_nonzero(inside & mask))
    whole = abs(_area(polygon))  # of a polygon that leaves the mask more than what is drawn of it
    union = max(whole, float(np.count_nonzero(inside))) + float(np.count_nonzero(mask)) - both
    return both / max(union, 1.0)


def evenly(rows: Array, most: int) -> Array:
    """Chooses rows evenly, at most this many."""
    return rows[:: max(1, -(-len(rows) // most))]


def picture_points(lens: Lens, spots: Array) -> Array:
    """Points at z = 1 → pixels."""
    return np.asarray(lens.distorted(spots) * (lens.fx, lens.fy) + (lens.cx, lens.cy))
