"""Random bytes: nothing is raised, each line is answered once, time slices do not matter."""

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.robots.grblhal.face.bench import Bench, answers

from understudy.ports import Snapshot
from understudy.robots.grblhal.numbers import Realtime

RELAXED = settings(max_examples=40, suppress_health_check=list(HealthCheck))
LINES = (
    "",
    "G0 X1",
    "G1 X2 Y1 F6000",
    "G1 X0",
    "X3",
    "G2 X1 Y1 I1",
    "G91",
    "G90",
    "G20",
    "G21",
    "G4 P0.05",
    "M3 S100",
    "M5",
    "M8",
    "M9",
    "M0",
    "M1",
    "T1 M6",
    "T2",
    "M6",
    "G92 X1",
    "G92.1",
    "G55",
    "G54",
    "G10 L2 P1 X1",
    "G43.1 Z1",
    "G49",
    "M62 P1",
    "M63 P1",
    "M64 P2",
    "M65 P2",
    "M66 P2 L3 Q0.05",
    "M66 P1 L0",
    "M67 E0 Q1",
    "M68 E1 Q2",
    "G38.3 Z-0.5 F600",
    "M2",
    "M30",
    "(MSG,hi)",
    "G0 X4 (MSG,on the way)",
    "N7 G0 Y1",
    "%",
    "/G0 X9",
    "X",
    "G0 X1 X2",
    "G12345",
    "Q1",
    "(",
    "hello",
    "=",
    "$",
    "$G",
    "$#",
    "$N",
    "$10",
    "$FOO",
    "$J=G91 X1 F6000",
    "$J=X",
    "$X",
    "$I",
    "$110=7000",
    "$110=abc",
    "$999=1",
    "$C",
    "$C",
    "$SLP",
    "$N0=",
    "$HX",
    "$H",
    "$B",
    "$S",
    "x" * 300,
    "G81 X1 Z-1 R0.5 F6000",
    "G83 Z-2 R0 Q0.5 F6000 L3",
    "X2 L2",
    "G80",
    "G98",
    "G99",
    "G5 I1 J2 P-1 Q-2 X3 Y3",
    "G5.1 I1 J1 X2 Y0",
    "G51 X2 Y-1",
    "G50",
    "M70",
    "M72",
    "M73",
    "G18",
    "G17",
    "G66 P4",
    "G65 P4",
    "G67",
    "M98 P9",
    "$394=0.1",
    "$673=0.1",
    "$676=0",
    "M7",
    "M4 S50",
    "G38.2 Z-1 F600",
    "G38.5 Z1 F600",
    "$21=1",
    "$20=0",
    "$N1=G21|G90",
    "$$=110",
    "$LIM",
    "$ESH",
)
HARMLESS = bytes((*b"?", 0x05, 0x80, 0x87, *range(0x90, 0x98), *range(0x99, 0x9E), 0xA0, 0xA1))
HOLDING = bytes((*b"!~", 0x81, 0x82, 0x84))
FLUSHING = bytes((0x03, 0x18, 0x19, 0x85))

said = st.lists(st.sampled_from(LINES), max_size=12)
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


def sprinkled(text: bytes, places: list[tuple[int, int]], bytes_: bytes) -> bytes:
    """The text with command bytes inserted."""
    for place, which in places:
        at = place % (len(text) + 1)
        text = text[:at] + bytes((bytes_[which % len(bytes_)],)) + text[at:]
    return text


places = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=12)


def press_start(bench: Bench) -> list[str]:
    """Press start until nothing waits any more."""
    lines = bench.idle()
    for _ in range(200):
        unread = bench.virtual_cell.timed_cell.faces[bench.endpoint].status(0)["unread"]
        state = bench.state()
        if not unread and state.partition(":")[0] not in ("Hold", "Door", "Tool", "Run", "Jog"):
            return lines + bench.idle()
        bench.say(b"~")
        lines += bench.received() + bench.idle()
    raise AssertionError(f"never through: {state}")


@RELAXED
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_garbage_is_answered_at_most_once_a_line(packets: list[bytes]) -> None:
    bench, received = Bench(), []
    for packet in packets:
        bench.say(packet)
        received += bench.wait(0.01)
    stream = b"".join(packets)
    received += bench.idle(5.0)
    own_answers = sum(map(stream.count, (b"\n", b"\r", bytes([Realtime.CONTROL_LOOP_LOG]))))
    assert len(answers(received)) <= own_answers


@RELAXED
@given(said, places, ends)
def test_each_line_gets_one_answer(
    lines: list[str], where: list[tuple[int, int]], end: bytes
) -> None:
    bench = Bench().fast(end)
    text = b"".join(line.encode("latin-1") + end for line in lines)
    bench.say(sprinkled(text, where, HARMLESS + HOLDING))
    received = bench.received() + press_start(bench)
    if any(line.startswith("GrblHAL") for line in received):
        # Only leaving check mode, which is a reset, drops waiting lines here.
        assert len(answers(received)) <= len(lines)
    else:
        assert len(answers(received)) == len(lines)


