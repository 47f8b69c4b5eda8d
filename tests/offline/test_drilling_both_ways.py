"""Random drilling programs: the validated path and time are those of the running robot."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.offline.test_both_ways import CONFIG, LONGEST_NS, TOLERANCE_S, bare

from understudy.app.build import build_cell
from understudy.app.validate import Options, validate_text
from understudy.errors import Refused
from understudy.motion.path import Floats
from understudy.offline.robot import offline_robot
from understudy.offline.validate.report import Report
from understudy.offline.walk import PlannedMotion, walk
from understudy.simulation.cell import Cell
from understudy.units import nanoseconds, seconds
from understudy.wire.exchange import InProcessCell

FEW = settings().max_examples // 3
SAMPLES = 40
AXIS_TOLERANCE = 1e-4
"""mm, deg or rad: between two times a microsecond apart an axis moves less."""
SPINDLE_LEFT_ON = {"process"}


class Course(NamedTuple):
    """Seconds of a program; positions at equal fractions of them; why a line was refused."""

    ends: float
    positions: Floats
    refused: str = ""


def fractions(ends: float) -> Floats:
    return np.linspace(0.0, ends, SAMPLES)


# ── programs ────────────────────────────────────────────────────────────────────────────────────

LENGTHS = st.integers(-40, 40).map(lambda quarter: quarter / 4)
DEPTHS = st.integers(-40, 8).map(lambda quarter: quarter / 4)
HEIGHTS = st.integers(-4, 24).map(lambda quarter: quarter / 4)
PECKS = st.integers(3, 30).map(lambda quarter: quarter / 4)
DWELLS = st.sampled_from([0, 0.1, 0.25])
PLANES = {"G17": "XYZ", "G18": "ZXY", "G19": "YZX"}
"""The letters of the plane, and the drilling axis."""
OWN_WORDS = {"G73": "Q", "G83": "Q", "G82": "P", "G86": "P", "G89": "P"}


@st.composite
def holes(draw: st.DrawFn, plane: str, cycles: Sequence[str]) -> list[str]:
    """A cycle with all its words, and lines that repeat it with some of them."""
    cycle = draw(st.sampled_from(cycles))
    first, second, depth = tuple(PLANES[plane])
    words = {first: LENGTHS, second: LENGTHS, depth: DEPTHS, "R": HEIGHTS}
    words |= {letter: {"Q": PECKS, "P": DWELLS}[letter] for letter in OWN_WORDS.get(cycle, "")}
    words["L"] = st.integers(1, 3)
    lines = []
    for number in range(draw(st.integers(1, 4))):
        given = [letter for letter in words if number == 0 or draw(st.booleans())]
        text = " ".join(f"{letter}{draw(words[letter]):g}" for letter in given if letter != "L")
        repeated = f" L{draw(words['L'])}" if "L" in given and draw(st.booleans()) else ""
        lines.append(f"{draw(st.sampled_from(['G98 ', 'G99 ', '']))}{cycle} {text}{repeated}")
    return lines


@st.composite
def drilling(draw: st.DrawFn, cycles: Sequence[str], between: Sequence[str]) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        plane = draw(st.sampled_from(list(PLANES)))
        lines += [plane, *draw(holes(plane, cycles)), "G80"]
        lines += draw(st.lists(st.sampled_from(between), max_size=2))
    return lines


COMMON = ["G90", "G91", "G98", "G99", "M3 S500", "M5", "G4 P0.2", "F700", "G20", "G21"]
CYCLES = ["G73", "G81", "G82", "G83", "G85", "G86", "G89"]
"""On the machine the last three move nothing."""
MACHINE_BETWEEN = [
    *COMMON,
    "G0 Z5",
    "G0 X3 Y-2 Z4",
    "G10 L2 P1 X2 Z1",
    "G1 X1 Y1",
    "G92 Z0",
    "G51 X2 Z0.5",
    "G50",
]
ARM_BETWEEN = [*(line for line in COMMON if line != "G20"), "G0 Z6", "G1 X2 Y-2", "G92.1"]


# ── both ways ───────────────────────────────────────────────────────────────────────────────────


def validated(lines: Sequence[str], robot: str) -> Report:
    return validate_text("\n".join(lines), CONFIG, options=Options(robot=robot))


def planned(lines: Sequence[str], robot: str, ends: float) -> Course:
    """The offline course: positions of the plans of the validation's own walk."""
    setup = offline_robot(CONFIG, robot).setup()
    assert setup is not None
    plans = [each.plan for each in walk("\n".join(lines), setup) if isinstance(each, PlannedMotion)]
    stands = np.array(setup.start or np.zeros(6))
    positions = []
    for time in fractions(ends):
        begun = [plan for plan in plans if plan.begins <= time]
        positions.append(begun[-1].positions(np.array([time]))[0] if begun else stands)
    return Course(ends, np.array(positions))


