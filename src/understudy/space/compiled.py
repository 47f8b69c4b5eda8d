"""How the house compiles its inner loops: cached on disk, free of the GIL, exact arithmetic."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The same function as machine code; compiled at its first call, then taken from the cache."""
    return cast(F, njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function))


def inlined(function: F) -> F:
    """As ``compiled``, but written into its callers: for small loops over many arrays."""
    return cast(
        F,
        njit(cache=True, nogil=True, fastmath=False, error_model="numpy", inline="always")(
            function
        ),
    )
