"""The certified sweep of a program: some hundred lines at a time, one verdict per line."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from understudy.jobs.validate.report import CLEARANCE, Contact, Finding, Kind, Options
from understudy.jobs.validate.stretch import Stretch
from understudy.jobs.validate.subject import Arm, Machine
from understudy.motion.path import Ints, joined
from understudy.space.environment import Environment
from understudy.space.sweep import Spot, Swept, Verdict
from understudy.units import MM

PIECES_AT_ONCE = 1000
"""A sweep of so many pieces shares its certificates."""
AT_THE_START = 1e-9


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on a line: metres that are proven, and what is to be said about it."""

    line: int
    clearance: float
    proven: bool
    violation: Finding | None = None
    warning: Finding | None = None


class Clearance:
    """Collects the stretches of a program, sweeps them with the tool they were run with."""

    def __init__(self, environment: Environment, options: Options) -> None:
        self._environment = environment
        self._asked = options.clearance
        self._least = max(self._asked or CLEARANCE, CLEARANCE)
        self._batch: list[Stretch] = []
        self._pieces = 0
        self._arm: Arm | None = None
        self._touching = False

    def add(self, stretch: Stretch, arm: Arm | Machine) -> Iterator[Proof]:
        """Give the stretches in their order; verdicts come when there are enough."""
        if arm.sweeper is None:
            return
        if arm is not self._arm:
            yield from self.flush()
            self._arm = arm
        self._batch.append(stretch)
        self._pieces += stretch.last - stretch.first
        if self._pieces >= PIECES_AT_ONCE:
            yield from self.flush()

    def flush(self) -> Iterator[Proof]:
        """What was added since."""
        batch, self._batch, self._pieces = self._batch, [], 0
        if not batch or self._arm is None or self._arm.sweeper is None:
            return
        path = joined([stretch.path for stretch in batch])
        swept = self._arm.sweeper.sweep(
            path.shape, path.length, lines=path.line, clearance=self._least
        )
        first = np.cumsum([0, *(stretch.last - stretch.first for stretch in batch)])
        begins = np.searchsorted(path.line, [each.line for each in swept]).tolist()
        for each, piece in zip(swept, begins, strict=True):
            yield self._judged(each, batch, first, piece)

    def _judged(self, swept: Swept, batch: list[Stretch], first: Ints, begins: int) -> Proof:
        clearance = swept.clearance
        before, self._touching = self._touching, False
        if swept.verdict is Verdict.PROVEN or swept.spot is None:
            return Proof(swept.line, clearance, swept.proven)
        spot = swept.spot
        k = int(np.searchsorted(first, spot.piece, side="right")) - 1
        when = batch[k].time_at(spot.piece - int(first[k]), spot.s)
        found = self._finding(swept, spot, when)
        if swept.verdict is Verdict.CONTACT:
            # What touches where a line begins has touched already where the one before ended.
            self._touching = True
            if before and spot.piece == begins and spot.s <= AT_THE_START:
                found = replace(found, last=swept.line)
            return Proof(swept.line, 0.0, False, found)
        if self._asked is not None:
            return Proof(swept.line, clearance, False, found)
        return Proof(swept.line, clearance, False, warning=found)

    def _finding(self, swept: Swept, spot: Spot, when: float) -> Finding:
        one, other = spot.object1_name, spot.object2_name
        kind: Kind = "self_collision" if spot.self_collision else "collision"
        zone = next((name for name in (one, other) if self._environment.is_zone(name)), "")
        if zone and not spot.self_collision:
            kind = "zone"
        x, y, z = (value / MM for value in spot.point)
        where = f"at ({x:.1f}, {y:.1f}, {z:.1f}) mm, {when:.3f} s"
        if swept.verdict is Verdict.CONTACT:
            does = "enters the zone" if kind == "zone" else "touches"
            said = f"{one} {does} {other} {where}, up to {spot.depth / MM:.1f} mm deep"
        else:
            said = f"{one} comes closer than {self._least / MM:g} mm to {other} {where}"
        contact = Contact((one, other), spot.point, spot.depth)
        return Finding(swept.line, kind, f"line {swept.line}: {said}", when, contact=contact)
