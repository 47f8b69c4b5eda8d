"""Colours of parts: which pixels of a picture have one of several colours, light or shaded.

A colour is a hex value, met by its brighter and darker shades, or a range of hue, saturation and
value. A table over all colours, 6 bits per channel, makes the search one look-up per pixel.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import cv2
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

Bits = NDArray[np.uint16]
MOST_COLORS = 16
"""Different colours of a detector: bits of a table entry."""
LEVELS = 64
SHIFT = 2
DARKEST, BRIGHTEST = 0.4, 1.3
"""Shades of a hex colour that are the colour, as shares of its brightness."""

HexColor = Annotated[str, Meta(pattern="^#[0-9a-fA-F]{6}$")]
Hue = Annotated[float, Meta(ge=0, le=360)]
Share = Annotated[float, Meta(ge=0, le=1)]


class HsvRange(Struct, frozen=True, forbid_unknown_fields=True):
    """Hue in degrees, from the first to the second, also across 0; saturation and value 0 … 1."""

    hue: tuple[Hue, Hue] = (0.0, 360.0)
    saturation: tuple[Share, Share] = (0.3, 1.0)
    value: tuple[Share, Share] = (0.15, 1.0)


def color_bits(colors: Sequence[tuple[HexColor | HsvRange, float]]) -> Bits:
    """(LEVELS³,): bit k of an entry is set where the k-th colour, with its tolerance, is met."""
    steps = np.arange(LEVELS, dtype=np.float32) * (1 << SHIFT) + (1 << SHIFT) / 2
    rgb = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    table = np.zeros(len(rgb), dtype=np.uint16)
    for k, (color, tolerance) in enumerate(colors):
        met = _in_range(rgb, color) if isinstance(color, HsvRange) else _near(rgb, color, tolerance)
        table[met] |= np.uint16(1 << k)
    return table


def _near(rgb: Any, color: HexColor, tolerance: float) -> Any:
    """Shades of a colour: near to the line from black through it, as a share of the brightness."""
    goal = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)], dtype=np.float32)
    length = max(float(np.linalg.norm(goal)), 1.0)
    along = rgb @ (goal / length)
    aside = np.linalg.norm(rgb - along[:, None] * (goal / length), axis=1)
    if length < 60.0:  # a dark colour has no direction
        return np.linalg.norm(rgb - goal, axis=1) <= tolerance * 255.0
    bright = (along >= DARKEST * length) & (along <= BRIGHTEST * length)
    return bright & (aside <= tolerance * along)


def _in_range(rgb: Any, color: HsvRange) -> Any:
    hsv = cv2.cvtColor((rgb / np.float32(255.0)).reshape(-1, 1, 3), cv2.COLOR_RGB2HSV)
    hue, saturation, value = hsv.reshape(-1, 3).T
    first, last = color.hue
    inside = (hue >= first) & (hue <= last)
    if first > last:
        inside = (hue >= first) | (hue <= last)
    for values, (low, high) in ((saturation, color.saturation), (value, color.value)):
        inside &= (values >= low) & (values <= high)
    return inside


def met_colors(picture: NDArray[np.uint8], table: Bits) -> Bits:
    """(height, width): the colours of each pixel, as bits."""
    index = cv2.transform(
        (picture >> SHIFT).astype(np.float32), np.array([[LEVELS * LEVELS, LEVELS, 1.0]])
    )
    return np.asarray(np.take(table, index.astype(np.int32)))
