"""Hand-eye calibration: where the camera is on the flange, or in the cell.

Eye in hand: the camera is on the flange and the target rests in the cell. For each pose of the
robot A·X·B = Y holds, with A = T_base_flange, B = T_camera_target, X = T_flange_camera and
Y = T_base_target. Eye to hand: the target is on the flange; with A⁻¹ in place of A the same
equation gives X = T_base_camera and Y = T_flange_target.
"""

from dataclasses import dataclass

import numpy as np

from understudy.errors import Refused
from understudy.sight.lens import Mount
from understudy.space.transform import Array, axis_angle, inverse, is_rigid
from understudy.units import DEG, MM

FEWEST = 3
"""Poses that determine the camera at all."""
SMALLEST_SPREAD = 15.0 * DEG
"""Poses that differ less in their rotation say too little about the camera."""
SMALLEST_SECOND = 5.0 * DEG
"""By which poses must turn, rms, about a second axis: where the camera is along the first one
follows from these turns alone."""


@dataclass(frozen=True)
class Views:
    """Poses of the flange and of the target in the frame of the camera: (n, 4, 4) each."""

    flange: Array
    target: Array
    mount: Mount = "eye_in_hand"

    @property
    def hand(self) -> Array:
        """A of the equation."""
        return self.flange if self.mount == "eye_in_hand" else inverse(self.flange)

    def __len__(self) -> int:
        return len(self.flange)


def degenerate(views: Views) -> Refused | None:
    """Why these poses do not determine the camera, and what to do about it."""
    if len(views) < FEWEST:
        return Refused(f"{len(views)} poses; at least {FEWEST} are needed")
    angles, axes = _turns(views.hand)
    far = angles >= SMALLEST_SPREAD
    if not far.any():
        most = angles.max(initial=0.0) / DEG
        return Refused(
            f"the poses differ by {most:.1f}° in their rotation; turn the flange by at least "
            f"{SMALLEST_SPREAD / DEG:g}° between some of them"
        )
    cosines = np.abs(axes[far] @ axes[far].T).clip(0.0, 1.0)
    between = float(np.arccos(cosines.min()))
    if between < SMALLEST_SPREAD:
        return Refused(
            f"the flange turns about one axis only (all axes are within {between / DEG:.1f}°); "
            f"turn it about a second one, at least {SMALLEST_SPREAD / DEG:g}° away"
        )
    second = _second_turn(angles, axes)
    if second < SMALLEST_SECOND:
        return Refused(
            f"the flange turns about one axis, and about any other by {second / DEG:.1f}° rms "
            f"only; turn it about a second one, by {SMALLEST_SECOND / DEG:g}° rms at least"
        )
    return None


def _second_turn(angles: Array, axes: Array) -> float:
    """How far the poses turn about the second of their main axes, rms from their middle."""
    turns = 2.0 * np.sin(0.5 * angles)[:, None] * axes
    squares = np.linalg.eigvalsh(turns.T @ turns / len(turns))
    return float(np.sqrt(0.5 * max(squares[1], 0.0)))  # two poses differ by twice the variance


def _turns(places: Array) -> tuple[Array, Array]:
    """Angles and unit axes of the rotations between every two poses."""
    pairs = [(i, j) for i in range(len(places)) for j in range(i)]
    found = [axis_angle(places[i][:3, :3].T @ places[j][:3, :3]) for i, j in pairs]
    return np.array([angle for _, angle in found]), np.array([axis for axis, _ in found])


def tsai_lenz(views: Views) -> Array | Refused:
    """X by the method of Tsai and Lenz (1989): the rotation first, then the translation."""
    if refused := degenerate(views):
        return refused
    hand, eye = _motions(views)
    rotation = _rotation(hand, eye)
    rows = hand[:, :3, :3] - np.eye(3)
    right = (rotation @ eye[:, :3, 3, None])[..., 0] - hand[:, :3, 3]
    shift = np.linalg.lstsq(rows.reshape(-1, 3), right.reshape(-1), rcond=None)[0]
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, shift
    return out


def _motions(views: Views) -> tuple[Array, Array]:
    """Motions of the hand and of the eye between every two poses: hand·X = X·eye."""
    a, b = views.hand, views.target
    first, second = np.triu_indices(len(views), 1)
    return inverse(a[second]) @ a[first], b[second] @ inverse(b[first])


def _rotation(hand: Array, eye: Array) -> Array:
    """The rotation of X from modified Rodrigues vectors 2·sin(angle/2)·axis."""
    pa, pb = (np.array([_rodrigues(each[:3, :3]) for each in stack]) for stack in (hand, eye))
    rows = np.array([_cross(each) for each in pa + pb])
    half = np.linalg.lstsq(rows.reshape(-1, 3), (pb - pa).reshape(-1), rcond=None)[0]
    p = 2.0 * half / np.sqrt(1.0 + half @ half)
    square = float(p @ p)
    return np.asarray(
        (1.0 - 0.5 * square) * np.eye(3)
        + 0.5 * (np.outer(p, p) + np.sqrt(4.0 - square) * _cross(p))
    )


def _rodrigues(rotation: Array) -> Array:
    axis, angle = axis_angle(rotation)
    return np.asarray(2.0 * np.sin(0.5 * angle) * axis)


def _cross(v: Array) -> Array:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def target_place(views: Views, camera: Array) -> Array:
    """Y, the mean over the poses: 4×4."""
    places = views.hand @ camera @ views.target
    u, _, v = np.linalg.svd(places[:, :3, :3].mean(axis=0))
    out = np.eye(4)
    out[:3, :3] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ v)]) @ v
    out[:3, 3] = places[:, :3, 3].mean(axis=0)
    return out


@dataclass(frozen=True)
class Residual:
    """By how much a pose misses the common target: millimetres and degrees."""

    distance_mm: float
    angle_deg: float


def residuals(views: Views, camera: Array, target: Array) -> list[Residual]:
    """One for each pose."""
    missed = inverse(target) @ (views.hand @ camera @ views.target)
    return [
        Residual(
            float(np.linalg.norm(each[:3, 3])) / MM,
            axis_angle(each[:3, :3])[1] / DEG,
        )
        for each in missed
    ]


# ── the five methods of OpenCV ────────────────────────────────────────────────────────────────────


OPENCV_METHODS = ("tsai", "park", "horaud", "andreff", "daniilidis")


def by_opencv(views: Views, method: str) -> Array | Refused:
    """X by one of OPENCV_METHODS; ModuleNotFoundError without the extra `vision`."""
    if refused := degenerate(views):
        return refused
    import cv2

    out = np.eye(4)
    try:
        out[:3, :3], out[:3, 3:] = cv2.calibrateHandEye(
            list(views.hand[:, :3, :3]),
            list(views.hand[:, :3, 3]),
            list(views.target[:, :3, :3]),
            list(views.target[:, :3, 3]),
            method=getattr(cv2, f"CALIB_HAND_EYE_{method.upper()}"),
        )
    except cv2.error:  # it does not converge for poses that contradict each other
        out[:] = np.nan
    if not is_rigid(out):
        return Refused(f"the method {method} finds no camera for these poses")
    return out
