"""The control endpoint: JSON lines, one reply per line, for any input."""

import json
import socket
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.app.stand_in import StandIn
from understudy.errors import Refused
from understudy.operator.doors import OPEN, Lock
from understudy.operator.doors.control import control_face
from understudy.operator.table import Command, Commands
from understudy.ports import UNLIMITED

# ── lines and replies, with a table that only echoes ──


class Echo:
    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any:
        if name == "refuse":
            return Refused("no", code=4)
        return {"name": name, "parameters": parameters, "role": role}

    def needs_secret(self, name: str) -> bool:
        return False


def answers(*packets: bytes, table: Any = None, lock: Lock = OPEN) -> list[Any]:
    face = control_face(table or Echo(), lock=lock)
    session = face.open("1", 0)
    for packet in packets:
        session.receive(packet, 0)
    assert not session.owed()
    assert face.ready_peers() in ([], ["1"])
    said = b""
    while data := session.take(UNLIMITED):
        said += data
    assert not said or said.endswith(b"\n")
    return [json.loads(line) for line in said.splitlines()]


def test_a_request_calls_the_command_with_its_parameters() -> None:
    (answer,) = answers(b'{"id": 7, "do": "advance", "seconds": 3}\r\n')
    parameters = {"seconds": 3}
    result = {"name": "advance", "parameters": parameters, "role": "operator"}
    assert answer == {"id": 7, "ok": True, "result": result}


def test_a_refusal_has_a_reason_and_a_code() -> None:
    assert answers(b'{"id": 7, "do": "refuse"}\n') == [
        {"id": 7, "ok": False, "code": 4, "error": "no"}
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(JSON)
def test_the_answer_repeats_any_id(number: Any) -> None:
    (answer,) = answers(json.dumps({"id": number, "do": "now"}).encode() + b"\n")
    assert answer["id"] == number


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"hello", "not JSON"),
        (b'{"do": "now"', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"do": "\xff"}', "not JSON"),
        (b"[" * 10_000, "not JSON"),
        (b'{"id": 1e999, "do": "now"}', "not JSON"),
        (b"[1]", "a request is a JSON object"),
        (b"3", "a request is a JSON object"),
        (b"null", "a request is a JSON object"),
    ],
)
def test_a_line_that_is_no_object_ends_the_connection(line: bytes, says: str) -> None:
    (wrong,) = answers(b'{"do": "now"}\n' + line + b'\n{"id": 9, "do": "now"}\n')[1:]
    assert (wrong["ok"], wrong["code"], wrong["id"]) == (False, 10, None)
    assert says in wrong["error"]


@pytest.mark.parametrize(
    "request_", [b'{"id": 3}', b'{"id": 3, "do": null}', b'{"id": 3, "do": []}']
)
def test_after_a_request_without_a_command_the_next_is_answered(request_: bytes) -> None:
    wrong, right = answers(request_ + b'\n{"id": 9, "do": "now"}\n')
    assert (wrong["ok"], wrong["code"], wrong["id"]) == (False, 10, 3)
    assert 'under the key "do"' in wrong["error"]
    assert (right["ok"], right["id"]) == (True, 9)


def test_empty_lines_get_no_answer() -> None:
    assert answers(b"\n  \r\n\n") == []


@given(st.lists(st.integers(0, 80)))
def test_answers_do_not_depend_on_packet_boundaries(cuts: list[int]) -> None:
    stream = b'{"id": 1, "do": "now"}\n\r\n{"id": 2, "do": "rate", "rate": 0}\nnonsense\n{}\n'
    ends = [0, *sorted(cuts), len(stream)]
    packets = [stream[start:end] for start, end in pairwise(ends)]
    assert answers(*packets) == answers(stream)
    assert [answer["id"] for answer in answers(stream)] == [1, 2, None]


def test_a_client_that_does_not_read_is_not_read() -> None:
    session = control_face(Commands([Command("x", "", lambda _: "y" * 100_000)])).open("1", 0)
    asked = 0
    while session.credit() > 0:
        session.receive(b'{"do": "x"}\n', 0)
        asked += 1
    assert asked == 11
    session.take(UNLIMITED)
    assert session.credit() > 0


# ── every command, over a socket ──


class Control:
    """A client of the control endpoint."""

    def __init__(self, robot: StandIn) -> None:
        self.secret = {"secret": robot.secret}
        self.line = socket.create_connection(robot.address("control"), 10)
        self.stream = self.line.makefile("rwb")

    def do(self, name: str, **parameters: Any) -> Any:
        answer = self.ask(name, **parameters)
        assert answer["ok"], answer
        return answer["result"]

    def refused(self, name: str, **parameters: Any) -> str:
        answer = self.ask(name, **parameters)
        assert not answer["ok"], answer
        return str(answer["error"])

    def ask(self, name: str, **parameters: Any) -> Any:
        request = {"do": name} | parameters | self.secret
        self.stream.write(json.dumps(request).encode() + b"\n")
        self.stream.flush()
        self.secret = {}
        return json.loads(self.stream.readline())

    def close(self) -> None:
        self.stream.close()
        self.line.close()


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[StandIn]:
    with StandIn("text_robot", seed=7, rules=True, rate=0.0, files=tmp_path) as robot:
        yield robot


