"""The driver of a real grblHAL against controllers that lie: no state is shown that it does not
know, and nothing moves because of it."""

import tracemalloc

import pytest
from tests.robots.grblhal.test_grblhal_driver import IDLE, RUN, Peer

STRANGE = ("Dance", "IDLE", "Idling", "Running", "Homing", "X" * 150)


def reported(state: str) -> str:
    return IDLE.replace("Idle", state)


@pytest.mark.parametrize("state", STRANGE)
def test_a_state_that_is_not_known_ends_what_is_in_progress(state: str) -> None:
    peer = Peer().ready()
    ticket = peer.driver.run([f"G1 X{n} F600" for n in range(500)], 0)
    peer.sent()
    peer.say("ok", reported(state))
    status = peer.status
    assert (status.state, status.enabled) == ("Unknown", False)
    assert f"a state that is not known: {state[:40]}" in status.error_message
    assert not peer.driver.is_connected()
    assert [(each, outcome is None) for each, outcome in peer.ended] == [(ticket, False)]
    assert peer.send("G0 X1") is not None


def test_nothing_but_questions_is_sent_while_the_state_is_not_known() -> None:
    peer = Peer().ready()
    peer.driver.run([f"G1 X{n} F600" for n in range(500)], 0)
    peer.sent()
    questions = ""
    for _ in range(20):
        peer.say(reported("Dance"))
        questions += peer.sent()
        peer.advance(1.0)
        questions += peer.sent()
    assert set(questions) == set("?\x87")
    assert 20 <= len(questions) <= 25, "one a period, not one for each answer"


def test_it_can_be_used_again_after_a_known_state() -> None:
    peer = Peer().ready()
    peer.say(reported("Dance"))
    peer.ready()
    assert peer.status.state == "Idle"


@pytest.mark.parametrize("state", STRANGE)
def test_a_strange_state_at_the_start_is_no_connection(state: str) -> None:
    peer = Peer()
    assert peer.sent() == "\x87"
    peer.say(reported(state))
    assert not peer.driver.is_connected()
    assert peer.driver.enable(0) is not None
    assert set(peer.sent()) <= set("?\x87")


@pytest.mark.parametrize("line", [b"x", b"<Idle|MPos:" + b"0,", b"\x00", b"ok"])
def test_a_line_without_end_costs_no_memory_and_is_silence(line: bytes) -> None:
    peer = Peer().ready()
    ticket = peer.driver.run(["G1 X1 F600"], 0)
    peer.sent()
    flood = line * (65_536 // len(line))
    peer.driver.receive(flood, peer.now)
    tracemalloc.start()
    for _ in range(200):
        peer.driver.receive(flood, peer.now)
        peer.advance(0.02)
        peer.sent()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1 << 20
    assert [each for each, _ in peer.ended] == [ticket]
    assert peer.status.state == "Unknown"


@pytest.mark.parametrize("answer", ["ok", "error:9"])
def test_doubled_answers_end_the_program_and_nothing_follows(answer: str) -> None:
    peer = Peer().ready()
    lines = [f"G1 X{n} F600" for n in range(300)]
    ticket = peer.driver.run(lines, 0)
    sent = ""
    while not peer.ended:
        sent += peer.sent()
        peer.say(answer, answer)
    assert [(each, outcome is None) for each, outcome in peer.ended] == [(ticket, False)]
    assert all(sent.count(f"{line}\n") <= 1 for line in lines)
    peer.advance(5.0)
    assert "G1" not in peer.sent()
    assert not peer.status.enabled or peer.status.error


def test_a_controller_that_runs_and_never_answers_gets_no_more_than_its_buffer() -> None:
    peer = Peer().ready()
    peer.driver.run([f"G1 X{n} F600" for n in range(10_000)], 0)
    sent = 0
    for _ in range(60):
        sent += sum(len(line) + 1 for line in peer.sent().split("\n") if "G1" in line)
        peer.say(RUN)
        peer.advance(1.0)
    assert sent <= 1024
    assert peer.status.state == "Run"


@pytest.mark.parametrize(
    "place", ["nan,0,0,0,0,0", "1e308,0,0,0,0,0", "0,0", "9" * 4000, "inf,inf,inf,inf,inf,inf", ""]
)
def test_a_place_that_is_none_changes_nothing(place: str) -> None:
    peer = Peer().ready()
    before = peer.driver.joint_state(0)
    peer.say(f"<Idle|MPos:{place}|Bf:100,1023|FS:0,0>")
    assert peer.driver.joint_state(0) == before
