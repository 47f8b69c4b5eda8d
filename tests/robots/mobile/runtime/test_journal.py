"""A cell that is killed and started again: each command and task is begun once, and answered."""

import json
from collections import Counter
from typing import Any

import pytest
from tests.robots.mobile.runtime.driven_fleet import EPOCH, robot_file
from tests.robots.mobile.runtime.plain_hardware import PlainHardware

from understudy.agenda import advance
from understudy.ports import KEPT, Epoch, WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.outgoing import PATIENCE
from understudy.units import NS_PER_SECOND

NEVER = 1 << 40
GONE = ("DONE", "FAILED", "REJECTED", "CANCELED")


class Broker:
    """Stores messages once, delivers those of the backend until they are acknowledged, and keeps
    the newest record of each name."""

    def __init__(self) -> None:
        self.requests: dict[str, WireMessage] = {}
        """Those that are not acknowledged yet, by the address of the acknowledgement."""
        self.stored: dict[str, tuple[str, dict[str, Any]]] = {}
        self.kept: dict[str, bytes] = {}
        self.started: list[str] = []
        """Commands that the hardware was told to begin, of all runs."""

    def request(self, kind: str, message_id: str, payload: Any) -> None:
        data = json.dumps({"messageId": message_id, "payload": payload}).encode()
        self.requests[message_id] = WireMessage(f"robot.r1.{kind}", data, message_id)

    def take(self, message: WireMessage) -> None:
        if not message.reply_to:
            return
        if message.address.startswith(KEPT):
            self.kept.pop(message.address, None)
            self.kept[message.address] = message.payload
        else:
            whole = json.loads(message.payload)
            self.stored.setdefault(message.reply_to, (message.address, whole))

    def payloads_of(self, kind: str) -> list[dict[str, Any]]:
        stored = self.stored.values()
        return [each["payload"] for address, each in stored if address == f"robot.r1.{kind}"]

    def payloads(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """Correlation ids and payloads."""
        return [
            (whole["correlationId"], whole["payload"])
            for address, whole in self.stored.values()
            if address == f"robot.r1.{kind}"
        ]


class Witness(PlainHardware):
    """Hardware that remembers the commands of all runs."""

    def __init__(self, layout: Layout, seen: list[str]) -> None:
        super().__init__(layout)
        self._seen = seen

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        self._seen.append(command_type)


class Run:
    """A start of the cell."""

    def __init__(self, broker: Broker, name: str, *, keeps: bool = True) -> None:
        self.broker = broker
        layout = Layout([robot_file()])
        self.fleet = Fleet(layout, Witness(layout, broker.started), run_id=name, epoch=Epoch(EPOCH))
        self.now = 0
        self.sent = 0
        self.fleet.set_connected(True, 0)
        if keeps:
            for address, record in list(broker.kept.items()):
                self.fleet.recall(WireMessage(address, record), 0)
            self.fleet.recall(WireMessage(KEPT, b""), 0)
        for message in list(broker.requests.values()):
            self.fleet.receive(message, 0)

    def lasts(self, seconds: float, dies_after: int = NEVER) -> bool:
        """Runs; false if it was killed, after the broker has received so many messages."""
        end = self.now + round(seconds * NS_PER_SECOND)
        while self.now < end:
            since, self.now = self.now, self.now + NS_PER_SECOND // 50
            advance([self.fleet], self.now, self._settled, since=since)
            while (message := self.fleet.take(NEVER)) is not None:
                if self.sent >= dies_after:
                    return False
                if message.reply_to:
                    self.sent += 1
                self.broker.take(message)
                if message.reply_to:
                    self.fleet.confirmed(message.reply_to, self.now)
            for reply_to in self.fleet.take_handled():
                if self.sent >= dies_after:
                    return False
                if reply_to:
                    self.sent += 1
                    self.broker.requests.pop(reply_to, None)
        return True

    def _settled(self, now: int) -> None: ...


def move(x: float) -> dict[str, Any]:
    return {"commandType": "MOVE_TO_POSE", "parameters": {"x": x, "y": 0}}


def work() -> Broker:
    """Two moves and a task."""
    broker = Broker()
    broker.request("command.request", "c-1", move(0.2))
    broker.request("command.request", "c-2", move(0.4))
    steps = [{"type": "MOVE", "x": 0.6, "y": 0}]
    task = {"taskId": "t-1", "taskType": "MISSION", "mission": {"steps": steps}}
    broker.request("task.assign", "m-1", task)
    return broker


def count_messages() -> int:
    run = Run(work(), "a")
    assert run.lasts(8.0)
    return run.sent


LAST = count_messages()


@pytest.mark.parametrize("dies_after", range(LAST))
def test_whenever_the_cell_is_killed_each_command_and_task_is_begun_once(dies_after: int) -> None:
    broker = work()
    assert not Run(broker, "a").lasts(8.0, dies_after)
    assert Run(broker, "b").lasts(8.0)
    assert not broker.requests
    # hardware: once each; a task whose step did not begin before the kill has none
    assert broker.started.count("MOVE_TO_POSE") <= 3
    acks = Counter((cause, ack["status"]) for cause, ack in broker.payloads("command.ack"))
    assert max(acks.values()) == 1
    for name in ("c-1", "c-2"):
        assert acks[name, "ACKED"] == 1
        assert sum(acks[name, status] for status in GONE) == 1
    ends = [*broker.payloads("task.done"), *broker.payloads("task.failed")]
    assert [cause for cause, _ in ends] == ["m-1"]
    failed = [ack["reason"] for _, ack in broker.payloads("command.ack") if "reason" in ack]
    failed += [end["errorCode"] for _, end in ends if "errorCode" in end]
    assert set(failed) <= {"INTERRUPTED"}
    assert len(failed) <= 2, "what was under way: a command, a task"


@pytest.mark.parametrize("dies_after", range(LAST))
def test_what_waited_is_carried_out_after_the_start(dies_after: int) -> None:
    broker = work()
    Run(broker, "a").lasts(8.0, dies_after)
    Run(broker, "b").lasts(8.0)
    begun = {cause for cause, ack in broker.payloads("command.ack") if ack["status"] == "RUNNING"}
    interrupted = {c for c, ack in broker.payloads("command.ack") if ack["status"] == "FAILED"}
    assert begun | interrupted == {"c-1", "c-2"}


def test_without_records_a_command_under_way_is_carried_out_again() -> None:
    """What the records are for."""
    broker = Broker()
    broker.request("command.request", "c-1", move(0.2))
    run = Run(broker, "a", keeps=False)
    run.lasts(0.1)
    broker.request("command.request", "c-1", move(0.2))
    Run(broker, "b", keeps=False).lasts(3.0)
    assert broker.started == ["MOVE_TO_POSE"] * 2


def test_other_messages_are_handled_once() -> None:
    broker = Broker()
    wanted = {"motors": {"drive_left": {"maxSpeed": 0.5}}}
    broker.request("settings.desired", "s-1", wanted)
    Run(broker, "a").lasts(0.2)
    broker.request("settings.desired", "s-1", wanted)
    Run(broker, "b").lasts(0.2)
    applied = [
        p for p in broker.payloads_of("settings.reported") if "appliedFromCorrelationId" in p
    ]
    assert len(applied) == 1
    assert not broker.requests


def test_a_stream_that_has_gone_keeps_nothing_from_moving() -> None:
    broker = Broker()
    broker.request("command.request", "c-1", move(0.2))
    run = Run(broker, "a")
    stored = broker.take
    broker.take = lambda message: None  # type: ignore[method-assign]
    run.fleet.confirmed = lambda message_id, now: None  # type: ignore[method-assign]
    run.lasts(PATIENCE / NS_PER_SECOND - 0.1)
    assert broker.started == []
    broker.take = stored  # type: ignore[method-assign]
    run.lasts(0.2)
    assert broker.started == ["MOVE_TO_POSE"]


def test_records_of_strangers_are_ignored() -> None:
    broker = Broker()
    broker.kept = {f"{KEPT}/r1.x": b"{", f"{KEPT}/r9.x": b"{}", f"{KEPT}/": b"\xff"}
    broker.request("command.request", "c-1", move(0.2))
    assert Run(broker, "a").lasts(3.0)
    assert [ack["status"] for _, ack in broker.payloads("command.ack")][-1] == "DONE"