def follow(cell: Cell, robot: Any, advance: Any, position: Any, ends: float) -> Course:
    """The running course: positions at the times of the plan, then to the end."""
    positions = []
    for time in fractions(ends):
        advance(nanoseconds(time))
        positions.append(position())
    now = nanoseconds(ends)
    while robot.busy() and (at := cell.next_wake()) is not None:
        assert at < LONGEST_NS, "the program does not end"
        advance(at)
        now = at
    return Course(seconds(now), np.array(positions))


def run_machine(lines: Sequence[str], ends: float) -> Course:
    built = build_cell(CONFIG)
    cell, machine = InProcessCell(built), cast(Any, built.components["machine"])
    client = cell.connect("machine.grblhal")
    client.received()
    client.say("".join(line + "\n" for line in lines).encode())
    here = lambda: machine.firmware.runner.queue.plan.positions(np.array([cell.now]))[0]  # noqa: E731
    course = follow(built, machine, cell.advance_to, here, ends)
    answers = client.received().decode().split()
    return course._replace(refused=" ".join(each for each in answers if each != "ok"))


def run_arm(lines: Sequence[str], ends: float) -> Course:
    cell = build_cell(CONFIG)
    arm: Any = cell.components["arm"]
    arm.connect(0)
    arm.enable(0)
    for number, line in enumerate(lines, 1):
        answer = arm.send_gcode(line, 0)
        assert not isinstance(answer, Refused), bare(answer.reason, number, line)
    here = lambda: arm.view(cell.now).q  # noqa: E731
    course = follow(cell, arm, cell.advance, here, ends)
    return course._replace(refused=arm.status(cell.now).error_message)


def without_refused(lines: list[str], robot: str) -> tuple[list[str], Report]:
    """The program up to its first violation, and the report on it."""
    report = validated(lines, robot)
    wrong = [each.line for each in report.violations if each.kind not in SPINDLE_LEFT_ON]
    if wrong:
        lines = lines[: wrong[0] - 1]
        report = validated(lines, robot)
    return lines, report


def agree(report: Report, lines: Sequence[str], robot: str, run: Any) -> None:
    expected = planned(lines, robot, report.total_s)
    course = run(lines, report.total_s)
    assert course.refused == ""
    assert course.ends == pytest.approx(report.total_s, abs=TOLERANCE_S)
    assert np.abs(course.positions - expected.positions).max() < AXIS_TOLERANCE


@settings(max_examples=FEW)
@given(drilling(CYCLES, MACHINE_BETWEEN))
def test_a_machine_drills_as_it_was_validated(lines: list[str]) -> None:
    head = ["G4 P0.1", "G21 G90 G94 G17 F300", "G0 Z5"]
    lines, report = without_refused([*head, *lines], "machine")
    agree(report, lines, "machine", run_machine)


@settings(max_examples=FEW)
@given(drilling(CYCLES, ARM_BETWEEN))
def test_an_arm_drills_as_it_was_validated(lines: list[str]) -> None:
    head = ["G4 P0.1", "G21 G90 G94 G17 F3000", "G10 L2 P1 X450 Y0 Z500", "G54"]
    head += ["G0 X0 Y0 Z5 A180 B0 C0"]
    lines, report = without_refused([*head, *lines], "arm")
    agree(report, lines, "arm", run_arm)
