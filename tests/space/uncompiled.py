"""A kernel as the Python it was written in: no machine code, the same arithmetic."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def uncompiled(kernel: F) -> F:
    dispatcher: Any = kernel
    return cast(F, dispatcher.py_func)
