"""Geometry and statics between a gripper and a part: what lies between the fingers, what seals a
cup, and which load a grip carries. Metres, N, kg."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.ports.workpieces import WorkpieceReading
from understudy.space.pose import Pose
from understudy.space.transform import matrix

Vector = NDArray[np.float64]
STANDARD_GRAVITY = 9.80665
AXES = {"x": 0, "y": 1}


class Span(NamedTuple):
    """A part along the axis of the fingers: its width, and its centre from the tool point."""

    width: float
    offset: float

    def fits(self, opening: float) -> bool:
        """Whether it lies between two fingers that are this far apart."""
        return abs(self.offset) + self.width / 2.0 < opening / 2.0


def span_along(tool: Pose, part: WorkpieceReading, axis: str) -> Span:
    frame, own = matrix(tool), matrix(part.pose)
    along = frame[:3, AXES[axis]]
    cosines, (length, breadth, height) = np.abs(along @ own[:3, :3]), part.size
    if part.type == "cylinder":
        round_ = math.sqrt(max(1.0 - float(cosines[2]) ** 2, 0.0))
        width = length * round_ + height * float(cosines[2])
    else:
        width = float(cosines @ np.array((length, breadth, height)))
    return Span(width, float(along @ (own[:3, 3] - frame[:3, 3])))


def seals(tool: Pose, part: WorkpieceReading, *, radius: float, reach: float, tilt: float) -> bool:
    """Whether a cup at the tool point, which looks along the tool's Z, lies on a flat face of the
    part: near enough, flat enough, and with its whole rim on the face."""
    frame, own = matrix(tool), matrix(part.pose)
    cosines = frame[:3, 2] @ own[:3, :3]
    faces = int(np.argmax(np.abs(cosines)))
    if abs(cosines[faces]) < math.cos(tilt):
        return False
    beyond = (own[:3, 3] - frame[:3, 3]) @ own[:3, :3]
    size = np.array(part.size)
    gap = float(beyond[faces] * np.sign(cosines[faces]) - size[faces] / 2.0)
    on_face = np.delete(np.abs(beyond), faces) + radius
    inside = bool((on_face <= np.delete(size, faces) / 2.0).all())
    if part.type == "cylinder":
        rim = float(np.hypot(beyond[0], beyond[1])) + radius
        inside = faces == 2 and rim <= size[0] / 2.0
    return abs(gap) <= reach and inside


def load_of(mass: float, acceleration: Vector) -> Vector:
    """The force with which a lifted part must be held, in the axes of the cell."""
    load: Vector = mass * (acceleration + np.array([0.0, 0.0, STANDARD_GRAVITY]))
    return load


def fingers_carry(load: Vector, axis: Vector, force: float, friction: float) -> bool:
    """Whether two fingers that press with this force along the axis carry the load: the part of it
    along the axis is taken by a finger, the rest by friction on both."""
    along = float(load @ axis)
    across = float(np.linalg.norm(load - along * axis))
    return abs(along) <= force and across <= 2.0 * friction * force


def cup_carries(load: Vector, approach: Vector, force: float, friction: float) -> bool:
    """Whether a cup that sucks with this force against its approach direction carries the load."""
    pull = -float(load @ approach)
    across = float(np.linalg.norm(load + pull * approach))
    return pull <= force and across <= friction * (force - pull)
