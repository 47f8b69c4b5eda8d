"""Markers and boards are found where they were rendered."""

from collections.abc import Iterator
from typing import Any, Literal

import cv2
import numpy as np
import pytest
from tests.sight.rendered_board import picture_of

from understudy.errors import ConfigError
from understudy.sight.faces import Face, marker_face, plain
from understudy.sight.lens import Lens
from understudy.sight.markers import (
    Board,
    Charuco,
    Chessboard,
    Image,
    MarkerFinder,
    board_place,
    marker_pattern,
    marker_place,
    paper_size,
    target_finder,
)
from understudy.sight.render import render
from understudy.sight.targets import CalibrationTarget
from understudy.space.pose import Pose
from understudy.space.transform import Array, angle_between, inverse, matrix

LENS = Lens(640, 480, 600.0, 601.0, 321.0, 239.0, (-0.12, 0.08, 0.0, 0.0, 0.0))
HEIGHT = 0.3
TABLE = marker_face(plain((120, 120, 120)), 2.0, 2.0).moved(matrix(Pose(0, 0, -0.001, 0, 0, 0)))
PICTURES = 8


def pictures(face: Face, reach: float, tilt: float) -> Iterator[tuple[Image, Array]]:
    """Noisy pictures of a sheet on a table, and the place of the sheet seen from the camera."""
    rng = np.random.default_rng(5)
    for _ in range(PICTURES):
        turns = rng.uniform(-tilt, tilt), rng.uniform(-tilt, tilt), rng.uniform(-3, 3)
        back = matrix(Pose(0.0, 0.0, HEIGHT, np.pi, 0.0, 0.0))
        x, y = rng.uniform(-reach, reach, 2)
        sheet = matrix(Pose(x, y, 0.0, 0.0, 0.0, 0.0))
        camera = sheet @ matrix(Pose(0.0, 0.0, 0.0, *turns)) @ back
        light = render([TABLE.moved(sheet), face.moved(sheet)], LENS, camera).light
        noisy = light + rng.normal(size=light.shape) * 2.0
        yield np.clip(noisy, 0, 255).round().astype(np.uint8), inverse(camera) @ sheet


@pytest.mark.parametrize(("markers", "number"), [("DICT_4X4_50", 7), ("DICT_APRILTAG_36h11", 30)])
def test_corners_of_markers_have_no_common_shift(markers: str, number: int) -> None:
    size = 0.04
    paper = paper_size(markers, size)
    face = marker_face(marker_pattern(markers, number), paper, paper)
    finder, half, missed = MarkerFinder(markers), 0.5 * size, []
    corners = np.array([(-half, half, 0), (half, half, 0), (half, -half, 0), (-half, -half, 0)])
    for picture, place in pictures(face, 0.05, 0.4):
        (marker,) = finder.find(picture)
        assert marker.number == number
        missed.append(marker.corners - LENS.pixels(corners @ place[:3, :3].T + place[:3, 3]))
        found = marker_place(marker.corners, size, LENS)
        assert np.linalg.norm(found[:3, 3] - place[:3, 3]) < 1.5e-3
        assert angle_between(found, place) < np.radians(4.0)
    assert np.abs(np.mean(missed, axis=(0, 1))).max() < 0.05
    assert np.std(missed) < 0.12


def test_sides_along_the_rows_of_the_picture_are_as_exact_as_others() -> None:
    """A robot that looks straight down, as nearly all do: no side is at the same place of the
    pixels all along, and is rounded to it."""
    size, lens, rng = 0.08, Lens(320, 240, 300.0, 300.0, 160.0, 120.0), np.random.default_rng(1)
    paper = paper_size("DICT_APRILTAG_36h11", size)
    face = marker_face(marker_pattern("DICT_APRILTAG_36h11", 0), paper, paper)
    finder, half, missed = MarkerFinder("DICT_APRILTAG_36h11"), 0.5 * size, []
    corners = np.array([(-half, half, 0), (half, half, 0), (half, -half, 0), (-half, -half, 0)])
    for x, y in rng.uniform(-0.01, 0.01, (20, 2)):
        camera = matrix(Pose(x, y, 0.3, np.pi, 0.0, 0.0))
        light = render([TABLE, face], lens, camera).light
        (marker,) = finder.find(np.round(light).astype(np.uint8), lens)
        place = inverse(camera)
        missed.append(marker.corners - lens.pixels(corners @ place[:3, :3].T + place[:3, 3]))
    assert np.sqrt(np.mean(np.square(missed))) < 0.03
    assert np.abs(missed).max() < 0.06


