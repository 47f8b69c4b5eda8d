"""Pictures of a scene: exact rays through every pixel, onto flat faces.

Each pixel is the mean of a grid of rays, so that borders of patterns lie where they are to a
fraction of a pixel. The lens, with its distortion, is exact: a ray is the inverse of its formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.sight.faces import Color, Face
from understudy.sight.lens import Lens
from understudy.space.compiled import compiled
from understudy.space.transform import Array, inverse

Ray = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
NEAR = 1e-3
"""Nothing nearer to the camera is seen, metres."""
EDGE_POINTS = 9
"""Points of an edge whose pixels bound a face: with distortion an edge is a curve."""
BORDER = 2
"""Pixels around these bounds that are looked at too."""
SAMPLES = 3
"""Rays of a pixel along each direction: an odd number has one in the centre."""


@dataclass(frozen=True)
class Light:
    """A lamp far away. `towards`: the direction to it, in the cell; `ambient`: light from
    everywhere, as a share."""

    towards: tuple[float, float, float] = (0.3, 0.2, 1.0)
    ambient: float = 0.6

    def shade(self, normal: Array) -> float:
        """Brightness of a face with this unit normal, 0…1."""
        lamp = np.array(self.towards) / np.linalg.norm(self.towards)
        return self.ambient + (1.0 - self.ambient) * max(0.0, float(normal @ lamp))


@dataclass(frozen=True)
class Picture:
    """`light`: (height, width, 3) brightness, 0…255, not rounded; `depth`: (height, width) distance
    along the axis of the camera in metres, inf where nothing is."""

    light: NDArray[np.float32]
    depth: NDArray[np.float32]


@lru_cache(maxsize=8)
def lens_rays(lens: Lens, samples: int) -> tuple[Ray, Ray]:
    """x and y at z = 1 of the rays: (height·samples, width·samples) each."""
    inside = (np.arange(samples) + 0.5) / samples - 0.5
    x = (np.arange(lens.width)[:, None] + inside).reshape(-1)
    y = (np.arange(lens.height)[:, None] + inside).reshape(-1)
    rays = lens.rays(np.stack(np.meshgrid(x, y), axis=-1))
    return np.ascontiguousarray(rays[..., 0]), np.ascontiguousarray(rays[..., 1])


def render(
    faces: Sequence[Face],
    lens: Lens,
    camera: Array,
    *,
    light: Light | None = None,
    background: Color = (90, 90, 90),
    samples: int = SAMPLES,
) -> Picture:
    """The picture of a camera at this place in the cell, 4×4."""
    x, y = lens_rays(lens, samples)
    lamp = light or Light()
    depth = np.full(x.shape, np.inf)
    color = np.empty((*x.shape, 3), dtype=np.uint8)
    color[:] = background
    back = inverse(camera)
    for face in faces:
        normal = np.cross(face.across, face.down)
        size = float(np.linalg.norm(normal))
        if size == 0.0 or (camera[:3, 3] - face.corner) @ normal <= 0.0:
            continue  # seen from behind
        seen = face.moved(back)
        bounds = _bounds(seen, lens, samples)
        if bounds is None:
            continue
        shaded = np.ascontiguousarray(face.pattern * np.float64(lamp.shade(normal / size)))
        draw_face(x, y, depth, color, bounds, _plane(seen), shaded.astype(np.uint8))
    return Picture(pixel_means(color, samples), _pixel_depth(depth, samples))


def _bounds(seen: Face, lens: Lens, samples: int) -> Ints | None:
    """First and last row and column of the rays that can meet a face; None if none can."""
    size = np.array([lens.width, lens.height])
    corners = seen.outline()
    if (corners[:, 2] <= NEAR).all():
        return None
    low, high = np.zeros(2, dtype=np.int64), size.astype(np.int64)
    if (corners[:, 2] > NEAR).all():
        share = np.linspace(0.0, 1.0, EDGE_POINTS)[:, None, None]
        edges = corners + share * (np.roll(corners, -1, axis=0) - corners)
        spots = lens.pixels(edges.reshape(-1, 3))
        low = np.clip(np.floor(spots.min(axis=0)) - BORDER, 0, size).astype(np.int64)
        high = np.clip(np.ceil(spots.max(axis=0)) + BORDER + 1, 0, size).astype(np.int64)
    if (high <= low).any():
        return None
    return np.array([low[1], high[1], low[0], high[0]]) * samples


def _plane(seen: Face) -> Array:
    """Of a face in the frame of the camera: normal and distance, then for `across` and `down` the
    vectors and numbers with which a point p has the shares a·p - b of these edges; 1 if it is a
    triangle."""
    u, v = seen.across, seen.down
    normal = np.cross(u, v)
    square = float(normal @ normal)
    by_u, by_v = np.cross(v, normal) / square, np.cross(normal, u) / square
    numbers = [*normal, normal @ seen.corner, *by_u, by_u @ seen.corner, *by_v, by_v @ seen.corner]
    return np.array([*numbers, float(seen.triangle)])


@compiled
def draw_face(  # kernel
    x: Ray, y: Ray, depth: Ray, color: Bytes, bounds: Ints, plane: Array, pattern: Bytes
) -> None:
    """Draws a face over what is behind it; ``plane`` as from `_plane`."""
    nx, ny, nz, nd = plane[0], plane[1], plane[2], plane[3]
    ux, uy, uz, ud = plane[4], plane[5], plane[6], plane[7]
    vx, vy, vz, vd = plane[8], plane[9], plane[10], plane[11]
    triangle = plane[12] > 0.0
    rows, columns = pattern.shape[0], pattern.shape[1]
    for i in range(bounds[0], bounds[1]):
        for j in range(bounds[2], bounds[3]):
            rx, ry = x[i, j], y[i, j]
            t = nd / (nx * rx + ny * ry + nz)
            if not NEAR < t < depth[i, j]:
                continue
            u = t * (ux * rx + uy * ry + uz) - ud
            v = t * (vx * rx + vy * ry + vz) - vd
            if u < 0.0 or v < 0.0 or u > 1.0 or v > 1.0 or (triangle and u + v > 1.0):
                continue
            row, column = min(int(v * rows), rows - 1), min(int(u * columns), columns - 1)
            depth[i, j] = t
            for k in range(3):
                color[i, j, k] = pattern[row, column, k]


@compiled
def pixel_means(color: Bytes, samples: int) -> NDArray[np.float32]:  # kernel
    """The mean colour of the rays of each pixel."""
    height, width = color.shape[0] // samples, color.shape[1] // samples
    out = np.empty((height, width, 3), dtype=np.float32)
    share = np.float32(1.0 / (samples * samples))
    for i in range(height):
        for j in range(width):
            for k in range(3):
                total = 0
                for a in range(samples):
                    for b in range(samples):
                        total += color[i * samples + a, j * samples + b, k]
                out[i, j, k] = np.float32(total) * share
    return out


def _pixel_depth(depth: Ray, samples: int) -> NDArray[np.float32]:
    """The depth of the ray in the middle of each pixel."""
    middle = samples // 2
    return depth[middle::samples, middle::samples].astype(np.float32)
