"""Random worlds with robots of all drives in them, and an exact watch over their clearance."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.robots.mobile import drive
from understudy.robots.mobile.config.layout import Layout, drives_of, outlines_of
from understudy.robots.mobile.config.profile import DriveModel
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.field import free_way, outline_clearances
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.wheels import DIRECT, moved_on_arc, pace
from understudy.robots.mobile.world import Worlds
from understudy.units import NS_PER_SECOND

Moves = list[tuple[str, dict[str, Any]]]
"""Commands or messages."""
ROOM = 10.0, 8.0
DRIVES: tuple[tuple[DriveModel, bool], ...] = (
    ("differential", True),
    ("differential", False),
    ("mecanum", True),
    ("ackermann", True),
)
"""Drive model, and whether the track is known."""
SHAPES = ("circle", "post", "box", "segment", "post", "segment")
SILENT: dict[str, Any] = {
    f"streams__{name}Hz": 0 for name in ("heartbeat", "state", "telemetry", "traffic")
}


def obstacle(number: int, draw: np.random.Generator) -> dict[str, Any]:
    """A circle, a post of 1 cm, a box or a thin segment somewhere in the room."""
    shape = SHAPES[draw.integers(len(SHAPES))]
    x, y = (float(draw.uniform(0.0, size)) for size in ROOM)
    found: dict[str, Any] = {"id": f"o{number}", "x": x, "y": y}
    if shape == "box":
        length, width = draw.uniform(0.05, 1.5, 2).tolist()
        sizes = {"lengthMeters": length, "widthMeters": width, "yaw": float(draw.uniform(0, 3))}
        return found | sizes | {"shape": "box"}
    if shape == "segment":
        angle, length = draw.uniform(0, 2 * math.pi), draw.uniform(0.05, 2.0)
        x2, y2 = float(x + length * math.cos(angle)), float(y + length * math.sin(angle))
        return found | {"shape": "segment", "x2": x2, "y2": y2}
    radius = 0.005 if shape == "post" else float(draw.uniform(0.03, 0.6))
    return found | {"shape": "circle", "radiusMeters": radius}


def world(draw: np.random.Generator) -> dict[str, Any]:
    walls = [[0, 0], [ROOM[0], 0], list(ROOM), [0, ROOM[1]]]
    return {
        "obstacles": [obstacle(n, draw) for n in range(draw.integers(4, 12))],
        "boundaries": [walls],
    }


def motors(model: DriveModel, draw: np.random.Generator) -> list[dict[str, Any]]:
    names = ["FRONT_LEFT", "FRONT_RIGHT", "REAR_LEFT", "REAR_RIGHT"]
    if model != "mecanum":
        names = names[2:]
    if model == "ackermann" and draw.random() < 0.5:
        names = ["REAR", "STEERING"]
    speed, faster, slower = draw.uniform((0.3, 0.4, 0.5), (3.0, 2.0, 3.0)).tolist()
    limits = {
        "maxSpeed": {"unit": "m/s", "value": speed},
        "maxAcceleration": {"unit": "m/s2", "value": faster},
        "maxDeceleration": {"unit": "m/s2", "value": slower},
    }
    return [
        {
            "motorId": name.lower(),
            "role": "DRIVE",
            "functionKey": name,
            "limits": limits,
            "driver": {"type": "MOCK"},
        }
        for name in names
    ]


def robot(number: int, rate: int, draw: np.random.Generator, **changes: Any) -> RobotFile:
    """A robot of random size and speed; its drive follows from its number. It has a lidar and an
    emergency stop, and no streams."""
    model, tracked = DRIVES[number % len(DRIVES)]
    length, width = draw.uniform((500, 400), (1200, 800)).tolist()
    size = {"lengthMm": length, "widthMm": width, "heightMm": 350, "wheelBaseMm": length * 0.6}
    profile = {"driveModel": model} | changes.pop("profile", {})
    inputs = [{"ioId": "estop", "role": "ESTOP"}]
    devices = [{"deviceId": "lidar", "type": "LIDAR", "config": {"rays": 36}}]
    return robot_file(
        f"r{number}",
        runtime__tickHz=rate,
        runtime__simulationProfile=profile,
        dimensions=size | ({"trackWidthMm": width * 0.75} if tracked else {}),
        motors=motors(model, draw),
        io={"digitalInputs": inputs, "devices": devices},
        **SILENT,
        **changes,
    )


def robots(count: int, seed: int, rate: int) -> list[RobotFile]:
    """Robots of all drives; each group of four stands in one world."""
    draw = np.random.default_rng(seed)
    files: list[RobotFile] = []
    for _ in range(count):
        around = world(draw)
        for _ in DRIVES:
            stop = float(draw.choice([0.0, 0.05, 0.2, 0.6]))
            files.append(
                robot(
                    len(files),
                    rate,
                    draw,
                    profile={"world": around},
                    safety__obstacleStopDistanceMeters=stop,
                    safety__obstacleWarnDistanceMeters=stop + float(draw.choice([0.0, 0.8])),
                )
            )
    return files


def free_poses(layout: Layout, draw: np.random.Generator) -> list[Surroundings]:
    """A place for each robot where it touches nothing; some are near to something."""
    count = len(layout.robots)
    profiles = [robot.runtime.simulation_profile for robot in layout.robots]
    worlds = Worlds([()] * count, [each for each in profiles if each is not None])
    outlines, poses = outlines_of(layout), np.zeros((count, 3))
    found, left = np.zeros(count), np.ones(count, dtype=np.bool_)
    least = draw.choice([0.004, 0.02, 0.1], count)
    while left.any():
        tried = draw.uniform((0, 0, -math.pi), (*ROOM, math.pi), (count, 3))
        poses[left] = tried[left]
        outline_clearances(
            poses,
            outlines,
            worlds.circles,
            worlds.circle_spans,
            worlds.lines,
            worlds.line_spans,
            found,
        )
        left = left & (found < least)
    return [Surroundings(pose=(float(x), float(y), float(yaw))) for x, y, yaw in poses]


@dataclass
class Figures:
    """What a run has shown."""

    least: float = math.inf
    """Metres: the smallest clearance at a tick."""
    commands: int = 0
    stops: int = 0
    """Obstacle stops."""
    travelled: float = 0.0
    touches: dict[str, str] = field(default_factory=dict)
    """Robots that came to an obstacle, at a tick or between two, and when they first did."""


class Watched(DrivenFleet):
    """A fleet in random worlds; every robot gets random commands, and is set free after a stop."""

    def __init__(self, count: int, seed: int, rate: int) -> None:
        layout = Layout(robots(count, seed, rate))
        self.draw = np.random.default_rng(seed + 1)
        self.rate = rate
        self.hardware = MockHardware(
            layout, free_poses(layout, self.draw), range(len(layout.robots))
        )
        super().__init__(layout, self.hardware)
        self.figures = Figures()
        self._direct = drives_of(layout) == DIRECT
        size = len(layout.robots)
        self._next = self.draw.uniform(0.1, 1.0, size)
        """Seconds at which robots get their next messages."""
        self._left: list[Moves] = [[] for _ in range(size)]
        """Messages of robots that wait, one for each tick."""

    def watch(self, seconds: float) -> Figures:
        for number in range(1, round(seconds * self.rate) + 1):
            self.watch_tick(number)
        self.figures.travelled = float(self.hardware.motors.body[:, drive.TRAVELLED].sum())
        return self.figures

    def watch_tick(self, number: int) -> None:
        self._command_due(number / self.rate)
        before = self.hardware.motors.body.copy()
        self.now = -(-number * NS_PER_SECOND // self.rate)
        self.run(0.0)
        self._check(before, self.hardware.motors.body)

    # ── commands ──

    def _command_due(self, at: float) -> None:
        for row in np.flatnonzero(self._next <= at).tolist():
            if self._left[row]:
                kind, payload = self._left[row].pop(0)
                self.send(kind, payload, robot=f"r{row}")
                self._next[row] = at + (0.0 if self._left[row] else self.draw.uniform(0.3, 4.0))
            elif self.fleet.robot(row).stop_reason is None:
                self._left[row] = self._moves(row)
            elif not self.hardware.motors.body[row, 3:6].any():
                self.figures.stops += 1  # the robot stands: release the stop
                self._left[row] = [
                    ("settings.desired", {"safety": {"stopOnObstacle": False}}),
                    ("settings.desired", {"safety": {"stopOnObstacle": True}}),
                    *self._moves(row),
                ]

    def _moves(self, row: int) -> Moves:
        """Messages with a random command, often after a STOP of the one before."""
        self.figures.commands += 1
        stop: Moves = [("STOP", {})] if self.draw.random() < 0.7 else []
        limit = self.draw.uniform(0.05, 3.0)
        slow: Moves = (
            [("SET_SPEED_LIMIT", {"maxSpeedMps": limit})] if self.draw.random() < 0.2 else []
        )
        return [
            ("command.request", {"commandType": name, "parameters": parameters})
            for name, parameters in (*stop, *slow, self._move(row))
        ]

    def _move(self, row: int) -> tuple[str, dict[str, Any]]:
        draw, kind = self.draw, self.draw.integers(5)
        if kind < 2:
            x, y, yaw = draw.uniform((0, 0, -math.pi), (*ROOM, math.pi)).tolist()
            return "MOVE_TO_POSE", {"x": x, "y": y} | ({"yaw": yaw} if kind else {})
        linear, lateral, angular = draw.uniform((-2, -2, -2), (3, 2, 2)).tolist()
        if kind == 2:
            linear = 0.0  # turns on the spot
        if kind == 3:
            angular = 0.0
        sideways = (
            self.layout.robots[row].motors[0].motor_id == "front_left" and draw.random() < 0.5
        )
        return "MOVE_VELOCITY", {"linear": linear, "angular": angular} | (
            {"lateral": lateral} if sideways else {}
        )

    # ── clearance ──

    def _check(self, before: np.ndarray, after: np.ndarray) -> None:
        """At the tick, and on the exact arc since the last one."""
        worlds, outlines = self.hardware._worlds, self.hardware.sensors.outlines
        obstacles = worlds.circles, worlds.circle_spans, worlds.lines, worlds.line_spans
        found = np.zeros(len(before))
        outline_clearances(np.ascontiguousarray(after[:, :3]), outlines, *obstacles, found)
        self.figures.least = min(self.figures.least, float(found.min()))
        mean = (before[:, 3:6] + after[:, 3:6]) / 2.0
        at_once = self._direct & self.hardware.motors.command.any(axis=1)
        mean[at_once, 2] = after[at_once, drive.TURNING]
        free = np.array(
            [self._free_way(row, before[row, :3], mean[row]) for row in range(len(mean))]
        )
        for row in np.flatnonzero((found < 0.0) | (free < 10.0)).tolist():
            end = moved_on_arc(*before[row, :3], *(mean[row] / self.rate))
            assert math.dist(end[:2], after[row, :2]) < 1e-9, "ticks are exact arcs"
            radius = math.hypot(abs(outlines[row, 2]) + outlines[row, 0], outlines[row, 1])
            if (
                found[row] < 0.0
                or free[row]
                < pace(mean[row, 0], mean[row, 1], mean[row, 2], radius) / self.rate - 1e-4
            ):
                where = f"{self.now / 1e9:.2f} s: {found[row]:.4f} m"
                self.figures.touches.setdefault(f"r{row}", where)

    def _free_way(self, row: int, pose: np.ndarray, speeds: np.ndarray) -> float:
        worlds, outlines = self.hardware._worlds, self.hardware.sensors.outlines
        return free_way(
            pose,
            outlines[row],
            speeds,
            10.0,
            0.0,
            0.0,
            worlds.circles,
            worlds.circle_spans[row],
            worlds.lines,
            worlds.line_spans[row],
        )
