"""Compiled kernels: what lies in the cache is as new as everything it was made of."""

import subprocess
import sys
from typing import Any

from understudy.space.collision import gjk, pairs
from understudy.space.compiled import compiled


def date(kernel: Any) -> str:
    """What a kernel carries beside what it is called with."""
    return str(kernel.dated)


def half(x: float) -> float:
    return 0.5 * x


def test_a_kernel_is_dated_by_those_it_can_call() -> None:
    before = date(compiled(half))
    assert date(compiled(half)) == before
    globals()["helper"] = pairs.distance
    try:
        assert date(compiled(half)) != before
    finally:
        del globals()["helper"]


def test_the_date_goes_into_the_index_of_the_cache() -> None:
    kernels: tuple[Any, ...] = (gjk.core_distance, pairs.distance)
    for kernel in kernels:
        assert kernel._cache._cache_file._source_stamp == date(kernel)


def test_another_process_dates_it_the_same() -> None:
    ask = "from understudy.space.collision.distance import distance; print(distance.dated)"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == date(pairs.distance)
