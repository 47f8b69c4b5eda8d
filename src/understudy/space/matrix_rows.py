"""4×4 matrices as files and messages have them: four rows, with millimetres in the last column."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from understudy.space.transform import Array
from understudy.units import MM

Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Row = tuple[Number, Number, Number, Number]
Rows = tuple[Row, Row, Row, Row]


def rows_mm(place: Array) -> Rows:
    """The rows of a matrix in metres."""
    scaled = place.copy()
    scaled[:3, 3] /= MM
    a, b, c, d = (tuple(row) for row in scaled.tolist())
    return a, b, c, d


def from_rows_mm(rows: Rows) -> Array:
    """The inverse of `rows_mm`: 4×4 in metres."""
    place = np.array(rows, dtype=np.float64)
    place[:3, 3] *= MM
    return place
