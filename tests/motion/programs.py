"""Random programs: short and long lines, corners, reversals, straight continuations, rapids."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path

T = TypeVar("T")
AXES = 3
MOVES = st.sampled_from([0.0, 0.004, 0.1, 0.5, 2.0, 10.0, -0.1, -2.0, -10.0])


@dataclass
class Program:
    limits: Limits
    targets: np.ndarray
    feed: np.ndarray
    rapid: np.ndarray
    deviation: float
    steps: float

    def path(self, first: int = 0, last: int | None = None) -> Path:
        start = np.zeros(AXES) if first == 0 else self.targets[first - 1]
        cut = slice(first, last)
        return lines(
            start,
            self.targets[cut],
            self.limits,
            feed=self.feed[cut],
            rapid=self.rapid[cut],
            deviation=self.deviation,
            steps=self.steps,
            line=np.arange(len(self.targets))[cut],
        )


@st.composite
def programs(draw: st.DrawFn, *, jerk: bool = False, deviation: float | None = None) -> Program:
    moves = draw(st.lists(st.tuples(MOVES, MOVES, MOVES), min_size=1, max_size=30))
    count = len(moves)
    limits = Limits.of(
        draw(st.lists(st.sampled_from([20.0, 50.0, 100.0]), min_size=3, max_size=3)),
        draw(st.lists(st.sampled_from([100.0, 500.0, 900.0]), min_size=3, max_size=3)),
        draw(st.sampled_from([2e3, 1e4])) if jerk else np.inf,
    )

    def each(values: st.SearchStrategy[T]) -> list[T]:
        return draw(st.lists(values, min_size=count, max_size=count))

    return Program(
        limits=limits,
        targets=np.cumsum(np.array(moves), axis=0),
        feed=np.array(each(st.sampled_from([1.0, 10.0, 30.0, 80.0, 500.0]))),
        rapid=np.array(each(st.booleans())),
        deviation=draw(st.sampled_from([0.0, 0.01, 0.2])) if deviation is None else deviation,
        steps=draw(st.sampled_from([0.0, 250.0])),
    )


def grid(plan_ends: float, count: int = 400) -> np.ndarray:
    return np.linspace(0.0, plan_ends, count)
