"""Orders and instant actions of a VDA 5050 master control, with a recorded robot."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.robots.mobile.runtime.recorded_robot import TICK, RecordedRobot
from tests.robots.mobile.vda5050.schemas import (
    action,
    check,
    edge,
    head,
    instant,
    node,
    order,
    validator,
)

from understudy.errors import Refused
from understudy.ports import RETAINED, Epoch, WireMessage
from understudy.ports.state import load, saved
from understudy.robots.mobile.runtime import messages as own
from understudy.robots.mobile.vda5050 import order_state
from understudy.robots.mobile.vda5050.face import MasterFace
from understudy.robots.mobile.vda5050.master import Identity, MasterControl, MasterMessages
from understudy.robots.mobile.vda5050.messages import MOST_ELEMENTS
from understudy.robots.mobile.vda5050.versions import Version, read

EPOCH = 1_767_225_600_000_000_000


class Bench:
    """A robot whose only module is the master control."""

    def __init__(self, version: Version = "2.1.0") -> None:
        self.robot = RecordedRobot()
        self.version = version
        self.warnings: list[str] = []
        identity = Identity("maker", "1", "hall", Epoch(EPOCH), version)
        outgoing = MasterMessages(identity, self.robot.file, self.facts)
        self.master = MasterControl(
            self.robot, outgoing, state_s=30.0, picture_hz=2.0, log=self.warnings.append
        )
        self.sent: list[tuple[str, Any]] = []
        self.master.set_connected(True, 0)
        self.tick()

    def facts(self) -> own.State:
        robot = self.robot
        return own.State(
            robot.pose,
            own.Velocity(robot.speed, 0.0),
            80.0,
            "OK",
            "NONE",
            [],
            robot.status,
            robot.stop_reason == "ESTOP",
            robot.stop_reason is not None,
            robot.stop_reason,
            {},
            "MOCK",
            "default",
        )

    def say(self, topic: str, message: Any) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.master.receive(topic, data, self.robot.now)
        self.tick()

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.robot.now += TICK
            wake = self.master.next_wake()
            if wake is not None and wake <= self.robot.now:
                self.master.advance(self.robot.now)
            while (message := self.master.outgoing.take()) is not None:
                found = check(message.topic, message.payload, self.version)
                self.sent.append((message.topic, found))

    def finish(self, problem: str | None = None) -> None:
        """The running command ends."""
        tag, kind, parameters = self.robot.running.pop(0)
        if kind == "MOVE_TO_POSE" and problem is None:
            self.robot.pose = own.Pose(parameters["x"], parameters["y"], 0.0)
        self.master.ended(tag, Refused(problem) if problem else None, self.robot.now)
        self.tick()

    def block(self) -> None:
        self.robot.refusal, self.robot.stop_reason = Refused("SAFETY_STOP_ACTIVE"), "OBSTACLE"

    def unblock(self) -> None:
        self.robot.refusal = self.robot.stop_reason = None

    @property
    def state(self) -> Any:
        return [message for topic, message in self.sent if topic == "state"][-1]

    def goals(self) -> list[tuple[float, float]]:
        moves = [p for _, kind, p in self.robot.running if kind == "MOVE_TO_POSE"]
        return [(each["x"], each["y"]) for each in moves]

    def statuses(self) -> dict[str, str]:
        return {each["actionId"]: each["actionStatus"] for each in self.state["actionStates"]}

    def errors(self) -> list[str]:
        return [each["errorType"] for each in self.state["errors"]]


THREE = order([node(0, 0, 0), node(2, 1, 0), node(4, 1, 2)], [edge(1), edge(3)])


def test_a_new_connection_gets_state_factsheet_and_connection() -> None:
    topics = [topic for topic, _ in Bench().sent]
    assert topics == ["connection", "factsheet", "state", "visualization"]


def test_an_order_is_driven_node_by_node() -> None:
    bench = Bench()
    bench.say("order", THREE)
    assert bench.goals() == [(1, 0)]
    assert bench.state["lastNodeId"] == "n0"
    assert [each["nodeId"] for each in bench.state["nodeStates"]] == ["n2", "n4"]
    bench.finish()
    assert bench.goals() == [(1, 2)]
    assert bench.state["lastNodeId"] == "n2"
    assert [each["edgeId"] for each in bench.state["edgeStates"]] == ["e3"]
    bench.finish()
    assert bench.state["lastNodeId"] == "n4"
    assert bench.state["nodeStates"] == bench.state["edgeStates"] == []
    assert bench.state["orderId"] == "o1", "the order stays known when it is over"


def test_the_horizon_is_not_entered_before_it_is_released() -> None:
    bench = Bench()
    nodes = [node(0, 0, 0), node(2, 1, 0), node(4, 2, 0, released=False)]
    bench.say("order", order(nodes, [edge(1), edge(3, released=False)]))
    assert bench.state["newBaseRequest"] is True
    bench.finish()
    assert bench.goals() == []
    update = order([node(2, 1, 0), node(4, 2, 0), node(6, 3, 0)], [edge(3), edge(5)], update=1)
    bench.say("order", update)
    assert bench.goals() == [(2, 0)]
    assert bench.state["orderUpdateId"] == 1
    bench.finish()
    bench.finish()
    assert bench.state["lastNodeId"] == "n6"


def test_an_update_while_driving_is_appended() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1)]))
    bench.say("order", order([node(2, 1, 0), node(4, 2, 0)], [edge(3)], update=1))
    assert bench.goals() == [(1, 0)]
    bench.finish()
    assert bench.goals() == [(2, 0)]


def test_a_finished_order_can_be_continued() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1)]))
    bench.finish()
    bench.say("order", order([node(2, 1, 0), node(4, 2, 0)], [edge(3)], update=1))
    assert bench.goals() == [(2, 0)]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (order([node(4, 1, 2)], [], update=1) | {"orderUpdateId": 0}, None),
        (order([node(2, 1, 0)], [], update=7), "orderUpdateError"),
        (order([node(0, 0, 0)], [], name="o2"), "orderError"),
        (order([node(0, 0, 0), node(2, 1, 0)], [], name="o2"), "validationError"),
        (order([node(0, 0, 0, released=False)], [], name="o2"), "validationError"),
        (b"{", "validationError"),
        (head() | {"orderId": "x"}, "validationError"),
        (b"[" * 100_000, "validationError"),
        (b'{"headerId": 1, "timestamp": "\xff"}', "validationError"),
    ],
)
def test_what_is_not_accepted_is_reported_and_changes_nothing(wrong: Any, kind: str | None) -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.say("order", wrong)
    assert bench.errors() == ([] if kind is None else [kind])
    assert bench.goals() == [(1, 0)]
    assert bench.state["orderId"] == "o1"


def test_an_older_update_is_refused() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1)], update=3))
    bench.say("order", order([node(2, 1, 0)], [], update=2))
    assert bench.errors() == ["orderUpdateError"]


def test_an_order_that_begins_elsewhere_is_refused() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 5, 5)], []))
    assert bench.errors() == ["noRouteError"]
    near = node(0, 5, 0, allowedDeviationXY=6.0)
    bench.say("order", order([near], [], name="o2"))
    assert bench.errors() == []
    assert bench.state["lastNodeId"] == "n0"


def test_an_unknown_action_makes_an_order_unacceptable() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0, actions=[action("dance", "a1")])], []))
    assert bench.errors() == ["orderError"]
    assert "executeAction" in bench.state["errors"][0]["errorDescription"]


def test_speed_and_deviation_of_the_order_are_those_of_the_move() -> None:
    bench = Bench()
    goal = node(2, 1, 0, theta=1.5, allowedDeviationXY=0.3)
    bench.say("order", order([node(0, 0, 0), goal], [edge(1, maxSpeed=0.4)]))
    _, _, parameters = bench.robot.running[0]
    assert parameters == {"x": 1.0, "y": 0.0, "tolerance": 0.3, "yaw": 1.5}
    assert bench.robot.limits[-1] == 0.4
    bench.finish()
    assert bench.robot.limits[-1] is None


# ── actions ──


def test_a_blocking_action_is_over_before_the_robot_drives_on() -> None:
    bench = Bench()
    grip = action("executeAction", "a1", motorId="act_1", targetPosition=0.05)
    bench.say("order", order([node(0, 0, 0, actions=[grip]), node(2, 1, 0)], [edge(1)]))
    assert bench.robot.running[0][1:] == (
        "EXECUTE_ACTION",
        {"motorId": "act_1", "targetPosition": 0.05},
    )
    assert bench.goals() == []
    assert bench.statuses() == {"a1": "RUNNING"}
    bench.finish()
    assert bench.statuses() == {"a1": "FINISHED"}
    assert bench.goals() == [(1, 0)]


def test_an_action_that_fails_is_reported_and_the_order_goes_on() -> None:
    bench = Bench()
    grip = action("executeAction", "a1", motorId="act_1", targetPosition=9)
    bench.say("order", order([node(0, 0, 0, actions=[grip]), node(2, 1, 0)], [edge(1)]))
    bench.finish("TIMEOUT")
    assert bench.statuses() == {"a1": "FAILED"}
    assert bench.errors() == ["actionError"]
    assert bench.goals() == [(1, 0)]


def test_a_wait_takes_its_time() -> None:
    bench = Bench()
    pause = action("wait", "a1", seconds=1)
    bench.say("order", order([node(0, 0, 0, actions=[pause]), node(2, 1, 0)], [edge(1)]))
    bench.tick(48)
    assert bench.goals() == []
    bench.tick(4)
    assert bench.goals() == [(1, 0)]
    assert bench.statuses() == {"a1": "FINISHED"}


def test_an_action_that_does_not_block_keeps_nothing_back() -> None:
    bench = Bench()
    pause = action("wait", "a1", "NONE", seconds=100)
    bench.say("order", order([node(0, 0, 0, actions=[pause]), node(2, 1, 0)], [edge(1)]))
    assert bench.goals() == [(1, 0)]
    assert bench.statuses() == {"a1": "RUNNING"}


def test_actions_of_an_edge_come_before_its_move() -> None:
    bench = Bench()
    lift = action("executeAction", "a1", motorId="act_1", targetPosition=0.05)
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1, actions=[lift])]))
    assert bench.goals() == []
    bench.finish()
    assert bench.goals() == [(1, 0)]


def test_a_wrong_parameter_fails_the_action() -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0, actions=[action("wait", "a1", seconds="x")])], []))
    assert bench.statuses() == {"a1": "FAILED"}


# ── instant actions ──


def test_cancel_ends_the_order_and_another_one_can_follow() -> None:
    bench = Bench()
    grip = action("executeAction", "a9", motorId="act_1", targetPosition=0.05)
    nodes = [node(0, 0, 0), node(2, 1, 0, actions=[grip])]
    bench.say("order", order(nodes, [edge(1)]))
    bench.say("instantActions", instant(action("cancelOrder", "i1", "HARD")))
    assert bench.robot.running == []
    bench.tick()
    assert bench.statuses() == {"a9": "FAILED", "i1": "FINISHED"}
    assert bench.state["nodeStates"] == []
    bench.say("order", order([node(0, 0, 0), node(2, 3, 0)], [edge(1)], name="o2"))
    assert bench.goals() == [(3, 0)]


def test_there_must_be_an_order_to_cancel() -> None:
    bench = Bench()
    bench.say("instantActions", instant(action("cancelOrder", "i1")))
    assert bench.statuses() == {"i1": "FAILED"}
    assert bench.errors() == ["noOrderToCancel"]


def test_pause_and_go_on() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.say("instantActions", instant(action("startPause", "i1")))
    assert bench.state["paused"]
    bench.finish()
    assert bench.goals() == []
    bench.say("instantActions", instant(action("stopPause", "i2")))
    assert not bench.state["paused"]
    assert bench.goals() == [(1, 2)]


@pytest.mark.parametrize(
    ("kind", "topic"), [("stateRequest", "state"), ("factsheetRequest", "factsheet")]
)
def test_state_and_factsheet_come_on_request(kind: str, topic: str) -> None:
    bench = Bench()
    bench.sent.clear()
    bench.say("instantActions", instant(action(kind, "i1", "NONE")))
    assert topic in [each for each, _ in bench.sent]


def test_an_unknown_instant_action_fails() -> None:
    bench = Bench()
    bench.say("instantActions", instant(action("fly", "i1")))
    assert bench.statuses() == {"i1": "FAILED"}


# ── trouble ──


def test_a_move_that_was_stopped_begins_again() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.block()
    bench.finish("SAFETY_STOP")
    bench.tick(10)
    assert bench.goals() == []
    assert bench.state["safetyState"] == {"eStop": "NONE", "fieldViolation": True}
    bench.unblock()
    bench.tick()
    assert bench.goals() == [(1, 0)]


def test_a_stop_command_of_another_master_ends_the_order() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.master.occurred("stopped", bench.robot.now)
    bench.tick()
    assert bench.state["nodeStates"] == []
    assert bench.errors() == ["orderError"]


def test_a_lost_connection_does_not_end_the_order() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.master.set_connected(False, bench.robot.now)
    bench.finish()
    assert bench.goals() == [(1, 2)]
    bench.sent.clear()
    bench.master.set_connected(True, bench.robot.now)
    bench.tick()
    assert [topic for topic, _ in bench.sent][:3] == ["connection", "factsheet", "state"]
    assert bench.state["lastNodeId"] == "n2"


def test_the_state_comes_at_least_every_thirty_seconds() -> None:
    bench = Bench()
    bench.sent.clear()
    bench.tick(50 * 65)
    assert [topic for topic, _ in bench.sent].count("state") == 2
    assert [topic for topic, _ in bench.sent].count("visualization") == pytest.approx(130, abs=2)


def test_numbers_of_messages_count_for_each_topic() -> None:
    bench = Bench()
    bench.tick(200)
    numbers = [m["headerId"] for topic, m in bench.sent if topic == "visualization"]
    assert numbers == list(range(len(numbers)))


def test_a_snapshot_in_the_middle_goes_on_in_the_same_way() -> None:
    first, second = Bench(), Bench()
    pause = action("wait", "a1", seconds=1)
    message = order(
        [node(0, 0, 0), node(2, 1, 0, actions=[pause]), node(4, 2, 0)], [edge(1), edge(3)]
    )
    first.say("order", message)
    first.finish()
    first.tick(10)
    load(second.master, msgspec.json.decode(msgspec.json.encode(saved(first.master))))
    second.robot.pose, second.robot.now = first.robot.pose, first.robot.now
    for bench in (first, second):
        bench.sent.clear()
        bench.tick(60)
        bench.finish()
    assert first.sent == second.sent
    assert first.state["lastNodeId"] == "n4"


@given(st.binary(max_size=300), st.sampled_from(["order", "instantActions"]))
def test_no_bytes_stop_the_robot(data: bytes, topic: str) -> None:
    bench = Bench()
    bench.say(topic, data)
    assert bench.state["orderId"] == ""


def many(count: int, *, first: int = 0, update: int = 0, **keys: Any) -> Any:
    """An order with so many nodes on a line; its first node has this number."""
    nodes = [node(2 * n, n * 0.001, 0) for n in range(first, first + count)]
    edges = [edge(2 * n + 1) for n in range(first, first + count - 1)]
    return head() | {"orderId": "o1", "orderUpdateId": update, "nodes": nodes, "edges": edges}


def test_an_order_with_ten_thousand_nodes_is_refused_and_the_next_one_is_driven() -> None:
    bench = Bench()
    bench.say("order", many(10_000))
    assert bench.errors() == ["validationError"]
    assert bench.robot.running == []
    bench.say("order", THREE)
    assert bench.goals() == [(1.0, 0.0)]


def test_updates_do_not_make_an_order_longer_and_longer() -> None:
    bench = Bench()
    bench.say("order", many(900))
    for update in range(1, 4):
        bench.say("order", many(900, first=899, update=update))
        assert set(bench.errors()) == {"validationError"}
        assert "1798 nodes ahead; allowed: 1000" in bench.state["errors"][-1]["errorDescription"]
    assert len(bench.state["nodeStates"]) == 899


@pytest.mark.parametrize("most", [50, pytest.param(MOST_ELEMENTS, marks=pytest.mark.soak)])
def test_the_oldest_ended_actions_of_an_order_that_never_ends_are_forgotten(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_state, "MOST_ELEMENTS", most)
    bench = Bench()
    bench.say("order", order([node(0, 0, 0)], []))
    updates = range(1, most // 5 + 10)
    for update in updates:
        first = node(2 * update - 2, 0, 0)
        wait = [action("wait", f"a{update}-{n}", "NONE", duration=0) for n in range(5)]
        second = node(2 * update, 0, 0, actions=wait)
        bench.say("order", order([first, second], [edge(2 * update - 1)], update=update))
        while bench.robot.running:
            bench.finish()
    bench.tick(5)
    kept = updates[-(most // 5) :]
    assert bench.statuses().keys() == {f"a{u}-{n}" for u in kept for n in range(5)}


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0", "3.0.0"])
@pytest.mark.parametrize(
    "value", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1e308", b"9" * 5000, b"[" * 200_000]
)
def test_no_number_of_an_order_moves_the_robot_out_of_the_world(
    value: bytes, version: Version
) -> None:
    bench = Bench(version)
    data = json.dumps(head() | {"version": version} | THREE).encode()
    bench.say("order", data.replace(b'"x": 1', b'"x": ' + value))
    bench.say("instantActions", data.replace(b'"n2"', value))
    assert bench.robot.running == []
    assert bench.state["orderId"] == ""


def test_a_message_that_the_broker_has_kept_is_dropped() -> None:
    bench = Bench()
    face = MasterFace(bench.master, "uagv/v2/maker/1/")
    session = face.open("mqtt", bench.robot.now)
    order = WireMessage("uagv/v2/maker/1/order", json.dumps(THREE).encode(), RETAINED)
    for _ in range(3):
        session.receive(order, bench.robot.now)
        bench.tick()
    assert bench.robot.running == []
    assert len([each for each in bench.warnings if "retained" in each]) == 1
    session.receive(msgspec.structs.replace(order, reply_to=""), bench.robot.now)
    bench.tick()
    assert bench.goals() == [(1.0, 0.0)]


def test_the_last_will_says_that_the_connection_is_broken() -> None:
    will = check("connection", Bench().master.outgoing.last_will())
    assert will["connectionState"] == "CONNECTIONBROKEN"


def test_a_decoded_order_keeps_what_the_schema_requires() -> None:
    found = read("2.1.0", "order", json.dumps(THREE).encode())
    assert [each.node_id for each in found.nodes] == ["n0", "n2", "n4"]


LIFT: dict[str, Any] = {"motorId": "act_1", "targetPosition": 0.05}


def test_an_action_at_a_node_begins_when_the_robot_is_no_longer_stopped() -> None:
    bench = Bench()
    bench.block()
    first = node(0, 0, 0, actions=[action("executeAction", "a", **LIFT)])
    bench.say("order", order([first, node(2, 1, 0)], [edge(1)]))
    before = len(bench.sent)
    bench.tick(20)
    assert bench.statuses() == {"a": "WAITING"}
    assert [topic for topic, _ in bench.sent[before:]].count("state") <= 1, "nothing has changed"
    load(bench.master, msgspec.json.decode(msgspec.json.encode(saved(bench.master))))
    bench.unblock()
    bench.tick()
    assert bench.statuses() == {"a": "RUNNING"}
    assert bench.goals() == [], "a HARD action keeps the robot"
    bench.finish()
    assert bench.goals() == [(1, 0)]


def test_the_end_of_an_action_is_not_the_end_of_a_move() -> None:
    """The master control may name an action as it likes, with the number of a move too."""
    bench = Bench()
    beside = [action("executeAction", "0", "NONE", **LIFT)]
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1, actions=beside)]))
    bench.finish()
    assert bench.statuses() == {"0": "FINISHED"}
    assert bench.state["lastNodeId"] == "n0"
    assert bench.goals() == [(1, 0)]


def test_sequence_ids_with_gaps_are_driven_too() -> None:
    bench = Bench()
    gaps = edge(5) | {"startNodeId": "n0", "endNodeId": "n10"}
    bench.say("order", order([node(0, 0, 0), node(10, 1, 0)], [gaps]))
    assert bench.state["lastNodeId"] == "n0"
    assert bench.goals() == [(1, 0)]


def test_a_move_that_the_robot_can_never_do_ends_the_order() -> None:
    bench = Bench()
    bench.robot.refusal = Refused("CAPABILITY_NOT_SUPPORTED")
    bench.say("order", THREE)
    assert bench.errors() == ["orderError"]
    assert bench.state["nodeStates"] == []


# ── blocking types ──


def at_node(*actions: dict[str, Any]) -> dict[str, Any]:
    """An order with actions at its first node, and a way to go."""
    return order([node(0, 0, 0, actions=actions), node(2, 1, 0)], [edge(1)])


def pause(name: str, blocking: str, seconds: float = 100) -> dict[str, Any]:
    return action("wait", name, blocking, seconds=seconds)


def test_a_hard_action_is_alone() -> None:
    """It waits for those before it, and those after it wait for it."""
    bench = Bench()
    bench.say("order", at_node(pause("a", "NONE", 1), pause("b", "HARD", 1), pause("c", "NONE", 1)))
    assert bench.statuses() == {"a": "RUNNING", "b": "WAITING", "c": "WAITING"}
    assert bench.goals() == [], "a HARD action is ahead"
    bench.tick(51)
    assert bench.statuses() == {"a": "FINISHED", "b": "RUNNING", "c": "WAITING"}
    bench.tick(51)
    assert bench.statuses() == {"a": "FINISHED", "b": "FINISHED", "c": "RUNNING"}
    assert bench.goals() == [(1, 0)]


def test_soft_actions_are_carried_out_beside_each_other_while_the_robot_stands() -> None:
    bench = Bench()
    bench.say("order", at_node(pause("a", "SOFT", 1), pause("b", "SOFT", 2)))
    assert bench.statuses() == {"a": "RUNNING", "b": "RUNNING"}
    bench.tick(75)
    assert bench.goals() == []
    bench.tick(30)
    assert bench.goals() == [(1, 0)]


@pytest.mark.parametrize("blocking", ["SOFT", "HARD"])
def test_an_action_that_needs_a_standing_robot_waits_until_it_stands(blocking: str) -> None:
    bench = Bench()
    bench.robot.speed = 0.1
    bench.say("order", at_node(pause("a", blocking)))
    assert bench.statuses() == {"a": "WAITING"}
    bench.robot.speed = 0.0
    bench.tick()
    assert bench.statuses() == {"a": "RUNNING"}


def test_a_single_action_of_3_0_is_alone_and_the_robot_drives() -> None:
    bench = Bench("3.0.0")
    single = [pause("a", "NONE", 1), pause("b", "SINGLE", 1), pause("c", "NONE", 1)]
    message = in_3(order([node(0, 0, 0), node(2, 1, 0)], [edge(1)]))
    message["nodes"][0]["actions"] = single
    bench.say("order", message)
    assert bench.statuses() == {"a": "RUNNING", "b": "WAITING", "c": "WAITING"}
    assert bench.goals() == [(1, 0)]
    bench.tick(51)
    assert bench.statuses() == {"a": "FINISHED", "b": "RUNNING", "c": "WAITING"}


# ── the end of an order ──


def test_cancel_is_finished_when_the_robot_stands() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.robot.speed = 0.5
    bench.say("instantActions", instant(action("cancelOrder", "i1")))
    bench.tick(20)
    assert bench.statuses()["i1"] == "RUNNING"
    assert bench.state["driving"]
    assert bench.state["nodeStates"], "the order is there until it is canceled"
    bench.say("order", order([node(0, 0, 0)], [], name="o2"))
    assert bench.errors() == ["orderError"]
    bench.robot.speed = 0.0
    bench.tick()
    assert bench.statuses()["i1"] == "FINISHED"
    assert not bench.state["driving"]
    assert bench.state["nodeStates"] == []


def test_a_pause_is_finished_when_the_robot_stands() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.robot.speed = 0.5
    bench.say("instantActions", instant(action("startPause", "i1")))
    bench.tick(20)
    assert bench.statuses()["i1"] == "RUNNING"
    bench.robot.speed = 0.0
    bench.tick()
    assert bench.statuses()["i1"] == "FINISHED"


def test_after_a_cancel_an_update_continues_where_the_robot_stands() -> None:
    bench = Bench()
    bench.say("order", THREE)
    bench.finish()
    bench.say("instantActions", instant(action("cancelOrder", "i1")))
    bench.tick()
    more = order([node(4, 1, 2), node(6, 2, 2)], [edge(5)], update=1)
    bench.say("order", more)
    assert bench.errors() == ["orderUpdateError"], "it begins at the end of the base that was"
    bench.say("order", order([node(2, 1, 0), node(4, 2, 0)], [edge(3)], update=1))
    assert bench.errors() == []
    assert bench.goals() == [(2, 0)]


def test_3_0_accepts_no_update_after_a_cancel() -> None:
    bench = Bench("3.0.0")
    bench.say("order", in_3(THREE))
    bench.say("instantActions", in_3(instant(action("cancelOrder", "i1", "NONE"))))
    bench.tick()
    bench.say("order", in_3(order([node(0, 0, 0)], [], update=1)))
    assert bench.errors() == ["ORDER_UPDATE_FOLLOWING_CANCEL"]


# ── refusals ──


def test_an_unknown_map_is_refused_and_the_known_one_is_in_the_state() -> None:
    bench = Bench()
    known = {"mapId": "hall", "mapVersion": "1", "mapStatus": "ENABLED"}
    assert bench.state["maps"] == [known]
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0, mapId="cellar")], [edge(1)]))
    assert bench.errors() == ["orderError"]
    assert "cellar" in bench.state["errors"][0]["errorDescription"]
    assert bench.goals() == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trajectory", {"degree": 1, "knotVector": [0, 0, 1, 1], "controlPoints": []}),
        ("corridor", {"leftWidth": 1, "rightWidth": 1}),
        ("orientation", 1.0),
        ("direction", "left"),
        ("maxRotationSpeed", 1.0),
        ("minHeight", 1.0),
        ("maxHeight", 0.1),
        ("rotationAllowed", False),
    ],
)
def test_a_field_that_the_robot_does_not_support_is_refused(key: str, value: Any) -> None:
    bench = Bench()
    bench.say("order", order([node(0, 0, 0), node(2, 1, 0)], [edge(1, **{key: value})]))
    assert bench.errors() == ["orderError"]
    error = bench.state["errors"][0]
    assert {"referenceKey": "field", "referenceValue": key} in error["errorReferences"]
    assert bench.goals() == []


def test_fields_that_ask_for_nothing_special_are_accepted() -> None:
    bench = Bench()
    plain = edge(1, maxHeight=3.0, rotationAllowed=True, length=1.0, trajectory=None)
    message = THREE | {"nodes": THREE["nodes"][:2], "edges": [plain], "zoneSetId": ""}
    bench.say("order", message)
    assert bench.goals() == [(1, 0)]


@pytest.mark.parametrize("other", [{"serialNumber": "2"}, {"manufacturer": "other"}])
def test_a_message_for_another_robot_is_dropped(other: dict[str, str]) -> None:
    bench = Bench()
    for _ in range(3):
        bench.say("order", THREE | other)
        bench.say("instantActions", instant(action("startPause", "i1")) | other)
    assert bench.state["orderId"] == ""
    assert not bench.state["paused"]
    assert len(bench.warnings) == 1, "not one for each message"


# ── more actions ──


def test_init_position_sets_the_pose_and_the_last_node() -> None:
    bench = Bench()
    given: dict[str, Any] = {"x": 3.0, "y": 4, "theta": 1.5, "mapId": "hall", "lastNodeId": "n7"}
    bench.say("instantActions", instant(action("initPosition", "i1", **given)))
    assert bench.statuses() == {"i1": "FINISHED"}
    position = bench.state["agvPosition"]
    assert (position["x"], position["y"], position["theta"]) == (3.0, 4.0, 1.5)
    assert bench.state["lastNodeId"] == "n7"
    for wrong in ({"mapId": "cellar"}, {"x": "here"}, {"theta": 9.0}):
        bench.say("instantActions", instant(action("initPosition", "i2", **given | wrong)))
        assert bench.statuses()["i2"] == "FAILED"


def test_pick_and_drop_move_the_motor_for_loads() -> None:
    bench = Bench()
    bench.say("order", at_node(action("pick", "a", loadType="box"), action("drop", "b")))
    assert bench.robot.running[0][1:] == (
        "EXECUTE_ACTION",
        {"motorId": "act_1", "targetPosition": 0.0},
    )
    bench.finish()
    assert bench.state["loads"] == [{"loadType": "box", "loadPosition": "act_1"}]
    assert bench.robot.running[0][2] == {"motorId": "act_1", "targetPosition": 0.08}
    bench.finish()
    assert bench.state["loads"] == []
    assert bench.statuses() == {"a": "FINISHED", "b": "FINISHED"}


def test_an_unknown_load_handling_device_fails_the_action() -> None:
    bench = Bench()
    bench.say("order", at_node(action("pick", "a", lhd="LHD9")))
    assert bench.statuses() == {"a": "FAILED"}


# ── a new start of the cell ──


def test_an_order_is_not_carried_out_again_after_a_new_start() -> None:
    """As a broker gives it again that has kept it."""
    first, second = Bench(), Bench()
    first.say("order", THREE)
    first.finish()
    second.master.recall(first.robot.notes[-1])
    second.say("order", THREE)
    assert second.goals() == []
    assert second.errors() == []
    assert (second.state["orderId"], second.state["lastNodeId"]) == ("o1", "n2")
    second.say("order", order([node(2, 1, 0), node(4, 2, 0)], [edge(3)], update=1))
    assert second.goals() == [(2, 0)]


# ── versions ──

WORDS_OF_3 = {
    "maxSpeed": "maximumSpeed",
    "actionDescription": "actionDescriptor",
    "nodeDescription": "nodeDescriptor",
}


def in_3(message: Any) -> Any:
    """A message of 2.1 in the words of 3.0, written from its schema."""
    if isinstance(message, list):
        return [in_3(each) for each in message]
    if not isinstance(message, dict):
        return message
    made = {WORDS_OF_3.get(key, key): in_3(value) for key, value in message.items()}
    made.pop("startNodeId", None)
    made.pop("endNodeId", None)
    if isinstance(reach := made.get("allowedDeviationXY"), float):
        made["allowedDeviationXY"] = {"a": reach + 0.1, "b": reach, "theta": 0.0}
    return made | ({"version": "3.0.0"} if "version" in made else {})


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0", "3.0.0"])
def test_every_version_drives_an_order(version: Version) -> None:
    """All that the robot says is checked with the schemas of the version."""
    bench = Bench(version)
    lift = action("executeAction", "a1", **LIFT)
    goal = node(2, 1, 0, theta=1.5, allowedDeviationXY=0.3, actions=[])
    goal["actions"] = [lift]
    message = order([node(0, 0, 0), goal], [edge(1, maxSpeed=0.4)])
    if version == "3.0.0":
        message = in_3(message)
        validator("order", version).validate(message)
    bench.say("order", message | {"version": version})
    assert bench.robot.running[0][2] == {"x": 1.0, "y": 0.0, "tolerance": 0.3, "yaw": 1.5}
    assert bench.robot.limits[-1] == 0.4
    bench.finish()
    bench.finish()
    assert bench.state["lastNodeId"] == "n2"
    assert bench.statuses() == {"a1": "FINISHED"}
    bench.say("order", b"{")
    wanted = "VALIDATION_FAILURE" if version == "3.0.0" else "validationError"
    assert bench.errors() == [wanted]
    assert {topic for topic, _ in bench.sent} == {
        "connection",
        "factsheet",
        "state",
        "visualization",
    }
    will = check("connection", bench.master.outgoing.last_will(), version)
    assert will["connectionState"].replace("_", "") == "CONNECTIONBROKEN"


def test_3_0_has_instant_actions_of_its_own() -> None:
    bench = Bench("3.0.0")
    place: dict[str, Any] = {"x": 1.0, "y": 2.0, "theta": 0.5, "mapId": "hall", "lastNodeId": "n1"}
    asked = in_3(instant(action("initializePosition", "i1", "NONE", **place)))
    validator("instantActions", "3.0.0").validate(asked)
    bench.say("instantActions", asked)
    told = [(s["actionType"], s["actionStatus"]) for s in bench.state["instantActionStates"]]
    assert told == [("initializePosition", "FINISHED")]
    assert bench.state["mobileRobotPosition"]["localized"]
    bench.say("instantActions", in_3(instant(action("clearInstantActions", "i2", "NONE"))))
    assert bench.state["instantActionStates"] == []
    bench.say("instantActions", in_3(instant(action("cancelOrder", "i3", "NONE"))))
    assert bench.errors() == ["NO_ORDER_TO_CANCEL"]


def test_3_0_shares_its_path_and_uses_no_zones() -> None:
    bench = Bench("3.0.0")
    bench.say("order", in_3(THREE))
    points = bench.state["plannedPath"]["trajectory"]["controlPoints"]
    assert [(point["x"], point["y"]) for point in points] == [(0, 0), (1, 0), (1, 2)]
    bench.say("zoneSet", in_3(head()) | {"zoneSet": {}})
    assert bench.errors() == ["UNSUPPORTED_PARAMETER"]
    assert bench.state["errors"][0]["errorLevel"] == "CRITICAL"
    bench.say("responses", in_3(head()) | {"responses": []})
    assert bench.goals() == [(1, 0)]


def test_3_0_refuses_the_same_update_with_other_content() -> None:
    bench = Bench("3.0.0")
    bench.say("order", in_3(THREE))
    bench.say("order", in_3(THREE) | {"headerId": 7})
    assert bench.errors() == []
    bench.say("order", in_3(order([node(4, 1, 2), node(6, 3, 2)], [edge(5)])))
    assert bench.errors() == ["SAME_ORDER_UPDATE_ID"]


def test_instant_actions_under_the_key_of_a_known_library() -> None:
    """vda-5050-lib writes `instantActions` in place of `actions`."""
    bench = Bench("2.0.0")
    message = instant(action("startPause", "i1"))
    message["instantActions"] = message.pop("actions")
    bench.say("instantActions", message)
    assert bench.state["paused"]
