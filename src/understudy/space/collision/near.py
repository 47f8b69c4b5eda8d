"""Points near to shapes: which points of a measured cloud a known object explains."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh
from understudy.space.transform import Array

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
MOST_STEPS = 400
"""Of the grid of points on a triangle, along each edge."""
CUBES_KEPT = 64
NEIGHBOURS = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
FAR = 1 << 20
"""Cubes are numbered from -FAR to FAR along each axis."""


def near(shape: Shape, place: Array, points: Array, margin: float) -> Bools:
    """(n,): whether points (n, 3) are inside a shape at a place, 4×4, or nearer than ``margin`` to
    it. A convex hull counts as the box around it; of a mesh only the surface counts, to twice the
    margin."""
    here = (points - place[:3, 3]) @ place[:3, :3]
    match shape:
        case Box(size=size):
            return _beside_box(here, 0.5 * np.array(size), margin)
        case Sphere(radius=r):
            return np.asarray(np.linalg.norm(here, axis=1) <= r + margin)
        case Cylinder(radius=r, length=length):
            aside = np.maximum(np.hypot(here[:, 0], here[:, 1]) - r, 0.0)
            along = np.maximum(np.abs(here[:, 2]) - 0.5 * length, 0.0)
            return np.asarray(np.hypot(aside, along) <= margin)
        case Capsule(radius=r, length=length):
            here[:, 2] -= np.clip(here[:, 2], -0.5 * length, 0.5 * length)
            return np.asarray(np.linalg.norm(here, axis=1) <= r + margin)
        case Hull(points=corners):
            low, high = corners.min(axis=0), corners.max(axis=0)
            return _beside_box(here - 0.5 * (low + high), 0.5 * (high - low), margin)
        case TriangleMesh():
            return _near_mesh(shape, here, margin)


def _beside_box(points: Array, half: Array, margin: float) -> Bools:
    beyond = np.maximum(np.abs(points) - half, 0.0)
    return np.asarray((beyond**2).sum(axis=1) <= margin * margin)


def _near_mesh(mesh: TriangleMesh, points: Array, margin: float) -> Bools:
    cubes = np.floor(points / margin).astype(np.int64)
    known = _cubes(mesh, margin)
    found = np.zeros(len(points), dtype=bool)
    for shift in NEIGHBOURS:
        found |= np.isin(_numbers(cubes + shift), known)
    return found


@lru_cache(maxsize=CUBES_KEPT)
def _cubes(mesh: TriangleMesh, side: float) -> Ints:
    """The numbers of the cubes of this side in which the surface of a mesh lies."""
    found = [np.zeros(0, dtype=np.int64)]
    for a, b, c in mesh.corners():
        longest = max(float(np.linalg.norm(edge)) for edge in (b - a, c - a, c - b))
        steps = min(MOST_STEPS, max(1, int(np.ceil(2.0 * longest / side))))
        u, v = np.meshgrid(np.arange(steps + 1) / steps, np.arange(steps + 1) / steps)
        inside = u + v <= 1.0 + 1e-9
        spots = a + u[inside][:, None] * (b - a) + v[inside][:, None] * (c - a)
        found.append(np.unique(_numbers(np.floor(spots / side).astype(np.int64))))
    return np.unique(np.concatenate(found))


def _numbers(cubes: Ints) -> Ints:
    """One number for each cube."""
    x, y, z = np.clip(cubes, -FAR, FAR - 1).T + FAR
    return np.asarray((x * (2 * FAR) + y) * (2 * FAR) + z)
