"""What happens to all robots of a table at each tick, as compiled loops over rows.

Speeds of wheels and of bodies are related by `wheels`; travel is measured with its `pace`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.runtime.messages import RobotStatus, StopReason
from understudy.robots.mobile.runtime.pose_control import (
    ACCELERATION,
    DECELERATION,
    EASING,
    MAX_SPEED,
    MAX_TURNING,
    REACH,
    TURNING_ACCELERATION,
)
from understudy.robots.mobile.wheels import (
    ACKERMANN,
    DIRECT,
    FORWARD,
    LARGEST_STEERING,
    SIDEWAYS,
    STEERING_RATE,
    TURNING,
    Wheels,
    body_speeds,
    displacements,
    fastest_within,
    pace,
    travelled,
)
from understudy.space.compiled import borrowed, compiled, inlined

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]
Times = NDArray[np.int64]
Rows = NDArray[np.int64]

STATUSES: tuple[RobotStatus, ...] = ("OFFLINE", "ERROR", "PAUSED", "WARNING", "RUNNING")
"""Statuses by code, in their precedence."""
OFFLINE, ERROR, PAUSED, WARNING, RUNNING = range(5)
STOPS: tuple[StopReason | None, ...] = (
    None,
    "ESTOP",
    "OBSTACLE",
    "INTERNAL_FAULT",
    "TRAFFIC_HOLD",
    "MANUAL_HOLD",
)
"""Reasons of a stop by code; the first that applies counts."""
NO_STOP, ESTOP, OBSTACLE, INTERNAL_FAULT, TRAFFIC_HOLD, MANUAL_HOLD = range(6)
REST, VELOCITY, POSE = range(3)
"""Modes of a drive: no command; MOVE_VELOCITY; MOVE_TO_POSE."""
UNLIMITED = 1e9
"""m/s: no limit of speed but that of the motors; metres: nothing is seen."""
GAP = 0.02
"""Metres that are left in front of an obstacle after braking."""
STANDS = 1e-6
"""m/s of the wheels below which a robot stands: its steering may move."""
CRAWL = 0.05
"""m/s of the wheels that is allowed in front of every obstacle: so the robot comes so near that it
stops for it, and does not creep up to it for ever."""
EASED = 0.75
"""The easing of late robots, as a part of their delay."""
HYSTERESIS = 0.05
"""Metres by which an obstacle must be farther away than at a stop until the stop ends."""
STATUS_CHANGED, ESTOP_CHANGED, OBSTACLE_CHANGED, STOP_CHANGED = 1, 2, 4, 8
"""Bits of `changes`."""


class Figures(NamedTuple):
    """Of robots: limits of the motors and distances, as the settings have them now. `latency` and
    `braking_share`: see `late_drives`."""

    body_limits: Floats
    speed_limit: Floats
    traffic_limit: Floats
    reach: Floats
    radius: Floats
    stop_distance: Floats
    warn_distance: Floats
    sight: Floats
    stop_on_obstacle: Flags
    latency: Floats
    braking_share: Floats


@inlined
def fastest_wheel(spans: Rows, coefficients: Floats, body: Floats, row: int) -> float:
    """The speed of the fastest wheel of a robot at the speeds of its body. ``spans`` and
    ``coefficients``: of `Wheels`. Arrays of a tuple and rows of arrays cost more than this."""
    fastest = 0.0
    for n in range(spans[row, 0], spans[row, 1]):
        speed = (
            coefficients[n, 0] * body[row, 0]
            + coefficients[n, 1] * body[row, 1]
            + coefficients[n, 2] * body[row, 2]
        )
        fastest = max(fastest, abs(speed))
    return fastest


@inlined
def pace_of_wheels(
    spans: Rows, coefficients: Floats, body: Floats, row: int, radius: float
) -> float:
    """Metres that a robot travels in this motion while its fastest wheel rolls one metre."""
    wheel = fastest_wheel(spans, coefficients, body, row)
    if wheel <= 0.0:
        return 1.0
    return pace(body[row, 0], body[row, 1], body[row, 2], radius) / wheel


@compiled
def update_limits(
    figures: Figures,
    wheels: Wheels,
    speeds: Floats,
    command: Floats,
    ahead: Floats,
    limits: Floats,
    seconds: float,
) -> None:
    """Fills ``limits`` of the bodies for this tick: those of the motors, of commands, of traffic
    control, and such that the robot can stop in front of an obstacle within the warning distance
    and within the range of its lidars.
    """
    body_limits, speed_limit, traffic_limit, reach, radius = figures[:5]
    warn_distance, sight, stop_on_obstacle, latency, braking_share = figures[6:]
    spans, coefficients = wheels.spans, wheels.coefficients
    for row in range(limits.shape[0]):
        for column in range(limits.shape[1]):
            limits[row, column] = body_limits[row, column]
        limits[row, DECELERATION] *= braking_share[row]
        limits[row, TURNING_ACCELERATION] *= braking_share[row]
        limits[row, EASING] = EASED * latency[row]
        fastest = min(limits[row, MAX_SPEED], speed_limit[row], traffic_limit[row])
        if stop_on_obstacle[row]:
            seen = sight[row]
            if ahead[row] <= warn_distance[row]:
                seen = min(seen, ahead[row])
            rate = pace_of_wheels(spans, coefficients, command, row, radius[row])
            present = fastest_wheel(spans, coefficients, speeds, row) * rate
            faster = limits[row, ACCELERATION] / limits[row, DECELERATION]
            spare = 2.0 * GAP + (2.0 + faster) * present * seconds
            spare += present * latency[row]
            safe = fastest_within(
                max(seen - spare, 0.0),
                present,
                limits[row, DECELERATION] * rate,
                fastest * rate,
                seconds,
            )
            fastest = min(fastest, max(safe / rate, CRAWL))
        limits[row, MAX_SPEED] = fastest
        if reach[row] > 0.0:
            limits[row, MAX_TURNING] = min(limits[row, MAX_TURNING], fastest / reach[row])


@compiled
def choose_commands(
    mode: Codes,
    stop: Codes,
    velocity: Floats,
    steered: Floats,
    wheels: Wheels,
    limits: Floats,
    command: Floats,
) -> None:
    """Fills ``command``: the speeds of the bodies for this tick, within the limits."""
    spans, coefficients = wheels.spans, wheels.coefficients
    for row in range(mode.size):
        stands = mode[row] == REST or stop[row] != NO_STOP
        for column in range(3):
            wanted = velocity[row, column] if mode[row] == VELOCITY else steered[row, column]
            command[row, column] = 0.0 if stands else wanted
        wheel = fastest_wheel(spans, coefficients, command, row)
        if wheel > limits[row, MAX_SPEED]:
            for column in range(3):
                command[row, column] *= limits[row, MAX_SPEED] / wheel


@compiled
def extend_held(mode: Codes, stop: Codes, until: Times, passed: int) -> None:
    """The time of a MOVE_VELOCITY stands still while its robot is held."""
    for row in range(mode.size):
        if mode[row] == VELOCITY and stop[row] >= TRAFFIC_HOLD:
            until[row] += passed


@inlined
def braking_distance(
    rate: float, wheel: float, faster: float, slower: float, spare: float
) -> float:
    """Metres until a robot stands: after ``spare`` seconds with the present speed of its wheels, in
    which it may still get faster, it brakes with its limit. ``rate``: see `pace_of_wheels`."""
    peak = wheel + faster * spare
    return rate * (peak * spare + peak * peak / (2.0 * slower))


@compiled
def braking_distance_of(wheels: Wheels, figures: Figures, speeds: Floats, row: int) -> float:
    """Metres until a robot stands if it brakes now."""
    slower = figures.body_limits[row, DECELERATION]
    wheel = fastest_wheel(wheels.spans, wheels.coefficients, speeds, row)
    if wheel <= 0.0 or slower <= 0.0:
        return 0.0
    rate = pace(speeds[row, 0], speeds[row, 1], speeds[row, 2], figures.radius[row]) / wheel
    return braking_distance(rate, wheel, 0.0, slower, 0.0)


@compiled
def watch_obstacles(
    figures: Figures,
    wheels: Wheels,
    speeds: Floats,
    command: Floats,
    ahead: Floats,
    stop: Codes,
    blocked: Flags,
    seconds: float,
) -> None:
    """Sets ``blocked`` of robots that must stop for an obstacle, and clears it when they stand and
    the way in their last direction is free again; not at the tick at which it was set (``stop``
    shows it from the next one on)."""
    spans, coefficients = wheels.spans, wheels.coefficients
    stop_on, stop_distance = figures.stop_on_obstacle, figures.stop_distance
    limits, radius, latency = figures.body_limits, figures.radius, figures.latency
    for row in range(blocked.size):
        if not stop_on[row]:
            blocked[row] = False
            continue
        if not blocked[row] and ahead[row] >= UNLIMITED:
            continue
        moves = fastest_wheel(spans, coefficients, command, row) >= STANDS
        if not moves and not blocked[row]:
            continue
        wheel = fastest_wheel(spans, coefficients, speeds, row)
        needed = GAP + braking_distance(
            pace_of_wheels(spans, coefficients, speeds, row, radius[row]),
            wheel,
            limits[row, ACCELERATION],
            limits[row, DECELERATION],
            (seconds if moves else 0.0) + latency[row],
        )
        needed = max(stop_distance[row], GAP, needed)
        if moves and ahead[row] <= needed:
            blocked[row] = True
        elif not moves and wheel < STANDS and stop[row] != NO_STOP:
            blocked[row] = ahead[row] <= needed + HYSTERESIS


class Conditions(NamedTuple):
    """Of robots: what their stop and their status follow from."""

    estop: Flags
    stop_on_estop: Flags
    blocked: Flags
    inputs_up: Flags
    lidar_up: Flags
    stop_on_obstacle: Flags
    io_hold: Flags
    traffic_hold: Flags
    manual_hold: Flags
    operator_hold: Flags
    needs_nats: Flags
    drive_down: Flags
    function_down: Flags


@inlined
def stop_code(estop: bool, blocked: bool, lost: bool, traffic: bool, manual: bool) -> int:
    """Why a robot is stopped for safety; the first reason counts."""
    if estop:
        return ESTOP
    if blocked:
        return OBSTACLE
    if lost:
        return INTERNAL_FAULT
    if traffic:
        return TRAFFIC_HOLD
    return MANUAL_HOLD if manual else NO_STOP


@inlined
def status_code(offline: bool, drive_down: bool, stopped: bool, function_down: bool) -> int:
    """The status; the first condition counts."""
    if offline:
        return OFFLINE
    if drive_down:
        return ERROR
    if stopped:
        return PAUSED
    return WARNING if function_down else RUNNING


@compiled
def update_statuses(
    of: Conditions, before: Codes, stop: Codes, status: Codes, changes: Codes, connected: bool
) -> int:
    """Fills ``stop``, ``status`` and the bits of ``changes``; returns how many robots changed.

    ``before``: bits of the last tick, ESTOP_CHANGED if it was pressed and OBSTACLE_CHANGED if it
    was blocked; they are replaced.
    """
    estop, stop_on_estop, blocked, inputs_up, lidar_up, stop_on_obstacle = of[:6]
    io_hold, traffic_hold, manual_hold, operator_hold = of[6:10]
    needs_nats, drive_down, function_down = of[10:]
    changed = 0
    for row in range(stop.size):
        seen = ESTOP_CHANGED if estop[row] else 0
        seen |= OBSTACLE_CHANGED if blocked[row] else 0
        bits = seen ^ before[row]
        before[row] = seen
        why = stop_code(
            estop[row] and stop_on_estop[row],
            blocked[row],
            (stop_on_obstacle[row] and not lidar_up[row])
            or (stop_on_estop[row] and not inputs_up[row]),
            traffic_hold[row] or io_hold[row],
            manual_hold[row] or operator_hold[row],
        )
        offline = needs_nats[row] and not connected
        what = status_code(offline, drive_down[row], why != NO_STOP, function_down[row])
        bits |= STOP_CHANGED if why != stop[row] else 0
        bits |= STATUS_CHANGED if what != status[row] else 0
        stop[row], status[row], changes[row] = why, what, bits
        changed += 1 if bits else 0
    return changed


@compiled
def update_motors(
    motor_robot: Rows,
    is_drive: Flags,
    connected: Flags,
    faulty: Flags,
    drive_down: Flags,
    function_down: Flags,
) -> None:
    """Fills ``drive_down`` and ``function_down`` of the robots: a motor is faulty or silent."""
    drive_down[:] = False
    function_down[:] = False
    for n in range(motor_robot.size):
        if faulty[n] or not connected[n]:
            if is_drive[n]:
                drive_down[motor_robot[n]] = True
            else:
                function_down[motor_robot[n]] = True


@compiled
def take_readings(
    drives: Rows,
    wheels: Wheels,
    found_position: Floats,
    found_rolling: Floats,
    found_connected: Flags,
    found_faulty: Flags,
    position: Floats,
    rolling: Floats,
    connected: Flags,
    faulty: Flags,
    moved: Floats,
    speeds: Floats,
    changed: Flags,
) -> int:
    """Takes what the motors report: how far the robots have ``moved`` and their ``speeds``. Fills
    ``changed``, motors that fail or recover; returns how many there are."""
    steers, count = wheels.steers, 0
    before, after, turning = (
        np.empty(drives.size),
        np.empty(drives.size),
        np.empty(drives.size),
    )
    for n in range(drives.size):
        motor = drives[n]
        before[n], after[n] = position[motor], found_position[motor]
        turning[n] = after[n] if steers[n] else found_rolling[motor]
    for n in range(position.size):
        position[n], rolling[n] = found_position[n], found_rolling[n]
        changed[n] = connected[n] != found_connected[n] or faulty[n] != found_faulty[n]
        connected[n], faulty[n] = found_connected[n], found_faulty[n]
        count += 1 if changed[n] else 0
    displacements(wheels, before, after, moved)
    body_speeds(wheels, turning, speeds)
    return count


@compiled
def find_over(
    mode: Codes, until: Times, phase: Codes, stop: Codes, done: int, over: Flags, now: int
) -> int:
    """Finds the robots whose command has ended: its time is over, or they are at their goal;
    returns how many there are."""
    count = 0
    for row in range(mode.size):
        timed_out = mode[row] == VELOCITY and until[row] <= now
        arrived = mode[row] == POSE and phase[row] == done and stop[row] == NO_STOP
        over[row] = timed_out or arrived
        count += 1 if over[row] else 0
    return count


@compiled
def merge_inputs(
    robot: Rows, values: Flags, connected: Flags, robot_on: Flags, robot_up: Flags
) -> None:
    """``robot_on``: one of the inputs of a robot is on; ``robot_up``: all are connected."""
    robot_on[:] = False
    robot_up[:] = True
    for n in range(robot.size):
        robot_on[robot[n]] |= values[n]
        robot_up[robot[n]] &= connected[n]


@compiled
def merge_lidars(
    robot: Rows,
    ahead: Floats,
    connected: Flags,
    most: float,
    robot_ahead: Floats,
    robot_up: Flags,
) -> None:
    """The readings of all lidars of each robot as one; ``most`` stands for infinite."""
    robot_ahead[:] = most
    robot_up[:] = True
    for n in range(robot.size):
        if connected[n]:
            robot_ahead[robot[n]] = min(robot_ahead[robot[n]], ahead[n])
        else:
            robot_up[robot[n]] = False


@compiled
def find_due(due: Times, periods: Times, now: int, found: Rows) -> int:
    """Puts the streams that are due into ``found`` (row · columns + column), and sets their next
    times, start + n · period; returns how many there are."""
    count = 0
    columns = due.shape[1]
    for row in range(due.shape[0]):
        for column in range(columns):
            if due[row, column] <= now:
                passed = (now - due[row, column]) // periods[row, column] + 1
                due[row, column] += passed * periods[row, column]
                found[count] = row * columns + column
                count += 1
    return count


@compiled
def find_ended(
    moving: Flags,
    position: Floats,
    rolling: Floats,
    target: Floats,
    tolerance: Floats,
    slowest: Floats,
    deadline: Times,
    now: int,
    ended: Codes,
) -> int:
    """Fills ``ended`` of functional motors that shall move: 1 at the target, 2 too late, else 0;
    returns how many ended. ``slowest``: m/s at which a motor counts as standing."""
    count = 0
    for n in range(moving.size):
        ended[n] = 0
        if not moving[n]:
            continue
        if abs(position[n] - target[n]) <= tolerance[n] and abs(rolling[n]) <= slowest[n]:
            ended[n] = 1
        elif now >= deadline[n]:
            ended[n] = 2
        count += 1 if ended[n] else 0
    return count


FOLLOWS = 0.5
"""The part of a speed by which a wheel may differ from what is commanded."""
FOLLOWS_WITHIN = 4e-3
"""m/s by which it may differ at any speed."""
PATIENCE = 1.0
"""Seconds that a wheel has to follow, besides its ramp and the delay of the loop."""
SHORT_PATIENCE, LATE_AT_END = 0.3, 0.4
"""The same at the end of a MOVE_VELOCITY, which may be short, and the longest delay that counts
there: the delay of a robot that does not move at all seems to be endless."""


@compiled
def find_lost(
    mode: Codes,
    until: Times,
    wheels: Wheels,
    motors: Rows,
    set_speed: Floats,
    rolling: Floats,
    body_limits: Floats,
    latency: Floats,
    astray: Floats,
    lost: Flags,
    now: int,
    seconds: float,
) -> int:
    """Finds the robots that do not move as they are commanded; returns how many there are.

    ``motors``: of the wheels; ``astray``: for how long each wheel has not followed, in seconds;
    ``lost``: is set for robots with a wheel that has not followed for too long.
    """
    count = 0
    for row in range(mode.size):
        lost[row] = False
        if mode[row] == REST:
            for n in range(wheels.spans[row, 0], wheels.spans[row, 1]):
                astray[n] = 0.0
            continue
        slowest = min(body_limits[row, ACCELERATION], body_limits[row, DECELERATION])
        ends = mode[row] == VELOCITY and until[row] <= now
        for n in range(wheels.spans[row, 0], wheels.spans[row, 1]):
            wanted, present = set_speed[motors[n]], rolling[motors[n]]
            fastest = max(abs(wanted), abs(present))
            if wheels.steers[n]:
                continue
            if abs(wanted - present) <= FOLLOWS * fastest + FOLLOWS_WITHIN:
                if fastest > 2.0 * FOLLOWS_WITHIN:  # a wheel that shall stand shows nothing
                    astray[n] = 0.0
                continue
            astray[n] += seconds
            most = PATIENCE + body_limits[row, MAX_SPEED] / slowest + latency[row]
            if ends:  # a late robot was commanded the ramp itself
                ramp = FOLLOWS * fastest / slowest if latency[row] == 0.0 else 0.0
                most = SHORT_PATIENCE + ramp + min(latency[row], LATE_AT_END)
            if astray[n] > most:
                lost[row] = True
        count += 1 if lost[row] else 0
    return count


@compiled
def add_travel(moved: Floats, total: Floats) -> None:
    """Adds the travel of a tick."""
    for row in range(moved.shape[0]):
        total[row] += travelled(moved[row, 0], moved[row, 1])


# ── the way of the next tick ────────────────────────────────────────────────────────────────────

# A command is only given if the robot can stop after the tick before it touches something. The
# check is made along the path on which the robot would brake: with the speeds that it has after the
# tick. As every drive brakes on its curve, a robot that is not allowed to go on can always stop.

STEERED_BY_WHEELS = 0.01
"""m/s of an Ackermann drive above which its speeds show how it is steered."""


@compiled
def foresee(
    drive: Codes,
    wheels: Wheels,
    speeds: Floats,
    limits: Floats,
    command: Floats,
    steering: Floats,
    next_steering: Floats,
    foreseen: Floats,
    seconds: float,
) -> None:
    """Fills ``foreseen``: the speeds of the bodies after the tick; ``next_steering``: steering
    angles of Ackermann drives."""
    spans, coefficients, bases = wheels.spans, wheels.coefficients, wheels.base
    for row in range(drive.size):
        forward, turning = command[row, FORWARD], command[row, TURNING]
        of = borrowed(limits[row])
        if drive[row] == ACKERMANN:
            base = bases[row]
            angle = _present_steering(steering[row], base, borrowed(speeds[row]))
            next_steering[row] = _steered(angle, base, borrowed(command[row]), seconds)
            outer = 1.0 + abs(math.tan(angle)) * of[REACH] / base
            now = ramped(speeds[row, FORWARD], forward, of, seconds / outer)
            foreseen[row, FORWARD], foreseen[row, SIDEWAYS] = now, 0.0
            foreseen[row, TURNING] = now * math.tan(next_steering[row]) / base
        elif drive[row] == DIRECT and (forward != 0.0 or turning != 0.0):
            foreseen[row, FORWARD] = ramped(speeds[row, FORWARD], forward, of, seconds)
            foreseen[row, SIDEWAYS], foreseen[row, TURNING] = 0.0, turning
        else:
            share = _share(spans, coefficients, row, speeds, of, command, seconds)
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


@inlined
def _share(
    spans: Rows,
    coefficients: Floats,
    row: int,
    speeds: Floats,
    limits: Floats,
    command: Floats,
    seconds: float,
) -> float:
    """The part of the wanted change that the wheels can make in a tick, all in proportion."""
    share = 1.0
    for n in range(spans[row, 0], spans[row, 1]):
        speed = wanted = 0.0
        for column in range(3):
            speed += coefficients[n, column] * speeds[row, column]
            wanted += coefficients[n, column] * command[row, column]
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
def watched_motion(wheels: Wheels, foreseen: Floats, motion: Floats, last_way: Floats) -> None:
    """Fills ``motion`` with the speeds that the protective fields look at: 0 for robots that
    stand; ``last_way``: the forward speed of the others."""
    spans, coefficients = wheels.spans, wheels.coefficients
    for row in range(motion.shape[0]):
        stands = fastest_wheel(spans, coefficients, foreseen, row) < STANDS
        for column in range(3):
            motion[row, column] = 0.0 if stands else foreseen[row, column]
        if not stands:
            last_way[row] = foreseen[row, FORWARD]


@compiled
def hold_back(
    figures: Figures,
    wheels: Wheels,
    speeds: Floats,
    foreseen: Floats,
    ahead: Floats,
    command: Floats,
    blocked: Flags,
    seconds: float,
) -> None:
    """Stops robots that could not stop in time after this tick: ``command`` becomes 0 and
    ``blocked`` is set."""
    spans, coefficients = wheels.spans, wheels.coefficients
    stop_on, stop_distance = figures.stop_on_obstacle, figures.stop_distance
    limits, radius, latency = figures.body_limits, figures.radius, figures.latency
    for row in range(blocked.size):
        if not stop_on[row] or ahead[row] >= UNLIMITED:
            continue
        if fastest_wheel(spans, coefficients, command, row) < STANDS:
            continue
        rate = pace_of_wheels(spans, coefficients, foreseen, row, radius[row])
        after = fastest_wheel(spans, coefficients, foreseen, row)
        needed = GAP + stopping_distance(
            rate,
            fastest_wheel(spans, coefficients, speeds, row),
            after,
            limits[row, DECELERATION],
            seconds,
        )
        needed += rate * after * latency[row]
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
