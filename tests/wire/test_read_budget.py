"""Whoever asks for much is read in small pieces, so that others get their turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.wire.tcp import FIRST, LARGEST, LONG, SHORT, SMALLEST, ReadBudget, following

BETWEEN = (LONG + SHORT) / 2


@pytest.mark.parametrize(
    ("size", "took", "next_size"),
    [
        (FIRST, 0.0, 2 * FIRST),
        (FIRST, BETWEEN, FIRST),
        (FIRST, 2 * LONG, FIRST // 4),
        (SMALLEST, 2 * LONG, SMALLEST),
        (LARGEST, 0.0, LARGEST),
    ],
)
def test_what_the_last_one_took_decides_on_the_next(size: int, took: float, next_size: int) -> None:
    assert following(size, took) == next_size


@given(st.lists(st.floats(0.0, 10.0), max_size=30))
def test_it_stays_within_its_bounds(took: list[float]) -> None:
    size = FIRST
    for seconds in took:
        size = following(size, seconds)
        assert SMALLEST <= size <= LARGEST


def test_work_is_counted_in_the_threads_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([5.0, 5.0 + 2 * LONG, 6.0, 6.0])
    monkeypatch.setattr("understudy.wire.tcp.thread_time", lambda: next(moments))
    helping = ReadBudget()
    with helping:
        pass
    assert helping.size == FIRST // 4
    with helping:
        pass
    assert helping.size == FIRST // 2
