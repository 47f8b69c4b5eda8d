"""A fleet on virtual time with a backend that speaks and listens as a broker would."""

import json
from typing import Any, Self

from tests.robots.mobile.config.test_robot_file import EXAMPLE

from understudy.agenda import advance
from understudy.ports import Epoch, WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile, read_robot_file
from understudy.robots.mobile.hardware_interface import TimedHardware
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.units import NS_PER_SECOND

EPOCH = 1_767_225_600 * NS_PER_SECOND
"""2026-01-01T00:00:00Z."""


def robot_file(robot_id: str = "r1", **changes: Any) -> RobotFile:
    """The example robot; ``changes``: values by key, `__` stands for the dot between keys."""
    whole = json.loads(EXAMPLE.read_text())
    whole["runtime"]["simulationProfile"] = {}
    for path, value in {"identity__robotId": robot_id, **changes}.items():
        at = whole
        *parts, last = path.split("__")
        for part in parts:
            at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
        at[last] = value
    return read_robot_file(json.dumps(whole), "robot_config.json")


class DrivenFleet:
    """``confirms``: the broker stores and confirms every message at once."""

    def __init__(
        self,
        layout: Layout,
        hardware: TimedHardware,
        *,
        confirms: bool = True,
        connect: bool = True,
        **options: Any,
    ) -> None:
        self.layout = layout
        settings: dict[str, Any] = {"run_id": "test", "epoch": Epoch(EPOCH)} | options
        self.fleet = Fleet(layout, hardware, **settings)
        self.now = 0
        self.confirms = confirms
        self.sent = 0
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        """Time, subject and envelope of all messages."""
        self.data = bytearray()
        self.acked: list[str] = []
        if connect:
            self.connect()

    def connect(self, connected: bool = True) -> None:
        self.fleet.set_connected(connected, self.now)

    def run(self, seconds: float, slices: int = 1) -> Self:
        begin = self.now
        for n in range(1, slices + 1):
            since, self.now = self.now, begin + round(seconds * NS_PER_SECOND * n / slices)
            advance([self.fleet], self.now, self._settled, since=since)
        return self

    def _settled(self, now: int) -> None:
        while (message := self.fleet.take(1 << 40)) is not None:
            self.log.append((now, message.address, json.loads(message.payload)))
            self.data += message.address.encode() + message.payload
            if self.confirms and message.reply_to:
                self.fleet.confirmed(message.reply_to, now)
        self.acked += self.fleet.take_handled()

    def send(self, kind: str, payload: Any, *, robot: str = "r1", message_id: str = "") -> str:
        """Sends a message of the backend; returns its id."""
        self.sent += 1
        name = message_id or f"b-{self.sent}"
        envelope = {"messageId": name, "robotId": robot, "payload": payload}
        self.send_raw(f"robot.{robot}.{kind}", json.dumps(envelope).encode())
        return name

    def send_raw(self, subject: str, data: bytes) -> None:
        self.fleet.receive(WireMessage(subject, data, f"ack-{self.sent}"), self.now)

    def command(self, name: str, *, robot: str = "r1", **parameters: Any) -> str:
        payload = {"commandType": name, "parameters": parameters}
        return self.send("command.request", payload, robot=robot)

    # ── what came ──

    def payloads(self, kind: str, robot: str = "r1") -> list[dict[str, Any]]:
        subject = f"robot.{robot}.{kind}"
        return [envelope["payload"] for _, address, envelope in self.log if address == subject]

    def acks(self, robot: str = "r1") -> list[str]:
        found = self.payloads("command.ack", robot)
        return [
            ":".join([a["commandType"], a["status"], *filter(None, [a.get("reason")])])
            for a in found
        ]

    def events(self, robot: str = "r1") -> list[str]:
        return [event["type"] for event in self.payloads("events", robot)]

    def state(self, robot: str = "r1") -> dict[str, Any]:
        return self.payloads("state", robot)[-1]
