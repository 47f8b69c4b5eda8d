"""Compiled kernels: the cache stamp of a kernel covers its own source and all kernels it calls."""

import subprocess
import sys
from typing import Any

import numpy as np

from understudy.space.collision import distance, solids
from understudy.space.compiled import SavedLibrary, compiled
from understudy.space.kinematics.chain import sincos
from understudy.space.transform import Array


def stamp(kernel: Any) -> str:
    """The cache stamp of a kernel."""
    return str(kernel.cache_stamp)


def half(x: float) -> float:
    return 0.5 * x


def test_the_stamp_of_a_kernel_covers_the_kernels_it_can_call() -> None:
    before = stamp(compiled(half))
    assert stamp(compiled(half)) == before
    globals()["helper"] = distance.distance
    try:
        assert stamp(compiled(half)) != before
    finally:
        del globals()["helper"]


def test_the_stamp_is_in_the_index_of_the_cache() -> None:
    kernels: tuple[Any, ...] = (solids.core_distance, distance.distance)
    for kernel in kernels:
        assert kernel._cache._cache_file._source_stamp == stamp(kernel)


def test_an_index_of_another_stamp_is_not_unpickled() -> None:
    """It may name classes that no longer exist."""
    kernel: Any = distance.distance
    assert kernel._cache._cache_file._version == stamp(kernel)


def test_another_process_computes_the_same_stamp() -> None:
    ask = "from understudy.space.collision.distance import distance; print(distance.cache_stamp)"
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == stamp(distance.distance)


def first_sine(angles: Array, sines: Array, cosines: Array) -> float:
    sincos(angles, sines, cosines)
    return float(sines[0])


def test_a_new_kernel_calls_one_that_was_loaded_from_the_cache() -> None:
    """Its bitcode is read then, and numba gets to know its libraries."""
    angles, sines, cosines = np.linspace(-7.0, 7.0, 50), np.empty(50), np.empty(50)
    loaded: Any = compiled(sincos.py_func)  # type: ignore[attr-defined]
    loaded._cache = sincos._cache  # type: ignore[attr-defined]
    loaded(angles, sines, cosines)
    assert [type(each.library) for each in loaded.overloads.values()] == [SavedLibrary]
    np.testing.assert_allclose((sines, cosines), (np.sin(angles), np.cos(angles)), atol=1e-15)
    before, globals()["sincos"] = sincos, loaded
    try:
        kernel: Any = compiled(first_sine)
        kernel._cache.disable()  # it is compiled here
        assert kernel(angles, sines, cosines) == sines[0]
    finally:
        globals()["sincos"] = before
