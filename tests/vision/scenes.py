"""Rendered tables with parts, and what detectors found, for the tests of the vision process."""

from collections.abc import Sequence

import numpy as np

from understudy.sight.faces import Color, Face, box_faces, cylinder_faces, marker_face, plain
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens
from understudy.sight.render import render
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix
from understudy.vision.interface import Seen, View

BENT = (-0.12, 0.08, 0.0005, -0.0003, 0.0)
LARGE = Lens(1280, 960, 1200.5, 1200.8, 640.0, 480.0, BENT)
SMALL = Lens(640, 480, 600.5, 600.8, 320.0, 240.0, BENT)
ABOVE = matrix(Pose(0.4, 0.0, 0.4, np.pi, 0.0, 0.0))
"""A camera 400 mm above the table, looking down."""
RED, BLUE, GREEN, GRAY = (200, 40, 32), (30, 70, 200), (40, 150, 60), (140, 140, 135)


def table(color: Color = GRAY) -> list[Face]:
    at = matrix(Pose(0.4, 0.0, 0.0, 0, 0, 0))
    return [marker_face(plain(color), 1.2, 1.2).moved(at)]


def box(size: Sequence[float], at: Pose, color: Color) -> list[Face]:
    return [face.moved(matrix(at)) for face in box_faces(size, color)]


def cylinder(diameter: float, height: float, at: Pose, color: Color) -> list[Face]:
    return [face.moved(matrix(at)) for face in cylinder_faces(diameter / 2, height, color)]


def view(
    faces: Sequence[Face],
    *,
    lens: Lens = LARGE,
    camera: Array = ABOVE,
    noise: float = 2.0,
    depth_noise: float = 0.0,
    seed: int = 0,
    samples: int = 3,
) -> View:
    """``noise``: standard deviation of the grey values; ``depth_noise``: of the depth, metres."""
    picture = render(faces, lens, camera, samples=samples)
    chance = np.random.default_rng(seed)
    light = picture.light + chance.normal(0.0, noise, picture.light.shape)
    depth = np.where(np.isfinite(picture.depth), picture.depth, 0.0)
    depth = np.where(depth > 0, depth + chance.normal(0.0, depth_noise, depth.shape), 0.0)
    pixels = np.clip(np.round(light), 0, 255).astype(np.uint8)
    frame = Frame(1, 0.0, pixels, lens, depth.astype(np.float32))
    return View(frame, lens, camera)


def in_base(found: Seen, camera: Array = ABOVE) -> Array:
    return np.asarray(camera @ found.place)


def turn_error(found: float, true: float, symmetry: float) -> float:
    """Degrees between two angles of a part that looks the same after `symmetry` radians."""
    off = (found - true + symmetry / 2) % symmetry - symmetry / 2
    return float(abs(np.degrees(off)))