@pytest.fixture
def control(robot: StandIn) -> Iterator[Control]:
    control = Control(robot)
    yield control
    control.close()


def test_now_advance_and_rate(control: Control) -> None:
    assert control.do("now") == {"now_s": 0.0, "now_ns": 0, "rate": 0.0}
    assert control.do("advance", seconds=1.5)["now_ns"] == 1_500_000_000
    assert control.do("rate", rate="step")["rate"] == "step"
    assert control.do("advance", seconds=0)["now_s"] == 1.5
    assert control.do("rate", rate=1e6)["rate"] == 1e6
    while control.do("now")["now_s"] < 100:
        pass


def test_status_has_every_part(control: Control, robot: StandIn) -> None:
    control.do("advance", seconds=2)
    status = control.do("status")
    assert status["cell"] == "text_robot"
    assert status["endpoints"] == dict(robot.endpoints)
    assert status["parts"]["bench"]["state"] == "Idle"
    assert status["parts"]["bench.text_tcp"] == {"clients": 0}
    assert status["parts"]["scenario"]["lost_commands"] == {"tries": 0, "strikes": 0}
    assert status["now_s"] == 2.0
    assert status["real_s"] >= 0.0


def test_a_fault_is_injected(control: Control) -> None:
    faults = control.do("faults")
    assert faults["emergency_stop"]["how"] == "brought"
    assert faults["position_noise"]["parameters"]["amplitude_mm"]["high"] == 1000.0
    control.do("inject", fault="emergency_stop", on="bench")
    assert control.do("status")["parts"]["bench"]["state"] == "EmergencyStopped"
    control.do("inject", fault="emergency_release", on="bench", parameters={})
    assert control.do("status")["parts"]["bench"]["state"] == "Idle"


def test_an_injected_fault_is_an_event_and_a_refused_one_is_not(control: Control) -> None:
    control.do("advance", seconds=1.5)
    control.refused("inject", fault="position_noise", on="bench")
    control.do("inject", fault="overheat", on="bench")
    events = [each for each in control.do("events")["events"] if each["kind"] == "fault"]
    seen = [(each["robot"], each["text"], each["time_s"]) for each in events]
    assert seen == [("bench", "injected: overheat", 1.5)]


def test_faults_are_listed_with_the_parts_that_they_can_be_injected_into(control: Control) -> None:
    faults = control.do("faults")
    assert faults["overheat"]["places"] == ["bench"]
    assert faults["position_noise"]["places"] == [], "it acts only by a scenario rule"
    assert faults["axis_fault"]["places"] == [], "there is no arm in this cell"


def test_the_time_ratio_is_simulation_time_by_real_time(control: Control) -> None:
    control.do("advance", seconds=60)
    metrics = control.do("metrics")
    assert metrics["simulation_time_s"] == 60.0
    assert metrics["time_ratio"] == pytest.approx(60.0 / metrics["real_time_s"])


def test_refusals_suggest_names_and_parameters(control: Control) -> None:
    assert "did you mean 'advance'?" in control.refused("advence")
    assert "parameters: seconds" in control.refused("advance")
    assert "seconds: " in control.refused("advance", seconds=-1)
    assert "seconds: " in control.refused("advance", seconds="1")
    assert "seconds: " in control.refused("advance", seconds=86_401)
    assert "rate: " in control.refused("rate", rate="fast")
    assert "rate: " in control.refused("rate", rate=-1)
    assert "parameters: none" in control.refused("now", please=True)
    assert "did you mean 'emergency_stop'?" in control.refused(
        "inject", fault="emergency", on="bench"
    )
    assert "acts only by a scenario rule" in control.refused(
        "inject", fault="position_noise", on="bench"
    )
    assert "give either snapshot or file" in control.refused("restore")
    moment = control.do("snapshot")["snapshot"]
    assert "give either" in control.refused("restore", snapshot=moment, file="moment.json")


