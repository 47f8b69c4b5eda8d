"""Programs checked stretch by stretch give the report of the whole program, with bounded memory."""

import io
import json
import subprocess
import sys
import tracemalloc
from functools import partial
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.offline.setups import machine
from tests.offline.validate.cases import cell

from understudy.app.validate import Options, figures_of, validate_text
from understudy.motion.plan import Plan
from understudy.motion.profile import Profile
from understudy.motion.stream import PartPlanner
from understudy.offline import json_stream
from understudy.offline import walk as walking
from understudy.offline.cycle_time import CycleTimeEstimator, as_document
from understudy.offline.json_stream import encoded, indented, indented_list
from understudy.offline.validate import html_report, judge
from understudy.offline.validate.report import Report
from understudy.robots.arm import mover
from understudy.robots.grblhal.machine import mover as machine_mover

NEVER = 10**9


class SmallWindow(PartPlanner):
    """Looks two blocks ahead only, so that short programs have several parts; counts them."""

    parts = 0

    def __init__(self, _: int, profile: Profile, *, enough: int) -> None:
        super().__init__(3, profile, enough=enough)

    def part(self, at: float) -> Plan | None:
        found = super().part(at)
        SmallWindow.parts += found is not None
        return found


def divide(patch: pytest.MonkeyPatch, size: int) -> None:
    """Plans motion in parts from this number of pieces on, and divides arcs of more chords."""
    patch.setattr(walking, "PartPlanner", partial(SmallWindow, enough=size))
    for module in (machine_mover, mover):
        patch.setattr(module, "CHORDS_AT_ONCE", size)
    SmallWindow.parts = 0


def same(one: Any, other: Any) -> None:
    """The same values; numbers as good as equal."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        assert one == (pytest.approx(other, rel=1e-6, abs=1e-9) if _is_number(one) else other)


def _is_number(value: object) -> bool:
    return isinstance(value, float)


def documents(report: Report) -> dict[str, Any]:
    """The report without wall time, and without what depends on where a sweep or a grid of
    samples begins: distances, clearances, the numbers inside messages."""
    plain = report.document()
    for name in ("wall_s", "times_real_time", "distance_mm"):
        del plain[name]
    for line in plain["lines"]:
        del line["clearance_mm"], line["seen_mm"]
    for found in plain["violations"] + plain["warnings"]:
        found["message"] = found["message"].split(" at ")[0].split(" needs ")[0]
        for name in ("time_s", "factor", "point_mm", "depth_mm"):
            found.pop(name, None)
        found["also"] = [each["objects"] for each in found.get("also", [])]
    return plain


def contour(feed: float, deepest: float) -> str:
    """Seams over the fixture of the welding cell without a rest, with outputs on the way."""
    text = ["G21 G90 G94", "G28", "G0 X450 Y0 Z450 A180 B0 C0", "G1 Z380 F6000"]
    for k in range(120):
        turn = 0.1 * k
        x, y = 450 + 50 * cos(turn), 50 * sin(turn)
        z = 380 - deepest * sin(pi * k / 120)
        text += ["M62 P5"] if k % 30 == 10 else ["M63 P5"] if k % 30 == 20 else []
        text.append(f"G1 X{x:.3f} Y{y:.3f} Z{z:.3f} F{feed}")
    return "\n".join([*text, "G1 X2000", "M7", "M3", "G1 Y40 F600", "M5", "M9", "M2"])


ARM_ARCS = """G21 G90 G94
G0 X10 Y-20 Z40 A0 B30 C0
G1 X20 F3000
G2 X20 Y-20 I8 P4 F2000
M64 P3
G3 X10 Y-10 R20 F9000
G1 Z30 F600
G2 X10 Y-10 I2 F100000"""
MACHINE_ARCS = """G21 G90 G94
G1 X10 F300
G2 X10 Y0 I10 P6 F300
G93 G3 X0 Y10 R10 F2
G94 G2 X0 Y10 Z-3 A20 J20 P3 F200
M62 P1
G2 X0 Y10 I5 P2 F50000
M3 S100
G2 X1 Y1 R-8 F400"""
CASES: dict[str, tuple[str, str, str, set[str]]] = {
    "contour": (contour(3000, 0), "g60_welding", "", {"unreachable"}),
    "contour, too fast": (contour(1e6, 0), "g60_welding", "", {"unreachable", "velocity"}),
    "contour, too deep": (contour(3000, 60), "g60_welding", "", {"unreachable", "collision"}),
    "arcs of an arm's joints": (ARM_ARCS, "bare", "grblhal", {"velocity"}),
    "arcs of a machine": (MACHINE_ARCS, "grblhal_6axis", "", {"process"}),
}


@pytest.mark.parametrize("name", CASES)
def test_stretches_have_the_report_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that go over several parts are reported once all the same."""
    text, where, dialect, kinds = CASES[name]
    options = Options(with_stops="arcs" in name, dialect=dialect)
    divide(monkeypatch, NEVER)
    whole = validate_text(text, cell(where), options=options)
    assert SmallWindow.parts == 0
    divide(monkeypatch, 20)
    divided = validate_text(text, cell(where), options=options)
    assert SmallWindow.parts >= 4
    assert {found.kind for found in whole.violations} == kinds
    same(documents(divided), documents(whole))
    assert divided.distance_m == pytest.approx(whole.distance_m, rel=1e-4)


