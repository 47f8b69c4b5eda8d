"""What a camera looks at while it is calibrated, as configurations and requests have it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.space.model.appearance import check_charuco, check_marker

ENOUGH_POSES = 10
"""Of a target, for a calibration."""
Count = Annotated[int, Meta(ge=3, le=100)]
SideMm = Annotated[float, Meta(ge=0.001, le=10_000)]
"""Of a square or a marker; OpenCV fails on sides that are 0 as 32-bit floats."""
Name = Annotated[str, Meta(max_length=64)]


class CalibrationTarget(Struct, frozen=True, forbid_unknown_fields=True):
    """What is looked at while the camera is calibrated. `columns` and `rows`: squares of a board.
    `square_mm`: of a board; `id` and `size_mm`: of a marker."""

    type: Literal["charuco", "chessboard", "marker"] = "charuco"
    columns: Count = 7
    rows: Count = 5
    square_mm: SideMm = 30.0
    dictionary: Name = "DICT_4X4_50"
    id: Annotated[int, Meta(ge=0, le=100_000)] = 0
    size_mm: SideMm = 50.0

    def check(self) -> None:
        """Raises ConfigError for a target that does not exist, or whose pose a picture does not
        tell."""
        if self.type == "marker":
            check_marker(self.dictionary, self.id)
        if self.type == "charuco":
            check_charuco(self.dictionary, self.columns, self.rows)
        if self.type == "chessboard" and (self.columns + self.rows) % 2 == 0:
            raise ConfigError(
                f"a chess board of {self.columns} × {self.rows} squares looks the same after half "
                "a turn",
                key="columns",
                allowed="an odd sum of columns and rows, as 9 × 6; or type charuco",
            )
