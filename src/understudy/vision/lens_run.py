"""Intrinsics of a camera, from its pictures of a board."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from understudy.config.files import read_text
from understudy.config.typed import read
from understudy.errors import ConfigError, Refused, located_at
from understudy.sight.calibration_file import (
    INTRINSICS_ONLY,
    Calibration,
    Intrinsics,
    calibration_text,
)
from understudy.sight.lens import Lens
from understudy.sight.targets import CalibrationTarget
from understudy.space.transform import rows_mm
from understudy.vision.cameras import open_camera
from understudy.vision.config import read_calibration
from understudy.vision.detector_config import require_opencv
from understudy.vision.interface import CameraError, CameraSource, NoMorePicturesError, Shot

if TYPE_CHECKING:
    from understudy.sight.intrinsics import BoardPicture, LensResult
    from understudy.sight.markers import Board

BOARD = re.compile(r"(charuco|chessboard):(\d{1,9})x(\d{1,9}):(\d+(?:\.\d+)?)", re.ASCII)
GRAB_SECONDS = 5.0
NO_MATRIX = rows_mm(np.eye(4))


def board_of(text: str) -> "Board":
    """`charuco:7x5:30`: type, columns and rows of squares, side of a square in millimetres."""
    require_opencv()
    from understudy.sight import markers

    target = _target(text)
    with located_at("--board"):
        if target.type == "charuco":
            target.check()
        return markers.board_of(target)


def _target(text: str) -> CalibrationTarget:
    """The board with the limits of `hand_eye.target`. A chess board with an even sum of columns and
    rows is accepted: the lens does not depend on the end at which its corners are counted."""
    found = BOARD.fullmatch(text)
    if found is None:
        raise ConfigError(
            "not a board", key="--board", value=text, allowed="charuco:7x5:30 or chessboard:9x6:25"
        )
    kind, columns, rows, square = found.groups()
    keys = {"type": kind, "columns": int(columns), "rows": int(rows), "square_mm": float(square)}
    target: CalibrationTarget = read(keys, CalibrationTarget, "--board")
    return target


def calibrate_camera(
    address: str, board: "Board", count: int, *, wait: Callable[[], None]
) -> "LensResult | Refused":
    """Takes up to ``count`` pictures; fewer if a folder has no more."""
    from understudy.sight.intrinsics import calibrate_lens

    camera = open_camera(address)
    try:
        pictures, size, hint = _seen(camera, board, count, wait)
    except CameraError as problem:
        return Refused(str(problem))
    finally:
        camera.close()
    return Refused(hint) if hint else calibrate_lens(board, pictures, *size)


def _seen(
    camera: CameraSource, board: "Board", count: int, wait: Callable[[], None]
) -> "tuple[list[BoardPicture], tuple[int, int], str]":
    """What the pictures show, their size, and a hint where none shows a board of this size."""
    from understudy.sight.intrinsics import BoardPicture
    from understudy.sight.markers import other_size

    found: list[BoardPicture] = []
    size, hint = (0, 0), ""
    for number in range(count):
        try:
            picture = camera.grab(Shot(), GRAB_SECONDS).picture
        except NoMorePicturesError:
            if number == 0:
                raise
            break
        height, width, _ = picture.shape
        if size not in ((0, 0), (width, height)):
            first = f"{size[0]} × {size[1]}"
            raise CameraError(f"a picture has {width} × {height} pixels, the first one {first}")
        size = (width, height)
        found.append(BoardPicture(*board.find(picture)))
        hint = hint or ("" if len(found[-1].numbers) else other_size(board, picture))
        wait()
    return found, size, "" if any(len(each.numbers) for each in found) else hint


def calibration_at(file: Path, date: str) -> Calibration:
    """What the file says now; without a file, a calibration without the place of the camera."""
    if file.exists():
        return read_calibration(read_text(file), str(file))
    return Calibration(NO_MATRIX, method=INTRINSICS_ONLY, date=date)


def with_intrinsics(calibration: Calibration, lens: Lens) -> str:
    """The text of its file with this lens; the rest stays."""
    return calibration_text(structs.replace(calibration, camera_intrinsics=Intrinsics.of(lens)))
