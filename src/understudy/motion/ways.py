"""Ways of the tool in space: lines and arcs, turning evenly from one orientation to another.

A way is run by the share 0…1 of its length. Its length is that of the tip's way in metres; where
the tip stays in its place it is the angle turned, in radians.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from understudy.motion.arcs import swept_angle
from understudy.motion.path import Floats
from understudy.space.transform import about, angle_between, axis_angle, line

IN_PLACE = 1e-9
"""A tip that moves less than this (m) stays in its place."""


class Way(Protocol):
    """Where the tool goes, as poses (4×4) and as rates of change per unit of the way's length."""

    @property
    def length(self) -> float: ...

    @property
    def angle(self) -> float:
        """How far the tool turns, in radians."""
        ...

    def poses(self, shares: Floats) -> Floats:
        """(n, 4, 4)"""
        ...

    def rates(self, shares: Floats) -> Floats:
        """(n, 6): direction of the tip and turning rate, per unit of length, in the base's axes."""
        ...


@dataclass(frozen=True, eq=False)
class Line:
    """Straight from one pose to another."""

    start: Floats
    end: Floats

    @cached_property
    def distance(self) -> float:
        return float(np.linalg.norm(self.end[:3, 3] - self.start[:3, 3]))

    @cached_property
    def angle(self) -> float:
        return angle_between(self.start, self.end)

    @cached_property
    def length(self) -> float:
        return self.distance if self.distance > IN_PLACE else self.angle

    def poses(self, shares: Floats) -> Floats:
        return line(self.start, self.end, shares)

    def rates(self, shares: Floats) -> Floats:
        rate = np.concatenate([self.end[:3, 3] - self.start[:3, 3], _turning(self.start, self.end)])
        return np.broadcast_to(rate / self.length, (len(shares), 6)).copy()


@dataclass(frozen=True, eq=False)
class Arc:
    """About an axis through the centre, possibly climbing along it."""

    start: Floats
    end: Floats
    centre: Floats
    axis: Floats
    swept: float

    @cached_property
    def radius(self) -> float:
        spoke = self.start[:3, 3] - self.centre
        return float(np.linalg.norm(spoke - (spoke @ self.axis) * self.axis))

    @cached_property
    def climb(self) -> float:
        return float((self.end[:3, 3] - self.start[:3, 3]) @ self.axis)

    @cached_property
    def angle(self) -> float:
        return angle_between(self.start, self.end)

    @cached_property
    def length(self) -> float:
        return float(np.hypot(self.radius * self.swept, self.climb))

    def poses(self, shares: Floats) -> Floats:
        out = line(self.start, self.end, shares)
        spoke = self.start[:3, 3] - self.centre
        turned = about(self.axis, np.asarray(shares) * self.swept) @ spoke
        out[:, :3, 3] = self.centre + turned + np.outer(shares, self.climb * self.axis)
        return out

    def rates(self, shares: Floats) -> Floats:
        spoke = self.poses(shares)[:, :3, 3] - self.centre
        moved = np.cross(self.axis, spoke) * self.swept + self.climb * self.axis
        turning = np.broadcast_to(_turning(self.start, self.end), moved.shape)
        return np.hstack([moved, turning]) / self.length


def arc(
    start: Floats,
    end: Floats,
    centre: ArrayLike,
    *,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    turns: int = 1,
) -> Arc:
    """An arc in the plane across ``normal`` (G17: z), counter-clockwise about it for turns > 0."""
    axis = np.asarray(normal, dtype=np.float64) / np.linalg.norm(normal)
    middle = np.asarray(centre, dtype=np.float64)
    spoke = start[:3, 3] - middle
    x = spoke - (spoke @ axis) * axis
    frame = np.stack([x, np.cross(axis, x)])
    first, last = (frame @ (pose[:3, 3] - middle) for pose in (start, end))
    swept = swept_angle(first, last, np.zeros(2), turns=turns)
    return Arc(start, end, middle, axis, swept)


def _turning(start: Floats, end: Floats) -> Floats:
    """The whole turn from start to end as axis times angle, in the base's axes."""
    axis, angle = axis_angle(start[:3, :3].T @ end[:3, :3])
    return np.asarray(start[:3, :3] @ axis * angle)
