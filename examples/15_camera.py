"""A virtual camera: a frame of a cell, and the marker on a part in it.

python examples/15_camera.py picture.png      keeps the picture
"""

import sys
import tempfile
from pathlib import Path

import cv2

import understudy
from understudy.devices.camera.camera import VirtualCamera
from understudy.sight.markers import MarkerFinder
from understudy.simulation.cell import Cell

CELL = """
robots:
  g60:
    kind: arm
    model: g60
    camera: {mount: eye_to_hand, pose_mm_deg: [960, 480, 560, -126.4, 0, 122.2],
             width_px: 640, height_px: 480, noise_grey: 0}
parts:
  - {name: cube, dimensions_mm: [60, 60, 60], position_mm: [420, 260, 80],
     rotation_deg: [0, 0, 20], marker: {dictionary: DICT_APRILTAG_36h11, id: 7, size_mm: 45}}
  - {name: can, type: cylinder, radius_mm: 35, height_mm: 90, position_mm: [540, 210, 95],
     color: "#2266cc"}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}
    - {name: table, type: box, position_mm: [450, 100, 25], dimensions_mm: [500, 900, 50],
       color: "#c8b08c"}
    - {name: target, type: box, position_mm: [420, 80, 52], dimensions_mm: [190, 140, 4],
       color: "#ffffff", board: {type: charuco, columns: 7, rows: 5, square_mm: 25}}
    - {name: ball, type: sphere, radius_mm: 30, position_mm: [590, 330, 80], color: "#20a040"}
"""

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cell.yaml"
    file.write_text(CELL)
    cell = understudy.load_cell(str(file))
assert isinstance(cell.timed_cell, Cell)
camera = cell.timed_cell.components["g60.camera"]
assert isinstance(camera, VirtualCamera)

frame = camera.grab(0)
assert frame is not None
(marker,) = MarkerFinder("DICT_APRILTAG_36h11").find(frame.picture)
middle = marker.corners.mean(axis=0)
print(f"frame {frame.frame_id}: marker {marker.number} at {middle[0]:.1f}, {middle[1]:.1f} px")
if len(sys.argv) > 1:
    cv2.imwrite(sys.argv[1], frame.picture[..., ::-1])
