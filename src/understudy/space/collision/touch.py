"""Where two shapes touch, and how deep: asked once a contact is known, so plain Python."""

from typing import NamedTuple

import numpy as np

from understudy.space.collision.depth import core_depth
from understudy.space.collision.gjk import core_distance, nearest_point
from understudy.space.collision.pairs import Scratch, distance
from understudy.space.collision.solids import KIND, MESH, SKIN, Solids
from understudy.space.collision.world import Stand
from understudy.space.transform import Array


class Touch(NamedTuple):
    distance: float
    """Negative where the shapes overlap."""
    depth: float
    """0 where they do not overlap; for meshes the least it can be."""
    point: Array
    """Amid both surfaces, in the world."""


def touch(solids: Solids, at: Stand, a: int, b: int, scratch: Scratch) -> Touch:
    """How shapes a and b lie to each other."""
    if solids.traits[a, KIND] > solids.traits[b, KIND]:
        a, b = b, a
    far, triangle = distance(solids, at.placed, at.ends, a, b, np.inf, np.inf, -1, True, scratch)
    shapes = (solids.traits, solids.sizes, at.placed, solids.points)
    if solids.traits[b, KIND] != MESH:
        triangle = -1
    if solids.traits[a, KIND] == MESH:
        # Of two meshes the corner of the first triangle stands for the place.
        return Touch(far, max(-far, 0.0), _world(solids, at.placed, b, triangle))
    _, apart = core_distance(shapes, a, b, -1, triangle, np.inf, scratch[2])
    skin_a, skin_b = solids.sizes[a, SKIN], solids.sizes[b, SKIN]
    if apart <= 0.0:
        depth, _, point = core_depth(shapes, a, b, triangle)
        depth += skin_a + skin_b
        return Touch(-depth, depth, np.array(point))
    on_a = np.array(nearest_point(scratch[2]))
    connection = scratch[2][:, 6] @ scratch[2][:, :3]
    outwards = connection / np.linalg.norm(connection)
    point = on_a - 0.5 * connection + 0.5 * (skin_b - skin_a) * outwards
    return Touch(far, max(-far, 0.0), point)


def _world(solids: Solids, placed: Array, i: int, triangle: int) -> Array:
    corner = solids.points[3 * max(triangle, 0)]
    return np.asarray(placed[i, :9].reshape(3, 3) @ corner + placed[i, 9:])
