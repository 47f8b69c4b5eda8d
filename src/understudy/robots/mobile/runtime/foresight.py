"""What robots will do within the next tick, and whether their way is free for it.

A command is only given if the robot can stop after the tick before it touches something. The check
is made along the path on which the robot would brake: with the speeds that it has after the tick.
As every drive brakes on its curve, a robot that is not allowed to go on can always stop.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.motion.wheels import (
    ACKERMANN,
    DIRECT,
    FORWARD,
    LARGEST_STEERING,
    SIDEWAYS,
    STEERING_RATE,
    TURNING,
    Wheels,
)
from understudy.robots.mobile.runtime.pose_control import ACCELERATION, DECELERATION, REACH
from understudy.robots.mobile.runtime.tick import (
    GAP,
    STANDS,
    Figures,
    fastest_wheel,
    pace_of_wheels,
)
from understudy.space.compiled import compiled, inlined

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]

STEERED_BY_WHEELS = 0.01
"""m/s of an Ackermann drive above which its speeds show how it is steered."""


@compiled
def foresee(
    drive: Codes, wheels: Wheels, speeds: Floats, limits: Floats, command: Floats,
    steering: Floats, next_steering: Floats, foreseen: Floats, seconds: float,
) -> None:  # fmt: skip
    """Fills ``foreseen``: the speeds of the bodies after the tick; ``next_steering``: steering
    angles of Ackermann drives."""
    for row in range(drive.size):
        forward, turning = command[row, FORWARD], command[row, TURNING]
        if drive[row] == ACKERMANN:
            base = wheels.base[row]
            angle = _present_steering(steering[row], base, speeds[row])
            next_steering[row] = _steered(angle, base, command[row], seconds)
            outer = 1.0 + abs(math.tan(angle)) * limits[row, REACH] / base
            now = ramped(speeds[row, FORWARD], forward, limits[row], seconds / outer)
            foreseen[row, FORWARD], foreseen[row, SIDEWAYS] = now, 0.0
            foreseen[row, TURNING] = now * math.tan(next_steering[row]) / base
        elif drive[row] == DIRECT and (forward != 0.0 or turning != 0.0):
            foreseen[row, FORWARD] = ramped(speeds[row, FORWARD], forward, limits[row], seconds)
            foreseen[row, SIDEWAYS], foreseen[row, TURNING] = 0.0, turning
        else:
            share = _share(wheels, row, speeds[row], limits[row], command[row], seconds)
            for column in range(3):
                change = command[row, column] - speeds[row, column]
                foreseen[row, column] = speeds[row, column] + share * change


@compiled
def ramped(speed: float, wanted: float, limits: Floats, seconds: float) -> float:
    """A speed after a tick."""
    change = wanted - speed
    most = limits[DECELERATION if speed * change < 0.0 else ACCELERATION] * seconds
    result: float = speed + min(max(change, -most), most)
    return result


@compiled
def _share(
    wheels: Wheels, row: int, speeds: Floats, limits: Floats, command: Floats, seconds: float
) -> float:
    """The part of the wanted change that the wheels can make in a tick, all in proportion."""
    share = 1.0
    for n in range(wheels.spans[row, 0], wheels.spans[row, 1]):
        speed = wanted = 0.0
        for column in range(3):
            speed += wheels.coefficients[n, column] * speeds[column]
            wanted += wheels.coefficients[n, column] * command[column]
        change = abs(ramped(speed, wanted, limits, seconds) - speed)
        if change < abs(wanted - speed):
            share = min(share, change / abs(wanted - speed))
    return share


@compiled
def _present_steering(angle: float, base: float, speeds: Floats) -> float:
    """As the speeds show it, else as it was commanded last."""
    if abs(speeds[FORWARD]) > STEERED_BY_WHEELS:
        return math.atan(speeds[TURNING] * base / speeds[FORWARD])
    return angle


@compiled
def _steered(angle: float, base: float, command: Floats, seconds: float) -> float:
    """The steering angle after a tick; it stays while the robot shall stand."""
    if command[FORWARD] == 0.0:
        return angle
    wanted = math.atan(command[TURNING] * base / command[FORWARD])
    wanted = min(max(wanted, -LARGEST_STEERING), LARGEST_STEERING)
    most = STEERING_RATE * seconds
    return angle + min(max(wanted - angle, -most), most)


@compiled
def watched_motion(wheels: Wheels, foreseen: Floats, motion: Floats) -> None:
    """Fills ``motion`` with the speeds that the protective fields look at: 0 for robots that
    stand."""
    spans, coefficients = wheels.spans, wheels.coefficients
    for row in range(motion.shape[0]):
        stands = fastest_wheel(spans, coefficients, foreseen, row) < STANDS
        for column in range(3):
            motion[row, column] = 0.0 if stands else foreseen[row, column]


@compiled
def hold_back(
    figures: Figures, wheels: Wheels, speeds: Floats, foreseen: Floats, ahead: Floats,
    command: Floats, blocked: Flags, seconds: float,
) -> None:  # fmt: skip
    """Stops robots that could not stop in time after this tick: ``command`` becomes 0 and
    ``blocked`` is set."""
    spans, coefficients = wheels.spans, wheels.coefficients
    stop_on, stop_distance = figures.stop_on_obstacle, figures.stop_distance
    limits, radius = figures.body_limits, figures.radius
    for row in range(blocked.size):
        if not stop_on[row] or fastest_wheel(spans, coefficients, command, row) < STANDS:
            continue
        needed = GAP + stopping_distance(
            pace_of_wheels(spans, coefficients, foreseen, row, radius[row]),
            fastest_wheel(spans, coefficients, speeds, row),
            fastest_wheel(spans, coefficients, foreseen, row),
            limits[row, DECELERATION], seconds,
        )  # fmt: skip
        if ahead[row] <= max(needed, stop_distance[row]):
            blocked[row] = True
            command[row, :] = 0.0


@inlined
def stopping_distance(
    rate: float, before: float, after: float, braking: float, seconds: float
) -> float:
    """Metres of this tick and of braking after it. Braking ends with a whole tick. ``before`` and
    ``after`` the tick: speed of the fastest wheel; ``rate``: see `pace_of_wheels`."""
    within = max(before, after) * seconds
    return rate * (within + after * after / (2.0 * braking) + braking * seconds * seconds / 8.0)
