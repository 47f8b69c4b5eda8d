"""PalletPattern: the poses of a pallet's cells, one after the other, and how far it is filled."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct

from understudy.config.pick_place.pallet import PalletConfig
from understudy.config.pick_place.position import Position
from understudy.errors import Refused
from understudy.jobs.pallet.frame import axes, point
from understudy.jobs.pallet.orders import Cells, layer_order
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, pose, rotation_about
from understudy.units import MM

PALLET_FULL, PALLET_EMPTY = "PALLET_FULL", "PALLET_EMPTY"
QUARTER = math.pi / 2.0


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
    """A `Part` that acts only when it is called; lengths in metres, poses of the tool in the cell.

    An index counts the cells in the order in which they are filled or, with `depalletise`, taken
    off.
    """

    def __init__(self, config: PalletConfig, place: Position | None = None) -> None:
        """``place``: the origin of a pallet whose section has none. Raises ConfigError if the
        corner points are degenerate."""
        self.config = config
        self._origin = config.origin or place or Position(0.0, 0.0, 0.0)
        self._axes = axes(self._origin, config.corner2, config.corner3)
        self._index = 0
        self.unreachable: tuple[int, ...] = ()

    # ── cells ──

    @cached_property
    def _layers(self) -> tuple[Cells, Cells]:
        """The cells of an even and of an odd layer."""
        c = self.config
        fewer = int(c.interleave == "SHIFT")
        return (
            layer_order(c.pattern, c.rows, c.columns, corner=c.corner),
            layer_order(
                c.pattern, c.rows, c.columns - fewer,
                corner=c.corner, opposite=c.interleave == "MIRROR",
            ),
        )  # fmt: skip

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
        return np.asarray(point(self._origin) + local @ self._axes.T)

    def get_position(self, index: int) -> Pose | Refused:
        """The pose of the tool at a cell."""
        if not 0 <= index < self.get_total_positions():
            return self._no_cell(index, self.get_total_positions() - 1)
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
        hand = float(np.sign(np.linalg.det(self._axes)))
        at = matrix(self._straight)
        at[:3, :3] = rotation_about(self._axes[:, 2], hand * QUARTER) @ at[:3, :3]
        return pose(at)

    # ── state ──

    def get_next_position(self) -> Pose | Refused:
        """The pose at the current index; the index then points to the next cell."""
        if self.is_done():
            return Refused(PALLET_EMPTY if self.config.depalletise else PALLET_FULL)
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
        c, (even, odd) = self.config, self._layers
        return len(even) * ((c.layers + 1) // 2) + len(odd) * (c.layers // 2)

    def is_done(self) -> bool:
        """Every cell was filled or, with `depalletise`, taken off."""
        return self._index >= self.get_total_positions()

    def stacked(self) -> int:
        """The number of parts on the pallet."""
        left = self.get_total_positions() - self._index
        return left if self.config.depalletise else self._index

    def is_full(self) -> bool:
        return self.stacked() == self.get_total_positions()

    def is_empty(self) -> bool:
        return self.stacked() == 0

    def reset(self) -> None:
        self._index = 0

    def set_layer(self, layer: int) -> Refused | None:
        """Continues at the first cell of a layer."""
        if not 0 <= layer < self.config.layers:
            return Refused(f"there is no layer {layer}; allowed: 0…{self.config.layers - 1}")
        self._index = int(np.argmax(self.cells[:, 2] == layer))
        return None

    def skip_to_position(self, index: int) -> Refused | None:
        """Continues at a cell; the total: every cell is done."""
        if not 0 <= index <= self.get_total_positions():
            return self._no_cell(index, self.get_total_positions())
        self._index = index
        return None

    def _cell(self, column: int) -> int:
        return int(self.cells[min(self._index, self.get_total_positions() - 1), column])

    def _no_cell(self, index: int, last: int) -> Refused:
        return Refused(f"there is no cell {index} on the pallet; allowed: 0…{last}")

    # ── heights ──

    def safe_height(self, index: int) -> float:
        """The height (cell's Z) of the tool at which a carried part passes above everything that is
        stacked before the cell of this index is handled, and above that cell itself."""
        return max(float(self._tops[min(index, len(self._tops) - 1)]), self._own_height(index))

    def safe_height_along(self, start: Pose, end: Pose, index: int) -> float:
        """As `safe_height`, for a straight way between two poses: only stacked parts near the way
        count. Not lower than the two poses themselves."""
        a, b = (np.array(each[:3]) @ self._axes[:, :2] for each in (start, end))
        near = self._stacked_cells(index) & (_distances(self._plane, a, b) < self._reach)
        tops = self.points[near, 2] + self._one_part
        return max(float(tops.max(initial=-math.inf)), start.z, end.z)

    def _own_height(self, index: int) -> float:
        last = self.get_total_positions() - 1
        return float(self.points[min(index, last), 2]) + self.config.clearance_mm * MM

    @cached_property
    def _one_part(self) -> float:
        """A tool that is this much above a cell carries its part above the part in that cell: one
        is gripped as the other was, so that one layer is between their tool points."""
        c = self.config
        return (c.layer_height * float(self._axes[2, 2]) + c.clearance_mm) * MM

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
        return np.asarray(self.points @ self._axes[:, :2])

    @cached_property
    def _reach(self) -> float:
        """A part whose centre is farther than this from another one cannot touch it: one diagonal
        of a cell. A part fits into its cell in every orientation of the layers."""
        return math.hypot(self.config.pitch_x, self.config.pitch_y) * MM

    def _stacked_cells(self, index: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        handled = np.arange(self.get_total_positions()) < index
        return ~handled if self.config.depalletise else handled

    # ── part ──

    def status(self, now: int) -> PalletStatus:
        return PalletStatus(
            self._index,
            self.get_current_row(),
            self.get_current_column(),
            self.get_current_layer(),
            self.get_total_positions(),
            self.stacked(),
            self.is_full(),
            self.is_empty(),
            self.unreachable,
        )

    def save(self) -> int:
        return self._index

    def load(self, state: int) -> None:
        self._index = int(state)


def _distances(points: Array, start: Array, end: Array) -> Array:
    """The distances of points to a segment, in a plane."""
    way = end - start
    length = float(way @ way)
    share = np.clip((points - start) @ way / length, 0.0, 1.0) if length else np.zeros(len(points))
    return np.asarray(np.linalg.norm(points - start - share[:, None] * way, axis=1))


def poses_of(pattern: PalletPattern, above: Sequence[float] = (0.0,)) -> list[Pose]:
    """The poses at all cells, each at these heights above its cell."""
    found = []
    for index in range(pattern.get_total_positions()):
        at = pattern.get_position(index)
        assert isinstance(at, Pose)
        found += [at._replace(z=at.z + height) for height in above]
    return found
