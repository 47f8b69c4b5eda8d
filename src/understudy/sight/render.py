"""Pictures of a scene: exact rays through every pixel, onto flat faces.

Each pixel is the mean of a grid of rays, so that borders of patterns lie where they are to a
fraction of a pixel. The lens, with its distortion, is exact at the corners of the pixels; within a
pixel rays are interpolated, which is wrong by less than 0.0001 px for usual lenses.

Most pixels see one cell of one face: their rays need not be followed one by one. So the picture is
made in three passes (`sight/rasters.py`):

1. Each face is cut at the edges of the picture: which pixels can it meet?
2. Each face marks the pixels whose four corners are all in one cell of its pattern, and notes those
   that it meets in any other way. Blocks of pixels are looked at as a whole where possible.
3. Every pixel gets its colour and its depth. Where faces were noted, each of its rays is followed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.sight.faces import SHEET, Color, Face, FaceSet, face_set
from understudy.sight.lens import Lens
from understudy.sight.rasters import (
    NEAR,
    Ints,
    Ints32,
    Ray,
    find_bounds,
    group_pairs,
    mark_pixels,
    paint,
)
from understudy.space.transform import Array, inverse

SAMPLES = 5
"""The square root of the number of rays of a pixel. An odd number has one in the centre."""
TURN = 7
"""Rows from one ray of a pixel down to the next one, which is in the next column, in a grid with a
row and a column for each ray. So no two are in one row or column, and an edge along the rows or
columns of a picture has as many shades as any other; with 5² rays they are a square grid, turned by
37 degrees."""
SLACK = 1e-6
"""A sheet is seen on a face up to so far in front of it, metres."""


@dataclass(frozen=True)
class Light:
    """A lamp far away. `towards`: the direction to it, in the cell; `ambient`: light from
    everywhere, as a share."""

    towards: tuple[float, float, float] = (0.3, 0.2, 1.0)
    ambient: float = 0.6

    def shade(self, normals: Array) -> Array:
        """Brightness of faces with these unit normals, 0…1."""
        lamp = np.array(self.towards) / np.linalg.norm(self.towards)
        return np.asarray(self.ambient + (1.0 - self.ambient) * np.maximum(0.0, normals @ lamp))


@dataclass(frozen=True)
class Picture:
    """A rendered picture.

    `light`: (height, width, 3) brightness, 0…255, not rounded; `depth`: (height, width)
    distance along the axis of the camera in metres, inf where nothing is.
    """

    light: NDArray[np.float32]
    depth: NDArray[np.float32]


SMALLEST = 1e-14
"""Area in m² of a face that is drawn: a mesh may have triangles without any."""


@lru_cache(maxsize=8)
def pixel_spots(samples: int) -> Array:
    """Where the rays of a pixel are, as shares across and down; (samples², 2)."""
    count = samples**2
    across = np.arange(count)
    down = (TURN * (across - count // 2) + count // 2) % count
    return np.asarray((np.stack([across, down], axis=1) + 0.5) / count)


@lru_cache(maxsize=8)
def lens_rays(lens: Lens, samples: int) -> tuple[Ray, Ray]:
    """x and y at z = 1 of the rays: (height·samples, width·samples) each; those of a pixel are a
    square of it, row by row in the order of `pixel_spots`."""
    inside = pixel_spots(samples).reshape(samples, 1, samples, 2) - 0.5
    down, across = np.indices((lens.height, lens.width)).reshape(2, lens.height, 1, lens.width, 1)
    spots = np.stack([across + inside[..., 0], down + inside[..., 1]], axis=-1)
    rays = lens.rays(spots.reshape(lens.height * samples, lens.width * samples, 2))
    return np.ascontiguousarray(rays[..., 0]), np.ascontiguousarray(rays[..., 1])


@lru_cache(maxsize=8)
def corner_rays(lens: Lens) -> tuple[Ray, Ray]:
    """x and y at z = 1 of the rays through the corners of the pixels: (height + 1, width + 1)."""
    return _rays(
        lens,
        np.arange(lens.width + 1, dtype=np.float64) - 0.5,
        np.arange(lens.height + 1, dtype=np.float64) - 0.5,
    )


@lru_cache(maxsize=8)
def ray_limits(lens: Lens) -> Array:
    """Lowest and highest x, lowest and highest y of the rays at z = 1."""
    x, y = corner_rays(lens)
    return np.array([x.min(), x.max(), y.min(), y.max()])


def _rays(lens: Lens, x: Array, y: Array) -> tuple[Ray, Ray]:
    rays = lens.rays(np.stack(np.meshgrid(x, y), axis=-1))
    return np.ascontiguousarray(rays[..., 0]), np.ascontiguousarray(rays[..., 1])


def render(
    faces: Sequence[Face] | FaceSet,
    lens: Lens,
    camera: Array,
    *,
    light: Light | None = None,
    background: Color = (90, 90, 90),
    samples: int = SAMPLES,
    depth: bool = True,
) -> Picture:
    """The picture of a camera at this place in the cell, 4×4. Without ``depth`` there are no
    distances in it."""
    given = faces if isinstance(faces, FaceSet) else face_set(faces)
    seen, shades = _visible(given, camera, light or Light())
    x, y = corner_rays(lens)
    planes = _planes(seen)
    limits, facts = ray_limits(lens), seen.facts
    row = np.array([lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion])
    bounds = find_bounds(seen.edges, facts, row, limits, lens.height, lens.width)
    cover, pairs = _marked(planes, facts, bounds, x, y)
    begins, met = group_pairs(pairs, lens.height * lens.width)
    out = np.empty((lens.height, lens.width, 3), dtype=np.float32)
    distances = np.empty((lens.height, lens.width), dtype=np.float32)
    color = np.array(background, dtype=np.uint8)
    paint(
        planes,
        facts,
        seen.cells,
        shades,
        cover,
        begins,
        met,
        x,
        y,
        pixel_spots(samples),
        color,
        out,
        distances,
        depth,
    )
    return Picture(out, distances)


def _visible(given: FaceSet, camera: Array, light: Light) -> tuple[FaceSet, Array]:
    """The faces that show their front to the camera, in its frame, the nearest first, and their
    brightness."""
    normals = np.cross(given.edges[:, 1], given.edges[:, 2])
    sizes = np.linalg.norm(normals, axis=1)
    front = np.einsum("ij,ij->i", camera[:3, 3] - given.edges[:, 0], normals) > 0.0
    seen = front & (sizes > SMALLEST)
    shades = light.shade(normals[seen] / sizes[seen, None])
    found = FaceSet(given.edges[seen], given.facts[seen], given.cells).moved(inverse(camera))
    # The nearest point of a parallelogram: the lowest sum of its corner and edges.
    order = np.argsort(found.edges[:, 0, 2] + np.minimum(found.edges[:, 1:, 2], 0.0).sum(axis=1))
    return FaceSet(found.edges[order], found.facts[order], found.cells), shades[order]


def _planes(seen: FaceSet) -> Array:
    """(n, 13). Of each face in the frame of the camera: normal and distance, then for `across` and
    `down` the vectors and numbers with which a point p has the shares a·p - b of these edges; how
    far it may lie behind what it hides."""
    corner, u, v = seen.edges[:, 0], seen.edges[:, 1], seen.edges[:, 2]
    normal = np.cross(u, v)
    square = np.einsum("ij,ij->i", normal, normal)[:, None]
    out = np.empty((len(seen), 13))
    for first, vector in (
        (0, normal),
        (4, np.cross(v, normal) / square),
        (8, np.cross(normal, u) / square),
    ):
        out[:, first : first + 3] = vector
        out[:, first + 3] = np.einsum("ij,ij->i", vector, corner)
    out[:, 12] = np.where(seen.facts[:, SHEET] > 0, SLACK, 0.0)
    return out


def _marked(planes: Array, facts: Ints, bounds: Ints, x: Ray, y: Ray) -> tuple[Ints32, Ints32]:
    """Of every pixel the face and the cell that cover it; and the pixels that meet faces otherwise,
    with these faces."""
    height, width = x.shape[0] - 1, x.shape[1] - 1
    cover = np.empty((2, height, width), dtype=np.int32)
    room = height * width // 2
    while True:
        cover[:] = -1
        pairs = np.empty((room, 2), dtype=np.int32)
        used = mark_pixels(planes, facts, bounds, x, y, cover, pairs)
        if used <= room:
            return cover, pairs[:used]
        room = used


__all__ = ["NEAR", "SAMPLES", "Light", "Picture", "corner_rays", "lens_rays", "render"]
