"""Cuts a program's motion into stretches of some hundred lines; memory does not grow with it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats, Ints, Path
from understudy.motion.plan import Plan

LINES_AT_ONCE = 400
SAMPLES_AT_ONCE = 8192
MOST_SAMPLES = 500_000
"""Most samples of one stretch (83 minutes)."""
STEP_S = 0.01
"""Seconds between two samples of a motion."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Pieces ``first`` up to ``last`` of a plan, whole lines of the program. Times in seconds."""

    plan: Plan
    first: int
    last: int
    begins: float
    ends: float
    number: Ints
    starts: Floats

    @property
    def path(self) -> Path:
        return self.plan.path.rows(self.first, self.last)

    def grids(self) -> Iterator[Floats]:
        """Sample times in arrays of some thousand, 10 ms apart (more if the stretch lasts
        hours); each array begins where the last one ended."""
        count = int(np.ceil(min((self.ends - self.begins) / STEP_S, MOST_SAMPLES))) + 1
        for first in range(0, max(count - 1, 1), SAMPLES_AT_ONCE - 1):
            share = np.arange(first, min(first + SAMPLES_AT_ONCE, count)) / max(count - 1, 1)
            yield self.begins + share * (self.ends - self.begins)

    def lines_at(self, times: Floats) -> NDArray[np.int64]:
        """The program line that runs at each time."""
        found = np.searchsorted(self.starts, times, side="right") - 1
        return np.asarray(self.number[np.maximum(found, 0)])

    def time_at(self, piece: int, s: float) -> float:
        """The time at which the plan is at distance s along a piece of this stretch."""
        law = self.plan.law
        low_, high_ = np.searchsorted(law.piece, [self.first + piece, self.first + piece + 1])
        if low_ == high_:
            return self.begins
        segments = slice(int(low_), int(high_))
        k = int(low_) + max(int(np.searchsorted(law.s[segments], s, side="right")) - 1, 0)
        low, high = 0.0, float(law.begins[k + 1] - law.begins[k])
        for _ in range(50):
            x = 0.5 * (low + high)
            run = law.s[k] + x * (law.v[k] + x * (0.5 * law.a[k] + x * law.j[k] / 6.0))
            low, high = (x, high) if run < s else (low, x)
        return float(law.begins[k]) + high


def stretches(plan: Plan) -> Iterator[Stretch]:
    """The stretches of a plan, in order."""
    number, starts = plan.lines()
    if not len(number):
        return
    line = plan.path.line
    edges = np.flatnonzero(np.diff(line, prepend=line[0] - 1))[::LINES_AT_ONCE].tolist()
    law = plan.law
    for first, last in zip(edges, [*edges[1:], len(line)], strict=True):
        k = int(np.searchsorted(law.piece, first))
        m = int(np.searchsorted(law.piece, last))
        yield Stretch(
            plan, first, last, float(law.begins[k]), float(law.begins[m]), number, starts
        )  # fmt: skip
