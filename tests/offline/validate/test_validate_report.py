"""The report: times, skipped lines, clearance, number of violations."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.offline.validate.cases import PROGRAMS, cell, proved, proved_text

import understudy
from understudy.app.build import build_cell
from understudy.app.validate import Cancelled, Options, validate_text
from understudy.config import CellConfig
from understudy.errors import ConfigError
from understudy.offline.cycle_time import CycleTimeEstimator
from understudy.offline.validate.report import KINDS
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.offline import arm_setup
from understudy.units import MM, NS_PER_MS, seconds

START = "G21 G90 G94\nG0 X450 Y-100 Z450 A180 B0 C0\n"
SHIPPED = PROGRAMS.parents[3] / "src" / "understudy" / "catalog" / "programs" / "seam.gcode"
SQUARE = PROGRAMS / "sound" / "square.gcode"


# ── one truth about time ──


def run_live(text: str, config: CellConfig) -> tuple[ArmController, list[tuple[int, int]], int]:
    """Runs the program in a cell; start of motion of each line (ns, line), and the end."""
    built = build_cell(config.without_rules())
    arm = built.components["g60"]
    assert isinstance(arm, ArmController)
    arm.connect(0)
    arm.enable(0)
    for line in text.splitlines():
        assert arm.send_gcode(line, 0) is None
    begun: list[tuple[int, int]] = []
    end = 0
    while arm.busy() and (at := built.next_wake()) is not None:
        built.advance(at)
        end = at
        number = arm.status(at).line
        if number and (not begun or begun[-1][1] != number):
            begun.append((at, number))
    return arm, begun, end


@pytest.mark.parametrize(
    ("program", "name"), [(SHIPPED, "g60_welding"), (PROGRAMS / "sound/two_seams.gcode", "")]
)
def test_report_cycle_time_and_running_cell_agree(program: Path, name: str) -> None:
    text = program.read_text()
    config = cell(name or "g60_welding")
    report = validate_text(text, config)
    cycle = CycleTimeEstimator(arm_setup(config)).estimate(text)
    assert report.total_s == cycle.total_s
    assert [(r.start_s, r.end_s) for r in report.lines] == [
        (r.start_s, r.end_s) for r in cycle.lines
    ]
    arm, begun, end = run_live(text, config)
    delay = NS_PER_MS  # of a command, in this cell
    starts = {row.line: row.start_s for row in report.lines}
    for at, line in begun:
        if report.lines[line - 1].kind != "dwell":
            assert seconds(at - delay) == pytest.approx(starts[line], abs=1e-6)
    assert seconds(end - delay) == pytest.approx(report.total_s, abs=1e-6)
    assert arm.tally(end).distance == pytest.approx(report.distance_m, rel=1e-3)
    assert arm.tally(end).gcode_executed == report.gcodes_executed


@pytest.mark.parametrize(
    "text", ["G0 A20 C30\nG28 A10\nG0 C5\n", "G0 A20 C30\nG30 A10\nG0 C5\nG28\nG30\n"]
)
def test_moves_to_stored_positions_take_the_time_of_the_running_cell(text: str) -> None:
    config = cell("g60_welding")
    _, _, end = run_live(text, config)
    assert seconds(end - NS_PER_MS) == pytest.approx(validate_text(text, config).total_s, abs=1e-6)


def test_a_program_in_the_grblhal_dialect_takes_the_time_of_the_running_cell() -> None:
    zigzag = "".join(f"G1 X{10 + k} Y{k % 5} A{k}\n" for k in range(30))
    text = f"G21 G90\nG1 X10 F6000\n{zigzag}G28\nG1 X5\n"
    report = validate_text(text, cell("default"), options=Options(dialect="grblhal"))
    assert report.passed, report.violations
    running = understudy.load_cell("default")
    client = running.connect("g60.grblhal")
    begun = running.now
    for line in text.splitlines():
        assert b"ok" in client.ask(f"{line}\n".encode())
    while b"<Idle" not in client.ask(b"?"):
        running.advance(0.001)
    assert running.now - begun == pytest.approx(report.total_s, abs=0.003)


def test_the_parts_of_the_cycle_time_add_up() -> None:
    report = proved(SQUARE)
    parts = (report.cycle_time[name] for name in ("motion_s", "process_s", "dwell_s", "io_s"))
    assert report.total_s == pytest.approx(sum(parts))
    assert report.lines[-1].end_s == pytest.approx(report.total_s)


# ── lines that cannot be run ──


def test_lines_after_a_skipped_one_are_not_proven_until_the_next_complete_target() -> None:
    report = proved_text(
        START + "G1 X1300 F6000\n"  # 3: out of reach
        "G1 Z440\n"  # 4: not everything is said
        "G91 G1 X1 Y1 Z1 A0 B0 C0\n"  # 5: not absolute
        "G90 G1 X460 Y-90 Z445 A180 B0 C0\n"  # 6: complete
        "G1 Y-80\n"
    )
    assert [(v.line, v.kind) for v in report.violations] == [(3, "unreachable")]
    assert [row.line for row in report.lines if not row.proven] == [3, 4, 5]


@pytest.mark.parametrize("complete", ["G0 A0 B0 C0 U0 V20 W0", "G28"])
def test_joints_and_home_are_complete_targets(complete: str) -> None:
    report = proved_text(f"G21\nG0 A171\nG0 B1\n{complete}\nG0 B2\n")
    assert [row.line for row in report.lines if not row.proven] == [2, 3]


def test_lines_after_an_unreadable_line_are_not_proven() -> None:
    report = proved_text(START + "G1 Z44§ F600\nG0 Z450\nG0 X450 Y-100 Z450 A180 B0 C0\n")
    assert [row.line for row in report.lines if not row.proven] == [3, 4]


def test_lines_after_a_refused_wait_are_proven() -> None:
    report = proved_text("M66 P4 L3\nG0 A10\n")
    assert [row.line for row in report.lines if not row.proven] == [1]


def test_every_violation_is_reported_or_counted() -> None:
    text = "G21\n" + "G0 A171\n" * 7
    assert len(proved_text(text).violations) == 7
    few = proved_text(text, options=Options(max_violations=3))
    assert (len(few.violations), few.omitted, few.passed) == (3, 4, False)
    assert few.document()["violations_omitted"] == 4


# ── feed ──


def test_rapids_have_no_speed_violations() -> None:
    assert proved_text("G21\nG0 A90\nG0 X450 Y0 Z450 A180 B0 C0\n").passed


def test_a_path_may_begin_and_end_in_a_singular_pose() -> None:
    report = proved_text("G21 G28\nG1 X700 Y0 Z950 F12000\nG1 X770 Y0 Z995\nG28\n")
    assert report.passed, report.violations


def test_a_feed_that_the_controller_would_reduce_is_a_violation() -> None:
    fast = proved_text(START + "G1 Y100 F120000\n")
    (found,) = fast.violations
    assert (found.kind, found.line, found.joint) == ("velocity", 3, "J1")
    assert fast.lines[2].start_s <= found.time_s <= fast.lines[2].end_s
    assert proved_text(START + "G1 Y100 F12000\n").passed


BESIDE_A_SINGULAR_POSE = """G21 G90 G94
G0 A-13.37 B-11.09 C18.26 U-81.51 V-13.46 W-99.91
G91 G1 Y200 F{feed}
"""


@pytest.mark.parametrize(("feed", "kinds"), [(60, []), (600, []), (6000, ["singularity"])])
def test_a_line_near_a_singular_pose_is_checked_at_its_feed(feed: int, kinds: list[str]) -> None:
    report = proved_text(BESIDE_A_SINGULAR_POSE.format(feed=feed))
    assert [found.kind for found in report.violations] == kinds, report.violations
    assert report.total_s > 200 / feed * 60


# ── clearance ──


def test_a_close_line_passes_and_is_a_violation_with_a_clearance() -> None:
    text = "G21\nG0 X450 Y-100 Z450 A180 B0 C0\nG1 Z330 F3000\nG1 Z450\n"
    loose = proved_text(text, "g60_welding")
    assert loose.passed
    strict = proved_text(text, "g60_welding", Options(clearance_mm=5.0))
    assert {v.kind for v in strict.violations} == {"collision"}
    assert {v.line for v in strict.violations} == {3, 4}
    assert "closer than 5 mm" in strict.violations[0].message


def test_a_line_within_0_1_mm_is_a_warning_and_passes() -> None:
    """The nozzle ends 15.5 mm above the tip: 0.05 mm over the fixture of 344 mm."""
    text = "G21\nG0 X450 Y-100 Z450 A180 B0 C0\nG1 Z328.55 F3000\nG1 Z450\n"
    report = proved_text(text, "g60_welding")
    assert report.passed
    assert {(w.kind, w.line) for w in report.warnings} == {("collision", 3), ("collision", 4)}
    assert [row.proven for row in report.lines] == [True, True, False, False]


def test_a_contact_has_parts_point_depth_and_last_line() -> None:
    (found,) = proved(PROGRAMS / "flawed/wrong_height.gcode").document()["violations"]
    assert found["objects"] == ["torch.nozzle", "fixture"]
    assert found["depth_mm"] == pytest.approx(8.5, abs=0.1)
    assert found["point_mm"][2] == pytest.approx(344.0, abs=0.1)
    assert found["last_line"] == 6


def test_with_stops_a_note_describes_the_check() -> None:
    report = proved(SQUARE, Options(with_stops=True))
    assert report.passed
    assert any(note.startswith("stops: ") for note in report.notes)


# ── around ──


def test_progress_is_reported_and_can_cancel() -> None:
    reports: list[tuple[int, int]] = []
    text = "G21\n" + "G0 A1\nG0 A0\n" * 300

    def tell(done: int, total: int) -> bool:
        reports.append((done, total))
        return True

    validate_text(text, cell("bare"), progress=tell)
    assert reports == [(200, 602), (400, 602), (600, 602)]
    with pytest.raises(Cancelled, match="after line 200 of 602"):
        validate_text(text, cell("bare"), progress=lambda done, total: False)


def test_the_document_has_the_keys_of_the_contract() -> None:
    document = proved(SQUARE).document()
    assert {
        "program", "cell", "verdict", "cycle_time", "distance_mm", "gcodes_executed", "wall_s",
        "times_real_time", "lines", "violations",
    } <= document.keys()  # fmt: skip
    assert set(document["lines"][0]) == {
        "line", "text", "start_s", "end_s", "clearance_mm", "seen_mm", "proven",
    }  # fmt: skip
    assert document["distance_mm"] == pytest.approx(proved(SQUARE).distance_m / MM)


@given(st.text(alphabet="GMXYZABCUVWFPQLTIJKS0123456789.- \n(;%/#é", max_size=120))
def test_any_text_gives_a_report(text: str) -> None:
    report = proved_text(text)
    assert all(each.kind in KINDS for each in report.violations)
    assert report.document()["verdict"] in ("pass", "fail")


# ── from outside ──


def test_the_library_accepts_a_path_or_a_text() -> None:
    import understudy

    by_path = understudy.validate(SHIPPED, "g60_welding")
    by_name = understudy.validate(str(SHIPPED), "g60_welding")
    by_text = understudy.validate(SHIPPED.read_text(), cell("g60_welding"))
    assert by_path.passed
    assert by_path.program == by_name.program == str(SHIPPED)
    assert by_path.total_s == by_name.total_s == by_text.total_s


@pytest.mark.parametrize("name", ["g60_welding", "default"])
def test_the_shipped_program_is_proven_on_the_shipped_cells(name: str) -> None:
    report = validate_text(SHIPPED.read_bytes(), cell(name))
    assert report.passed, report.violations
    assert report.least_clearance is not None
    assert report.least_clearance > 5 * MM


def test_an_unknown_tool_is_unsupported() -> None:
    (found,) = proved_text("T7 M6\n").violations
    assert (found.line, found.kind) == (1, "unsupported")


def test_a_probe_without_contact_is_a_violation() -> None:
    (found,) = proved_text(START + "G38.2 Z440 F600\n").violations
    assert (found.line, found.kind) == (3, "io")
    assert proved_text(START + "G38.3 Z440 F600\n").passed


PROBING = "G21 G90 G94\nG0 X450 Y0 Z400 A180 B0 C0\nG38.2 Z300 F3000\n"
"""Onto the fixture, whose top is at 344 mm."""


@pytest.mark.parametrize(
    "after", ["G91\nG1 Z50 F3000\n", "G38.5 Z400 F600\n", "G1 Z400 F3000\nG38.3 Z360 F3000\n"]
)
def test_a_probe_ends_where_it_touches_as_in_the_running_cell(after: str) -> None:
    config = cell("g60_welding")
    report = validate_text(PROBING + after, config)
    assert report.violations == ()
    arm, _, end = run_live(PROBING + after, config)
    assert not arm.status(end).error
    assert seconds(end - NS_PER_MS) == pytest.approx(report.total_s, abs=1e-6)


def test_a_probe_in_joints_ends_where_it_touches() -> None:
    text = "G0 X0 Y20 Z40\nG38.2 Y60 F600\nG91\nG1 Y-5 F600\n"
    report = validate_text(text, cell("default"), options=Options(dialect="grblhal"))
    assert [each.kind for each in report.violations if each.kind == "io"] == []
    assert report.lines[1].end_s - report.lines[1].start_s < 4.0, "40° at 10°/s would be 4 s"
    assert report.lines[3].end_s - report.lines[3].start_s == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("line", "said"), [("G38.2 Z300 F600", "before the move"), ("G38.3 Z300", "before the move")]
)
def test_a_probe_that_touches_before_it_moves_is_a_violation(line: str, said: str) -> None:
    (found,) = proved_text(PROBING + line + "\n", "g60_welding").violations
    assert (found.line, found.kind) == (4, "io")
    assert said in found.message


def test_a_violation_of_m67_is_reported_on_its_own_line() -> None:
    (found,) = proved_text("M67 E1 Q-1\nG1 A10 F3000\n").violations
    assert (found.line, found.kind) == (1, "io")


def test_unchecked_lines_are_not_proven() -> None:
    """In a cell whose collision checks are off, and in one with a list of pairs."""
    off = cell("unchecked")
    report = validate_text("G21\nG0 A10\n", off)
    assert [row.proven for row in report.lines] == [True, False]
    assert any("collision checks are off" in note for note in report.notes)
    listed = validate_text("G21\nG0 A10\n", cell("listed_pairs"))
    assert any(
        "does not list, so these links are not checked: 0-2" in note for note in listed.notes
    )


def test_a_value_has_enough_digits_to_differ_from_its_limit() -> None:
    limit, feed = proved_text("G0 A170.001\nG1 A100 F7201\n").violations
    assert "J1 = 170.001° is outside -170.0°…170.0°" in limit.message
    assert "would need 120.02 deg/s at this feed, 120 are allowed" in feed.message


def test_a_program_that_waits_for_its_arc_reports_its_end_at_once() -> None:
    text = START + "M7\nM3\nG1 Z440 F600\nM2\n"
    built = build_cell(cell("g60_welding").without_rules())
    arm = built.components["g60"]
    assert isinstance(arm, ArmController)
    reports: list[tuple[int, bool]] = []
    arm.on_status(lambda status: reports.append((status.at, status.moving)))
    arm.connect(0)
    arm.enable(0)
    for line in text.splitlines():
        assert arm.send_gcode(line, 0) is None
    while arm.busy() and (at := built.next_wake()) is not None:
        built.advance(at)
    at, moving = reports[-1]
    assert not moving
    total = validate_text(text, cell("g60_welding")).total_s
    assert seconds(at - NS_PER_MS) == pytest.approx(total, abs=1e-6)


def test_an_arc_left_on_is_reported_at_the_end_of_the_program() -> None:
    """It is not reported at the later time when the arc goes out."""
    text = START + "M7\nM3\nG1 Z440 F600\n"
    for end in ("", "M2\n"):
        report = proved_text(text + end, "g60_welding")
        (found,) = report.violations
        last = report.lines[4]
        assert found.time_s == pytest.approx(last.end_s, abs=1e-6)


def test_a_byte_order_mark_is_ignored() -> None:
    marked = "\ufeffG21\nG0 A10\n"
    assert proved_text(marked).passed
    assert validate_text(marked.encode(), cell("bare")).lines[0].text == "G21"
    assert validate_text("\ufeffG28\n", cell("kuka_eki")).passed


def test_feed_zero_is_a_syntax_violation() -> None:
    (found,) = validate_text("G1 X10 F0\n", cell("kuka_eki")).violations
    assert (found.line, found.kind) == (1, "syntax")


def test_a_long_overload_is_reported_once_at_its_worst_time() -> None:
    text = "G0 A0 B60 C-60\nG1 B50 F3\n"
    found = [each for each in proved_text(text, "heavy").violations if each.line == 2]
    assert [each.kind for each in found] == ["torque"]
    back = proved_text("G0 B50 C-60\nG1 B60 F3\n", "heavy").violations
    assert back[-1].line == 2
    assert back[-1].time_s > 190.0, "the worst is at its end"


PLAIN = START + "G1 Z440 F6000\n"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.rstrip("\n").encode(),
        PLAIN.replace("G1", "(" + "x" * 1_000_000 + ") G1").encode(),
        PLAIN.replace("G1 ", "G1 " + " " * 1_000_000).encode(),
    ],
    ids=["CRLF", "CR", "marked", "no last line end", "1 MB of remark", "1 MB of spaces"],
)
def test_encoding_and_line_ends_change_nothing(data: bytes) -> None:
    report = validate_text(data, cell("bare"))
    plain = validate_text(PLAIN, cell("bare"))
    assert report.passed
    assert [(r.line, r.end_s, r.clearance) for r in report.lines] == [
        (r.line, r.end_s, r.clearance) for r in plain.lines
    ]


@pytest.mark.parametrize("text", ["", "\n\n\n", "%\n%\n", "(nothing)\n", "M5\n"])
def test_a_program_without_motion_passes_with_a_note(text: str) -> None:
    report = proved_text(text)
    assert report.passed
    assert report.total_s == 0.0
    assert "no line of this program moves the robot" in report.notes


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("G1 Z440 F0.000000000000001", []),
        ("G93\nG1 Z440 F0.00000000000001", []),
        ("G4 P99999999", []),
        ("G2 X460 R99999999999 F600", ["syntax"]),
        ("G3 X450 Y-100 I10 P100000 F600", ["syntax"]),
        ("G2 X450 Y-100 I99999999999999 F600", ["syntax"]),
        ("G0 X99999999", ["unreachable"]),
    ],
)
def test_absurd_numbers_are_reported_quickly(line: str, kinds: list[str]) -> None:
    report = proved_text(START + line + "\n")
    assert [each.kind for each in report.violations] == kinds
    assert report.document()["cycle_time"]["total_s"] >= 0.0


def test_a_line_of_a_megabyte_is_one_violation() -> None:
    (found,) = proved_text("G1 " + "X1 " * 350_000 + "\nG0 A10\n").violations
    assert (found.line, found.kind) == (1, "syntax")
    assert len(found.message) < 200


# ── as a library ──


def test_a_missing_file_is_not_read_as_a_text() -> None:
    with pytest.raises(ConfigError, match=r"wled\.gcode: cannot be read"):
        understudy.validate("wled.gcode")


@pytest.mark.parametrize(
    "text", ["G0 A1.5", "G1A1.B2.F600", "G0 A1 ; as in weld.gcode", b"G0 A1\n", "", "(by a.b)"]
)
def test_a_single_line_is_read_as_a_text(text: str | bytes) -> None:
    assert understudy.validate(text).passed


def test_a_shipped_program_is_found_by_its_name() -> None:
    report = understudy.validate("seam.gcode", "g60_welding")
    assert (report.program, report.passed) == ("seam.gcode", True)


@pytest.mark.parametrize("clearance", [-1.0, float("nan"), float("inf")])
def test_a_wrong_clearance_is_refused(clearance: float) -> None:
    with pytest.raises(ConfigError, match="clearance_mm"):
        Options(clearance_mm=clearance)


def test_max_violations_must_be_above_zero() -> None:
    with pytest.raises(ConfigError, match="max_violations"):
        Options(max_violations=0)
