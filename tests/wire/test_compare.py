"""Comparison of recorded answers with those of a cell: alignment, volatile fields, scores."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from understudy.ports.decoder import MESSAGES, TEXT, Decoder, field_of_json
from understudy.robots.text_robot import face as text_tcp
from understudy.units import NS_PER_SECOND
from understudy.wire.compare import Comparison, SentAnswer, Stream, Tolerance, compare

PEER = ("bench.text_tcp", "1")


def answers(lines: Sequence[str], every_s: float = 1.0) -> list[SentAnswer]:
    return [
        SentAnswer(round(n * every_s * NS_PER_SECOND), line.encode())
        for n, line in enumerate(lines)
    ]


def compared(
    expected: Sequence[str],
    got: Sequence[str],
    decoder: Decoder = TEXT,
    tolerance: Tolerance = Tolerance(seconds=None),  # noqa: B008 - frozen
) -> Comparison:
    return compare([Stream(PEER, decoder, answers(expected), answers(got))], tolerance)


def test_equal_answers_have_no_difference_and_all_points() -> None:
    found = compared(["OK 1", "ERROR 2"], ["OK 1", "ERROR 2"])
    assert (found.first, found.differences, found.answers, found.score) == (None, 0, 2, 1.0)
    assert compared([], []).score == 1.0


@pytest.mark.parametrize("missing", [0, 4, 9])
def test_a_missing_answer_makes_no_other_one_differ(missing: int) -> None:
    lines = [f"OK {n}" for n in range(10)]
    short = [line for line in lines if line != f"OK {missing}"]
    less, more = compared(lines, short), compared(short, lines)
    assert less.first is not None
    assert more.first is not None
    assert (less.differences, less.first.number, less.first.got) == (1, missing + 1, None)
    assert (more.differences, more.first.number, more.first.expected) == (1, missing + 1, None)
    assert less.score == more.score == pytest.approx(18 / 19)


def test_one_other_answer_is_compared_with_the_one_in_its_place() -> None:
    lines = ["ok"] * 5
    found = compared(lines, ["ok", "error:9", "ok", "ok", "ok"])
    assert found.first is not None
    assert (found.differences, found.first.number, found.first.byte) == (1, 2, 0)


def test_answers_of_other_types_are_skipped_up_to_the_next_of_the_same() -> None:
    got = ["A 1", "X 1", "X 2", "X 3", "B 5", "C 3"]
    found = compared(["A 1", "B 2", "C 3"], got)
    assert found.differences == 4
    types = {each.type: (each.matched, each.own) for each in found.fidelity}
    assert types == {"A": (1, 1), "B": (1, 1), "C": (1, 1), "X": (0, 3)}


def test_the_distance_is_that_of_the_fields() -> None:
    near, far = "OK 1.00,2.00,3.00,0.00,0.00,90.00\n", "OK 3.00,2.00,3.00,0.00,0.00,90.00\n"
    (fidelity,) = compared([near], [far], text_tcp.DECODER).fidelity
    assert fidelity.distance == pytest.approx(0.5 / 6)
    assert fidelity.score == pytest.approx(1 - 0.5 / 6)
    within = compared([near], [far], text_tcp.DECODER, Tolerance(2.0, None))
    assert (within.first, within.score) == (None, 1.0)


def test_times_are_compared_with_a_tolerance_and_counted() -> None:
    streams = [Stream(PEER, TEXT, answers(["A", "B"]), answers(["A", "B"], every_s=1.25))]
    assert compare(streams, Tolerance(seconds=0.25)).first is None
    found = compare(streams, Tolerance(seconds=0.2))
    assert found.first is not None
    assert found.first.field == "the time"
    assert [each.latest_s for each in found.fidelity] == [0.0, 0.25]


VOLATILE = replace(MESSAGES, volatile=frozenset({"id", "time"}))
ONE = '{"id": "a1", "state": {"time": 12, "x": 1.5}, "list": [{"id": "b"}, 7]}'


def test_volatile_fields_may_differ_in_value_and_length() -> None:
    other = ONE.replace("a1", "something else").replace("12", "1234").replace('"b"', "null")
    volatile = Tolerance(seconds=None, volatile=True)
    assert compared([ONE], [other], VOLATILE, volatile).first is None
    assert compared([ONE], [other], VOLATILE, volatile).score == 1.0
    assert compared([ONE], [other], VOLATILE).first is not None
    found = compared([ONE], [other.replace("7]", "8]")], VOLATILE, volatile)
    assert found.first is not None
    assert (found.first.field, ONE[found.first.byte]) == ("list.1", "7")


@pytest.mark.parametrize(
    ("text", "name"),
    [("a1", "id"), ("12", "state.time"), ("1.5", "state.x"), ('"b"', "list.0.id"), ("7", "list.1")],
)
def test_a_byte_of_json_has_a_path(text: str, name: str) -> None:
    assert field_of_json(ONE.encode(), ONE.index(text)) == name


def test_text_that_is_no_json_has_bytes() -> None:
    assert field_of_json(b"no json", 3) == "byte 3"
    assert field_of_json(b"", 0) == "byte 0"


def test_an_address_that_differs_is_named() -> None:
    a, b = (SentAnswer(0, b"{}", (f"robot.{n}.state", "")) for n in (1, 2))
    found = compare([Stream(PEER, MESSAGES, [a], [b])], Tolerance())
    assert found.first is not None
    assert (found.first.byte, found.first.field) == (6, "address")
    assert "expected 0.000000 s  robot.1.state {}" in str(found.first)


def test_huge_numbers_have_a_distance() -> None:
    found = compared([f"OK {'9' * 400}"], ["OK 1"])
    assert found.fidelity[0].distance == 1.0
