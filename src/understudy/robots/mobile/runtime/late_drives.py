"""Robots whose drives answer late: where they will stand when all commands so far are carried out.

Between a command of a speed and the reading that shows it lies the delay of the loop: two ticks or
more on REAL robots, and `driveResponse` of simulated ones. Such a robot gets speeds that are ramped
within its limits, and the speeds of the last ticks are kept. What lies within the delay is not to
be seen in its pose yet, so it is added: the robot is steered by its *expected* pose and speeds, and
`pose_control` needs no delay in its formulas. It brakes with a part of its deceleration, so that a
wrong delay can be corrected.

The delay is configured (`driver.latencyMs`), or measured at the beginning of each motion:

    metres │      ordered ╱  ╱ driven
           │            ╱  ╱
           │          ╱──╱   the same way, this much later: the delay
           └───────────────────────▶ time
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.wheels import moved_on_arc, wrapped
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LONGEST_LATENCY = 0.6
"""Seconds: a longer delay is taken as this one."""
SETTLING = 0.06
"""Seconds after the delay of the last command until a robot counts as standing."""
STANDING = 0.03
"""m/s of the fastest wheel below which a robot without a command counts as standing: readings of
real drives are never quite still."""
BRAKING_SHARE = 0.8
"""The part of its deceleration with which a late robot plans."""
MEASURED_WITHIN = 1.5
"""Seconds after its beginning in which a motion is measured: later the metres differ for other
reasons, too."""
NOTICED = 2e-3
"""Metres of a wheel from which on a motion is noticed."""
MEASURABLE = 0.03
"""m/s of a wheel from which on a motion is measured."""
LONGER, SHORTER = 0.5, 0.1
"""The weight of a new measurement of the delay. Where readings of a cycle are of different age, the
oldest count: a robot that takes its delay for too long only brakes too early."""

LATENCY, TRAVEL, AXIS, SIGN, SINCE = range(5)
"""Columns of the measurement: the delay (s); metres driven of the motion under way; which speed of
the body is measured, 0 … 2, or -1 before a motion; its sign; seconds since it began."""
MEASURED = 5


def latency_of(robot: RobotFile) -> float | None:
    """Seconds, as the file has it: the longest of its drives; None: to be measured."""
    found = [each.driver.latency_ms for each in robot.motors if each.role == "DRIVE"]
    given = [each for each in found if each is not None]
    return max(given) / 1000.0 if given else None


def is_late(robot: RobotFile) -> bool:
    """Whether readings come after their commands: on all REAL robots."""
    profile = robot.runtime.simulation_profile
    response = profile.drive_response if profile else None
    simulated = robot.runtime.mode == "MOCK"
    return bool(not simulated or latency_of(robot) or (response and response.acts))


class LateDrives:
    """The late robots of a table. ``rows``: their places; ``reach``: metres of the fastest wheel in
    a radian of turning, of all robots."""

    def __init__(self, files: list[RobotFile], hz: int, reach: Floats) -> None:
        self.rows: Rows = np.flatnonzero([is_late(file) for file in files]).astype(np.int64)
        late = [latency_of(files[row]) for row in self.rows.tolist()]
        count, kept = self.rows.size, round(LONGEST_LATENCY * hz) + 2
        self.given = np.zeros((count, kept, 3))
        """Speeds that were commanded, ramped; the last one first."""
        self.ordered = np.zeros((count, kept))
        """Metres of the motion under way that were commanded until each of these ticks."""
        self.measured = np.zeros((count, MEASURED))
        self.measured[:, LATENCY] = [each or 0.0 for each in late]
        self.measured[:, AXIS] = -1.0
        self.fixed = np.array([each is not None for each in late], dtype=np.bool_)
        self.reach = reach
        self.settled = np.ones(len(files), dtype=np.bool_)
        """Robots of the table whose last command was carried out, and that stand if it was 0."""


@compiled
def expect(
    rows: Rows,
    given: Floats,
    ordered: Floats,
    measured: Floats,
    fixed: Flags,
    reach: Floats,
    pose: Floats,
    speeds: Floats,
    moved: Floats,
    latency: Floats,
    expected_pose: Floats,
    expected_speeds: Floats,
    settled: Flags,
    seconds: float,
) -> None:
    """Fills ``expected_pose`` and ``expected_speeds`` of all robots, ``latency`` and ``settled`` of
    the late ones. ``moved``: how far they were driven in the last tick."""
    expected_pose[:, :] = pose
    expected_speeds[:, :] = speeds
    for n in range(rows.size):
        row = rows[n]
        arm = reach[row] if reach[row] > 0.0 else 1.0
        if not fixed[n]:
            _measure(given[n], ordered[n], measured[n], moved[row], arm, seconds)
        late = latency[row] = measured[n, LATENCY]
        x, y, yaw = pose[row, 0], pose[row, 1], pose[row, 2]
        ticks = min(late / seconds, given.shape[1] - 1.0)
        for age in range(math.ceil(ticks) - 1, -1, -1):
            part = min(ticks - age, 1.0) * seconds / 2.0
            x, y, yaw = moved_on_arc(
                x,
                y,
                yaw,
                part * (given[n, age, 0] + given[n, age + 1, 0]),
                part * (given[n, age, 1] + given[n, age + 1, 1]),
                part * (given[n, age, 2] + given[n, age + 1, 2]),
            )
        expected_pose[row, 0], expected_pose[row, 1] = x, y
        expected_pose[row, 2] = wrapped(yaw)
        for column in range(3):
            expected_speeds[row, column] = given[n, 0, column]
        settled[row] = _has_settled(given[n], speeds[row], arm, late + SETTLING, seconds)
        if settled[row]:
            measured[n, AXIS] = -1.0


@compiled
def _has_settled(given: Floats, speeds: Floats, arm: float, since: float, seconds: float) -> bool:
    """Whether a robot had no command for this time, and stands."""
    ages = min(math.ceil(since / seconds) + 1, given.shape[0])
    for age in range(ages):
        if abs(given[age, 0]) + abs(given[age, 1]) + abs(given[age, 2]) * arm > 1e-6:
            return False
    present = abs(speeds[0]) + abs(speeds[1]) + abs(speeds[2]) * arm
    return bool(present < STANDING)


@compiled
def _measure(
    given: Floats, ordered: Floats, measured: Floats, moved: Floats, arm: float, seconds: float
) -> None:
    """Measures the delay: how long ago the metres driven until now were commanded.

    It begins at rest: of a robot that swings to and fro, some metres were commanded before.
    """
    fastest, most = 0, 0.0
    for column in range(3):
        speed = abs(given[0, column]) * (arm if column == 2 else 1.0)
        if speed > most:
            fastest, most = column, speed
    scale = arm if fastest == 2 else 1.0
    begins = measured[AXIS] < 0.0 or _rested(given[:, fastest], scale, seconds)
    if most >= MEASURABLE and fastest != int(measured[AXIS]) and begins:
        measured[AXIS], measured[SIGN] = fastest, math.copysign(1.0, given[0, fastest])
        measured[TRAVEL] = measured[SINCE] = 0.0
        ordered[:] = 0.0
    if measured[AXIS] < 0.0 or measured[SINCE] > MEASURED_WITHIN:
        return
    column = int(measured[AXIS])
    scale = measured[SIGN] * (arm if column == 2 else 1.0)
    measured[SINCE] += seconds
    measured[TRAVEL] += scale * moved[column]
    for age in range(ordered.size - 1, 0, -1):
        ordered[age] = ordered[age - 1]
    before, now = scale * given[1, column], scale * given[0, column]
    ordered[0] += (before + now) / 2.0 * seconds
    driven = max(measured[TRAVEL], NOTICED)
    age = 0
    while age + 2 < ordered.size and ordered[age + 1] > driven:
        age += 1
    step = ordered[age] - ordered[age + 1]
    if ordered[0] <= NOTICED or step <= 0.0:
        return
    found = min((age + (ordered[age] - driven) / step) * seconds, LONGEST_LATENCY)
    if measured[TRAVEL] <= NOTICED:
        measured[LATENCY] = max(measured[LATENCY], found)
    elif now < before or found < 0.0:
        measured[SINCE] = 2.0 * MEASURED_WITHIN  # it brakes
    elif step >= MEASURABLE * seconds:
        change = found - measured[LATENCY]
        measured[LATENCY] += (LONGER if change > 0.0 else SHORTER) * change


@compiled
def _rested(given: Floats, scale: float, seconds: float) -> bool:
    """Whether almost no way was commanded in the time of the longest delay."""
    metres = 0.0
    for age in range(given.size):
        metres += abs(given[age]) * scale * seconds
    return metres <= NOTICED


@compiled
def give_ramped(
    rows: Rows, ramped: Floats, may_move: Flags, command: Floats, given: Floats
) -> None:
    """The commands of the late robots become the speeds that they reach in this tick (``ramped``),
    which are kept in ``given``. A robot that shall stop is given 0 at once, and ramps down by
    itself."""
    for n in range(rows.size):
        row = rows[n]
        for age in range(given.shape[1] - 1, 0, -1):
            for column in range(3):
                given[n, age, column] = given[n, age - 1, column]
        for column in range(3):
            given[n, 0, column] = ramped[row, column]
            if may_move[row]:
                command[row, column] = ramped[row, column]
