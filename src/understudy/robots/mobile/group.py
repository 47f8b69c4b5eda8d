"""All mobile robots of a cell, built together: hardware, runtime, face, a part for each robot."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.errors import located_at
from understudy.ports import Component, Deps, Group, State
from understudy.robots.mobile import Config
from understudy.robots.mobile.config.fleet_keys import FleetKeys
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.planner import planner_config, read_graph
from understudy.robots.mobile.config.seeds import seed_of
from understudy.robots.mobile.config.server import robot_file
from understudy.robots.mobile.face import FleetFace
from understudy.robots.mobile.files import robot_of
from understudy.robots.mobile.fleet_map import FleetMap
from understudy.robots.mobile.graph import DriverGraph, build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.planner.built_in import BuiltInPlanner
from understudy.robots.mobile.robot import MobileRobot
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.surroundings import solids_for
from understudy.robots.mobile.world import Solid
from understudy.space.model.environment import Environment
from understudy.units import MM


def build(robots: Mapping[str, Config], sections: Mapping[str, Any], deps: Deps) -> Group:
    """``sections``: of the cell file."""
    keys: FleetKeys = sections.get("fleet") or FleetKeys()
    markers = tuple(marker.built() for marker in keys.markers)
    files = {
        name: robot_of(
            name, config, robot_file(config.file, deps.read(config.file).decode()), markers
        )
        for name, config in robots.items()
    }
    layout, run = Layout(list(files.values())), deps.run
    option = run.seed if run.seed_given else None
    seeds = [seed_of(file, option, run.seed) for file in layout.robots]
    graph = build_driver_graph(layout, [Surroundings(seed=seed) for seed in seeds], deps.log)
    planner = _planner(keys, layout, graph, deps)
    fleet = Fleet(
        layout, graph, run_id=run.id, epoch=run.epoch_ns, seeds=seeds, planner=planner,
        log=deps.log,
    )  # fmt: skip
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


class SimulatedHardware:
    """The hardware of all robots as a `Component` that `SeesEnvironment`: the objects of the cell
    are obstacles of the simulated robots. The part `environment` saves these objects."""

    def __init__(self, layout: Layout, graph: DriverGraph, fleet: Fleet) -> None:
        self.heights = [robot.dimensions.height_mm * MM for robot in layout.robots]
        self.graph = graph
        self._fleet = fleet
        self.fleet_view = FleetMap(layout, graph, fleet)
        self._count = 0
        self._loaded: State = None

    def surround(self, environment: Environment, now: int | None) -> None:
        if self.graph.mock is None:
            return
        found: dict[float, tuple[Solid, ...]] = {
            height: solids_for(environment, height) for height in dict.fromkeys(self.heights)
        }
        self.graph.mock.set_solids([found[height] for height in self.heights])
        if now is None and self._loaded is not None:
            self.graph.load(self._loaded)  # a snapshot: new objects are nothing new to the sensors
        self._count = max((len(solids) for solids in found.values()), default=0)
        if now is not None:
            for row in range(len(self.heights)):
                self._fleet.poke(row, now)

    def status(self, now: int) -> dict[str, int]:
        return {"obstacles": self._count}

    def save(self) -> State:
        return self.graph.save()

    def load(self, state: State) -> None:
        self.graph.load(state)
        self._loaded = state
