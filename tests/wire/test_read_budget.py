"""The read size of a peer: small for costly requests, so that other peers are not delayed."""

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
def test_the_next_read_size_depends_on_the_last_cpu_time(
    size: int, took: float, next_size: int
) -> None:
    assert following(size, took) == next_size


@given(st.lists(st.floats(0.0, 10.0), max_size=30))
def test_the_read_size_stays_within_its_bounds(took: list[float]) -> None:
    size = FIRST
    for seconds in took:
        size = following(size, seconds)
        assert SMALLEST <= size <= LARGEST


def test_the_cpu_time_of_the_thread_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([5.0, 5.0 + 2 * LONG, 6.0, 6.0])
    monkeypatch.setattr("understudy.wire.tcp.thread_time", lambda: next(moments))
    helping = ReadBudget()
    with helping:
        pass
    assert helping.size == FIRST // 4
    with helping:
        pass
    assert helping.size == FIRST // 2
