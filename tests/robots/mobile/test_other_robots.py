"""Robots that see each other: lidar, protective field and contact, however time is cut."""

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.robots.mobile.rig import Rig, robot
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.app.build import build_cell
from understudy.config import load_config, read_config
from understudy.config.shards import Shard, with_robots, with_shard
from understudy.errors import ConfigError
from understudy.robots.mobile.config.layout import Layout, outlines_of
from understudy.robots.mobile.field import MARGIN, WIDENING, corner_radius, free_way
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Floats
from understudy.robots.mobile.other_robots import OtherRobots
from understudy.robots.mobile.sensors import seen_line

Pose = tuple[float, float, float]
LENGTH, WIDTH = 0.9, 0.65
BRAKES = np.array([0.48, 0.52, 1.2, 0.8, 1.0])


def fleet_at(*poses: Pose, see: bool = True, **changes: Any) -> DrivenFleet:
    """Robots r1, r2, …; with ``hz`` of a robot by name: its tick rate."""
    rates = changes.pop("hz", {})
    names = [f"r{n}" for n in range(1, len(poses) + 1)]
    files = [robot_file(name, runtime__tickHz=rates.get(name, 50), **changes) for name in names]
    layout = Layout(files)
    around = [Surroundings(pose) for pose in poses]
    graph = build_driver_graph(layout, around, print, see_each_other=see)
    return DrivenFleet(layout, graph, meet=see).run(0.1)


def true_pose(fleet: DrivenFleet, row: int) -> Pose:
    hardware: Any = fleet.fleet._hardware
    found: Pose = hardware.mock.pose(row)
    return found


# ── what is found, compared with plain Python ───────────────────────────────────────────────────


class Crowd:
    """Robots at random places of a square, some of them driving."""

    def __init__(self, seed: int, count: int = 40, side: float = 12.0) -> None:
        chance = np.random.default_rng(seed)
        self.body = np.zeros((count, 7))
        self.body[:, :2] = chance.uniform(-side / 2, side / 2, (count, 2))
        self.body[:, 2] = chance.uniform(-math.pi, math.pi, count)
        self.body[::2, 3] = chance.uniform(-1.0, 1.0, len(self.body[::2]))
        sizes = chance.uniform(0.2, 0.6, (count, 2))
        self.outlines = np.column_stack([sizes, chance.choice([0.0, 0.25], count)])
        self.robots = [n for n in range(count) if n % 7]  # each seventh one is REAL
        figures = np.tile(BRAKES, (count, 1))
        self.others = OtherRobots(self.outlines, self.robots, count, figures, self.body)

    def corners(self, row: int, more: float = 0.0) -> list[tuple[float, float]]:
        """``more``: metres by which the footprint is longer, in the direction of its motion."""
        x, y, yaw = self.body[row, :3].tolist()
        half, side, ahead = self.outlines[row].tolist()
        front, rear = half + max(more, 0.0), -half + min(more, 0.0)
        c, s = math.cos(yaw), math.sin(yaw)
        return [
            (x + (a + ahead) * c - b * s, y + (a + ahead) * s + b * c)
            for a, b in ((front, side), (rear, side), (rear, -side), (front, -side))
        ]

    def sides(self, row: int, more: float = 0.0) -> list[tuple[float, float, float, float]]:
        corners = self.corners(row, more)
        return [(*corners[n], *corners[(n + 1) % 4]) for n in range(4)]


@pytest.mark.parametrize("seed", range(6))
def test_lidars_find_the_nearest_robot(seed: int) -> None:
    """All pairs are the oracle of see_robots."""
    crowd = Crowd(seed)
    eyes = crowd.body[:, :3] + np.array([0.2, 0.1, 0.3])
    views, longest = np.full(40, 0.3 + seed), np.full(40, (0.5, 2.0, 30.0)[seed % 3])
    found = np.full(40, np.inf)
    crowd.others.look(np.arange(40), eyes, views, longest, found)
    for row, (x, y, yaw) in enumerate(eyes.tolist()):
        least = math.inf
        for other in crowd.robots:
            for x1, y1, x2, y2 in crowd.sides(other) if other != row else ():
                least = seen_line(x1 - x, y1 - y, x2 - x, y2 - y, yaw, views[row], least)
        expected = least if least < longest[row] else math.inf
        assert found[row] == pytest.approx(expected, abs=1e-12), row


