"""MOVE_TO_POSE: robots drive to their goals, in the way that suits their drives.

- differential: turn towards the goal, drive there, turn;
- mecanum: a straight line, and turning on the way if a yaw is given;
- Ackermann: along a path of arcs and lines, forwards and backwards.

All robots are rows of arrays. A step looks at the pose and the speeds of a robot and gives the
speeds to command; it keeps nothing but the phase and the route.

The path of an Ackermann drive is the shortest one with the smallest turning radius (`reeds_shepp`),
planned when the robot stands. It stops between two segments to steer, so that it drives each of
them exactly; deviations are steered out on the way. At the end the rest, if it is more than the
tolerance, is a new path. A robot steers while it stands by the command of a speed that is too small
to move it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.reeds_shepp import SEGMENTS, plan_to_place, plan_to_pose
from understudy.robots.mobile.wheels import (
    ACKERMANN,
    FORWARD,
    LARGEST_STEERING,
    MECANUM,
    SIDEWAYS,
    STEERING_RATE,
    TURNING,
    fastest_within,
    moved_on_arc,
    wrapped,
)
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]

COUNT, SEGMENT, CURVATURE, TRAVEL, ORIGIN, PATH = 0, 1, 2, 3, 4, 7
"""Columns of the route: number of segments, the present one, the curvature that is steered (1/m),
the metres driven in the segment (backwards: below 0), the pose at the begin of the segment, then
curvature and length of each segment, and for how long a standing robot has been steered as it shall
be."""
WAITED = PATH + 2 * SEGMENTS
ROUTE = WAITED + 1
WIDER = 1.1
"""The smallest radius, times this, is that of the path: the rest is for corrections."""
CHANGE = 0.5
"""Metres of a longer path that are better than one more segment: a stop costs time."""
NUDGE = 1e-9
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
    delay: float,
    settled: bool,
    route: Floats,
    command: Floats,
    seconds: float,
) -> bool:
    """Fills ``command``; returns whether the robot stands at the end of the route. ``highest`` and
    ``deceleration``: of the wheels; ``radius``: the smallest of a turn; ``outer``: metres by which
    a driven wheel is away from the middle; ``delay``: seconds in which wheels that are steered come
    to their angle."""
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    place = int(route[SEGMENT])
    if place >= int(route[COUNT]):
        return True
    curvature, length = route[PATH + 2 * place], route[PATH + 2 * place + 1]
    aside, turned = _deviation(pose, route, curvature)
    left = length - route[TRAVEL]
    standing = abs(speeds[FORWARD]) < STILL
    if abs(left) <= AT_END:
        if standing and settled:
            _next_segment(route, curvature, length)
        return False
    ahead = math.copysign(1.0, left)
    wanted = curvature + _correction(aside, turned * ahead, max(radius, 0.6 * abs(speeds[FORWARD])))
    wanted = min(max(wanted, -1.0 / radius), 1.0 / radius)
    steered = route[CURVATURE] = _steered(route[CURVATURE], wanted, radius, seconds)
    speed = NUDGE
    route[WAITED] = route[WAITED] + seconds if abs(steered - wanted) <= STEERED else 0.0
    if not standing or (abs(steered - wanted) <= STEERED and route[WAITED] > delay):
        most = 1.0 + outer * max(abs(steered), abs(curvature))
        speed = fastest_within(
            abs(left), ahead * speeds[FORWARD], deceleration / most, highest / most, seconds
        )
        if delay > 0.0:
            speed = min(speed, 2.0 * abs(left) / delay)
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
    route[TRAVEL] = route[WAITED] = 0.0


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


# ── goals of all robots ──────────────────────────────────────────────────────────────────────────


REST, START, DRIVE, CREEP, TURN, DONE = range(6)
"""Phases: no goal; a new goal; on the way to the place; slowly to and fro, after a way too far;
turning to the final yaw; there."""
X, Y, YAW, HAS_YAW, TOLERANCE = range(5)
"""Columns of the goal."""
LIMITS = 8
MAX_SPEED, ACCELERATION, DECELERATION, MAX_TURNING, TURNING_ACCELERATION = range(5)
SMALLEST_RADIUS, REACH, EASING = 5, 6, 7
"""Columns of the limits, of the body: m/s, m/s2, m/s2, rad/s, rad/s2, m (0: turns on the spot), m/s
of the fastest wheel at 1 rad/s, and the seconds in which a late robot comes to an end at most: so
it does not swing about its goal."""
ASTRAY = math.radians(30.0)
"""A robot that drives stops and turns again if the goal lies this far aside."""
YAW_TOLERANCE = math.radians(0.5)
CAR_YAW_TOLERANCE = math.radians(1.0)
OVERRUN = 0.25
"""Metres up to which a robot that has driven beyond its goal drives back without turning round."""
CREEPING = 0.5
"""Seconds: the speed is the rest of the way in this time, so that it ends also with a wrong delay
of the loop."""
STOPPING, STAYING = 0.5, 0.75
"""Parts of the tolerance within which a robot stops, and within which a late robot that stands
stays: between them lies a way that takes several ticks. A command of one tick may not reach a PLC
whose cycle is longer, and such a robot would wait for ever for what it does not do."""
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
    settled: NDArray[np.bool_],
    phase: NDArray[np.int8],
    route: Floats,
    command: Floats,
    seconds: float,
) -> None:
    """Fills ``command`` and changes ``phase`` of the robots that have a goal.

    ``drive``: codes of `wheels`. ``speeds`` and ``command``: forward, sideways, turning. A
    new goal begins with the phase START. ``settled``: robots that stand where ``pose`` says, when
    their speeds are 0; late ones do so some time later. ``route``: as `plan_route` fills it.
    """
    for row in range(phase.size):
        if phase[row] == REST or phase[row] == DONE:
            continue
        if drive[row] == ACKERMANN:
            phase[row] = _follow(
                phase[row],
                pose[row],
                speeds[row],
                goal[row],
                limits[row],
                settled[row],
                route[row],
                command[row],
                seconds,
            )
        else:
            phase[row] = _drive_and_turn(
                phase[row],
                drive[row] == MECANUM,
                pose[row],
                speeds[row],
                goal[row],
                limits[row],
                settled[row],
                command[row],
                seconds,
            )


@compiled
def _drive_and_turn(
    phase: int,
    sideways: bool,
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    settled: bool,
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
        return DONE if settled else TURN
    if sideways:
        _glide(pose, speeds, goal, limits, command, seconds)
        phase = DRIVE
    else:
        phase = _drive(phase, pose, speeds, goal, limits, settled, command, seconds)
    away = math.hypot(goal[X] - pose[X], goal[Y] - pose[Y])
    stopped = math.hypot(speeds[FORWARD], speeds[SIDEWAYS]) < STILL_SPEED
    return TURN if away <= near_enough(goal, speeds, limits) and stopped and settled else phase


@compiled
def near_enough(goal: Floats, speeds: Floats, limits: Floats) -> float:
    """Metres from the goal at which a robot stops, and from which on it does not start again."""
    slowest = STILL_SPEED + WHEEL_ERROR * abs(speeds[TURNING])
    still = math.hypot(speeds[FORWARD], speeds[SIDEWAYS]) < slowest
    share = STAYING if still and limits[EASING] > 0.0 else STOPPING
    return float(goal[TOLERANCE] * share)


@compiled
def _drive(
    phase: int,
    pose: Floats,
    speeds: Floats,
    goal: Floats,
    limits: Floats,
    settled: bool,
    command: Floats,
    seconds: float,
) -> int:
    """Turns towards the goal and drives there: a late robot when the turn has ended. A robot that
    has driven beyond its goal does not turn round: it drives the rest backwards, slowly. Returns
    the next phase."""
    dx, dy = goal[X] - pose[X], goal[Y] - pose[Y]
    away = math.hypot(dx, dy)
    aside = wrapped(math.atan2(dy, dx) - pose[YAW])
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    if away <= near_enough(goal, speeds, limits):  # stop, do not turn after a point underfoot
        return phase
    if away > OVERRUN:
        phase = min(phase, DRIVE)
    elif phase == DRIVE and abs(aside) > math.pi / 2.0:
        phase = CREEP
    backwards = phase == CREEP and abs(aside) > math.pi / 2.0
    if backwards:
        aside = wrapped(aside + math.pi)
    standing = abs(speeds[FORWARD]) < STILL_SPEED + WHEEL_ERROR * abs(speeds[TURNING])
    if standing and (abs(aside) > YAW_TOLERANCE or abs(speeds[TURNING]) > STILL_TURNING):
        command[TURNING] = turning_towards(aside, speeds, limits, seconds)
        return phase
    turns = phase == START and standing and limits[EASING] > 0.0 and not settled
    if turns or (abs(aside) > ASTRAY and away > goal[TOLERANCE]):
        return phase
    ahead = away * math.cos(aside)
    if backwards:
        ahead = -ahead
    fastest = fastest_within(
        abs(ahead), abs(speeds[FORWARD]), limits[DECELERATION], limits[MAX_SPEED], seconds
    )
    fastest = eased(fastest, abs(ahead), limits)
    if phase == CREEP:
        fastest = min(fastest, away / CREEPING)
    command[FORWARD] = math.copysign(fastest, ahead)
    straight = aside if backwards or ahead > 0.0 else wrapped(aside + math.pi)
    turning = CORRECTION * straight * min(1.0, away / CORRECTED_BEFORE)
    command[TURNING] = min(max(turning, -limits[MAX_TURNING]), limits[MAX_TURNING])
    return max(phase, DRIVE)


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
    if away > near_enough(goal, speeds, limits):
        aside = math.atan2(dy, dx) - pose[YAW]
        along, across = math.cos(aside), math.sin(aside)
        wheel = abs(along) + abs(across)  # m/s of the fastest wheel at 1 m/s of the body
        closing = speeds[FORWARD] * along + speeds[SIDEWAYS] * across
        fastest = fastest_within(
            away,
            closing,
            limits[DECELERATION] * RESERVE / wheel,
            limits[MAX_SPEED] / wheel,
            seconds,
        )
        fastest = eased(fastest, away, limits)
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
    settled: bool,
    route: Floats,
    command: Floats,
    seconds: float,
) -> int:
    """Drives like a car. Returns the next phase."""
    if phase == DRIVE:
        ended = follow_route(
            pose,
            speeds,
            limits[MAX_SPEED],
            limits[DECELERATION],
            limits[SMALLEST_RADIUS],
            limits[REACH],
            2.0 * limits[EASING],
            settled,
            route,
            command,
            seconds,
        )
        return START if ended else DRIVE
    command[FORWARD] = command[SIDEWAYS] = command[TURNING] = 0.0
    if abs(speeds[FORWARD]) >= STILL_SPEED or not settled:
        return START
    away = math.hypot(goal[X] - pose[X], goal[Y] - pose[Y])
    turn = wrapped(goal[YAW] - pose[YAW]) if goal[HAS_YAW] > 0.0 else 0.0
    if away <= goal[TOLERANCE] / 2.0 and abs(turn) <= CAR_YAW_TOLERANCE:
        return DONE
    plan_route(pose, goal, limits[SMALLEST_RADIUS], route)
    return DRIVE


@compiled
def turning_towards(angle: float, speeds: Floats, limits: Floats, seconds: float) -> float:
    """The turning speed from which the robot still stops at the angle. A late robot comes to rest
    near it: its readings may be noisy."""
    near = YAW_TOLERANCE * (STAYING if abs(speeds[TURNING]) < STILL_TURNING else STOPPING)
    if limits[EASING] > 0.0 and abs(angle) <= near:
        return 0.0
    fastest = fastest_within(
        abs(angle), abs(speeds[TURNING]), limits[TURNING_ACCELERATION], limits[MAX_TURNING], seconds
    )
    return math.copysign(eased(fastest, abs(angle), limits), angle)


@compiled
def eased(fastest: float, distance: float, limits: Floats) -> float:
    """A speed towards an end at this distance."""
    return min(fastest, distance / limits[EASING]) if limits[EASING] > 0.0 else fastest