@RELAXED
@given(st.lists(st.tuples(st.sampled_from(LINES), places), max_size=8), ends)
def test_line_by_line_each_line_gets_one_answer(
    lines: list[tuple[str, list[tuple[int, int]]]], end: bytes
) -> None:
    """Each line is sent after `~` and idle, so that no line waits behind one that resets."""
    bench = Bench().fast(end)
    for line, where in lines:
        bench.say(sprinkled(line.encode("latin-1") + end, where, HARMLESS + HOLDING))
        early = bench.received()
        assert len(answers(early)) <= 1
        assert len(answers(early + press_start(bench))) == 1, line


@RELAXED
@given(said, places, said)
def test_after_random_bytes_each_line_gets_one_answer_again(
    lines: list[str], where: list[tuple[int, int]], after: list[str]
) -> None:
    bench = Bench().fast()
    text = "".join(line + "\n" for line in lines).encode("latin-1")
    bench.say(sprinkled(text, where, HARMLESS + HOLDING + FLUSHING))
    assert len(answers(bench.received() + press_start(bench))) <= len(lines)
    for line in after:
        bench.say(line.encode("latin-1") + b"\n")
        assert len(answers(bench.received() + press_start(bench))) == 1, line


@RELAXED
@given(said, places, st.lists(st.integers(0, 600), max_size=8))
def test_packets_make_no_difference(
    lines: list[str], where: list[tuple[int, int]], cuts: list[int]
) -> None:
    text = "".join(line + "\n" for line in lines).encode("latin-1")
    text = sprinkled(text, where, HARMLESS + HOLDING + FLUSHING)
    whole, cut = Bench().fast(), Bench().fast()
    whole.say(text)
    edges = sorted({0, len(text), *(c % (len(text) + 1) for c in cuts)})
    for a, b in itertools.pairwise(edges):
        cut.say(text[a:b])
    assert cut.received() == whole.received()
    assert cut.wait(1.0) == whole.wait(1.0)


def test_a_hold_directly_after_a_cycle_start_acts_in_any_packet() -> None:
    """Coolant that was switched in the hold is restored without a delay ($673=0)."""
    for packets in ([b"\xa0!\xa1~", b"!\n"], [b"\xa0!\xa1~!\n"]):
        bench = Bench()
        for packet in packets:
            bench.say(packet)
        assert bench.received() == ["[MSG:]"]
        assert bench.state() == "Hold:0"


BYTES = [bytes((byte,)) for byte in HARMLESS + HOLDING + FLUSHING]
WHOLE_LINES = [line.encode("latin-1") + b"\n" for line in LINES]
script = st.lists(st.tuples(st.sampled_from(WHOLE_LINES + BYTES), st.floats(0.0, 0.4)), max_size=10)


def play(bench: Bench, steps: list[tuple[bytes, float]], slices: int = 1) -> list[str]:
    received = []
    for data, seconds in steps:
        bench.say(data)
        for _ in range(slices):
            bench.virtual_cell.advance(seconds / slices)
        received += [*bench.received(), bench.report(b"\x87")]
    return received


@RELAXED
@given(script, st.integers(2, 5))
def test_time_slices_make_no_difference(steps: list[tuple[bytes, float]], slices: int) -> None:
    # Whole milliseconds, so that all slices end on the same nanosecond.
    steps = [(data, round(seconds * 1000) * slices / 1000) for data, seconds in steps]
    assert play(Bench().fast(), steps, slices) == play(Bench().fast(), steps)


@RELAXED
@given(script, script)
def test_a_snapshot_is_invisible(
    before: list[tuple[bytes, float]], after: list[tuple[bytes, float]]
) -> None:
    bench = Bench().fast()
    play(bench, before)
    snapshot: Snapshot = bench.virtual_cell.snapshot()
    first = play(bench, after)
    bench.virtual_cell.restore(snapshot)
    assert play(bench, after) == first


def test_a_line_of_a_megabyte() -> None:
    bench = Bench()
    bench.say(b"G0 X" + b"1" * 1_000_000 + b"\nG0 X1\n\nG0 X1\n")
    assert bench.received() == ["error:11", "error:11", "ok", "ok"]


@settings(RELAXED, max_examples=10)
@given(st.lists(st.tuples(st.sampled_from(LINES), places), max_size=6))
def test_an_arm_answers_each_line_once(lines: list[tuple[str, list[tuple[int, int]]]]) -> None:
    bench = Bench("default", "g60.grblhal")
    for line, where in lines:
        bench.say(sprinkled(line.encode("latin-1") + b"\n", where, HARMLESS + HOLDING))
        assert len(answers(bench.received() + press_start(bench))) == 1, line
