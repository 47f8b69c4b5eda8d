"""Mobile robots as parts of a cell: stop and reset, faults, objects that change, snapshots."""

import json
from typing import Any

import numpy as np
import pytest

from understudy.app.build import build_cell, end_run
from understudy.config import load_config, read_config
from understudy.operator.robots import Robots
from understudy.ports import CONFIRMED, WireMessage
from understudy.robots.mobile.group import SimulatedHardware
from understudy.robots.mobile.robot import MobileRobot, Status
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment
from understudy.space.model.environment import place
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.units import NS_PER_SECOND, nanoseconds
from understudy.wire.exchange import InProcessCell

CELL = """
robots:
  a: {kind: mobile, file: amr.json, pose: [0, 0, 0]}
  b: {kind: mobile, file: amr.json, pose: [0, 5, 0], battery_percent: 40}
"""


class Bench:
    """A cell on virtual time with a backend that confirms what it gets."""

    def __init__(self, text: str = CELL) -> None:
        self.config = read_config(text, "cell.yaml")
        self.cell = build_cell(self.config)
        self.wires = InProcessCell(self.cell)
        self.client = self.wires.connect("nats")
        self.got: list[WireMessage] = []
        self._sent = 0

    def run(self, seconds: float) -> list[WireMessage]:
        """Runs the cell; messages are confirmed before they are sent again."""
        begin = len(self.got)
        end = self.cell.now + nanoseconds(seconds)
        while self.cell.now < end:
            self.wires.advance_to(min(self.cell.now + NS_PER_SECOND, end))
            fresh = self.client.messages()
            self.got += fresh
            for message in fresh:
                if message.reply_to:
                    self.client.say(WireMessage(CONFIRMED, b"", message.reply_to))
        return self.got[begin:]

    def command(self, robot: str, command_type: str, **parameters: Any) -> None:
        self._sent += 1
        payload = {"commandType": command_type, "parameters": parameters}
        body = json.dumps({"messageId": f"m{self._sent}", "payload": payload}).encode()
        subject = f"robot.{robot}.command.request"
        self.client.say(WireMessage(subject, body, f"$JS.ACK.{self._sent}"))

    def status(self, robot: str) -> Status:
        part = self.cell.components[robot]
        assert isinstance(part, MobileRobot)
        return part.status(self.cell.now)

    @property
    def engine(self) -> SimulationEngine:
        engine = self.cell.components["engine"]
        assert isinstance(engine, SimulationEngine)
        return engine

    def acks(self, robot: str) -> list[tuple[str, str, str | None]]:
        found = [m for m in self.got if m.address == f"robot.{robot}.command.ack"]
        payloads = [json.loads(message.payload)["payload"] for message in found]
        return [(p["commandType"], p["status"], p.get("reason")) for p in payloads]


def test_messages_are_acknowledged_after_they_were_handled() -> None:
    bench = Bench()
    bench.run(1.0)
    bench.command("a", "MOVE_TO_POSE", x=1.0, y=0.0)
    bench.command("nobody", "STOP")
    bench.client.say(WireMessage("robot.a.command.request", b"{nonsense", "$JS.ACK.9"))
    assert bench.client.messages() == [WireMessage("$JS.ACK.2", b"+ACK")]
    acknowledged = [m.address for m in bench.run(0.02) if m.payload == b"+ACK"]
    assert sorted(acknowledged) == ["$JS.ACK.1", "$JS.ACK.9"]
    bench.run(5.0)
    assert [status for _, status, _ in bench.acks("a")] == ["ACKED", "RUNNING", "DONE"]
    assert bench.status("a").true_pose == pytest.approx((1.0, 0.0, 0.0), abs=0.03)


