"""The mobile robots of a cell on a map: where they truly are, what stands around, what they see."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.ports.hmi import RobotView
from understudy.robots.mobile.config.kinematics import outlines_of
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import LidarConfig, RobotFile
from understudy.robots.mobile.fleet_interface import (
    FleetColumns,
    FleetLinkState,
    FleetListener,
    FleetRobot,
    Floor,
    FloorRobot,
    Marker,
    RequestKind,
)
from understudy.robots.mobile.graph import DriverGraph
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.messages import COMMANDS, REASONS
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS
from understudy.robots.mobile.sensors import mount_of, ray_angles
from understudy.units import MM

Pose = tuple[float, float, float]


class FleetMap:
    """`FleetView` of all mobile robots of a cell."""

    def __init__(self, layout: Layout, graph: DriverGraph, fleet: Fleet) -> None:
        self._layout = layout
        self._graph = graph
        self._fleet = fleet
        modes = [robot.runtime.mode for robot in layout.robots]
        self._simulated = np.flatnonzero([mode == "MOCK" for mode in modes])
        self._robots = list(_floor_robots(layout))
        self._markers = list(_markers(layout))

    def names(self) -> Sequence[str]:
        return list(self._layout.robot_rows)

    def floor(self) -> Floor:
        circles, lines = self._graph.mock.all_obstacles() if self._graph.mock else ((), ())
        return Floor(
            version=self.floor_version(),
            robots=self._robots,
            markers=self._markers,
            circles=[list(row) for row in dict.fromkeys(map(tuple, np.asarray(circles).tolist()))],
            lines=[list(row) for row in dict.fromkeys(map(tuple, np.asarray(lines).tolist()))],
            statuses=STATUSES,
            stops=[stop or "" for stop in STOPS],
        )

    def floor_version(self) -> int:
        if self._graph.mock is None:
            return 0
        circles, lines = self._graph.mock.all_obstacles()
        return crc32(lines.tobytes(), crc32(circles.tobytes()))

    def columns(self) -> FleetColumns:
        found, mock = self._fleet.columns(), self._graph.mock
        if mock is not None:
            found.pose[self._simulated] = mock.poses()[self._simulated]
        return found

    def views(self) -> Mapping[str, RobotView]:
        """As `MobileRobot.view` of each robot, for all of them at once."""
        poses, statuses, moving = self._fleet.drawn()
        if self._graph.mock is not None:
            poses[self._simulated] = self._graph.mock.poses()[self._simulated]
        return {
            name: RobotView((), (x, y, 0.0, 0.0, 0.0, yaw), STATUSES[status], moves)
            for name, (x, y, yaw), status, moves in zip(
                self._layout.robot_rows, poses.tolist(), statuses.tolist(), moving.tolist(),
                strict=True,
            )
        }  # fmt: skip

    def details(self, robot: str, now: int) -> FleetRobot:
        row = self._layout.robot_rows[robot]
        found, mock = self._fleet.reading(row), self._graph.mock
        if mock is None or row not in self._simulated:
            return replace(found, lidar=list(self._seen(row, found.pose)))
        true_pose = mock.pose(row)
        return replace(found, true_pose=true_pose, lidar=list(self._seen(row, true_pose)))

    def link(self) -> FleetLinkState:
        status = self._fleet.status(0)
        return FleetLinkState(status.connected, status.waiting, status.given_up)

    def request(
        self, robot: str, kind: RequestKind, payload: Mapping[str, Any], now: int
    ) -> Refused | None:
        problem = self._fleet.request(self._layout.robot_rows[robot], kind, payload, now)
        if problem is None or problem.reason not in REASONS:
            return problem
        return Refused(f"{problem.reason}: {REASONS[problem.reason]}")

    def on_event(self, listener: FleetListener) -> None:
        self._fleet.on_event(listener)

    def _seen(self, robot: int, pose: Pose) -> Iterator[tuple[float, float]]:
        """The points that the lidars of a robot see from a pose."""
        x, y, yaw = pose
        c, s = math.cos(yaw), math.sin(yaw)
        for row, each in enumerate(self._layout.devices):
            config = each.device.settings if each.robot == robot else None
            if not isinstance(config, LidarConfig):
                continue
            ahead, left, turned = mount_of(self._layout, each)
            eye_x, eye_y = x + ahead * c - left * s, y + ahead * s + left * c
            angles = ray_angles(config) + (yaw + turned)
            ranges = self._graph.sensors.ranges(row)
            for angle, far in zip(angles.tolist(), ranges.tolist(), strict=True):
                if math.isfinite(far):
                    yield eye_x + far * math.cos(angle), eye_y + far * math.sin(angle)


def _floor_robots(layout: Layout) -> Iterator[FloorRobot]:
    outlines = outlines_of(layout).tolist()
    for file, (half_length, half_width, ahead) in zip(layout.robots, outlines, strict=True):
        yield FloorRobot(
            name=file.identity.robot_id,
            code=file.identity.robot_code,
            model=file.identity.model or "",
            mode=file.runtime.mode,
            length=2.0 * half_length,
            width=2.0 * half_width,
            height=file.dimensions.height_mm * MM,
            ahead=ahead,
            commands=_commands(file),
        )


def _commands(file: RobotFile) -> Sequence[str]:
    return file.capabilities.supported_commands or tuple(COMMANDS)


def _markers(layout: Layout) -> Iterator[Marker]:
    """The markers of all robots' worlds; one that many robots share is listed once."""
    profiles = (robot.runtime.simulation_profile for robot in layout.robots)
    found = {
        (marker.code, marker.x, marker.y): None
        for profile in profiles
        if profile is not None
        for marker in profile.world.barcode_markers
    }
    return (Marker(*each) for each in found)
