"""The built-in planner of a cell: answers route.request if no backend does.

It is a component without time of its own: RouteComm asks it. At one tick it plans one route; the
others wait for the next ticks. A way is found over the nodes of a graph (Dijkstra), or on a grid.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import State
from understudy.robots.mobile.config.fleet_keys import Graph, GraphNode, PlannerConfig
from understudy.robots.mobile.config.layout import (
    Layout,
    base_of,
    centre_ahead,
    drive_model,
    track_of,
)
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import KnowsMap, Obstacles
from understudy.robots.mobile.planner.grid import Point, RobotSize, way_on_grid
from understudy.robots.mobile.runtime.messages import MoveToPoint, Pose, RouteResponse, RouteStep
from understudy.robots.mobile.wheels import smallest_radius, wrapped
from understudy.units import MM, nanoseconds


class RoadMap:
    """A graph, prepared for searches. Equal ways: that through the nodes that are listed first."""

    def __init__(self, graph: Graph) -> None:
        self._nodes: Mapping[str, GraphNode] = {node.node_id: node for node in graph.nodes}
        self._order = {name: number for number, name in enumerate(self._nodes)}
        self._next: dict[str, list[tuple[str, float]]] = {name: [] for name in self._nodes}
        for edge in graph.edges:
            length = math.dist(self._point(edge.start), self._point(edge.end))
            self._next[edge.start].append((edge.end, length))
            if not edge.one_way:
                self._next[edge.end].append((edge.start, length))

    def way(self, start: Point, goal: Point) -> list[GraphNode] | Refused:
        """The nodes from that nearest to the start to that nearest to the goal."""
        first, last = self._nearest(start), self._nearest(goal)
        before: dict[str, str | None] = {}
        heap: list[tuple[float, int, str, str | None]] = [(0.0, 0, first, None)]
        while heap:
            length, _, name, came_from = heapq.heappop(heap)
            if name in before:
                continue
            before[name] = came_from
            if name == last:
                return self._traced(before, last)
            for other, more in self._next[name]:
                if other not in before:
                    heapq.heappush(heap, (length + more, self._order[other], other, name))
        return Refused(f"no way in the graph from node {first} to node {last}")

    def _traced(self, before: Mapping[str, str | None], last: str) -> list[GraphNode]:
        way, name = [], last
        while True:
            way.append(self._nodes[name])
            came_from = before[name]
            if came_from is None:
                return way[::-1]
            name = came_from

    def _nearest(self, point: Point) -> str:
        return min(self._nodes, key=lambda name: math.dist(self._point(name), point))

    def _point(self, name: str) -> Point:
        return self._nodes[name].x, self._nodes[name].y


# ── the planner ───────────────────────────────────────────────────────────────────────────────────

THERE = 0.02
"""Metres within which a robot is at a point."""
NOT_FOUND = "ROUTE_NOT_FOUND"
NO_OBSTACLES = Obstacles(np.empty((0, 3)), np.empty((0, 4)))


class Corner(NamedTuple):
    """A point of a route. ``yaw``: of a robot whose destination it is."""

    node_id: str
    x: float
    y: float
    yaw: float | None


class SavedPlanner(Struct, frozen=True):
    """`silent`: a backend answers. `planned`: the time of the last route; -1: none yet."""

    silent: bool
    planned: Annotated[int, Meta(ge=-1, lt=1 << 62)]


class BuiltInPlanner:
    """One for all robots. ``known``: where obstacles are; None: nothing is known of them.
    ``graph``: for the kind `graph`."""

    def __init__(
        self, config: PlannerConfig, layout: Layout, known: KnowsMap | None, graph: Graph | None
    ) -> None:
        self._config = config
        self._layout = layout
        self._known = known
        self._roads = None if graph is None else RoadMap(graph)
        self._silent = False
        self._planned = -1

    @property
    def grace_ns(self) -> int:
        return nanoseconds(self._config.grace_s)

    @property
    def silent(self) -> bool:
        return self._silent

    def silence(self) -> None:
        self._silent = True

    def plan(
        self, robot_id: str, start: Pose, destination: MoveToPoint, now: int
    ) -> RouteResponse | Refused | None:
        if now == self._planned:
            return None
        self._planned = now
        row = self._layout.robot_rows[robot_id]
        corners = self._corners(row, start, destination)
        if isinstance(corners, Refused):
            return Refused(f"{NOT_FOUND}: {corners.reason}")
        steps = [
            RouteStep("MOVE", x=each.x, y=each.y, yaw=each.yaw, node_id=each.node_id)
            for each in corners
        ]
        if not steps and destination.yaw is not None:
            steps = [RouteStep("TURN", yaw=destination.yaw)]
        eta = travel_seconds(self._layout.robots[row], start, steps)
        return RouteResponse(f"planned-{robot_id}-{now}", steps, eta_seconds_total=eta)

    # ── part ──

    def status(self, now: int) -> "SavedPlanner":
        return self.save()

    def save(self) -> "SavedPlanner":
        return SavedPlanner(self._silent, self._planned)

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, SavedPlanner)
        self._silent, self._planned = saved.silent, saved.planned

    # ── ways ──

    def _corners(
        self, row: int, start: Pose, destination: MoveToPoint
    ) -> Sequence[Corner] | Refused:
        here, goal = (start.x, start.y), (destination.x, destination.y)
        if math.dist(here, goal) <= THERE:
            return []
        found = self._on_graph(here, goal) if self._roads else self._on_grid(row, here, goal)
        if isinstance(found, Refused):
            return found
        end = Corner("destination", *goal, destination.yaw)
        last = found[-1] if found else None
        if last is not None and math.dist(last[1:3], goal) <= THERE:
            found.pop()
            yaw = last.yaw if destination.yaw is None else destination.yaw
            end = Corner(last.node_id, *goal, yaw)
        return [*(each._replace(yaw=None) for each in found), end]

    def _on_graph(self, here: Point, goal: Point) -> list[Corner] | Refused:
        assert self._roads is not None
        way = self._roads.way(here, goal)
        if isinstance(way, Refused):
            return way
        corners = [Corner(node.node_id, node.x, node.y, node.yaw) for node in way]
        if math.dist(corners[0][1:3], here) <= THERE:
            corners.pop(0)
        return corners

    def _on_grid(self, row: int, here: Point, goal: Point) -> list[Corner] | Refused:
        obstacles = NO_OBSTACLES if self._known is None else self._known.obstacles(row)
        body = body_of(self._layout.robots[row])
        way = way_on_grid(here, goal, obstacles, body, self._config.resolution_mm * MM)
        if isinstance(way, Refused):
            return way
        return [Corner(f"corner-{n}", *point, None) for n, point in enumerate(way[:-1], 1)]


def body_of(robot: RobotFile) -> RobotSize:
    size, safety = robot.dimensions, robot.safety
    stop = safety.obstacle_stop_distance_meters if safety.stop_on_obstacle else 0.0
    front = size.length_mm * MM / 2.0 + centre_ahead(robot)
    model = drive_model(robot)
    swing = smallest_radius(base_of(robot)) if model == "ackermann" else 0.0
    return RobotSize(front, size.width_mm * MM / 2.0, stop, swing, sideways=model == "mecanum")


# ── how long it takes ───────────────────────────────────────────────────────────────────────────


def travel_seconds(robot: RobotFile, start: Pose, steps: Sequence[RouteStep]) -> float:
    """The time that a route takes: the robot turns and drives with the limits of its motors, and
    stops at every step."""
    limits = [motor.limits.si for motor in robot.motors if motor.role == "DRIVE"]
    speed = min((each.max_speed for each in limits), default=1.0)
    up = min((each.max_acceleration for each in limits), default=1.0)
    down = min((each.max_deceleration for each in limits), default=1.0)
    on_the_spot = drive_model(robot) != "ackermann"
    reach = track_of(robot) / 2.0
    points = [(start.x, start.y), *((s.x, s.y) for s in steps if s.x is not None)]
    yaw, total = start.yaw, 0.0
    for (x1, y1), (x2, y2) in pairwise((x, y or 0.0) for x, y in points):
        ahead = math.atan2(y2 - y1, x2 - x1)
        if on_the_spot:
            total += _seconds(abs(wrapped(ahead - yaw)) * reach, speed, up, down)
        total += _seconds(math.hypot(x2 - x1, y2 - y1), speed, up, down)
        yaw = ahead
    final = steps[-1].yaw if steps else None
    if final is not None and on_the_spot:
        total += _seconds(abs(wrapped(final - yaw)) * reach, speed, up, down)
    return total


def _seconds(way: float, speed: float, up: float, down: float) -> float:
    """Seconds of a way from rest to rest; ``up`` and ``down``: acceleration and deceleration."""
    ramps = speed * speed * (1.0 / up + 1.0 / down) / 2.0
    if way >= ramps:
        return (way - ramps) / speed + speed / up + speed / down
    peak = math.sqrt(2.0 * way / (1.0 / up + 1.0 / down))
    return peak / up + peak / down