@pytest.mark.parametrize("seed", range(6))
def test_the_protective_field_finds_the_first_robot(seed: int) -> None:
    """`free_way` among all robots is the oracle of watch_robots."""
    crowd = Crowd(seed, side=20.0)
    chance = np.random.default_rng(seed + 100)
    motion = chance.uniform(-1.0, 1.0, (40, 3)) * chance.choice([0.0, 1.0], (40, 3))
    farthest, ahead = np.full(40, 2.5), np.zeros(40)
    crowd.others.watch(np.arange(40), np.arange(40), motion, farthest, ahead)
    none = np.zeros(2, dtype=np.int64)

    def way(row: int, lines: list[tuple[float, float, float, float]]) -> float:
        span = np.array([0, len(lines)])
        return free_way(
            crowd.body[row], crowd.outlines[row], motion[row], 2.5, MARGIN, WIDENING,
            np.zeros((0, 3)), none, np.array(lines), span,
        )  # fmt: skip

    for row in range(40):
        others = [other for other in crowd.robots if other != row]
        expected = way(row, [side for other in others for side in crowd.sides(other)])
        for other in others:
            speed = crowd.body[other, 3]
            if speed != 0.0:
                more = speed * (0.1 + abs(speed) / BRAKES[4] / 2.0)
                if (free := way(row, crowd.sides(other, more))) > 0.0:
                    expected = min(expected, free)
        assert ahead[row] == pytest.approx(expected, abs=1e-9), row


