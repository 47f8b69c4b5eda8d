"""The G and M codes: which group each belongs to, and whether it takes the axis words.

Groups as in RS274/NGC, table 4: a line has at most one code of a group.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from understudy.gcode import faults

Group = Literal[
    "nonmodal", "motion", "plane", "distance", "arc distance", "feed mode", "units", "cutter",
    "tool offset", "coordinates", "path", "retract", "macro", "scaling",
    "flow", "io", "tool", "spindle", "coolant", "overrides", "kinematics",
]  # fmt: skip

AxisUse = Literal["", "nonmodal", "motion", "tool offset", "scaling"]
"""Who takes the axis words of a line; empty: no code asked for them."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    group: Group
    axis: AxisUse = ""


COORDINATE_SYSTEMS = ("G54", "G55", "G56", "G57", "G58", "G59", "G59.1", "G59.2", "G59.3")
PROBES = ("G38.2", "G38.3", "G38.4", "G38.5")
ARCS = ("G2", "G3")
SYNCHRONIZED = ("G33", "G33.1", "G76")
UNOFFERED = (
    "G5", "G5.1", "G73", "G81", "G82", "G83", "G84", "G85", "G86", "G89", *SYNCHRONIZED,
)  # fmt: skip
"""Motions that the firmware checks before it finds that the machine cannot do them."""

_MEMBERS: dict[tuple[Group, AxisUse], tuple[str, ...]] = {
    ("nonmodal", ""): ("G4", "G28.1", "G30.1", "G53", "G92.1", "G92.2", "G92.3"),
    ("nonmodal", "nonmodal"): ("G10", "G28", "G30", "G92"),
    ("motion", "motion"): ("G0", "G1", *ARCS, *PROBES, *UNOFFERED),
    ("motion", ""): ("G80",),
    ("plane", ""): ("G17", "G18", "G19"),
    ("distance", ""): ("G90", "G91"),
    ("arc distance", ""): ("G91.1",),
    ("feed mode", ""): ("G93", "G94", "G95"),
    ("units", ""): ("G20", "G21"),
    ("cutter", ""): ("G40",),
    ("tool offset", ""): ("G43", "G43.2", "G49"),
    ("tool offset", "tool offset"): ("G43.1",),
    ("coordinates", ""): COORDINATE_SYSTEMS,
    ("path", ""): ("G61", "G61.1", "G64"),
    ("retract", ""): ("G98", "G99"),
    ("macro", ""): ("G65", "M98"),
    ("scaling", "scaling"): ("G50", "G51"),
    ("flow", ""): ("M0", "M1", "M2", "M30", "M60"),
    ("io", ""): ("M62", "M63", "M64", "M65", "M66", "M67", "M68"),
    ("tool", ""): ("M6", "M61"),
    ("spindle", ""): ("M3", "M4", "M5"),
    ("coolant", ""): ("M7", "M8", "M9"),
    ("overrides", ""): ("M48", "M49", "M50", "M51", "M53"),
    ("kinematics", ""): ("M428", "M429"),
}

COMMANDS = {
    name: Command(name, group, axis) for (group, axis), names in _MEMBERS.items() for name in names
}
GROUP_ORDER: tuple[Group, ...] = tuple(dict.fromkeys(group for group, _ in _MEMBERS))

_FRACTION_UNSUPPORTED = frozenset({5, 28, 30, 38, 43, 59, 61, 65, 90, 91, 92})
"""G codes of which a wrong decimal is an unknown code, not a number that should be whole."""
_FRACTION_IGNORED = frozenset({49})
_LAST_STANDARD_M = 99

_BY_NUMBER = {
    (name[0], round(100 * float(name[1:]))): command for name, command in COMMANDS.items()
}


def whole_and_hundredths(value: float) -> tuple[int, int]:
    """A code's number as the firmware sees it; below zero, no code and no whole number."""
    whole = math.trunc(value)
    return whole, 1 if value < 0 else math.floor(100.0 * (value - whole) + 0.5)


@lru_cache(maxsize=1024)
def find(letter: str, value: float, *, without: frozenset[str]) -> Command | int:
    """The command of a G or M word, or grblHAL's error number for it."""
    whole, hundredths = whole_and_hundredths(value)
    if letter == "M" and 0 <= whole <= _LAST_STANDARD_M and hundredths:
        return faults.NOT_INTEGER
    if letter == "G" and whole in _FRACTION_IGNORED:
        hundredths = 0
    command = _BY_NUMBER.get((letter, 100 * whole + hundredths)) if hundredths < 100 else None
    if command is not None and value >= 0:
        return faults.UNSUPPORTED if command.name in without else command
    if letter == "M" or value < 0 or whole in _FRACTION_UNSUPPORTED:
        return faults.UNSUPPORTED
    base = COMMANDS.get(f"G{whole}")
    return faults.UNSUPPORTED if base is None or base.name in without else faults.NOT_INTEGER
