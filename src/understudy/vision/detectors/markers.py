"""Detector `markers`: fiducial markers (ArUco, AprilTag) and their poses.

detectors:
  - kind: markers
    dictionary: DICT_APRILTAG_36h11
    size_mm: 30
    classes: {0: cube, 1: cube}
    offset_mm_deg: [0, 0, -20, 0, 0, 0]     # the centre of the cube is below its marker
    upright: true                           # the marker lies level: less error of its tilt
"""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from understudy.sight.lens import Lens
from understudy.sight.markers import (
    DictionaryName,
    Marker,
    MarkerFinder,
    Refinement,
    corner_points,
    marker_place,
)
from understudy.space.pose import pose_of
from understudy.space.transform import Array, inverse, matrix, rotation_about
from understudy.units import MM
from understudy.vision.interface import DetectionError, ReadFile, Seen, View

LengthMm = Annotated[float, Meta(gt=0, le=10_000)]
Number = Annotated[int, Meta(ge=0, le=100_000)]
ClassName = Annotated[str, Meta(max_length=64)]
Coordinate = Annotated[float, Meta(ge=-1e6, le=1e6)]
Angle = Annotated[float, Meta(ge=-3600, le=3600)]
UP = np.array([0.0, 0.0, 1.0])
NEAREST = 1e-3
LEAST_MISS, LARGEST_MISS = 1.0, 0.02
"""A marker is not level if its corners miss by more pixels, and by more of its side."""
STEPS = 20
SETTLED = 1e-10
"""A step of the search that is smaller, in metres and radians, ends it."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """`sizes_mm` and `classes`: of single markers, by number; else `size_mm` and `marker_<id>`.
    `only_listed`: markers that `classes` does not name are left out. `offset_mm_deg`: the object's
    own frame, seen from its marker. `upright`: the z axes of marker and robot are parallel; a
    marker that lies otherwise is left out."""

    dictionary: DictionaryName = "DICT_4X4_50"
    size_mm: LengthMm = 50.0
    sizes_mm: dict[Number, LengthMm] = {}
    classes: dict[Number, ClassName] = {}
    only_listed: bool = False
    offset_mm_deg: tuple[Coordinate, Coordinate, Coordinate, Angle, Angle, Angle] = (0.0,) * 6
    upright: bool = False
    refinement: Refinement = "edges"


class MarkerDetector:
    """Finds the markers of a dictionary; their confidence is 1."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._finder = MarkerFinder(config.dictionary, config.refinement)
        self._offset = matrix(pose_of(config.offset_mm_deg))

    def detect(self, view: View) -> Sequence[Seen]:
        if self._config.upright and view.camera is None:
            raise DetectionError(
                "upright needs the place of the camera: give the hand-eye calibration, and the "
                "pose of the flange in the frame or as params.T_base_flange"
            )
        markers = self._finder.find(view.frame.picture, view.lens)
        if self._config.only_listed:
            markers = [each for each in markers if each.number in self._config.classes]
        found = [self._seen(marker, view) for marker in markers]
        return [seen for seen in found if seen is not None]

    def _seen(self, marker: Marker, view: View) -> Seen | None:
        config, number = self._config, marker.number
        size = config.sizes_mm.get(number, config.size_mm) * MM
        place: Array | None = marker_place(marker.corners, size, view.lens)
        if config.upright and place is not None and view.camera is not None:
            place = upright_place(marker.corners, size, view.lens, view.camera, start=place)
        if place is None:
            return None
        return Seen(
            class_name=config.classes.get(number, f"marker_{number}"),
            confidence=1.0,
            place=place @ self._offset,
            bbox=view.lens.bounding_box(marker.corners),
            number=number,
        )


def build(config: Config, read_file: ReadFile) -> MarkerDetector:
    return MarkerDetector(config)


def upright_place(
    corners: Array, size: float, lens: Lens, camera: Array, *, start: Array
) -> Array | None:
    """A marker that lies level, in the frame of the camera: the position and the rotation about the
    base's z that explain the four corners best (Gauss-Newton); None if they contradict it.
    ``camera``: in the robot's base; ``start``: a first estimate of the place.

    The tilt of a small marker is hard to see: a free pose has several times its error.
    """
    points, back, first = corner_points(size), inverse(camera), camera @ start
    at, yaw = first[:3, 3].copy(), math.atan2(first[1, 0] - first[0, 1], first[0, 0] + first[1, 1])
    missed = np.full(8, np.inf)
    for _ in range(STEPS):
        turned = points @ rotation_about(UP, yaw).T
        seen = (turned + at) @ back[:3, :3].T + back[:3, 3]
        if not (seen[:, 2] > NEAREST).all():
            return None  # it ran away: not a level marker
        by_place = lens.pixel_slopes(seen) @ back[:3, :3]
        by_yaw = by_place @ np.cross(UP, turned)[..., None]
        slopes = np.concatenate([by_place, by_yaw], axis=2).reshape(-1, 4)
        missed = (corners - lens.pixels(seen)).reshape(-1)
        step = np.linalg.lstsq(slopes, missed, rcond=None)[0]
        at, yaw = at + step[:3], yaw + float(step[3])
        if np.abs(step).max() < SETTLED:
            break
    side = float(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).mean())
    if np.sqrt(np.mean(missed**2)) > max(LEAST_MISS, side * LARGEST_MISS):
        return None
    level = np.eye(4)
    level[:3, :3], level[:3, 3] = rotation_about(UP, yaw), at
    return np.asarray(back @ level)
