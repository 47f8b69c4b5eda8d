"""Requests for motion in the units of arm or machine."""

import math

from understudy.gcode.actions import Work, six
from understudy.gcode.circles import Circle
from understudy.gcode.dialect import Axes, Frame
from understudy.gcode.requests import (
    ArcMove,
    AxisArc,
    AxisMove,
    JointArc,
    JointMove,
    LineMove,
    Move,
)
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM


def straight(work: Work, target: Axes, frame: Frame, *, rapid: bool = False) -> Move:
    inverse_time = work.feed_mode == "G93" and not rapid
    if not work.dialect.arm:
        return AxisMove(target, 0.0 if rapid else _per_minute(work), rapid, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = _speeds(work) if not (rapid or inverse_time) else (None, None)
    if frame == "axes":
        return JointMove(_joints(work, target), angular, duration)
    return LineMove(_pose(target), linear, angular, duration)


def along_arc(work: Work, circle: Circle) -> Move:
    plane, centre, radius, angle = circle
    inverse_time = work.feed_mode == "G93"
    if not work.dialect.arm:
        feed = _per_minute(work)
        return AxisArc(work.target, plane, centre, radius, angle, feed, inverse_time)
    duration = MINUTE / work.feed if inverse_time else None
    linear, angular = (None, None) if inverse_time else _speeds(work)
    unit = DEG if work.frame == "axes" else MM
    centre, radius = (centre[0] * unit, centre[1] * unit), radius * unit
    if work.frame == "axes":
        joints = _joints(work, work.target)
        return JointArc(joints, plane, centre, radius, angle, angular, duration)
    return ArcMove(_pose(work.target), plane, centre, radius, angle, linear, duration)


def _per_minute(work: Work) -> float:
    scaled = work.dialect.feed_per_second and work.feed_mode != "G93"
    return work.feed * MINUTE if scaled else work.feed


def _speeds(work: Work) -> tuple[float, float]:
    """The feed as m/s and as rad/s; see `JointMove` for joints that slide."""
    per_second = work.feed if work.dialect.feed_per_second else work.feed / MINUTE
    return per_second * MM, per_second * DEG


def _joints(work: Work, target: Axes) -> Axes:
    """The joints in rad, or in m if they slide."""
    return six([value * unit for value, unit in zip(target, work.dialect.units, strict=True)])


def _pose(target: Axes) -> Pose:
    x, y, z, rx, ry, rz = target
    return Pose(x * MM, y * MM, z * MM, *(math.radians(angle) for angle in (rx, ry, rz)))