def test_a_machine_with_feed_of_its_linear_axes_divides_it_at_every_chord(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """$701: the quotient goes on from one stretch to the next."""
    setup = machine(more="\n$701=1\n")
    text = "G21 G90\nG1 X1 F600\nG2 X1 Y0 A90 I3 P5 F600\nG1 X5"
    divide(monkeypatch, NEVER)
    whole = CycleTimeEstimator(setup).estimate(text)
    divide(monkeypatch, 30)
    divided = CycleTimeEstimator(setup).estimate(text)
    assert SmallWindow.parts > 4
    assert divided.blocks == whole.blocks
    assert divided.total_s == pytest.approx(whole.total_s, rel=1e-9)
    assert [row.end_s for row in divided.lines] == pytest.approx([r.end_s for r in whole.lines])


def test_soft_limits_refuse_an_arc_before_its_first_stretch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "G21 G90\nG53 G1 X-5 Y-5 F300\nG2 X-5 Y-5 J-20 P3 F300\nG2 X-5 Y-5 J20 P3"
    divide(monkeypatch, NEVER)
    whole = validate_text(text, cell("machine_travel"))
    divide(monkeypatch, 20)
    divided = validate_text(text, cell("machine_travel"))
    assert [found.kind for found in whole.violations if found.line == 4] == ["joint_limit"]
    same(documents(divided), documents(whole))


def test_an_arc_of_the_tool_that_is_too_long_says_so() -> None:
    text = (
        "G21 G90 G94\nG0 X450 Y0 Z450 A180 B0 C0\nG2 X450 Y0 I10 P1000 F3000\nG2 X450 Y0 I10 P1001"
    )
    long, many = validate_text(text, cell("g60_welding")).violations
    assert "62.83 m needs more than 4096 points: divide the line" in long.message
    assert "P1001: is 1…1000 turns" in many.message


# ── memory ──────────────────────────────────────────────────────────────────────────────────────


def peak_of_arcs(lines: int) -> int:
    """Bytes that the estimate of G2 lines of 30 turns takes at its peak."""
    text = "G21 G90 G94\nG1 X1 F600\n" + "G2 X1 Y0 I10 P30 F600\n" * lines
    tracemalloc.start()
    try:
        CycleTimeEstimator(machine()).estimate(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_arcs() -> None:
    peak_of_arcs(1)
    few, many = peak_of_arcs(4), peak_of_arcs(16)
    assert many < 1.2 * few
    assert few < 20e6


SMALL, LARGE, FULL = 10_000, 40_000, 1_000_000
BYTES_PER_LINE = 600
MOST_MB = 500.0
MEASURE = """
import io, sys
from tests.offline.validate.test_validate_stretches import program, peak_kb
from understudy.app.validate import validate_text
from understudy.config import load_config
from understudy.offline.json_stream import indented
kind, sizes = sys.argv[1], sys.argv[2:]
config = load_config({"arm": "g60_welding", "machine": "grblhal_6axis"}[kind])
for lines in map(int, sizes):
    report = validate_text(program(kind, lines), config)
    assert report.passed, report.violations[:3]
    with open("/dev/null", "wb") as file:
        file.writelines(indented(report.listed_document()))
    del report
    print(peak_kb())
"""


def program(kind: str, lines: int) -> bytes:
    """A contour of short lines without a rest."""
    out = io.BytesIO()
    arm = kind == "arm"
    out.write(b"G21 G90 G94\n" + (b"G0 X450 Y0 Z450 A180 B0 C0\n" if arm else b"\n"))
    for k in range(lines):
        turn = 0.034 * k
        x, y = (450 if arm else -100) + 50 * cos(turn), 50 * sin(turn)
        z = (380 if arm else -50) + 10 * sin(turn / 7)
        out.write(f"G1 X{x:.3f} Y{y:.3f} Z{z:.3f} F{3000 if arm else 300}\n".encode())
    return out.getvalue()


def peak_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def peaks(kind: str, *sizes: int) -> list[int]:
    """Peak memory in KB after programs of these sizes, one after the other in one process."""
    command = [sys.executable, "-c", MEASURE, kind, *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3600)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize("kind", ["arm", pytest.param("machine", marks=pytest.mark.soak)])
def test_memory_of_a_line_is_bounded(kind: str) -> None:
    """About a twentieth of a million lines; program, lines of the report and JSON together."""
    small, large = peaks(kind, SMALL, LARGE)
    assert (large - small) * 1024 < BYTES_PER_LINE * (LARGE - SMALL)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["arm", "machine"])
def test_memory_of_a_million_lines(kind: str) -> None:
    (peak,) = peaks(kind, FULL)
    assert peak / 1024 < MOST_MB


# ── reports ─────────────────────────────────────────────────────────────────────────────────────


def as_written(document: object) -> bytes:
    """The plain way: the whole document at once."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def test_json_written_piece_by_piece_is_that_of_the_whole_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_stream, "AT_ONCE", 7)
    report = validate_text(contour(3000, 60), cell("g60_welding"))
    empty = validate_text("", cell("g60_welding"))
    for each in (report, empty):
        assert b"".join(indented(each.listed_document())) == as_written(each.document())
    both = [report.listed_document(), empty.listed_document()]
    plain = [report.document(), empty.document()]
    assert b"".join(indented_list(both)) == as_written(plain)
    cycle = as_document(CycleTimeEstimator(machine()).estimate("G21\nG1 X1 F100\nQ\nG4 P1\n" * 9))
    assert len(json.loads(b"".join(encoded(cycle)))["lines"]) == 36


def test_findings_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "G21\n" + "G1 X1\n" * 30 + "G1 X2 F300\n" * 40
    every = validate_text(text, cell("grblhal_6axis"))
    monkeypatch.setattr(judge, "MOST_FINDINGS", 12)
    few = validate_text(text, cell("grblhal_6axis"))
    assert not few.passed
    assert few.violations == every.violations[:12]
    assert few.omitted == len(every.violations) - 12
    assert "the report has the first 12 violations; 18 more were counted" in few.notes
    asked = validate_text(text, cell("grblhal_6axis"), options=Options(max_violations=20))
    assert (asked.violations, asked.omitted) == (every.violations[:20], few.omitted - 8)


def test_a_file_that_is_no_program_is_one_violation_beyond_the_limit_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge, "MOST_FINDINGS", 12)
    report = validate_text("what is this\n" * 50, cell("grblhal_6axis"))
    assert "50 of 50 lines cannot be read" in report.violations[0].message
    assert (len(report.violations), report.omitted) == (1, 0)


def test_the_page_has_a_bounded_number_of_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_report, "MOST_FINDINGS", 10)
    monkeypatch.setattr(html_report, "MOST_ROWS", 15)
    where = cell("grblhal_6axis")
    report = validate_text("G21\n" + "G1 X1\n" * 30 + "G1 X2 F300\n" * 40, where)
    text = html_report.page([report], where.environment(), figures_of(where))
    (shown,) = json.loads(text.split('type="application/json">')[1].split("</script>")[0])[
        "reports"
    ]
    assert (len(shown["findings"]), len(shown["lines"])) == (10, 15)
    assert shown["notes"][0] == "20 more findings are not shown: --json has them all"
