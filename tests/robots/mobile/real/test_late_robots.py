"""MOVE_TO_POSE of REAL robots: a PLC and drives of a CAN bus that follow the commanded ramps with a
tick of 4 ms, and whose answers come late. On virtual time."""

import math
from typing import Any

import numpy as np
import pytest
from tests.robots.mobile.conformance.benches import LEFT, RIGHT, RealBench
from tests.robots.mobile.conformance.far_ends import ADDRESSES, COUNTS, CanEnd, FarEnd, RegisterEnd
from tests.robots.mobile.real.virtual_device import Late, VirtualDevice
from tests.robots.mobile.real.virtual_drive import VirtualDrive
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet

from understudy.ports import Caller
from understudy.robots.mobile.config.layout import track_of
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.units import NS_PER_MS, NS_PER_SECOND

STEP = 4 * NS_PER_MS
READY_SECONDS = 10.0
TOLERANCE = 0.02
LINES = [
    ("PLC", 0, 0, 0),
    ("PLC", 0, 0, 100),
    ("PLC", 8, 0, 0),
    ("PLC", 8, 0, 100),
    ("PLC", 2, 200, 100),
    ("CANOPEN", 0, 0, 0),
    ("CANOPEN", 50, 0, 30),
    ("CANOPEN", 100, 0, 100),
    ("CANOPEN", 200, 0, 60),
    ("CANOPEN", 0, 200, 100),
]
"""Milliseconds by which each answer is late, by which the drives begin to follow late, and of their
lag. A PLC is asked 13 times in a cycle, one after the other. What a drive with a lag reads is
noisy, too."""
NOISE = (1e-4, 5e-3)
"""Metres and m/s."""
POSES_IN_TESTS, POSES_IN_SOAK = 4, 100
"""For each of the ten lines."""


