"""Cycle times: equal to the firmware's, and the lines add up to the total."""

import tracemalloc
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.plain_motion import Block, plain_blocks, plain_entries, plain_trapezoid
from tests.offline.setups import GOLDEN, arm, machine, program_text

from understudy.config import load_config
from understudy.gcode.program import ProgramLine
from understudy.offline.cycle_time import CycleTime, CycleTimeEstimator
from understudy.offline.setup import Mover
from understudy.offline.walk import PlannedMotion, Standstill, walk
from understudy.robots.arm.offline import motion_setup

TRACES = sorted((GOLDEN / "traces").glob("*.csv"))
STOP = 0.1
"""What it costs the golden machine to stop and start again at 50 mm/s."""


def estimate(program: str, more: str = "") -> CycleTime:
    return CycleTimeEstimator(machine(more=more)).estimate(program)


def seconds(*lines: str, more: str = "") -> float:
    found = estimate("\n".join(("G21 G90 F3000", *lines)), more)
    assert not found.violations
    return found.motion_s + found.process_s


@pytest.mark.parametrize("lines", ["G91 G0 X0", "G91 G0 X0\nG4 P1\nM3\nG1 X0 F100\nM5"])
def test_lines_without_a_path_take_no_time_and_keep_their_order(lines: str) -> None:
    found = CycleTimeEstimator(arm()).estimate(lines)
    assert found.motion_s == found.process_s == 0.0
    assert not found.violations
    assert [row.line for row in found.lines] == list(range(1, len(lines.splitlines()) + 1))


# ── the firmware ──


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_positions_agree_with_the_firmware(trace: Path) -> None:
    program, _, settings = trace.stem.split("__")
    rows = np.loadtxt(trace, delimiter=",", skiprows=1)
    (run,) = (
        event
        for event in walk(program_text(program), machine(settings))
        if isinstance(event, PlannedMotion)
    )
    off = np.abs(run.plan.positions(rows[:, 0]) - rows[:, 1:7]).max(axis=0)
    assert (off[:3] < 0.05).all()
    assert (off[3:] < 0.1).all()


