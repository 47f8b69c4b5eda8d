"""Decorators that compile the inner loops of the package to machine code with numba.

A *kernel* is a function on numbers and arrays with the decorator `compiled` (or `inlined`). Calling
it from Python looks like calling any function. How a kernel gets compiled:

1. Importing a module compiles nothing. numba compiles a kernel at its first call, once for each
   combination of argument types (dtype, dimension, contiguous or not, writable or not). Callers
   pass one combination only, because each further one costs seconds. Compiling everything takes
   about a minute; `understudy warm` does it at set-up (`app/kernels.py`).
2. The machine code is saved in `__pycache__` beside the source file (`NUMBA_CACHE_DIR` moves it)
   and loaded by the next process in milliseconds. One file pair per kernel and line number. Where
   that folder cannot be written, kernels that are in it are used, and those that are missing are
   not saved; an empty one is replaced by the user's cache, or by a folder for temporary files.
3. A saved kernel is used only if its stamp matches. numba's own stamp covers the kernel's source
   file. The stamp set here also covers the files of all kernels it can call, since their machine
   code is part of its own. A kernel with another stamp is compiled again.
4. Kernels release the GIL. Arithmetic is exact IEEE 754 (`fastmath` off), so that results are the
   same on every run; a division by zero gives inf or nan as in numpy.

Tests call `kernel.py_func`, the uncompiled Python function. Every function marked `# kernel` has an
oracle in the tests: a plain implementation that it is compared with.
"""

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from numpy.typing import NDArray


def _numba() -> Any:
    """numba, imported without SciPy.

    numba imports the BLAS of SciPy only to learn whether it is there, which takes 0.15 s at each
    start. It asks again when it compiles a kernel that needs it, and then imports the real module.
    """
    blas = "scipy.linalg.cython_blas"
    added = sys.modules.setdefault(blas, placeholder := ModuleType(blas)) is placeholder
    try:
        return import_module("numba.np.arraymath") and import_module("numba")
    finally:
        if added:
            del sys.modules[blas]


numba = _numba()
caching: Any = import_module("numba.core.caching")
F = TypeVar("F", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


# ── where machine code is kept ──────────────────────────────────────────────────────────────────


BesideSource: Any = caching.InTreeCacheLocator


class ReadOnlyLocator(BesideSource):  # type: ignore[misc]
    """The folder beside the source file, if it has machine code and cannot be written."""

    def ensure_cache_path(self) -> None:
        if not any(Path(self.get_cache_path()).glob("*.nbi")):
            raise FileNotFoundError(self.get_cache_path())


class TemporaryLocator(BesideSource):  # type: ignore[misc]
    """A folder of this user among the temporary files."""

    def get_cache_path(self) -> str:
        return str(temporary_folder() / self.get_suitable_cache_subpath(self._py_file))


@cache
def temporary_folder() -> Path:
    """Machine code of other users must not be loaded: only this user can write this folder."""
    user = getattr(os, "getuid", lambda: 0)()
    folder = Path(tempfile.gettempdir()) / f"understudy-kernels-{user}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        mine = found.st_uid == user and not found.st_mode & 0o22
        if not (mine and stat.S_ISDIR(found.st_mode)):
            return Path(tempfile.mkdtemp(prefix="understudy-kernels-"))
    return folder


class KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (
        caching.UserProvidedCacheLocator,
        BesideSource,
        ReadOnlyLocator,
        caching.UserWideCacheLocator,
        TemporaryLocator,
    )


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. What cannot be saved is compiled again by the next process."""

    _impl_class = KernelFiles

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            return

    @property
    def elsewhere(self) -> str:
        """The folder, if it is neither beside the source file nor chosen by the user."""
        expected = (BesideSource, ReadOnlyLocator, caching.UserProvidedCacheLocator)
        return "" if type(self._impl.locator) in expected else str(Path(self.cache_path).parent)


# ── decorators ──────────────────────────────────────────────────────────────────────────────────


def compiled(function: F) -> F:
    """Compiles the function at its first call and caches the machine code on disk."""
    return cast(F, _stamped(numba.njit(**OPTIONS)(function)))


def inlined(function: F) -> F:
    """Like `compiled`, but its code is copied into the calling kernels.

    For small kernels that take many arrays: passing an array costs more than their arithmetic.
    """
    return cast(F, _stamped(numba.njit(**OPTIONS, inline="always")(function)))


KERNELS: set[Callable[..., Any]] = set()
"""The Python functions of all kernels of the imported modules."""


def _stamped(kernel: Any) -> Any:
    """Extends the cache stamp of a kernel by the stamps of all kernels it can call.

    The stamp is also the version of the cache index: numba compares the version before it unpickles
    the index, so that an index that names deleted classes is skipped and raises nothing.
    """
    kernel._cache = KernelCache(kernel.py_func)
    _compile_once(kernel)
    known = kernel.py_func.__globals__.values()
    stamps = {stamp for each in known if (stamp := getattr(each, "cache_stamp", None)) is not None}
    index = kernel._cache._cache_file
    parts = repr((index._version, index._source_stamp, *sorted(stamps)))
    kernel.cache_stamp = index._source_stamp = index._version = sha256(parts.encode()).hexdigest()
    KERNELS.add(kernel.py_func)
    return kernel


def _compile_once(kernel: Any) -> None:
    """A kernel that calls this one with a constant gets the code for any value.

    numba would compile it again for each constant, with all that it calls.
    """
    resolve, any_value = kernel.get_call_template, numba.types.unliteral

    def get_call_template(args: Any, kws: Any) -> Any:
        named = {name: any_value(each) for name, each in kws.items()}
        return resolve(tuple(map(any_value, args)), named)

    kernel.get_call_template = get_call_template


def _without_owner(typing_context: Any, array: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), code


borrowed: Callable[[NDArray[Any]], NDArray[Any]] = cast(
    Any, numba.extending.intrinsic(_without_owner)
)
"""Inside a kernel: the same array without reference counting.

numba counts references at every call that takes an array, which costs more than many loops over
it. A kernel may skip the count if its caller keeps the arrays alive.
"""


def _table_view(typing_context: Any, row: Any, begin: Any, count: Any, width: Any) -> Any:
    table = row.copy(ndim=2, layout="C")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        cells, first, rows, columns = arguments
        source = context.make_array(signature.args[0])(context, builder, cells)
        view = context.make_array(signature.return_type)(context, builder)
        stride = builder.mul(columns, source.itemsize)
        fill: Any = numba.np.arrayobj.populate_array
        return fill(
            view,
            data=builder.gep(source.data, [first]),
            shape=[rows, columns],
            strides=[stride, source.itemsize],
            itemsize=source.itemsize,
            meminfo=None,
        )._getvalue()

    return table(row, *[numba.types.intp] * 3), code


table: Callable[[NDArray[Any], int, int, int], NDArray[Any]] = cast(
    Any, numba.extending.intrinsic(_table_view)
)
"""Inside a kernel: a (count, width) view of a flat array, beginning at element ``begin``.

Without reference counting and without a bounds check: the caller guarantees that the elements
exist.
"""
