"""Scenario rules on answers: loss, delay, duplicates, garbling, low data rate."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.app.build import load_cell
from understudy.wire.exchange import InProcessCell, garbled

CELL = """
robots: {{bench: {{kind: text_robot, faces: {{text_tcp: {{}}}}}}}}
scenario: {{rules: {{{rules}}}}}
"""
POSE = b"OK 0.00,0.00,100.00,0.00,0.00,0.00\n"
Build = Callable[[str], InProcessCell]


@pytest.fixture
def cell_with(tmp_path: Path) -> Build:
    def build(rules: str) -> InProcessCell:
        file = tmp_path / "cell.yaml"
        file.write_text(CELL.format(rules=rules))
        return load_cell(str(file))

    return build


def rule(fault: str, more: str = "") -> str:
    return f"{fault}: {{fault: {fault}, on: bench.text_tcp{more}}}"


def test_message_loss_drops_an_answer(cell_with: Build) -> None:
    client = cell_with(rule("message_loss", ", until_s: 1")).connect()
    assert client.ask(b"GET_POS\n") == b""


def test_message_delay_sends_an_answer_later_and_it_is_owed_until_then(cell_with: Build) -> None:
    cell = cell_with(rule("message_delay", ", parameters: {delay_ms: 250}"))
    client = cell.connect()
    client.say(b"GET_POS\n")
    cell.advance(0.249)
    assert client.received() == b""
    assert cell.exchange.owed()
    cell.advance(0.001)
    assert client.received() == POSE


def test_a_delayed_answer_delays_the_answers_behind_it(cell_with: Build) -> None:
    rules = rule("message_delay", ", until_s: 0.1, parameters: {delay_ms: 500}")
    cell = cell_with(rules)
    client = cell.connect()
    client.say(b"GET_POS\n")
    cell.advance(0.2)
    client.say(b"RESET\n")
    cell.advance(0.299)
    assert client.received() == b""
    cell.advance(0.001)
    assert client.received() == POSE + b"OK Error reset\n"


def test_message_duplicate_sends_an_answer_twice(cell_with: Build) -> None:
    assert cell_with(rule("message_duplicate")).connect().ask(b"GET_POS\n") == POSE * 2


def test_message_garble_changes_one_byte(cell_with: Build) -> None:
    client = cell_with(rule("message_garble")).connect()
    client.say(b"GET_POS\n")
    received_data = client.received()
    assert len(received_data) == len(POSE)
    assert sum(a != b for a, b in zip(received_data, POSE, strict=True)) == 1


@given(st.binary(min_size=1), st.floats(-1.0, 0.999999), st.floats(-1.0, 0.999999))
def test_garbling_changes_exactly_one_byte(data: bytes, place: float, change: float) -> None:
    other = garbled(data, place, change)
    assert len(other) == len(data)
    assert sum(a != b for a, b in zip(data, other, strict=True)) == 1


def test_slow_client_limits_the_data_rate(cell_with: Build) -> None:
    cell = cell_with(rule("slow_client", ", parameters: {bytes_per_s: 100}"))
    client = cell.connect()
    client.say(b"RESET\nRESET\n")
    moments = []
    for _ in range(40):
        cell.advance(0.01)
        moments += [cell.now] * len(client.received().splitlines())
    size = len(b"OK Error reset\n") / 100.0
    assert moments == pytest.approx([size, 2 * size])


def test_delayed_bytes_are_bounded_and_none_is_lost(cell_with: Build) -> None:
    cell = cell_with(rule("slow_client", ", parameters: {bytes_per_s: 100000}"))
    client = cell.connect()
    flood = 20_000
    client.say(b"RESET\n" * flood)
    cell.advance(60.0)
    assert client.received() == b"OK Error reset\n" * flood


def test_a_snapshot_holds_delayed_answers(cell_with: Build) -> None:
    rules = rule("message_delay", ", parameters: {delay_ms: 250}")
    cell = cell_with(rules)
    client = cell.connect()
    client.say(b"GET_POS\n")
    cell.advance(0.1)
    moment = cell.snapshot()
    cell.advance(1.0)
    assert client.received() == POSE
    cell.restore(moment)
    cell.advance(0.14)
    assert client.received() == b""
    cell.advance(0.02)
    assert client.received() == POSE


def test_after_eof_a_client_still_gets_delayed_answers(cell_with: Build) -> None:
    cell = cell_with(rule("message_delay", ", parameters: {delay_ms: 250}"))
    client = cell.connect()
    client.say(b"GET_POS\n")
    client.end()
    cell.advance(0.3)
    assert client.received() == POSE
    assert not client.connected


# ── requests ──


def test_request_loss_drops_a_request(cell_with: Build) -> None:
    cell = cell_with(rule("request_loss", ", times: 1"))
    assert cell.connect().ask(b"MOVE_REL 0,0,5\nGET_POS\n") == POSE, "it has not moved"


def test_a_request_is_whole_however_it_is_cut(cell_with: Build) -> None:
    cell = cell_with(rule("request_loss", ", times: 1"))
    client = cell.connect()
    for byte in b"MOVE_REL 0,0,5\nGET_POS\n":
        client.say(bytes([byte]))
    cell.advance(1.0)
    assert client.received() == POSE


def test_request_delay_lets_it_arrive_later_and_those_behind_it(cell_with: Build) -> None:
    rules = rule("request_delay", ", times: 1, parameters: {delay_ms: 250}")
    cell = cell_with(rules)
    client = cell.connect()
    client.say(b"GET_POS\n")
    client.say(b"RESET\n")
    cell.advance(0.249)
    assert client.received() == b""
    assert cell.exchange.owed()
    moment = cell.snapshot()
    for _ in range(2):
        cell.advance(0.001)
        assert client.received() == POSE + b"OK Error reset\n"
        cell.restore(moment)


def test_request_duplicate_lets_it_arrive_twice(cell_with: Build) -> None:
    cell = cell_with(rule("request_duplicate", ", times: 1"))
    client = cell.connect()
    assert client.ask(b"MOVE_REL 0,0,5\n").count(b"OK Movement completed") == 2
    assert client.ask(b"GET_POS\n").startswith(b"OK 0.00,0.00,110.00")


def test_request_garble_changes_one_byte_of_it(cell_with: Build) -> None:
    client = cell_with(rule("request_garble", ", times: 1")).connect()
    client.say(b"GET_POS\nGET_POS\n")
    assert client.received() != POSE * 2


def test_a_delayed_request_is_carried_out_after_eof(cell_with: Build) -> None:
    cell = cell_with(rule("request_delay", ", parameters: {delay_ms: 250}"))
    client = cell.connect()
    client.say(b"GET_POS\n")
    client.end()
    cell.advance(0.3)
    assert client.received() == POSE
    assert not client.connected


GRBL = """
robots: {m: {kind: machine, faces: {grblhal: {}}}}
scenario: {rules: {late: {fault: request_loss, on: m.grblhal, times: 1, from_s: 0.5}}}
"""


def test_lines_and_command_bytes_of_grblhal_are_requests(tmp_path: Path) -> None:
    (tmp_path / "cell.yaml").write_text(GRBL)
    cell = load_cell(str(tmp_path / "cell.yaml"))
    client = cell.connect()
    client.received()
    client.say(b"G21\n?G4")
    answer = client.received()
    assert answer.startswith(b"ok\r\n<Idle"), "a command byte does not wait for a line end"
    cell.advance(1.0)
    client.say(b" P0\nG90\n")
    cell.advance(1.0)
    assert client.received() == b"ok\r\n", "the line G4 P0 is lost"