def test_the_engine_stops_and_starts_mobile_robots() -> None:
    bench = Bench()
    bench.run(1.0)
    bench.command("a", "MOVE_VELOCITY", linear=0.5, angular=0.0)
    bench.command("a", "MOVE_TO_POSE", x=3.0, y=0.0)
    bench.run(2.0)
    assert bench.status("a").velocity[0] > 0.3
    bench.engine.stop(bench.cell.now)
    bench.run(2.0)
    stopped = bench.status("a")
    assert stopped.velocity == (0.0, 0.0)
    assert stopped.stop_reason == "MANUAL_HOLD"
    assert stopped.state == "PAUSED"
    bench.command("a", "MOVE_TO_POSE", x=3.0, y=0.0)
    bench.run(1.0)
    assert bench.status("a").true_pose == stopped.true_pose
    bench.engine.start(bench.cell.now)
    bench.run(0.1)
    assert bench.status("a").stop_reason is None
    bench.command("a", "MOVE_TO_POSE", x=2.0, y=0.0)
    bench.run(8.0)
    assert bench.acks("a")[-1] == ("MOVE_TO_POSE", "DONE", None)


def test_an_emergency_stop_is_a_fault_of_the_cell_until_it_is_reset() -> None:
    bench = Bench()
    bench.run(1.0)
    bench.command("a", "MOVE_VELOCITY", linear=0.8, angular=0.0)
    bench.run(2.0)
    bench.engine.emergency_stop(bench.cell.now)
    bench.run(2.0)
    assert bench.status("a").estop_pressed
    assert bench.status("b").stop_reason == "ESTOP"
    assert bench.status("a").velocity == (0.0, 0.0)
    assert bench.engine.state(bench.cell.now) == "ERROR"
    assert bench.acks("a")[-1] == ("MOVE_VELOCITY", "FAILED", "SAFETY_STOP")
    bench.engine.reset(bench.cell.now)
    bench.run(0.1)
    assert not bench.status("a").estop_pressed
    assert bench.engine.state(bench.cell.now) == "RUNNING"


RULES = """
scenario:
  rules:
    lift: {fault: motor_fault, on: a, at_s: 2, parameters: {motor: lift}}
    drive: {fault: drive_fault, on: b, at_s: 2}
    blind: {fault: device_disconnected, on: a, at_s: 3, parameters: {device: lidar}}
    sees: {fault: device_connected, on: a, at_s: 4, parameters: {device: 0}}
"""


def test_rules_break_motors_and_sensors() -> None:
    bench = Bench(CELL + RULES)
    bench.run(2.5)
    assert (bench.status("a").state, bench.status("b").state) == ("WARNING", "ERROR")
    assert "lift" in bench.status("a").faults[0]
    bench.run(1.0)
    assert any("lidar" in fault for fault in bench.status("a").faults)
    bench.run(1.0)
    assert not any("lidar" in fault for fault in bench.status("a").faults)
    bench.engine.reset(bench.cell.now)
    bench.run(0.1)
    assert (bench.status("a").state, bench.status("b").state) == ("RUNNING", "RUNNING")


def test_a_rule_with_an_unknown_motor_is_refused_by_name() -> None:
    with pytest.raises(Exception, match=r"no arm; it has: drive_left, drive_right, lift"):
        Bench(CELL + RULES.replace("motor: lift", "motor: arm"))


def wall(x: float) -> CollisionObject:
    at = place((x * 1000.0, 0.0, 500.0), (0.0, 0.0, 0.0))
    return CollisionObject(
        type=ObjectType.BOX, name="wall", transform=at, dimensions=(0.2, 4.0, 1.0)
    )


def test_objects_of_a_running_cell_stop_the_robot() -> None:
    bench = Bench()
    environment = bench.cell.components["environment"]
    assert isinstance(environment, CellEnvironment)
    bench.run(1.0)
    bench.command("a", "MOVE_TO_POSE", x=8.0, y=0.0)
    bench.run(1.0)
    assert environment.add([wall(4.0)], bench.cell.now) is None
    bench.run(10.0)
    blocked = bench.status("a")
    assert blocked.stop_reason == "OBSTACLE"
    assert blocked.true_pose is not None
    assert 3.0 < blocked.true_pose[0] + 0.45 < 3.9
    environment.remove("wall", bench.cell.now)
    bench.run(1.0)
    assert bench.status("a").stop_reason is None


