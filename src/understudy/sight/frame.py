"""A picture of a camera with its facts, and its bytes on the wire.

A frame is sent as a JSON header, the raw picture and, if there is one, the raw depth image:

    {"frame_id": 7, "t_exposure": 12.5, "T_base_flange": [[…], …], "K": [[…], …],
     "distortion": […], "shape": [960, 1280, 3], "dtype": "uint8",
     "depth_shape": [960, 1280], "depth_dtype": "float32", …}

`T_base_flange` has millimetres, as the calibration file; depth is in millimetres along the axis of
the camera, 0 where nothing was seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.errors import UNREADABLE
from understudy.sight.lens import Coefficients, Focus, Lens, Middle, five_coefficients
from understudy.space.transform import Array, Rows, from_rows_mm, is_rigid, rows_mm
from understudy.units import MM

LensRows = tuple[
    tuple[Focus, float, Middle], tuple[float, Focus, Middle], tuple[float, float, float]
]
"""[[fx, 0, cx], [0, fy, cy], [0, 0, 1]]"""
LARGEST_SIDE = 20_000
LARGEST_PICTURE = 256 * 1024 * 1024
"""Bytes of a picture or of a depth image."""
COLORS = 3
FARTHEST = 1e3
"""Metres; a depth beyond it was not measured."""
ROUNDING = 1e-4
"""By how much a matrix of another program may differ from a rotation."""


class FrameError(ValueError):
    """Bytes that are not a frame, and why."""


class FrameHeader(Struct, frozen=True):
    """The first part of a frame. `T_base_flange`: None if the camera does not know the robot;
    `K`: None if the camera does not know its lens."""

    frame_id: Annotated[int, Meta(ge=-(2**53), le=2**53)]
    t_exposure: Annotated[float, Meta(ge=-1e12, le=1e12)]
    shape: tuple[int, int, int]
    T_base_flange: Rows | None = None
    K: LensRows | None = None
    distortion: Coefficients = ()
    dtype: str = "uint8"
    depth_shape: tuple[int, int] | None = None
    depth_dtype: str = "float32"
    exposure_ms: float = 0.0
    gain_db: float = 0.0
    camera: str = ""
    request_id: Any = None


@dataclass(frozen=True)
class Frame:
    """A picture with its depth, and where it was taken.

    `picture`: (height, width, 3), red, green and blue. `depth`: metres, 0 where nothing was
    seen. `flange`: of the robot at the exposure, 4×4 in metres. `exposed_at`: seconds, on the
    clock of the cell for a virtual camera, else on that of the machine.
    """

    frame_id: int
    exposed_at: float
    picture: NDArray[np.uint8]
    lens: Lens | None = None
    depth: NDArray[np.float32] | None = None
    flange: Array | None = None
    exposure_ms: float = 0.0
    gain_db: float = 0.0
    camera: str = ""


def encode(frame: Frame, request_id: Any = None) -> list[bytes]:
    """The parts of a frame on the wire: header, picture and perhaps depth."""
    height, width, colors = frame.picture.shape
    lens, flange = frame.lens, frame.flange
    header = FrameHeader(
        frame_id=frame.frame_id,
        t_exposure=frame.exposed_at,
        shape=(height, width, colors),
        T_base_flange=None if flange is None else rows_mm(flange),
        K=None
        if lens is None
        else ((lens.fx, 0.0, lens.cx), (0.0, lens.fy, lens.cy), (0.0, 0.0, 1.0)),
        distortion=() if lens is None else lens.distortion,
        depth_shape=None if frame.depth is None else (height, width),
        exposure_ms=frame.exposure_ms,
        gain_db=frame.gain_db,
        camera=frame.camera,
        request_id=request_id,
    )
    parts = [msgspec.json.encode(header), frame.picture.tobytes()]
    if frame.depth is not None:
        parts.append((frame.depth / np.float32(MM)).tobytes())
    return parts


def read_header(data: bytes) -> FrameHeader:
    try:
        return msgspec.json.decode(data, type=FrameHeader)
    except UNREADABLE as problem:
        raise FrameError(f"the header of the frame: {problem}") from None


def decode(parts: Sequence[bytes]) -> Frame:
    """The inverse of `encode`; `FrameError` says what is wrong."""
    if not parts:
        raise FrameError("an empty message")
    header = read_header(parts[0])
    expected = 2 if header.depth_shape is None else 3
    if len(parts) != expected:
        raise FrameError(f"{len(parts)} parts; the header announces {expected}")
    if header.shape[2] != COLORS:
        raise FrameError(f"shape {list(header.shape)}; a picture has {COLORS} colours")
    picture = _image(parts[1], header.shape, header.dtype, "uint8")
    depth = None if header.depth_shape is None else _depth(parts[2], header)
    return Frame(
        frame_id=header.frame_id,
        exposed_at=header.t_exposure,
        picture=picture,
        lens=_lens(header),
        depth=depth,
        flange=_flange(header),
        exposure_ms=header.exposure_ms,
        gain_db=header.gain_db,
        camera=header.camera,
    )


def _image(data: bytes, shape: tuple[int, ...], dtype: str, known: str) -> Any:
    if dtype != known:
        raise FrameError(f"dtype {dtype}; only {known} is known")
    if not all(0 < side <= LARGEST_SIDE for side in shape):
        raise FrameError(f"shape {list(shape)}; each side is 1 … {LARGEST_SIDE}")
    size = int(np.prod(shape)) * np.dtype(known).itemsize
    if len(data) != size or size > LARGEST_PICTURE:
        raise FrameError(f"{len(data)} bytes for a picture of {list(shape)} {dtype}, not {size}")
    return np.frombuffer(data, dtype=known).reshape(shape)


def _depth(data: bytes, header: FrameHeader) -> Any:
    """Metres; 0 where the camera has sent NaN, infinity or a number that is no distance."""
    shape = header.depth_shape
    assert shape is not None
    if shape != header.shape[:2]:
        raise FrameError(
            f"depth_shape {list(shape)}; that of the picture is {list(header.shape[:2])}"
        )
    depth = _image(data, shape, header.depth_dtype, "float32") * np.float32(MM)
    return np.where((depth > 0.0) & (depth <= FARTHEST), depth, np.float32(0.0))


def _lens(header: FrameHeader) -> Lens | None:
    if header.K is None:
        return None
    (fx, _, cx), (_, fy, cy), _ = header.K
    height, width, _ = header.shape
    lens = Lens(width, height, fx, fy, cx, cy, five_coefficients(header.distortion))
    if not np.allclose(header.K, lens.matrix):
        raise FrameError("K is not [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
    return lens


def _flange(header: FrameHeader) -> Array | None:
    if header.T_base_flange is None:
        return None
    place = from_rows_mm(header.T_base_flange)
    if not is_rigid(place, ROUNDING):
        raise FrameError("T_base_flange is not a rotation and a translation")
    return place
