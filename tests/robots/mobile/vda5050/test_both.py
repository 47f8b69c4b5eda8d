"""A robot with a backend on NATS and a master control: neither undoes what the other one set."""

import json
from typing import Any

import msgspec
import pytest
from tests.robots.mobile.runtime.test_fleet import Plain
from tests.robots.mobile.vda5050.schemas import action, edge, instant, node, order

from understudy.ports import Epoch
from understudy.robots.mobile.vda5050.face import Config
from understudy.robots.mobile.vda5050.master import control_of
from understudy.robots.mobile.vda5050.messages import ActionState

SETTINGS = Config(manufacturer="maker", visualization_hz=0.0)


class Both(Plain):
    def __init__(self) -> None:
        super().__init__(connect=False)
        self.master = control_of(self.fleet, 0, SETTINGS, "1", Epoch(0))
        self.master.set_connected(True, 0)
        self.connect()
        self.run(0.1)

    def order(self, topic: str, message: dict[str, Any]) -> None:
        self.master.receive(topic, json.dumps(message).encode(), self.now)
        self.run(0.2)

    def control(self, **payload: Any) -> None:
        self.send("traffic.control", payload)
        self.run(0.2)

    def actions(self) -> list[ActionState]:
        return list(self.master.state.progress.actions.values())

    def fastest(self, seconds: float) -> float:
        before = len(self.payloads("state"))
        self.run(seconds)
        return max(float(s["velocity"]["linear"]) for s in self.payloads("state")[before:])


def test_the_end_of_a_pause_does_not_release_a_traffic_hold() -> None:
    both = Both()
    both.control(maxSpeedMps=0)
    both.order("instantActions", instant(action("startPause", "a")))
    both.order("instantActions", instant(action("stopPause", "b")))
    assert both.state()["safetyStopReason"] == "TRAFFIC_HOLD"
    both.control(maxSpeedMps=None)
    assert both.state()["safetyStopReason"] is None


def test_a_released_traffic_hold_does_not_end_a_pause() -> None:
    both = Both()
    both.order("instantActions", instant(action("startPause", "a")))
    both.control(maxSpeedMps=0)
    both.control(maxSpeedMps=None)
    assert both.state()["safetyStopReason"] == "MANUAL_HOLD"


def test_the_lower_limit_of_speed_counts() -> None:
    both = Both()
    both.control(maxSpeedMps=0.2)
    both.order("order", order([node(0, 0, 0), node(2, 3, 0)], [edge(1, maxSpeed=0.6)]))
    assert 0.1 < both.fastest(3.0) <= 0.2001
    saved = msgspec.json.decode(msgspec.json.encode(both.fleet.save()))
    both.fleet.load(saved)
    both.control(maxSpeedMps=None)
    assert 0.5 < both.fastest(3.0) <= 0.6001


# ── actions beside driving ──


def beside(blocking: str) -> dict[str, Any]:
    lift = action("executeAction", "a", blocking, motorId="act_1", targetPosition=0.08)
    return order([node(0, 0, 0, actions=[lift]), node(2, 3, 0)], [edge(1)])


def rolling(both: Both) -> tuple[bool, bool]:
    """Whether the robot drives and its gripper moves at the same time, ever; and at the end."""
    found = [
        (state["velocity"]["linear"] > 0.05, state["motors"]["act_1"]["velocity"] > 0.001)
        for state in both.payloads("state")
    ]
    return any(all(each) for each in found), any(found[-1])


def test_a_none_action_is_carried_out_while_the_robot_drives() -> None:
    both = Both()
    both.order("order", beside("NONE"))
    both.run(1.2)
    assert rolling(both)[0]
    both.run(8.0)
    state = both.state()
    assert abs(state["pose"]["x"] - 3.0) < 0.05, "the end of the action has not stopped the move"
    assert abs(state["motors"]["act_1"]["position"] - 0.08) < 0.001


@pytest.mark.parametrize("blocking", ["SOFT", "HARD"])
def test_an_action_that_blocks_is_carried_out_while_the_robot_stands(blocking: str) -> None:
    both = Both()
    both.order("order", beside(blocking))
    both.run(9.0)
    assert not rolling(both)[0]
    assert abs(both.state()["pose"]["x"] - 3.0) < 0.05


def test_a_snapshot_has_the_action_beside_the_move() -> None:
    both = Both()
    both.order("order", beside("NONE"))
    both.fleet.load(msgspec.json.decode(msgspec.json.encode(both.fleet.save())))
    both.run(9.0)
    assert {s.action_status for s in both.actions()} == {"FINISHED"}
    assert abs(both.state()["pose"]["x"] - 3.0) < 0.05


def test_a_command_of_the_backend_takes_the_motor_from_the_order() -> None:
    both = Both()
    lift = action("executeAction", "a", motorId="act_1", targetPosition=0.08)
    both.order("order", order([node(0, 0, 0, actions=[lift])], []))
    both.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.0)
    both.run(0.2)
    states = {s.action_id: s.action_status for s in both.actions()}
    assert states == {"a": "FAILED"}


def test_an_emergency_stop_ends_the_action_beside_the_move() -> None:
    both = Both()
    both.order("order", beside("NONE"))
    both.hardware.inputs[:] = True
    both.fleet.poke(0, both.now)
    both.run(0.2)
    assert {s.action_status for s in both.actions()} == {"FAILED"}


def test_cancel_ends_when_the_robot_has_braked() -> None:
    both = Both()
    both.order("order", order([node(0, 0, 0), node(2, 30, 0)], [edge(1)]))
    both.run(3.0)
    speeds: list[float] = []
    both.master.receive(
        "instantActions", json.dumps(instant(action("cancelOrder", "c"))).encode(), both.now
    )
    while not any(s.action_status == "FINISHED" for s in both.master.state.instant):
        both.run(0.02)
        speeds.append(both.state()["velocity"]["linear"])
        assert len(speeds) < 500
    assert not both.fleet.robot(0).is_moving


def test_init_position_moves_the_estimate() -> None:
    both = Both()
    place: dict[str, Any] = {"x": 5.0, "y": 1.0, "theta": 0.5, "mapId": "hall"}
    both.order("instantActions", instant(action("initPosition", "i", **place)))
    assert both.state()["pose"] == {"x": 5.0, "y": 1.0, "yaw": 0.5}
