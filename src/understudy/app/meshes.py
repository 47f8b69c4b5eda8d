"""Meshes for a running cell, made in a worker process: read, repaired, with their trees."""

import os
from typing import Any

import msgspec
from msgspec import Struct

from understudy.operator.background_worker import Progress
from understudy.operator.mesh_arrays import ArrayFile, StoredArray, StoredMesh, store_mesh
from understudy.space.model.shapes import TriangleMesh, mesh_from_bytes


class WantedMesh(Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes of a file (``kind``: the ending of its name; ``scale``: metres per unit), or the
    arrays of a mesh."""

    at: int = 0
    size: int = 0
    kind: str = ""
    scale: float = 1.0
    vertices: StoredArray | None = None
    triangles: StoredArray | None = None


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. ``shared``: descriptor of the file with what is wanted; results are appended."""

    shared: int
    meshes: list[WantedMesh]


def meshes(parameters: dict[str, Any], progress: Progress) -> list[StoredMesh]:
    """The meshes in the order in which they are wanted."""
    wanted = msgspec.convert(parameters, Wanted)
    found = []
    with os.fdopen(os.dup(wanted.shared), "r+b") as file:
        for number, each in enumerate(wanted.meshes):
            progress(number / len(wanted.meshes))
            found.append(store_mesh(file, _mesh(file, each)))
            progress((number + 1) / len(wanted.meshes))
    return found


def _mesh(file: Any, wanted: WantedMesh) -> TriangleMesh:
    if wanted.vertices is not None and wanted.triangles is not None:
        return ArrayFile(file).plain_mesh(wanted.vertices, wanted.triangles)
    file.seek(wanted.at)
    return mesh_from_bytes(file.read(wanted.size), wanted.kind, wanted.scale)
