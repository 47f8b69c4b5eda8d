"""Section `pallet`: size, spacing, corners and pattern."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.config.pick_place.position import Position

PatternType = Literal["SNAKE", "ZIGZAG", "ROW_BY_ROW", "COLUMN_BY_COLUMN", "SPIRAL"]
Count = Annotated[int, Meta(ge=1, le=1000)]
Distance = Annotated[float, Meta(gt=0, le=10_000)]


class PalletConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`origin`: the first cell; without it the place position. `corner2`: a point along the
    columns; `corner3`: a point along the rows; without them the axes of the cell."""

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
