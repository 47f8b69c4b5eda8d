"""Markers and boards: their patterns, and finding them in pictures. Needs the extra `vision`.

The frame of a marker is in its middle: x to the right, y up, z out of the paper. The frame of a
board is in the corner where its first square is: x along the columns, y along the rows, z into the
paper, as OpenCV has it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from understudy.errors import ConfigError, unknown
from understudy.sight.bundle import Corners
from understudy.sight.faces import Pattern
from understudy.sight.lens import Lens
from understudy.sight.targets import CalibrationTarget
from understudy.space.transform import Array
from understudy.units import MM

Image = Any
"""(height, width) or (height, width, 3) of uint8."""
Refinement = Literal["edges", "none", "subpix", "contour", "apriltag"]
"""How corners are made precise: by the lines of their sides, or as OpenCV does."""
DICTIONARIES = tuple(each for each in dir(cv2.aruco) if each.startswith("DICT_"))
"""The names of OpenCV's dictionaries of markers."""
if TYPE_CHECKING:
    DictionaryName = str
else:
    DictionaryName = Literal[DICTIONARIES]
APRILTAG_SHIFT = 0.42
"""Pixels by which corners of the refinement `apriltag` lie too far right and down: measured on
rendered markers, the same for every size and distance (tests/sight/test_markers.py)."""
WHITE_BORDER = 1
"""Cells of white paper around a marker."""
BOARD_MARGIN = 2
"""Cells that a square of a board has more than its marker, on both sides together."""
SQUARE_SHARE = 1.0
"""Cells of a square's side that the window of the refinement takes."""


def dictionary(name: str) -> Any:
    """One of OpenCV's dictionaries by name: DICT_4X4_50, DICT_APRILTAG_36h11, …"""
    if name not in DICTIONARIES:
        raise unknown("dictionary of markers", name, DICTIONARIES)
    return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, name))


def _cells(name: str, number: int) -> Any:
    """The cells of a marker with its black border, one pixel each."""
    book = dictionary(name)
    count = len(book.bytesList)
    if not 0 <= number < count:
        allowed = f"0 … {count - 1}"
        raise ConfigError(f"{name} has no such marker", value=number, allowed=allowed)
    return cv2.aruco.generateImageMarker(book, number, book.markerSize + 2)


def _in_color(gray: Any) -> Pattern:
    return np.repeat(np.asarray(gray, dtype=np.uint8)[..., None], 3, axis=2)


def marker_pattern(name: str, number: int) -> Pattern:
    """A marker with a white border of one cell."""
    return _in_color(np.pad(_cells(name, number), WHITE_BORDER, constant_values=255))


def paper_size(name: str, size: float) -> float:
    """The side of the paper with its white border, for a marker of this side."""
    cells = dictionary(name).markerSize + 2
    return float(size * (cells + 2 * WHITE_BORDER) / cells)


class Marker(NamedTuple):
    """A marker in a picture. `corners`: (4, 2) pixels, from the upper left one clockwise."""

    number: int
    corners: Array


class MarkerFinder:
    """Finds the markers of a dictionary."""

    def __init__(self, name: str = "DICT_4X4_50", refinement: Refinement = "edges") -> None:
        self._shift = APRILTAG_SHIFT if refinement == "apriltag" else 0.0
        self._cells = dictionary(name).markerSize + 2 if refinement == "edges" else 0
        settings = cv2.aruco.DetectorParameters()
        method = "none" if refinement == "edges" else refinement
        settings.cornerRefinementMethod = getattr(cv2.aruco, f"CORNER_REFINE_{method.upper()}")
        settings.cornerRefinementMinAccuracy = 0.001
        settings.cornerRefinementMaxIterations = 100
        self._detector = cv2.aruco.ArucoDetector(dictionary(name), settings)

    def find(self, picture: Image, lens: Lens | None = None) -> list[Marker]:
        """In the order of their numbers. Without ``lens`` the sides are taken as straight in the
        picture: a lens with distortion bends them."""
        gray = gray_of(picture)
        found: Any = self._detector.detectMarkers(gray)
        corners, numbers, _ = found
        if numbers is None:
            return []
        spots = np.array([each[0] for each in corners], dtype=np.float64) - self._shift
        if self._cells:
            straight = lens or Lens(gray.shape[1], gray.shape[0], 1.0, 1.0, 0.0, 0.0)
            spots = refined_by_sides(gray, spots, self._cells, straight)
        pairs = zip(numbers.reshape(-1).tolist(), spots, strict=True)
        return sorted((Marker(*pair) for pair in pairs), key=lambda marker: marker.number)


