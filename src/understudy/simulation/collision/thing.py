"""An object of the cell as plain values: for snapshots, and for whoever draws it. Metres."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.transform import Array


class Thing(Struct, frozen=True):
    """`place`: the rows of a 4×4; which sizes count depends on the type."""

    name: str
    type: ObjectType
    place: list[list[float]]
    dimensions: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0
    height: float = 0.0
    vertices: list[list[float]] = []
    indices: list[list[int]] = []

    @staticmethod
    def of(thing: CollisionObject) -> "Thing":
        a, b, c = thing.dimensions
        return Thing(
            name=thing.name,
            type=thing.type,
            place=thing.place.tolist(),
            dimensions=(float(a), float(b), float(c)),
            radius=float(thing.radius),
            height=float(thing.height),
            vertices=np.asarray(thing.vertices, dtype=np.float64).reshape(-1, 3).tolist(),
            indices=np.asarray(thing.indices, dtype=np.int64).reshape(-1, 3).tolist(),
        )

    def built(self) -> CollisionObject:
        return CollisionObject(
            type=self.type,
            name=self.name,
            transform=np.array(self.place),
            dimensions=self.dimensions,
            radius=self.radius,
            height=self.height,
            vertices=np.array(self.vertices).reshape(-1, 3),
            indices=np.array(self.indices, dtype=np.int64).reshape(-1, 3),
        )


def moved(thing: CollisionObject, by: Array) -> CollisionObject:
    """The same thing seen from elsewhere."""
    return replace(thing, transform=by @ thing.place)
