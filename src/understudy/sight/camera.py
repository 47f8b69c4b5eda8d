"""A camera: its lens, and where it is, on the flange of a robot or in the cell."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy.sight.hand_eye import Mount
from understudy.sight.lens import Lens
from understudy.space.transform import Array

DEFAULT_LENS = Lens(1280, 960, 1200.0, 1200.0, 640.0, 480.0)


@dataclass(frozen=True)
class CameraModel:
    """A lens and its place: `at` is its pose on the flange (`on_flange`) or in the cell."""

    lens: Lens = DEFAULT_LENS
    at: Array = field(default_factory=lambda: np.eye(4))
    on_flange: bool = True

    @property
    def mount(self) -> Mount:
        return "eye_in_hand" if self.on_flange else "eye_to_hand"

    def place(self, flange: Array) -> Array:
        """The camera in the cell."""
        return np.asarray(flange @ self.at) if self.on_flange else self.at

    def scene_view(self) -> dict[str, Any]:
        """The place of the camera, and the corners of its picture at z = 1, as the scene draws
        them."""
        right, bottom = self.lens.width - 0.5, self.lens.height - 0.5
        corners = np.array([[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]])
        return {
            "on_flange": self.on_flange,
            "at": self.at.reshape(-1).tolist(),
            "corners": self.lens.rays(corners).tolist(),
        }

    def bbox(self, corners: Array) -> tuple[int, int, int, int]:
        """x, y, width and height of the part of the picture that these corners span."""
        front = corners[corners[:, 2] > 1e-6]
        return self.lens.bounding_box(self.lens.pixels(front))
