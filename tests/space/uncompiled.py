"""The uncompiled Python function of a kernel."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def uncompiled(kernel: F) -> F:
    dispatcher: Any = kernel
    return cast(F, dispatcher.py_func)
