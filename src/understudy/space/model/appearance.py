"""How an object of the cell looks to a camera: its colour, and a marker or a board on its top.

A marker or a board lies in the middle of the upper face, the x axis of the object to the right and
its y axis up, as seen from above.
"""

import math
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.space.model.dictionaries import check_charuco, check_marker, dictionary_of
from understudy.units import MM

ColorName = Annotated[str, Meta(pattern="^#[0-9a-fA-F]{6}$")]
Dictionary = Annotated[str, Meta(max_length=50, pattern="^DICT_[A-Za-z0-9_]+$")]
Side = Annotated[float, Meta(gt=0, le=10_000)]
Squares = Annotated[int, Meta(ge=2, le=100)]
ROUNDING_MM = 1e-6
BORDERS = 2
"""Cells of a border on both sides of a marker: a black one, and a white one around it."""


class UpperFace(NamedTuple):
    """Where a marker or a board lies. `round`: a circle of the diameter x."""

    x_mm: float
    y_mm: float
    round: bool = False

    def holds(self, x_mm: float, y_mm: float) -> bool:
        """Whether paper of this size in the middle of the face does not stick out."""
        if self.round:
            return math.hypot(x_mm, y_mm) <= self.x_mm + ROUNDING_MM
        return x_mm <= self.x_mm + ROUNDING_MM and y_mm <= self.y_mm + ROUNDING_MM

    def __str__(self) -> str:
        return (
            f"a circle of {self.x_mm:g} mm" if self.round else f"{self.x_mm:g} × {self.y_mm:g} mm"
        )


class MarkerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A fiducial marker. `dictionary`: as OpenCV calls it. `size_mm`: the side of its black square;
    a white border of one cell is around it."""

    dictionary: Dictionary = "DICT_4X4_50"
    id: Annotated[int, Meta(ge=0, le=10_000)] = 0
    size_mm: Side = 50.0

    @property
    def size(self) -> float:
        return self.size_mm * MM

    def check(self, face: UpperFace | None) -> None:
        """Raises ConfigError for a marker that does not exist, or is larger than the face that it
        lies on (None: not known)."""
        check_marker(self.dictionary, self.id)
        cells = dictionary_of(self.dictionary).cells + BORDERS
        share = (cells + BORDERS) / cells
        side = self.size_mm * share
        if face is None or face.holds(side, side):
            return
        widest = face.x_mm / math.sqrt(2.0) if face.round else min(face.x_mm, face.y_mm)
        raise ConfigError(
            f"the marker with its white border has {side:g} × {side:g} mm, and the upper face of "
            f"the object is {face}",
            key="size_mm",
            value=self.size_mm,
            allowed=f"up to {math.floor(widest / share * 100.0) / 100.0:g}, or a larger object",
        )


class BoardConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A calibration target. `columns` and `rows`: of squares. `dictionary`: of the markers in the
    white squares of a ChArUco board."""

    type: Literal["charuco", "chessboard"] = "charuco"
    columns: Squares = 7
    rows: Squares = 5
    square_mm: Side = 30.0
    dictionary: Dictionary = "DICT_4X4_50"

    @property
    def square(self) -> float:
        return self.square_mm * MM

    def check(self, face: UpperFace | None) -> None:
        """Raises ConfigError for a board with more markers than its dictionary has, or larger than
        the face that it lies on (None: not known)."""
        if self.type == "charuco":
            check_charuco(self.dictionary, self.columns, self.rows)
        x, y = self.columns * self.square_mm, self.rows * self.square_mm
        if face is None or face.holds(x, y):
            return
        raise ConfigError(
            f"the board has {x:g} × {y:g} mm, and the upper face of the object is {face}",
            key="square_mm",
            value=self.square_mm,
            allowed="smaller or fewer squares, or a larger object",
        )


class Appearance(Struct, frozen=True):
    """`color`: as `#d9822b`; empty: that of the camera's settings."""

    color: str = ""
    marker: MarkerConfig | None = None
    board: BoardConfig | None = None

    def checked(self) -> "Appearance":
        if self.marker is not None and self.board is not None:
            allowed = "one of marker and board"
            raise ConfigError("a face has a marker and a board", key="board", allowed=allowed)
        return self


PLAIN = Appearance()
