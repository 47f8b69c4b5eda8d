"""Pictures for people: what was seen, drawn into the frame, as JPEG."""

import base64
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from understudy.sight.lens import Lens
from understudy.space.transform import Array
from understudy.vision.interface import Seen, View

Image = Any
"""(height, width, 3) of uint8: red, green, blue."""
AXIS = 0.02
"""Metres of the drawn axes."""
AXES = np.array([[0.0, 0.0, 0.0], [AXIS, 0.0, 0.0], [0.0, AXIS, 0.0], [0.0, 0.0, AXIS]])
COLORS = ((220, 40, 40), (40, 180, 40), (60, 100, 240))
"""Of x, y and z."""
BOX = (250, 210, 60)
NEAREST = 1e-3
QUALITY = 80
"""Of the JPEG, percent."""


def annotated(view: View, seen: Sequence[Seen]) -> Image:
    """The picture with a box, the axes, the class and the confidence of each object."""
    picture = np.array(view.frame.picture)
    line = max(1, picture.shape[1] // 500)
    for each in seen:
        x, y, width, height = each.bbox
        cv2.rectangle(picture, (x, y), (x + width, y + height), BOX, line)
        text = f"{each.class_name} {each.confidence:.2f}"
        cv2.putText(
            picture, text, (x, max(12, y - 4)), cv2.FONT_HERSHEY_SIMPLEX, 0.45 * line, BOX, line
        )
        _draw_axes(picture, each.place, view.lens, 2 * line)
    return picture


def _draw_axes(picture: Image, place: Array, lens: Lens, line: int) -> None:
    points = AXES @ place[:3, :3].T + place[:3, 3]
    if not (points[:, 2] > NEAREST).all():
        return
    spots = np.clip(np.round(lens.pixels(points)), -20_000, 40_000).astype(int).tolist()
    for tip, color in zip(spots[1:], COLORS, strict=True):
        cv2.line(picture, spots[0], tip, color, line, cv2.LINE_AA)


def depth_picture(view: View) -> Image | None:
    """The depth image in colours from red (near) to blue; black where nothing was seen. None
    without a depth image."""
    depth = view.frame.depth
    if depth is None:
        return None
    there = depth > 0.0
    near, far = (depth[there].min(), depth[there].max()) if there.any() else (0.0, 1.0)
    share = np.clip((far - depth) / max(float(far - near), 1e-6), 0.0, 1.0)
    colors = cv2.applyColorMap((share * 255.0).astype(np.uint8), cv2.COLORMAP_JET)
    return np.where(there[..., None], cv2.cvtColor(colors, cv2.COLOR_BGR2RGB), 0).astype(np.uint8)


def jpeg(picture: Image, width: int) -> str:
    """At most this wide, as text in base64."""
    scale = width / picture.shape[1]
    if scale < 1.0:
        size = (width, max(1, round(picture.shape[0] * scale)))
        picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    settings = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), settings)[1]
    return base64.b64encode(data.tobytes()).decode()
