"""A camera: a pinhole with distortion, points in front of it ↔ pixels, and where it is.

The camera looks along z, x to the right, y down. Distortion is k1 k2 p1 p2 k3, as OpenCV has it:

    x' = x·(1 + k1·r² + k2·r⁴ + k3·r⁶) + 2·p1·x·y + p2·(r² + 2·x²)
    y' = y·(1 + k1·r² + k2·r⁴ + k3·r⁶) + p1·(r² + 2·y²) + 2·p2·x·y
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from understudy.space.transform import Array

Mount = Literal["eye_in_hand", "eye_to_hand"]
Distortion = tuple[float, float, float, float, float]
NO_DISTORTION: Distortion = (0.0, 0.0, 0.0, 0.0, 0.0)
UNDISTORT_STEPS = 30
"""Newton needs 3 to 5 for usual lenses; it ends early."""
UNDISTORTED = 1e-14
SHORTEST_FOCUS = 1e-3
Focus = Annotated[float, Meta(ge=SHORTEST_FOCUS, le=1e6)]
Middle = Annotated[float, Meta(ge=-1e6, le=1e6)]
Coefficient = Annotated[float, Meta(ge=-1e6, le=1e6)]
Coefficients = Annotated[tuple[Coefficient, ...], Meta(max_length=len(NO_DISTORTION))]
"""Of a lens from outside: fx and fy, cx and cy in pixels, and the distortion."""


def five_coefficients(given: Sequence[float]) -> Distortion:
    """k1 k2 p1 p2 k3; those at the end that are not given are 0."""
    k1, k2, p1, p2, k3 = (*given, *NO_DISTORTION[len(given) :])
    return k1, k2, p1, p2, k3


@dataclass(frozen=True)
class Lens:
    """Pixels; the centre of the first pixel is (0, 0)."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: Distortion = NO_DISTORTION

    @property
    def matrix(self) -> Array:
        """K, 3×3."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def pixels(self, points: Array) -> Array:
        """(…, 3) points in the frame of the camera, in front of it → (…, 2) pixels."""
        spots = points[..., :2] / points[..., 2:3]
        return self.distorted(spots) * (self.fx, self.fy) + (self.cx, self.cy)

    def bounding_box(self, pixels: Array) -> tuple[int, int, int, int]:
        """x, y, width and height of the part of the picture that these pixels span."""
        spots = np.clip(pixels, 0, (self.width, self.height))
        low, high = np.floor(spots.min(axis=0)), np.ceil(spots.max(axis=0))
        x, y, w, h = (int(value) for value in (*low, *(high - low)))
        return x, y, w, h

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
        return np.stack(self._shown(spots[..., 0], spots[..., 1]), axis=-1)

    def undistorted(self, shown: Array) -> Array:
        """The inverse of `distorted`, by Newton's method."""
        if not any(self.distortion):
            return np.array(shown, dtype=np.float64)
        goal_x, goal_y = np.array(np.moveaxis(shown, -1, 0), dtype=np.float64)
        x, y = goal_x.copy(), goal_y.copy()
        for _ in range(UNDISTORT_STEPS):
            there_x, there_y = self._shown(x, y)
            dx, dy = there_x - goal_x, there_y - goal_y
            xx, mixed, yy = self._slopes(x, y)
            divisor = xx * yy - mixed * mixed
            x -= (yy * dx - mixed * dy) / divisor
            y -= (xx * dy - mixed * dx) / divisor
            if max(np.abs(dx).max(initial=0.0), np.abs(dy).max(initial=0.0)) < UNDISTORTED:
                break
        return np.stack([x, y], axis=-1)

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
        xx, mixed, yy = self._slopes(spots[..., 0], spots[..., 1])
        return np.stack([np.stack([xx, mixed], -1), np.stack([mixed, yy], -1)], -2)

    def _shown(self, x: Array, y: Array) -> tuple[Array, Array]:
        k1, k2, p1, p2, k3 = self.distortion
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        return (
            x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
            y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
        )

    def _slopes(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """dx'/dx, dx'/dy = dy'/dx, dy'/dy."""
        k1, k2, p1, p2, k3 = self.distortion
        r2 = x * x + y * y
        radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
        growth = 2.0 * (k1 + r2 * (2.0 * k2 + r2 * 3.0 * k3))
        mixed = x * y * growth + 2.0 * (p1 * x + p2 * y)
        xx = radial + x * x * growth + 2.0 * p1 * y + 6.0 * p2 * x
        yy = radial + y * y * growth + 6.0 * p1 * y + 2.0 * p2 * x
        return xx, mixed, yy


def resized(lens: Lens, width: int, height: int) -> Lens:
    """The same view in a picture of another size."""
    across, down = width / lens.width, height / lens.height
    middle = (lens.cx + 0.5) * across - 0.5, (lens.cy + 0.5) * down - 0.5
    return Lens(width, height, lens.fx * across, lens.fy * down, *middle, lens.distortion)


DEFAULT_LENS = Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0)


@dataclass(frozen=True)
class CameraModel:
    """A lens and its place: `at` is its pose on the flange (`on_flange`) or in the cell."""

    lens: Lens = DEFAULT_LENS
    at: Array = field(default_factory=lambda: np.eye(4))
    on_flange: bool = True

    @property
    def mount(self) -> Mount:
        return "eye_in_hand" if self.on_flange else "eye_to_hand"

    def place(self, flange: Array) -> Array:
        """The camera in the cell."""
        return np.asarray(flange @ self.at) if self.on_flange else self.at

    def scene_view(self) -> dict[str, Any]:
        """The place of the camera, and the corners of its picture at z = 1, as the scene draws
        them."""
        right, bottom = self.lens.width - 0.5, self.lens.height - 0.5
        corners = np.array([[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]])
        return {
            "on_flange": self.on_flange,
            "at": self.at.reshape(-1).tolist(),
            "corners": self.lens.rays(corners).tolist(),
        }

    def bbox(self, corners: Array) -> tuple[int, int, int, int]:
        """x, y, width and height of the part of the picture that these corners span."""
        front = corners[corners[:, 2] > 1e-6]
        return self.lens.bounding_box(self.lens.pixels(front))
