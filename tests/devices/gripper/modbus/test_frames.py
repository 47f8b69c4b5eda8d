"""Frames of RTU and TCP, cut and built; what is no frame is left out."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU

from understudy.devices.gripper.modbus.frames import (
    LONGEST_RTU,
    Frame,
    FrameReader,
    Kind,
    Side,
    build_frame,
    frame_reader,
)

READ = bytes.fromhex("0307D00001")
CLOSE = bytes.fromhex("1003E8000306090000FFFFFF")
UNKNOWN = bytes.fromhex("66AABBCC")
PDUS = (READ, CLOSE, UNKNOWN, bytes.fromhex("0601000001"), bytes([43, 14, 1, 0]), b"\x07")


def in_pieces(reader: FrameReader, data: bytes, cuts: list[int]) -> list[Frame]:
    ends = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = (data[a:b] for a, b in pairwise(ends))
    return [frame for piece in pieces for frame in reader.feed(piece)]


@given(
    st.sampled_from(["rtu", "tcp"]),
    st.lists(st.tuples(st.integers(0, 247), st.sampled_from(PDUS)), max_size=6),
    st.lists(st.integers(0, 200), max_size=20),
)
def test_the_cut_of_a_stream_changes_no_frame(
    kind: Kind, sent: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    frames = [Frame(unit, 0, pdu) for unit, pdu in sent]
    data = b"".join(build_frame(kind, frame) for frame in frames)
    assert in_pieces(frame_reader(kind, "requests"), data, cuts) == frames


@pytest.mark.parametrize("pdu", [READ, CLOSE])
def test_pymodbus_reads_the_same_frames(pdu: bytes) -> None:
    rtu, tcp = FramerRTU(DecodePDU(True)), FramerSocket(DecodePDU(True))
    _, unit, _, read = rtu.decode(build_frame("rtu", Frame(9, 0, pdu)))
    assert (unit, read) == (9, pdu)
    _, unit, transaction, read = tcp.decode(build_frame("tcp", Frame(9, 7, pdu)))
    assert (unit, transaction, read) == (9, 7, pdu)


def test_a_frame_with_a_wrong_check_sum_is_left_out_and_the_next_one_is_read() -> None:
    good = build_frame("rtu", Frame(9, 0, READ))
    for at in (0, 3, 5, 6, 7):
        bad = bytearray(good)
        bad[at] ^= 0x10
        assert frame_reader("rtu", "requests").feed(bytes(bad) + good) == [Frame(9, 0, READ)]


def test_silence_ends_what_was_no_frame() -> None:
    reader = frame_reader("rtu", "requests")
    assert reader.feed(b"\x09\x10garbage") == []
    reader.silence()
    assert reader.part == b""
    assert reader.feed(build_frame("rtu", Frame(9, 0, READ))) == [Frame(9, 0, READ)]


@pytest.mark.parametrize("side", ["requests", "answers"])
def test_garbage_is_never_kept_beyond_a_frame(side: Side) -> None:
    chance = Random(1)
    reader = frame_reader("rtu", side)
    for _ in range(200):
        reader.feed(chance.randbytes(300))
        assert len(reader.part) <= LONGEST_RTU


@pytest.mark.parametrize("head", ["000100010006", "000100000001", "0001000000FF"])
def test_a_header_that_is_not_modbus_breaks_a_tcp_stream(head: str) -> None:
    reader = frame_reader("tcp", "requests")
    assert reader.feed(bytes.fromhex(head) + bytes(10)) == []
    assert reader.broken