def test_a_snapshot_has_the_objects_and_the_robots() -> None:
    bench = Bench()
    environment = bench.cell.components["environment"]
    assert isinstance(environment, CellEnvironment)
    bench.run(1.0)
    environment.add([wall(3.0)], bench.cell.now)
    bench.command("a", "MOVE_TO_POSE", x=8.0, y=0.0)
    bench.run(2.0)
    snapshot = bench.wires.snapshot()
    expected = bench.run(3.0)
    environment.remove("wall", bench.cell.now)
    bench.run(3.0)
    bench.wires.restore(snapshot)
    bench.client.messages()
    assert bench.run(3.0) == expected
    assert bench.status("a").stop_reason == "OBSTACLE"


def test_the_operator_sees_and_stops_a_mobile_robot() -> None:
    bench = Bench()

    class Time:
        def act(self, action: Any) -> Any:
            return action(bench.cell.now)

        def now(self) -> int:
            return bench.cell.now

    robots = Robots(bench.config, bench.cell.components, Time())
    robot = robots.find("a")
    bench.run(1.0)
    bench.command("a", "MOVE_VELOCITY", linear=0.5, angular=0.0)
    bench.run(2.0)
    assert robot.condition().moving  # type: ignore[union-attr]
    assert robots.do("a", "stop")["robot"] == "a"
    bench.run(2.0)
    assert bench.acks("a")[-1][1] == "FAILED"
    assert not robot.condition().moving  # type: ignore[union-attr]
    assert robots.do("a", "emergency_stop")["robot"] == "a"
    bench.run(0.1)
    assert robot.summary()["state"] == "PAUSED"  # type: ignore[union-attr]
    assert "jog" in str(robots.do("a", "jog", None))


def test_the_last_messages_come_before_the_end() -> None:
    bench = Bench()
    bench.run(1.0)
    end_run(bench.cell.components, bench.cell.now)
    bench.wires.exchange.deliver()
    last = [
        (m.address, json.loads(m.payload)["payload"].get("type")) for m in bench.client.messages()
    ]
    assert ("robot.a.events", "simulation.stopped") in last
    assert ("robot.b.state", None) in last
    assert bench.cell.next_wake() is None


def test_an_empty_battery_is_no_fault_of_the_cell_and_reset_charges_it() -> None:
    bench = Bench()
    assert bench.status("b").battery_percent == 40.0
    bench.client.leave()
    bench.wires.advance(20 * 3600.0)
    assert bench.status("b").battery_percent == 0.0
    assert bench.engine.state(bench.cell.now) == "RUNNING"
    bench.engine.reset(bench.cell.now)
    bench.wires.advance(1.0)
    assert bench.status("b").battery_percent > 99.0
    assert bench.status("b").faults == ()


def test_the_shipped_warehouse_leaves_room_to_drive() -> None:
    cell = build_cell(load_config("fleet"))
    hardware = cell.components["fleet.hardware"]
    assert isinstance(hardware, SimulatedHardware)
    mock = hardware.graph.mock
    assert mock is not None
    assert hardware.status(0) == {"obstacles": 8}
    assert min(mock.clearance(row) for row in range(10)) > 0.6
    poses = np.array([mock.pose(row) for row in range(10)])
    gaps = np.linalg.norm(poses[:, None, :2] - poses[None, :, :2], axis=2)
    assert gaps[~np.eye(10, dtype=bool)].min() > 1.2


def test_names_of_shared_parts_are_taken() -> None:
    with pytest.raises(Exception, match="another part of the cell has this name"):
        build_cell(read_config("robots: {nats: {kind: mobile, file: amr.json}}", "cell.yaml"))
