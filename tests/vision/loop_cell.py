"""A G60 that picks a cube by what a camera 400 mm above the table sees: pixels, no ground truth."""

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml
from tests.jobs.pick_place.cell_bench import PLACE, CellBench, cube

from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix
from understudy.units import DEG, MM

TAG = {"dictionary": "DICT_APRILTAG_36h11", "id": 0, "size_mm": 30}
"""The side of the black square; 30 mm on a cube of 40 mm."""
RED = "#c82820"
LENS = {"fx": 1200.5, "fy": 1200.8, "cx": 640.0, "cy": 480.0, "distortion": [-0.12, 0.08, 0, 0, 0]}
PARTS: dict[str, dict[str, Any]] = {"markers": {"marker": TAG}, "shapes": {"color": RED}}
DETECTORS: dict[str, dict[str, Any]] = {
    "markers": {
        "kind": "markers",
        "dictionary": TAG["dictionary"],
        "size_mm": TAG["size_mm"],
        "classes": {0: "cube"},
        "offset_mm_deg": [0, 0, -20, 0, 0, 0],
        "upright": True,
    },
    "shapes": {
        "kind": "shapes",
        "plane_z_mm": 50,
        "classes": [{"name": "cube", "color": RED, "shape": "box", "size_mm": [40, 40, 40]}],
    },
}
"""What a detector of each kind is told of the cube."""


class Placed(NamedTuple):
    """The end of a cycle: success by the job's word, and how far the cube is from its place."""

    success: bool
    mm: float
    deg: float
    digest: str


def camera_keys(folder: Path, kind: str, **vision: Any) -> dict[str, Any]:
    """The keys of the robot: a camera with a distorted lens, 400 mm above the table in the scan
    position, and its vision by pictures."""
    file = folder / "hand_eye.yaml"
    place = [[1, 0, 0, 70], [0, 1, 0, 0], [0, 0, 1, 40], [0, 0, 0, 1]]
    calibration = {"matrix": place, "camera_intrinsics": LENS}
    file.write_text(yaml.safe_dump({"hand_eye_calibration": calibration}))
    section = {
        "source": "process",
        "hand_eye_calibration_file": str(file),
        "detectors": [DETECTORS[kind]],
    }
    return {"camera": {"noise_grey": 2.0}, "vision": section | vision}


SCAN = {"x": 400.0, "y": 0.0, "z": 410.0}


class LoopCell(CellBench):
    def __init__(self, folder: Path, kind: str, seed: int = 1) -> None:
        super().__init__(
            cube("cube", 450.0, 0.0) | PARTS[kind],
            pickplace={"scan_position": SCAN},
            robot=camera_keys(folder, kind),
        )
        self._random = np.random.default_rng(seed)
        self._successes = 0

    def random_place(self) -> Array:
        """On the table, in view and in reach, turned anyhow."""
        x, y, yaw = self._random.uniform([360, -110, -180], [540, 110, 180])
        return matrix(Pose(x * MM, y * MM, 70 * MM, 0.0, 0.0, yaw * DEG))

    def cycle(self) -> Placed:
        """Puts the cube somewhere; one cycle brings it to its place."""
        parts: Any = self.cell.components["parts"]
        assert parts.move("cube", self.random_place(), self.now) is None
        assert self.job.start(self.now, max_cycles=1) is None
        self.finish()
        successes = self.status.success_count
        success, self._successes = successes > self._successes, successes
        at = self.part("cube").pose
        off = np.hypot(at.x - PLACE["x"] * MM, at.y - PLACE["y"] * MM) / MM
        turned = abs((at.rz / DEG + 45.0) % 90.0 - 45.0)
        state = msgspec.json.encode(self.cell.snapshot().parts)
        return Placed(success, float(off), float(turned), sha256(state).hexdigest())
