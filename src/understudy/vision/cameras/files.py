"""A folder of pictures as a camera: `files:DIR`, or `files:DIR?loop` for the same ones again.

Pictures are taken in the order of their names. A file `NAME.json` beside `NAME.png` says what is
known of the picture, with the keys of a frame on the wire: T_base_flange, K, distortion,
t_exposure, frame_id; `NAME.depth.npy` is its depth image, float32 in millimetres. `RecordingCamera`
writes such a folder, so that a session can be played again.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import msgspec
import numpy as np

from understudy.errors import UNREADABLE, ConfigError
from understudy.sight.frame import (
    LARGEST_PICTURE,
    LARGEST_SIDE,
    Frame,
    FrameError,
    FrameHeader,
    LensRows,
    decode,
    encode,
)
from understudy.sight.lens import Coefficients
from understudy.space.transform import Rows
from understudy.vision.interface import CameraError, CameraSource, NoMorePicturesError, Shot

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
MOST_SEGMENTS = 10_000
"""Segments of a JPEG file before its frame header."""
LARGEST_FACTS = 1024 * 1024
"""Bytes of the file beside a picture."""


class Facts(msgspec.Struct, frozen=True):
    """The file beside a picture; other keys of a frame's header are ignored."""

    T_base_flange: Rows | None = None
    K: LensRows | None = None
    distortion: Coefficients = ()
    t_exposure: float | None = None
    frame_id: int | None = None
    exposure_ms: float = 0.0
    gain_db: float = 0.0


def open_camera(address: str) -> CameraSource:
    name, _, option = address.partition(":")[2].partition("?")
    if option not in ("", "loop"):
        raise ConfigError("unknown option of files:", value=option, allowed="?loop")
    if not name:
        allowed = "files:DIR or files:DIR?loop; files:. is the current folder"
        raise ConfigError("which folder?", value=address, allowed=allowed)
    return PictureFiles(Path(name), loop=option == "loop")


class PictureFiles:
    """The pictures of a folder, one after the other."""

    def __init__(self, folder: Path, *, loop: bool = False) -> None:
        if not folder.is_dir():
            raise ConfigError("not a folder with pictures", value=str(folder))
        found = [each for each in folder.iterdir() if each.suffix.lower() in SUFFIXES]
        self._files = sorted(found, key=lambda each: each.name)
        if not self._files:
            raise ConfigError(
                "the folder has no pictures", value=str(folder), allowed=", ".join(SUFFIXES)
            )
        self._folder = folder
        self._loop = loop
        self._taken = 0

    def grab(self, shot: Shot, seconds: float) -> Frame:
        count = len(self._files)
        if self._taken >= count and not self._loop:
            raise NoMorePicturesError(f"all {count} pictures of {self._folder} were taken")
        file = self._files[self._taken % count]
        self._taken += 1
        try:
            return read_frame(file, self._taken)
        except (OSError, ValueError, MemoryError, cv2.error, *UNREADABLE) as problem:
            raise CameraError(f"{file.name}: {problem}") from None

    def close(self) -> None:
        """Nothing is open."""


def read_frame(file: Path, number: int) -> Frame:
    """``number``: its frame_id if the file beside it has none."""
    if file.stat().st_size > LARGEST_PICTURE:
        raise FrameError(f"a file of more than {LARGEST_PICTURE} bytes")
    data = np.fromfile(file, dtype=np.uint8)
    _check_size(picture_size(data.tobytes()), 3)
    picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    if picture is None:
        raise FrameError("not a picture that can be read")
    facts = _facts(file.with_suffix(".json"))
    parts: list[Any] = [b"", cv2.cvtColor(picture, cv2.COLOR_BGR2RGB).tobytes()]
    depth = file.with_suffix(".depth.npy")
    shape: tuple[int, int] | None = None
    if depth.is_file():
        image = _depth_image(depth)
        shape = (image.shape[0], image.shape[1])
        parts.append(image.astype(np.float32).tobytes())
    header = FrameHeader(
        frame_id=number if facts.frame_id is None else facts.frame_id,
        t_exposure=file.stat().st_mtime if facts.t_exposure is None else facts.t_exposure,
        shape=(picture.shape[0], picture.shape[1], 3),
        T_base_flange=facts.T_base_flange,
        K=facts.K,
        distortion=facts.distortion,
        depth_shape=shape,
        exposure_ms=facts.exposure_ms,
        gain_db=facts.gain_db,
        camera=file.name,
    )
    parts[0] = msgspec.json.encode(header)
    return decode(parts)


