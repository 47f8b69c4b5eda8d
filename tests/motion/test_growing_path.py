"""A growing path: equals the joined paths, and paths returned earlier do not change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.motion.lines import lines
from understudy.motion.path import (
    COLUMNS,
    GrowingPath,
    Limits,
    Path,
    dwell_path,
    empty_path,
    joined,
)

LIMITS = Limits.of([1.0, 2.0], [3.0, 4.0])
STEP = st.integers(1, 200) | st.sampled_from(["pause", "cubic", "cut", "forget"])


def some_lines(count: int, seed: int) -> Path:
    return lines(np.zeros(2), np.random.default_rng(seed).uniform(-1, 1, (count, 2)), LIMITS)


def assert_same(one: Path, other: Path) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def grown(path: Path, step: int | str, seed: int) -> list[Path]:
    if step == "pause":
        return [dwell_path(np.zeros(2), 1.0), some_lines(2, seed)]
    if step == "cubic":
        flat = some_lines(3, seed)
        shape = np.concatenate([flat.shape, np.ones((3, 2, 2))], axis=1)
        return [Path(shape, *[getattr(flat, name) for name in COLUMNS[1:]])]
    return [some_lines(int(step), seed)]


@given(st.lists(STEP, max_size=12))
def test_a_growing_path_equals_the_joined_paths(steps: list[int | str]) -> None:
    roll, path, wanted, given_out = GrowingPath(), empty_path(2), empty_path(2), []
    for seed, step in enumerate(steps):
        if step == "cut":
            path, wanted = path.rows(0, len(path) // 2), wanted.rows(0, len(wanted) // 2)
        elif step == "forget":
            half = len(path) // 2
            path, wanted = path.rows(half, len(path)), wanted.rows(half, len(wanted))
        else:
            more = grown(path, step, seed)
            wanted = joined([wanted, *more])
            for each in more:
                path = roll.joined(path, each)
        given_out.append((path, wanted))
    for one, other in given_out:
        assert_same(one, other)


def test_it_grows_in_place() -> None:
    roll = GrowingPath()
    first = roll.joined(empty_path(2), some_lines(10, 1))
    second = roll.joined(first, some_lines(5, 2))
    third = roll.joined(second, some_lines(5, 3))
    assert np.shares_memory(second.shape, third.shape)
    assert third.block.tolist() == list(range(20))
