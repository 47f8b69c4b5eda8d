"""PalletLayout: the cells of a pallet in their order, their poses, and safe heights above them."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from understudy.config.position import Position
from understudy.jobs.pick_place.pallet.config import PalletConfig
from understudy.jobs.pick_place.pallet.frame import axes, point
from understudy.jobs.pick_place.pallet.orders import Cells, layer_order
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, rotation_about
from understudy.space.transform import pose as pose_of_matrix
from understudy.units import MM

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
