"""Detector `onnx`: a network of the YOLO family, through OpenCV.

    - kind: onnx
      model: parts.onnx
      classes: classes.txt          # one name per line, or a list
      input_px: [640, 640]
      plane_z_mm: 20                # height of the middle of the parts, in the frame of the base

The output is (1, 4 + classes, boxes), as YOLOv8 has it, or (1, boxes, 5 + classes) with a score of
the box before those of the classes, as YOLOv5; boxes are x and y of the middle, width and height in
pixels of the input. The picture is scaled to the input, and the rest of the input is grey.

The middle of a box becomes a place: on the plane, or at the depth of the picture there. A network
reports no rotation: a place is turned as the base of the robot is, or as the camera if the place of
the camera is not known.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import cv2
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.sight.silhouette import on_plane
from understudy.space.transform import Array, inverse
from understudy.units import MM
from understudy.vision.detectors.sizes import Name
from understudy.vision.interface import DetectionError, FileName, ReadFile, Seen, View

Share = Annotated[float, Meta(ge=0, le=1)]
Side = Annotated[int, Meta(ge=16, le=4096)]
LARGEST_MODEL = 1 << 30
MOST_CLASSES = MOST_BOXES = 10_000
"""Of more boxes those with the best scores are compared with each other."""
PADDING = 114
"""Grey value of the input beside the picture."""
DEPTH_SHARE = 0.25
"""Of a box, around its middle: its median depth is that of the object."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A network that finds objects. `layout`: of the output; `auto` takes it from its shape.
    `depth`: places come from the depth image; else from `plane_z_mm`."""

    model: FileName
    classes: FileName | tuple[Name, ...]
    input_px: tuple[Side, Side] = (640, 640)
    layout: Literal["auto", "yolov5", "yolov8"] = "auto"
    min_confidence: Share = 0.5
    nms: Share = 0.45
    plane_z_mm: Annotated[float, Meta(ge=-100_000, le=100_000)] = 0.0
    depth: bool = False


class Box(NamedTuple):
    """A box that the network has found. `rectangle`: x, y, width and height in pixels of the
    picture."""

    rectangle: Array
    score: float
    label: int

    @property
    def middle(self) -> Array:
        return np.asarray(self.rectangle[:2] + self.rectangle[2:] / 2)


def build(config: Config, read_file: ReadFile) -> "OnnxDetector":
    return OnnxDetector(config, _network(config, read_file), _names(config, read_file))


def _network(config: Config, read_file: ReadFile) -> Any:
    data = read_file(config.model)
    if not data or len(data) > LARGEST_MODEL:
        raise ConfigError(
            "the file of the network is empty or larger than 1 GiB", key="model", value=config.model
        )
    try:
        return cv2.dnn.readNetFromONNX(np.frombuffer(data, dtype=np.uint8))
    except cv2.error as problem:
        raise ConfigError(
            f"OpenCV cannot read this network: {_first_line(problem)}",
            key="model",
            value=config.model,
            allowed="an ONNX file",
        ) from None


def _names(config: Config, read_file: ReadFile) -> tuple[str, ...]:
    if not isinstance(config.classes, str):
        names = config.classes
    else:
        try:
            text = read_file(config.classes).decode()
        except UnicodeDecodeError:
            raise ConfigError("not a text file", key="classes", value=config.classes) from None
        names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not 0 < len(names) <= MOST_CLASSES:
        raise ConfigError(f"{len(names)} classes", key="classes", allowed=f"1 … {MOST_CLASSES}")
    return names


def _first_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]


class OnnxDetector:
    """`Detector` of the kind `onnx`."""

    def __init__(self, config: Config, network: Any, names: Sequence[str]) -> None:
        self._config = config
        self._network = network
        self._names = tuple(names)

    def detect(self, view: View) -> Sequence[Seen]:
        picture = view.frame.picture
        boxes = self._boxes(picture)
        found = [self._seen(box, view) for box in boxes]
        return [each for each in found if each is not None]

    def _boxes(self, picture: Any) -> list[Box]:
        """What the network finds, in pixels of the picture, without doubles."""
        height, width = picture.shape[:2]
        wide, high = self._config.input_px
        scale = min(wide / width, high / height)
        rows = self._rows(self._run(picture, scale))
        if not len(rows):
            return []
        labels, scores = rows[:, 4:].argmax(axis=1), rows[:, 4:].max(axis=1)
        keep = np.isfinite(rows).all(axis=1) & (scores >= self._config.min_confidence)
        best = np.flatnonzero(keep)
        if len(best) > MOST_BOXES:
            best = best[np.argsort(-scores[best], kind="stable")[:MOST_BOXES]]
        rows, labels, scores = rows[best], labels[best], scores[best]
        corners = np.column_stack([rows[:, :2] - rows[:, 2:4] / 2, rows[:, 2:4]]) / scale
        kept = cv2.dnn.NMSBoxesBatched(
            corners.tolist(),
            scores.tolist(),
            labels.tolist(),
            self._config.min_confidence,
            self._config.nms,
        )
        return [
            Box(corners[k], float(min(scores[k], 1.0)), int(labels[k]))
            for k in np.asarray(kept, dtype=np.int64).reshape(-1).tolist()
        ]

    def _run(self, picture: Any, scale: float) -> Array:
        """The output of the network, with one row per box."""
        wide, high = self._config.input_px
        height, width = picture.shape[:2]
        size = max(1, round(width * scale)), max(1, round(height * scale))
        canvas = np.full((high, wide, 3), PADDING, dtype=np.uint8)
        canvas[: size[1], : size[0]] = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
        try:
            self._network.setInput(cv2.dnn.blobFromImage(canvas, 1.0 / 255.0))
            out = np.asarray(self._network.forward(), dtype=np.float64)
        except cv2.error as problem:
            raise DetectionError(
                f"the network does not run with an input of {wide}×{high} pixels:"
                f" {_first_line(problem)}"
            ) from None
        if out.ndim != 3 or out.shape[0] != 1:
            raise DetectionError(
                f"the network's output has the shape {list(out.shape)}; expected"
                f" [1, {4 + len(self._names)}, boxes] or"
                f" [1, boxes, {5 + len(self._names)}]"
            )
        return np.asarray(out[0])

    def _rows(self, out: Array) -> Array:
        """(boxes, 4 + classes): x, y, width, height and the score of each class."""
        count, layout = len(self._names), self._config.layout
        if layout != "yolov5" and out.shape[0] == 4 + count:
            return np.ascontiguousarray(out.T)
        if layout != "yolov8" and out.shape[1] == 5 + count:
            return np.column_stack([out[:, :4], out[:, 4:5] * out[:, 5:]])
        raise DetectionError(
            f"the network's output is {out.shape[0]}×{out.shape[1]}: it does not fit"
            f" {count} classes; check `classes` and `layout`"
        )

    def _seen(self, box: Box, view: View) -> Seen | None:
        """An object with its place; None if the place is not known: no depth, no plane."""
        ray = view.lens.rays(box.middle - 0.5)
        place = np.eye(4)
        if view.camera is not None:
            place[:3, :3] = view.camera[:3, :3].T
        point = self._at_depth(box, ray, view) if self._config.depth else self._on_plane(ray, view)
        if point is None:
            return None
        place[:3, 3] = point
        corners = box.rectangle.reshape(2, 2).cumsum(axis=0)
        bbox = view.lens.bounding_box(np.round(corners))
        return Seen(self._names[box.label], round(box.score, 4), place, bbox)

    def _on_plane(self, ray: Array, view: View) -> Array | None:
        if view.camera is None:
            raise DetectionError(
                "places on a plane need the place of the camera: the pose of the flange in the"
                " request or the frame, and the calibration of the camera"
            )
        height = self._config.plane_z_mm * MM
        (met,) = on_plane(ray[None], view.camera, height)
        if np.isnan(met).any():
            return None
        there = np.array([*met, height, 1.0])
        return np.asarray((inverse(view.camera) @ there)[:3])

    def _at_depth(self, box: Box, ray: Array, view: View) -> Array | None:
        depth = view.frame.depth
        if depth is None:
            raise DetectionError("`depth: true` needs a camera with a depth image")
        x, y = box.middle.tolist()
        dx, dy = (max(1.0, DEPTH_SHARE * side / 2) for side in box.rectangle[2:].tolist())
        rows = slice(max(0, int(y - dy)), max(0, int(y + dy) + 1))
        columns = slice(max(0, int(x - dx)), max(0, int(x + dx) + 1))
        inside = depth[rows, columns]
        inside = inside[inside > 0.0]
        if not inside.size:
            return None
        return np.array([*ray, 1.0]) * float(np.median(inside))
