"""The bodies of an arm as triangles, for the picture of a report.

Positions are whole tenths of a millimetre in the frame of the link that carries the body; the page
computes the frames from the joints.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from understudy.errors import ConfigError
from understudy.motion.path import Floats, Ints
from understudy.offline.validate.subject import Arm
from understudy.space.kinematics.chain import Body, Chain
from understudy.space.model.environment import Read
from understudy.space.model.robot import Box, Capsule, Cylinder, Geometry, Mesh, Solid, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh, mesh_from_bytes
from understudy.space.transform import matrix

Triangles = tuple[Floats, Ints]
"""Corners (n, 3) in metres, and triangles (m, 3) of corner numbers."""

TENTH_MM = 1e-4
MOST_TRIANGLES = 1500
"""Triangles of one shape; a finer mesh is simplified."""
COARSEST = 0.2
ROUND = 24
RINGS = 8
GREY, TOOL_GREY = "#9aa7b4", "#5b6673"


def figure(arm: Arm, read: Read) -> dict[str, Any]:
    """Joints and bodies of an arm with its tool; bodies whose files cannot be read are left out."""
    way = arm.chain.model.joints_to_tip()
    carriers = [-1, *(k for k, joint in enumerate(way) if joint.moves)]
    shapes = [
        {"joint": joint, **shape}
        for body, joint in zip(arm.chain.bodies, carriers, strict=True)
        for shape in _drawn(body, read)
    ]
    for thing in arm.tool_shapes:
        triangles = _placed(_triangles(thing.shape), thing.place)
        shapes.append({"joint": len(way) - 1, **_encoded(triangles, TOOL_GREY)})
    return {"base": arm.foot.reshape(-1).tolist(), "joints": _joints(arm.chain), "shapes": shapes}


def _joints(chain: Chain) -> list[dict[str, Any]]:
    """All joints from base to flange: T = T · origin · turn (or shift) on the axis."""
    return [
        {
            "origin": matrix(joint.origin).reshape(-1).tolist(),
            "axis": joint.axis,
            "kind": joint.kind,
        }
        for joint in chain.model.joints_to_tip()
    ]


def _drawn(body: Body, read: Read) -> Iterator[dict[str, Any]]:
    """The shapes for the eye; those for collisions if there are none or they cannot be read."""
    for solids in (body.visual, body.collision):
        try:
            found = [(_placed(_of(s.geometry, read), matrix(s.origin)), _color(s)) for s in solids]
        except ConfigError:
            continue
        if found:
            yield from (_encoded(triangles, color) for triangles, color in found)
            return


def _color(solid: Solid) -> str:
    if solid.color is None:
        return GREY
    return "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in solid.color[:3])


def _encoded(triangles: Triangles, color: str) -> dict[str, Any]:
    corners, faces = simplified(*triangles)
    places = np.round(corners / TENTH_MM).astype(int)
    return {"color": color, "at": places.reshape(-1).tolist(), "of": faces.reshape(-1).tolist()}


def simplified(corners: Floats, faces: Ints) -> Triangles:
    """A mesh of at most MOST_TRIANGLES: corners in one cell of a grid become one."""
    size = float(np.ptp(corners, axis=0).max()) / 200.0 if len(faces) > MOST_TRIANGLES else 0.0
    found: Triangles = corners, faces
    while len(found[1]) > MOST_TRIANGLES and size < COARSEST * 2:
        cells = np.round(corners / size).astype(np.int64)
        _, first, number = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        merged = number.reshape(-1)[faces]
        a, b, c = merged.T
        kept = merged[(a != b) & (b != c) & (a != c)]
        found, size = (corners[first], np.unique(kept, axis=0)), 1.4 * size
    return found


def _placed(triangles: Triangles, at: Floats) -> Triangles:
    corners, faces = triangles
    return corners @ at[:3, :3].T + at[:3, 3], faces


def _of(geometry: Geometry, read: Read) -> Triangles:
    if not isinstance(geometry, Mesh):
        return _triangles(geometry)
    found = mesh_from_bytes(read(geometry.filename), geometry.filename.rsplit(".", 1)[-1])
    return found.vertices * np.array(geometry.scale), np.asarray(found.triangles, dtype=np.int64)


def _triangles(shape: Shape) -> Triangles:
    match shape:
        case Box(size=size):
            return _box(-0.5 * np.array(size), 0.5 * np.array(size))
        case Sphere(radius=radius):
            return _turned(*_quarter(radius, 0.0))
        case Capsule(radius=radius, length=length):
            return _turned(*_quarter(radius, 0.5 * length))
        case Cylinder(radius=radius, length=length):
            # Several rings: the page sorts triangles by depth, which short ones suit better.
            along = np.linspace(-0.5 * length, 0.5 * length, RINGS)
            ends = ([0.0, 0.5 * radius], [0.5 * radius, 0.0])
            heights = np.concatenate([along[[0, 0]], along, along[[-1, -1]]])
            return _turned(np.concatenate([ends[0], np.full(RINGS, radius), ends[1]]), heights)
        case Hull(points=points):
            return _hull(points)
        case TriangleMesh():
            return shape.vertices, np.asarray(shape.triangles, dtype=np.int64)


def _quarter(radius: float, half: float) -> tuple[Floats, Floats]:
    """The outline of a sphere, or of a capsule with a straight part: radii and heights."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS)
    return radius * np.cos(angles), radius * np.sin(angles) + np.copysign(half, angles)


def _turned(radii: Floats, heights: Floats) -> Triangles:
    """An outline turned around z."""
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = np.concatenate(
        [
            np.column_stack([r * ring, np.full(ROUND, z)])
            for r, z in zip(radii, heights, strict=True)
        ]
    )
    k = np.arange(ROUND)
    after = (k + 1) % ROUND
    faces = [
        np.concatenate(
            [
                np.stack([n + k, n + after, n + ROUND + k], 1),
                np.stack([n + after, n + ROUND + after, n + ROUND + k], 1),
            ]
        )
        for n in range(0, ROUND * (len(radii) - 1), ROUND)
    ]
    return corners, np.concatenate(faces)


CUBE = np.indices((2, 2, 2)).reshape(3, -1).T - 0.5
SIDES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
"""Corners of the cube's sides, in order around each."""


def _box(low: Floats, high: Floats) -> Triangles:
    faces = [half for a, b, c, d in SIDES for half in ((a, b, c), (a, c, d))]
    return 0.5 * (low + high) + CUBE * (high - low), np.array(faces, dtype=np.int64)


def _hull(points: Floats) -> Triangles:
    """The convex hull; the bounding box where scipy is not installed, or all points in one
    plane."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        return _box(points.min(axis=0), points.max(axis=0))
    try:
        faces = ConvexHull(points).simplices
    except QhullError:
        return _box(points.min(axis=0), points.max(axis=0))
    return np.asarray(points, dtype=np.float64), np.asarray(faces, dtype=np.int64)