def gray_of(picture: Image) -> Image:
    return picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)


def marker_place(corners: Array, size: float, lens: Lens) -> Array:
    """The marker in the frame of the camera, 4×4, from its four corners."""
    return place_of(corner_points(size), corners, lens, method=cv2.SOLVEPNP_IPPE_SQUARE)


def corner_points(size: float) -> Array:
    """The corners of a marker in its own frame, (4, 3), from the upper left one clockwise."""
    half = 0.5 * size
    return np.array([(-half, half, 0), (half, half, 0), (half, -half, 0), (-half, -half, 0)])


def place_of(points: Array, pixels: Array, lens: Lens, *, method: int) -> Array:
    """Where the camera sees an object with these points: 4×4."""
    bend = np.array(lens.distortion)
    _, turn, shift = cv2.solvePnP(points, pixels, lens.matrix, bend, flags=method)
    turn, shift = cv2.solvePnPRefineLM(points, pixels, lens.matrix, bend, turn, shift)
    out = np.eye(4)
    out[:3, :3], out[:3, 3:] = cv2.Rodrigues(turn)[0], shift
    return out


# ── boards ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Charuco:
    """A chess board with markers in its white squares. `square`: its side in metres."""

    columns: int = 7
    rows: int = 5
    square: float = 0.03
    markers: str = "DICT_4X4_50"

    def check(self) -> None:
        """Raises ConfigError if the dictionary has too few markers for the board."""
        needed, there = self.columns * self.rows // 2, len(dictionary(self.markers).bytesList)
        if needed > there:
            allowed = f"at most {2 * there} squares, or a larger dictionary"
            raise ConfigError(
                f"{self.markers} has {there} markers and the board needs {needed}", allowed=allowed
            )

    @cached_property
    def _board(self) -> Any:
        self.check()
        cells = dictionary(self.markers).markerSize + 2
        marker = self.square * cells / (cells + BOARD_MARGIN)
        size = (self.columns, self.rows)
        return cv2.aruco.CharucoBoard(size, self.square, marker, dictionary(self.markers))

    @property
    def width(self) -> float:
        return self.columns * self.square

    @property
    def height(self) -> float:
        return self.rows * self.square

    def pattern(self) -> Pattern:
        """Exact: every border lies between two cells."""
        cells = dictionary(self.markers).markerSize + 2 + BOARD_MARGIN
        size = (self.columns * cells, self.rows * cells)
        return _in_color(self._board.generateImage(size, marginSize=0, borderBits=1))

    @property
    def points(self) -> Array:
        """The inner corners in the frame of the board, (n, 3)."""
        return np.asarray(self._board.getChessboardCorners(), dtype=np.float64)

    def find(self, picture: Image) -> "tuple[Any, Array]":
        """Numbers and pixels of the inner corners that the picture shows."""
        found, numbers, _, _ = _charuco_detector(self).detectBoard(gray_of(picture))
        if numbers is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        pixels = refined_corners(gray_of(picture), found.reshape(-1, 2), self._window(found))
        return numbers.reshape(-1).astype(np.int64), pixels

    def _window(self, found: Any) -> int:
        """Half the window of the refinement in pixels: it must not reach the markers."""
        spots = np.asarray(found, dtype=np.float64).reshape(-1, 2)
        far = np.linalg.norm(spots[:, None] - spots, axis=2)
        nearest = np.where(far > 0.0, far, np.inf).min(initial=np.inf)
        cells = dictionary(self.markers).markerSize + 2 + BOARD_MARGIN
        return int(np.clip(nearest * SQUARE_SHARE / cells, 2, 15))


