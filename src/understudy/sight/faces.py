"""Flat faces with a pattern: what a rendered scene is made of.

A face is a parallelogram, or the triangle that is half of it, seen from the side its normal points
to. Its pattern is a grid of coloured cells with sharp borders, as markers and boards have them; a
plain face has one cell.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.space.transform import Array

Pattern = NDArray[np.uint8]
"""(rows, columns, 3): red, green and blue; row 0 is at `corner`, columns go along `across`."""
Color = tuple[int, int, int]
CYLINDER_SIDES = 48


def plain(color: Color) -> Pattern:
    return np.array([[color]], dtype=np.uint8)


@dataclass(frozen=True)
class Face:
    """`corner`: its first point; `across` and `down`: its edges from there, in metres. The side
    that is seen is the one to which across × down points. `sheet`: it lies on a face that comes
    before it, and hides it although both are in one plane."""

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
        """Its corners, (3 or 4, 3)."""
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


def mesh_faces(vertices: Array, triangles: Iterable[Sequence[int]], color: Color) -> list[Face]:
    """The triangles of a mesh, whose corners are counter-clockwise seen from outside."""
    body = plain(color)
    return [
        Face(vertices[a], vertices[b] - vertices[a], vertices[c] - vertices[a], body, triangle=True)
        for a, b, c in triangles
    ]
