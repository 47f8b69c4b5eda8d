"""Messages for robots that do not exist are in the log, in the events and on the fleet page."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.benches import Bench
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.config.shards import Shard, with_robots, with_shard
from understudy.ports import WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.face import FleetFace
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.runtime.fleet import LONGEST_ID, MOST_UNKNOWN
from understudy.wire.exchange import InProcessCell

STOP = {"commandType": "STOP"}


class LoggedFleet(DrivenFleet):
    """Robot r1, and the lines of its log."""

    def __init__(self) -> None:
        layout = Layout([robot_file("r1")])
        self.lines: list[str] = []
        graph = build_driver_graph(layout, [Surroundings()], print)
        super().__init__(layout, graph, log=self.lines.append)
        self.run(0.1)


def test_it_is_logged_once_in_ten_seconds_with_the_number_of_messages() -> None:
    fleet = LoggedFleet()
    for _ in range(50):
        fleet.send("command.request", STOP, robot="r99")
        fleet.run(0.1)
    text = "nats: command.request for r99: this cell has no such robot (1 such messages so far)"
    assert fleet.lines == [text]
    fleet.run(10.0)
    fleet.send("task.cancel", {"taskId": "t"}, robot="r99")
    fleet.send("command.request", STOP)
    assert len(fleet.lines) == 2
    assert fleet.lines[1].startswith("nats: task.cancel for r99")
    assert "51 such" in fleet.lines[1]
    assert len(fleet.run(0.1).acked) == 52, "all of them are acknowledged"


def test_a_flood_with_many_names_is_a_few_short_lines() -> None:
    fleet = LoggedFleet()
    for n in range(5000):
        fleet.send_raw(f"robot.\x1b[31m{n}{'x' * 300}.command.request", b"{}")
    assert len(fleet.lines) == MOST_UNKNOWN
    assert all(line.isprintable() and len(line) < LONGEST_ID + 100 for line in fleet.lines)


def test_it_is_in_the_events_of_the_cell_and_of_the_fleet_page(
    bench_of: Callable[[str], Bench],
) -> None:
    bench = bench_of("fleet")
    face: Any = bench.live._cell.faces["nats"]
    assert isinstance(face, FleetFace)
    session = face.open("nats", 0)
    bench.forward(0.1)
    data = json.dumps({"messageId": "m", "payload": STOP}).encode()
    session.receive(WireMessage("robot.robot-77.command.request", data, "a"), 0)
    events = msgspec.to_builtins(bench.do("events"))["events"]
    [said] = [event for event in events if event["kind"] == "fleet"]
    assert "robot-77: this cell has no such robot" in said["text"]
    [shown] = [
        event
        for event in msgspec.to_builtins(bench.do("fleet_events"))["events"]
        if event["type"] == "robot.unknown"
    ]
    assert shown["robot"] == "robot-77"
    assert "command.request" in shown["text"]


@pytest.mark.parametrize(("robot", "reports"), [("robot-2", 0), ("robot-99", 1)])
def test_of_several_shards_one_reports_what_no_shard_has(
    robot: str, reports: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    whole = with_robots(load_config("fleet"), 6)
    for number in (1, 2, 3):
        cell = InProcessCell(build_cell(with_shard(whole, Shard(number, 3))))
        client = cell.connect("nats")
        cell.advance(0.1)
        data = json.dumps({"messageId": "m", "payload": STOP}).encode()
        client.say(WireMessage(f"robot.{robot}.command.request", data, "a"))
        cell.advance(0.1)
    assert caplog.text.count("no such robot") == reports