def refined_corners(gray: Image, corners: Any, window: int) -> Array:
    """Corners of a chess pattern to a fraction of a pixel; (n, 2)."""
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 100, 1e-4)
    start = np.ascontiguousarray(corners, dtype=np.float32).reshape(-1, 1, 2)
    found = cv2.cornerSubPix(gray, start, (window, window), (-1, -1), stop)
    return np.asarray(found, dtype=np.float64).reshape(-1, 2)


@lru_cache(maxsize=8)
def _charuco_detector(board: Charuco) -> Any:
    return cv2.aruco.CharucoDetector(board._board)


@dataclass(frozen=True)
class Chessboard:
    """A plain chess board. `columns` and `rows`: of squares; the first one is black.

    With an odd sum of both the corners have the same order in every picture. With an even sum the
    board looks the same after half a turn.
    """

    columns: int = 9
    rows: int = 6
    square: float = 0.025

    @property
    def width(self) -> float:
        return self.columns * self.square

    @property
    def height(self) -> float:
        return self.rows * self.square

    def pattern(self) -> Pattern:
        i, j = np.indices((self.rows, self.columns))
        return _in_color(255 * ((i + j) % 2))

    @property
    def points(self) -> Array:
        """The inner corners in the frame of the board, (n, 3)."""
        x, y = np.meshgrid(np.arange(1, self.columns), np.arange(1, self.rows))
        grid = np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3)
        return np.asarray(grid * self.square, dtype=np.float64)

    def find(self, picture: Image) -> "tuple[Any, Array]":
        """Numbers and pixels of all inner corners, or of none. The second search finds boards that
        a wide-angle lens bends, and takes longer."""
        size, gray = (self.columns - 1, self.rows - 1), gray_of(picture)
        for flags in (cv2.CALIB_CB_ACCURACY, cv2.CALIB_CB_ACCURACY | cv2.CALIB_CB_EXHAUSTIVE):
            done, found = cv2.findChessboardCornersSB(gray, size, flags=flags)
            if done:
                break
        else:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        pixels = np.asarray(found, dtype=np.float64).reshape(-1, 2)
        return np.arange(len(found)), pixels if self._upright(picture, pixels) else pixels[::-1]

    def _upright(self, picture: Image, pixels: Array) -> bool:
        """Whether the corners begin at the black square: OpenCV begins at either end."""
        grid = pixels.reshape(self.rows - 1, self.columns - 1, 2)
        middles = 0.25 * (grid[:-1, :-1] + grid[1:, :-1] + grid[:-1, 1:] + grid[1:, 1:])
        x, y = np.rint(middles).astype(int).transpose(2, 0, 1)
        grays = gray_of(picture)[y, x].astype(np.float64)
        i, j = np.indices(grays.shape)
        white = (i + j) % 2 == 1
        return bool(white.sum() == 0 or grays[white].mean() > grays[~white].mean())


Board = Charuco | Chessboard
FEWEST_CORNERS = 6
ENOUGH_SHARE = 0.75
"""Of the corners of a board of another size that must be seen for a hint."""


def board_place(board: Board, numbers: Any, pixels: Array, lens: Lens) -> Array | None:
    """The board in the frame of the camera, 4×4; None if too few corners are seen."""
    if len(numbers) < FEWEST_CORNERS:
        return None
    points = board.points[numbers]
    if np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-6) < 2:
        return None  # all on one line
    return place_of(points, pixels, lens, method=cv2.SOLVEPNP_IPPE)


def other_size(board: Board, picture: Image) -> str:
    """A hint where a picture shows a board whose numbers of columns and rows are other ones than
    were given: inner corners instead of squares, or both swapped. Empty if there is none."""
    own = len(board.find(picture)[0])
    columns, rows = board.columns, board.rows
    inner = "columns and rows count squares, not the inner corners between them"
    for size, why in (
        ((columns + 1, rows + 1), inner),
        ((rows, columns), "columns and rows are swapped"),
        ((rows + 1, columns + 1), f"columns and rows are swapped, and {inner}"),
    ):
        other = replace(board, columns=size[0], rows=size[1])
        try:
            found = len(other.find(picture)[0])
        except (ConfigError, cv2.error):  # more markers than the dictionary has
            continue
        if found > own and found >= ENOUGH_SHARE * len(other.points):
            return f"the picture shows {size[0]} × {size[1]} squares, not {columns} × {rows}: {why}"
    return ""


