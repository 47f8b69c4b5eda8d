"""A robot with a backend on NATS and a master control: neither undoes what the other one set."""

import json
from typing import Any

import msgspec
from tests.robots.mobile.runtime.test_fleet import Plain
from tests.robots.mobile.vda5050.schemas import action, edge, instant, node, order

from understudy.robots.mobile.vda5050.face import Config
from understudy.robots.mobile.vda5050.master import control_of

SETTINGS = Config(manufacturer="maker", visualization_hz=0.0)


class Both(Plain):
    def __init__(self) -> None:
        super().__init__(connect=False)
        self.master = control_of(self.fleet, 0, SETTINGS, "1", 0)
        self.master.set_connected(True, 0)
        self.connect()
        self.run(0.1)

    def order(self, topic: str, message: dict[str, Any]) -> None:
        self.master.receive(topic, json.dumps(message).encode(), self.now)
        self.run(0.2)

    def control(self, **payload: Any) -> None:
        self.send("traffic.control", payload)
        self.run(0.2)

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
