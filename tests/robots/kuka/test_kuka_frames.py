"""The three frames, byte for byte."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.ports.decoder import Decoded
from understudy.robots.kuka.frames import (
    COMMANDS_AND_FEEDBACK,
    FEEDBACK,
    TELEMETRY,
    TELEMETRY_ONLY,
    FrameReader,
    field_of_feedback,
    field_of_telemetry,
    read_command,
    read_feedback,
    read_telemetry,
    write_command,
    write_feedback,
    write_telemetry,
)
from understudy.robots.kuka.records import KukaReading, Progress, Record
from understudy.space.pose import Pose
from understudy.units import DEG, MM

G1_X200_F100 = bytes.fromhex(
    "01000000 00000000"  # seq 1, linear
    "00004843 00000000 00000000"  # X 200, Y and Z not given
    "00000000 00000000 00000000"  # A B C not given
    "0000c842 00000000"  # F 100, E not given
    "41000000 00000000"  # X and F; four unused bytes
)
FEEDBACK_7_3 = bytes.fromhex("07000000 03000000" + "e5ffffff" * 10)
TELEMETRY_ON_THE_WAY = bytes.fromhex(
    "0000c842 000000bf 00004040"  # X 100, Y -0.5, Z 3
    "00003442 0000b4c2 00000c42"  # A 45, B -90, C 35
    "00000000 000074c2 0000fc42 0000803f 0000c041 00003443"  # A1…A6 0 -61 126 1 24 180
    "05000000 06000000 02000000 03000000"  # g_seq, in flight, queue, MAIN and EX2 up
    "cdcccc3d 01000000 05000000"  # 0.1 m/s, tool 1, base 5
    "4c000000 50000000 54000000 58000000 5c000000"
    "60000000 64000000 68000000 6c000000 70000000 74000000 78000000 7c000000"
)
READING = KukaReading(
    pose=Pose(100 * MM, -0.5 * MM, 3 * MM, 35 * DEG, -90 * DEG, 45 * DEG),
    axes=tuple(angle * DEG for angle in (0.0, -61.0, 126.0, 1.0, 24.0, 180.0)),
    speed=0.1,
    tool=1,
    base=5,
    flags=3,
    progress=Progress(5, 6, 2, True),
)


def test_the_sizes() -> None:
    assert [len(f) for f in (G1_X200_F100, FEEDBACK_7_3, TELEMETRY_ON_THE_WAY)] == [48, 48, 128]


def test_a_command() -> None:
    record = Record(1, 0, {"X": 200 * MM, "F": 100 * MM})
    assert read_command(G1_X200_F100) == record
    assert write_command(record) == G1_X200_F100


def test_a_feedback() -> None:
    assert write_feedback(7, 3) == FEEDBACK_7_3
    assert read_feedback(FEEDBACK_7_3) == (7, 3)


def test_a_telemetry() -> None:
    assert write_telemetry(READING) == TELEMETRY_ON_THE_WAY
    back = read_telemetry(TELEMETRY_ON_THE_WAY)
    assert back.pose == pytest.approx(READING.pose)
    assert back.axes == pytest.approx(READING.axes)
    assert (back.progress, back.flags, back.tool, back.base) == (READING.progress, 3, 1, 5)


def test_zero_is_never_negative() -> None:
    nowhere = KukaReading(Pose(*(-0.0,) * 6), (-0.0,) * 6, 0.0, 1, 5, 0, Progress(0, 0, 0, False))
    assert write_telemetry(nowhere)[:48] == bytes(48)


def test_fields_outside_the_mask_are_ignored() -> None:
    noise = struct.pack("<ii8fi4s", 9, 0, *(math.nan,) * 8, 0, b"junk")
    assert read_command(noise) == Record(9, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("bit", range(8))
def test_a_field_that_is_not_a_number_is_a_flaw(value: float, bit: int) -> None:
    record = read_command(struct.pack("<ii8fi4x", 4, 0, *(value,) * 8, 1 << bit))
    assert record.flaw.startswith(f"{'XYZABCFE'[bit]} = {value}")
    assert record.words == {}


def test_bits_beyond_the_eighth_are_ignored() -> None:
    assert read_command(struct.pack("<ii8fi4x", 1, 0, *range(8), -256)) == Record(1, 0)


words = st.dictionaries(st.sampled_from("XYZABCFE"), st.floats(-1e6, 1e6, width=32), max_size=8)
numbers = st.integers(-(2**31), 2**31 - 1)


@given(numbers, numbers, words)
def test_commands_come_back_as_they_were_written(
    seq: int, kind: int, words: dict[str, float]
) -> None:
    values = [words.get(letter, 0.0) for letter in "XYZABCFE"]
    mask = sum(1 << n for n, letter in enumerate("XYZABCFE") if letter in words)
    frame = struct.pack("<ii8fi4x", seq, kind, *values, mask)
    record = read_command(frame)
    assert (record.seq, record.kind, record.words.keys()) == (seq, kind, words.keys())
    assert write_command(record) == frame


@given(st.binary(max_size=700), st.lists(st.integers(0, 100), max_size=20))
def test_frames_do_not_depend_on_the_packets(stream: bytes, cuts: list[int]) -> None:
    frames, at = FrameReader(48), 0
    got: list[bytes] = []
    for cut in [*cuts, len(stream)]:
        got += frames.feed(stream[at : at + cut])
        at += cut
    whole = len(stream) // 48
    assert got == [stream[n * 48 : n * 48 + 48] for n in range(whole)]
    assert frames.part == stream[whole * 48 :]


def test_a_number_beyond_single_precision_becomes_infinite() -> None:
    assert read_command(write_command(Record(1, 0, {"X": 1e300}))).flaw == "X = inf: not a number"


# ── transcripts ──


def test_transcripts_are_split_into_frames() -> None:
    whole, rest = COMMANDS_AND_FEEDBACK.cut_answers(FEEDBACK_7_3 * 3 + b"half")
    assert (whole, rest) == ([FEEDBACK_7_3] * 3, b"half")
    whole, rest = TELEMETRY_ONLY.cut_answers(TELEMETRY_ON_THE_WAY * 2)
    assert (whole, rest) == ([TELEMETRY_ON_THE_WAY] * 2, b"")


def test_frames_are_decoded_in_the_units_of_the_wire() -> None:
    frame = write_command(Record(7, 0, {"X": 0.2, "F": 0.1}))
    decoded = COMMANDS_AND_FEEDBACK.read_request(frame, "")
    assert decoded.names == ("MOVE",)
    assert decoded.fields == pytest.approx({"seq": 7, "cmd_type": 0, "X": 200.0, "F": 100.0})
    feedback = COMMANDS_AND_FEEDBACK.read_answer(FEEDBACK_7_3, "")
    assert feedback.fields == {"g_seq": 7, "g_queue_size": 3}
    assert TELEMETRY_ONLY.read_answer(TELEMETRY_ON_THE_WAY, "").fields.keys() >= {"X", "A6", "base"}
    assert COMMANDS_AND_FEEDBACK.read_request(frame[:40], "") == Decoded()


@pytest.mark.parametrize(
    ("frame", "byte", "field"),
    [
        (FEEDBACK_7_3, 3, "g_seq"),
        (FEEDBACK_7_3, 4, "g_queue_size"),
        (FEEDBACK_7_3, 47, "filling 10"),
        (TELEMETRY_ON_THE_WAY, 0, "X"),
        (TELEMETRY_ON_THE_WAY, 51, "g_seq"),
        (TELEMETRY_ON_THE_WAY, 64, "path velocity"),
        (TELEMETRY_ON_THE_WAY, 127, "literal 124"),
    ],
)
def test_bytes_have_names(frame: bytes, byte: int, field: str) -> None:
    decoder = COMMANDS_AND_FEEDBACK if len(frame) == FEEDBACK.size else TELEMETRY_ONLY
    assert decoder.name_field(frame, byte) == field


def test_every_field_has_a_name() -> None:
    names = {field_of_telemetry(TELEMETRY_ON_THE_WAY, byte) for byte in range(TELEMETRY.size)}
    assert len(names) == TELEMETRY.size // 4
    names = {field_of_feedback(FEEDBACK_7_3, byte) for byte in range(FEEDBACK.size)}
    assert len(names) == FEEDBACK.size // 4
