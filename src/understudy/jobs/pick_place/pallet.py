"""A pallet: its frame, the order and the poses of its cells, and how far it is filled.

`PalletLayout` is the geometry, `PalletPattern` counts the cells that are done.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.errors import ConfigError, Refused
from understudy.jobs.pick_place.config import PalletConfig, PatternType, StartCorner
from understudy.space.pose import Pose, Position
from understudy.space.transform import Array, matrix, rotation_about
from understudy.space.transform import pose as pose_of_matrix
from understudy.units import MM

Cells = NDArray[np.int64]
"""(cells, 2): row and column."""
MOST_PLACES = 2000
"""Places of a pallet that the scene draws."""
HALF_PLACE = 0.4
"""Half the side of a drawn place, of the pitch of the pallet."""


# ── order of the cells of a layer ─────────────────────────────────────────────────────────────────


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
    """The places from outside to inside; the first row from the first column to the last."""
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


# ── the frame of a pallet ─────────────────────────────────────────────────────────────────────────

SHORTEST = 1e-3
"""Metres: corner points that are closer give no direction."""
UP = np.array([0.0, 0.0, 1.0])


def point(position: Position) -> Array:
    """x, y, z in metres."""
    return np.array([position.x, position.y, position.z]) * MM


def axes(origin: Position, corner2: Position | None, corner3: Position | None) -> Array:
    """(3, 3): the columns are the directions of the pallet's columns, rows and layers.

    From three points; from two and the cell's Z; or the axes of the cell. Layers go upwards: if the
    rows are to the right of the columns, the three directions are left-handed. Degenerate points
    are a ConfigError.
    """
    if corner2 is None:
        return np.eye(3)
    along = point(corner2) - point(origin)
    x = _direction(along, "corner2", "origin")
    if corner3 is None:
        y = _direction(np.cross(UP, along), "corner2", "the vertical through the origin")
    else:
        to = point(corner3) - point(origin)
        y = _direction(to - (to @ x) * x, "corner3", "the line from origin to corner2")
    z = np.cross(x, y)
    return np.stack([x, y, -z if z @ UP < 0.0 else z], axis=1)


def _direction(vector: Array, key: str, reference: str) -> Array:
    length = float(np.linalg.norm(vector))
    if length < SHORTEST:
        raise ConfigError(
            f"the point is too near to {reference}",
            key=key,
            allowed=f"a distance of at least {SHORTEST / MM:g} mm",
        )
    return vector / length


QUARTER = math.pi / 2.0


class PalletLayout:
    """A value: lengths in metres, poses of the tool in the cell.

    An index counts the cells in the order in which they are filled or, with `depalletise`, taken
    off.
    """

    def __init__(self, config: PalletConfig, place: Position | None = None) -> None:
        """``place``: the origin of a pallet whose section has none. Raises ConfigError if the
        corner points are degenerate."""
        self.config = config
        self._origin = config.origin or place or Position(0.0, 0.0, 0.0)
        self.axes = axes(self._origin, config.corner2, config.corner3)
        """Columns of a 3×3 matrix: along the columns, along the rows, and up."""

    # ── cells ──

    @cached_property
    def _layers(self) -> tuple[Cells, Cells]:
        """The cells of an even and of an odd layer."""
        c = self.config
        fewer = int(c.interleave == "SHIFT")
        return (
            layer_order(c.pattern, c.rows, c.columns, corner=c.corner),
            layer_order(
                c.pattern,
                c.rows,
                c.columns - fewer,
                corner=c.corner,
                opposite=c.interleave == "MIRROR",
            ),
        )

    @cached_property
    def cells(self) -> Cells:
        """(total, 3): row, column and layer by index."""
        order = np.concatenate(
            [
                np.insert(self._layers[layer % 2], 2, layer, axis=1)
                for layer in range(self.config.layers)
            ]
        )
        return order[::-1] if self.config.depalletise else order

    @cached_property
    def points(self) -> Array:
        """(total, 3): the tool point of every cell in the cell's frame."""
        c = self.config
        row, column, layer = self.cells.astype(np.float64).T
        odd = self.cells[:, 2] % 2 == 1
        x, y = column * c.pitch_x, row * c.pitch_y
        if c.interleave == "SHIFT":
            x = x + 0.5 * c.pitch_x * odd
        if c.interleave == "ROTATE":  # about the centre of the layer, 90° from columns to rows
            middle_x, middle_y = 0.5 * (c.columns - 1) * c.pitch_x, 0.5 * (c.rows - 1) * c.pitch_y
            turned_x, turned_y = middle_x - (y - middle_y), middle_y + (x - middle_x)
            x, y = np.where(odd, turned_x, x), np.where(odd, turned_y, y)
        local = np.stack([x, y, layer * c.layer_height], axis=1) * MM
        return np.asarray(point(self._origin) + local @ self.axes.T)

    @cached_property
    def total(self) -> int:
        """The number of cells."""
        c, (even, odd) = self.config, self._layers
        return len(even) * ((c.layers + 1) // 2) + len(odd) * (c.layers // 2)

    def pose(self, index: int) -> Pose:
        """The pose of the tool at a cell."""
        x, y, z = self.points[index].tolist()
        odd = int(self.cells[index, 2]) % 2 == 1
        return Pose(x, y, z, *(self._turned if odd else self._straight)[3:])

    @cached_property
    def _straight(self) -> Pose:
        return self._origin.pose()

    @cached_property
    def _turned(self) -> Pose:
        """The origin with the orientation of the odd layers."""
        if self.config.interleave != "ROTATE":
            return self._straight
        hand = float(np.sign(np.linalg.det(self.axes)))
        at = matrix(self._straight)
        at[:3, :3] = rotation_about(self.axes[:, 2], hand * QUARTER) @ at[:3, :3]
        return pose_of_matrix(at)

    # ── heights ──

    def safe_height(self, index: int) -> float:
        """The height (cell's Z) of the tool at which a carried part passes above everything that is
        stacked before the cell of this index is handled, and above that cell itself."""
        return max(float(self._tops[min(index, len(self._tops) - 1)]), self._own_height(index))

    def safe_height_along(self, start: Pose, end: Pose, index: int) -> float:
        """As `safe_height`, for a straight way between two poses: only stacked parts near the way
        count. Not lower than the two poses themselves."""
        a, b = (np.array(each[:3]) @ self.axes[:, :2] for each in (start, end))
        near = self._stacked_cells(index) & (_distances(self._plane, a, b) < self._reach)
        tops = self.points[near, 2] + self._one_part
        return max(float(tops.max(initial=-math.inf)), start.z, end.z)

    def _own_height(self, index: int) -> float:
        last = self.total - 1
        return float(self.points[min(index, last), 2]) + self.config.clearance_mm * MM

    @cached_property
    def _one_part(self) -> float:
        """A tool that is this much above a cell carries its part above the part in that cell: one
        is gripped as the other was, so that one layer is between their tool points."""
        c = self.config
        return (c.layer_height * float(self.axes[2, 2]) + c.clearance_mm) * MM

    @cached_property
    def _tops(self) -> Array:
        """(total + 1,): by index, the height that clears all parts that are then stacked."""
        tops = self.points[:, 2] + self._one_part
        none = np.array([-math.inf])
        if self.config.depalletise:
            return np.append(np.maximum.accumulate(tops[::-1])[::-1], none)
        return np.append(none, np.maximum.accumulate(tops))

    @cached_property
    def _plane(self) -> Array:
        """(total, 2): the cells along columns and rows of the pallet."""
        return np.asarray(self.points @ self.axes[:, :2])

    @cached_property
    def _reach(self) -> float:
        """A part whose centre is farther than this from another one cannot touch it: one diagonal
        of a cell. A part fits into its cell in every orientation of the layers."""
        return math.hypot(self.config.pitch_x, self.config.pitch_y) * MM

    def _stacked_cells(self, index: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        handled = np.arange(self.total) < index
        return ~handled if self.config.depalletise else handled


def _distances(points: Array, start: Array, end: Array) -> Array:
    """The distances of points to a segment, in a plane."""
    way = end - start
    length = float(way @ way)
    share = np.clip((points - start) @ way / length, 0.0, 1.0) if length else np.zeros(len(points))
    return np.asarray(np.linalg.norm(points - start - share[:, None] * way, axis=1))


PALLET_FULL, PALLET_EMPTY = "PALLET_FULL", "PALLET_EMPTY"


class PalletStatus(Struct, frozen=True):
    """The next cell (the last one if there is none) and the number of parts on the pallet.

    `unreachable`: indices of the cells that the arm cannot reach.
    """

    index: int
    row: int
    column: int
    layer: int
    total: int
    stacked: int
    full: bool
    empty: bool
    unreachable: tuple[int, ...] = ()


class PalletPattern:
    """A component that acts only when it is called; poses are those of the tool in the cell.

    An index counts the cells in the order in which they are filled or, with `depalletise`, taken
    off.
    """

    def __init__(self, config: PalletConfig, place: Position | None = None) -> None:
        """``place``: the origin of a pallet whose section has none. Raises ConfigError if the
        corner points are degenerate."""
        self.layout = PalletLayout(config, place)
        self.safe_height = self.layout.safe_height
        self.safe_height_along = self.layout.safe_height_along
        self._index = 0
        self.unreachable: tuple[int, ...] = ()

    def get_position(self, index: int) -> Pose | Refused:
        """The pose of the tool at a cell."""
        if not 0 <= index < self.layout.total:
            return self._no_cell(index, self.layout.total - 1)
        return self.layout.pose(index)

    def get_next_position(self) -> Pose | Refused:
        """The pose at the current index; the index then points to the next cell."""
        if self.is_done():
            return Refused(PALLET_EMPTY if self.layout.config.depalletise else PALLET_FULL)
        found = self.get_position(self._index)
        self._index += 1
        return found

    def get_current_index(self) -> int:
        return self._index

    def get_current_row(self) -> int:
        return self._cell(0)

    def get_current_column(self) -> int:
        return self._cell(1)

    def get_current_layer(self) -> int:
        return self._cell(2)

    def get_total_positions(self) -> int:
        return self.layout.total

    def is_done(self) -> bool:
        """Every cell was filled or, with `depalletise`, taken off."""
        return self._index >= self.layout.total

    def stacked(self) -> int:
        """The number of parts on the pallet."""
        left = self.layout.total - self._index
        return left if self.layout.config.depalletise else self._index

    def is_full(self) -> bool:
        return self.stacked() == self.layout.total

    def is_empty(self) -> bool:
        return self.stacked() == 0

    def reset(self) -> None:
        self._index = 0

    def set_layer(self, layer: int) -> Refused | None:
        """Continues at the first cell of a layer."""
        if not 0 <= layer < self.layout.config.layers:
            return Refused(f"there is no layer {layer}; allowed: 0…{self.layout.config.layers - 1}")
        self._index = int(np.argmax(self.layout.cells[:, 2] == layer))
        return None

    def skip_to_position(self, index: int) -> Refused | None:
        """Continues at a cell; the total: every cell is done."""
        if not 0 <= index <= self.layout.total:
            return self._no_cell(index, self.layout.total)
        self._index = index
        return None

    def _cell(self, column: int) -> int:
        return int(self.layout.cells[min(self._index, self.layout.total - 1), column])

    def _no_cell(self, index: int, last: int) -> Refused:
        return Refused(f"there is no cell {index} on the pallet; allowed: 0…{last}")

    # ── component ──

    def scene_marks(self) -> dict[str, Any]:
        """The tool points of the places in their order, and half a place along columns and rows."""
        layout = self.layout
        pitches = (layout.config.pitch_x, layout.config.pitch_y)
        places = {
            "places": layout.points[:MOST_PLACES].round(5).tolist(),
            "half": [
                (layout.axes[:, n] * (pitch * MM * HALF_PLACE)).tolist()
                for n, pitch in enumerate(pitches)
            ],
            "depalletise": layout.config.depalletise,
        }
        return {"pallets": [places]}

    def status(self, now: int) -> PalletStatus:
        return PalletStatus(
            self._index,
            self.get_current_row(),
            self.get_current_column(),
            self.get_current_layer(),
            self.layout.total,
            self.stacked(),
            self.is_full(),
            self.is_empty(),
            self.unreachable,
        )

    def save(self) -> int:
        return self._index

    def load(self, state: int) -> None:
        if refused := self.skip_to_position(int(state)):
            raise ValueError(refused.reason)


# ── reach ─────────────────────────────────────────────────────────────────────────────────────────


Reachable = Callable[[Sequence[Pose]], Sequence[bool]]
"""Whether an arm, with its tool, reaches each of these poses."""
MOST_NAMED = 8
"""Cells that a message names."""


def unreachable(
    pallet: PalletLayout, check: Reachable, *, approach: float = 0.0
) -> tuple[int, ...]:
    """Indices of the cells whose place pose, or whose pose ``approach`` metres above it, the arm
    cannot reach."""
    heights = (0.0, approach) if approach else (0.0,)
    poses = (pallet.pose(index) for index in range(pallet.total))
    able = list(check([at._replace(z=at.z + height) for at in poses for height in heights]))
    rows = zip(*(able[start :: len(heights)] for start in range(len(heights))), strict=True)
    return tuple(index for index, row in enumerate(rows) if not all(row))


def unreachable_message(pallet: PalletLayout, indices: Sequence[int]) -> str:
    """The sentence that names these cells."""
    cells = [pallet.cells[index].tolist() for index in indices[:MOST_NAMED]]
    named = ", ".join(
        f"{i} (row {r}, column {c}, layer {n})"
        for i, (r, c, n) in zip(indices, cells, strict=False)
    )
    more = f" and {len(indices) - MOST_NAMED} more" if len(indices) > MOST_NAMED else ""
    return (
        f"the arm cannot reach {len(indices)} of {pallet.total} cells of the "
        f"pallet: {named}{more}; change origin, corner2 or the pitch"
    )
