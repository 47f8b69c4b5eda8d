"""Pictures for people: made in a thread, coded as JPEG or PNG, in the shape of an answer."""

import base64
import struct
import zlib
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.operator.background import BackgroundRuns
from understudy.ports.device import Preview
from understudy.ports.hmi import Later
from understudy.units import MM, seconds

LARGEST_WIDTH = 1280
JPEG_QUALITY = 80


class SharedPictures:
    """Pictures that are made in a thread; viewers who ask for the same one at the same time get
    one. ``most``: under way at a time."""

    def __init__(self, runs: BackgroundRuns, most: int) -> None:
        self._runs = runs
        self._most = most
        self._under_way: dict[Hashable, Later] = {}

    def answer(self, which: Hashable, begin: Callable[[], Callable[[], Any] | Refused]) -> Any:
        """``begin`` is called here, and what it returns in the thread."""
        if which in self._under_way:
            return self._under_way[which]
        if len(self._under_way) >= self._most:
            return Refused("other pictures are being made; ask again")
        work = begin()
        later = work if isinstance(work, Refused) else self._runs.beside(work)
        if not isinstance(later, Refused):
            self._under_way[which] = later

            def forget(_: object) -> None:
                del self._under_way[which]

            later.then(forget)
        return later


def picture_answer(robot: str, now: int, make: Callable[[], Preview]) -> dict[str, Any]:
    """Makes a picture; the answer of the queries for pictures."""
    preview = make()
    kind, data = coded(preview.picture)
    height, width, _ = preview.picture.shape
    return {
        "robot": robot,
        "time_s": seconds(now),
        "width": width,
        "height": height,
        "format": kind,
        "data": base64.b64encode(data).decode(),
        "nearest_mm": preview.nearest / MM,
        "farthest_mm": preview.farthest / MM,
    }


def coded(picture: NDArray[np.uint8]) -> tuple[str, bytes]:
    """A picture as a JPEG; as a PNG if OpenCV is not installed."""
    try:
        import cv2
    except ImportError:
        return "png", png_of(picture)
    quality = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    _, data = cv2.imencode(".jpg", np.ascontiguousarray(picture[..., ::-1]), quality)
    return "jpeg", data.tobytes()


def png_of(picture: NDArray[np.uint8]) -> bytes:
    """A PNG of 8 bits per colour: each row is preceded by the number of its filter, 0 for none."""
    height, width, _ = picture.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
