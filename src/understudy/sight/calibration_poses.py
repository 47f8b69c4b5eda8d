"""Poses of the flange from which a camera can be calibrated: diverse, reachable, target in view.

Candidates lie on parts of spheres about the target: the camera looks at its middle from several
directions, distances and rolls. Those that show the whole target and that the arm reaches remain;
of them those are chosen that say most about the camera.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import Refused
from understudy.sight.bundle import information
from understudy.sight.calibrator import USUAL_ROBOT, unsuitable
from understudy.sight.camera_place import Views
from understudy.sight.lens import Lens, Mount
from understudy.space.transform import Array, inverse, rotation_about
from understudy.units import DEG

TILTS_DEG = (20.0, 35.0, 45.0)
AZIMUTHS = 8
ROLLS_DEG = (-120.0, -60.0, 0.0, 60.0, 120.0)
DISTANCES = (0.6, 0.7, 0.8, 0.9)
"""Shares of the distance at which the target fills FILLED of the picture."""
FILLED = 0.75
MARGIN = 0.03
"""Share of the picture at its borders that stays free of the target."""
FIRST_GUESS = 1.0
"""Information before the first picture: 1/m² and 1/rad²."""
SHIFT_WEIGHT = 1.0
"""Radians that a metre counts for when poses are compared."""

Allowed = Callable[[Sequence[Array]], Sequence[bool]]
"""For poses of the flange: which of them the arm can take without a collision."""


@dataclass(frozen=True)
class Sighting:
    """What is known before: the camera and the target roughly, as in `sight.hand_eye`.

    `camera`: X, `target`: Y; `points`: of the target in its own frame, (m, 3); `seen`: the target
    in the frame of the camera at the first picture. The poses keep near that roll.
    """

    mount: Mount
    lens: Lens
    camera: Array
    target: Array
    points: Array
    seen: Array

    def flange(self, seen: Array) -> Array:
        """The flange that shows the target there in the frame of the camera."""
        if self.mount == "eye_in_hand":
            return np.asarray(self.target @ inverse(seen) @ inverse(self.camera))
        return np.asarray(self.camera @ seen @ inverse(self.target))


def calibration_flanges(
    sighting: Sighting, count: int, allowed: Allowed, *, distance: float = 0.0, spare: int = 0
) -> list[Array] | Refused:
    """``count`` poses of the flange and up to ``spare`` more, in an order of short ways.

    ``distance``: from the camera to the target in metres; 0: as the size of the target wants it.
    """
    views = _in_view(sighting, distance or _distance(sighting))
    if not views:
        return Refused(
            "no direction shows the whole target: it is too large or too near for this lens; "
            "move the camera away or take a smaller target"
        )
    flanges = [sighting.flange(each) for each in views]
    reached = [flange for flange, good in zip(flanges, allowed(flanges), strict=True) if good]
    if len(reached) < count:
        return Refused(
            f"the arm reaches {len(reached)} of {len(flanges)} poses that show the target, without "
            f"a collision; {count} are needed: place the target nearer to the middle of its reach"
        )
    chosen = _most_telling(sighting, reached, min(count + spare, len(reached)))
    if refused := unsuitable(chosen, sighting.mount):
        return Refused(f"the poses that the arm reaches are of no use: {refused.reason}")
    return _short_way(chosen, sighting.flange(sighting.seen))


def _distance(sighting: Sighting) -> float:
    """The distance at which the target fills a share of the shorter side of the picture."""
    lens = sighting.lens
    size = float(np.linalg.norm(np.ptp(sighting.points, axis=0)))
    share = min(lens.height / lens.fy, lens.width / lens.fx)
    return size / (FILLED * share)


def _in_view(sighting: Sighting, distance: float) -> list[Array]:
    """Places of the target in the frame of the camera that are in the picture as a whole."""
    middle = 0.5 * (sighting.points.min(axis=0) + sighting.points.max(axis=0))
    facing, found = _facing(sighting.seen[:3, :3]), []
    azimuths = np.arange(AZIMUTHS) * 2.0 * np.pi / AZIMUTHS
    tilts = [(0.0, 0.0), *itertools.product(TILTS_DEG, azimuths)]
    for (tilt, azimuth), roll, far in itertools.product(tilts, ROLLS_DEG, DISTANCES):
        axis = (np.cos(azimuth), np.sin(azimuth), 0.0)
        turn = rotation_about(axis, tilt * DEG) @ rotation_about((0.0, 0.0, 1.0), roll * DEG)
        seen = np.eye(4)
        seen[:3, :3] = turn @ facing
        seen[:3, 3] = np.array([0.0, 0.0, distance * far]) - seen[:3, :3] @ middle
        if _visible(sighting.lens, sighting.points @ seen[:3, :3].T + seen[:3, 3]):
            found.append(seen)
    return found


def _facing(rotation: Array) -> Array:
    """The rotation nearest to this one whose z axis is that of the camera, or opposite to it: the
    target is seen at a right angle."""
    z = np.array([0.0, 0.0, 1.0 if rotation[2, 2] >= 0.0 else -1.0])
    x = rotation[:, 0] - (rotation[:, 0] @ z) * z
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _visible(lens: Lens, points: Array) -> bool:
    if points[:, 2].min() <= 0.0 or not all(lens.sees(each) for each in points):
        return False
    pixels = lens.pixels(points)
    size = np.array([lens.width, lens.height])
    return bool(((pixels >= MARGIN * size) & (pixels <= (1.0 - MARGIN) * size)).all())


def _most_telling(sighting: Sighting, flanges: Sequence[Array], count: int) -> list[Array]:
    """Each next one makes the camera, with those that are chosen already, known best: the
    determinant of the information grows most."""
    stack = np.asarray(flanges)
    views = Views(stack, stack, sighting.mount)
    says = information(
        views,
        sighting.points,
        sighting.lens,
        camera=sighting.camera,
        target=sighting.target,
        noise=USUAL_ROBOT,
    )
    known, free = FIRST_GUESS * np.eye(12), np.ones(len(stack), dtype=bool)
    chosen: list[Array] = []
    while len(chosen) < count:
        gain = np.linalg.slogdet(known + says)[1]
        best = int(np.argmax(np.where(free, gain, -np.inf)))
        free[best], known = False, known + says[best]
        chosen.append(stack[best])
    return chosen


def _distances(stack: Array, place: Array) -> Array:
    """Turns from a pose to others, and a little of the ways."""
    traces = np.einsum("nij,ij->n", stack[:, :3, :3], place[:3, :3])
    turns = np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0))
    ways = np.linalg.norm(stack[:, :3, 3] - place[:3, 3], axis=1)
    return np.asarray(turns + SHIFT_WEIGHT * ways)


def _short_way(flanges: Sequence[Array], start: Array) -> list[Array]:
    """The nearest pose first, then the nearest to that one, and so on."""
    left, here, ordered = list(flanges), start, []
    while left:
        following = int(np.argmin(_distances(np.asarray(left), here)))
        here = left.pop(following)
        ordered.append(here)
    return ordered
