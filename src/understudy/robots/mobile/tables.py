"""Arrays of robots in a snapshot: lists of numbers by the name of the array."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import ValidationError
from numpy.typing import NDArray

Columns = dict[str, list[Any]]


def columns(arrays: Mapping[str, NDArray[Any]]) -> Columns:
    return {name: array.tolist() for name, array in arrays.items()}


def restore(arrays: Mapping[str, NDArray[Any]], saved: Columns) -> None:
    """Fills the arrays in place; raises a `ValidationError` if a table has another size."""
    for name, array in arrays.items():
        try:
            found = np.array(saved.get(name), dtype=array.dtype).reshape(array.shape)
        except (ValueError, TypeError):
            raise ValidationError(f"the snapshot has other robots ({name})") from None
        array[...] = found
