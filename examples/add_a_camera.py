"""Add a camera from outside the package: one module and one entry point.

`install` writes the package `chart_camera` and its entry point to a folder, as pip does. Then the
vision process takes its pictures from this camera, by the address `chart:MARKER`.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import understudy

CAMERA = '''
"""A camera that looks at a chart with one marker: `chart:7`. A REAL one would ask its driver."""
import time
import cv2
import numpy as np
from understudy.errors import ConfigError
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.vision.interface import CameraError, Shot

LENS = Lens(640, 480, 600.0, 600.0, 319.5, 239.5)
SIDE_PX = 100

def open_camera(address: str) -> "ChartCamera":
    number = address.partition(":")[2]
    if not number.isdigit() or int(number) > 49:
        raise ConfigError("not a marker", value=address, allowed="chart:0 to chart:49")
    return ChartCamera(int(number))

class ChartCamera:
    """`CameraSource`: the marker is in the middle of the picture."""

    def __init__(self, marker: int) -> None:
        chart = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
        self._picture = np.full((LENS.height, LENS.width, 3), 255, dtype=np.uint8)
        drawn = cv2.aruco.generateImageMarker(chart, marker, SIDE_PX)
        self._picture[190:190 + SIDE_PX, 270:270 + SIDE_PX] = drawn[:, :, None]
        self._taken = 0

    def grab(self, shot: Shot, seconds: float) -> Frame:
        if shot.exposure_ms is not None and shot.exposure_ms > 1000 * seconds:
            raise CameraError(f"an exposure of {shot.exposure_ms:g} ms needs more time")
        self._taken += 1
        return Frame(self._taken, time.time(), self._picture, LENS, camera="chart")

    def close(self) -> None: ...
'''
VISION = """
vision:
  camera: chart:7
  detectors: [{kind: markers, dictionary: DICT_4X4_50, size_mm: 50, classes: {7: plate}}]
"""
FILES = {
    "chart_camera.py": CAMERA,
    "chart_camera-1.0.dist-info/METADATA": "Name: chart_camera\nVersion: 1.0\n",
    "chart_camera-1.0.dist-info/entry_points.txt": "[understudy.cameras]\nchart = chart_camera\n",
    "vision.yaml": VISION,
}


def install(folder: Path) -> None:
    """Writes the package as pip does; Python finds it, since the process runs in this folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def main(folder: Path) -> None:
    install(folder)
    words = ["-m", "understudy", "vision", "--config=vision.yaml", "--port=0"]
    process = subprocess.Popen([sys.executable, *words, "--ready-file=ready.json"], cwd=folder)
    ready: dict[str, Any] = {}
    while not ready and process.poll() is None:
        time.sleep(0.1)
        with suppress(FileNotFoundError):
            ready = json.loads((folder / "ready.json").read_text())
    try:
        with understudy.VisionBridge() as bridge:
            assert bridge.connect(ready["endpoints"]["vision"]), bridge.last_error
            seen = bridge.detect_single_object("plate", timeout_ms=10_000)
            assert seen is not None, bridge.last_error
            print(f"{seen.class_name} at {seen.pose[2] * 1000:.1f} mm")
            assert abs(seen.pose[2] - 0.3) < 0.002, "100 pixels are 50 mm: it is 300 mm away"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
