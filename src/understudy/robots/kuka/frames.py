"""The three frames of the KUKA G-code server: little-endian, without padding, without headers.

command    48 bytes   seq, cmd_type, X Y Z (mm), A B C (deg), F (mm/s), E, bitmask, 4 unused
feedback   48 bytes   g_seq, g_queue_size, ten times -27
telemetry 128 bytes   X Y Z A B C, A1…A6, g_seq, seq in flight, g_queue_size, flags, path velocity
                      (m/s), tool, base, and 13 constants, each its own byte offset

A field of a command whose bit is clear is ignored.
"""

import math
import struct
from collections.abc import Iterator, Mapping
from functools import cache

from understudy.ports.decoder import (
    Cut,
    Decoded,
    Decoder,
    Operation,
    Sections,
    all_rows,
    cut_nothing,
)
from understudy.robots.kuka.records import (
    BASES,
    HOMES,
    LINEAR,
    TOOLS,
    KukaReading,
    Progress,
    Record,
    base_number,
)
from understudy.space.pose import Pose
from understudy.units import DEG, MM

COMMAND = struct.Struct("<ii8fi4x")
FEEDBACK = struct.Struct("<12i")
TELEMETRY = struct.Struct("<6f6f4if2i5i8i")

WORDS = ("X", "Y", "Z", "A", "B", "C", "F", "E")
"""Bit n of the mask: field n is given."""
UNITS = (MM, MM, MM, DEG, DEG, DEG, MM, 1.0)
UNIT_OF = dict(zip(WORDS, UNITS, strict=True))
FILLING = (-27,) * 10
OFFSETS = (76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124)

FEEDBACK_FIELDS = ("g_seq", "g_queue_size", *(f"filling {n}" for n in range(1, 11)))
TELEMETRY_FIELDS = (
    *("X", "Y", "Z", "A", "B", "C", "A1", "A2", "A3", "A4", "A5", "A6"),
    *("g_seq", "seq_in_flight", "g_queue_size", "flags", "path velocity", "tool", "base"),
    *(f"literal {offset}" for offset in OFFSETS),
)


class FrameReader:
    """Reads frames of one size from a stream of bytes; holds less than one frame."""

    def __init__(self, size: int, part: bytes = b"") -> None:
        self.size = size
        self.part = part

    def feed(self, data: bytes) -> Iterator[bytes]:
        frames, self.part = cut_frames(self.size)(self.part + data)
        yield from frames


# ── command ─────────────────────────────────────────────────────────────────────────────────────


def read_command(frame: bytes) -> Record:
    seq, kind, given = _command_fields(frame)
    wrong = [f"{word} = {value}" for word, value in given.items() if not math.isfinite(value)]
    if wrong:
        return Record(seq, kind, flaw=f"{', '.join(wrong)}: not a number")
    return Record(seq, kind, {word: value * UNIT_OF[word] for word, value in given.items()})


def _command_fields(frame: bytes) -> tuple[int, int, dict[str, float]]:
    """seq, cmd_type and the given words, in the units of the wire."""
    seq, kind, *values, mask = COMMAND.unpack(frame)
    words = enumerate(zip(WORDS, values, strict=True))
    return seq, kind, {word: value for n, (word, value) in words if mask >> n & 1}


def write_command(record: Record) -> bytes:
    """A word beyond single precision becomes infinite, which the robot refuses."""
    values = [_single(record.words.get(word, 0.0) / UNIT_OF[word]) for word in WORDS]
    mask = sum(1 << n for n, word in enumerate(WORDS) if word in record.words)
    return COMMAND.pack(record.seq, record.kind, *values, mask)