class Half:
    """One direction of a line, as a far end sees it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.answers = b""

    def take(self, room: int) -> bytes:
        data, self._data = self._data, b""
        return data

    def receive(self, data: bytes, now: int) -> None:
        self.answers += data


class Line:
    """Carries what a driver and its devices say, each answer after a delay."""

    def __init__(self, driver: Caller, end: FarEnd, delay: int) -> None:
        self._driver, self._end, self._delay = driver, end, delay
        self._asked: list[tuple[int, bytes]] = []
        self._answered: list[tuple[int, bytes]] = []
        self.deaf = self.dumb = False
        """Whether nothing reaches the device, and whether nothing comes from it."""

    def carry(self, now: int) -> None:
        self._end.run(STEP / NS_PER_SECOND)
        while data := self._driver.take(1 << 30):
            self._asked.extend([] if self.deaf else [(now + self._delay // 2, data)])
        while self._asked and self._asked[0][0] <= now:
            half = Half(self._asked.pop(0)[1])
            self._end.exchange(half, now)  # type: ignore[arg-type]
            if half.answers and not self.dumb:
                self._answered.append((now + self._delay - self._delay // 2, half.answers))
        while self._answered and self._answered[0][0] <= now:
            self._driver.receive(self._answered.pop(0)[1], now)


def alone(robot: dict[str, object]) -> None:
    """Without sensors, and without a broker."""
    io, runtime = robot["io"], robot["runtime"]
    assert isinstance(io, dict)
    assert isinstance(runtime, dict)
    io["devices"] = []
    runtime["healthPolicy"] = {"requireNatsForMotion": False}


def _follow_late(end: FarEnd, delay: float, lag: float) -> None:
    noise = NOISE if lag else (0.0, 0.0)
    if isinstance(end, RegisterEnd):
        end.device.noise = noise
        end.device.late |= {ADDRESSES[wheel]: Late(delay, lag) for wheel in (LEFT, RIGHT)}
    elif isinstance(end, CanEnd):
        for motor, (drive, counts) in enumerate(zip(end.drives, COUNTS, strict=True)):
            drive.noise = (noise[0] * counts, noise[1] * counts)
            if motor in (LEFT, RIGHT):
                drive.late = Late(delay, lag)


def _speeds(ends: list[FarEnd]) -> tuple[float, float]:
    """Of the left and the right wheel, without the noise of what is read; in m/s."""
    for end in ends:
        if isinstance(end, CanEnd):
            left, right = (end.drives[motor].velocity / COUNTS[motor] for motor in (LEFT, RIGHT))
            return left, right
    (device,) = (end.device for end in ends if isinstance(end, RegisterEnd))
    return device.speed(ADDRESSES[LEFT]), device.speed(ADDRESSES[RIGHT])


class LateRobot:
    """A REAL robot at late lines."""

    def __init__(self, kind: str, delay_ms: int, drive_ms: int, lag_ms: int) -> None:
        bench = RealBench(kind, alone)
        for end in bench.ends.values():
            _follow_late(end, drive_ms / 1000.0, lag_ms / 1000.0)
        self.log = bench.log
        self._drivers, self.ends = bench.drivers, list(bench.ends.values())
        self.lines = [
            Line(driver, bench.ends[where], delay_ms * NS_PER_MS)
            for where, driver in bench.drivers.items()
        ]
        self.driven = DrivenFleet(bench.layout, bench.hardware)
        self._track = track_of(bench.layout.robots[0])
        self.now = 0
        self.x = self.y = self.yaw = 0.0
        """Where the robot is in truth."""
        self.backwards = self.turned = 0.0
        self.run(READY_SECONDS)
        self.table = self.fleet._tickers[0].table

    @property
    def fleet(self) -> Fleet:
        return self.driven.fleet

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * NS_PER_SECOND / STEP)):
            self.now += STEP
            for driver in self._drivers.values():
                at = driver.next_wake()
                if at is not None and at <= self.now:
                    driver.wake(self.now)
                if driver.status(self.now).connection == "connecting":
                    driver.connected(self.now)
            for line in self.lines:
                line.carry(self.now)
            self._move(*_speeds(self.ends))
            self.driven.run(STEP / NS_PER_SECOND)

    def _move(self, left: float, right: float) -> None:
        seconds = STEP / NS_PER_SECOND
        ahead, turn = (left + right) / 2.0 * seconds, (right - left) / self._track * seconds
        self.x += ahead * math.cos(self.yaw + turn / 2.0)
        self.y += ahead * math.sin(self.yaw + turn / 2.0)
        self.yaw += turn
        self.backwards += max(-ahead, 0.0)
        self.turned += abs(turn)

    def end_of(self, name: str, **parameters: Any) -> str:
        """The last answer to a command."""
        self.driven.command(name, robot="robot-1", **parameters)
        self.run(7.0)
        return self.driven.acks("robot-1")[-1].removeprefix(f"{name}:")

    def drive(self, x: float, y: float, yaw: float | None) -> str:
        """Drives to a pose, from where it believes to be; returns the last answer. `backwards` and
        `turned` are the metres and radians of this drive."""
        self.x, self.y, self.yaw = self.table.pose[0].tolist()
        self.backwards = self.turned = 0.0
        own = {} if yaw is None else {"yaw": yaw}
        self.driven.command("MOVE_TO_POSE", robot="robot-1", x=x, y=y, **own)
        self.run(0.1)
        deadline = self.now + 40 * NS_PER_SECOND
        while self.fleet.busy() and self.now < deadline:
            self.run(0.02)
        self.run(0.5)
        return self.driven.acks("robot-1")[-1]


@pytest.mark.parametrize(("kind", "delay", "drive", "lag"), LINES)
def test_four_metres_end_at_the_goal_without_turning_round(
    kind: str, delay: int, drive: int, lag: int
) -> None:
    """Also in truth: wheels that are read one after the other do not lead it off its line."""
    robot = LateRobot(kind, delay, drive, lag)
    assert robot.drive(4.0, 0.0, None) == "MOVE_TO_POSE:DONE"
    assert math.hypot(robot.x - 4.0, robot.y) <= TOLERANCE
    assert abs(robot.yaw) <= 0.05
    assert robot.backwards <= 0.01
    assert robot.turned <= 0.2


def _check_random_poses(kind: str, delay: int, drive: int, lag: int, count: int) -> None:
    robot, draw = LateRobot(kind, delay, drive, lag), np.random.default_rng(delay)
    for number in range(count):
        x, y = draw.uniform(-3.0, 3.0, 2).tolist()
        goal = draw.uniform(-math.pi, math.pi) if number % 3 else None
        was_x, was_y, was = robot.table.pose[0].tolist()
        ended = robot.drive(x, y, goal)
        way = math.atan2(y - was_y, x - was_x)
        needed = abs(math.remainder(way - was, math.tau))
        needed += 0.0 if goal is None else abs(math.remainder(goal - way, math.tau))
        assert ended == "MOVE_TO_POSE:DONE", number
        assert math.hypot(robot.x - x, robot.y - y) <= TOLERANCE, number
        assert robot.backwards <= 0.02, number
        assert robot.turned - needed <= math.radians(30.0), number


@pytest.mark.parametrize(("kind", "delay", "drive", "lag"), LINES)
def test_random_poses(kind: str, delay: int, drive: int, lag: int) -> None:
    _check_random_poses(kind, delay, drive, lag, POSES_IN_TESTS)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "delay", "drive", "lag"), LINES)
def test_a_thousand_random_poses(kind: str, delay: int, drive: int, lag: int) -> None:
    _check_random_poses(kind, delay, drive, lag, POSES_IN_SOAK)


@pytest.mark.parametrize("kind", ["PLC", "SERIAL", "CANOPEN"])
@pytest.mark.parametrize(("deaf", "dumb"), [(False, True), (True, False)])
def test_drives_that_are_cut_off_in_a_motion_stop_and_stay(
    kind: str, deaf: bool, dumb: bool
) -> None:
    """Drives that are not heard may still hear us."""
    robot = LateRobot(kind, 0, 0, 0)
    robot.driven.command("MOVE_TO_POSE", robot="robot-1", x=4.0, y=0.0)
    robot.run(1.0)
    assert min(_speeds(robot.ends)) > 0.5
    for line in robot.lines:
        line.deaf, line.dumb = deaf, dumb
    robot.run(2.5)
    assert _speeds(robot.ends) == (0.0, 0.0)
    assert robot.driven.acks("robot-1")[-1].startswith("MOVE_TO_POSE:FAILED")
    for line in robot.lines:
        line.deaf = line.dumb = False
    robot.run(10.0)
    assert _speeds(robot.ends) == (0.0, 0.0)


@pytest.mark.parametrize("kind", ["PLC", "SERIAL"])
def test_a_device_that_freezes_its_registers_in_a_motion_is_not_connected(kind: str) -> None:
    """It goes on to report the speed that is commanded, and acknowledges what is written."""
    robot = LateRobot(kind, 0, 0, 0)
    robot.driven.command("MOVE_TO_POSE", robot="robot-1", x=4.0, y=0.0)
    robot.run(1.0)
    assert min(_speeds(robot.ends)) > 0.5
    (device,) = (end.device for end in robot.ends if isinstance(end, RegisterEnd))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VirtualDevice, "run", lambda self, seconds: None)
        robot.run(0.7)
        assert robot.driven.acks("robot-1")[-1].startswith("MOVE_TO_POSE:FAILED")
        assert robot.end_of("MOVE_TO_POSE", x=1.0, y=0.0).startswith("REJECTED")
        assert [device.set_speed(ADDRESSES[wheel]) for wheel in (LEFT, RIGHT)] == [0.0, 0.0]
        assert len([line for line in robot.log if "frozen" in line]) == 2
    robot.run(10.0)
    assert _speeds(robot.ends) == (0.0, 0.0)
    assert robot.end_of("MOVE_VELOCITY", linear=0.5, durationSeconds=1.0) == "DONE"


MOVES: list[tuple[str, dict[str, Any]]] = [
    ("MOVE_TO_POSE", {"x": 1.0, "y": 0.0}),
    ("MOVE_VELOCITY", {"linear": 0.5, "durationSeconds": 1.0}),
    ("EXECUTE_ACTION", {"motorId": "act_1", "targetPosition": 0.05}),
]


@pytest.mark.parametrize("kind", ["PLC", "CANOPEN"])
def test_a_command_that_no_drive_follows_fails(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = LateRobot(kind, 0, 0, 0)
    robot.driven.send("settings.desired", {"io": {"motor_enable": False}}, robot="robot-1")
    assert [robot.end_of(name, **own) for name, own in MOVES] == ["FAILED:MOTORS_DISABLED"] * 3
    robot.driven.send("settings.desired", {"io": {"motor_enable": True}}, robot="robot-1")
    robot.run(1.0)
    for module in (VirtualDevice, VirtualDrive):
        monkeypatch.setattr(module, "run", lambda self, seconds: None)
    ends = [robot.end_of(name, **own) for name, own in MOVES]
    assert ends == [*["FAILED:DRIVE_NOT_FOLLOWING"] * 2, "FAILED:TIMEOUT"]


@pytest.mark.parametrize(("kind", "delay", "drive", "lag"), [LINES[3], LINES[8]])
def test_a_late_robot_follows_a_short_velocity(kind: str, delay: int, drive: int, lag: int) -> None:
    robot = LateRobot(kind, delay, drive, lag)
    for seconds in (0.3, 0.8, 1.5):
        own = {"linear": 0.5, "durationSeconds": seconds}
        assert robot.end_of("MOVE_VELOCITY", **own) == "DONE"
