"""How the house compiles its inner loops: cached on disk, free of the GIL, exact arithmetic."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The same function as machine code; compiled at its first call, then taken from the cache."""
    kernel = njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    return cast(F, _dated(kernel))


def inlined(function: F) -> F:
    """As ``compiled``, but written into its callers: for small loops over many arrays."""
    kernel = njit(
        cache=True, nogil=True, fastmath=False, error_model="numpy", inline="always"
    )(function)  # fmt: skip
    return cast(F, _dated(kernel))


def _dated(kernel: Any) -> Any:
    """Its place in the cache is dated by all kernels it can call, not only by its own file.

    Else a kernel would keep the old machine code of what another file changed.
    """
    known = kernel.py_func.__globals__.values()
    stamps = {date for each in known if (date := getattr(each, "dated", None)) is not None}
    index = kernel._cache._cache_file
    parts = repr((index._source_stamp, *sorted(stamps)))
    kernel.dated = index._source_stamp = sha256(parts.encode()).hexdigest()
    return kernel


def _ownerless(typing_context: Any, array: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), code


borrowed: Callable[[NDArray[Any]], NDArray[Any]] = cast(Any, intrinsic(_ownerless))
"""Inside a kernel: the same array without an owner.

Who holds an array is counted at every call it is passed to, which costs more than many a loop over
it. A kernel whose caller keeps the arrays alive need not count.
"""


def _laid_out(typing_context: Any, row: Any, begin: Any, count: Any, width: Any) -> Any:
    table = row.copy(ndim=2, layout="C")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        cells, first, rows, columns = arguments
        source = context.make_array(signature.args[0])(context, builder, cells)
        view = context.make_array(signature.return_type)(context, builder)
        stride = builder.mul(columns, source.itemsize)
        filled: Any = arrayobj.populate_array
        return filled(
            view,
            data=builder.gep(source.data, [first]),
            shape=[rows, columns],
            strides=[stride, source.itemsize],
            itemsize=source.itemsize,
            meminfo=None,
        )._getvalue()

    return table(row, types.intp, types.intp, types.intp), code


table: Callable[[NDArray[Any], int, int, int], NDArray[Any]] = cast(Any, intrinsic(_laid_out))
"""Inside a kernel: ``count`` rows of ``width`` numbers that stand in a row from ``begin`` on.

Without an owner and without a look at whether they are there: whoever laid them out knows.
"""
