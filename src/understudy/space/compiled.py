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

import io
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

numba: Any = import_module("numba")
caching: Any = import_module("numba.core.caching")
codegen: Any = import_module("numba.core.codegen")
compiler: Any = import_module("numba.core.compiler")
entrypoints: Any = import_module("numba.core.entrypoints")
environment: Any = import_module("numba.core.environment")
numpy_support: Any = import_module("numba.np.numpy_support")
_nrt: Any = import_module("numba.core.runtime._nrt_python")
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
PLAIN = "?bhilqBHILQfd"
"""Letters of numpy's types of numbers that kernels take."""
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


# ── where machine code is kept ──────────────────────────────────────────────────────────────────


@cache
def _try_folder(path: str) -> None:
    """Raises OSError if the folder cannot be written."""
    Path(path).mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path).close()


class BesideSource(caching.InTreeCacheLocator):  # type: ignore[misc]
    """The folder beside the source file; it is tried once, not for each kernel in it."""

    def ensure_cache_path(self) -> None:
        _try_folder(self.get_cache_path())


class ReadOnlyLocator(BesideSource):
    """The folder beside the source file, if it has machine code and cannot be written."""

    def ensure_cache_path(self) -> None:
        if not any(Path(self.get_cache_path()).glob("*.nbi")):
            raise FileNotFoundError(self.get_cache_path())


class TemporaryLocator(BesideSource):
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


class SavedLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code from the cache. Its bitcode, which is larger, is read when another kernel is
    compiled that calls this one."""

    _bitcode = b""
    _shared_module: Any

    @classmethod
    def read(cls, context: Any, saved: tuple[str, str, tuple[bytes, bytes]], symbols: Any) -> Any:
        """``symbols``: the names that are looked up in it."""
        name, _, (machine_code, bitcode) = saved
        library = cls(context.codegen(), name)
        library._bitcode = bitcode
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        library._codegen._engine._defined_symbols.update(symbols)
        return library

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = codegen.ll.parse_bitcode(self._bitcode)
        return self._shared_module


class SavedData(pickle.Unpickler):
    """Reads what is saved of a kernel, without the modules of numba that its functions are from.

    Each function in it has an environment: the constants that its machine code reads, and the
    globals of its module, which only code that was not compiled reads.
    """

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return _environment if found is environment._rebuild_env else found


def _environment(module: str, constants: list[Any], name: str) -> Any:
    if module in sys.modules or environment.lookup_environment(name) is not None:
        return environment._rebuild_env(module, constants, name)
    made = environment.Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    environment.Environment._memo[name] = made
    return made


class SavedFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    def _load_data(self, name: str) -> Any:
        return SavedData(io.BytesIO(Path(self._data_path(name)).read_bytes())).load()


@cache
def _add_runtime_symbols() -> None:
    """Tells LLVM the addresses of numba's functions for references, which machine code calls."""
    for name, address in _nrt.c_helpers.items():
        codegen.ll.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (
        caching.UserProvidedCacheLocator,
        BesideSource,
        ReadOnlyLocator,
        caching.UserWideCacheLocator,
        TemporaryLocator,
    )

    def rebuild(self, context: Any, saved: tuple[Any, ...]) -> Any:
        code, about, environment, signature, objectmode, lifted, types, on_load, others = saved
        if on_load or code[1] != "object":
            return super().rebuild(context, saved)
        library = SavedLibrary.read(context, code, (about.llvm_cpython_wrapper_name,))
        for each in others:
            context.codegen().set_env(each.env_name, each)
        return compiler.compile_result(
            target_context=context,
            typing_context=context.typing_context,
            library=library,
            environment=environment,
            entry_point=context.get_executable(library, about, environment),
            fndesc=about,
            type_annotation=types,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            reload_init=on_load,
            referenced_envs=others,
        )


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. What cannot be saved is compiled again by the next process."""

    _impl_class = KernelFiles

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file.__class__ = SavedFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Loads machine code without what only the compiler needs: the libraries that it knows and
        the helpers that it compiles. They are there at the first kernel that is not in the cache.
        """
        _add_runtime_symbols()
        if (loaded := self._load_overload(sig, target_context)) is None:
            entrypoints.init_all()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        _try_folder.cache_clear()
        try:
            super().save_overload(sig, data)
        except OSError:
            return

    @property
    def elsewhere(self) -> str:
        """The folder, if it is neither beside the source file nor chosen by the user."""
        expected = (BesideSource, ReadOnlyLocator, caching.UserProvidedCacheLocator)
        return "" if type(self._impl.locator) in expected else str(Path(self.cache_path).parent)


def _type_of_array(array: NDArray[Any], context: Any) -> Any:
    """numba asks whether the array is a masked one, and with that imports masked arrays."""
    kind = array.dtype
    if type(array) is not np.ndarray or kind.char not in PLAIN or not kind.isnative:
        return _type_in_numba(array, context)
    element, layout = numpy_support.from_dtype(kind), numpy_support.map_layout(array)
    return numba.types.Array(element, array.ndim, layout, readonly=not array.flags.writeable)


_type_in_numba: Any = numba.extending.typeof_impl.dispatch(np.ndarray)
numba.extending.typeof_impl.register(np.ndarray)(_type_of_array)


# ── decorators ──────────────────────────────────────────────────────────────────────────────────


def compiled(function: F) -> F:
    """Compiles the function at its first call and caches the machine code on disk."""
    return cast(F, _stamped(numba.njit(**OPTIONS)(_with_signature(function))))


