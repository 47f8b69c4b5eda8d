"""Section `pallet`: size, spacing, corners, pattern and layers."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.position import Position

PatternType = Literal["SNAKE", "ZIGZAG", "ROW_BY_ROW", "COLUMN_BY_COLUMN", "SPIRAL"]
StartCorner = Literal["BOTTOM_LEFT", "BOTTOM_RIGHT", "TOP_LEFT", "TOP_RIGHT"]
Interleave = Literal["NONE", "MIRROR", "ROTATE", "SHIFT"]
Count = Annotated[int, Meta(ge=1, le=1000)]
Distance = Annotated[float, Meta(gt=0, le=10_000)]
MOST_CELLS = 100_000
SAME_LENGTH = 1e-6
"""Share by which two sides that are meant to be equal may differ."""


class PalletConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in mm. `origin`: the first cell; without it the place position. `corner2`: a point
    along the columns; `corner3`: a point along the rows; without them the axes of the cell.

    `start_corner`: where a layer begins, seen with the columns to the right and the rows upwards;
    without it `start_bottom_left` decides between BOTTOM_LEFT and TOP_LEFT. `interleave`: what is
    different in every second layer. MIRROR: it begins at the opposite corner. ROTATE: the layer and
    its parts are turned by 90°. SHIFT: it is shifted by half a pitch along the columns and has one
    column less. `depalletise`: the parts are taken off, in the reverse order.
    `clearance_mm`: between a carried part and the top of what is stacked.
    """

    rows: Count = 4
    columns: Count = 4
    layers: Count = 3
    pitch_x: Distance = 100.0
    pitch_y: Distance = 100.0
    layer_height: Distance = 50.0
    origin: Position | None = None
    corner2: Position | None = None
    corner3: Position | None = None
    pattern: PatternType = "SNAKE"
    start_bottom_left: bool = True
    start_corner: StartCorner | None = None
    interleave: Interleave = "NONE"
    depalletise: bool = False
    clearance_mm: Annotated[float, Meta(ge=0, le=1000)] = 20.0

    def __post_init__(self) -> None:
        cells = self.rows * self.columns * self.layers
        if cells > MOST_CELLS:
            raise ValueError(f"{cells} cells; allowed: at most {MOST_CELLS}")
        if self.start_corner is not None and not self.start_bottom_left:
            raise ValueError("start_corner and start_bottom_left: false are given; use one of them")
        if self.corner3 is not None and self.corner2 is None:
            raise ValueError("corner3 is given without corner2")
        if self.interleave == "SHIFT" and self.columns < 2:
            raise ValueError("interleave: SHIFT needs 2 columns or more")
        width, depth = self.columns * self.pitch_x, self.rows * self.pitch_y
        if self.interleave == "ROTATE" and not math.isclose(width, depth, rel_tol=SAME_LENGTH):
            raise ValueError(
                f"interleave: ROTATE needs square layers; this one is {width:g} × {depth:g} mm"
            )

    @property
    def corner(self) -> StartCorner:
        return self.start_corner or ("BOTTOM_LEFT" if self.start_bottom_left else "TOP_LEFT")
