"""Lidars and scanners of MOCK robots."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.mobile.rig import PROFILE, Rig, robot

from understudy.robots.mobile.config.robot_file import LidarConfig
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Scan
from understudy.robots.mobile.sensors import look, ray_angles
from understudy.robots.mobile.world import Circle, Polygon, Solid

LIDAR = "io.devices.0"
SCANNER = "io.devices.1.config"
MARKERS = f"{PROFILE}.world.barcodeMarkers"
POST = Circle("post", 3.0, 0.0, 0.5)
TURN = np.array([(0.0, 0.0, 1.0)])


def rig(changes: dict[str, Any] | None = None, *solids: Solid, pose: Any = None) -> Rig:
    return Rig([robot(changes)], [Surroundings(pose, solids, seed=1)])


def ahead(made: Rig, *velocity: float) -> float:
    """What the protective field reports for a motion; the robot itself stands."""
    rows = made.hardware.sensors.lidar_rows
    made.hardware.sensors.set_motion(rows, np.array([velocity]))
    made.run(0.02)
    return float(made.hardware.sensors.read_lidars(rows).ahead[0])


# ── lidar ───────────────────────────────────────────────────────────────────────────────────────


def test_the_nearest_obstacle_is_measured_from_the_mount_of_the_lidar() -> None:
    assert rig({}, POST).nearest() == pytest.approx(2.5), "before the first tick, too"
    assert rig({}, POST).run(0.1).nearest() == pytest.approx(2.5)
    mounted = {f"{LIDAR}.mount": {"xMm": 400, "yMm": 0}}
    assert rig(mounted, POST).nearest() == pytest.approx(2.1)
    assert rig(mounted, POST, pose=(0.0, 0.0, math.pi)).nearest() == pytest.approx(2.9)


def test_a_thin_post_between_two_rays_is_seen() -> None:
    made = rig({f"{LIDAR}.config": {"rays": 4}}, Circle("post", 2.0, 2.0, 0.01))
    assert np.isinf(made.hardware.sensors.ranges(0)).all()
    assert made.nearest() == pytest.approx(math.hypot(2, 2) - 0.01)


def test_nothing_is_seen_beyond_the_range_and_outside_the_field_of_view() -> None:
    near = {f"{LIDAR}.config": {"maxRangeMeters": 2.4}}
    assert rig(near, POST).nearest() == math.inf
    front = {f"{LIDAR}.config": {"fieldOfViewDeg": 90}}
    assert rig(front, POST).nearest() == pytest.approx(2.5)
    assert rig(front, POST, pose=(0.0, 0.0, math.pi)).nearest() == math.inf
    turned = {**front, f"{LIDAR}.mount": {"yawDeg": 180}}
    assert rig(turned, POST, pose=(0.0, 0.0, math.pi)).nearest() == pytest.approx(2.5)


def test_it_measures_as_often_as_it_scans() -> None:
    made = rig({f"{LIDAR}.config": {"scanHz": 5}}, POST)
    made.speed[:2] = 0.5
    readings = [made.run(0.02).nearest() for _ in range(100)]
    assert len(set(readings)) == 11, "2 s, and the one at the start"
    changes = np.flatnonzero(np.diff(readings))
    assert set(np.diff(changes)) == {10}, "every 0.2 s"


def test_the_full_scan_has_a_distance_for_each_ray() -> None:
    config = {f"{LIDAR}.config": {"rays": 5, "fieldOfViewDeg": 180, "maxRangeMeters": 5}}
    wall = Polygon("wall", ((-9.0, 1.0), (9.0, 1.0)))
    made = rig(config, POST, wall)
    expected = [math.inf, math.inf, 2.5, math.sqrt(2.0), 1.0]
    assert made.hardware.sensors.ranges(0).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rays", "view", "expected"),
    [(4, 360, [-180, -90, 0, 90]), (3, 90, [-45, 0, 45]), (1, 90, [0]), (2, 180, [-90, 90])],
)
def test_rays_are_spread_evenly(rays: int, view: float, expected: list[float]) -> None:
    angles = ray_angles(LidarConfig(rays=rays, field_of_view_deg=view))
    assert np.degrees(angles) == pytest.approx(expected)


def test_a_lidar_with_a_fault_sees_nothing_and_says_so() -> None:
    rule = {"trigger": "AFTER_SECONDS", "value": 1, "target": "device:lidar_front"}
    made = rig({f"{PROFILE}.faultInjection.rules": [rule]}, POST).run(0.9)
    assert made.nearest() == pytest.approx(2.5)
    made.run(0.2)
    readings = made.hardware.sensors.read_lidars(np.array([0]))
    assert (made.nearest(), readings.ahead[0], readings.connected[0]) == (np.inf, np.inf, False)
    assert made.hardware.sensors.connected(np.array([0, 1])).tolist() == [False, True]
    assert np.isinf(made.hardware.sensors.ranges(0)).all()
    made.hardware.faults.repair(0, "device:lidar_front")
    assert made.run(0.1).nearest() == pytest.approx(2.5)


def test_a_moving_obstacle_is_seen_where_it_is() -> None:
    cart = {"id": "c", "x": 8, "y": 0, "radiusMeters": 1}
    script = [
        {"atSeconds": 1, "action": "spawn", "obstacle": cart},
        {"atSeconds": 2, "action": "move", "id": "c", "x": 4, "y": 0, "overSeconds": 2},
        {"atSeconds": 5, "action": "remove", "id": "c"},
    ]
    made = rig({f"{PROFILE}.scripts.obstacles": script})
    seen = {n: made.run(0.5).nearest() for n in range(1, 12)}
    assert seen[1] == seen[10] == math.inf
    assert [seen[n] for n in (2, 4, 5, 6, 8, 9)] == pytest.approx([7, 7, 6, 5, 3, 3])


points = st.floats(-5, 5)


@settings(max_examples=150, deadline=None)
@given(points, points, points, points, st.floats(0.1, 2), st.floats(-4, 4), st.floats(0.2, 3.2))
def test_look_finds_the_nearest_point_in_the_field_of_view(
    x1: float, y1: float, x2: float, y2: float, radius: float, yaw: float, view: float
) -> None:
    """The oracle of look: many points of the obstacle, those in the field of view."""
    share = np.linspace(0.0, 1.0, 4001)
    line = np.array([x1, y1]) + share[:, None] * np.array([x2 - x1, y2 - y1])
    around = 2.0 * np.pi * share
    circle = np.column_stack([x1 + radius * np.cos(around), y1 + radius * np.sin(around)])
    none, one = np.array([[0, 0]]), np.array([[0, 1]])
    a_line, a_circle = np.array([(x1, y1, x2, y2)]), np.array([(x1, y1, radius)])
    eye, longest, found = np.array([(0.0, 0.0, yaw)]), np.array([50.0]), np.zeros(1)
    for places, circles, lines in ((line, none, one), (circle, one, none)):
        look(eye, np.array([view]), longest, a_circle, circles, a_line, lines, found)
        if places is circle and math.hypot(x1, y1) <= radius:
            assert found[0] == 0.0
            continue
        if np.hypot(*places.T).min() < 0.02:
            continue  # the lidar stands on it: it is on all sides
        expected = nearest_seen(places, yaw, view)
        assert found[0] <= expected + 1e-9
        wider = nearest_seen(places, yaw, view + 1e-2 + 0.02 / max(expected, 0.05))
        assert found[0] >= min(expected, wider) - 0.02


def nearest_seen(places: Any, yaw: float, view: float) -> float:
    angles = np.arctan2(places[:, 1], places[:, 0]) - yaw
    inside = np.abs((angles + np.pi) % (2.0 * np.pi) - np.pi) <= view
    return float(np.hypot(*places[inside].T).min(initial=math.inf))


# ── protective field ────────────────────────────────────────────────────────────────────────────


def test_the_field_ends_where_the_outline_would_touch() -> None:
    near = Circle("post", 2.0, 0.0, 0.5)
    assert ahead(rig({}, near), 0.5, 0.0, 0.0) == pytest.approx(2.0 - 0.5 - 0.45, abs=0.06)
    assert ahead(rig({}, near), -0.5, 0.0, 0.0) == math.inf, "it goes away"
    aside = Circle("post", 2.0, 0.9, 0.5)
    assert ahead(rig({}, aside), 0.5, 0.0, 0.0) == math.inf, "it passes"
    assert ahead(rig({}, aside), 0.5, 0.0, 0.3) < 1.5, "the curve leads to it"


def test_a_robot_that_stands_keeps_its_last_direction() -> None:
    made = rig({}, Circle("post", 2.0, 0.0, 0.5))
    before = ahead(made, 0.5, 0.0, 0.0)
    assert ahead(made, 0.0, 0.0, 0.0) == before
    assert ahead(made, -0.1, 0.0, 0.0) == math.inf


def test_the_field_follows_every_tick_and_has_the_range_of_the_lidar() -> None:
    made = rig({}, POST)
    made.speed[:2] = 0.6
    readings = [ahead(made, 0.6, 0.0, 0.0) for _ in range(100)]
    assert (np.diff(readings[20:]) < 0.0).all()
    short = rig({f"{LIDAR}.config": {"maxRangeMeters": 1}}, Circle("post", 2.0, 0.0, 0.5))
    assert ahead(short, 0.5, 0.0, 0.0) == math.inf


def test_the_field_of_a_robot_that_stands_follows_the_world() -> None:
    cart = {"id": "c", "x": 5, "y": 0, "radiusMeters": 0.5}
    script = [
        {"atSeconds": 1, "action": "move", "id": "c", "x": 2, "y": 0, "overSeconds": 1},
        {"atSeconds": 3, "action": "remove", "id": "c"},
    ]
    changes = {f"{PROFILE}.world.obstacles": [cart], f"{PROFILE}.scripts.obstacles": script}
    made = rig(changes)
    assert ahead(made, 0.5, 0.0, 0.0) == math.inf
    assert ahead(made.run(2.0), 0.0, 0.0, 0.0) == pytest.approx(1.05, abs=0.06)
    assert ahead(made.run(1.0), 0.0, 0.0, 0.0) == math.inf
    made.hardware.set_solids([(Circle("post", 2.0, 0.0, 0.5),)])
    assert ahead(made, 0.0, 0.0, 0.0) == pytest.approx(1.05, abs=0.06)


# ── scanner ─────────────────────────────────────────────────────────────────────────────────────


def scans(made: Rig) -> list[Scan]:
    return list(made.hardware.sensors.take_scans())


def test_a_marker_is_read_once_each_time_the_robot_comes_there() -> None:
    markers = [
        {"code": "A", "x": 1, "y": 0.1, "type": "QR"},
        {"code": "B", "x": 1.5, "y": 0},
        {"code": "far", "x": 1, "y": 0.2},
    ]
    made = rig({MARKERS: markers})
    made.speed[:2] = 0.5
    made.run(5.0)
    assert scans(made) == [Scan(1, "A", "QR", None), Scan(1, "B", None, None)]
    assert scans(made) == []
    made.speed[:2] = -0.5
    assert [scan.code for scan in scans(made.run(6.0))] == ["B", "A"]


def test_the_range_counts_from_the_mount_of_the_scanner() -> None:
    changes = {
        MARKERS: [{"code": "A", "x": 0.3, "y": 0.4}],
        SCANNER: {"rangeMeters": 0.1},
        "io.devices.1.mount": {"xMm": 300, "yMm": 400},
    }
    assert [scan.code for scan in scans(rig(changes).run(0.02))] == ["A"]
    assert scans(rig(changes, pose=(0.0, 0.0, 1.0)).run(0.02)) == []


def test_a_marker_tells_a_scanner_that_corrects_where_the_robot_is() -> None:
    changes = {
        MARKERS: [{"code": "A", "x": 2.0, "y": 1.0, "yaw": 0.7}],
        SCANNER: {"rangeMeters": 0.5, "correctsPose": True},
        "io.devices.1.mount": {"xMm": 200, "yMm": -100, "yawDeg": 30},
    }
    made = rig(changes, pose=(1.8, 0.9, 2.0)).run(0.02)
    (scan,) = scans(made)
    assert scan.marker == (2.0, 1.0, 0.7)
    assert scan.seen is not None
    x, y, turned = scan.seen
    yaw = 0.7 - turned
    found = 2.0 - x * math.cos(yaw) + y * math.sin(yaw), 1.0 - x * math.sin(yaw) - y * math.cos(yaw)
    assert (*found, yaw) == pytest.approx(made.hardware.pose(0))


def test_a_script_reads_codes_at_their_times() -> None:
    codes = [{"atSeconds": 1, "code": "S", "type": "EAN"}, {"atSeconds": 1.01, "code": "T"}]
    made = rig({f"{PROFILE}.scripts.barcodes": codes}).run(0.98)
    assert scans(made) == []
    assert scans(made.run(0.04)) == [Scan(1, "S", "EAN", None), Scan(1, "T", None, None)]
    blind = rig({f"{PROFILE}.scripts.barcodes": codes})
    blind.hardware.inject_fault(0, "device:scanner", "SIM_FAULT")
    assert scans(blind.run(2.0)) == []


def test_a_script_reads_nothing_for_robots_that_do_not_tick() -> None:
    codes = {f"{PROFILE}.scripts.barcodes": [{"atSeconds": 0.1, "code": "S"}]}
    made = Rig([robot(codes, "a"), robot(codes, "b")])
    made.rows = np.array([1])
    assert [scan.row for scan in scans(made.run(0.2))] == [3]
    made.rows = np.array([0])
    assert [scan.row for scan in scans(made.run(0.02))] == [1]


steps = st.lists(st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8)), min_size=1, max_size=12)
places = st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 1)), min_size=1, max_size=15)


@settings(max_examples=40, deadline=None)
@given(steps, places, st.floats(0.05, 0.6))
def test_scans_are_those_of_a_scanner_that_looks_at_all_markers(
    speeds: list[tuple[float, float]], markers: list[tuple[float, float]], reach: float
) -> None:
    """The oracle of find_markers: every marker at every tick."""
    listed = [{"code": str(n), "x": x, "y": y} for n, (x, y) in enumerate(markers)]
    made = rig({MARKERS: listed, SCANNER: {"rangeMeters": reach}})
    inside: set[int] = set()
    for left, right in speeds:
        made.speed[:2] = left, right
        for _ in range(15):
            made.run(0.02)
            x, y, _ = made.hardware.pose(0)
            now = {n for n, place in enumerate(markers) if math.dist(place, (x, y)) <= reach}
            assert [int(scan.code) for scan in scans(made)] == sorted(now - inside)
            inside = now
