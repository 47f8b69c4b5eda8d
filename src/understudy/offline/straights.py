"""Straight lines of the tool, many interpreted at once in columns, with the result of `interpret`.

A contour is thousands of lines that name a place, perhaps a feed, and nothing else. They are read
as if each could be run: a value that a line does not name stays as the line before commanded it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from understudy.gcode import Block, Modal
from understudy.gcode.actions import LAST_LINE_NUMBER
from understudy.gcode.blocks import Group
from understudy.gcode.dialect import MM_PER_INCH, Axes, Dialect
from understudy.gcode.modal import work_offset
from understudy.gcode.requests import LineMove
from understudy.motion.path import Floats
from understudy.space.pose import Pose
from understudy.space.transform import roll_pitch_yaw, rotation
from understudy.units import DEG, MINUTE, MM

FIELDS: dict[Group, str] = {
    "motion": "motion", "distance": "distance", "units": "units", "feed mode": "feed_mode",
}  # fmt: skip
"""Fields of the modal state of the codes that may stand in such a line."""
LETTERS = frozenset("XYZABCFN")
PLACES, ANGLES = "XYZ", "ABC"
NAMED_PLACES, NAMED_ANGLES = frozenset(PLACES), frozenset(ANGLES)


@dataclass(frozen=True, slots=True, eq=False)
class Straights:
    """`targets` (lines, 6) of the lines in m and rad; `paces` in mm or deg per second."""

    targets: Floats
    paces: Floats
    feeds: list[float]
    numbers: list[int]
    modal: Modal

    def __len__(self) -> int:
        return len(self.paces)

    @property
    def speeds(self) -> Floats:
        """m/s."""
        return self.paces * MM

    def move(self, k: int) -> LineMove:
        """The move of a line."""
        pace = float(self.paces[k])
        return LineMove(Pose(*self.targets[k].tolist()), pace * MM, pace * DEG)

    def after(self, k: int) -> Modal:
        """The modal state after a line."""
        return replace(self.modal, feed=self.feeds[k], line=self.numbers[k])


def is_straight(block: Block, modal: Modal) -> bool:
    """Whether a line is only a straight line of the tool, and keeps all modes."""
    values = block.values
    if modal.motion != "G1" or modal.feed_mode != "G94" or NAMED_PLACES.isdisjoint(values):
        return False
    for group, name in block.commands.items():
        if group not in FIELDS or getattr(modal, FIELDS[group]) != name:
            return False
    return (
        LETTERS.issuperset(values)
        and values.get("F", modal.feed) > 0.0
        and values.get("N", 0.0) <= LAST_LINE_NUMBER
        and block.message is None
    )


def straights(blocks: Sequence[Block], modal: Modal, dialect: Dialect, here: Axes) -> Straights:
    """Straight lines under the modes in force, from a pose (mm and deg)."""
    named = [block.values for block in blocks]
    unit = MM_PER_INCH if modal.units == "G20" else 1.0
    shift = None if modal.distance == "G91" else work_offset(modal)
    targets = np.empty((len(blocks), 6))
    for axis, letter in enumerate(PLACES):
        given = _column(named, letter) * unit
        if shift is None:
            targets[:, axis] = _stepped(given, here[axis])
        else:
            targets[:, axis] = _kept(given + shift[axis], here[axis])
    targets[:, :3] *= MM
    targets[:, 3:] = _angles(named, here[3:], shift)
    targets[:, 3:] *= DEG
    feeds = _kept(_column(named, "F") * unit, modal.feed)
    paces = feeds if dialect.feed_per_second else feeds / MINUTE
    numbers = [int(values.get("N", 0.0)) for values in named]
    return Straights(targets, paces, feeds.tolist(), numbers, modal)


def _column(named: Sequence[Mapping[str, float]], letter: str) -> Floats:
    """The values of one letter; nan where a line does not have it."""
    return np.array([values.get(letter, np.nan) for values in named])


def _kept(given: Floats, first: float) -> Floats:
    """Each value, or the last one given before."""
    known = np.concatenate([[first], given])
    last = np.where(np.isnan(known), 0, np.arange(len(known)))
    return np.asarray(known[np.maximum.accumulate(last)][1:])


def _stepped(given: Floats, first: float) -> Floats:
    """Positions after each of a sequence of steps."""
    steps = np.where(np.isnan(given), 0.0, given)
    return np.asarray(np.cumsum(np.concatenate([[first], steps]))[1:])


def _angles(
    named: Sequence[Mapping[str, float]], here: Sequence[float], shift: Axes | None
) -> list[Sequence[float]]:
    """The angles of every line; those not named are read from the pose commanded last."""
    rows: list[Sequence[float]] = []
    for values in named:
        if NAMED_ANGLES.isdisjoint(values):
            here = plain_angles(*here) if rows else here
            rows.append(here)
            continue
        if rows and (shift is None or not NAMED_ANGLES.issubset(values)):
            here = plain_angles(*here)
        zero = here if shift is None else shift[3:]
        here = [
            values[letter] + zero[axis] if letter in values else here[axis]
            for axis, letter in enumerate(ANGLES)
        ]
        rows.append(here)
    return rows


@lru_cache(maxsize=1024)
def plain_angles(rx: float, ry: float, rz: float) -> tuple[float, float, float]:
    """The same rotation with the angles that a matrix gives; degrees."""
    a, b, c = roll_pitch_yaw(rotation(rx * DEG, ry * DEG, rz * DEG))
    return a / DEG, b / DEG, c / DEG
