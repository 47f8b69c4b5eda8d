"""The order in which the cells of one layer are filled: rows of (row, column)."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from understudy.jobs.pick_place.pallet.config import PatternType, StartCorner

Cells = NDArray[np.int64]
"""(cells, 2): row and column."""


def row_by_row(rows: int, columns: int) -> Cells:
    return np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)


def column_by_column(rows: int, columns: int) -> Cells:
    return row_by_row(columns, rows)[:, ::-1]


def snake(rows: int, columns: int) -> Cells:
    """Row after row; every second one backwards."""
    row, column = row_by_row(rows, columns).T
    return np.stack([row, np.where(row % 2, columns - 1 - column, column)], axis=1)


def zigzag(rows: int, columns: int) -> Cells:
    """Column after column; every second one backwards."""
    return snake(columns, rows)[:, ::-1]


def spiral(rows: int, columns: int) -> Cells:
    """From outside to inside; the first row from the first column to the last."""
    cells = row_by_row(rows, columns)
    row, column = cells.T
    ring = np.minimum.reduce([row, column, rows - 1 - row, columns - 1 - column])
    down, right = row - ring, column - ring
    height, width = rows - 1 - 2 * ring, columns - 1 - 2 * ring
    along = np.select(
        [down == 0, right == width, down == height],
        [right, width + down, 2 * width + height - right],
        default=2 * width + 2 * height - down,
    )
    return cells[np.lexsort((along, ring))]


ORDERS: Mapping[PatternType, Callable[[int, int], Cells]] = {
    "SNAKE": snake,
    "ZIGZAG": zigzag,
    "ROW_BY_ROW": row_by_row,
    "COLUMN_BY_COLUMN": column_by_column,
    "SPIRAL": spiral,
}
BACKWARDS: Mapping[StartCorner, tuple[bool, bool]] = {
    "BOTTOM_LEFT": (False, False),
    "BOTTOM_RIGHT": (False, True),
    "TOP_LEFT": (True, False),
    "TOP_RIGHT": (True, True),
}
"""Start corner → whether rows and columns are counted from the other end."""


def layer_order(
    pattern: PatternType, rows: int, columns: int, *, corner: StartCorner, opposite: bool = False
) -> Cells:
    """The cells of a layer that begins at a corner; ``opposite``: at the corner across."""
    cells = ORDERS[pattern](rows, columns)
    last = np.array([rows - 1, columns - 1])
    flipped = np.array(BACKWARDS[corner]) ^ opposite
    return np.where(flipped, last - cells, cells)
