"""The built-in planner: routes on a grid and on a graph, and when it is silent."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.robots.mobile.runtime.recorded_robot import FILE, TICK, RecordedRobot

from understudy.robots.mobile.config.fleet_keys import Graph, PlannerConfig, read_graph
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import read_robot_file
from understudy.robots.mobile.hardware_interface import Obstacles
from understudy.robots.mobile.planner.built_in import BuiltInPlanner
from understudy.robots.mobile.runtime.messages import MoveToPoint, Pose, RouteResponse

LAYOUT = Layout([read_robot_file(FILE.read_text(), FILE.name)])
GRAPH = """
nodes:
  - {nodeId: a, x: 0, y: 0}
  - {nodeId: b, x: 4, y: 0}
  - {nodeId: c, x: 4, y: 3, yaw: 1.5}
  - {nodeId: d, x: 0, y: 3}
  - {nodeId: alone, x: 50, y: 50}
edges:
  - {from: a, to: b}
  - {from: b, to: c, oneWay: true}
  - {from: c, to: d}
  - {from: d, to: a, oneWay: true}
"""


class Posts:
    """A map with some posts."""

    def __init__(self, *posts: tuple[float, float, float]) -> None:
        self._posts = np.array(posts, dtype=float).reshape(-1, 3)

    def obstacles(self, robot: int) -> Obstacles:
        assert robot == 0
        return Obstacles(self._posts, np.empty((0, 4)))

    def map_bounds(self, robot: int) -> None:
        assert robot == 0


def planner(
    *posts: tuple[float, float, float], graph: Graph | None = None, **config: Any
) -> BuiltInPlanner:
    return BuiltInPlanner(PlannerConfig(**config), LAYOUT, Posts(*posts), graph)


def graph_planner() -> BuiltInPlanner:
    return planner(graph=read_graph(GRAPH, "graph.yaml"), kind="graph")


def route(planner: BuiltInPlanner, start: Pose, goal: MoveToPoint) -> RouteResponse:
    found = planner.plan("robot-1", start, goal, 0)
    assert isinstance(found, RouteResponse), found
    return found


def ask(robot: RecordedRobot, name: str = "t", x: float = 5.0, **more: float) -> None:
    place = {"x": x, "y": 0.0} | more
    task = {"taskId": name, "taskType": "MOVE_TO_POINT", "moveToPoint": place}
    robot.receive("task.assign", task)


# ── when it answers ─────────────────────────────────────────────────────────────────────────────


def test_without_a_backend_it_answers_after_the_grace_time() -> None:
    robot = RecordedRobot(planner((2.5, 0.0, 0.2)))
    ask(robot)
    robot.wait(0.98)
    assert robot.commands == []
    robot.wait(0.04)
    assert robot.kinds_sent() == ["route.request", "task.progress"]
    planned = next(line for line in robot.log if line.startswith("route.planned"))
    assert '"taskId": "t"' in planned
    assert '"nodeId": "corner-1"' in planned
    while robot.running:
        robot.finish()
    assert robot.last("task.done") == {"taskId": "t"}
    assert (robot.pose.x, robot.pose.y) == (5.0, 0.0)


def test_it_is_silent_as_soon_as_a_backend_has_answered() -> None:
    built_in = planner()
    robot = RecordedRobot(built_in)
    ask(robot)
    robot.receive("route.response", {"routeId": "r", "steps": [], "taskId": "another"})
    robot.wait(9)
    assert robot.kinds_sent() == ["route.request"]
    robot.wait(12)
    assert robot.last("task.failed")["errorCode"] == "ROUTE_TIMEOUT"
    other = RecordedRobot(built_in)
    ask(other)
    other.wait(5)
    assert other.commands == [], "silent for all robots"


def test_a_snapshot_keeps_that_a_backend_answers() -> None:
    built_in, fresh = planner(), planner()
    robot = RecordedRobot(built_in)
    ask(robot)
    robot.receive("route.response", {"routeId": "r", "steps": [], "taskId": "another"})
    fresh.load(msgspec.to_builtins(built_in.save()))
    assert fresh.silent


def test_a_late_answer_of_the_backend_is_ignored_with_an_event() -> None:
    robot = RecordedRobot(planner())
    ask(robot)
    robot.wait(2)
    assert len(robot.commands) == 1
    robot.receive("route.response", {"routeId": "late", "steps": [], "taskId": "t"})
    assert robot.log[-1].startswith('route.ignored {"routeId": "late", "reason": "NOT_REQUESTED"')
    assert len(robot.commands) == 1


def test_one_route_is_planned_at_a_tick() -> None:
    built_in = planner()
    robots = [RecordedRobot(built_in) for _ in range(3)]
    for robot in robots:
        ask(robot)
    for robot in robots:
        robot.wait(0.98)
    began: list[tuple[int, int]] = []
    for tick in range(5):
        for number, robot in enumerate(robots):
            robot.tick()
            if robot.commands and number not in [n for n, _ in began]:
                began.append((number, tick))
    assert began == [(0, 0), (1, 1), (2, 2)]


def test_robots_that_wait_for_the_planner_do_not_give_up() -> None:
    built_in = planner()
    robot = RecordedRobot(built_in)
    ask(robot)
    for _ in range(1500):
        built_in.plan("robot-1", Pose(0.0, 0.0), MoveToPoint(1.0, 0.0), robot.now + TICK)
        robot.tick()
    assert robot.kinds_sent() == ["route.request"]
    robot.tick()
    assert len(robot.commands) == 1


def test_a_backend_that_appears_while_a_robot_waits_for_the_planner_has_its_time() -> None:
    built_in = planner()
    robot = RecordedRobot(built_in)
    ask(robot)
    for _ in range(1500):
        built_in.plan("robot-1", Pose(0.0, 0.0), MoveToPoint(1.0, 0.0), robot.now + TICK)
        robot.tick()
    built_in.silence()
    robot.wait(9)
    assert robot.kinds_sent() == ["route.request"] * 2
    robot.wait(2)
    assert robot.last("task.failed")["errorCode"] == "ROUTE_TIMEOUT"


# ── what it answers ─────────────────────────────────────────────────────────────────────────────


def test_a_task_without_a_way_fails_with_the_reason() -> None:
    robot = RecordedRobot(planner((5.0, 0.0, 1.0)))
    ask(robot)
    robot.wait(1.1)
    assert robot.last("task.failed") == {
        "taskId": "t",
        "errorCode": "ROUTE_NOT_FOUND",
        "errorMessage": "the destination is -1.00 m from an obstacle; allowed: ≥ 0.33",
    }


def test_the_last_step_has_the_yaw_of_the_destination() -> None:
    found = route(planner((2.5, 0.0, 0.2)), Pose(0, 0), MoveToPoint(5.0, 0.0, 1.5))
    assert [step.yaw for step in found.steps] == [None] * (len(found.steps) - 1) + [1.5]
    last = found.steps[-1]
    assert (last.x, last.y, last.node_id) == (5.0, 0.0, "destination")
    assert 2 <= len(found.steps) <= 3


def test_at_the_destination_there_is_nothing_to_do_but_turn() -> None:
    assert route(planner(), Pose(1, 1), MoveToPoint(1.01, 1)).steps == []
    (turn,) = route(planner(), Pose(1, 1), MoveToPoint(1.01, 1, 2.0)).steps
    assert (turn.type, turn.yaw) == ("TURN", 2.0)
    robot = RecordedRobot(planner())
    ask(robot, x=0.0)
    robot.wait(1.1)
    assert robot.last("task.done") == {"taskId": "t"}


def test_the_time_is_that_of_the_drive() -> None:
    """1.2 m/s, 0.8 m/s2 and 1.0 m/s2: ramps of 0.9 m and 0.72 m in 1.5 s and 1.2 s."""
    straight = route(planner(), Pose(0, 0, 0), MoveToPoint(5.0, 0.0))
    assert straight.eta_seconds_total == pytest.approx(2.7 + (5 - 1.62) / 1.2)
    short = route(planner(), Pose(0, 0, 0), MoveToPoint(0.1, 0.0))
    peak = math.sqrt(0.2 / (1 / 0.8 + 1 / 1.0))
    assert short.eta_seconds_total == pytest.approx(peak / 0.8 + peak / 1.0)
    turned = route(planner(), Pose(0, 0, math.pi), MoveToPoint(5.0, 0.0, math.pi))
    arc = math.pi * 0.24
    peak = math.sqrt(2 * arc / (1 / 0.8 + 1 / 1.0))
    turn = peak / 0.8 + peak / 1.0
    assert turned.eta_seconds_total == pytest.approx(2.7 + (5 - 1.62) / 1.2 + 2 * turn)


# ── graph ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "goal", "nodes"),
    [
        ((0.5, 0.1), (3.9, 3.2), ["a", "b", "c", "destination"]),
        ((0.0, 0.0), (4.0, 3.0), ["b", "c"]),
        ((4.0, 0.0), (0.0, 0.0), ["a"]),
        ((4.2, 2.5), (4.1, 0.4), ["c", "d", "a", "b", "destination"]),
        ((0.3, 0.0), (0.6, 0.0), ["a", "destination"]),
    ],
)
def test_ways_in_a_graph_follow_its_edges(
    start: tuple[float, float], goal: tuple[float, float], nodes: list[str]
) -> None:
    found = route(graph_planner(), Pose(*start), MoveToPoint(*goal))
    assert [step.node_id for step in found.steps] == nodes
    assert (found.steps[-1].x, found.steps[-1].y) == goal


@pytest.mark.parametrize(("asked", "turned"), [(None, 1.5), (0.3, 0.3)])
def test_the_yaw_of_a_node_counts_at_the_end_of_a_route(asked: float | None, turned: float) -> None:
    found = route(graph_planner(), Pose(4.0, 0.0), MoveToPoint(4.0, 3.0, asked))
    assert [(step.node_id, step.yaw) for step in found.steps] == [("c", turned)]
    through = route(graph_planner(), Pose(4.0, 0.0), MoveToPoint(0.0, 3.0))
    assert [(step.node_id, step.yaw) for step in through.steps] == [("c", None), ("d", None)]


def test_nodes_without_an_edge_are_not_reached() -> None:
    robot = RecordedRobot(graph_planner())
    ask(robot, x=50.0, y=50.0)
    robot.wait(1.1)
    assert robot.last("task.failed") == {
        "taskId": "t",
        "errorCode": "ROUTE_NOT_FOUND",
        "errorMessage": "no way in the graph from node a to node alone",
    }