@pytest.mark.parametrize(
    ("command", "file", "says"),
    [
        ("snapshot", "/nowhere/x.json", "outside the folder"),
        ("snapshot", "pyproject.toml", "ends in .json"),
        ("snapshot", "a\0b.json", "not the name of a file"),
        ("restore", "nowhere/x", "cannot be read: No such file"),
        ("restore", "/nowhere/x", "outside the folder"),
        ("restore", "a\0b", "not the name of a file"),
        ("restore", ".", "not the name of a file"),
        ("restore", "folder", "cannot be read: Is a directory"),
        ("restore", "letter", "letter: not a snapshot"),
    ],
)
def test_an_unusable_file_is_refused(
    control: Control, tmp_path: Path, command: str, file: str, says: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "letter").write_text("dear reader")
    assert says in control.refused(command, file=file)


# ── a cell put away in a file goes on in another process ──


def _rest_of_the_play(robot: StandIn, control: Control) -> list[Any]:
    """Bytes that a second client receives until the motion of the first one ends."""
    received: list[Any] = []
    for _ in range(20):
        received.append(robot.ask("GET_POS"))
        received.append(robot.ask("GET_STATUS"))
        control.do("advance", seconds=0.05)
    parts = control.do("status")["parts"]
    return [*received, parts["bench"], parts["scenario"]]


def test_a_snapshot_continues_in_another_cell(
    robot: StandIn, control: Control, tmp_path: Path
) -> None:
    file = str(tmp_path / "moment.json")
    with socket.create_connection(robot.address(), 10) as mover:
        mover.sendall(b"MOVE_ABS 100,200,300,0,0,0\nGET_PO")
        while control.do("status")["parts"]["bench"]["state"] != "Moving":
            pass
        control.do("advance", seconds=0.2)
        assert control.do("snapshot", file="moment.json") == {"file": file}
        expected = _rest_of_the_play(robot, control)
    with StandIn("text_robot", seed=7, rules=True, rate=0.0, files=tmp_path) as other:
        second = Control(other)
        assert second.do("restore", file=file)["now_s"] == 0.2
        assert second.do("status")["parts"]["bench"]["state"] == "Moving"
        assert _rest_of_the_play(other, second) == expected
        second.close()


def test_a_snapshot_may_be_in_the_reply(robot: StandIn, control: Control) -> None:
    with socket.create_connection(robot.address(), 10) as line, line.makefile("rwb", 0) as stream:
        stream.write(b"GET_STATUS\n")
        first = stream.readline()
        moment = control.do("snapshot")["snapshot"]
        runs = []
        for _ in range(2):
            runs.append([stream.write(b"GET_POS\n") and stream.readline() for _ in range(5)])
            control.do("advance", seconds=5)
            assert control.do("restore", snapshot=moment)["now_s"] == 0.0
    assert first
    assert runs[0] == runs[1]


def test_a_peer_that_is_not_in_the_snapshot_is_disconnected(
    robot: StandIn, control: Control
) -> None:
    moment = control.do("snapshot")["snapshot"]
    with socket.create_connection(robot.address(), 10) as stranger:
        stranger.sendall(b"STOP\n")
        assert stranger.recv(100) == b"OK Emergency stop executed\n"
        control.do("restore", snapshot=moment)
        assert stranger.recv(100) == b""
    assert robot.ask("GET_STATUS").startswith("OK Idle")


def test_a_snapshot_of_another_configuration_is_refused(control: Control) -> None:
    moment = control.do("snapshot")["snapshot"]
    with StandIn("text_robot", seed=8, rules=True, rate=0.0) as other:
        second = Control(other)
        problem = second.refused("restore", snapshot=moment)
        assert "the snapshot is of another configuration (cell 'text_robot')" in problem
        assert second.do("now")["now_s"] == 0.0
        second.close()


# ── whatever comes ──


@pytest.fixture(scope="module")
def live_table() -> Iterator[Commands]:
    with StandIn("text_robot", rate=0.0) as robot:
        yield robot._running().commands


NAMES = st.sampled_from(
    ["advance", "now", "rate", "status", "faults", "inject", "restore", "snapshot"]
)
FIELDS = {
    "seconds": JSON | st.floats(0, 1e5),
    "rate": JSON,
    "fault": JSON | st.sampled_from(["emergency_stop", "overheat", "position_noise"]),
    "on": JSON | st.sampled_from(["bench", "bench.text_tcp"]),
    "parameters": JSON,
    "snapshot": JSON,
    "file": st.sampled_from(["/nowhere/x", "", "/", "\0", 3]),
}
REQUESTS = st.builds(
    lambda name, fields: json.dumps({"do": name} | fields).encode() + b"\n",
    NAMES,
    st.fixed_dictionaries({}, optional=FIELDS),
)


@settings(deadline=None)
@given(packets=st.lists(st.binary() | REQUESTS, max_size=4))
def test_any_bytes_are_answered(live_table: Commands, packets: list[bytes]) -> None:
    for answer in answers(*packets, table=live_table):
        assert answer["ok"] or answer["error"]
