"""All mobile robots of a cell, built together: hardware, runtime, face, map, one component each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from msgspec.structs import replace

from understudy.errors import ConfigError, Refused, located_at
from understudy.ports import Component, Deps, Group, State
from understudy.ports.hmi import LaserReading, RobotView
from understudy.ports.operation import Vehicle
from understudy.robots.mobile import Config
from understudy.robots.mobile.config.fleet_keys import (
    DividedKeys,
    FleetKeys,
    planner_config,
    read_graph,
    seed_of,
    spreads,
)
from understudy.robots.mobile.config.layout import Layout, outlines_of, track_of
from understudy.robots.mobile.config.profile import (
    BarcodeMarker,
    InitialState,
    ProfilePose,
    SimulationProfile,
)
from understudy.robots.mobile.config.robot_file import MODULES, LidarConfig, RobotFile
from understudy.robots.mobile.config.server import robot_file
from understudy.robots.mobile.face import FleetFace
from understudy.robots.mobile.fleet_interface import (
    FleetColumns,
    FleetLinkState,
    FleetListener,
    FleetRobot,
    Floor,
    FloorRobot,
    Marker,
    RequestKind,
    TaskReading,
)
from understudy.robots.mobile.graph import DriverGraph, build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.planner.built_in import BuiltInPlanner
from understudy.robots.mobile.robot import NO_HARDWARE, MobileRobot, body_of
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.messages import COMMANDS, REASONS
from understudy.robots.mobile.runtime.tick import STATUSES, STOPS
from understudy.robots.mobile.sensors import mount_of, ray_angles
from understudy.robots.mobile.world import Solid, floor_of, solids_for
from understudy.space.model.environment import Environment
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.robots.mobile import Config


def robot_of(
    name: str, config: "Config", text: bytes, markers: tuple[BarcodeMarker, ...] = ()
) -> RobotFile:
    """The file of a robot with what the cell file says of it. ``markers``: of the cell."""
    file = robot_file(config.file, text.decode())
    known = file.identity
    code = config.robot_code or (known.robot_code if known.robot_id == name else name)
    identity = replace(known, robot_id=name, robot_code=code)
    profile = file.runtime.simulation_profile or SimulationProfile()
    state = _initial(config, profile.initial_state)
    world = replace(profile.world, barcode_markers=profile.world.barcode_markers + markers)
    profile = replace(profile, initial_state=state, world=world)
    runtime = replace(file.runtime, simulation_profile=profile)
    return replace(file, identity=identity, runtime=runtime)


def _initial(config: "Config", state: InitialState) -> InitialState:
    if config.pose is not None:
        x, y, yaw = config.pose
        state = replace(state, pose=ProfilePose(x, y, yaw * DEG))
    if config.battery_percent is not None:
        state = replace(state, battery_percent=config.battery_percent)
    return state


# ── the map ───────────────────────────────────────────────────────────────────────────────────────

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
                self._layout.robot_rows,
                poses.tolist(),
                statuses.tolist(),
                moving.tolist(),
                strict=True,
            )
        }

    def details(self, robot: str, now: int) -> FleetRobot:
        row = self._layout.robot_rows[robot]
        found, mock = self._fleet.reading(row), self._graph.mock
        if mock is None or row not in self._simulated:
            return replace(found, lidar=list(self._seen(robot, found.pose)))
        true_pose = mock.pose(row)
        return replace(found, true_pose=true_pose, lidar=list(self._seen(robot, true_pose)))

    def link(self) -> FleetLinkState:
        status = self._fleet.status(0)
        return FleetLinkState(status.connected, status.waiting, status.given_up)

    def tasks(self) -> Iterator[tuple[str, TaskReading]]:
        for name, row in self._layout.robot_rows.items():
            for task in self._fleet.robot(row).tasks.readings():
                yield name, task

    def request(
        self, robot: str, kind: RequestKind, payload: Mapping[str, Any], now: int
    ) -> Refused | None:
        problem = self._fleet.request(self._layout.robot_rows[robot], kind, payload, now)
        if problem is None or problem.reason not in REASONS:
            return problem
        return Refused(f"{problem.reason}: {REASONS[problem.reason]}")

    def set_input(self, robot: str, name: str, value: bool | None, now: int) -> Refused | None:
        row, mock = self._layout.robot_rows[robot], self._graph.mock
        if mock is None or row not in self._simulated:
            return NO_HARDWARE
        mock.begin(now)  # it may have rested until now
        refused = mock.set_input(row, name, value)
        self._fleet.poke(row, now)
        return refused

    def on_event(self, listener: FleetListener) -> None:
        self._fleet.on_robot_event(listener)

    def scans(self, robot: str) -> list[LaserReading]:
        return [
            lidar._replace(ranges=self._graph.sensors.ranges(row).tolist())
            for row, lidar in self._lidars.get(robot, ())
        ]

    @cached_property
    def _lidars(self) -> dict[str, list[tuple[int, LaserReading]]]:
        """Rows of the lidars of each robot, with what does not change."""
        found: dict[str, list[tuple[int, LaserReading]]] = {}
        names = list(self._layout.robot_rows)
        for row, each in enumerate(self._layout.devices):
            if isinstance(config := each.device.settings, LidarConfig):
                first, last = ray_angles(config)[[0, -1]].tolist()
                place = mount_of(self._layout, each)
                lidar = LaserReading(each.device.device_id, place, first, last, ())
                found.setdefault(names[each.robot], []).append((row, lidar))
        return found

    def _seen(self, robot: str, pose: Pose) -> Iterator[tuple[float, float]]:
        """The points that the lidars of a robot see from a pose."""
        x, y, yaw = pose
        c, s = math.cos(yaw), math.sin(yaw)
        for scan in self.scans(robot):
            ahead, left, turned = scan.place
            eye_x, eye_y = x + ahead * c - left * s, y + ahead * s + left * c
            angles = np.linspace(scan.start, scan.end, len(scan.ranges)) + (yaw + turned)
            for angle, far in zip(angles.tolist(), scan.ranges, strict=True):
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
            orders=_orders(file),
        )


def _commands(file: RobotFile) -> Sequence[str]:
    return file.capabilities.supported_commands or tuple(COMMANDS)


def _orders(file: RobotFile) -> list[str]:
    """What an operator can order, by capabilities and hardware of the robot."""
    modules = file.capabilities.supported_modules or MODULES
    commands = _commands(file) if "RobotCore" in modules else ()
    simulated = file.runtime.mode == "MOCK"
    has_estop = any(point.role == "ESTOP" for point in file.io.digital_inputs)
    able = {
        "drive": "MOVE_TO_POSE" in commands,
        "task": {"TaskComm", "RouteComm"} <= set(modules),
        "stop": "STOP" in commands,
        "hold": "TrafficComm" in modules,
        "estop": simulated and has_estop,
        "reset": simulated,
    }
    return [order for order, can in able.items() if can]


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


# ── the group ─────────────────────────────────────────────────────────────────────────────────────


def build(robots: Mapping[str, Config], sections: Mapping[str, Any], deps: Deps) -> Group:
    """``sections``: of the cell file."""
    keys: FleetKeys = sections.get("fleet") or FleetKeys()
    markers = tuple(marker.built() for marker in keys.markers)
    files = {
        name: robot_of(name, config, deps.read(config.file), markers)
        for name, config in robots.items()
    }
    layout, run = Layout(list(files.values())), deps.run
    option = run.seed if run.seed_given else None
    seeds = [seed_of(file, option, run.seed) for file in layout.robots]
    see = keys.robots_see_each_other
    around = [Surroundings(seed=seed) for seed in seeds]
    graph = build_driver_graph(layout, around, deps.log, see_each_other=see)
    if graph.mock is not None and graph.mock.others is not None:
        _check_apart(layout, graph.mock.others.overlaps())
    planner = _planner(keys, layout, graph, deps)
    fleet = Fleet(
        layout,
        graph,
        run_id=run.id,
        epoch=run.epoch,
        seeds=seeds,
        planner=planner,
        meet=see,
        spread=spreads(keys, len(layout.robots)),
        elsewhere=keys.elsewhere if isinstance(keys, DividedKeys) else (),
        log=deps.log,
    )
    face = FleetFace(fleet, fleet.subjects())
    estops = _estops(layout)
    parts = {
        name: MobileRobot(layout, row, fleet, graph, estops[row])
        for name, row in layout.robot_rows.items()
    }
    shared: dict[str, Component] = {
        "fleet": fleet,
        "fleet.hardware": SimulatedHardware(layout, graph, fleet),
        **({} if planner is None else {"fleet.planner": planner}),
        **_devices(graph),
    }
    return Group(parts, shared, {"nats": face})


def _check_apart(layout: Layout, overlaps: Sequence[tuple[int, int]]) -> None:
    """Robots that see each other cannot start in one place."""
    for pair in overlaps[:1]:
        one, other = (layout.robots[row].identity.robot_id for row in pair)
        raise ConfigError(
            f"{one} and {other} stand in each other, and robots_see_each_other is true",
            key=f"robots.{other}.pose",
            allowed="poses whose footprints do not overlap",
        )


def _devices(graph: DriverGraph) -> dict[str, Component]:
    """The connections to the devices of REAL robots."""
    hardware = graph.real_hardware
    drivers = hardware.callers().values() if hardware else ()
    return {f"fleet.device_{number}": driver for number, driver in enumerate(drivers, 1)}


def _estops(layout: Layout) -> list[Rows]:
    """The rows of the emergency stop inputs of each robot."""
    found: list[list[int]] = [[] for _ in layout.robots]
    for row, (robot, point) in enumerate(layout.inputs):
        if point.role == "ESTOP":
            found[robot].append(row)
    return [np.array(rows, dtype=np.int64) for rows in found]


def _planner(
    keys: FleetKeys, layout: Layout, graph: DriverGraph, deps: Deps
) -> BuiltInPlanner | None:
    with located_at("fleet.planner"):
        config = planner_config(keys.planner)
    if config.kind == "off":
        return None
    roads = None
    if config.graph is not None:
        with located_at("fleet.planner.graph"):
            roads = read_graph(deps.read(config.graph).decode(), config.graph)
    return BuiltInPlanner(config, layout, graph.mock, roads)


def _vehicle(file: RobotFile) -> Vehicle:
    limits = [motor.limits.si for motor in file.motors if motor.role == "DRIVE"]
    speed = max((each.max_speed for each in limits), default=0.0)
    return Vehicle(body_of(file), (speed, 2.0 * speed / track_of(file)))


class SimulatedHardware:
    """The hardware of all robots as a `Component` that `SeesEnvironment`: the objects of the cell
    are obstacles of the simulated robots, and arms can meet these (`HasVehicles`). The component
    `environment` saves the objects."""

    def __init__(self, layout: Layout, graph: DriverGraph, fleet: Fleet) -> None:
        self.heights = [robot.dimensions.height_mm * MM for robot in layout.robots]
        self.graph = graph
        self._layout = layout
        self._fleet = fleet
        self.seen_together = FleetMap(layout, graph, fleet)
        self._count = 0
        self._loaded: State = None

    def surround(self, environment: Environment, now: int | None) -> None:
        if self.graph.mock is None:
            return
        found: dict[float, tuple[Solid, ...]] = {
            height: solids_for(environment, height) for height in dict.fromkeys(self.heights)
        }
        solids = [found[height] for height in self.heights]
        self.graph.mock.set_solids(solids, floor_of(environment))
        if now is None and self._loaded is not None:
            self.graph.load(self._loaded)  # a snapshot: new objects are nothing new to the sensors
        self._count = max((len(solids) for solids in found.values()), default=0)
        if now is not None:
            for row in range(len(self.heights)):
                self._fleet.poke(row, now)

    # ── what arms can meet ──

    def vehicles(self) -> Mapping[str, Vehicle]:
        robots = (file for file in self._layout.robots if file.runtime.mode == "MOCK")
        return {file.identity.robot_id: _vehicle(file) for file in robots}

    def place(self, robot: str) -> Pose:
        assert self.graph.mock is not None
        return self.graph.mock.pose(self._layout.robot_rows[robot])

    def driven_at(self) -> int | None:
        return self._fleet.driven_at()

    # ── component ──

    def status(self, now: int) -> dict[str, int]:
        return {"obstacles": self._count}

    def save(self) -> State:
        return self.graph.save()

    def load(self, state: State) -> None:
        self.graph.load(state)
        self._loaded = state
