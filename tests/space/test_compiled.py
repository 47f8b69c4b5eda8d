"""Compiled kernels: what lies in the cache is as new as everything it was made of."""

import subprocess
import sys

from understudy.space import gjk, pairs
from understudy.space.compiled import compiled


def half(x: float) -> float:
    return 0.5 * x


def test_a_kernel_is_dated_by_those_it_can_call() -> None:
    before = compiled(half).dated
    assert compiled(half).dated == before
    globals()["helper"] = pairs.distance
    try:
        assert compiled(half).dated != before
    finally:
        del globals()["helper"]


def test_the_date_goes_into_the_index_of_the_cache() -> None:
    for kernel in (gjk.core_distance, pairs.distance):
        assert kernel._cache._cache_file._source_stamp == kernel.dated


def test_another_process_dates_it_the_same() -> None:
    ask = "from understudy.space.pairs import distance; print(distance.dated)"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == pairs.distance.dated
