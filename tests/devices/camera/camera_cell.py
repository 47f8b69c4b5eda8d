"""A cell with a virtual camera above a table with a cube, a can and a board."""

from pathlib import Path
from typing import Any

import msgspec
from tests.parts import part

from understudy.app.build import load_cell
from understudy.devices.camera.camera import VirtualCamera
from understudy.ports import WireMessage
from understudy.sight.frame import Frame, decode
from understudy.wire.exchange import InProcessCell

ABOVE = "mount: eye_to_hand, pose_mm_deg: [450, 150, 850, 180, 0, 0]"
SMALL = "width_px: 320, height_px: 240, fx_px: 250, fy_px: 250, cx_px: 159.5, cy_px: 119.5"
CELL = """
seed: {seed}
robots:
  g60:
    kind: arm
    model: g60
    tool: 1
    tools:
      1:
        name: gripper
        tcp_mm_deg: [0, 0, 80, 0, 0, 0]
        shapes:
          - {{name: palm, type: box, dimensions_mm: [60, 90, 40], position_mm: [0, 0, 20]}}
    gripper: {{}}
    camera: {{{mount}, {size}{more}}}
    faces: {{camera: {{}}}}
parts:
  - name: cube
    dimensions_mm: [40, 40, 40]
    position_mm: [400, 220, 70]
    marker: {{dictionary: DICT_APRILTAG_36h11, id: 5, size_mm: 30}}
  - {{name: can, type: cylinder, radius_mm: 30, height_mm: 60, position_mm: [520, 150, 80],
     color: "#2266cc"}}
environment:
  objects:
    - {{name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}}
    - {{name: table, type: box, position_mm: [450, 100, 25], dimensions_mm: [500, 900, 50],
       color: "#c8b08c"}}
scenario: {{rules: {{{rules}}}}}
"""


def camera_cell(
    folder: Path,
    *,
    mount: str = ABOVE,
    more: str = "",
    rules: str = "",
    seed: int = 1,
    size: str = SMALL,
) -> InProcessCell:
    file = folder / "cell.yaml"
    more = f", {more}" if more else ""
    file.write_text(CELL.format(mount=mount, more=more, rules=rules, seed=seed, size=size))
    return load_cell(str(file))


def camera_of(cell: InProcessCell) -> VirtualCamera:
    return part(cell, "g60.camera", VirtualCamera)


def grabbed(cell: InProcessCell, now: int = 0, **settings: float) -> Frame:
    frame = camera_of(cell).grab(now, **settings)
    assert frame is not None
    return frame


def ask(client: Any, request: Any) -> list[Frame | dict[str, Any]]:
    """The replies to a request: frames, or errors."""
    data = request if isinstance(request, bytes) else msgspec.json.encode(request)
    client.say(WireMessage("", data, "/"))
    return [
        decode([each.payload, *each.more]) if each.more else msgspec.json.decode(each.payload)
        for each in client.messages()
    ]