@pytest.mark.parametrize("board", [Charuco(), Chessboard(8, 5, 0.025)], ids=["charuco", "chess"])
def test_boards_are_found_to_a_tenth_of_a_pixel(board: Board) -> None:
    sheet = marker_face(board.pattern(), board.width, board.height)
    assert len(board.points) == (board.columns - 1) * (board.rows - 1)
    # The frame of a board is in its corner, and z points into the paper.
    corner = matrix(Pose(-0.5 * board.width, 0.5 * board.height, 0.0, np.pi, 0.0, 0.0))
    seen = 0
    for picture, place in pictures(sheet, 0.0, 0.4):
        numbers, pixels = board.find(picture)
        if len(numbers) == 0:
            continue
        true = place @ corner
        expected = LENS.pixels(board.points[numbers] @ true[:3, :3].T + true[:3, 3])
        found = board_place(board, numbers, pixels, LENS)
        assert found is not None
        assert np.linalg.norm(found[:3, 3] - true[:3, 3]) < 1e-3
        assert angle_between(found, true) < np.radians(0.5)
        assert np.sqrt(np.mean((pixels - expected) ** 2)) < 0.1
        seen += 1
    assert seen >= PICTURES // 2


def test_too_few_corners_give_no_place() -> None:
    board = Charuco()
    assert board_place(board, np.arange(3), np.zeros((3, 2)), LENS) is None
    assert board_place(board, np.arange(6), np.zeros((6, 2)), LENS) is None  # on one line


def test_a_picture_without_markers_has_none() -> None:
    empty = np.full((120, 160), 99, dtype=np.uint8)
    assert MarkerFinder().find(empty) == []
    for board in (Charuco(), Chessboard()):
        assert len(board.find(empty)[0]) == 0


def test_unknown_dictionaries_and_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'DICT_4X4_50'"):
        MarkerFinder("DICT_4X4_51")
    with pytest.raises(ConfigError, match="0 … 49"):
        marker_pattern("DICT_4X4_50", 50)


# ── boards of another size than was given, and boards that a wide-angle lens bends ────────────────

SIZES = [
    (Chessboard(9, 6, 0.02), (8, 5), "not the inner corners"),
    (Chessboard(9, 6, 0.02), (5, 8), "not the inner corners"),
    (Charuco(9, 7, 0.02), (8, 6), "not the inner corners"),
    (Charuco(9, 7, 0.02), (7, 9), "columns and rows are swapped"),
]


def straight_ahead(board: Board) -> Image:
    seen = np.eye(4)
    seen[:3, 3] = -0.5 * board.width, -0.5 * board.height, 0.4
    return picture_of(board, seen, np.random.default_rng(1))


@pytest.mark.parametrize(("board", "given", "hint"), SIZES)
def test_the_size_of_a_board_that_is_seen_is_named(
    board: Board, given: tuple[int, int], hint: str
) -> None:
    kind: Literal["charuco", "chessboard"] = (
        "charuco" if isinstance(board, Charuco) else "chessboard"
    )
    target = CalibrationTarget(kind, *given, 20.0)
    found = target_finder(target)(straight_ahead(board), LENS)
    assert isinstance(found, str)
    assert hint in found
    seen = {f"{board.columns} × {board.rows}", f"{board.rows} × {board.columns}"}
    assert any(f"shows {each} squares, not {given[0]} × {given[1]}" in found for each in seen)


def test_a_picture_without_a_board_has_no_hint() -> None:
    empty = np.full((480, 640), 128, np.uint8)
    assert (
        target_finder(CalibrationTarget())(empty, LENS) == "0 of 24 corners of the board are seen"
    )


def test_a_board_that_the_fast_search_misses_is_searched_exhaustively(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = cv2.findChessboardCornersSB

    def misses(gray: Any, size: Any, *, flags: int) -> Any:
        return search(gray, size, flags=flags) if flags & cv2.CALIB_CB_EXHAUSTIVE else (False, None)

    monkeypatch.setattr(cv2, "findChessboardCornersSB", misses)
    board = Chessboard(9, 6, 0.02)
    assert len(board.find(straight_ahead(board))[0]) == 40
