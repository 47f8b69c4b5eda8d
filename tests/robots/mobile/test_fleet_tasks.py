"""Tasks in cells without a backend for routes: the shipped cell `fleet`, a graph, no planner."""

import json
from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.ports import CONFIRMED, WireMessage
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell

ROBOTS = 10


class Warehouse:
    """A cell on virtual time, and a client that confirms what it gets."""

    def __init__(self, cell: str = "fleet") -> None:
        config = load_config(cell)
        self.markers = config.sections["fleet"].markers
        self._cell = InProcessCell(build_cell(config))
        self._client = self._cell.connect("nats")
        self.log: list[tuple[str, dict[str, Any]]] = []
        """Kinds and payloads."""

    def assign(self, robot: str, task: dict[str, Any]) -> None:
        data = json.dumps({"messageId": task["taskId"], "payload": task}).encode()
        self._client.say(WireMessage(f"robot.{robot}.task.assign", data, "ack"))

    def run(self, seconds: int, tasks: int = 1) -> None:
        """Until as many tasks have ended, within some seconds."""
        for second in range(1, seconds + 1):
            self._cell.advance_to(second * NS_PER_SECOND)
            for message in self._client.messages():
                if message.reply_to:
                    self._client.say(WireMessage(CONFIRMED, b"", message.reply_to))
                _, _, kind = message.address.partition(".")[2].partition(".")
                if kind in ("task.done", "task.failed", "events"):
                    self.log.append((kind, json.loads(message.payload)["payload"]))
            if sum(kind != "events" for kind, _ in self.log) >= tasks:
                return

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        return [payload for each, payload in self.log if each == kind]


def test_ten_robots_reach_the_markers_of_the_warehouse() -> None:
    hall = Warehouse()
    for number, marker in enumerate(hall.markers):
        robot = f"robot-{number % ROBOTS + 1}"
        place = {"x": marker.x_m, "y": marker.y_m}
        task = {"taskId": marker.code, "taskType": "MOVE_TO_POINT", "moveToPoint": place}
        hall.assign(robot, task)
    hall.run(100, tasks=len(hall.markers))
    assert hall.payloads("task.failed") == []
    done = {payload["taskId"] for payload in hall.payloads("task.done")}
    assert done == {marker.code for marker in hall.markers}
    scanned = {event["code"] for event in hall.payloads("events") if "code" in event}
    assert scanned == done, "every robot was where it believed to be"
    types = [event["type"] for event in hall.payloads("events")]
    assert types.count("route.planned") == len(hall.markers)
    assert not [name for name in types if name.startswith("safety")]


CELL = """
seed: 1
fleet: {{planner: {planner}}}
robots:
  robot-1: {{kind: mobile, file: amr.json, pose: [0, 0, 0]}}
"""
AISLES = """{
  "nodes": [
    {"nodeId": "a", "x": 0, "y": 0}, {"nodeId": "b", "x": 0, "y": 2},
    {"nodeId": "c", "x": 4, "y": 2}
  ],
  "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
}"""
TASK = {"taskId": "t", "taskType": "MOVE_TO_POINT", "moveToPoint": {"x": 4.0, "y": 2.0}}


def test_a_robot_follows_a_graph_beside_the_cell_file(tmp_path: Path) -> None:
    (tmp_path / "aisles.json").write_text(AISLES)
    planner = "{kind: graph, graph: aisles.json}"
    (tmp_path / "cell.yaml").write_text(CELL.format(planner=planner))
    hall = Warehouse(str(tmp_path / "cell.yaml"))
    hall.assign("robot-1", TASK)
    hall.run(25)
    (planned,) = [e for e in hall.payloads("events") if e["type"] == "route.planned"]
    assert [step["nodeId"] for step in planned["steps"]] == ["b", "c"]
    assert hall.payloads("task.done") == [{"taskId": "t"}]


def test_without_a_planner_routes_come_from_the_backend_alone(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(CELL.format(planner="off"))
    hall = Warehouse(str(tmp_path / "cell.yaml"))
    hall.assign("robot-1", TASK)
    hall.run(22)
    assert hall.payloads("task.failed") == [{"taskId": "t", "errorCode": "ROUTE_TIMEOUT"}]


def test_a_wrong_graph_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "aisles.json").write_text(AISLES.replace('"to": "c"', '"to": "d"'))
    planner = "{kind: graph, graph: aisles.json}"
    (tmp_path / "cell.yaml").write_text(CELL.format(planner=planner))
    with pytest.raises(ConfigError, match=r"aisles\.json:6.*edges\.1\.to: unknown node"):
        Warehouse(str(tmp_path / "cell.yaml"))
