"""How an object of the cell looks to a camera: its colour, and a marker or a board on its top.

A marker or a board lies in the middle of the upper face, the x axis of the object to the right and
its y axis up, as seen from above.
"""

import math
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from understudy.errors import ConfigError, unknown
from understudy.units import MM

# ── dictionaries of fiducial markers ──────────────────────────────────────────────────────────────
#
# As OpenCV has them: a table, so that a cell file is checked without loading OpenCV. A test
# compares it with OpenCV.


class MarkerDictionary(NamedTuple):
    """The size of a dictionary of markers.

    `cells`: along a side of a marker, without its black border. `markers`: how many.
    """

    cells: int
    markers: int


DICTIONARIES = {
    f"DICT_{side}X{side}_{count}": MarkerDictionary(side, count)
    for side in (4, 5, 6, 7)
    for count in (50, 100, 250, 1000)
} | {
    name: MarkerDictionary(cells, markers)
    for names, cells, markers in (
        (("DICT_ARUCO_ORIGINAL",), 5, 1024),
        (("DICT_APRILTAG_16h5", "DICT_APRILTAG_16H5"), 4, 30),
        (("DICT_APRILTAG_25h9", "DICT_APRILTAG_25H9"), 5, 35),
        (("DICT_APRILTAG_36h10", "DICT_APRILTAG_36H10"), 6, 2320),
        (("DICT_APRILTAG_36h11", "DICT_APRILTAG_36H11"), 6, 587),
        (("DICT_ARUCO_MIP_36h12", "DICT_ARUCO_MIP_36H12"), 6, 250),
    )
    for name in names
}


def dictionary_of(name: str) -> MarkerDictionary:
    """The dictionary of this name; ConfigError with the key `dictionary` if there is none."""
    if name not in DICTIONARIES:
        raise unknown("dictionary of markers", name, DICTIONARIES, key="dictionary")
    return DICTIONARIES[name]


def check_marker(name: str, number: int) -> None:
    """Raises ConfigError if the dictionary has no marker of this number."""
    count = dictionary_of(name).markers
    if not 0 <= number < count:
        allowed = f"0 … {count - 1}"
        raise ConfigError(f"{name} has no such marker", key="id", value=number, allowed=allowed)


def check_charuco(name: str, columns: int, rows: int) -> None:
    """Raises ConfigError if the dictionary has too few markers for a ChArUco board."""
    needed, there = columns * rows // 2, dictionary_of(name).markers
    if needed > there:
        raise ConfigError(
            f"{name} has {there} markers and the board needs {needed}",
            key="columns",
            value=f"{columns} × {rows} squares",
            allowed=f"at most {2 * there} squares, or a larger dictionary",
        )


# ── what lies on the upper face of an object ──────────────────────────────────────────────────────


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
    """What a camera sees of an object beside its shape.

    `color`: as `#d9822b`; empty: that of the camera's settings.
    """

    color: str = ""
    marker: MarkerConfig | None = None
    board: BoardConfig | None = None


PLAIN = Appearance()
