"""Long programs: proportional time, nearly all lines decided."""

import math
from time import process_time

from tests.offline.validate.cases import cell

from understudy.app.validate import validate_text
from understudy.offline.validate.report import Report


def program(lines: int) -> str:
    """A program without rests: circles of short lines, and joint moves back and forth."""
    text = ["G21 G90 G94", "G0 X450 Y0 Z450 A180 B0 C0", "G1 F3000"]
    for k in range(lines - len(text)):
        angle = k * 0.05
        if k % 10:
            text.append(f"G1 U{math.sin(angle):.4f} V{80 + math.cos(angle):.4f} F3000")
        else:
            x, y = 450 + 40 * math.cos(angle), 40 * math.sin(angle)
            text.append(f"G1 X{x:.3f} Y{y:.3f} Z450 A180 B0 C0")
    return "\n".join(text)


def proved(lines: int) -> Report:
    return validate_text(program(lines), cell("g60_welding"))


def check(report: Report, lines: int) -> None:
    assert report.passed, report.violations[:3]
    assert len(report.lines) == lines
    undecided = sum(not row.proven for row in report.lines)
    assert undecided <= 0.01 * lines


def test_time_grows_in_proportion_to_the_program() -> None:
    proved(50)
    took = []
    for lines in (600, 2400):
        begun = process_time()
        check(proved(lines), lines)
        took.append(process_time() - begun)
    assert took[1] < 10 * took[0]
