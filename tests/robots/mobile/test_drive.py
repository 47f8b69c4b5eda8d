"""The drive: limits, exact arcs, and the same numbers as a plain robot object."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.robots.mobile import drive, wheels
from understudy.robots.mobile.drive import FORWARD, SIDEWAYS, TRAVELLED, TURNING, YAW, X, Y

TICK = 0.02
FIGURES = (0.48, 0.52, 1.2, 0.8, 1.0)


class Rows:
    """A table of robots that stand at the origin."""

    def __init__(self, models: list[int], figures: tuple[float, ...] = FIGURES) -> None:
        count = len(models)
        self.model = np.array(models, dtype=np.int8)
        self.figures = np.tile(np.array(figures), (count, 1))
        self.command = np.zeros((count, 3))
        self.state = np.zeros((count, 7))
        self.wheels = np.zeros((count, drive.WHEELS))

    def run(self, ticks: int, tick: float = TICK) -> "Rows":
        for _ in range(ticks):
            drive.step_drives(
                np.arange(self.model.size),
                self.model,
                self.figures,
                self.command,
                self.state,
                self.wheels,
                tick,
            )
        return self


def one(model: int, forward: float, sideways: float, turning: float) -> Rows:
    rows = Rows([model])
    rows.command[0] = forward, sideways, turning
    return rows


def test_it_accelerates_and_brakes_within_its_limits() -> None:
    rows = one(wheels.DIFFERENTIAL, 5.0, 0.0, 0.0)
    speeds = [rows.run(1).state[0, FORWARD] for _ in range(100)]
    assert max(np.diff([0.0, *speeds])) <= 0.8 * TICK + 1e-12
    assert speeds[-1] == pytest.approx(1.2)
    rows.command[0] = 0.0
    start = rows.state[0, X]
    braking = [rows.run(1).state[0, FORWARD] for _ in range(100)]
    assert min(np.diff([1.2, *braking])) >= -1.0 * TICK - 1e-12
    assert braking[-1] == 0.0
    assert rows.state[0, X] - start == pytest.approx(1.2**2 / 2 / 1.0, abs=1e-9)


def test_a_command_too_fast_for_one_wheel_is_made_slower_on_the_same_curve() -> None:
    rows = one(wheels.DIFFERENTIAL, 1.2, 0.0, 2.0).run(500)
    assert max(abs(rows.wheels[0])) == pytest.approx(1.2)
    assert rows.state[0, TURNING] / rows.state[0, FORWARD] == pytest.approx(2.0 / 1.2)


def test_a_circle_closes_exactly() -> None:
    turning = 2.0 * math.pi / 10.0
    rows = one(wheels.DIFFERENTIAL, 0.5, 0.0, turning)
    rows.wheels[0, :2] = 0.5 - turning * 0.24, 0.5 + turning * 0.24
    rows.state[0, [FORWARD, TURNING]] = 0.5, turning
    rows.run(500)
    assert rows.state[0, [X, Y]] == pytest.approx((0.0, 0.0), abs=1e-12)
    assert rows.state[0, YAW] == pytest.approx(0.0, abs=1e-12)
    assert rows.state[0, TRAVELLED] == pytest.approx(5.0)


def test_a_differential_drive_turns_on_the_spot_and_never_sideways() -> None:
    rows = one(wheels.DIFFERENTIAL, 0.0, 1.0, 1.0).run(100)
    assert rows.state[0, [X, Y, SIDEWAYS]].tolist() == [0.0, 0.0, 0.0]
    assert rows.state[0, YAW] > 1.0


def test_a_mecanum_drive_moves_sideways() -> None:
    rows = one(wheels.MECANUM, 0.0, 0.5, 0.0).run(200)
    assert rows.state[0, SIDEWAYS] == pytest.approx(0.5)
    assert rows.state[0, Y] > 1.0
    assert rows.state[0, X] == 0.0


def test_an_ackermann_drive_keeps_its_steering_angle_and_cannot_turn_on_the_spot() -> None:
    rows = one(wheels.ACKERMANN, 0.0, 0.0, 1.0).run(100)
    assert rows.state[0, [X, Y, YAW]].tolist() == [0.0, 0.0, 0.0]
    rows = one(wheels.ACKERMANN, 0.5, 0.0, 5.0).run(300)
    radius = rows.state[0, FORWARD] / rows.state[0, TURNING]
    assert radius == pytest.approx(0.52 / math.tan(wheels.LARGEST_STEERING))


def test_an_ackermann_drive_brakes_on_its_curve() -> None:
    rows = one(wheels.ACKERMANN, 0.8, 0.0, 0.5).run(200)
    angle = rows.wheels[0, drive.STEERING]
    rows.command[0] = 0.0
    rows.run(100)
    assert rows.state[0, FORWARD] == 0.0
    assert rows.wheels[0, drive.STEERING] == angle


def test_only_the_given_rows_move() -> None:
    rows = Rows([wheels.DIFFERENTIAL] * 3)
    rows.command[:, 0] = 1.0
    drive.step_drives(
        np.array([2, 0]), rows.model, rows.figures, rows.command, rows.state, rows.wheels, TICK
    )
    assert (rows.state[:, FORWARD] > 0.0).tolist() == [True, False, True]


def test_a_body_without_wheels_follows_the_command() -> None:
    rows = one(wheels.DIRECT, 1.0, 0.0, 3.0).run(1)
    assert rows.state[0, TURNING] == 3.0
    assert rows.state[0, FORWARD] == pytest.approx(0.8 * TICK)


def test_other_robots_in_the_table_change_nothing() -> None:
    alone = one(wheels.MECANUM, 0.4, 0.2, 0.3).run(200)
    many = Rows([0, 1, 2, 3, 2])
    many.command[:] = (0.4, 0.2, 0.3)
    many.run(200)
    assert many.state[2].tobytes() == alone.state[0].tobytes() == many.state[4].tobytes()


# ── the oracle: one robot as a plain object ─────────────────────────────────────────────────────


@dataclass
class PlainRobot:
    """A differential drive, written as a textbook would."""

    track: float = FIGURES[0]
    fastest: float = FIGURES[2]
    acceleration: float = FIGURES[3]
    deceleration: float = FIGURES[4]
    pose: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    left: float = 0.0
    right: float = 0.0

    def tick(self, forward: float, turning: float, dt: float) -> None:
        before = self.speeds()
        left, right = forward - turning * self.track / 2, forward + turning * self.track / 2
        scale = min(1.0, self.fastest / max(abs(left), abs(right), 1e-300))
        changes = [left * scale - self.left, right * scale - self.right]
        limits = [
            self.deceleration if speed * change < 0 else self.acceleration
            for speed, change in zip((self.left, self.right), changes, strict=True)
        ]
        shares = [
            min(1.0, limit * dt / abs(change)) if change else 1.0
            for limit, change in zip(limits, changes, strict=True)
        ]
        self.left += changes[0] * min(shares)
        self.right += changes[1] * min(shares)
        after = self.speeds()
        length, angle = ((a + b) / 2 * dt for a, b in zip(before, after, strict=True))
        x, y, yaw = self.pose
        if abs(angle) < 1e-9:
            self.pose = [x + length * math.cos(yaw), y + length * math.sin(yaw), yaw + angle]
        else:
            radius = length / angle
            self.pose = [
                x + radius * (math.sin(yaw + angle) - math.sin(yaw)),
                y - radius * (math.cos(yaw + angle) - math.cos(yaw)),
                yaw + angle,
            ]

    def speeds(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.right - self.left) / self.track


commands = st.lists(st.tuples(st.floats(-2, 2), st.floats(-3, 3)), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(commands)
def test_the_kernel_agrees_with_a_plain_robot(given_commands: list[tuple[float, float]]) -> None:
    rows, plain = Rows([wheels.DIFFERENTIAL]), PlainRobot()
    for forward, turning in given_commands:
        rows.command[0] = forward, 0.0, turning
        for _ in range(20):
            plain.tick(forward, turning, TICK)
        rows.run(20)
    assert rows.state[0, [X, Y]] == pytest.approx(plain.pose[:2], abs=1e-6)
    assert math.cos(rows.state[0, YAW] - plain.pose[2]) == pytest.approx(1.0)
    assert rows.state[0, [FORWARD, TURNING]] == pytest.approx(plain.speeds(), abs=1e-12)


@pytest.mark.parametrize(
    "model", [wheels.DIFFERENTIAL, wheels.ACKERMANN, wheels.MECANUM, wheels.DIRECT]
)
def test_every_drive_brakes_on_its_curve(model: int) -> None:
    rows = one(model, 0.6, 0.0, 0.4).run(300)
    centre = rows.state[0, FORWARD] / rows.state[0, TURNING]
    x = rows.state[0, X] - centre * math.sin(rows.state[0, YAW])
    y = rows.state[0, Y] + centre * math.cos(rows.state[0, YAW])
    rows.command[0] = 0.0
    while rows.state[0, FORWARD] != 0.0:
        rows.run(1)
        radius = math.dist(rows.state[0, [X, Y]], (x, y))
        assert radius == pytest.approx(abs(centre), abs=1e-9)