# ── targets of a calibration ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class SeenTarget:
    """The target in a picture: its corners, and its place in the frame of the camera."""

    corners: Corners
    place: Array


FindTarget = Callable[[Image, Lens], SeenTarget | str]
"""Looks for a target in a picture; a text says why it was not found."""


def target_finder(target: CalibrationTarget) -> FindTarget:
    """Raises ConfigError for a target that cannot be used."""
    target.check()
    return _marker_finder(target) if target.type == "marker" else _board_finder(board_of(target))


def board_of(target: CalibrationTarget) -> Board:
    """The board of a target that is one."""
    columns, rows, square = target.columns, target.rows, target.square_mm * MM
    if target.type == "chessboard":
        return Chessboard(columns, rows, square)
    board = Charuco(columns, rows, square, target.dictionary)
    board.check()
    return board


def _board_finder(board: Board) -> FindTarget:
    def find(picture: Image, lens: Lens) -> SeenTarget | str:
        numbers, pixels = board.find(picture)
        place = board_place(board, numbers, pixels, lens)
        if place is None:
            hint = other_size(board, picture)
            return hint or f"{len(numbers)} of {len(board.points)} corners of the board are seen"
        return SeenTarget(Corners(board.points[numbers], pixels), place)

    return find


def _marker_finder(target: CalibrationTarget) -> FindTarget:
    finder, size = MarkerFinder(target.dictionary), target.size_mm * MM

    def find(picture: Image, lens: Lens) -> SeenTarget | str:
        markers = finder.find(picture, lens)
        for marker in markers:
            if marker.number == target.id:
                corners = Corners(corner_points(size), marker.corners)
                return SeenTarget(corners, marker_place(marker.corners, size, lens))
        others = ", ".join(str(marker.number) for marker in markers[:20]) or "none"
        return f"marker {target.id} is not seen; seen: {others}"

    return find


# ── corners from the lines of the four sides ──────────────────────────────────────────────────────
#
# To a hundredth of a pixel. The grey levels across a side go from black to white. Where the step is
# follows from their sum, and not from single pixels: noise and blur cancel. A line through many
# such points of each side, in the undistorted picture, meets its neighbours in the corners.
# `CORNER_REFINE_APRILTAG` of OpenCV does the same, but searches the whole picture again: 0.1 to
# 1.5 s with noise, against milliseconds here.


Gray = NDArray[np.uint8]
"""(height, width)."""
Bools = NDArray[np.bool_]
ROUNDS = 2
"""Each begins with the corners of the one before."""
SAMPLES = 21
"""Grey levels across a side that are read at each of its points."""
PLATEAU = 4
"""Of them, those at each end that are black, or white."""
NARROWEST, WIDEST = 1.25, 4.0
"""Pixels that are looked at on each side of a line: less than a cell of the marker."""
POINTS = 40
"""Points of a side."""
END_SHARE = 0.08
"""Part of a side at each end that is left out: the neighbouring side disturbs it."""
LEAST_CONTRAST = 10.0
"""Grey levels between black and white."""
OUTLIER = 4.0
"""Points that miss the line by more than this multiple of the usual deviation are left out."""
SHARES = np.linspace(END_SHARE, 1.0 - END_SHARE, POINTS)[:, None]
ACROSS = np.linspace(-1.0, 1.0, SAMPLES)[:, None]


def refined_by_sides(gray: Gray, corners: Array, cells: int, lens: Lens) -> Array:
    """Corners of markers, (m, 4, 2) pixels, clockwise; ``cells``: of the side of a marker with its
    black border. The corners of a marker stay as they are if a side cannot be seen well."""
    given = np.asarray(corners, dtype=np.float64)
    found, good = given.copy(), np.ones(len(given), dtype=np.bool_)
    for _ in range(ROUNDS):
        start, end = found.reshape(-1, 2), np.roll(found, -1, axis=1).reshape(-1, 2)
        lines, seen = _sides(gray, start, end, cells, lens)
        good &= seen.reshape(-1, 4).all(axis=1)
        rays = _meetings(lines.reshape(-1, 4, 3))
        good &= np.isfinite(rays).all(axis=(1, 2))
        found = np.where(good[:, None, None], _pixels(rays, lens), given)
    return found


