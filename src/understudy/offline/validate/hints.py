"""Hints for a program that fails: what was probably meant. They are notes and change no verdict.

A robot's kind says by itself, with `program_hint` in its module, that a text is a program for it.
"""

import math
import re
from collections.abc import Iterator, Set

from understudy.offline.validate.report import Report
from understudy.registry import modules

HINT = "hint: "
COMMENT = re.compile(r"\([^)]*\)|;.*")
NUMBER = r"\s*([-+]?(?:\d+\.?\d*|\.\d+))"
LENGTH, ANGLE = re.compile(f"[XYZ]{NUMBER}"), re.compile(f"[ABCUVW]{NUMBER}")
INCH_OR_RELATIVE = re.compile(r"\bG(?:20|91)\b")
MOST_METRES = 3.0
"""Coordinates below it are metres, if all of them are: an arm has no work within 3 mm."""
FULL_TURN = 2.0 * math.pi + 0.001
PARTS_OF_PI = 12
"""Angles in radians are mostly multiples of π / 12: 0.7854, 1.5708, 3.1416."""
SHORT = (1.57, 3.14)
"""Multiples of π / 2 as they are often written."""
UNFIT = ("unreachable", "joint_limit", "singularity", "collision", "self_collision", "zone")


def hints(report: Report, text: str, kind: str, *, has_body: bool) -> list[str]:
    """``kind``: of the robot that the program was validated for; ``has_body``: it is an arm."""
    found = {finding.kind for finding in report.violations}
    if found & {"syntax", "unsupported"}:
        return [f"{HINT}{each}" for each in _of_other_robots(text, kind)]
    return [f"{HINT}{each}" for each in _of_units(text, found)] if has_body else []


def _of_other_robots(text: str, kind: str) -> Iterator[str]:
    for _, name, module in modules("robots"):
        hint = getattr(module, "program_hint", None)
        if name != kind and hint is not None and (found := hint(text)):
            yield found


def _of_units(text: str, found: Set[str]) -> Iterator[str]:
    code = text.upper()
    if "(" in code or ";" in code:
        code = "\n".join(COMMENT.sub("", line) for line in code.splitlines())
    if found & set(UNFIT) and not INCH_OR_RELATIVE.search(code):
        lengths = [float(value) for value in LENGTH.findall(code)]
        if any(value != round(value) for value in lengths) and max(map(abs, lengths)) < MOST_METRES:
            yield f"every X, Y, Z is below {MOST_METRES:g} mm: are these metres? X, Y, Z are in mm"
    angles = [float(value) for value in ANGLE.findall(code)]
    if any(map(_is_part_of_pi, angles)) and max(map(abs, angles)) <= FULL_TURN:
        yield "the angles look like radians (3.1416, 1.5708 …): A, B, C are in degrees"


def _is_part_of_pi(angle: float) -> bool:
    """A multiple of π / 12, but no whole or half number, as degrees are."""
    steps = angle * PARTS_OF_PI / math.pi
    exact = 2.0 * angle != round(2.0 * angle) and abs(steps - round(steps)) < 0.002
    return exact or abs(angle) in SHORT
