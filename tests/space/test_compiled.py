"""Compiled kernels: the cache stamp of a kernel covers its own source and all kernels it calls."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.space.collision import distance, solids
from understudy.space.compiled import SavedLibrary, _type_in_numba, compiled, numba
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
    sincos(angles, sines, cosines)  # then it is in the cache
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


LOAD_THEN_COMPILE = """
import sys
import numpy as np
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import sincos

angles = np.linspace(-7.0, 7.0, 50)
sines, cosines = np.empty(50), np.empty(50)
sincos(angles, sines, cosines)
print(*sorted({"numpy.ma", "numba.np.arrayobj", "numba.cpython.unicode"} & set(sys.modules)))

def sum_of_squares(angles):
    sines, cosines = np.zeros_like(angles), np.zeros_like(angles)
    sincos(angles, sines, cosines)
    return np.sum(sines * sines + cosines * cosines)

kernel = compiled(sum_of_squares)
kernel._cache.disable()
print(f"{kernel(angles):.9f}")
"""


def test_numba_is_complete_when_a_kernel_is_compiled_after_one_was_loaded(tmp_path: Path) -> None:
    file = tmp_path / "load_then_compile.py"
    file.write_text(LOAD_THEN_COMPILE)
    sincos(np.empty(1), np.empty(1), np.empty(1))  # then it is in the cache
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "50.000000000"]


ARRAYS = {
    "contiguous": np.zeros((2, 3)),
    "strided": np.zeros((2, 4))[:, ::2],
    "Fortran": np.asfortranarray(np.zeros((2, 3))),
    "read only": np.broadcast_to(0.0, (3,)),
    "scalar": np.array(1.0),
    "whole numbers": np.zeros(3, np.int32),
    "truth": np.zeros(3, np.bool_),
    "complex": np.zeros(3, np.complex128),
    "dates": np.zeros(3, "M8[s]"),
    "rows": np.zeros(3, [("a", float)]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_have_the_types_that_numba_gives_them(name: str) -> None:
    assert numba.typeof(ARRAYS[name]) == _type_in_numba(ARRAYS[name], None)


@pytest.mark.parametrize("array", [np.zeros(3, ">f8"), np.ma.zeros(3)], ids=["foreign", "masked"])
def test_arrays_that_kernels_cannot_take_are_refused(array: Any) -> None:
    with pytest.raises(numba.core.errors.NumbaError):
        numba.typeof(array)
