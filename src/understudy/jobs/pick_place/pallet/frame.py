"""The frame of a pallet, from its origin and up to two more corner points."""

import numpy as np

from understudy.config.position import Position
from understudy.errors import ConfigError
from understudy.space.transform import Array
from understudy.units import MM

SHORTEST = 1e-3
"""Metres: corner points that are closer give no direction."""
UP = np.array([0.0, 0.0, 1.0])


def point(position: Position) -> Array:
    """x, y, z in metres."""
    return np.array([position.x, position.y, position.z]) * MM


def axes(origin: Position, corner2: Position | None, corner3: Position | None) -> Array:
    """(3, 3): the columns are the directions of the pallet's columns, rows and layers.

    From three points; from two and the cell's Z; or the axes of the cell. Layers go upwards: if the
    rows are to the right of the columns, the three directions are left-handed. Degenerate points
    are a ConfigError.
    """
    if corner2 is None:
        return np.eye(3)
    along = point(corner2) - point(origin)
    x = _direction(along, "corner2", "origin")
    if corner3 is None:
        y = _direction(np.cross(UP, along), "corner2", "the vertical through the origin")
    else:
        to = point(corner3) - point(origin)
        y = _direction(to - (to @ x) * x, "corner3", "the line from origin to corner2")
    z = np.cross(x, y)
    return np.stack([x, y, -z if z @ UP < 0.0 else z], axis=1)


def _direction(vector: Array, key: str, reference: str) -> Array:
    length = float(np.linalg.norm(vector))
    if length < SHORTEST:
        raise ConfigError(
            f"the point is too near to {reference}",
            key=key,
            allowed=f"a distance of at least {SHORTEST / MM:g} mm",
        )
    return vector / length
