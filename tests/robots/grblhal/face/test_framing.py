"""Framing: bytes become lines and real-time commands."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.robots.grblhal.face import ReceiveBuffer, pieces
from understudy.robots.grblhal.numbers import LONGEST_LINE


def read(*packets: bytes) -> list[tuple[str, bool]]:
    """The lines of a stream; commands are skipped."""
    reader = ReceiveBuffer()
    lines: list[tuple[str, bool]] = []
    for packet in packets:
        for text, _ in pieces(packet):
            reader.put(text)
            while (line := reader.next_line()) is not None:
                lines.append((line.text, line.too_long))
    return lines


def texts(*packets: bytes) -> list[str]:
    return [text for text, _ in read(*packets)]


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b"G0 X1\n", ["G0 X1"]),
        (b"G0 X1\r\nG0 X2\r\n", ["G0 X1", "G0 X2"]),
        (b"G0 X1\n\rG0 X2\n\r", ["G0 X1", "G0 X2"]),
        (b"a\rb\nc\n", ["a", "b", "c"]),
        (b"\n\n\n", ["", "", ""]),
        (b"\r\n\r\n", ["", ""]),
        (b"\r\r", ["", ""]),
        (b"  \tG0\tX1 \n", ["G0X1 "]),
        (b"G1 X1?0 F\x91100!\n", ["G1 X10 F100"]),
        (b"G0 Y\x082\n", ["G0 2"]),
        (b"G0 X\xff1\n", ["G0 X1"]),
        (b"(MSG,caf\xe9) X\xe9\n", ["(MSG,caf\xe9) X"]),
        (b"$I=\xe9\x7f\xe8\n", ["$I=\xe8"]),
        (b"; \xe9\n", ["; "]),
        (b"unfinished", []),
    ],
)
def test_lines(stream: bytes, lines: list[str]) -> None:
    assert texts(stream) == lines


def test_the_longest_line_and_one_more() -> None:
    line = b"G0 X1".ljust(LONGEST_LINE)
    assert read(line + b"\n") == [(line.decode(), False)]
    assert read(line + b" \n", b"G0 X2\n") == [(line.decode(), True), ("G0 X2", False)]


def test_a_megabyte_without_a_line_end_needs_no_memory() -> None:
    reader = ReceiveBuffer()
    reader.put(b"x" * 1_000_000)
    assert reader.next_line() is None
    assert reader.waiting == 0
    assert len(reader.save().part) == LONGEST_LINE
    reader.put(b"\n")
    line = reader.next_line()
    assert line is not None
    assert line.too_long


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_packets_make_no_difference(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    packets = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert read(*packets) == read(stream)


@given(st.binary(max_size=300))
def test_every_byte_is_text_or_a_command(stream: bytes) -> None:
    back = b"".join(
        text + (b"" if byte is None else bytes((byte,))) for text, byte in pieces(stream)
    )
    assert back == stream


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_saved_buffer_continues(before: bytes, after: bytes) -> None:
    one, other = ReceiveBuffer(), ReceiveBuffer()
    for text, _ in pieces(before):
        one.put(text)
    one.next_line()
    other.load(one.save())
    assert other.waiting == one.waiting
    for reader in (one, other):
        for text, _ in pieces(after):
            reader.put(text)
    while (line := one.next_line()) is not None:
        assert other.next_line() == line
    assert other.next_line() is None
