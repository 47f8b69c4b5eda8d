"""Numbers of a caller, checked at the door: an error says what came and what is allowed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.space.transform import Array

SHOWN = 60
"""Characters of a wrong value in a message."""


def given_numbers(values: ArrayLike, columns: int, what: str) -> Array:
    """One row or several rows of numbers; raises ValueError with what came and what is allowed."""
    try:
        found = np.require(values, np.float64, ["C", "W"])
    except (TypeError, ValueError):
        raise ValueError(f"{what}: {columns} numbers are needed, got {shown(values)}") from None
    if found.ndim == 0 or found.ndim > 2 or found.shape[-1] != columns:
        raise ValueError(
            f"{what}: {columns} numbers are needed, or rows of {columns}; got an array of the "
            f"shape {found.shape}"
        )
    if not np.isfinite(found).all():
        raise ValueError(f"{what}: finite numbers are needed, got {shown(found.tolist())}")
    return found


def given_row(values: ArrayLike, columns: int, what: str) -> Array:
    """One row of numbers."""
    found = given_numbers(values, columns, what)
    if found.ndim != 1:
        raise ValueError(f"{what}: one row of {columns} numbers is needed, got {len(found)} rows")
    return found


def given_positive(value: Any, what: str) -> float:
    """A number above 0."""
    if not isinstance(value, int | float | np.number) or not 0.0 < float(value) < np.inf:
        raise ValueError(f"{what}: a number above 0 is needed, got {shown(value)}")
    return float(value)


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
