"""MOVE_TO_POSE for robots that can turn on the spot: turn towards the goal, drive there, turn.

All robots are rows of arrays. A step looks at the pose and the speeds of a robot and gives the
speed to command; it keeps nothing but the phase.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.motion.ticks import fastest_within, wrapped
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]

REST, DRIVE, TURN, DONE = range(4)
"""Phases: no goal; on the way to the place; turning to the final yaw; there."""
X, Y, YAW, HAS_YAW, TOLERANCE = range(5)
"""Columns of the goal."""
MAX_SPEED, ACCELERATION, DECELERATION, MAX_TURNING, TURNING_ACCELERATION = range(5)
"""Columns of the limits, of the body: m/s, m/s2, m/s2, rad/s, rad/s2."""
FORWARD, TURNING = range(2)
"""Columns of speeds and commands."""
ASTRAY = math.radians(30.0)
"""A robot that drives stops and turns again if the goal lies this far aside."""
YAW_TOLERANCE = math.radians(0.5)
STILL_SPEED, STILL_TURNING = 1e-3, 1e-3
"""m/s and rad/s below which a robot has stopped."""
CORRECTION = 2.0
"""rad/s of turning for each rad of deviation, while driving."""


@compiled
def steer_to_goals(
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    phase: NDArray[np.int8],
    command: Floats,
    seconds: float,
) -> None:
    """Fills ``command`` and changes ``phase`` of the robots that have a goal."""
    for row in range(phase.size):
        if phase[row] == DRIVE:
            _drive(pose[row], speeds[row], goal[row], limits[row], command[row], seconds)
            away = math.hypot(goal[row, X] - pose[row, X], goal[row, Y] - pose[row, Y])
            stopped = abs(speeds[row, FORWARD]) < STILL_SPEED
            if away <= goal[row, TOLERANCE] / 2.0 and stopped:
                phase[row] = TURN
        elif phase[row] == TURN:
            turn = wrapped(goal[row, YAW] - pose[row, YAW]) if goal[row, HAS_YAW] > 0.0 else 0.0
            command[row, FORWARD] = 0.0
            command[row, TURNING] = turning_towards(turn, speeds[row], limits[row], seconds)
            if abs(turn) <= YAW_TOLERANCE and abs(speeds[row, TURNING]) < STILL_TURNING:
                command[row, TURNING] = 0.0
                phase[row] = DONE


@compiled
def _drive(
    pose: Floats, speeds: Floats, goal: Floats, limits: Floats, command: Floats, seconds: float
) -> None:
    dx, dy = goal[X] - pose[X], goal[Y] - pose[Y]
    away = math.hypot(dx, dy)
    aside = wrapped(math.atan2(dy, dx) - pose[YAW])
    if away <= goal[TOLERANCE] / 2.0:  # near enough: stop, do not turn after a point underfoot
        command[FORWARD] = command[TURNING] = 0.0
        return
    standing = abs(speeds[FORWARD]) < STILL_SPEED
    if standing and (abs(aside) > YAW_TOLERANCE or abs(speeds[TURNING]) > STILL_TURNING):
        command[FORWARD] = 0.0
        command[TURNING] = turning_towards(aside, speeds, limits, seconds)
        return
    if abs(aside) > ASTRAY and away > goal[TOLERANCE]:
        command[FORWARD] = command[TURNING] = 0.0
        return
    ahead = away * math.cos(aside)
    fastest = fastest_within(
        abs(ahead), abs(speeds[FORWARD]), limits[DECELERATION], limits[MAX_SPEED], seconds
    )
    command[FORWARD] = math.copysign(fastest, ahead)
    straight = aside if ahead > 0.0 else wrapped(aside + math.pi)
    turning = CORRECTION * straight
    command[TURNING] = min(max(turning, -limits[MAX_TURNING]), limits[MAX_TURNING])


@compiled
def turning_towards(angle: float, speeds: Floats, limits: Floats, seconds: float) -> float:
    """The turning speed from which the robot still stops at the angle."""
    fastest = fastest_within(
        abs(angle), abs(speeds[TURNING]), limits[TURNING_ACCELERATION], limits[MAX_TURNING], seconds
    )
    return math.copysign(fastest, angle)