def _check_size(size: tuple[int, int] | None, bytes_of_a_pixel: int) -> None:
    """Raises FrameError for a picture that is too large; what a small file claims to hold must not
    fill the memory."""
    if size is None:
        raise FrameError("not a picture that can be read")
    width, height = size
    most = LARGEST_PICTURE // bytes_of_a_pixel
    if max(size) > LARGEST_SIDE or width * height > most:
        raise FrameError(
            f"{width} × {height} pixels; at most {most} pixels, {LARGEST_SIDE} on a side"
        )


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height that a PNG, JPEG, BMP or TIFF file tells before it is decoded; None: another
    file, or it does not tell."""
    try:
        if data.startswith(b"\x89PNG"):
            width, height = struct.unpack_from(">II", data, 16)
        elif data.startswith(b"BM"):
            width, height = map(abs, struct.unpack_from("<ii", data, 18))
        elif data.startswith(b"\xff\xd8"):
            height, width = _size_of_jpeg(data)
        elif data[:2] in (b"II", b"MM"):
            width, height = _size_of_tiff(data, "<" if data[:2] == b"II" else ">")
        else:
            return None
    except (struct.error, KeyError):
        return None
    return width, height


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    """Height and width in the frame header, which is the first segment C0…CF but C4, C8 and CC."""
    at = 2
    for _ in range(MOST_SEGMENTS):
        marker, length = struct.unpack_from(">xBH", data, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return height, width
        at += 1 if marker == 0xFF else 2 + length  # 0xFF: filled up
    raise KeyError("no frame header")


def _size_of_tiff(data: bytes, order: str) -> tuple[int, int]:
    """The tags 256 and 257 of the first directory; a size is one 16-bit or 32-bit number."""
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    tags = {}
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(f"{order}HH", data, entry)
        (tags[tag],) = struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", data, entry + 8)
    return tags[256], tags[257]


def _depth_image(file: Path) -> Any:
    with file.open("rb") as data:
        try:
            version = np.lib.format.read_magic(data)
            if version != (1, 0):
                raise FrameError(f"{file.name}: version {version} of the format, not (1, 0)")
            shape, _, kind = np.lib.format.read_array_header_1_0(data)
            if len(shape) == 2:
                _check_size((shape[1], shape[0]), kind.itemsize)
            data.seek(0)
            image = np.lib.format.read_array(data, allow_pickle=False) if len(shape) == 2 else None
        except ValueError as problem:
            raise FrameError(f"{file.name}: {problem}") from None
    if image is None:
        raise FrameError(f"{file.name}: {kind} of the shape {shape}, not an image")
    if image.ndim != 2 or image.dtype.kind not in "iuf":
        raise FrameError(f"{file.name}: {image.dtype} of the shape {image.shape}, not an image")
    return image


def _facts(file: Path) -> Facts:
    if not file.is_file():
        return Facts()
    with file.open("rb") as text:
        return msgspec.json.decode(text.read(LARGEST_FACTS), type=Facts)


# ── recording ───────────────────────────────────────────────────────────────────────────────────


class RecordingCamera:
    """A camera whose frames are also written into a folder."""

    def __init__(self, camera: CameraSource, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigError(
                f"cannot record there: {problem.strerror}", value=str(folder)
            ) from None
        self._camera = camera
        self._folder = folder
        self._numbers = _next_numbers(folder)

    def grab(self, shot: Shot, seconds: float) -> Frame:
        frame = self._camera.grab(shot, seconds)
        try:
            write_frame(self._folder / f"{next(self._numbers):06d}.png", frame)
        except OSError as problem:
            raise CameraError(f"the frame cannot be recorded: {problem}") from None
        return frame

    def close(self) -> None:
        self._camera.close()


def _next_numbers(folder: Path) -> Iterator[int]:
    """Numbers after those of the pictures that are in the folder already."""
    there = [int(each.stem) for each in folder.iterdir() if re.fullmatch(r"\d{6}\.png", each.name)]
    number = max(there, default=0)
    while True:
        number += 1
        yield number


def write_frame(file: Path, frame: Frame) -> None:
    """The picture without loss, and the files beside it."""
    header, _, *depth = encode(frame)
    data = cv2.imencode(".png", cv2.cvtColor(frame.picture, cv2.COLOR_RGB2BGR))[1]
    file.with_suffix(".json").write_bytes(header)
    if depth and frame.depth is not None:
        image = np.frombuffer(depth[0], dtype=np.float32).reshape(frame.depth.shape)
        np.save(file.with_suffix(".depth.npy"), image)
    file.write_bytes(data.tobytes())
