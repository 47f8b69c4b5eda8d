"""The virtual camera: CPU time of a picture, compared with OpenCV's warping of the same patterns.

The cell has an arm, a table, a cube with a marker, a can, a ball and a ChArUco board. The peer
warps five flat patterns (floor, table, board, cube, marker) into a picture of the same size,
without hiding, shading and borders finer than a pixel; with noise, it adds that of numpy.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np

from benchmarks import Row
from understudy import load_cell
from understudy.sight.lens import resized
from understudy.wire.exchange import InProcessCell

ROUNDS = 15
PATTERNS = ((1, 1), (1, 1), (40, 56), (1, 1), (10, 10))
CELL = """
robots:
  g60:
    kind: arm
    model: g60
    camera: {mount: eye_to_hand, pose_mm_deg: [420, 200, 500, 180, 0, 0]}
parts:
  - {name: cube, dimensions_mm: [40, 40, 40], position_mm: [400, 220, 70],
     marker: {dictionary: DICT_APRILTAG_36h11, size_mm: 30}}
  - {name: can, type: cylinder, radius_mm: 30, height_mm: 60, position_mm: [500, 300, 80]}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}
    - {name: table, type: box, position_mm: [450, 100, 25], dimensions_mm: [500, 900, 50]}
    - {name: target, type: box, position_mm: [400, 100, 52], dimensions_mm: [220, 160, 4],
       board: {square_mm: 25}}
    - {name: ball, type: sphere, radius_mm: 30, position_mm: [480, 200, 80]}
"""


def milliseconds(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return (time.thread_time() - begun) * 1e3


def rows() -> list[Row]:
    cell = built()
    camera: Any = cell.timed_cell.components["g60.camera"]  # type: ignore[attr-defined]
    small = resized(camera.model.lens, 640, 480)
    return [
        versus(
            "picture of 640 × 480, without noise",
            lambda: camera.look(0, small, depth=False)(),
            lambda: warped(640, 480),
        ),
        versus(
            "frame of 1280 × 960 with noise",
            lambda: camera.grab(0),
            lambda: with_noise(warped(1280, 960)),
        ),
    ]


def built() -> InProcessCell:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell.yaml"
        file.write_text(CELL)
        return load_cell(str(file))


def versus(what: str, own: Callable[[], object], peer: Callable[[], object]) -> Row:
    """Medians of alternating rounds of both."""
    own()
    peer()
    figures = [(milliseconds(own), milliseconds(peer)) for _ in range(ROUNDS)]
    ours, theirs = (median(each) for each in zip(*figures, strict=True))
    text = f"{theirs:.1f} ms, OpenCV's warp"
    return Row(what, f"{ours:.1f} ms", text, f"{ours / theirs:.1f}", "")


def warped(width: int, height: int) -> Any:
    cv2.setNumThreads(1)
    picture = np.full((height, width, 3), 90, dtype=np.uint8)
    for rows, columns in PATTERNS:
        pattern = np.full((8 * rows, 8 * columns, 3), 128, dtype=np.uint8)
        share = 1.0 if rows == 1 else 0.4
        scale = np.diag([share * width / (8 * columns), share * height / (8 * rows), 1.0])
        shear = np.array([[1.0, 0.02, 3.0], [0.01, 1.0, 2.0], [1e-5, 1e-5, 1.0]])
        cv2.warpPerspective(
            pattern, shear @ scale, (width, height), dst=picture, flags=cv2.INTER_AREA,
            borderMode=cv2.BORDER_TRANSPARENT,
        )  # fmt: skip
    return picture


def with_noise(picture: Any) -> Any:
    noise = np.random.default_rng(1).standard_normal(picture.shape, dtype=np.float32)
    return np.clip(picture + 2.0 * noise + 0.5, 0.0, 255.0).astype(np.uint8)
