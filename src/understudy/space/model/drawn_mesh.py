"""Meshes as pages draw them: by colour, and with fewer triangles where a file has very many.

Checks use the whole mesh (`shapes.mesh_from_bytes`); nothing here decides about a contact.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from understudy.errors import ConfigError
from understudy.space.model.shapes import TriangleMesh, load_scene
from understudy.space.transform import Array

Color = tuple[float, float, float, float]
MOST_TRIANGLES = 12_000
"""Of one file; more are merged, so that a page of many links stays quick."""
FINEST_CELLS = 256
"""Cells along the longest side of a mesh whose vertices are merged, at first; then fewer."""


class DrawnMesh(NamedTuple):
    """Triangles of one colour (0…1); None: the file states none."""

    mesh: TriangleMesh
    color: Color | None


@lru_cache(maxsize=64)
def drawn_meshes(data: bytes, file_type: str) -> tuple[DrawnMesh, ...]:
    """The meshes of a file by colour, in the unit of the file; raises a ConfigError."""
    found: dict[Color | None, list[TriangleMesh]] = {}
    for each in load_scene(data, file_type):
        for color, mesh in _by_color(each):
            found.setdefault(color, []).append(mesh)
    meshes = {color: _joined(own) for color, own in found.items()}
    if not meshes:
        raise ConfigError("the mesh has no triangles", value=file_type)
    cells = FINEST_CELLS
    whole = meshes
    while sum(len(mesh.triangles) for mesh in meshes.values()) > MOST_TRIANGLES:
        meshes = {color: merged(mesh, cells) for color, mesh in whole.items()}
        cells = cells * 3 // 4
    return tuple(DrawnMesh(mesh, color) for color, mesh in meshes.items() if len(mesh.triangles))


def _by_color(mesh: Any) -> list[tuple[Color | None, TriangleMesh]]:
    """The triangles of a trimesh, by the colour of their material, faces or vertices."""
    vertices = np.array(mesh.vertices, dtype=np.float64)
    triangles = np.array(mesh.faces, dtype=np.int64)
    visual = mesh.visual
    if visual.kind == "texture":
        return [(_color(visual.material.main_color), TriangleMesh(vertices, triangles))]
    if visual.kind is None or not visual.defined:
        return [(None, TriangleMesh(vertices, triangles))]
    colors, which = np.unique(np.asarray(visual.face_colors), axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [
        (_color(color), TriangleMesh(vertices, triangles[which == k]))
        for k, color in enumerate(colors)
    ]


def _color(rgba: Array) -> Color:
    r, g, b, a = (round(float(value) / 255.0, 4) for value in rgba)
    return r, g, b, a


def _joined(meshes: list[TriangleMesh]) -> TriangleMesh:
    """One mesh of all; vertices that no triangle uses are dropped."""
    corners = np.concatenate([mesh.corners().reshape(-1, 3) for mesh in meshes])
    vertices, which = np.unique(corners, axis=0, return_inverse=True)
    return TriangleMesh(vertices, which.reshape(-1, 3))


def merged(mesh: TriangleMesh, cells: int) -> TriangleMesh:
    """A coarser mesh: vertices in one cell of a grid become one, in their middle."""
    low, high = mesh.bounds()
    size = float((high - low).max()) / cells or 1.0
    grid = np.floor((mesh.vertices - low) / size).astype(np.int64)
    _, which = np.unique(grid, axis=0, return_inverse=True)
    which = which.reshape(-1)
    count = np.bincount(which)
    sums = (np.bincount(which, mesh.vertices[:, axis]) for axis in range(3))
    vertices = np.stack([total / count for total in sums], axis=1)
    triangles = which[mesh.triangles]
    a, b, c = triangles.T
    kept = triangles[(a != b) & (b != c) & (c != a)]
    return TriangleMesh(vertices, kept)
