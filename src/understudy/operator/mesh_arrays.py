"""Meshes with their surface and tree as arrays in one file, so that another process can make them.

A file holds arrays one after the other. A mesh is described by where its arrays are, and by what is
known of its surface.
"""

import mmap
from typing import IO, Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.space.collision.solids import MeshTree, keep_tree, tree_of
from understudy.space.model.shapes import Hull, Ints, TriangleMesh, prepared_mesh, shared_mesh
from understudy.space.model.surface import Surface
from understudy.space.transform import Array

Dtype = Literal["<f8", "<i8"]
FLOATS: Dtype = "<f8"
INTS: Dtype = "<i8"


class StoredArray(Struct, frozen=True):
    """An array in a file: from byte ``at`` on, rows of numbers."""

    at: int
    shape: tuple[int, ...]
    dtype: Dtype


class StoredMesh(Struct, frozen=True):
    """A mesh in a file, with its tree. The corners of the surface are those of the tree."""

    vertices: StoredArray
    triangles: StoredArray
    corners: StoredArray
    nodes: StoredArray
    children: StoredArray
    hull: StoredArray
    closed: bool
    open_pieces: int


def store_array(file: IO[bytes], values: NDArray[Any], dtype: Dtype) -> StoredArray:
    """Appends an array to a file."""
    at = file.seek(0, 2)
    file.write(np.ascontiguousarray(values, dtype=dtype).data)
    return StoredArray(at, values.shape, dtype)


def store_mesh(file: IO[bytes], mesh: TriangleMesh) -> StoredMesh:
    """Repairs the surface of a mesh, builds its tree and appends both to a file."""
    surface, tree = mesh.surface, tree_of(mesh)
    return StoredMesh(
        store_array(file, mesh.vertices, FLOATS),
        store_array(file, mesh.triangles, INTS),
        store_array(file, tree.corners, FLOATS),
        store_array(file, tree.nodes, FLOATS),
        store_array(file, tree.children, INTS),
        store_array(file, mesh.outer_hull.points, FLOATS),
        surface.closed,
        surface.open_pieces,
    )


class ArrayFile:
    """The arrays of a file, as they are in memory: nothing is copied."""

    def __init__(self, file: IO[bytes]) -> None:
        file.flush()
        self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def floats(self, stored: StoredArray) -> Array:
        return self._array(stored, FLOATS)

    def ints(self, stored: StoredArray) -> Ints:
        return self._array(stored, INTS)

    def mesh(self, stored: StoredMesh) -> TriangleMesh:
        """The mesh, with its surface and tree; one of the same content that is in use already."""
        tree = MeshTree(
            self.floats(stored.corners), self.floats(stored.nodes), self.ints(stored.children)
        )
        surface = Surface(tree.corners, stored.closed, stored.open_pieces)
        vertices, triangles = self.floats(stored.vertices), self.ints(stored.triangles)
        hull = Hull(self.floats(stored.hull))
        mesh = prepared_mesh(vertices, triangles, surface, hull)
        keep_tree(mesh, tree)
        return mesh

    def plain_mesh(self, vertices: StoredArray, triangles: StoredArray) -> TriangleMesh:
        """A mesh without surface and tree."""
        return shared_mesh(self.floats(vertices), self.ints(triangles))

    def _array(self, stored: StoredArray, dtype: Dtype) -> NDArray[Any]:
        count = int(np.prod(stored.shape))
        return np.frombuffer(self._bytes, dtype, count, stored.at).reshape(stored.shape)
