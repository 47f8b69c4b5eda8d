"""Smooth surfaces in a cloud of points: pixels that belong together, and what they form.

A pixel is smooth if its neighbours lie in the plane through it. Connected smooth pixels are one
surface: a face of a box, a side of a cylinder, a table. Each surface takes back the pixels at its
border that lie on it. Needs the extra `vision`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from understudy.space.transform import Array

Bools = NDArray[np.bool_]
REACH = 2
"""Pixels to the neighbours of which a normal is made."""
GROWN = REACH + 2
"""Pixels by which a surface is grown back to its border."""
WIDEST_BRIDGE = 3
"""Half the width of a bridge between two surfaces, pixels: less than `GROWN`."""
MOST_SURFACES = 400
FITTED_POINTS = 4000
"""Points of a surface, evenly chosen, of which a plane is made."""


@dataclass(frozen=True)
class Surface:
    """A smooth surface in a cloud of points.

    `pixels`: rows and columns, (n, 2); `points`: (n, 3); `normals`: (n, 3), towards the camera;
    `middle`, `normal`: of the plane that fits best, and `spread`: of the points about it, m.
    """

    pixels: NDArray[np.int64]
    points: Array
    normals: Array
    middle: Array
    normal: Array
    spread: float


def blurred(points: Array, pixels: int) -> Array:
    """The depth, averaged over a square of neighbours at about the same depth; rays stay."""
    if pixels <= 1:
        return points
    far = points[..., 2]
    depth = np.nan_to_num(far).astype(np.float32)
    sigma = 0.01 * float(np.median(depth[depth > 0])) if (depth > 0).any() else 1.0
    soft = cv2.bilateralFilter(depth, pixels, sigma, pixels / 2)
    return np.asarray(points * (soft / np.where(depth > 0, depth, 1.0))[..., None])


def pixel_normals(points: Array) -> tuple[Array, Array]:
    """Unit normals (height, width, 3) towards the camera, and how far the neighbours are from the
    plane of each pixel; NaN at the border and next to missing points."""
    normals = np.full(points.shape, np.nan)
    apart = np.full(points.shape[:2], np.nan)
    k = REACH
    left, right = points[k:-k, : -2 * k], points[k:-k, 2 * k :]
    up, down = points[: -2 * k, k:-k], points[2 * k :, k:-k]
    here = points[k:-k, k:-k]
    cross = np.cross(right - left, down - up)
    with np.errstate(invalid="ignore"):
        cross /= np.linalg.norm(cross, axis=2, keepdims=True)
        cross *= -np.sign(np.einsum("ijk,ijk->ij", cross, here))[..., None]
        off = np.zeros(here.shape[:2])
        for each in (left, right, up, down):
            np.maximum(off, np.abs(np.einsum("ijk,ijk->ij", cross, each - here)), out=off)
    normals[k:-k, k:-k], apart[k:-k, k:-k] = cross, off
    return normals, apart


def plane_of(points: Array) -> tuple[Array, Array, float]:
    """Middle, unit normal towards the camera, and spread about the plane."""
    some = points[:: max(1, len(points) // FITTED_POINTS)]
    middle = some.mean(axis=0)
    _, sizes, axes = np.linalg.svd(some - middle, full_matrices=False)
    normal = axes[2] * -(np.sign(axes[2] @ middle) or 1.0)
    return middle, normal, float(sizes[2] / np.sqrt(len(some)))


def surfaces(points: Array, *, within: float, fewest: int) -> Iterator[Surface]:
    """The smooth surfaces of a cloud (height, width, 3), the largest first. ``within``: metres by
    which a point may be beside its surface; ``fewest``: pixels."""
    normals, apart = pixel_normals(points)
    with np.errstate(invalid="ignore"):
        smooth = (apart < within).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(smooth, connectivity=4)
    order = np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable") + 1
    for label in order[:MOST_SURFACES].tolist():
        x, y, w, h, area = (int(each) for each in stats[label])
        if area < fewest:
            return
        box = (
            slice(max(0, y - GROWN), y + h + GROWN),
            slice(max(0, x - GROWN), x + w + GROWN),
        )
        whole = labels[box] == label
        for core in _parted(points[box], whole, within, fewest):
            found = _surface(points[box], normals[box], core, (box[0].start, box[1].start), within)
            if found is not None:
                yield found


def _parted(points: Array, core: Bools, within: float, fewest: int) -> list[Bools]:
    """The pixels of a surface; those of several, if only a narrow bridge joins them. Noise makes
    such bridges over an edge, where by chance a few pixels of it look smooth."""
    if plane_of(points[core])[2] < within:
        return [core]
    thin: Any = core.astype(np.uint8)
    for _ in range(WIDEST_BRIDGE):
        thin = cv2.erode(thin, np.ones((3, 3), np.uint8))
        count, labels, stats, _ = cv2.connectedComponentsWithStats(thin, connectivity=4)
        parts = [k for k in range(1, count) if stats[k, cv2.CC_STAT_AREA] >= fewest]
        if len(parts) > 1:
            parts.sort(key=lambda k: -int(stats[k, cv2.CC_STAT_AREA]))
            return [each for k in parts for each in _parted(points, labels == k, within, fewest)]
    return [core]


def _surface(
    points: Array, normals: Array, core: Bools, corner: tuple[int, int], within: float
) -> Surface | None:
    """A surface of its smooth pixels, grown by those around them that lie on it."""
    middle, normal, spread = plane_of(points[core])
    around = cv2.dilate(core.astype(np.uint8), np.ones((2 * GROWN + 1,) * 2, np.uint8)) > 0
    if spread < within:
        with np.errstate(invalid="ignore"):
            on = np.abs((points - middle) @ normal) < within
    else:
        on = _on_curve(points, normals, core, around, within)
    kept = core | (around & on)
    pixels = np.argwhere(kept)
    chosen, turned = points[kept], normals[kept]
    middle, normal, spread = plane_of(chosen)
    return Surface(pixels + corner, chosen, turned, middle, normal, spread)


def _on_curve(points: Array, normals: Array, core: Bools, around: Bools, within: float) -> Any:
    """Pixels around a curved surface that lie in the plane of its nearest smooth pixel."""
    rows, columns = np.nonzero(~core & around)
    source = np.where(core, 0, 1).astype(np.uint8)
    _, nearest = cv2.distanceTransformWithLabels(
        source, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    known = np.zeros((int(nearest.max()) + 1, 2), dtype=np.int64)
    spots = np.argwhere(core)
    known[nearest[core]] = spots
    at = known[nearest[rows, columns]]
    there, normal = points[at[:, 0], at[:, 1]], normals[at[:, 0], at[:, 1]]
    on = np.zeros(core.shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        off = np.abs(np.einsum("ij,ij->i", points[rows, columns] - there, normal))
        on[rows, columns] = off < 2.0 * within
    return on
