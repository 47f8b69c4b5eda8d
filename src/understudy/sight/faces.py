"""Flat faces with a pattern: what a rendered scene is made of.

A face is a parallelogram, or the triangle that is half of it, seen from the side its normal points
to. Its pattern is a grid of coloured cells with sharp borders, as markers and boards have them; a
plain face has one cell.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh, hull_triangles
from understudy.space.transform import Array

Pattern = NDArray[np.uint8]
"""(rows, columns, 3): red, green and blue; row 0 is at `corner`, columns go along `across`."""
Color = tuple[int, int, int]
CYLINDER_SIDES = 48


def plain(color: Color) -> Pattern:
    return np.array([[color]], dtype=np.uint8)


@dataclass(frozen=True)
class Face:
    """A flat face with its pattern.

    `corner`: its first point; `across` and `down`: its edges from there, in metres. The side
    that is seen is the one to which across × down points. `sheet`: it lies on a face that comes
    before it, and hides it although both are in one plane.
    """

    corner: Array
    across: Array
    down: Array
    pattern: Pattern = field(default_factory=lambda: plain((128, 128, 128)))
    triangle: bool = False
    sheet: bool = False

    def moved(self, place: Array) -> "Face":
        turn = place[:3, :3]
        return Face(
            turn @ self.corner + place[:3, 3],
            turn @ self.across,
            turn @ self.down,
            self.pattern,
            self.triangle,
            self.sheet,
        )

    def outline(self) -> Array:
        """The corners of a face, (3 or 4, 3)."""
        a, u, v = self.corner, self.across, self.down
        return np.array([a, a + u, a + v] if self.triangle else [a, a + u, a + u + v, a + v])


def box_faces(size: Sequence[float], color: Color, top: Pattern | None = None) -> list[Face]:
    """A box about the origin; ``top``: the pattern of its upper face, as seen from above with the
    x axis to the right."""
    x, y, z = (0.5 * float(each) for each in size)
    body = plain(color)

    def face(corner: Sequence[float], across: Sequence[float], down: Sequence[float]) -> Face:
        return Face(np.array(corner), np.array(across), np.array(down), body)

    upper = Face(
        np.array([-x, y, z]),
        np.array([2 * x, 0.0, 0.0]),
        np.array([0.0, -2 * y, 0.0]),
        body if top is None else top,
    )
    return [
        facing(upper, (0, 0, 1)),
        facing(face((-x, -y, -z), (2 * x, 0, 0), (0, 2 * y, 0)), (0, 0, -1)),
        facing(face((x, -y, -z), (0, 2 * y, 0), (0, 0, 2 * z)), (1, 0, 0)),
        facing(face((-x, -y, -z), (0, 2 * y, 0), (0, 0, 2 * z)), (-1, 0, 0)),
        facing(face((-x, y, -z), (2 * x, 0, 0), (0, 0, 2 * z)), (0, 1, 0)),
        facing(face((-x, -y, -z), (2 * x, 0, 0), (0, 0, 2 * z)), (0, -1, 0)),
    ]


def facing(face: Face, side: Sequence[float]) -> Face:
    """The same face, seen from this side; a pattern stays where it is."""
    if np.cross(face.across, face.down) @ np.asarray(side, dtype=np.float64) > 0.0:
        return face
    turned = np.ascontiguousarray(np.swapaxes(face.pattern, 0, 1))
    return Face(face.corner, face.down, face.across, turned, face.triangle, face.sheet)


def marker_face(pattern: Pattern, width: float, height: float) -> Face:
    """A sheet in the plane z = 0 about the origin, seen from +z: x to the right, y up."""
    corner = np.array([-0.5 * width, 0.5 * height, 0.0])
    across, down = np.array([width, 0.0, 0.0]), np.array([0.0, -height, 0.0])
    return facing(Face(corner, across, down, pattern, sheet=True), (0, 0, 1))


def cylinder_faces(
    radius: float, height: float, color: Color, sides: int = CYLINDER_SIDES
) -> list[Face]:
    """A cylinder along z about the origin, of flat sides."""
    turns = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    ring = np.stack([radius * np.cos(turns), radius * np.sin(turns), np.zeros_like(turns)], axis=1)
    up, body, faces = np.array([0.0, 0.0, height]), plain(color), []
    for start, end in itertools.pairwise(ring):
        faces.append(facing(Face(start - 0.5 * up, end - start, up, body), start + end))
        for z in (1.0, -1.0):
            cap = Face(0.5 * z * up, start, end, body, triangle=True)
            faces.append(facing(cap, (0.0, 0.0, z)))
    return faces


# ── many faces as arrays, and the faces of the shapes of a cell ───────────────────────────────────


Ints = NDArray[np.int64]
SIDES, ROBOT_SIDES = 48, 20
"""Flat sides of what is round: of objects, and of robots, where a coarse outline is enough."""
TRIANGLE, SHEET, FIRST, ROWS, COLUMNS = range(5)
"""Columns of `FaceSet.facts`: two flags, the first cell of the pattern, its rows and columns."""


@dataclass(frozen=True, eq=False)
class FaceSet:
    """Many faces as arrays.

    `edges`: (n, 3, 3), of each face its corner, `across` and `down`. `facts`: (n, 5). `cells`:
    (m, 3), the cells of all patterns, row by row.
    """

    edges: Array
    facts: Ints
    cells: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.edges)

    def moved(self, place: Array) -> "FaceSet":
        edges = self.edges @ place[:3, :3].T
        edges[:, 0] += place[:3, 3]
        return FaceSet(edges, self.facts, self.cells)

    def faces(self) -> Iterator[Face]:
        for edges, facts in zip(self.edges, self.facts.tolist(), strict=True):
            first, rows, columns = facts[FIRST:]
            pattern: Pattern = self.cells[first : first + rows * columns]
            corner, across, down = edges
            yield Face(
                corner,
                across,
                down,
                pattern.reshape(rows, columns, 3),
                triangle=bool(facts[TRIANGLE]),
                sheet=bool(facts[SHEET]),
            )


NOTHING = FaceSet(
    np.zeros((0, 3, 3)), np.zeros((0, 5), dtype=np.int64), np.zeros((0, 3), dtype=np.uint8)
)


def face_set(faces: Sequence[Face]) -> FaceSet:
    """Faces as one set; a pattern that several of them share is stored once."""
    first: dict[int, int] = {}
    patterns: list[Pattern] = []
    count, facts = 0, []
    for face in faces:
        rows, columns, _ = face.pattern.shape
        if id(face.pattern) not in first:
            first[id(face.pattern)] = count
            patterns.append(face.pattern.reshape(-1, 3))
            count += rows * columns
        facts.append((face.triangle, face.sheet, first[id(face.pattern)], rows, columns))
    if not facts:
        return NOTHING
    edges = np.array([(face.corner, face.across, face.down) for face in faces], dtype=np.float64)
    return FaceSet(edges, np.array(facts, dtype=np.int64), np.concatenate(patterns))


def joined(sets: Sequence[FaceSet]) -> FaceSet:
    """The faces of all sets, in their order."""
    if not sets:
        return NOTHING
    facts = [each.facts.copy() for each in sets]
    begins = np.cumsum([0, *(len(each.cells) for each in sets)])
    for own, begin in zip(facts, begins, strict=False):
        own[:, FIRST] += begin
    return FaceSet(
        np.concatenate([each.edges for each in sets]),
        np.concatenate(facts),
        np.concatenate([each.cells for each in sets]),
    )


def triangle_set(corners: Array, color: Color) -> FaceSet:
    """(m, 3, 3) corners of triangles, counter-clockwise seen from outside."""
    edges = np.array(corners, dtype=np.float64)
    edges[:, 1:] -= edges[:, :1]
    facts = np.zeros((len(edges), 5), dtype=np.int64)
    facts[:, (TRIANGLE, ROWS, COLUMNS)] = 1
    return FaceSet(edges, facts, np.array([color], dtype=np.uint8))


# ── shapes of a cell ────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1024)
def shape_faces(shape: Shape, color: Color, sides: int = SIDES) -> FaceSet:
    """The faces of a shape in its own frame."""
    match shape:
        case Box(size=size):
            return face_set(box_faces(size, color))
        case Cylinder(radius=radius, length=length):
            return face_set(cylinder_faces(radius, length, color, sides))
        case Sphere(radius=radius):
            return triangle_set(_capsule(radius, 0.0, sides), color)
        case Capsule(radius=radius, length=length):
            return triangle_set(_capsule(radius, length, sides), color)
        case Hull():
            return _hull(shape, color)
    return triangle_set(_mesh(shape), color)


def top_of(shape: Shape) -> float:
    """The height of the upper end of a shape in its own frame."""
    match shape:
        case Box(size=size):
            return 0.5 * size[2]
        case Cylinder(length=length):
            return 0.5 * length
        case Sphere(radius=radius):
            return radius
        case Capsule(radius=radius, length=length):
            return 0.5 * length + radius
    return float(shape.bounds()[1][2])


def _capsule(radius: float, height: float, sides: int) -> Array:
    """Triangles of a capsule along z whose straight part has this height."""
    turns, half = np.linspace(0.0, 2.0 * np.pi, sides + 1), sides // 4
    tilts = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * half + 1)
    tilts = np.concatenate([tilts[: half + 1], tilts[half:]])
    lift = np.where(np.arange(len(tilts)) <= half, -0.5, 0.5) * height
    points = np.empty((len(tilts), len(turns), 3))
    points[..., 0] = radius * np.cos(tilts)[:, None] * np.cos(turns)
    points[..., 1] = radius * np.cos(tilts)[:, None] * np.sin(turns)
    points[..., 2] = (radius * np.sin(tilts) + lift)[:, None]
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    halves = [np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]
    return np.concatenate([half.reshape(-1, 3, 3) for half in halves])


def _mesh(mesh: TriangleMesh) -> Array:
    """The triangles of a mesh seen from outside; both sides of one that encloses no volume."""
    corners = mesh.surface.corners
    if not mesh.surface.closed:
        return np.concatenate([corners, corners[:, ::-1]])
    volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return corners if volume >= 0.0 else corners[:, ::-1]


def _hull(hull: Hull, color: Color) -> FaceSet:
    """The convex hull; else the box around it."""
    points, triangles = hull.points, hull_triangles(hull.points)
    if triangles is None:
        return _bounding_box(hull, color)
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, corners[:, 0] - points.mean(axis=0)) < 0.0
    corners[inwards] = corners[inwards][:, ::-1]
    return triangle_set(corners, color)


def _bounding_box(hull: Hull, color: Color) -> FaceSet:
    low, high = hull.bounds()
    box = face_set(box_faces((high - low).tolist(), color))
    place = np.eye(4)
    place[:3, 3] = 0.5 * (low + high)
    return box.moved(place)
