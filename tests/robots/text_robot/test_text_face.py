"""The text robot's dialect, beyond the golden chats."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parts import part

from understudy.app.build import build_cell, load_cell
from understudy.config import load_config
from understudy.ports.decoder import Decoded
from understudy.robots.text_robot.face import (
    COMMANDS,
    DECODER,
    LONGEST_LINE,
    WAITING_LIMIT,
    TextSession,
    name_field,
    numbers,
    two_decimals,
)
from understudy.simulation.engine import SimulationEngine
from understudy.wire.exchange import Client, InProcessCell


@pytest.fixture
def robot() -> InProcessCell:
    return InProcessCell(build_cell(load_config("text_robot").without_rules()))


@pytest.fixture
def client(robot: InProcessCell) -> Client:
    return robot.connect()


# ── lines ──


def test_a_line_of_4096_bytes_is_a_line(client: Client) -> None:
    line = b"GET_POS".ljust(LONGEST_LINE)
    assert client.ask(line + b"\r\n") == b"OK 0.00,0.00,100.00,0.00,0.00,0.00\n"


@pytest.mark.parametrize("size", [LONGEST_LINE + 1, LONGEST_LINE + 2, 1_000_000])
def test_a_longer_line_is_unknown_and_the_connection_stays_open(client: Client, size: int) -> None:
    assert client.ask(b"GET_POS".ljust(size) + b"\n") == b"ERROR Unknown command: GET_POS\n"
    assert client.ask(b"HOME\n") == b"OK Homing completed\n"


def test_an_answer_repeats_32_characters_of_a_long_word(client: Client) -> None:
    assert client.ask(b"a" * 5000 + b"\n") == b"ERROR Unknown command: " + b"A" * 32 + b"\n"


def test_a_long_line_of_blanks_has_no_first_word(client: Client) -> None:
    assert client.ask(b" " * 5000 + b"\n") == b"ERROR Unknown command: \n"


def test_an_endless_line_takes_no_memory(client: Client) -> None:
    session = client._connection.session
    assert isinstance(session, TextSession)
    for _ in range(1000):
        client.say(b"x" * 10_000)
    assert len(session._lines.save().part) <= LONGEST_LINE + 1


def test_a_flood_of_waiting_commands_is_held_back(robot: InProcessCell, client: Client) -> None:
    flood = 5000
    client.say(b"HOME\n" + b"GET_POS\n" * flood)
    assert len(client._connection.state.unread) > 0
    session = client._connection.session
    assert isinstance(session, TextSession)
    assert len(session._waiting) < 2 * WAITING_LIMIT
    robot.run_while_owed()
    assert client.received().count(b"\n") == flood + 1


def test_a_queued_reset_does_not_undo_a_later_emergency_stop(robot: InProcessCell) -> None:
    client = robot.connect()
    client.say(b"MOVE_ABS 1,2,3,4,5,6\nRESET\nGET_STATUS\n")
    robot.advance(0.1)
    part(robot, "engine", SimulationEngine).emergency_stop(robot.timed_cell.now)
    robot.exchange.deliver()
    assert client.received().splitlines()[1:] == [
        b"OK Error reset",
        b"OK EmergencyStopped,26.0,4,0",
    ]


# ── numbers ──


@pytest.mark.parametrize("text", ["1", "+1", "-1.5", ".5", "5.", "007", " 3 "])
def test_plain_decimals(text: str) -> None:
    assert numbers(text.encode(), count=1) == [float(text)]


@pytest.mark.parametrize(
    "text", ["", " ", "1e3", "1_0", "0x10", "nan", "inf", "-", ".", "1,", "٣", "1 2", "9" * 400]
)
def test_refused_numbers(text: str) -> None:
    assert numbers(text.encode(), count=1) is None


def test_zero_is_never_negative() -> None:
    assert two_decimals(-0.001) == "0.00"
    assert two_decimals(-0.01) == "-0.01"


def test_huge_distances_are_refused(client: Client) -> None:
    far = "9" * 300
    assert client.ask(f"MOVE_ABS {far},0,0,0,0,0\n".encode()) == b"OK Movement completed\n"
    for _ in range(3):
        client.ask(f"MOVE_REL {'9' * 308},0,0\n".encode())
    assert b"inf" not in client.ask(b"GET_POS\n")


# ── envelope ──


def test_targets_outside_the_envelope_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    robot = "{kind: text_robot, envelope_mm: {z: [0, 200]}, faces: {text_tcp: {}}}"
    file.write_text(f"robots: {{r: {robot}}}")
    client = load_cell(str(file)).connect()
    refused = b"ERROR Target outside work envelope\n"
    assert client.ask(b"MOVE_ABS 0,0,201,0,0,0\n") == refused
    assert client.ask(b"GET_STATUS\n") == b"OK Idle,26.0,2,10\n"
    assert client.ask(b"MOVE_REL 0,0,100.1\n") == refused
    assert client.ask(b"MOVE_REL 501,0,0\n") == refused
    assert client.ask(b"MOVE_ABS 500,-500,200,0,0,0\n") == b"OK Movement completed\n"


# ── rules of the shipped cell ──


def test_about_five_percent_of_the_commands_are_lost_but_never_a_stop() -> None:
    client = load_cell("text_robot").connect()
    lost = sum(client.ask(b"RESET\n") == b"ERROR Communication timeout\n" for _ in range(4000))
    assert 150 <= lost <= 250
    assert {client.ask(b"Stop\n") for _ in range(500)} == {b"OK Emergency stop executed\n"}


def test_a_lost_command_is_not_carried_out_and_leaves_its_code() -> None:
    cell = load_cell("text_robot")
    client = cell.connect()
    while client.ask(b"HOME\n") != b"ERROR Communication timeout\n":
        before = cell.now
    assert cell.now == before
    status = client.ask(b"GET_STATUS\n")
    assert status.split(b",")[2] == b"1"


def test_position_noise_stays_within_a_tenth() -> None:
    client = load_cell("text_robot").connect()
    answers = [client.ask(b"GET_POS\n") for _ in range(300)]
    poses = [[float(v) for v in a[3:].split(b",")] for a in answers if a.startswith(b"OK")]
    truth = [0, 0, 100, 0, 0, 0]
    off = [abs(v - t) for pose in poses for v, t in zip(pose, truth, strict=True)]
    assert max(off) <= 0.1 + 1e-9
    assert max(off) > 0.09


def test_it_warms_up_in_motion_and_stays_between_25_and_30() -> None:
    cell = load_cell("text_robot")
    client = cell.connect()
    seen = []
    for _ in range(400):
        client.ask(b"HOME\n")
        if found := re.match(rb"OK \w+,([\d.]+),", client.ask(b"GET_STATUS\n")):
            seen.append(float(found[1]))
    assert 25.0 <= min(seen) < 27.0
    assert 29.0 < max(seen) <= 30.0


# ── properties ──

commands = st.one_of(
    st.sampled_from([f"{verb}\n".encode() for verb in COMMANDS]),
    st.sampled_from([b"MOVE_ABS 1,2,3,4,5,6\n", b"MOVE_REL 5,0,-5\n", b"move_rel 1\n", b"\n"]),
    st.binary(max_size=30),
)
steps = st.lists(st.tuples(st.integers(0, 2), commands, st.integers(0, 400_000_000)), max_size=25)
Steps = list[tuple[int, bytes, int]]


def act(cell: InProcessCell, clients: list[Client], script: Steps, cuts: int = 1) -> None:
    for client, said, pause in script:
        clients[client].say(said)
        start = cell.timed_cell.now
        for cut in range(1, cuts + 1):
            cell.advance_to(start + pause * cut // cuts)


@given(steps, st.integers(2, 7))
@settings(deadline=None, max_examples=60)
def test_slicing_time_differently_changes_no_answer(script: Steps, cuts: int) -> None:
    one, other = load_cell("text_robot"), load_cell("text_robot")
    act(one, [one.connect() for _ in range(3)], script)
    act(other, [other.connect() for _ in range(3)], script, cuts)
    assert one.transcript == other.transcript


@given(steps, steps)
@settings(deadline=None, max_examples=60)
def test_a_snapshot_is_invisible(before: Steps, after: Steps) -> None:
    cell = load_cell("text_robot")
    clients = [cell.connect() for _ in range(3)]
    act(cell, clients, before)
    snapshot = cell.snapshot()
    seen = len(cell.transcript)
    act(cell, clients, after)
    first = cell.transcript[seen:]
    cell.restore(snapshot)
    seen = len(cell.transcript)
    act(cell, clients, after)
    assert cell.transcript[seen:] == first


@given(steps)
@settings(deadline=None, max_examples=40)
def test_detached_sessions_continue_in_another_process(script: Steps) -> None:
    cell = load_cell("text_robot")
    act(cell, [cell.connect() for _ in range(3)], script)
    snapshot = cell.snapshot()
    seen = len(cell.transcript)
    other = load_cell("text_robot")
    other.restore(snapshot)
    for virtual_cell in (cell, other):
        virtual_cell.advance(10.0)
    assert other.transcript == cell.transcript[seen:]


@given(st.lists(st.binary(max_size=200), max_size=20))
@settings(deadline=None)
def test_arbitrary_bytes_get_one_answer_a_line_and_stop_nothing(chunks: list[bytes]) -> None:
    cell = load_cell("text_robot")
    client = cell.connect()
    for chunk in chunks:
        client.say(chunk)
    client.say(b"\n")
    cell.run_while_owed()
    lines = b"".join(chunks).split(b"\n")
    answers = client.received().splitlines()
    assert len(answers) == sum(bool(line.split()) for line in lines)
    assert all(answer.startswith((b"OK ", b"ERROR ")) for answer in answers)
    assert cell.connect().ask(b"STOP\n") == b"OK Emergency stop executed\n"


# ── names of fields in transcripts ──


def test_fields_have_names() -> None:
    pose, status = b"OK 1.00,2.00,3.00,4.00,5.00,6.00\n", b"OK Idle,27.5,0,10\n"
    assert [name_field(pose, at) for at in (0, 3, 8, 14, 31)] == ["verdict", "x", "y", "z", "rz"]
    assert [name_field(status, at) for at in (3, 9, 14, 16)] == [
        "state",
        "temperature",
        "errorCode",
        "loadPercentage",
    ]
    assert name_field(b"OK Movement completed\n", 5) == "message"


def test_commands_and_answers_are_decoded() -> None:
    decoded = DECODER.read_request(b"move_rel 1, 2,-3\n", "")
    assert decoded == Decoded(("MOVE_REL",), {"dx": 1.0, "dy": 2.0, "dz": -3.0})
    assert DECODER.read_request(b"MOVE_REL 1,2\n", "") == Decoded(("MOVE_REL",))
    assert DECODER.read_request(b"\xff\x00 1\r\n", "").fields == {}
    status = DECODER.read_answer(b"OK Idle,27.5,0,10\n", "")
    assert status.fields["temperature"] == "27.5"
    assert DECODER.read_answer(b"ERROR Unknown command: X\n", "") == Decoded(
        ("ERROR",), {"message": "Unknown command: X"}, refused=True
    )
