"""MOVE_TO_POSE for Ackermann drives: along a path of arcs and lines, forwards and backwards.

The path is the shortest one with the smallest turning radius (`motion.reeds_shepp`), planned when
the robot stands. It stops between two segments to steer, so that it drives each of them exactly;
deviations are steered out on the way. At the end the rest, if it is more than the tolerance, is a
new path. A robot steers while it stands by the command of a speed that is too small to move it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.motion.reeds_shepp import SEGMENTS, plan_to_place, plan_to_pose
from understudy.motion.ticks import fastest_within, wrapped
from understudy.motion.wheels import (
    FORWARD,
    LARGEST_STEERING,
    SIDEWAYS,
    STEERING_RATE,
    TURNING,
    moved_on_arc,
)
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]

COUNT, SEGMENT, CURVATURE, TRAVEL, ORIGIN, PATH = 0, 1, 2, 3, 4, 7
"""Columns of the route: number of segments, the present one, the curvature that is steered (1/m),
the metres driven in the segment (backwards: below 0), the pose at the begin of the segment, then
curvature and length of each segment."""
ROUTE = PATH + 2 * SEGMENTS
WIDER = 1.1
"""The smallest radius, times this, is that of the path: the rest is for corrections."""
CHANGE = 0.5
"""Metres of a longer path that are better than one more segment: a stop costs time."""
CREEP = 1e-9
"""m/s by which a standing robot is steered."""
AT_END = 1e-3
"""Metres before the end of a segment at which it ends."""
STEERED = 1e-3
"""1/m by which the steered curvature may be off when the robot starts."""
SLOWER_STEERING = 0.9
"""The part of the steering rate that is commanded, so that the drive keeps up."""
STILL = 1e-3
"""m/s below which a robot has stopped."""


@compiled
def plan_route(pose: Floats, goal: Floats, radius: float, route: Floats) -> None:
    """Fills ``route`` with the path to the goal (x, y, yaw, whether the yaw counts)."""
    dx, dy = goal[0] - pose[0], goal[1] - pose[1]
    along, across = math.cos(pose[2]), math.sin(pose[2])
    x, y = dx * along + dy * across, dy * along - dx * across
    path = np.zeros((SEGMENTS, 2))
    if goal[3] > 0.0:
        plan_to_pose(x, y, wrapped(goal[2] - pose[2]), radius * WIDER, CHANGE, path)
    else:
        plan_to_place(x, y, radius * WIDER, CHANGE, path)
    count = 0
    for n in range(SEGMENTS):
        if abs(path[n, 1]) > AT_END:
            route[PATH + 2 * count], route[PATH + 2 * count + 1] = path[n, 0], path[n, 1]
            count += 1
    route[COUNT], route[SEGMENT], route[TRAVEL] = count, 0.0, 0.0
    # Where the wheels point is not known: as far away as possible from what is needed first.
    route[CURVATURE] = -math.copysign(1.0 / radius, route[PATH])
    for column in range(3):
        route[ORIGIN + column] = pose[column]


@compiled
def follow_route(
    pose: Floats,
    speeds: Floats,
    highest: float,
    deceleration: float,
    radius: float,
    outer: float,
    route: Floats,
    command: Floats,
    seconds: float,
) -> bool:
    """Fills ``command``; returns whether the robot stands at the end of the route. ``highest`` and
    ``deceleration``: of the wheels; ``radius``: the smallest of a turn; ``outer``: metres by which
    a driven wheel is away from the middle."""
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    place = int(route[SEGMENT])
    if place >= int(route[COUNT]):
        return True
    curvature, length = route[PATH + 2 * place], route[PATH + 2 * place + 1]
    aside, turned = _deviation(pose, route, curvature)
    left = length - route[TRAVEL]
    standing = abs(speeds[FORWARD]) < STILL
    if abs(left) <= AT_END:
        if standing:
            _next_segment(route, curvature, length)
        return False
    ahead = math.copysign(1.0, left)
    wanted = curvature + _correction(aside, turned * ahead, max(radius, 0.6 * abs(speeds[FORWARD])))
    wanted = min(max(wanted, -1.0 / radius), 1.0 / radius)
    steered = route[CURVATURE] = _steered(route[CURVATURE], wanted, radius, seconds)
    speed = CREEP
    if not standing or abs(steered - wanted) <= STEERED:
        most = 1.0 + outer * max(abs(steered), abs(curvature))
        speed = fastest_within(
            abs(left), ahead * speeds[FORWARD], deceleration / most, highest / most, seconds
        )
    command[FORWARD] = ahead * speed
    command[TURNING] = steered * command[FORWARD]
    return False


@compiled
def _correction(aside: float, turned: float, reach: float) -> float:
    """The curvature that brings the robot back to its segment: deviations fade within a few times
    the length ``reach`` (two poles at -1/reach)."""
    return -aside / (reach * reach) - 2.0 * turned / reach


@compiled
def _next_segment(route: Floats, curvature: float, length: float) -> None:
    """The next segment begins where the present one should end."""
    x, y, yaw = moved_on_arc(
        route[ORIGIN], route[ORIGIN + 1], route[ORIGIN + 2], length, 0.0, curvature * length
    )
    route[ORIGIN], route[ORIGIN + 1], route[ORIGIN + 2] = x, y, wrapped(yaw)
    route[SEGMENT] += 1.0
    route[TRAVEL] = 0.0


@compiled
def _deviation(pose: Floats, route: Floats, curvature: float) -> tuple[float, float]:
    """How far the robot is to the left of its segment, and turned to the left. Sets the metres
    driven."""
    dx, dy = pose[0] - route[ORIGIN], pose[1] - route[ORIGIN + 1]
    along, across = math.cos(route[ORIGIN + 2]), math.sin(route[ORIGIN + 2])
    x, y = dx * along + dy * across, dy * along - dx * across
    aside = y
    if curvature == 0.0:
        route[TRAVEL] = x
    else:
        centre = 1.0 / curvature
        side = math.copysign(1.0, curvature)
        angle = math.atan2(x * side, (centre - y) * side)
        driven = route[TRAVEL] * curvature
        route[TRAVEL] = (driven + wrapped(angle - driven)) / curvature
        aside = centre - side * math.hypot(x, centre - y)
    return aside, wrapped(pose[2] - route[ORIGIN + 2] - curvature * route[TRAVEL])


@compiled
def _steered(curvature: float, wanted: float, radius: float, seconds: float) -> float:
    """The curvature after a tick of steering."""
    base = radius * math.tan(LARGEST_STEERING)
    most = SLOWER_STEERING * STEERING_RATE * seconds
    angle, target = math.atan(curvature * base), math.atan(wanted * base)
    if abs(target - angle) <= most:
        return wanted
    return math.tan(angle + math.copysign(most, target - angle)) / base
