"""Add a detector from outside the package: the brightest spot of a picture, on a table.

A detector is a module with `Config` (its keys in the section `vision`) and `build`. A camera is
added in the same way, with `open_camera(address)`.
"""

import json
import tempfile
from pathlib import Path

import cv2
import numpy as np
from msgspec import Struct

from understudy import registry
from understudy.sight.silhouette import on_plane
from understudy.space.transform import inverse
from understudy.units import MM
from understudy.vision.interface import DetectionError, ReadFile, Seen, View
from understudy.vision.process import setup_of_file


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`least`: grey value of a spot. `plane_z_mm`: height of the table in the robot's base."""

    least: int = 200
    plane_z_mm: float = 0.0


class LampDetector:
    """`Detector`: finds one lamp at most."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def detect(self, view: View) -> list[Seen]:
        if view.camera is None:
            raise DetectionError("give the calibration of the camera and the pose of the flange")
        gray = cv2.GaussianBlur(cv2.cvtColor(view.frame.picture, cv2.COLOR_RGB2GRAY), (5, 5), 0)
        _, brightest, _, (x, y) = cv2.minMaxLoc(gray)
        if brightest < self._config.least:
            return []
        height = self._config.plane_z_mm * MM
        (met,) = on_plane(view.lens.rays(np.array([[x, y]])), view.camera, height)
        place = np.eye(4)
        place[:3, 3] = (*met, height)
        return [Seen("lamp", brightest / 255.0, inverse(view.camera) @ place, (x - 2, y - 2, 5, 5))]


def build(config: Config, read_file: ReadFile) -> LampDetector:
    return LampDetector(config)


registry.register("detectors", "lamp", __name__)
VISION = """
vision:
  camera: files:{folder}
  mount: eye_to_hand
  camera_mm_deg: [0, 0, 500, 180, 0, 0]   # 500 mm above the table, looking down
  width_px: 640
  height_px: 480
  fx_px: 600
  fy_px: 600
  detectors: [{{kind: lamp, least: 220}}]
"""

if __name__ == "__main__":
    picture = np.full((480, 640, 3), 90, dtype=np.uint8)
    cv2.circle(picture, (380, 240), 6, (255, 255, 255), cv2.FILLED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cv2.imwrite(str(folder / "lamp.png"), picture)
        file = folder / "vision.yaml"
        file.write_text(VISION.format(folder=folder))
        server = setup_of_file(file).server()  # `understudy vision --config vision.yaml`
        reply = json.loads(server.handle(b'{"command": "capture"}'))
    (lamp,) = reply["objects"]
    print(lamp)
    assert lamp["class"] == "lamp"
    assert abs(lamp["pose"]["x"] - 50.0) < 2.0
    assert abs(lamp["pose"]["z"] - 500.0) < 1e-6