def _pixels(rays: Array, lens: Lens) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return lens.distorted(rays) * (lens.fx, lens.fy) + (lens.cx, lens.cy)


def _sides(gray: Gray, start: Array, end: Array, cells: int, lens: Lens) -> tuple[Array, Bools]:
    """The lines a·x + b·y + c = 0 of sides, (n, 3), at z = 1, and whether each is seen well."""
    along = end - start
    length = np.linalg.norm(along, axis=1)
    outward = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(length, 1e-9)[:, None]
    reach = np.clip(length / cells - 1.0, NARROWEST, WIDEST)
    first, last = lens.rays(np.stack([start, end]))[:, :, None]
    points = _pixels(first + SHARES * (last - first), lens)
    step = outward[:, None, None] * (reach[:, None, None, None] * ACROSS)
    levels, inside = _levels(gray, points[:, :, None] + step)
    offsets, clear = _offsets(levels, reach)
    lines = _lines(lens.rays(points + offsets[..., None] * outward[:, None]))
    return lines, inside & clear & (length >= cells)


def _offsets(levels: Array, reach: Array) -> tuple[Array, Bools]:
    """How far outward of each point the step from black to white is, (n, POINTS) pixels; and
    whether a side has a contrast."""
    black = np.median(levels[..., :PLATEAU], axis=(1, 2))
    contrast = np.median(levels[..., -PLATEAU:], axis=(1, 2)) - black
    clear = contrast >= LEAST_CONTRAST
    share = (levels - black[:, None, None]) / np.where(clear, contrast, 1.0)[:, None, None]
    whole = share.sum(axis=2) - 0.5 * (share[..., 0] + share[..., -1])
    offset = reach[:, None] * (1.0 - whole * 2.0 / (SAMPLES - 1))
    return np.where(clear[:, None], offset, 0.0), clear


def _levels(gray: Gray, spots: Array) -> tuple[Array, Bools]:
    """Grey levels between pixels, linearly; and whether all spots of a side are in the picture."""
    height, width = gray.shape
    low, high = np.zeros(2), np.array([width, height]) - 1.0 - 1e-6
    kept = np.clip(spots, low, high)
    inside = (kept == spots).all(axis=(1, 2, 3))
    column, row = np.moveaxis(kept.astype(np.int64), -1, 0)
    u, v = kept[..., 0] - column, kept[..., 1] - row
    at, flat = row * width + column, gray.reshape(-1)
    upper = flat[at] * (1.0 - u) + flat[at + 1] * u
    lower = flat[at + width] * (1.0 - u) + flat[at + width + 1] * u
    return upper * (1.0 - v) + lower * v, inside


def _lines(spots: Array) -> Array:
    """Lines through the spots of each side; those far from it are left out once."""
    lines = _fitted(spots, np.ones(spots.shape[:2]))
    missed = np.abs(np.einsum("nij,nj->ni", spots, lines[:, :2]) + lines[:, 2:])
    near = missed <= OUTLIER * np.median(missed, axis=1)[:, None] + 1e-12
    return _fitted(spots, near.astype(np.float64))


def _fitted(spots: Array, weights: Array) -> Array:
    """Least squares of the distances."""
    count = weights.sum(axis=1)[:, None]
    middle = (weights[..., None] * spots).sum(axis=1) / count
    x, y = np.moveaxis(spots - middle[:, None], -1, 0)
    xx, xy, yy = ((weights * each).sum(axis=1) for each in (x * x, x * y, y * y))
    angle = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    normal = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    return np.concatenate([normal, -(normal * middle).sum(axis=1)[:, None]], axis=1)


def _meetings(lines: Array) -> Array:
    """Where each side meets the one before it, (m, 4, 2); not finite if they are parallel."""
    crossed = np.cross(np.roll(lines, 1, axis=1), lines)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(crossed[..., :2] / crossed[..., 2:])
