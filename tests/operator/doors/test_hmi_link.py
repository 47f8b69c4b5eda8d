"""The HMI link: whole messages, one answer each, for any input."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import Refused
from understudy.operator.doors import DoorContext
from understudy.operator.doors.hmi_link import MOST_PENDING, HmiLinkFace, StatusFace
from understudy.ports import SUBSCRIBE, UNLIMITED, UNSUBSCRIBE, CommandTable, WireMessage
from understudy.ports.hmi import CellView, Known, Later, Pins, RobotView
from understudy.units import NS_PER_MS

ARM = RobotView(
    q=(0.0, math.pi / 2, 0.0, 0.0, 0.0, 0.0),
    tcp=(0.62, 0.0, 0.995, 0.0, math.pi / 2, 0.0),
    state="Run",
    moving=True,
    tool=1,
    line=7,
    arc=True,
    io=Pins(di=3, do=1),
)
MILL = RobotView(q=(0.1, 0.0, 0.0, math.pi, 0.0, 0.0), tcp=(), state="Idle", linear=(0, 1, 2))


class Looking:
    """`Watch` of two robots at rest."""

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        return CellView(1, 2.5, 3.5, 1.0, {"g60": ARM, "mill": MILL})


class Echo:
    """`CommandTable` that returns the call; the test settles the answer of `later`."""

    def __init__(self) -> None:
        self.late: list[Later] = []

    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any:
        if name == "refuse":
            return Refused("no", code=4)
        if name == "later":
            self.late.append(Later())
            return self.late[-1]
        return {"name": name, "parameters": dict(parameters), "role": role}

    def needs_secret(self, name: str) -> bool:
        return False


class Panel:
    """A peer of the link, and the answers it has received."""

    def __init__(self, table: CommandTable, wall: float = 0.0) -> None:
        self.said: list[Any] = []
        context = DoorContext(table, Looking(), lambda: wall, self.collect)
        self.face = HmiLinkFace("g60", context)
        self.session = self.face.open("panel", 0)

    def ask(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.session.receive(WireMessage("", data, "/"), 0)
        self.collect()

    def collect(self) -> None:
        while answer := self.session.take(UNLIMITED):
            assert answer.address == "/", "an answer goes where the request asked for it"
            self.said.append(json.loads(answer.payload))


def answers(*messages: Any, table: Echo | None = None) -> list[Any]:
    panel = Panel(table or Echo(), wall=99.5)
    for message in messages:
        panel.ask(message)
    return panel.said


def test_ping_is_answered_with_its_id_and_the_wall_time() -> None:
    assert answers({"type": "PING", "id": "a7"}) == [
        {"type": "PONG", "id": "a7", "timestamp": 99.5, "payload": {}}
    ]


def test_status_is_in_millimetres_and_degrees() -> None:
    (answer,) = answers({"type": "GET_STATUS", "id": 1, "timestamp": 5, "payload": {}})
    assert answer["type"] == "STATUS"
    status = answer["payload"]
    assert (status["robot"], status["time_s"], status["real_s"], status["rate"]) == (
        "g60",
        2.5,
        3.5,
        1.0,
    )
    arm = status["robots"]["g60"]
    assert arm["joints_deg"] == pytest.approx([0, 90, 0, 0, 0, 0])
    assert arm["tcp_mm_deg"] == pytest.approx([620, 0, 995, 0, 90, 0])
    del arm["joints_deg"], arm["tcp_mm_deg"]
    assert arm == {
        "state": "Run", "moving": True, "line": 7, "tool": 1, "arc": True, "inputs": 3, "outputs": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({}, {"robot": "g60", "joints_deg": pytest.approx([0, 90, 0, 0, 0, 0])}),
        (
            {"robot": "mill"},
            {"robot": "mill", "axes_mm_deg": pytest.approx([100, 0, 0, 180, 0, 0])},
        ),
    ],
)
def test_joint_positions_are_of_the_robot_of_the_link_unless_another_is_named(
    payload: dict[str, Any], status: dict[str, Any]
) -> None:
    (answer,) = answers({"type": "GET_JOINT_POSITIONS", "id": 1, "payload": payload})
    assert (answer["type"], answer["payload"]) == ("JOINT_POSITIONS", status)


def test_a_command_has_the_role_operator_unless_the_message_lowers_it() -> None:
    payload = {"command": "rate", "parameters": {"rate": 2}}
    first, second = answers(
        {"type": "COMMAND", "id": 1, "payload": payload},
        {"type": "COMMAND", "id": 2, "payload": {**payload, "role": "viewer"}},
    )
    assert first["type"] == "RESULT"
    assert first["payload"]["result"] == {
        "name": "rate", "parameters": {"rate": 2}, "role": "operator"
    }  # fmt: skip
    assert second["payload"]["result"]["role"] == "viewer"


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (b"", 10, "not JSON"),
        (b"\xff\xfe", 10, "not JSON"),
        (b"[" * 100_000, 10, "not JSON"),
        (b"[1]", 10, "a message is {type, id, timestamp, payload}"),
        ({"id": 1}, 10, "type"),
        ({"id": 1, "type": 7}, 10, "type"),
        ({"id": 1, "type": "PING", "payload": []}, 10, "payload"),
        ({"id": 1, "type": "PNIG"}, 11, "unknown type 'PNIG'; there are: PING, GET_STATUS"),
        ({"id": 1, "type": "COMMAND"}, 10, "command"),
        ({"id": 1, "type": "COMMAND", "payload": {"command": "x", "parameters": 1}}, 10, "payload"),
        ({"id": 1, "type": "COMMAND", "payload": {"comand": "x"}}, 10, "command, parameters, role"),
        ({"id": 1, "type": "COMMAND", "payload": {"command": "refuse"}}, 4, "no"),
        ({"id": 1, "type": "GET_JOINT_POSITIONS", "payload": {"robot": "x"}}, 10, "g60, mill"),
    ],
)
def test_a_malformed_request_gets_a_code_and_a_message(message: Any, code: int, says: str) -> None:
    (answer,) = answers(message)
    assert answer["type"] == "ERROR"
    assert answer["id"] == (None if isinstance(message, bytes) else 1)
    assert answer["payload"]["code"] == code
    assert says in answer["payload"]["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["PING", "GET_STATUS", "GET_JOINT_POSITIONS", "COMMAND"]) | JSON,
        "id": JSON,
        "timestamp": JSON,
        "payload": st.dictionaries(st.sampled_from(["command", "parameters", "robot"]), JSON)
        | JSON,
    },
)


@given(message=MESSAGES | JSON)
def test_every_json_value_gets_one_answer_with_its_id(message: Any) -> None:
    (answer,) = answers(message)
    assert answer["type"] in {"PONG", "STATUS", "JOINT_POSITIONS", "RESULT", "ERROR"}
    try:
        json.dumps(message, allow_nan=False)
    except ValueError:
        return  # NaN is not JSON
    if isinstance(message, dict):
        assert answer["id"] == message.get("id")


@given(data=st.binary())
def test_bytes_never_raise(data: bytes) -> None:
    assert len(answers(data)) == 1


# ── answers that wait ──

LATER = {"type": "COMMAND", "id": "slow", "payload": {"command": "later"}}


def test_a_slow_command_is_answered_when_its_result_is_ready() -> None:
    table = Echo()
    said = answers(LATER, {"type": "PING", "id": "quick"}, table=table)
    assert [answer["id"] for answer in said] == ["quick"]
    table.late[0].settle({"at": "last"})
    assert said[1]["id"] == "slow"
    assert said[1]["payload"] == {"result": {"at": "last"}}


def test_a_slow_command_may_be_refused() -> None:
    table = Echo()
    said = answers(LATER, table=table)
    table.late[0].settle(Refused("overtaken", code=4))
    assert said[0]["payload"] == {"code": 4, "message": "overtaken"}


def test_the_number_of_waiting_commands_is_limited() -> None:
    table = Echo()
    panel = Panel(table)
    for _ in range(MOST_PENDING + 1):
        panel.ask(LATER)
    assert [answer["payload"]["code"] for answer in panel.said] == [12]
    table.late[0].settle(None)
    panel.ask(LATER)
    assert [answer["type"] for answer in panel.said] == ["ERROR", "RESULT"]


def test_a_bug_is_reported_with_the_id_of_its_message() -> None:
    panel = Panel(Echo())
    panel.session.failed(WireMessage("", b'{"type": "COMMAND", "id": 8}', "/"), 0)
    panel.collect()
    (status,) = panel.said
    assert (status["type"], status["id"], status["payload"]["code"]) == ("ERROR", 8, 13)


# ── the status for subscribers ──


def published(face: StatusFace) -> list[Any]:
    session = face.sessions()["subscribers"]
    messages = []
    while message := session.take(UNLIMITED):
        assert message.address == "", "the status has no topic: one frame"
        messages.append(json.loads(message.payload))
    return messages


def test_published_messages_are_numbered() -> None:
    face = StatusFace("g60", DoorContext(Echo(), Looking(), lambda: 0.0))
    session = face.open("subscribers", 0)
    for now in (0, 20 * NS_PER_MS):
        session.receive(WireMessage("", SUBSCRIBE), now)
    first, second = published(face)
    assert (first["type"], first["id"], second["id"]) == ("STATUS", 1, 2)
    assert first["payload"]["robots"]["g60"]["state"] == "Run"


def test_a_thousand_subscribers_that_come_at_once_share_a_message() -> None:
    face = StatusFace("g60", DoorContext(Echo(), Looking(), lambda: 0.0))
    session = face.open("subscribers", 0)
    for now in range(1000):
        session.receive(WireMessage("", SUBSCRIBE), now)
    assert len(published(face)) == 1
    assert face.next_wake() == 10 * NS_PER_MS
    face.wake(10 * NS_PER_MS)
    assert len(published(face)) == 1


def test_a_client_that_takes_no_answers_is_not_read_from() -> None:
    panel = Panel(Echo())
    for number in range(60):
        message = json.dumps({"type": "PING", "id": number}).encode()
        panel.session.receive(WireMessage("", message, "/"), 0)
    assert panel.session.credit() == 0
    panel.collect()
    assert panel.session.credit() > 0


def test_the_status_is_published_ten_times_a_second_while_a_subscriber_is_there() -> None:
    face = StatusFace("g60", DoorContext(Echo(), Looking(), lambda: 0.0))
    session = face.open("subscribers", 0)
    assert face.next_wake() is None
    session.receive(WireMessage("", SUBSCRIBE), 50)
    assert face.next_wake() == 50 + 100 * NS_PER_MS
    face.wake(50 + 130 * NS_PER_MS)  # late: the next one is a whole period later
    assert face.next_wake() == 50 + 230 * NS_PER_MS
    assert [message["id"] for message in published(face)] == [1, 2]
    session.receive(WireMessage("", UNSUBSCRIBE), 60)
    assert face.next_wake() is None