def separated(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> bool:
    """Whether two convex outlines are apart: along the normal of some side."""
    for n in range(4):
        (x1, y1), (x2, y2) = one[n], one[(n + 1) % 4]
        normal = y2 - y1, x1 - x2
        spans = [[normal[0] * x + normal[1] * y for x, y in each] for each in (one, other)]
        if max(spans[0]) <= min(spans[1]) or max(spans[1]) <= min(spans[0]):
            return True
    return False


@pytest.mark.parametrize("seed", range(6))
def test_overlaps_are_those_of_all_pairs(seed: int) -> None:
    """Separating axes of all pairs are the oracle of find_overlaps."""
    crowd = Crowd(seed, side=14.0)
    expected = [
        (one, other)
        for n, one in enumerate(crowd.robots)
        for other in crowd.robots[n + 1 :]
        if not separated(crowd.corners(one), crowd.corners(other))
        and not separated(crowd.corners(other), crowd.corners(one))
    ]
    assert crowd.others.overlaps() == expected


# ── what robots do ──────────────────────────────────────────────────────────────────────────────


def test_a_lidar_sees_the_side_of_another_robot() -> None:
    files = [robot(name=f"robot-{n}") for n in (1, 2)]
    around = [Surroundings((0.0, 0.0, 0.0)), Surroundings((3.0, 0.0, math.pi / 2))]
    blind, seeing = Rig(files, around), Rig(files, around, see_each_other=True)
    blind.run(0.2)
    seeing.run(0.2)
    assert seeing.nearest() == pytest.approx(3.0 - WIDTH / 2, abs=0.3)
    assert blind.nearest() == math.inf
    row = int(seeing.hardware.sensors.lidar_rows[0])
    assert seeing.hardware.sensors.ranges(row).min() == pytest.approx(seeing.nearest(), abs=0.01)
    assert blind.hardware.sensors.ranges(row).min() == math.inf


@pytest.mark.parametrize("see", [False, True])
def test_a_robot_stops_in_front_of_one_that_stands(see: bool) -> None:
    fleet = fleet_at((0.0, 0.0, 0.0), (5.0, 0.0, math.pi / 2), see=see)
    fleet.command("MOVE_VELOCITY", linear=1.2)
    fleet.run(8.0)
    gap = 5.0 - WIDTH / 2 - LENGTH / 2 - true_pose(fleet, 0)[0]
    assert fleet.state()["status"] == ("PAUSED" if see else "RUNNING")
    assert fleet.state()["safetyStopReason"] == ("OBSTACLE" if see else None)
    assert (0.0 < gap < 0.7) if see else gap < 0.0
    assert "motor.fault" not in fleet.events("r2")


@pytest.mark.parametrize("speed", [0.3, 0.6, 1.2])
def test_two_robots_that_meet_both_stop_before_they_touch(speed: float) -> None:
    fleet = fleet_at((0.0, 0.0, 0.0), (8.0, 0.1, math.pi))
    for name in ("r1", "r2"):
        fleet.command("MOVE_VELOCITY", robot=name, linear=speed)
    fleet.run(20.0)
    assert true_pose(fleet, 1)[0] - true_pose(fleet, 0)[0] > LENGTH + 0.01
    for name in ("r1", "r2"):
        assert fleet.state(name)["safetyStopReason"] == "OBSTACLE"
        assert fleet.state(name)["faults"] == []


def test_a_robot_is_not_stopped_by_one_behind_it() -> None:
    fleet = fleet_at((0.0, 0.0, 0.0), (1.8, 0.0, 0.0))
    for name in ("r1", "r2"):
        fleet.command("MOVE_VELOCITY", robot=name, linear=0.8)
    fleet.run(6.0)
    assert "safety.obstacle.detected" not in fleet.events("r2")
    assert true_pose(fleet, 1)[0] > 5.0


def touching() -> DrivenFleet:
    """r1 has run into r2: its protective field is off."""
    fleet = fleet_at((0.0, 0.0, 0.0), (3.0, 0.0, 0.0))
    fleet.send("settings.desired", {"safety": {"stopOnObstacle": False}})
    fleet.run(0.1)
    fleet.command("MOVE_VELOCITY", linear=1.0)
    return fleet.run(6.0)


def test_contact_is_a_fault_of_both_with_its_reason() -> None:
    fleet = touching()
    gap = true_pose(fleet, 1)[0] - true_pose(fleet, 0)[0] - LENGTH
    assert 0.0 <= gap < 0.05
    for name, other in (("r1", "r2"), ("r2", "r1")):
        state = fleet.state(name)
        assert state["status"] == "ERROR"
        assert {fault["code"] for fault in state["faults"]} == {"ROBOT_CONTACT"}
        assert all(f"contact with {other}" in fault["message"] for fault in state["faults"])
        faults = [e for e in fleet.payloads("events", name) if e["type"] == "motor.fault"]
        assert len(faults) == 2, "once for each wheel"
    assert fleet.acks()[-1].startswith("MOVE_VELOCITY:FAILED")


def test_robots_that_touched_can_drive_apart_after_a_reset() -> None:
    fleet = touching()
    for motor in ("drive_left", "drive_right"):
        fleet.command("RESET_MOTOR", motorId=motor)
    fleet.run(0.5)
    fleet.command("MOVE_VELOCITY", linear=-0.5, durationSeconds=2.0)
    fleet.run(4.0)
    assert fleet.state()["faults"] == []
    assert true_pose(fleet, 0)[0] < 1.5


def test_a_robot_that_is_put_back_stops_the_one_behind_it() -> None:
    """Three in a row: the first stands, the second runs into it, the third into the second."""
    crowd = Crowd(0, count=8)
    crowd.outlines[:] = 0.45, 0.325, 0.0
    crowd.body[:] = 0.0
    crowd.body[:, 0] = np.arange(8) * 10.0
    crowd.body[1:4, 0] = 0.0, 0.91, 1.82
    before = crowd.body.copy()
    crowd.body[1:3, 0] += 0.05  # the second is now in the third, the first would follow it
    crowd.body[1:3, 3] = 1.0
    assert crowd.others.separate(before, crowd.body) == [(2, 3), (1, 2)]
    assert (crowd.body[1:4, 0] == before[1:4, 0]).all()
    assert (crowd.body[1:3, 3] == 0.0).all()


# ── the same however time is cut ────────────────────────────────────────────────────────────────


def busy(**options: Any) -> DrivenFleet:
    """Robots of two tick rates on crossing ways; the last one stands."""
    poses = [(0.0, 0.0, 0.0), (3.0, -3.0, math.pi / 2), (6.0, 0.2, math.pi), (3.0, 1.2, 0.0)]
    fleet = fleet_at(*poses, hz={"r2": 100, "r4": 100}, **options)
    for name in ("r1", "r2", "r3"):
        fleet.command("MOVE_VELOCITY", robot=name, linear=0.9)
    return fleet


def test_slices_of_time_change_nothing() -> None:
    whole, cut = busy().run(8.0), busy().run(8.0, slices=173)
    assert whole.data == cut.data
    assert whole.data != busy(see=False).run(8.0).data


def test_a_snapshot_goes_on_as_the_original() -> None:
    original = busy().run(2.5)
    hardware: Any = original.fleet._hardware
    saved = msgspec.json.encode([hardware.save(), original.fleet.save()])
    other = busy()
    states = msgspec.json.decode(saved)
    copy: Any = other.fleet._hardware
    copy.load(states[0])
    other.fleet.load(states[1])
    other.now, other.sent, other.data = original.now, original.sent, bytearray()
    original.data = bytearray()
    original.run(4.0)
    other.run(4.0)
    assert original.data == other.data


def test_a_robot_that_stands_sees_others_come_at_another_tick_rate() -> None:
    fleet = fleet_at((0.0, 0.0, 0.0), (4.0, 0.0, math.pi), hz={"r2": 100})
    fleet.run(2.0)
    fleet.command("MOVE_VELOCITY", linear=0.8)
    fleet.run(8.0)
    nearest = [each["lidar"]["nearestObstacleMeters"] for each in fleet.payloads("telemetry", "r2")]
    assert nearest[0] > 2.0
    assert nearest[-1] < 1.2


# ── cells ───────────────────────────────────────────────────────────────────────────────────────

CELL = """
fleet: {robots_see_each_other: true}
robots:
  a: {kind: mobile, file: amr.json, pose: [0, 0, 0]}
  b: {kind: mobile, file: amr.json, pose: [%s, 0, 0]}
"""


def test_the_key_of_the_cell_file_switches_it_on() -> None:
    hardware: Any = build_cell(read_config(CELL % 3, "c.yaml")).components["fleet.hardware"]
    assert hardware.graph.mock.others is not None
    plain: Any = build_cell(load_config("fleet")).components["fleet.hardware"]
    assert plain.graph.mock.others is None, "it costs nothing"


def test_robots_that_start_in_each_other_are_named() -> None:
    with pytest.raises(ConfigError, match=r"a and b stand in each other"):
        build_cell(read_config(CELL % 0.5, "c.yaml"))


def test_they_are_not_divided_among_processes() -> None:
    config = with_robots(read_config(CELL % 3, "c.yaml"), 6)
    assert len(with_shard(config, Shard(1, 1)).robots) == 6
    for number in (1, 2):
        with pytest.raises(ConfigError, match=r"robots_see_each_other.*--shard") as told:
            with_shard(config, Shard(number, 2))
        assert "one process" in str(told.value)


def test_copies_that_see_each_other_start_apart() -> None:
    text = json.dumps(
        load_config("fleet").document.value | {"fleet": {"robots_see_each_other": True}}
    )
    build_cell(with_robots(read_config(text, "fleet.yaml"), 200))


def corner_of(outlines: Floats) -> float:
    return max(corner_radius(each) for each in outlines)


def test_cells_are_wide_enough_for_the_largest_robot() -> None:
    layout = Layout([robot_file("r1", dimensions__lengthMm=4000), robot_file("r2")])
    outlines, body = outlines_of(layout), np.zeros((2, 7))
    body[1, 0] = 2.4  # 2 m and 0.45 m
    others = OtherRobots(outlines, [0, 1], 2, np.tile(BRAKES, (2, 1)), body)
    assert others.overlaps() == [(0, 1)]
    body[1, 0] = corner_of(outlines) + 1.0
    others.place(body)
    assert others.overlaps() == []
