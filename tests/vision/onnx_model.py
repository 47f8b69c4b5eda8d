"""A small real ONNX network for tests, written as protobuf bytes.

The picture is cut into cells of 8×8 pixels. A convolution gives each cell a score for every colour,
a sigmoid brings it to 0…1, and a constant box around the cell is put before it: the layout of
YOLOv8, (1, 4 + classes, cells), or of YOLOv5, (1, cells, 5 + classes).
"""

from collections.abc import Sequence

import numpy as np

from understudy.space.transform import Array

CELL = 8
FLOAT, INT64 = 1, 7
INT, INTS = 2, 7
GAIN = 24.0


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes | str) -> bytes:
    body = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(body)) + body


def tensor(name: str, values: Array) -> bytes:
    kind, raw = (INT64, "<i8") if values.dtype.kind == "i" else (FLOAT, "<f4")
    dims = b"".join(number(1, side) for side in values.shape)
    return dims + number(2, kind) + block(8, name) + block(9, values.astype(raw).tobytes())


def value_info(name: str, shape: Sequence[int]) -> bytes:
    dims = b"".join(block(1, number(1, side)) for side in shape)
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, dims)))


def attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, INT)
    return block(1, name) + b"".join(number(8, each) for each in value) + number(20, INTS)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]) -> bytes:
    return (
        b"".join(block(1, each) for each in inputs)
        + block(2, output)
        + block(3, f"the_{output}")
        + block(4, kind)
        + b"".join(block(5, attribute(*row)) for row in attributes.items())
    )


def network(side: int, colors: Sequence[Sequence[float]], *, box: float, yolov5: bool) -> bytes:
    """``side``: of the input in pixels; ``colors``: weights of red, green and blue for each class;
    ``box``: side of the box that a cell reports, in pixels."""
    grid, count = side // CELL, len(colors)
    weights = np.array(colors)[:, :, None, None] * np.full((1, 1, CELL, CELL), GAIN / CELL**2)
    middles = (np.arange(grid) + 0.5) * CELL
    x, y = (each.reshape(-1) for each in np.meshgrid(middles, middles))
    boxes = [x, y, np.full(grid**2, box), np.full(grid**2, box)]
    if yolov5:
        boxes.append(np.ones(grid**2))
    shape = (1, len(boxes) + count, grid**2)
    nodes = [
        node("Conv", ("images", "weights", "bias"), "raw",
             kernel_shape=(CELL, CELL), strides=(CELL, CELL), pads=(0, 0, 0, 0)),
        node("Sigmoid", ("raw",), "scores"),
        node("Reshape", ("scores", "flat"), "rows"),
        node("Concat", ("boxes", "rows"), "joined" if yolov5 else "output", axis=1),
    ]  # fmt: skip
    if yolov5:
        nodes.append(node("Transpose", ("joined",), "output", perm=(0, 2, 1)))
        shape = (1, shape[2], shape[1])
    values = {
        "weights": weights,
        "bias": np.full(count, -GAIN / 4),
        "flat": np.array([1, count, grid**2]),
        "boxes": np.array(boxes)[None],
    }
    graph = (
        b"".join(block(1, each) for each in nodes)
        + block(2, "cells")
        + b"".join(block(5, tensor(*row)) for row in values.items())
        + block(11, value_info("images", (1, 3, side, side)))
        + block(12, value_info("output", shape))
    )
    return number(1, 8) + block(8, block(1, "") + number(2, 13)) + block(7, graph)
