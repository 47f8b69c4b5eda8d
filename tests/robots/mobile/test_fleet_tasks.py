"""Tasks in the shipped cell `fleet`: every marker is reached, without a backend for routes."""

import json
from typing import Any

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.ports import CONFIRMED, WireMessage
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell

ROBOTS = 10


class Warehouse:
    """The cell on virtual time, and a client that confirms what it gets."""

    def __init__(self) -> None:
        config = load_config("fleet")
        self.markers = config.head.fleet.markers
        self._cell = InProcessCell(build_cell(config))
        self._client = self._cell.connect("nats")
        self.log: list[tuple[str, dict[str, Any]]] = []
        """Kinds and payloads."""

    def assign(self, robot: str, task: dict[str, Any]) -> None:
        data = json.dumps({"messageId": task["taskId"], "payload": task}).encode()
        self._client.say(WireMessage(f"robot.{robot}.task.assign", data, "ack"))

    def run(self, seconds: int) -> None:
        for second in range(1, seconds + 1):
            self._cell.advance_to(second * NS_PER_SECOND)
            for message in self._client.messages():
                if message.reply_to:
                    self._client.say(WireMessage(CONFIRMED, b"", message.reply_to))
                _, _, kind = message.address.partition(".")[2].partition(".")
                if kind in ("task.done", "task.failed", "events"):
                    self.log.append((kind, json.loads(message.payload)["payload"]))

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        return [payload for each, payload in self.log if each == kind]


def test_ten_robots_reach_the_markers_of_the_warehouse() -> None:
    hall = Warehouse()
    for number, marker in enumerate(hall.markers):
        robot = f"robot-{number % ROBOTS + 1}"
        place = {"x": marker.x_m, "y": marker.y_m}
        task = {"taskId": marker.code, "taskType": "MOVE_TO_POINT", "moveToPoint": place}
        hall.assign(robot, task)
    hall.run(100)
    assert hall.payloads("task.failed") == []
    done = {payload["taskId"] for payload in hall.payloads("task.done")}
    assert done == {marker.code for marker in hall.markers}
    scanned = {event["code"] for event in hall.payloads("events") if "code" in event}
    assert scanned == done, "every robot was where it believed to be"
    types = [event["type"] for event in hall.payloads("events")]
    assert types.count("route.planned") == len(hall.markers)
    assert not [name for name in types if name.startswith("safety")]
