"""Programs for an arm as joint lines: the tool reaches their targets at their speeds."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.config import load_config
from understudy.errors import Refused
from understudy.gcode import GRBLHAL_ARM, Block, parse
from understudy.offline.setup import Setup
from understudy.robots.arm.offline import motion_setup
from understudy.robots.arm.real import PREAMBLE, REST, JointLines
from understudy.units import DEG, MINUTE

START = (0.0, -0.3, 0.4, 0.0, 0.6, 0.0)
_JOINT_LINE = re.compile(r"G53G([01])X(\S+?)Y(\S+?)Z(\S+?)A(\S+?)B(\S+?)C([-0-9.]+)(?:F(\S+))?")


@pytest.fixture(scope="module")
def setup() -> Setup:
    return motion_setup(load_config("g60_welding"), "", "arm")


def made(setup: Setup) -> JointLines:
    lines = JointLines(setup)
    lines.start_from(START)
    return lines


def write(lines: JointLines, *texts: str) -> list[str]:
    written = []
    for number, text in enumerate(texts, 1):
        more = lines.written(text, number)
        assert not isinstance(more, Refused), more
        written += more
    return [line for line in written if line != PREAMBLE]


def joints_of(line: str) -> tuple[float, ...]:
    """Radians."""
    found = _JOINT_LINE.fullmatch(line)
    assert found, line
    return tuple(float(found[n]) * DEG for n in range(2, 8))


def duration_of(line: str, before: Sequence[float]) -> float:
    """Seconds, at the feed that it names."""
    found = _JOINT_LINE.fullmatch(line)
    assert found, line
    way = math.dist(joints_of(line), before) / DEG
    return way / float(found[8]) * MINUTE


def tips(lines: JointLines, written: Sequence[str]) -> np.ndarray:
    return np.array([lines.tip(joints_of(line))[:3] for line in written])


def test_a_joint_line_stays_one_line(setup: Setup) -> None:
    lines = made(setup)
    assert write(lines, "G1 A10 B-20 C30 U5 V40 W6 F600") == ["G53G1X10Y-20Z30A5B40C6F600"]
    assert write(lines, "G0 A0") == ["G53G0X0Y-20Z30A5B40C6"]
    assert write(lines, "G91", "G1 A5 F60") == ["G53G1X5Y-20Z30A5B40C6F60"]


def test_a_tool_path_is_cut_into_chords_close_to_it(setup: Setup) -> None:
    lines = made(setup)
    x, y, z = lines.tip(START)[:3]
    written = write(lines, f"G1 X{x * 1000 - 60:.6f} Y{y * 1000 + 100:.6f} Z{z * 1000:.6f} F1200")
    ends = [START, *(joints_of(line) for line in written)]
    a, b = np.array([x, y, z]), np.array([x - 0.06, y + 0.1, z])
    along = (b - a) / np.linalg.norm(b - a)
    for before, after in pairwise(ends):
        for share in (0.25, 0.5, 0.75, 1.0):
            q = [p + share * (r - p) for p, r in zip(before, after, strict=True)]
            off = np.array(lines.tip(tuple(q))[:3]) - a
            assert np.linalg.norm(off - (off @ along) * along) < 5e-5
    assert tips(lines, written)[-1] == pytest.approx(b, abs=1e-5)


def test_the_tool_keeps_its_speed(setup: Setup) -> None:
    lines = made(setup)
    x, y, z = lines.tip(START)[:3]
    written = write(lines, f"G1 X{x * 1000:.6f} Y{y * 1000 + 150:.6f} Z{z * 1000:.6f} F3000")
    total = 0.0
    before: tuple[float, ...] = START
    for line in written:
        total += duration_of(line, before)
        before = joints_of(line)
    assert total == pytest.approx(0.150 / (3.0 / MINUTE), rel=1e-3)


def test_an_arc_of_the_tool_stays_round(setup: Setup) -> None:
    lines = made(setup)
    x, y, z = lines.tip(START)[:3]
    written = write(lines, f"G2 X{x * 1000 - 80:.6f} Y{y * 1000:.6f} I-40 J0 F1200")
    centre = np.array([x - 0.04, y, z])
    radii = np.linalg.norm(tips(lines, written) - centre, axis=1)
    assert radii == pytest.approx(0.04, abs=2e-5)


def test_rapids_of_the_tool_go_from_point_to_point(setup: Setup) -> None:
    lines = made(setup)
    x, y, z = lines.tip(START)[:3]
    (line,) = write(lines, f"G0 X{x * 1000 - 50:.6f} Y{y * 1000 + 50:.6f} Z{z * 1000:.6f}")
    assert line.startswith("G53G0")
    assert tips(lines, [line])[0] == pytest.approx([x - 0.05, y + 0.05, z], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("G4 P0.5", ["G4P0.5"]),
        ("M62 P3", ["M62P3"]),
        ("M65 P3", ["M65P3"]),
        ("M67 E1 Q2.5", ["M67E1Q2.5"]),
        ("M68 E1 Q0.25", ["M68E1Q0.25"]),
        ("M66 P0 L3 Q7", ["M66P0L3Q7"]),
        ("M66 E1 L0 Q1", ["M66E1L0Q1"]),
        ("M7", ["M7"]),
        ("M9", ["M9"]),
        ("M3 S100", ["M3S100"]),
        ("M5", ["M5"]),
        ("M0", ["M0"]),
        ("M2", ["M2"]),
        ("M49", ["M50P0", "M51P0", "M53P1"]),
        ("(MSG,ready? go!)", ["(MSG,ready  go )"]),
        ("G54", []),
        ("G10 L2 P1 X100", []),
        ("M429", []),
        ("", []),
    ],
)
def test_other_requests_are_sent_unchanged(setup: Setup, text: str, expected: list[str]) -> None:
    assert write(made(setup), text) == expected


def taken(lines: JointLines, text: str, number: int) -> list[str]:
    written = lines.written(text, number)
    assert not isinstance(written, Refused), written
    return written


def test_the_first_line_sets_the_needed_modes(setup: Setup) -> None:
    lines = made(setup)
    assert lines.written("G54", 1) == []
    assert taken(lines, "G1 A10 F600", 2)[0] == PREAMBLE
    assert PREAMBLE not in taken(lines, "G1 A20", 3)
    lines.start_from(START)
    assert PREAMBLE in taken(lines, "G1 A30", 4)


def test_the_host_applies_offsets(setup: Setup) -> None:
    lines = made(setup)
    x, y, z = (value * 1000 for value in lines.tip(START)[:3])
    write(lines, f"G10 L2 P1 X{x:.6f} Y{y:.6f} Z{z:.6f}", "G54")
    written = write(lines, "G1 X0 Y10 Z0 F600")
    assert tips(lines, written)[-1] * 1000 == pytest.approx([x, y + 10, z], abs=0.01)


def test_another_tool_has_another_tip(setup: Setup) -> None:
    lines = made(setup)
    torch = lines.tip(START)
    assert write(lines, "T0 M6") == ["M6T0"]
    flange = lines.tip(START)
    assert math.dist(torch[:3], flange[:3]) == pytest.approx(0.150)


def test_exact_path_stops_at_the_end_of_every_line(setup: Setup) -> None:
    assert write(made(setup), "G61", "G1 A10 F600", "G1 A20")[1::2] == [REST, REST]


@pytest.mark.parametrize(
    ("text", "code"),
    [("G1 X5000 Y0 Z0 F600", 33), ("G0 A400", 2), ("G1 A", 2), ("G38.2 A10 F60", 20)],
)
def test_a_refused_line_changes_no_state(setup: Setup, text: str, code: int) -> None:
    lines = made(setup)
    refused = lines.written(text, 7)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert "line 7" in refused.reason or code == 20
    assert lines.pose == made(setup).pose
    assert write(lines, "G91", "G1 B1 F60") == write(made(setup), "G91", "G1 B1 F60")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-60, 60).map(lambda v: round(v, 3)), min_size=6, max_size=6),
    st.floats(1, 5000).map(lambda v: round(v, 2)),
)
def test_every_written_line_can_be_read(joints: list[float], feed: float) -> None:
    lines = made(mover())
    words = " ".join(f"{letter}{v}" for letter, v in zip("ABCUVW", joints, strict=True))
    written = lines.written(f"G1 {words} F{feed}", 1)
    assert not isinstance(written, Refused)
    for line in written:
        assert isinstance(parse(line, GRBLHAL_ARM), Block)
        assert len(line) < 200


def _cached(make: Callable[[], Setup]) -> Callable[[], Setup]:
    kept: list[Setup] = []

    def get() -> Setup:
        if not kept:
            kept.append(make())
        return kept[0]

    return get


mover = _cached(lambda: motion_setup(load_config("g60_welding"), "", "arm"))
