"""Intrinsics from rendered pictures of a board, and refusals."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.sight.rendered_board import BOARD, LENS, picture_of

from understudy.errors import Refused
from understudy.sight.intrinsics import BoardPicture, calibrate_lens
from understudy.sight.markers import Chessboard
from understudy.space.transform import Array, rotation_about


def place(tilt: float, about: float, x: float, y: float, z: float) -> Array:
    """The board in the frame of the camera, tilted about an axis in its plane."""
    seen = np.eye(4)
    seen[:3, :3] = rotation_about((np.cos(about), np.sin(about), 0.0), tilt)
    middle = np.array([BOARD.width / 2, BOARD.height / 2, 0.0])
    seen[:3, 3] = np.array([x, y, z]) - seen[:3, :3] @ middle
    return seen


def pictures_of(places: Sequence[Array]) -> list[BoardPicture]:
    rng = np.random.default_rng(5)
    return [BoardPicture(*BOARD.find(picture_of(BOARD, each, rng))) for each in places]


def places_of_all_kinds() -> list[Array]:
    """Boards tilted to all sides, in all corners of the picture."""
    spots = [(0.0, 0.0), (0.06, 0.05), (-0.06, 0.05), (0.06, -0.05), (-0.06, -0.05)]
    return [
        place(0.3 + 0.04 * number, 0.6 * number, *spots[number % len(spots)], 0.36)
        for number in range(12)
    ]


@pytest.fixture(scope="module")
def pictures() -> list[BoardPicture]:
    return pictures_of(places_of_all_kinds())


def test_the_lens_is_found(pictures: list[BoardPicture]) -> None:
    found = calibrate_lens(BOARD, pictures, 640, 480)
    assert not isinstance(found, Refused), found.reason
    assert found.rms < 0.2
    assert len(found.picture_rms) == len(found.used) == 12
    assert found.coverage > 0.6
    true = (LENS.fx, LENS.fy, LENS.cx, LENS.cy, *LENS.distortion)
    lens = found.lens
    values = (lens.fx, lens.fy, lens.cx, lens.cy, *lens.distortion)
    for value, right, deviation in zip(values, true, found.deviations, strict=True):
        assert abs(value - right) < 6.0 * deviation
    assert lens.fx == pytest.approx(LENS.fx, rel=0.003)
    assert lens.cx == pytest.approx(LENS.cx, abs=2.0)


def test_pictures_that_do_not_determine_the_lens_are_refused(
    pictures: list[BoardPicture],
) -> None:
    def reason(given: Sequence[BoardPicture]) -> str:
        found = calibrate_lens(BOARD, given, 640, 480)
        assert isinstance(found, Refused)
        return found.reason

    assert "7 of 7 pictures are of use" in reason(pictures[:7])
    assert "1 of 12 pictures are of use" in reason(pictures[:1] * 12)
    nothing = BoardPicture(np.zeros(0, dtype=np.int64), np.zeros((0, 2)))
    assert "0 of 9" in reason([nothing] * 9)
    small = [
        BoardPicture(each.numbers, each.pixels * 0.3 + 9.0 * n) for n, each in enumerate(pictures)
    ]
    assert "bring it to the corners" in reason(small)
    flat = pictures_of([place(0.0, 0.0, 0.02 * n - 0.08, 0.01 * n - 0.05, 0.4) for n in range(9)])
    assert "tilt it" in reason(flat)


def test_pictures_that_no_lens_explains_are_refused(pictures: list[BoardPicture]) -> None:
    moved = pictures[4].pixels + np.random.default_rng(1).normal(0.0, 15.0, (48, 2))
    given = [*pictures[:4], BoardPicture(pictures[4].numbers, moved), *pictures[5:]]
    found = calibrate_lens(BOARD, given, 640, 480)
    assert isinstance(found, Refused)
    assert "px rms, 2 px are allowed; the worst is picture 5 with" in found.reason
    assert "check the type of the board" in found.reason


def test_a_chess_board_with_an_even_sum_is_fit_for_intrinsics() -> None:
    """Half a turn of the board changes its pose, not the lens."""
    board = Chessboard(9, 7, 0.023)
    rng = np.random.default_rng(5)
    seen = [BoardPicture(*board.find(picture_of(board, at, rng))) for at in places_of_all_kinds()]
    turned = [BoardPicture(each.numbers, each.pixels[::-1]) for each in seen[:4]]
    found = calibrate_lens(board, [*turned, *seen[4:]], 640, 480)
    assert not isinstance(found, Refused), found.reason
    assert found.rms < 0.2
    assert found.lens.fx == pytest.approx(LENS.fx, rel=0.003)
