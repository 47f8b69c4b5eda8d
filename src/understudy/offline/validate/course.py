"""Where the arm was, thinned out for a picture: as many points however long the program."""

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats
from understudy.offline.validate.report import Course
from understudy.offline.validate.subject import Arm, Machine

MOST_POINTS = 2000
"""Beyond twice as many every second one is dropped."""


class Courses:
    """Collects samples; memory does not grow with the program."""

    def __init__(self) -> None:
        self._rows: list[tuple[Floats, Floats, int, float]] = []
        self._every = 1
        self._seen = 0

    def add(self, q: Floats, times: Floats, lines: NDArray[np.int64], arm: Arm | Machine) -> None:
        """Samples of a run: the first and last always count."""
        chosen = np.arange(-self._seen % self._every, len(q), self._every)
        self._seen += len(q)
        if not len(chosen):
            return
        placed = arm.skeleton(q[chosen])
        rows = zip(q[chosen], placed, lines[chosen].tolist(), times[chosen].tolist(), strict=True)
        self._rows += rows
        while len(self._rows) > 2 * MOST_POINTS:
            self._rows = self._rows[::2]
            self._every *= 2

    def course(self) -> Course:
        if not self._rows:
            return Course()
        q, points, lines, times = zip(*self._rows, strict=True)
        return Course(
            tuple(tuple(row.tolist()) for row in q),
            tuple(tuple(tuple(point) for point in row.tolist()) for row in points),
            tuple(lines),
            tuple(times),
        )
