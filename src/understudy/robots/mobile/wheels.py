"""Wheels of mobile robots: speeds of a body become set speeds of its wheels, and back.

Speeds of a body are forward (m/s), sideways (m/s, to the left) and turning (rad/s, to the left). A
wheel rolls with a·forward + b·sideways + c·turning; the way back is the pseudo-inverse. A motor
that steers has an angle (rad) in place of a speed. All robots are rows of one table, and so are
their wheels: those of robot 0 come first.

Drives and axes get a new speed at every tick: `fastest_within` gives the largest one from which a
stop is still possible.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled, inlined


@compiled
def fastest_within(
    distance: float, approach: float, braking: float, highest: float, seconds: float
) -> float:
    """The speed after this tick from which a stop is still possible within the distance.

    ``approach``: the present speed, positive towards the end of the distance; ``braking``: the
    deceleration; ``seconds``: length of a tick. It leaves room for half a tick more than the ideal,
    since braking ends with a whole tick.
    """
    ahead = distance - approach * seconds / 2.0
    if ahead <= 0.0:
        return 0.0
    fastest = braking * (math.sqrt(seconds * seconds + 2.0 * ahead / braking) - seconds)
    return min(fastest, highest)


@compiled
def wrapped(angle: float) -> float:
    """The angle in (-π, π]."""
    way = math.pi - angle
    if not 0.0 <= way < 2.0 * math.pi:  # the remainder takes longer than all the rest
        way %= 2.0 * math.pi
    return math.pi - way


def ideal_seconds(distance: float, speed: float, acceleration: float, deceleration: float) -> float:
    """The shortest time from rest to rest."""
    ramps = speed * speed / 2.0 * (1.0 / acceleration + 1.0 / deceleration)
    if ramps <= distance:
        return speed / acceleration + speed / deceleration + (distance - ramps) / speed
    peak = math.sqrt(2.0 * distance / (1.0 / acceleration + 1.0 / deceleration))
    return peak / acceleration + peak / deceleration


# ── wheels ──────────────────────────────────────────────────────────────────────────────────────

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Model = Literal["differential", "ackermann", "mecanum"]

DIFFERENTIAL, ACKERMANN, MECANUM, DIRECT = range(4)
"""Codes of drives in tables. DIRECT: simulated robots without a known track; their bodies turn as
commanded, without wheels."""
LARGEST_STEERING = math.radians(35.0)
STEERING_RATE = math.radians(60.0)
"""Steering rate of an Ackermann drive, per second."""
FORWARD, SIDEWAYS, TURNING = range(3)
"""Columns of body speeds, of the coefficients of a wheel and of a displacement."""
STRAIGHT = 1e-9
"""Radians below which an arc is computed as a line."""
SIDES = {"LEFT": -1.0, "RIGHT": 1.0, "FL": -1.0, "FR": 1.0, "RL": -1.0, "RR": 1.0}
ENDS = {"FRONT": 1.0, "REAR": -1.0, "BACK": -1.0, "FL": 1.0, "FR": 1.0, "RL": -1.0, "RR": -1.0}
"""Words in the names of motors that say where a wheel is."""


class WheelMotor(NamedTuple):
    """A DRIVE motor by its names."""

    function_key: str
    motor_id: str


class WheelSet(NamedTuple):
    """The wheels of one robot, one line for each DRIVE motor.

    `coefficients`: body → wheel; `inverse`: wheel → body; both are 0 for a motor that steers.
    `base`: metres between the axles. `turns_by_steering`: the speeds of the wheels do not show how
    the robot turns, only the steering angle does.
    """

    coefficients: Floats
    inverse: Floats
    steers: Flags
    base: float
    turns_by_steering: bool


class Wheels(NamedTuple):
    """The wheels of all robots. `spans`: first wheel of a robot and the one after its last."""

    spans: Rows
    coefficients: Floats
    inverse: Floats
    steers: Flags
    base: Floats
    turns_by_steering: Flags


def wheel_set(model: Model, motors: Sequence[WheelMotor], *, track: float, base: float) -> WheelSet:
    """The wheels of a robot with these DRIVE motors.

    ``track``: metres between left and right wheels, ``base``: between the axles. Where a wheel is
    its names say (LEFT, REAR_RIGHT, FL …); if not all of them do: by order, front left, front
    right, rear left, rear right. A mecanum drive needs four wheels; with less it rolls like a
    differential one.
    """
    steers = np.array([model == "ackermann" and "STEER" in each[0].upper() for each in motors])
    rolling = [each for each, steering in zip(motors, steers, strict=True) if not steering]
    reach = track / 2.0
    across = np.zeros(len(rolling))
    side = _places(rolling, SIDES, [-1.0, 1.0])
    if len(rolling) == 1:
        side = np.zeros(1)
    if model == "mecanum" and len(rolling) >= 4:
        reach = (track + base) / 2.0
        across = side * _places(rolling, ENDS, [1.0, 1.0, -1.0, -1.0])
    coefficients = np.zeros((len(motors), 3))
    coefficients[~steers] = np.column_stack([np.ones(len(rolling)), across, side * reach])
    return WheelSet(
        coefficients=coefficients,
        inverse=_inverse(coefficients),
        steers=steers.astype(np.bool_),
        base=base,
        turns_by_steering=bool(steers.any() and not coefficients[:, TURNING].any()),
    )


def drive_code(model: Model, wheels: WheelSet) -> int:
    """How the robot can move: a mecanum drive without four wheels does not go sideways."""
    if model == "ackermann":
        return ACKERMANN
    return MECANUM if wheels.coefficients[:, SIDEWAYS].any() else DIFFERENTIAL


def smallest_radius(base: float) -> float:
    """Smallest radius of the turns of an Ackermann drive."""
    return base / math.tan(LARGEST_STEERING)


def _places(motors: Sequence[WheelMotor], words: dict[str, float], order: list[float]) -> Floats:
    """-1 or 1 for each wheel, by its names or, unless these name both places, by order."""
    found = [_named(motor, words) for motor in motors]
    if {-1.0, 1.0} == set(found):
        return np.array(found, dtype=np.float64)
    return np.array([order[number % len(order)] for number in range(len(motors))])


def _named(motor: WheelMotor, words: dict[str, float]) -> float | None:
    for name in motor:
        for word in re.split(r"[^A-Z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).upper()):
            if word in words:
                return words[word]
    return None


def _inverse(coefficients: Floats) -> Floats:
    """The transposed pseudo-inverse: one line for each wheel, without rounding for usual wheels."""
    gram = coefficients.T @ coefficients
    if np.count_nonzero(gram - np.diag(np.diagonal(gram))) == 0:
        squares = np.diagonal(gram)
        return np.divide(
            coefficients, squares, out=np.zeros_like(coefficients), where=squares > 0.0
        )
    return np.ascontiguousarray(np.linalg.pinv(coefficients).T)


def join_wheels(sets: Sequence[WheelSet]) -> Wheels:
    """One table of the wheels of all robots."""
    ends = np.cumsum([len(each.steers) for each in sets], dtype=np.int64)
    nothing = np.zeros((0, 3))
    return Wheels(
        spans=np.column_stack([np.concatenate([[0], ends])[:-1], ends]).astype(np.int64),
        coefficients=np.concatenate([nothing, *(each.coefficients for each in sets)]),
        inverse=np.concatenate([nothing, *(each.inverse for each in sets)]),
        steers=np.concatenate([np.zeros(0, dtype=np.bool_), *(each.steers for each in sets)]),
        base=np.array([each.base for each in sets], dtype=np.float64),
        turns_by_steering=np.array([each.turns_by_steering for each in sets], dtype=np.bool_),
    )


# ── kernels ─────────────────────────────────────────────────────────────────────────────────────


@compiled
def set_wheel_speeds(wheels: Wheels, body: Floats, speeds: Floats) -> None:
    """Fills ``speeds`` (of all wheels) from the body speeds of all robots.

    A steering angle stays as it is while the robot shall stand still.
    """
    spans, coefficients = wheels.spans, wheels.coefficients
    steers, base = wheels.steers, wheels.base
    for row in range(spans.shape[0]):
        forward, sideways, turning = body[row, 0], body[row, 1], body[row, 2]
        for n in range(spans[row, 0], spans[row, 1]):
            if not steers[n]:
                speeds[n] = (
                    coefficients[n, 0] * forward
                    + coefficients[n, 1] * sideways
                    + coefficients[n, 2] * turning
                )
            elif forward != 0.0:
                speeds[n] = math.atan(turning * base[row] / forward)


@compiled
def body_speeds(wheels: Wheels, speeds: Floats, body: Floats) -> None:
    """Fills ``body`` with the speeds that fit the speeds (steering: angles) of the wheels best."""
    spans, inverse, steers, base = wheels.spans, wheels.inverse, wheels.steers, wheels.base
    turns_by_steering = wheels.turns_by_steering
    for row in range(spans.shape[0]):
        forward = sideways = turning = 0.0
        for n in range(spans[row, 0], spans[row, 1]):
            forward += inverse[n, 0] * speeds[n]
            sideways += inverse[n, 1] * speeds[n]
            turning += inverse[n, 2] * speeds[n]
        if turns_by_steering[row]:
            for n in range(spans[row, 0], spans[row, 1]):
                if steers[n]:
                    turning = forward * math.tan(speeds[n]) / base[row]
        body[row, 0], body[row, 1], body[row, 2] = forward, sideways, turning


@compiled
def displacements(wheels: Wheels, before: Floats, after: Floats, moved: Floats) -> None:
    """Fills ``moved``: how far robots went on an arc while their wheels rolled from ``before`` to
    ``after`` (metres; steering: angles)."""
    spans, inverse, steers, base = wheels.spans, wheels.inverse, wheels.steers, wheels.base
    turns_by_steering = wheels.turns_by_steering
    for row in range(spans.shape[0]):
        forward = sideways = turned = 0.0
        for n in range(spans[row, 0], spans[row, 1]):
            rolled = after[n] - before[n]
            forward += inverse[n, 0] * rolled
            sideways += inverse[n, 1] * rolled
            turned += inverse[n, 2] * rolled
        if turns_by_steering[row]:
            for n in range(spans[row, 0], spans[row, 1]):
                if steers[n]:
                    angle = (before[n] + after[n]) / 2.0
                    turned = forward * math.tan(angle) / base[row]
        moved[row, 0], moved[row, 1], moved[row, 2] = forward, sideways, turned


@compiled
def move_on_arcs(moved: Floats, poses: Floats) -> None:
    """Moves poses (x, y, yaw) on by displacements (forward, sideways, turned), each on an arc."""
    for row in range(poses.shape[0]):
        x, y, yaw = moved_on_arc(
            poses[row, 0], poses[row, 1], poses[row, 2], moved[row, 0], moved[row, 1], moved[row, 2]
        )
        poses[row, 0], poses[row, 1], poses[row, 2] = x, y, wrapped(yaw)


@compiled
def moved_on_arc(
    x: float, y: float, yaw: float, forward: float, sideways: float, turned: float
) -> tuple[float, float, float]:
    """The pose after an arc whose length and turn are given; exact while the speeds keep their
    ratio."""
    chord = math.sin(turned / 2.0) / (turned / 2.0) if abs(turned) > STRAIGHT else 1.0
    middle = yaw + turned / 2.0
    along, across = math.cos(middle), math.sin(middle)
    return (
        x + chord * (forward * along - sideways * across),
        y + chord * (forward * across + sideways * along),
        yaw + turned,
    )


@inlined
def travelled(forward: float, sideways: float) -> float:
    """The length of a way; few robots go sideways."""
    return abs(forward) if sideways == 0.0 else math.hypot(forward, sideways)


@compiled
def pace(forward: float, sideways: float, turning: float, radius: float) -> float:
    """The speed by which the travel of a body is measured: that of its reference point or, if
    larger, of the farthest point of its outline as it turns around the reference point."""
    return max(travelled(forward, sideways), abs(turning) * radius)