FIRMWARE = {
    # Programs run by the real firmware with the settings s1_base and these; seconds in motion.
    "arcs, by centre and radius, in all planes": (
        "", 3.23015,
        "G21 G90\nG2 X10 Y0 I5 J0 F3000\nG3 X0 Y0 R5\nG2 I4\nG3 X5 Y5 R-5\nG2 X0 Y0 Z2 I-5 J0\n"
        "G18 G2 X4 Z2 I2 K0\nG19 G3 Y3 Z5 J0 K3\nG17 G91 G3 X2 Y2 J2\nG90 G2 X0 Y0 R10 Z0 A10",
    ),
    "arcs under G93": (
        "", 2.25477, "G21 G90 G93\nG2 X10 Y0 I5 J0 F10\nG3 X0 Y0 I-5 F40\nG2 I0.01 F30",
    ),
    "arcs of several turns": (
        "", 3.70530, "G21 G90\nG2 X10 Y0 Z6 I5 J0 P3 F2400\nG3 X10 Y0 Z0 I-5 P2",
    ),
    "several turns under G93": (
        "", 3.21326, "G21 G90 G93\nG2 X10 Y0 Z6 I5 J0 P3 F20\nG1 X0 Z0 F60",
    ),
    "coarse arcs": (
        "$12=0.1\n", 4.76443,
        "G21 G90\nG2 X10 Y0 I5 J0 F3000\nG3 X0 Y0 I-5\nG2 I2 F2000\nG3 I20 F6000",
    ),
    "arcs with rounded corners": (
        "$12=0.02\n$11=0.05\n", 2.85469, "G21 G90\nG2 I30 F6000\nG3 I2\nG2 X4 I2\nG3 X0 I-2",
    ),
    "the feed of linear axes": (
        "$701=1\n", 6.72957,
        "G21 G90\nG1 X20 A90 F1200\nG1 A0 F3000\nX0\nG0 X10 A20\nG93 G1 X0 A0 F30\n"
        "G94 G1 Y10 A10 F600",
    ),
    "the feed of linear axes in arcs": (
        "$701=1\n", 0.69009, "G21 G90\nG2 X10 Y0 I5 J0 A20 F1200\nG3 X0 Y0 I-5 A0",
    ),
    "offsets": (
        "", 2.62008,
        "G21 G90\nG1 X10 F3000\nG55 X20\nG54 X30\nG92 X0\nX10\nG92.1\nX50\nG43.1 Z1\nX60\nG49\n"
        "X70\nG10 L2 P1 X1\nX80\nG10 L2 P3 X1\nX90",
    ),
    "homes": (
        "", 2.01396,
        "G21 G90\nG1 X10 F3000\nG28\nG1 X10 Y10\nG28 X5\nG30\nG0 X1 Y2 Z3\nG1 Z0 F600",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRMWARE)
def test_motion_takes_as_long_as_in_the_firmware(name: str) -> None:
    more, expected, program = FIRMWARE[name]
    assert estimate(program, more).motion_s == pytest.approx(expected, rel=1e-3)


# ── where motion ends ──


def test_words_that_do_not_end_the_motion() -> None:
    straight = seconds("G1 X10", "X20")
    for between in ("M62 P1", "M64 P1", "M67 E1 Q5", "M68 E0 Q1", "T2", "M61 Q3", "M48", "M50 P0",
                    "G28.1", "(MSG,hello)", "G10 L2 P3 X1", "N10 G17", "M9", "M5",
                    "G54"):  # fmt: skip
        assert seconds("G1 X10", between, "X20") == straight, between


def test_words_that_end_the_motion() -> None:
    straight = seconds("G1 X10", "X20")
    for between in ("M3 S1", "M7", "M8", "G4 P0", "M66 P1 L0", "M66 P1 L3 Q2", "M6 T1", "M0",
                    "M1", "M60", "M49", "M53 P0", "G55", "G92 Y5", "G43.1 Z1"):  # fmt: skip
        assert seconds("G1 X10", between, "X20") == pytest.approx(straight + STOP), between


def test_a_probe_starts_and_ends_at_rest() -> None:
    assert seconds("G1 X10", "G38.3 X20", "G1 X30") == pytest.approx(
        seconds("G1 X10", "X20", "X30") + 2 * STOP
    )


def test_switching_to_the_present_state_does_not_end_the_motion() -> None:
    once = seconds("M3 S100", "M8", "G1 X10", "X20")
    assert seconds("M3 S100", "M8", "G1 X10", "M3", "M8", "X20") == once
    assert seconds("M3 S100", "M8", "G1 X10", "S200", "X20") == pytest.approx(once + STOP)


def test_without_bit_8_of_10_a_new_offset_does_not_end_the_motion() -> None:
    lines = ("G1 X10", "G55", "X20")
    assert seconds(*lines, more="$10=255\n") == pytest.approx(seconds(*lines) - STOP)


# ── the sum ──

WELD = """G21 G90
G0 X10
M3 S100
G1 X40 F600
X70
M5
G0 X0
M66 P2 L3 Q5
G4 P0.25
M62 P1
M30"""


def test_time_is_divided_into_motion_process_dwell_and_io() -> None:
    found = estimate(WELD)
    arc_on = sum(row.seconds for row in found.lines if row.line in (4, 5))
    assert found.process_s == pytest.approx(arc_on)
    assert found.dwell_s == 0.25
    assert found.io_s == 0.0
    assert [row.kind for row in found.lines] == [
        "", "motion", "io", "process", "process", "io", "motion", "io", "dwell", "io", "io",
    ]  # fmt: skip
    assert found.blocks == 4


def test_a_wait_takes_no_time_and_is_listed() -> None:
    (wait,) = estimate(WELD).waits
    assert (wait.line, wait.timeout_s) == (8, 5.0)


def test_the_spindle_delay_is_io_time() -> None:
    assert estimate(WELD, "$394=1.5\n").io_s == 1.5


def test_a_line_with_a_dwell_and_a_move_is_one_row() -> None:
    _, row, after = estimate("G21\nG4 P0.5 G1 X10 F3000\nX20").lines
    assert (row.start_s, row.kind) == (0.0, "dwell")
    assert row.end_s == after.start_s > 0.7


LINES = st.sampled_from([
    "G1 X10", "X20 Y5", "G0 X0", "Y0", "G2 X10 Y0 I5", "G3 X0 Y0 R8", "A90", "G28", "G4 P0.1",
    "M3 S5", "M5", "M8", "M9", "M62 P1", "M66 P1 L3 Q1", "G55", "G54", "", "(nothing)", "G1 Q",
    "G64", "X0.0001", "G93 G1 X3 F20", "G94 F2000", "M0", "F600", "G92 X1", "G1 X30 M30",
])  # fmt: skip


@given(st.lists(LINES, max_size=25))
def test_rows_cover_the_whole_time_without_gaps(lines: list[str]) -> None:
    found = estimate("\n".join(["G21 G90 F3000", *lines]))
    assert found.total_s == pytest.approx(sum(row.seconds for row in found.lines), abs=1e-9)
    now = 0.0
    for row in found.lines:
        assert row.start_s == pytest.approx(now, abs=1e-9)
        now = row.end_s
    assert found.total_s == pytest.approx(now, abs=1e-9)
    assert [row.line for row in found.lines] == sorted({row.line for row in found.lines})


# ── an independent restatement ──


class Pieces:
    """The columns of a path that `plain_entries` and `plain_trapezoid` read."""

    def __init__(self, blocks: list[Block]) -> None:
        self.length = [block.length for block in blocks]
        self.acceleration = [block.acceleration for block in blocks]
        self.junction = [block.junction for block in blocks]
        self.dwell = [0.0] * len(blocks)
        self.block = list(range(len(blocks)))

    def __len__(self) -> int:
        return len(self.length)


Move = tuple[str, int, list[int], set[int]]
MOVE: st.SearchStrategy[Move] = st.tuples(
    st.sampled_from(["G0", "G1", "G1", "G1"]),
    st.sampled_from([60, 600, 3000, 20000]),
    st.lists(st.integers(-2500, 2500), min_size=6, max_size=6),
    st.sets(st.integers(0, 5), min_size=1),
)


@given(
    st.lists(MOVE, min_size=1, max_size=40), st.sampled_from([30, 100]), st.sampled_from([0, 0.05])
)
def test_random_programs_take_the_time_of_the_formulas(
    moves: list[Move], blocks: int, deviation: float
) -> None:
    setup = machine(more=f"$398={blocks}\n$11={deviation}\n")
    steps = [250, 250, 250, 100, 100, 100]
    here, targets, text = [0.0] * 6, [], ["G21 G90 G94"]
    for code, feed, numbers, axes in moves:
        here = [numbers[i] / steps[i] if i in axes else here[i] for i in range(6)]
        targets.append(here)
        words = " ".join(f"{'XYZABC'[i]}{here[i]:.3f}" for i in sorted(axes))
        text.append(f"{code} {words} F{feed}")
    limits = setup.mover.limits
    measured = plain_blocks(
        [0.0] * 6, targets, limits.velocity, limits.acceleration, deviation=deviation, steps=steps
    )
    moving = [k for k, t in enumerate(targets) if t != ([[0.0] * 6, *targets])[k]]
    nominal = [
        block.fastest if moves[k][0] == "G0" else min(moves[k][1] / 60.0, block.fastest)
        for k, block in zip(moving, measured, strict=True)
    ]
    found = CycleTimeEstimator(setup).estimate("\n".join(text))
    assert found.blocks == len(measured)
    pieces = Pieces(measured)
    entries = plain_entries(pieces, nominal, blocks)
    segments = plain_trapezoid(pieces, nominal, entries)
    assert found.motion_s == pytest.approx(segments[-1][1] if segments else 0.0, rel=1e-6)


# ── what cannot be run ──


def test_a_syntax_error_has_line_and_column() -> None:
    found = estimate("G21\nG1 X10 F600\nG1 X20 Y\nX30")
    (violation,) = found.violations
    assert (violation.line, violation.kind) == (3, "syntax")
    assert violation.message.startswith("line 3, column 8: ")
    assert found.lines[2].kind == "refused"
    assert found.blocks == 2


def test_every_line_that_cannot_be_run_is_a_violation() -> None:
    found = estimate("G1 X10\nG64\nG2 X5 F600\nG0 X1")
    assert [(each.line, each.kind) for each in found.violations] == [
        (1, "syntax"),
        (2, "unsupported"),
        (3, "syntax"),
    ]


def test_unreachable_targets_of_an_arm_are_violations() -> None:
    found = CycleTimeEstimator(arm()).estimate("G0 A10\nG0 A200\nG1 X5000 F600\nG0 A0")
    assert [(each.line, each.kind) for each in found.violations] == [
        (2, "joint_limit"),
        (3, "unreachable"),
    ]
    assert "(G0 A200)" in found.violations[0].message
    assert found.blocks == 2


def test_an_arm_accepts_joints_and_poses() -> None:
    found = CycleTimeEstimator(arm()).estimate("G0 B-20 C30 V40\nG1 X700 F1200\nM3\nG1 X720\nM5")
    assert not found.violations
    assert found.motion_s > 0.0
    assert found.process_s == pytest.approx(1.0, rel=0.1)


def test_a_tool_change_mounts_the_tool() -> None:
    mounted = []

    def mount(tool: int) -> Mover:
        mounted.append(tool)
        return arm().mover

    setup = arm()
    with_tools = type(setup)(setup.mover, setup.dialect, mount=mount)
    assert not CycleTimeEstimator(with_tools).estimate("G0 A10\nM6 T2\nG0 A0").violations
    assert mounted == [2]


# ── size ──


def zigzag(lines: int) -> str:
    rows = (f"G1 X{n % 97 * 0.5:.3f} Y{n % 89 * 0.25:.3f} Z{n % 7 * 0.1:.3f}" for n in range(lines))
    return "\n".join(["G21 G90 F3000", *rows])


def cpu_seconds(program: str) -> float:
    began = process_time()
    assert estimate(program).blocks == program.count("\n") - 1
    return process_time() - began


def cost(lines: int) -> tuple[float, float]:
    """CPU seconds and peak bytes, per line."""
    program = zigzag(lines)
    spent = min(cpu_seconds(program) for _ in range(3))  # others use the processor's caches too
    tracemalloc.start()
    estimate(program)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return spent / lines, peak / lines


def assert_in_proportion(lines: int) -> None:
    estimate(zigzag(100))
    few, many = cost(lines // 5), cost(lines)
    assert many[0] < 3.0 * few[0]
    assert many[1] < 1.5 * few[1]


def test_time_and_memory_grow_with_the_program() -> None:
    assert_in_proportion(5_000)


@pytest.mark.soak
def test_time_and_memory_of_a_hundred_thousand_lines() -> None:
    assert_in_proportion(100_000)


def test_the_walk_yields_its_events_in_order() -> None:
    events = walk("G1 X10 F600\nG4 P1\nX20", machine())
    kinds = [type(event) for event in events]
    assert kinds == [
        ProgramLine,
        ProgramLine,
        PlannedMotion,
        Standstill,
        ProgramLine,
        PlannedMotion,
    ]


def test_overloaded_joints_are_reported(tmp_path: Path) -> None:
    cell = tmp_path / "heavy.yaml"
    tools = "{1: {mass_kg: 60, com_mm: [0, 0, 150]}}"
    cell.write_text(f"robots: {{g60: {{kind: arm, tool: 1, tools: {tools}}}}}\n")
    program = "G0 B-60 C60\nG0 B0 C0\n"
    heavy = CycleTimeEstimator(motion_setup(load_config(str(cell)))).estimate(program)
    light = CycleTimeEstimator(motion_setup(load_config("default"))).estimate(program)
    assert [overload.joint for overload in heavy.overloads][:1] == ["J2"]
    assert abs(heavy.overloads[0].torque) > heavy.overloads[0].limit
    assert light.overloads == ()
