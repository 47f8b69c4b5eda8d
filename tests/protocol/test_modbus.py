"""Frames of RTU and TCP, cut and built; what is no frame is left out. Requests of a client."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU, ModbusPDU
from pymodbus.pdu.bit_message import ReadDiscreteInputsRequest, WriteMultipleCoilsRequest
from pymodbus.pdu.register_message import (
    ReadHoldingRegistersRequest,
    ReadInputRegistersRequest,
    WriteMultipleRegistersRequest,
    WriteSingleRegisterRequest,
)

from understudy.protocol.modbus import (
    LONGEST_RTU,
    Frame,
    FrameReader,
    Kind,
    Side,
    answer_fits,
    build_frame,
    exception_number,
    frame_reader,
    read_request,
    read_values,
    write_bits_request,
    write_request,
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


# ── requests of a client ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sent", "request_of_pymodbus"),
    [
        (read_request(2, 300, 9), ReadDiscreteInputsRequest(address=300, count=9)),
        (read_request(3, 0x07D0, 3), ReadHoldingRegistersRequest(address=0x07D0, count=3)),
        (read_request(4, 1, 125), ReadInputRegistersRequest(address=1, count=125)),
        (
            write_request(7, [258], single=True),
            WriteSingleRegisterRequest(address=7, registers=[258]),
        ),
        (write_request(7, [258]), WriteMultipleRegistersRequest(address=7, registers=[258])),
        (
            write_bits_request(5, [1, 0, 1]),
            WriteMultipleCoilsRequest(address=5, bits=[True, False, True]),
        ),
        (
            write_bits_request(0, [0] * 8 + [1]),
            WriteMultipleCoilsRequest(bits=[False] * 8 + [True]),
        ),
    ],
)
def test_pymodbus_writes_the_same_requests(sent: bytes, request_of_pymodbus: ModbusPDU) -> None:
    assert sent[1:] == request_of_pymodbus.encode()
    assert sent[0] == request_of_pymodbus.function_code


@pytest.mark.parametrize(
    ("sent", "answer", "fits", "values"),
    [
        (read_request(4, 1, 2), "04 04 0001 FFFE", True, [1, 0xFFFE]),
        (read_request(4, 1, 2), "04 02 0001", False, None),
        (read_request(4, 1, 2), "03 04 0001 FFFE", False, None),
        (read_request(4, 1, 2), "04", False, None),
        (read_request(2, 1, 9), "02 02 0101", True, [1, *[0] * 7, 1, *[0] * 7]),
        (write_request(1, [5]), "10 0001 0001", True, None),
        (write_request(1, [5]), "10 0002 0001", False, None),
        (write_request(1, [5]), "90 02", True, None),
        (write_request(1, [5]), "90", False, None),
    ],
)
def test_an_answer_fits_its_request(
    sent: bytes, answer: str, fits: bool, values: list[int] | None
) -> None:
    pdu = bytes.fromhex(answer)
    assert answer_fits(sent, pdu) == fits
    if fits:
        assert exception_number(pdu) == (2 if pdu[0] & 0x80 else 0)
    if values is not None:
        assert read_values(pdu) == values