def inlined(function: F) -> F:
    """Like `compiled`, but its code is copied into the calling kernels.

    For small kernels that take many arrays: passing an array costs more than their arithmetic.
    """
    return cast(F, _stamped(numba.njit(**OPTIONS, inline="always")(_with_signature(function))))


def direct(
    kernel: Callable[..., R], *arguments: Any, later: tuple[Any, ...] = ()
) -> Callable[..., R]:
    """A call of a kernel with these arguments, without numba's look at their types: it takes a
    third of the time. ``later``: examples of the last arguments, numbers that are given at each
    call. The machine code is loaded or compiled here.
    """
    code: Any = kernel
    types = tuple(map(numba.typeof, (*arguments, *later)))
    code.compile(types)
    return partial(code.overloads[types].entry_point, *arguments)


KERNELS: set[Callable[..., Any]] = set()
"""The Python functions of all kernels of the imported modules."""


def _with_signature(function: F) -> F:
    """Keeps the signature: numba asks for it twice, which takes as long as all the rest."""
    function.__signature__ = signature(function)  # type: ignore[attr-defined]
    return function


def _stamped(kernel: Any) -> Any:
    """Extends the cache stamp of a kernel by the stamps of all kernels it can call.

    The stamp is also the version of the cache index: numba compares the version before it unpickles
    the index, so that an index that names deleted classes is skipped and raises nothing.
    """
    kernel._cache = KernelCache(kernel.py_func)
    kernel._compilation_chain_init_hook = _nothing  # see `KernelCache.load_overload`
    _compile_once(kernel)
    known = [each for each in kernel.py_func.__globals__.values() if type(each) is type(kernel)]
    stamps = {stamp for each in known if (stamp := getattr(each, "cache_stamp", None)) is not None}
    index = kernel._cache._cache_file
    parts = repr((index._version, index._source_stamp, *sorted(stamps)))
    kernel.cache_stamp = index._source_stamp = index._version = sha256(parts.encode()).hexdigest()
    KERNELS.add(kernel.py_func)
    return kernel


def _nothing() -> None:
    return None


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


WORD = 16
"""Bytes of `copy_word`."""


def _copy_word(typing_context: Any, source: Any, first: Any, out: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = codegen.llvmir.VectorType(codegen.llvmir.IntType(8), WORD).as_pointer()
        places = []
        for n in (0, 2):
            array = context.make_array(signature.args[n])(context, builder, arguments[n])
            place = builder.gep(array.data, [arguments[n + 1]])
            places.append(builder.bitcast(place, word))
        builder.store(builder.load(places[0], align=1), places[1], align=1)
        return context.get_dummy_value()

    size = numba.types.int64
    return numba.types.void(source, size, out, size), code


copy_word: Callable[[NDArray[Any], int, NDArray[Any], int], None] = cast(
    Any, numba.extending.intrinsic(_copy_word)
)
"""Inside a kernel: copies `WORD` bytes from a place of one array of bytes to a place of another.
Neither place is checked."""


borrowed: Callable[[NDArray[Any]], NDArray[Any]] = cast(
    Any, numba.extending.intrinsic(_without_owner)
)
"""Inside a kernel: the same array without reference counting.

numba counts references at every call that takes an array, which costs more than many loops over
it. A kernel may skip the count if its caller keeps the arrays alive.
"""


def _table_at(context: Any, builder: Any, kind: Any, data: Any, rows: Any, columns: Any) -> Any:
    view = context.make_array(kind)(context, builder)
    size = context.get_constant(
        numba.types.intp, numba.np.numpy_support.as_dtype(kind.dtype).itemsize
    )
    fill: Any = numba.np.arrayobj.populate_array
    strides = [builder.mul(columns, size), size]
    shape = [rows, columns]
    return fill(
        view, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None
    )._getvalue()


def _table_view(typing_context: Any, row: Any, begin: Any, count: Any, width: Any) -> Any:
    table = row.copy(ndim=2, layout="C")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        cells, first, rows, columns = arguments
        source = context.make_array(signature.args[0])(context, builder, cells)
        data = builder.gep(source.data, [first])
        return _table_at(context, builder, signature.return_type, data, rows, columns)

    return table(row, *[numba.types.intp] * 3), code


table: Callable[[NDArray[Any], int, int, int], NDArray[Any]] = cast(
    Any, numba.extending.intrinsic(_table_view)
)
"""Inside a kernel: a (count, width) view of a flat array, beginning at element ``begin``.

Without reference counting and without a bounds check: the caller guarantees that the elements
exist.
"""


def _tables_of(kind: Any) -> Any:
    table = numba.types.Array(kind, 2, "C")

    def view(typing_context: Any, address: Any, count: Any, width: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, rows, columns = arguments
            pointer = context.get_data_type(kind).as_pointer()
            data = builder.inttoptr(address, pointer)
            return _table_at(context, builder, signature.return_type, data, rows, columns)

        return table(*[numba.types.intp] * 3), code

    return numba.extending.intrinsic(view)


floats_at: Callable[[int, int, int], NDArray[Any]] = cast(Any, _tables_of(numba.types.float64))
"""Inside a kernel: the (count, width) table of floats at an address (`array.ctypes.data`).

Passing an array from Python costs more than a loop over its rows, a number does not. The caller
keeps the array alive, and guarantees that it is contiguous and has these elements.
"""
whole_numbers_at: Callable[[int, int, int], NDArray[Any]] = cast(Any, _tables_of(numba.types.int64))
"""Inside a kernel: like `floats_at`, a table of integers."""
