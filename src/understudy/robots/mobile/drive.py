"""The drives of many robots as rows of arrays: commands become wheel speeds, these become poses.

Speeds of a body are forward (m/s), sideways (m/s, mecanum only) and turning (rad/s). A command is
first made slower until no wheel is faster than allowed; then all wheels change their speeds in
proportion, so that the wheel with the largest change keeps its limit of acceleration and the path
bends as commanded. Within a tick a body moves on an exact arc with the mean of the speeds before
and after the tick.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.wheels import (
    ACKERMANN,
    DIFFERENTIAL,
    DIRECT,
    LARGEST_STEERING,
    STEERING_RATE,
    moved_on_arc,
    travelled,
    wrapped,
)
from understudy.space.compiled import borrowed, compiled

Floats = NDArray[np.float64]

X, Y, YAW, FORWARD, SIDEWAYS, TURNING, TRAVELLED = range(7)
"""Columns of the state; `TRAVELLED`: metres driven, backwards counts too."""
WHEELS = 4
"""Columns of wheel speeds: two for a differential drive, four for mecanum; ACKERMANN has the rear
wheels' speed and the steering angle."""
STEERING = 1
"""The column of the steering angle."""
TRACK, BASE, MAX_SPEED, MAX_ACCELERATION, MAX_DECELERATION = range(5)
"""Columns of the figures of a robot, in SI units. The track of an Ackermann drive is that of its
driven wheels: the outer one keeps the limits. It is 0 with one driven wheel."""


@compiled
def step_drives(
    rows: NDArray[np.int64],
    model: NDArray[np.int8],
    figures: Floats,
    command: Floats,
    state: Floats,
    wheels: Floats,
    seconds: float,
) -> None:
    """Moves the robots of these rows on by one tick."""
    for row in rows:
        limits, wanted = borrowed(figures[row]), borrowed(command[row])
        body, rolling = borrowed(state[row]), borrowed(wheels[row])
        before = body[FORWARD], body[SIDEWAYS], body[TURNING]
        if model[row] == ACKERMANN:
            _steer(limits, wanted, body, rolling, seconds)
        elif model[row] == DIRECT:
            _follow(limits, wanted, body, seconds)
            if wanted[0] != 0.0 or wanted[2] != 0.0:
                before = before[0], before[1], body[TURNING]
        else:
            _drive_wheels(model[row], limits, wanted, body, rolling, seconds)
        _move(body, before, seconds)


@compiled
def _drive_wheels(
    model: int,
    figures: Floats,
    command: Floats,
    state: Floats,
    wheels: Floats,
    seconds: float,
) -> None:
    """Differential and mecanum: all wheels reach their new speeds at the same time."""
    used = 2 if model == DIFFERENTIAL else 4
    reach = (
        figures[TRACK] / 2.0 if model == DIFFERENTIAL else (figures[TRACK] + figures[BASE]) / 2.0
    )
    sideways = 0.0 if model == DIFFERENTIAL else command[1]
    fastest = 0.0
    for wheel in range(used):
        fastest = max(fastest, abs(wheel_speed(wheel, command[0], sideways, command[2] * reach)))
    slower = figures[MAX_SPEED] / fastest if fastest > figures[MAX_SPEED] else 1.0
    share = 1.0
    for wheel in range(used):
        wanted = wheel_speed(wheel, command[0], sideways, command[2] * reach) * slower
        change = wanted - wheels[wheel]
        most = _largest_change(wheels[wheel], change, figures) * seconds
        if abs(change) > most:
            share = min(share, most / abs(change))
    for wheel in range(used):
        wanted = wheel_speed(wheel, command[0], sideways, command[2] * reach) * slower
        wheels[wheel] += (wanted - wheels[wheel]) * share
    if model == DIFFERENTIAL:
        state[FORWARD] = (wheels[0] + wheels[1]) / 2.0
        state[TURNING] = (wheels[1] - wheels[0]) / 2.0 / reach
    else:
        state[FORWARD] = (wheels[0] + wheels[1] + wheels[2] + wheels[3]) / 4.0
        state[SIDEWAYS] = (wheels[1] - wheels[0] + wheels[2] - wheels[3]) / 4.0
        state[TURNING] = (wheels[1] + wheels[3] - wheels[0] - wheels[2]) / 4.0 / reach


@compiled
def wheel_speed(wheel: int, forward: float, sideways: float, turning: float) -> float:
    """Front left, front right, rear left, rear right; ``turning``: of the wheels, in m/s."""
    side = -1.0 if wheel % 2 == 0 else 1.0
    across = side if wheel < 2 else -side
    return forward + across * sideways + side * turning


@compiled
def _largest_change(speed: float, change: float, figures: Floats) -> float:
    """The limit of braking for a wheel that gets slower, else of acceleration."""
    limit: float = figures[MAX_DECELERATION if speed * change < 0.0 else MAX_ACCELERATION]
    return limit


@compiled
def _steer(figures: Floats, command: Floats, state: Floats, wheels: Floats, seconds: float) -> None:
    """Ackermann: wheels 0 and 1 are the rear speed and the steering angle; it cannot turn on the
    spot, and brakes with the angle that it has."""
    speed, angle = wheels[0], wheels[STEERING]
    outer = 1.0 + abs(math.tan(angle)) * figures[TRACK] / 2.0 / figures[BASE]
    fastest = figures[MAX_SPEED] / outer
    wanted = min(max(command[0], -fastest), fastest)
    most = _largest_change(speed, wanted - speed, figures) / outer * seconds
    speed += min(max(wanted - speed, -most), most)
    if command[0] != 0.0:
        angle = math.atan(command[2] * figures[BASE] / command[0])
    angle = min(max(angle, -LARGEST_STEERING), LARGEST_STEERING)
    turn = STEERING_RATE * seconds
    wheels[STEERING] += min(max(angle - wheels[STEERING], -turn), turn)
    wheels[0] = speed
    state[FORWARD] = speed
    state[TURNING] = speed * math.tan(wheels[STEERING]) / figures[BASE]


@compiled
def _follow(figures: Floats, command: Floats, state: Floats, seconds: float) -> None:
    """A body without wheels: the forward speed keeps the limits, the turning is as commanded. It
    brakes on its curve."""
    before = state[FORWARD]
    wanted = min(max(command[0], -figures[MAX_SPEED]), figures[MAX_SPEED])
    change = wanted - before
    most = _largest_change(before, change, figures) * seconds
    state[FORWARD] += min(max(change, -most), most)
    if command[0] == 0.0 and command[2] == 0.0 and before != 0.0:
        state[TURNING] *= state[FORWARD] / before
    else:
        state[TURNING] = command[2]


@compiled
def _move(state: Floats, before: tuple[float, float, float], seconds: float) -> None:
    """An exact arc with the mean speeds of the tick."""
    forward = (before[0] + state[FORWARD]) / 2.0 * seconds
    sideways = (before[1] + state[SIDEWAYS]) / 2.0 * seconds
    turned = (before[2] + state[TURNING]) / 2.0 * seconds
    state[X], state[Y], yaw = moved_on_arc(
        state[X], state[Y], state[YAW], forward, sideways, turned
    )
    state[YAW] = wrapped(yaw)
    state[TRAVELLED] += travelled(forward, sideways)
