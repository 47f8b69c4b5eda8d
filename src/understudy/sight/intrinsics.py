"""Intrinsics of a camera from pictures of a board: focal lengths, centre and distortion.

Needs the extra `vision`. Pictures that do not determine the lens are refused: too few, all alike,
or with the board in one corner only. So are pictures that no lens explains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np

from understudy.errors import Refused
from understudy.sight.lens import Lens
from understudy.sight.markers import Board
from understudy.space.transform import Array
from understudy.units import DEG

FEWEST_PICTURES = 8
FEWEST_CORNERS = 8
"""The fewest corners of a picture that counts."""
GRID = (8, 6)
"""Columns and rows of the grid in which the covered area of the picture is counted."""
SMALLEST_COVERAGE = 0.4
SMALLEST_TILT = 15.0 * DEG
"""Boards that are all parallel do not tell the focal length from the distance."""
LARGEST_RMS = 2.0
"""Pixels. A right board in sharp pictures gives well below 1 pixel; more means that the corners are
not where the board has them, and the numbers of the lens are then meaningless."""
SAME_PICTURE = 0.01
"""Corners that move by less than this share of the width: the same picture again."""
FLAGS = cv2.CALIB_USE_LU
"""Five distortion coefficients k1 k2 p1 p2 k3, free focal lengths and centre."""


class BoardPicture(NamedTuple):
    """Numbers and pixels of the corners that a picture shows."""

    numbers: Any
    pixels: Array


@dataclass(frozen=True)
class LensResult:
    """The result of a calibration of a lens.

    `rms`: of all corners in pixels; `picture_rms`: of each picture. `deviations`: standard
    deviations of fx fy cx cy k1 k2 p1 p2 k3. `coverage`: share of the picture's area. `used`:
    the numbers of the pictures that counted.
    """

    lens: Lens
    rms: float
    picture_rms: tuple[float, ...]
    deviations: tuple[float, ...]
    coverage: float
    used: tuple[int, ...]


def calibrate_lens(
    board: Board, pictures: Sequence[BoardPicture], width: int, height: int
) -> LensResult | Refused:
    """The lens from the corners of a board in several pictures."""
    used = _different(pictures, width)
    if len(used) < FEWEST_PICTURES:
        return Refused(
            f"{len(used)} of {len(pictures)} pictures are of use (the board is seen, and not where "
            f"it was in another); at least {FEWEST_PICTURES} are needed, 15 are usual"
        )
    covered = picture_coverage([pictures[each] for each in used], width, height)
    if covered < SMALLEST_COVERAGE:
        return Refused(
            f"the board covers {covered:.0%} of the picture's area, {SMALLEST_COVERAGE:.0%} are "
            "needed: bring it to the corners of the picture, too"
        )
    chosen = [pictures[each] for each in used]
    points: Any = [board.points[each.numbers].astype(np.float32) for each in chosen]
    pixels: Any = [each.pixels.astype(np.float32)[:, None] for each in chosen]
    solve: Any = cv2.calibrateCameraExtended  # its types do not know that the start may be None
    found = solve(points, pixels, (width, height), None, None, flags=FLAGS)
    rms, matrix, bend, turns, _, deviations, _, by_picture = found
    if not rms <= LARGEST_RMS:  # also if it is not a number
        return _unexplained(float(rms), by_picture.reshape(-1).tolist(), used)
    tilt = _tilt([cv2.Rodrigues(each)[0] for each in turns])
    if tilt < SMALLEST_TILT:
        return Refused(
            f"the board turns by {tilt / DEG:.1f}° between the pictures, "
            f"{SMALLEST_TILT / DEG:g}° are needed: tilt it, to several sides"
        )
    fx, fy, cx, cy = (float(matrix[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
    k1, k2, p1, p2, k3 = (float(value) for value in bend.reshape(-1)[:5])
    return LensResult(
        Lens(width, height, fx, fy, cx, cy, (k1, k2, p1, p2, k3)),
        float(rms),
        tuple(by_picture.reshape(-1).tolist()),
        tuple(deviations.reshape(-1)[:9].tolist()),
        covered,
        tuple(used),
    )


def _unexplained(rms: float, by_picture: Sequence[float], used: Sequence[int]) -> Refused:
    """The refusal of a residual above `LARGEST_RMS`; pictures are counted from 1."""
    worst = int(np.argmax(by_picture))
    return Refused(
        f"the residual is {rms:.2f} px rms, {LARGEST_RMS:g} px are allowed; the worst is "
        f"picture {used[worst] + 1} with {by_picture[worst]:.2f} px: check the type of the "
        "board and its numbers of columns and rows, and look for pictures of another camera and "
        "blurred pictures"
    )


def picture_coverage(pictures: Sequence[BoardPicture], width: int, height: int) -> float:
    """Share of the cells of a grid over the picture in which a corner was seen."""
    seen = {
        (int(x * GRID[0] / width), int(y * GRID[1] / height))
        for picture in pictures
        for x, y in picture.pixels.tolist()
    }
    return len(seen) / (GRID[0] * GRID[1])


def _different(pictures: Sequence[BoardPicture], width: int) -> list[int]:
    """The numbers of the pictures with enough corners, each kind of view once."""
    used: list[int] = []
    for number, picture in enumerate(pictures):
        if len(picture.numbers) < FEWEST_CORNERS:
            continue
        if all(_moved(pictures[other], picture) > SAME_PICTURE * width for other in used):
            used.append(number)
    return used


def _moved(one: BoardPicture, other: BoardPicture) -> float:
    """Mean distance of the corners that both pictures show; infinite if there are none."""
    both, first, second = np.intersect1d(one.numbers, other.numbers, return_indices=True)
    if not len(both):
        return float("inf")
    apart = one.pixels[first] - other.pixels[second]
    return float(np.linalg.norm(apart, axis=1).mean())


def _tilt(rotations: Sequence[Any]) -> float:
    """The largest angle between the planes of two boards."""
    normals = np.array([each[:, 2] for each in rotations])
    return float(np.arccos(np.clip(normals @ normals.T, -1.0, 1.0)).max())
