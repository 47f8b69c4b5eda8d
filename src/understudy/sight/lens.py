"""A pinhole camera with distortion: points in front of it ↔ pixels.

The camera looks along z, x to the right, y down. Distortion is k1 k2 p1 p2 k3, as OpenCV has it:

    x' = x·(1 + k1·r² + k2·r⁴ + k3·r⁶) + 2·p1·x·y + p2·(r² + 2·x²)
    y' = y·(1 + k1·r² + k2·r⁴ + k3·r⁶) + p1·(r² + 2·y²) + 2·p2·x·y
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.space.transform import Array

NO_DISTORTION = (0.0, 0.0, 0.0, 0.0, 0.0)
UNDISTORT_STEPS = 30
"""Newton needs 3 to 5 for usual lenses; it ends early."""
UNDISTORTED = 1e-14


@dataclass(frozen=True)
class Lens:
    """Pixels; the centre of the first pixel is (0, 0)."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, float, float, float, float] = NO_DISTORTION

    @property
    def matrix(self) -> Array:
        """K, 3×3."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def pixels(self, points: Array) -> Array:
        """(…, 3) points in the frame of the camera, in front of it → (…, 2) pixels."""
        spots = points[..., :2] / points[..., 2:3]
        return self.distorted(spots) * (self.fx, self.fy) + (self.cx, self.cy)

    def sees(self, point: Array) -> bool:
        """Whether a point in the frame of the camera is in the picture."""
        x, y, z = point.tolist()
        if z <= 0.0 or math.hypot(x, y) >= z * self._widest:
            return False
        u, v = self.pixels(point).tolist()
        return bool(0.0 <= u < self.width and 0.0 <= v < self.height)

    @cached_property
    def _widest(self) -> float:
        """The radius at z = 1 up to which the radial distortion grows. Beyond it the polynomial
        would show a point at the side of the camera in the middle of the picture."""
        k1, k2, _, _, k3 = self.distortion
        turns = np.roots([7.0 * k3, 5.0 * k2, 3.0 * k1, 1.0])  # of r², where the slope is 0
        real = turns.real[(np.abs(turns.imag) < UNDISTORTED) & (turns.real > 0.0)]
        return math.sqrt(real.min(initial=math.inf))

    def rays(self, pixels: Array) -> Array:
        """(…, 2) pixels → (…, 2): x and y of the ray at z = 1."""
        return self.undistorted((pixels - (self.cx, self.cy)) / (self.fx, self.fy))

    def distorted(self, spots: Array) -> Array:
        """Points at z = 1 → where the lens shows them."""
        k1, k2, p1, p2, k3 = self.distortion
        x, y = spots[..., 0], spots[..., 1]
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        return np.stack(
            [
                x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
                y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
            ],
            axis=-1,
        )

    def undistorted(self, shown: Array) -> Array:
        """The inverse of `distorted`, by Newton's method."""
        if not any(self.distortion):
            return np.array(shown, dtype=np.float64)
        found = np.array(shown, dtype=np.float64)
        for _ in range(UNDISTORT_STEPS):
            error = self.distorted(found) - shown
            found -= np.linalg.solve(self._slope(found), error[..., None])[..., 0]
            if np.abs(error).max(initial=0.0) < UNDISTORTED:
                break
        return found

    def pixel_slopes(self, points: Array) -> Array:
        """(…, 2, 3): the derivative of `pixels`."""
        depth = points[..., 2]
        spots = points[..., :2] / depth[..., None]
        flat = np.zeros((*depth.shape, 2, 3))
        flat[..., 0, 0] = flat[..., 1, 1] = 1.0 / depth
        flat[..., :, 2] = -spots / depth[..., None]
        return np.asarray(np.array([[self.fx], [self.fy]]) * (self._slope(spots) @ flat))

    def _slope(self, spots: Array) -> Array:
        """(…, 2, 2): the derivative of `distorted`."""
        k1, k2, p1, p2, k3 = self.distortion
        x, y = spots[..., 0], spots[..., 1]
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        growth = 2.0 * (k1 + r2 * (2.0 * k2 + r2 * 3.0 * k3))
        mixed = x * y * growth + 2.0 * (p1 * x + p2 * y)
        xx = radial + x * x * growth + 2.0 * p1 * y + 6.0 * p2 * x
        yy = radial + y * y * growth + 6.0 * p1 * y + 2.0 * p2 * x
        return np.stack([np.stack([xx, mixed], -1), np.stack([mixed, yy], -1)], -2)
