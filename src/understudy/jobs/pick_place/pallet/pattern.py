"""PalletPattern: the cells of a pallet one after the other, and how far it is filled."""

import numpy as np
from msgspec import Struct

from understudy.config.position import Position
from understudy.errors import Refused
from understudy.jobs.pick_place.pallet.config import PalletConfig
from understudy.jobs.pick_place.pallet.layout import PalletLayout
from understudy.space.pose import Pose

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
    """A `Part` that acts only when it is called; poses are those of the tool in the cell.

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

    # ── part ──

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
