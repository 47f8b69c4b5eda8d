"""MOVE_TO_POSE: robots drive to their goals, in the way that suits their drives.

- differential: turn towards the goal, drive there, turn;
- mecanum: a straight line, and turning on the way if a yaw is given;
- Ackermann: see `car_control`.

All robots are rows of arrays. A step looks at the pose and the speeds of a robot and gives the
speeds to command; it keeps nothing but the phase and the route.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.motion.ticks import fastest_within, wrapped
from understudy.motion.wheels import ACKERMANN, FORWARD, MECANUM, SIDEWAYS, TURNING
from understudy.robots.mobile.runtime.car_control import follow_route, plan_route
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]

REST, START, DRIVE, TURN, DONE = range(5)
"""Phases: no goal; a new goal; on the way to the place; turning to the final yaw; there."""
X, Y, YAW, HAS_YAW, TOLERANCE = range(5)
"""Columns of the goal."""
LIMITS = 7
MAX_SPEED, ACCELERATION, DECELERATION, MAX_TURNING, TURNING_ACCELERATION = range(5)
SMALLEST_RADIUS, REACH = 5, 6
"""Columns of the limits, of the body: m/s, m/s2, m/s2, rad/s, rad/s2, m (0: turns on the spot), and
m/s of the fastest wheel at 1 rad/s."""
ASTRAY = math.radians(30.0)
"""A robot that drives stops and turns again if the goal lies this far aside."""
YAW_TOLERANCE = math.radians(0.5)
CAR_YAW_TOLERANCE = math.radians(1.0)
STILL_SPEED, STILL_TURNING = 1e-3, 1e-3
"""m/s and rad/s below which a robot has stopped."""
WHEEL_ERROR = 0.02
"""m/s of forward speed that wheels with an error report at 1 rad/s of turning on the spot."""
CORRECTION = 2.0
"""rad/s of turning for each rad of deviation, while driving."""
CORRECTED_BEFORE = 0.3
"""Metres before the goal from which on the correction gets weaker: the direction of a near goal
changes fast, and the wheels need their deceleration to stop."""
RESERVE = 0.5
"""The part of the acceleration with which a mecanum drive plans: it needs the rest to change the
direction of its wheels while it turns."""
SOON = 0.3
"""Seconds."""


@compiled
def steer_to_goals(
    drive: NDArray[np.int8],
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    phase: NDArray[np.int8],
    route: Floats,
    command: Floats,
    seconds: float,
) -> None:
    """Fills ``command`` and changes ``phase`` of the robots that have a goal.

    ``drive``: codes of `motion.wheels`. ``speeds`` and ``command``: forward, sideways, turning. A
    new goal begins with the phase START. ``route``: as `car_control` has it.
    """
    for row in range(phase.size):
        if phase[row] == REST or phase[row] == DONE:
            continue
        if drive[row] == ACKERMANN:
            phase[row] = _follow(
                phase[row], pose[row], speeds[row], goal[row], limits[row], route[row],
                command[row], seconds,
            )  # fmt: skip
        else:
            phase[row] = _drive_and_turn(
                phase[row], drive[row] == MECANUM, pose[row], speeds[row], goal[row], limits[row],
                command[row], seconds,
            )  # fmt: skip


@compiled
def _drive_and_turn(
    phase: int,
    sideways: bool,
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    command: Floats,
    seconds: float,
) -> int:
    """Drives to the place, then turns to the final yaw. Returns the next phase."""
    if phase == TURN:
        turn = wrapped(goal[YAW] - pose[YAW]) if goal[HAS_YAW] > 0.0 else 0.0
        command[FORWARD] = command[SIDEWAYS] = 0.0
        command[TURNING] = turning_towards(turn, speeds, limits, seconds)
        if abs(turn) > YAW_TOLERANCE or abs(speeds[TURNING]) >= STILL_TURNING:
            return TURN
        command[TURNING] = 0.0
        return DONE
    if sideways:
        _glide(pose, speeds, goal, limits, command, seconds)
    else:
        _drive(pose, speeds, goal, limits, command, seconds)
    away = math.hypot(goal[X] - pose[X], goal[Y] - pose[Y])
    stopped = math.hypot(speeds[FORWARD], speeds[SIDEWAYS]) < STILL_SPEED
    return TURN if away <= goal[TOLERANCE] / 2.0 and stopped else DRIVE


@compiled
def _drive(
    pose: Floats, speeds: Floats, goal: Floats, limits: Floats, command: Floats, seconds: float
) -> None:
    """Turns towards the goal and drives there."""
    dx, dy = goal[X] - pose[X], goal[Y] - pose[Y]
    away = math.hypot(dx, dy)
    aside = wrapped(math.atan2(dy, dx) - pose[YAW])
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    if away <= goal[TOLERANCE] / 2.0:  # near enough: stop, do not turn after a point underfoot
        return
    standing = abs(speeds[FORWARD]) < STILL_SPEED + WHEEL_ERROR * abs(speeds[TURNING])
    if standing and (abs(aside) > YAW_TOLERANCE or abs(speeds[TURNING]) > STILL_TURNING):
        command[TURNING] = turning_towards(aside, speeds, limits, seconds)
        return
    if abs(aside) > ASTRAY and away > goal[TOLERANCE]:
        return
    ahead = away * math.cos(aside)
    fastest = fastest_within(
        abs(ahead), abs(speeds[FORWARD]), limits[DECELERATION], limits[MAX_SPEED], seconds
    )
    command[FORWARD] = math.copysign(fastest, ahead)
    straight = aside if ahead > 0.0 else wrapped(aside + math.pi)
    turning = CORRECTION * straight * min(1.0, away / CORRECTED_BEFORE)
    command[TURNING] = min(max(turning, -limits[MAX_TURNING]), limits[MAX_TURNING])


@compiled
def _glide(
    pose: Floats, speeds: Floats, goal: Floats, limits: Floats, command: Floats, seconds: float
) -> None:
    """Drives straight to the goal, in any direction of the body, and turns on the way."""
    dx, dy = goal[X] - pose[X], goal[Y] - pose[Y]
    away = math.hypot(dx, dy)
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    turn = wrapped(goal[YAW] - pose[YAW]) if goal[HAS_YAW] > 0.0 else 0.0
    fastest = 0.0
    if away > goal[TOLERANCE] / 2.0:
        aside = math.atan2(dy, dx) - pose[YAW]
        along, across = math.cos(aside), math.sin(aside)
        wheel = abs(along) + abs(across)  # m/s of the fastest wheel at 1 m/s of the body
        closing = speeds[FORWARD] * along + speeds[SIDEWAYS] * across
        fastest = fastest_within(
            away, closing, limits[DECELERATION] * RESERVE / wheel, limits[MAX_SPEED] / wheel,
            seconds,
        )  # fmt: skip
        command[FORWARD], command[SIDEWAYS] = fastest * along, fastest * across
    turning = turning_towards(turn, speeds, limits, seconds)
    # The faster it drives soon, the more acceleration a turn needs.
    present = math.hypot(speeds[FORWARD], speeds[SIDEWAYS])
    speed = max(present, min(fastest, present + limits[ACCELERATION] * SOON))
    if speed > 0.0:
        most = RESERVE / 2.0 * limits[ACCELERATION] / speed
        turning = min(max(turning, -most), most)
    command[TURNING] = turning


@compiled
def _follow(
    phase: int,
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    route: Floats,
    command: Floats,
    seconds: float,
) -> int:
    """Drives like a car. Returns the next phase."""
    if phase == DRIVE:
        ended = follow_route(
            pose, speeds, limits[MAX_SPEED], limits[DECELERATION], limits[SMALLEST_RADIUS],
            limits[REACH], route, command, seconds,
        )  # fmt: skip
        return START if ended else DRIVE
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    if abs(speeds[FORWARD]) >= STILL_SPEED:
        return START
    away = math.hypot(goal[X] - pose[X], goal[Y] - pose[Y])
    turn = wrapped(goal[YAW] - pose[YAW]) if goal[HAS_YAW] > 0.0 else 0.0
    if away <= goal[TOLERANCE] / 2.0 and abs(turn) <= CAR_YAW_TOLERANCE:
        return DONE
    plan_route(pose, goal, limits[SMALLEST_RADIUS], route)
    return DRIVE


@compiled
def turning_towards(angle: float, speeds: Floats, limits: Floats, seconds: float) -> float:
    """The turning speed from which the robot still stops at the angle."""
    fastest = fastest_within(
        abs(angle), abs(speeds[TURNING]), limits[TURNING_ACCELERATION], limits[MAX_TURNING], seconds
    )
    return math.copysign(fastest, angle)
