"""Playing a transcript against a cell; the first different answer is named."""

from pathlib import Path

import pytest

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.wire.chat import parse, write
from understudy.wire.compare import Difference, Tolerance
from understudy.wire.exchange import InProcessCell
from understudy.wire.play import play

EXACT = Tolerance()


def virtual_cell() -> InProcessCell:
    return InProcessCell(build_cell(load_config("text_robot").without_rules()))


def played(text: str, tolerance: Tolerance = EXACT) -> Difference | None:
    return play(parse(text), virtual_cell(), tolerance=tolerance)


CHAT = """\
@ 0 bench.text_tcp 1
! open
> MOVE_ABS 10,20,30,0,0,90\\n
@ 0.5
< OK Movement completed\\n
@ 0.7
> GET_POS\\n
< OK 10.00,20.00,30.00,0.00,0.00,90.00\\n
> GET_STATUS\\n
< OK Idle,26.0,0,10\\n
"""


def test_an_unchanged_transcript_has_no_difference() -> None:
    assert played(CHAT) is None


def test_a_transcript_written_by_a_cell_has_no_difference() -> None:
    first = virtual_cell()
    one, other = first.connect(), first.connect()
    one.say(b"HOME\nGET_")
    first.advance(0.3)
    other.say(b"GET_POS\n")
    other.say(b"STOP\n")
    one.say(b"STATUS\nRESET\n")
    one.end()
    other.leave()
    chat = write({}, first.transcript)
    assert chat.count("\n< ") == 5
    assert played(chat) is None


@pytest.mark.parametrize(
    ("was", "edited", "number", "byte", "field"),
    [
        ("20.00,30", "21.00,30", 2, 10, "y"),
        ("90.00\\n", "-90.00\\n", 2, 31, "rz"),
        ("Idle", "Moving", 3, 3, "state"),
        ("26.0,0", "26.0,4", 3, 13, "errorCode"),
        ("OK Movement", "ERROR Movement", 1, 0, "verdict"),
        ("completed", "complete", 1, 20, "message"),
    ],
)
def test_the_first_difference_is_named_by_byte_and_field(
    was: str, edited: str, number: int, byte: int, field: str
) -> None:
    assert was in CHAT
    difference = played(CHAT.replace(was, edited))
    assert difference is not None
    assert (difference.number, difference.byte, difference.field) == (number, byte, field)
    assert difference.peer == ("bench.text_tcp", "1")


def test_a_difference_is_printed_with_expected_and_got() -> None:
    difference = played(CHAT.replace("20.00,30", "21.00,30"))
    assert str(difference).splitlines() == [
        "bench.text_tcp 1, answer 2: byte 10 (y) differs",
        r"  expected 0.700000 s  OK 10.00,21.00,30.00,0.00,0.00,90.00\n",
        r"  got      0.700000 s  OK 10.00,20.00,30.00,0.00,0.00,90.00\n",
    ]


def test_numbers_may_differ_by_the_tolerance() -> None:
    near = CHAT.replace("10.00,20.00", "9.91,20.09")
    assert played(near) is not None
    assert played(near, Tolerance(number=0.1)) is None


def test_the_named_field_exceeds_the_tolerance() -> None:
    chat = CHAT.replace("10.00,20.00", "9.99,21.00")
    difference = played(chat, Tolerance(number=0.1))
    assert difference is not None
    assert difference.field == "y"
    assert difference.expected is not None
    assert difference.expected.data[difference.byte :].startswith(b"1.00,30")


def test_words_have_no_tolerance() -> None:
    difference = played(CHAT.replace("Idle", "Moving"), Tolerance(number=1e9))
    assert difference is not None
    assert difference.field == "state"


def test_times_may_differ_by_the_tolerance() -> None:
    late = CHAT.replace("@ 0.5", "@ 0.6")
    difference = played(late)
    assert difference is not None
    assert (difference.number, difference.field) == (1, "the time")
    assert played(late, Tolerance(seconds=0.05)) is not None
    assert played(late, Tolerance(seconds=0.1)) is None
    assert played(late, Tolerance(seconds=None)) is None


def test_a_missing_and_an_unexpected_answer_are_differences() -> None:
    missing = played(CHAT + "< OK and more\\n\n")
    assert missing is not None
    assert (missing.number, missing.got) == (4, None)
    unexpected = played(CHAT + "> RESET\\n\n")
    assert unexpected is not None
    assert (unexpected.number, unexpected.expected) == (4, None)
    assert "expected nothing" in str(unexpected)


def test_a_client_that_waited_for_an_answer_waits_for_it_in_replay() -> None:
    """The recorded robot arrived after 0.2 s, and only then the client sent STOP."""
    chat = """\
@ 0 bench.text_tcp 1
> MOVE_ABS 10,20,30,0,0,0\\n
@ 0.2
< OK Movement completed\\n
> STOP\\n
< OK Emergency stop executed\\n
"""
    assert played(chat, Tolerance(seconds=None)) is None


def test_a_client_that_did_not_wait_does_not_wait_in_replay() -> None:
    chat = """\
@ 0 bench.text_tcp 1
> MOVE_ABS 10,20,30,0,0,0\\n
@ 0.2
> STOP\\n
< ERROR Robot in emergency stop state\\n
< OK Emergency stop executed\\n
"""
    assert played(chat) is None


def test_endpoint_and_peers_may_have_other_names() -> None:
    chat = """\
@ 0 text_tcp bob
> HOME\\n
@ 0.1 text_tcp alice
> GET_STATUS\\n
< OK Homing,26.0,0,60\\n
@ 1 text_tcp bob
< OK Homing completed\\n
"""
    assert played(chat) is None
    difference = played(chat.replace("Homing,", "Idle,"))
    assert difference is not None
    assert difference.peer == ("bench.text_tcp", "alice")


def test_an_unknown_endpoint_is_a_config_error(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    robot = "{kind: text_robot, faces: {text_tcp: {}}}"
    file.write_text(f"robots:\n  one: {robot}\n  two: {robot}\n")
    cell = InProcessCell(build_cell(load_config(str(file))))
    chat = parse("@ 0 three.text_tcp 1\n> GET_POS\\n\n")
    with pytest.raises(ConfigError, match=r"unknown endpoint \(got 'three.text_tcp'\)"):
        play(chat, cell, tolerance=EXACT)
