"""Teaching by positions: step moves of a frame, TCP calibration by four points, base frame by
three points."""

import math
from typing import NamedTuple

import numpy as np

from understudy.errors import Refused
from understudy.space.transform import Array, rotation

FLATTEST = math.radians(1.0)
"""Rotations between points, or a corner of three points, below this angle are too small to use."""
NEAREST = 1e-3
"""Least distance (m) of two points that define a direction."""


class TipCalibration(NamedTuple):
    """TCP in the flange frame, the touched point, and the largest error of a touch (m)."""

    offset: Array
    point: Array
    residual: float


def moved_frame(here: Array, axis: int, amount: float, *, in_tool: bool) -> Array:
    """A frame shifted along (axis 0–2, m) or rotated about (3–5, rad) one axis: its own if
    ``in_tool``, else that of its reference frame."""
    step = [0.0] * 6
    step[axis] = amount
    turn, shift = rotation(step[3], step[4], step[5]), np.array(step[:3])
    there = here.copy()
    if in_tool:
        there[:3, :3] = here[:3, :3] @ turn
        there[:3, 3] += here[:3, :3] @ shift
    else:
        there[:3, :3] = turn @ here[:3, :3]
        there[:3, 3] += shift
    return there


def tcp_by_points(flanges: Array) -> TipCalibration | Refused:
    """TCP from four or more flange frames (n, 4, 4) in which the tip touches the same point.

    R·offset + t = point for each frame: linear in offset and point, solved by least squares.
    """
    count = len(flanges)
    if count < 4:
        return Refused(f"four points are needed, got {count}")
    turns, places = flanges[:, :3, :3], flanges[:, :3, 3]
    spread = np.linalg.svd(np.vstack(turns[1:] - turns[0]), compute_uv=False)
    if spread[-1] < math.sin(FLATTEST):
        return Refused("rotate the tool about two axes: these points do not determine the TCP")
    rows = np.zeros((3 * count, 6))
    rows[:, :3] = turns.reshape(-1, 3)
    rows[:, 3:] = np.tile(-np.eye(3), (count, 1))
    found, *_ = np.linalg.lstsq(rows, -places.reshape(-1), rcond=None)
    misses = np.linalg.norm((rows @ found + places.reshape(-1)).reshape(-1, 3), axis=1)
    offset, point = np.asarray(found[:3], np.float64), np.asarray(found[3:], np.float64)
    return TipCalibration(offset, point, float(misses.max()))


def frame_by_three(origin: Array, on_x: Array, on_plane: Array) -> Array | Refused:
    """Frame (4×4) with x from the origin through the second point and y towards the third."""
    along, aside = on_x - origin, on_plane - origin
    lengths = np.linalg.norm(along), np.linalg.norm(aside)
    if min(lengths) < NEAREST:
        return Refused("the points are less than 1 mm apart")
    normal = np.cross(along, aside)
    size = float(np.linalg.norm(normal))
    if size < math.sin(FLATTEST) * lengths[0] * lengths[1]:
        return Refused("the three points lie on one line")
    frame = np.eye(4)
    frame[:3, 0] = along / lengths[0]
    frame[:3, 2] = normal / size
    frame[:3, 1] = np.cross(frame[:3, 2], frame[:3, 0])
    frame[:3, 3] = origin
    return frame