def _single(value: float) -> float:
    """The value in single precision; infinite if it is too large."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


# ── feedback ────────────────────────────────────────────────────────────────────────────────────


def write_feedback(completed: int, waiting: int) -> bytes:
    return FEEDBACK.pack(completed, waiting, *FILLING)


def read_feedback(frame: bytes) -> tuple[int, int]:
    """g_seq and g_queue_size; the filler values are ignored."""
    completed, waiting, *_ = FEEDBACK.unpack(frame)
    return completed, waiting


# ── telemetry ───────────────────────────────────────────────────────────────────────────────────


def write_telemetry(reading: KukaReading) -> bytes:
    x, y, z, c, b, a = reading.pose
    done = reading.progress
    return TELEMETRY.pack(
        *(value / MM + 0.0 for value in (x, y, z)),  # never -0.0
        *(value / DEG + 0.0 for value in (a, b, c, *reading.axes)),
        *(done.completed, done.in_flight, done.waiting, reading.flags),
        *(reading.speed, reading.tool, reading.base),
        *OFFSETS,
    )


def read_telemetry(frame: bytes) -> KukaReading:
    """``under_way`` of the progress: the record in flight is not the last completed one."""
    x, y, z, a, b, c, *rest = TELEMETRY.unpack(frame)
    axes, (completed, in_flight, waiting, flags, speed, tool, base) = rest[:6], rest[6:13]
    return KukaReading(
        pose=Pose(x * MM, y * MM, z * MM, c * DEG, b * DEG, a * DEG),
        axes=tuple(axis * DEG for axis in axes),
        speed=speed,
        tool=tool,
        base=base,
        flags=flags,
        progress=Progress(completed, in_flight, waiting, in_flight != completed),
    )


def commands_in(record: Record) -> list[str]:
    """Names of a record for scenario rules: MOVE, HOME, TOOL and TOOL 2, BASE and BASE 1."""
    if record.kind in HOMES:
        return ["HOME"]
    if record.kind in TOOLS:
        return ["TOOL", f"TOOL {record.kind}"]
    if record.kind in BASES:
        return ["BASE", f"BASE {base_number(record.kind)}"]
    return ["MOVE"] if record.kind == LINEAR else []


# ── transcripts ─────────────────────────────────────────────────────────────────────────────────


def cut_frames(size: int) -> Cut:
    """Divides a stream into frames of a size."""

    def cut(data: bytes) -> tuple[list[bytes], bytes]:
        whole = len(data) - len(data) % size
        return [data[start : start + size] for start in range(0, whole, size)], data[whole:]

    return cut


def decode_command(frame: bytes, address: str) -> Decoded:
    """Names as those of scenario rules; values in the units of the wire."""
    if len(frame) != COMMAND.size:
        return Decoded()
    seq, kind, given = _command_fields(frame)
    names = commands_in(Record(seq, kind)) or [f"cmd_type {kind}"]
    return Decoded(tuple(names), {"seq": seq, "cmd_type": kind, **given})


def decode_feedback(frame: bytes, address: str) -> Decoded:
    if len(frame) != FEEDBACK.size:
        return Decoded()
    fields = dict(zip(FEEDBACK_FIELDS[:2], read_feedback(frame), strict=True))
    return Decoded(("feedback",), fields)


def decode_telemetry(frame: bytes, address: str) -> Decoded:
    if len(frame) != TELEMETRY.size:
        return Decoded()
    fields = zip(TELEMETRY_FIELDS, TELEMETRY.unpack(frame), strict=True)
    return Decoded(("telemetry",), dict(list(fields)[: -len(OFFSETS)]))


def field_of_feedback(frame: bytes, byte: int) -> str:
    """Name of the field of a frame to which a byte belongs; used to compare transcripts."""
    return FEEDBACK_FIELDS[min(byte // 4, len(FEEDBACK_FIELDS) - 1)]


def field_of_telemetry(frame: bytes, byte: int) -> str:
    return TELEMETRY_FIELDS[min(byte // 4, len(TELEMETRY_FIELDS) - 1)]


FRAME_TESTS = "tests/robots/kuka/test_kuka_frames.py"
MOTION_TESTS = "tests/robots/kuka/test_kuka_motion.py"
WORD_MEANINGS = {
    **dict.fromkeys("XYZ", "target, mm"),
    **dict.fromkeys("ABC", "turns of the tool about Z, Y, X, deg"),
    "F": "speed, mm/s; kept",
    "E": "job of the welder, with the start of the move",
}
TELEMETRY_NOTES = {"flags": "bit n: channel n is connected", "path velocity": "m/s"}


@cache
def operations() -> Sections:
    kinds = {
        "MOVE": ("straight line of the tool (0)", MOTION_TESTS),
        "HOME": (f"axes to their home ({' and '.join(map(str, HOMES))})", MOTION_TESTS),
        "TOOL": ("select a tool", MOTION_TESTS),
        **{f"TOOL {n}": (f"select tool {n} ({n})", MOTION_TESTS) for n in TOOLS},
        "BASE": ("select a base", MOTION_TESTS),
        **{
            f"BASE {base_number(n)}": (f"select base {base_number(n)} ({n})", MOTION_TESTS)
            for n in BASES
        },
    }
    given = {word: (WORD_MEANINGS[word], FRAME_TESTS) for word in WORDS}
    feedback = dict.fromkeys(FEEDBACK_FIELDS[:2], ("", FRAME_TESTS))
    telemetry = {
        name: (TELEMETRY_NOTES.get(name, ""), FRAME_TESTS)
        for name in TELEMETRY_FIELDS[: -len(OFFSETS)]
    }

    def rows(table: Mapping[str, tuple[str, str]], prefix: str = "") -> list[Operation]:
        return [
            Operation(f"{prefix}{name}", meaning, "emulated", "document", test)
            for name, (meaning, test) in table.items()
        ]

    filling = Operation(
        "filling", "constants behind the fields", "formal", "document", FRAME_TESTS, "never change"
    )
    return {
        "Records (cmd_type)": rows(kinds),
        "Fields of a record": rows(given),
        "Fields of the feedback": rows(feedback, "feedback "),
        "Fields of the telemetry": [*rows(telemetry, "telemetry "), filling],
    }


COMMANDS_AND_FEEDBACK = Decoder(
    cut_requests=cut_frames(COMMAND.size),
    cut_answers=cut_frames(FEEDBACK.size),
    read_request=decode_command,
    read_answer=decode_feedback,
    name_field=field_of_feedback,
    operations=lambda: all_rows(operations()),
    line_answers=None,
    alarms_refuse=True,
)
TELEMETRY_ONLY = Decoder(
    cut_requests=cut_nothing,
    cut_answers=cut_frames(TELEMETRY.size),
    read_request=lambda data, address: Decoded(("ignored bytes",)),
    read_answer=decode_telemetry,
    name_field=field_of_telemetry,
    line_answers=None,
    alarms_refuse=True,
)
