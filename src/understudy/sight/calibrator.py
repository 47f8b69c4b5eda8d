"""Hand-eye calibration from captured poses: collects them, computes the camera and checks it.

The first estimate comes from a closed form (own Tsai and Lenz, or one of OpenCV's methods); where
the corners of the target are known, the bundle with a prior on the errors of the robot refines it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import get_args

import numpy as np

from understudy.errors import ConfigError, Refused
from understudy.sight.bundle import (
    Corners,
    Noise,
    Refined,
    ScaleError,
    motion_vector,
    refine,
    refine_with_noise,
)
from understudy.sight.camera_place import (
    OPENCV_METHODS,
    SMALLEST_SPREAD,
    Residual,
    Views,
    by_opencv,
    degenerate,
    residuals,
    target_place,
    tsai_lenz,
)
from understudy.sight.lens import Lens, Mount
from understudy.sight.targets import ENOUGH_POSES
from understudy.space.transform import Array, angle_between, is_rigid
from understudy.units import DEG, MM

OWN = "tsai_lenz"
BEST = "best"
"""The one of the other methods that predicts poses best that it has not seen."""
METHODS = (BEST, OWN, *OPENCV_METHODS)
MOST_POSES = 1000
FOLDS = 5
"""Groups of poses that are held out one after the other."""
SAME_SHIFT = 0.5 * MM
SAME_TURN = 0.5 * DEG
"""Two poses that differ by less than both are one."""
RIGID = 1e-6
SURE = 5.0
"""Standard deviations by which a size must differ from the given one to be called wrong."""
LARGEST_RMS_MM = 5.0
"""By which poses may miss the common target, rms; an error of a robot is far smaller."""
CORNER_NOISE = 0.07
"""Standard deviation of a corner of a board in pixels, measured on rendered boards."""
USUAL_ROBOT = Noise(pixel=CORNER_NOISE)
"""What is assumed of a robot before its first pose."""


@dataclass(frozen=True)
class CalibrationPose:
    """A pose of the arm in which the target was seen.

    `flange`: T_base_flange; `target`: T_camera_target; 4×4 in metres. `corners`: of the target
    in the picture, for the refinement. `joints`: rad, for the table of poses only.
    """

    flange: Array
    target: Array
    corners: Corners | None = None
    joints: tuple[float, ...] = ()


@dataclass(frozen=True)
class PoseResidual:
    """By how much a pose misses the common target; `pixel_rms`: of its corners, if known."""

    distance_mm: float
    angle_deg: float
    pixel_rms: float | None = None


@dataclass(frozen=True)
class HeldOut:
    """Poses predicted by a calibration that has not seen them. `poses`: how many there were."""

    rms_mm: float
    largest_mm: float
    rms_deg: float
    poses: int


@dataclass(frozen=True)
class CalibrationResult:
    """The result of a hand-eye calibration.

    `camera`: T_flange_camera (eye in hand) or T_base_camera (eye to hand); `target`:
    T_base_target or T_flange_target. `covariance`: 6×6 of the camera along its own axes, metres
    and radians. `held_out`: None if too few poses were left for it. `scale`: the given size
    that the pictures contradict most, known after a refinement; `distance_mm`: of the target
    from the camera, in the mean. `noise`: of corners and robot, as it was given or estimated;
    known after a refinement.
    """

    camera: Array
    target: Array
    mount: Mount
    method: str
    refined: bool
    poses: tuple[PoseResidual, ...]
    covariance: Array
    held_out: HeldOut | None
    lens: Lens | None = None
    scale: ScaleError | None = None
    distance_mm: float = 0.0
    noise: Noise | None = None

    @property
    def rms_mm(self) -> float:
        return _rms([each.distance_mm for each in self.poses])

    @property
    def rms_deg(self) -> float:
        return _rms([each.angle_deg for each in self.poses])

    @property
    def pixel_rms(self) -> float | None:
        known = [each.pixel_rms for each in self.poses if each.pixel_rms is not None]
        return _rms(known) if known else None

    def contradiction(self) -> Refused | None:
        """Why this result must not be used: no camera explains all its poses."""
        if self.rms_mm <= LARGEST_RMS_MM:
            return None
        worst = max(range(len(self.poses)), key=lambda row: self.poses[row].distance_mm)
        return Refused(
            f"the poses contradict each other: they miss the common target by {self.rms_mm:.1f} mm "
            f"rms, pose {worst + 1} by {self.poses[worst].distance_mm:.1f} mm; at most "
            f"{LARGEST_RMS_MM:g} mm are allowed. The target or the camera may have moved, or the "
            f"mount ({self.mount}) or the size of the target is wrong"
        )

    @property
    def scale_shift_mm(self) -> float:
        """How far a wrong size of the target, or a wrong focal length, has moved the camera; 0
        if the pictures do not contradict the sizes that were given."""
        if self.scale is None or abs(self.scale.share) <= SURE * self.scale.deviation:
            return 0.0
        return abs(self.scale.share) * self.distance_mm

    @cached_property
    def deviations_mm_deg(self) -> tuple[Array, Array]:
        """Standard deviations of the camera in the frame of its pose (flange or base): along x, y,
        z in millimetres and about them in degrees."""
        turn = self.camera[:3, :3]
        shifts, turns = self.covariance[:3, :3], self.covariance[3:, 3:]
        spreads = [np.sqrt(np.diag(turn @ each @ turn.T)) for each in (shifts, turns)]
        return spreads[0] / MM, spreads[1] / DEG


@dataclass(frozen=True)
class Validation:
    """Whether a pose that was not used agrees with the calibration."""

    passed: bool
    distance_mm: float
    angle_deg: float
    tolerance_mm: float


@dataclass(frozen=True)
class Direction:
    """A direction in which the flange can turn away from the middle of all poses. `turned_deg`:
    the largest turn there."""

    name: str
    turned_deg: float

    @property
    def missing(self) -> bool:
        return self.turned_deg < SMALLEST_SPREAD / DEG


def coverage(flanges: Sequence[Array]) -> tuple[Direction, ...]:
    """How far the poses turn about each axis of the flange, to both sides, from their middle."""
    names = [sign + axis for axis in "xyz" for sign in "+-"]
    if len(flanges) == 0:
        return tuple(Direction(name, 0.0) for name in names)
    turns = np.asarray(flanges)[:, :3, :3]
    u, _, v = np.linalg.svd(turns.mean(axis=0))
    middle = u @ np.diag([1.0, 1.0, np.linalg.det(u @ v)]) @ v
    vectors = np.array([_turn_vector(middle.T @ each) for each in turns]) / DEG
    furthest = np.stack([vectors.max(axis=0), -vectors.min(axis=0)], axis=1).clip(0.0)
    return tuple(
        Direction(name, float(turned))
        for name, turned in zip(names, furthest.reshape(-1), strict=True)
    )


def _turn_vector(rotation: Array) -> Array:
    """Axis times angle."""
    motion = np.eye(4)
    motion[:3, :3] = rotation
    return motion_vector(motion)[3:]


def unsuitable(flanges: Sequence[Array], mount: Mount = "eye_in_hand") -> Refused | None:
    """Why these poses of the flange alone do not determine the camera."""
    stack = np.asarray(flanges, dtype=np.float64).reshape(-1, 4, 4)
    return degenerate(Views(stack, stack, mount))


def unknown_method(method: str) -> Refused | None:
    """A refusal if there is no such method."""
    if method not in METHODS:
        return Refused(f"method {method}: known are {', '.join(METHODS)}")
    return None


def not_a_view(pose: CalibrationPose) -> Refused | None:
    """Why no camera can have this pose."""
    for name, place in (("flange", pose.flange), ("target", pose.target)):
        if np.shape(place) != (4, 4) or not is_rigid(place, RIGID):
            return Refused(f"the pose of the {name} is not a rotation and a translation")
    if pose.target[2, 3] <= 0.0:
        return Refused("the target is behind the camera")
    return None


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values else 0.0


class HandEyeCalibrator:
    """Collects poses and computes where the camera is.

    ``lens``: needed for the refinement; ``noise``: of the corners and of the robot. Without it the
    noise is estimated from the residuals.
    """

    def __init__(
        self, mount: Mount = "eye_in_hand", lens: Lens | None = None, noise: Noise | None = None
    ) -> None:
        if mount not in get_args(Mount):
            raise ConfigError(f"mount {mount!r}", allowed=", ".join(get_args(Mount)))
        self.mount: Mount = mount
        self.lens = lens
        self.noise = noise
        self._poses: list[CalibrationPose] = []
        self._result: CalibrationResult | None = None

    # ── poses ──

    def reset(self) -> None:
        """Removes every pose and the result."""
        self._poses, self._result = [], None

    def add_pose(
        self,
        flange: Array,
        target: Array,
        corners: Corners | None = None,
        joints: Sequence[float] = (),
    ) -> Refused | None:
        """Adds a pose; the refusal says why it is of no use."""
        pose = CalibrationPose(
            np.array(flange, dtype=np.float64),
            np.array(target, dtype=np.float64),
            corners,
            tuple(float(each) for each in joints),
        )
        if refused := self._useless(pose):
            return refused
        self._poses.append(pose)
        self._result = None
        return None

    def delete_last(self) -> Refused | None:
        if not self._poses:
            return Refused("there is no pose to delete")
        self._poses.pop()
        self._result = None
        return None

    @property
    def poses(self) -> tuple[CalibrationPose, ...]:
        return tuple(self._poses)

    def get_pose_count(self) -> int:
        return len(self._poses)

    def has_enough_poses(self) -> bool:
        return len(self._poses) >= ENOUGH_POSES

    def coverage(self) -> tuple[Direction, ...]:
        return coverage([pose.flange for pose in self._poses])

    def _useless(self, pose: CalibrationPose) -> Refused | None:
        if len(self._poses) >= MOST_POSES:
            return Refused(f"{MOST_POSES} poses are the most; compute, or delete some")
        if refused := not_a_view(pose):
            return refused
        for number, other in enumerate(self._poses, 1):
            shift = float(np.linalg.norm(other.flange[:3, 3] - pose.flange[:3, 3]))
            if shift < SAME_SHIFT and angle_between(other.flange, pose.flange) < SAME_TURN:
                return Refused(f"the flange is where it was at pose {number}; move it first")
        return None

    # ── result ──

    def compute(self, method: str = BEST, *, refined: bool = True) -> CalibrationResult | Refused:
        """The camera from all poses; ``refined``: by the bundle, if the corners are known."""
        if refused := unknown_method(method):
            return refused
        if not self.has_enough_poses():
            return Refused(
                f"{len(self._poses)} poses; at least {ENOUGH_POSES} are needed, 15 are usual"
            )
        solver = _Solver(self._poses, self.mount, self.lens if refined else None, self.noise)
        found = solver.best() if method == BEST else solver.solve(method)
        self._result = found if isinstance(found, CalibrationResult) else None
        return found

    @property
    def result(self) -> CalibrationResult | None:
        return self._result

    def get_hand_eye_matrix(self) -> Array | None:
        """The camera, 4×4 in metres; None before it is computed."""
        return None if self._result is None else self._result.camera

    def get_reprojection_error(self) -> float | None:
        """By how much the poses miss the common target, rms in millimetres."""
        return None if self._result is None else self._result.rms_mm

    def validate(self, pose: CalibrationPose, tolerance_mm: float = 1.0) -> Validation | Refused:
        """Compares a pose that was not used with the calibration."""
        if self._result is None:
            return Refused("compute the calibration before it is validated")
        if refused := not_a_view(pose):
            return refused
        return validated(self._result, pose, tolerance_mm)


def validated(
    result: CalibrationResult, pose: CalibrationPose, tolerance_mm: float = 1.0
) -> Validation:
    """Where the calibration puts the target in this pose, against where the target is."""
    views = Views(pose.flange[None], pose.target[None], result.mount)
    (missed,) = residuals(views, result.camera, result.target)
    passed = missed.distance_mm <= tolerance_mm
    return Validation(passed, missed.distance_mm, missed.angle_deg, tolerance_mm)


@dataclass(frozen=True)
class _Estimate:
    """The camera and the target; `refined`: with what the refinement says of them, if there was
    one."""

    camera: Array
    target: Array
    refined: Refined | None = None


@dataclass(frozen=True)
class _Solver:
    """Computes the camera from poses, and how well it agrees with them."""

    poses: Sequence[CalibrationPose]
    mount: Mount
    lens: Lens | None
    noise: Noise | None = None

    def best(self) -> CalibrationResult | Refused:
        """The result of the method that predicts poses best that it has not seen; without OpenCV
        the own."""
        methods = (OWN, *OPENCV_METHODS) if find_spec("cv2") else (OWN,)
        closed = replace(self, lens=None)
        found: dict[str, float] = {}
        for method in methods:
            estimate = closed._estimate(method, range(len(self.poses)))
            if isinstance(estimate, Refused):
                continue
            held_out = closed._held_out(method, estimate)
            found[method] = np.inf if held_out is None else held_out.rms_mm
        return self.solve(min(found, key=lambda each: found[each], default=OWN))

    def solve(self, method: str) -> CalibrationResult | Refused:
        everything = range(len(self.poses))
        if refused := degenerate(self._views(everything)):
            return refused
        found = self._estimate(method, everything)
        if isinstance(found, Refused):
            return found
        missed = residuals(self._views(everything), found.camera, found.target)
        bundle = found.refined
        pixels = bundle.pixel_rms.tolist() if bundle else [None] * len(missed)
        return CalibrationResult(
            found.camera,
            found.target,
            self.mount,
            method,
            bundle is not None,
            tuple(
                PoseResidual(each.distance_mm, each.angle_deg, rms)
                for each, rms in zip(missed, pixels, strict=True)
            ),
            bundle.covariance if bundle else self._spread(method, found.camera),
            self._held_out(method, found),
            self.lens,
            bundle.scale if bundle else None,
            float(np.mean([pose.target[2, 3] for pose in self.poses])) / MM,
            bundle.noise if bundle else None,
        )

    def _views(self, rows: Sequence[int]) -> Views:
        chosen = [self.poses[row] for row in rows]
        flange, target = (
            np.array([getattr(pose, name) for pose in chosen]) for name in ("flange", "target")
        )
        return Views(flange, target, self.mount)

    def _estimate(self, method: str, rows: Sequence[int]) -> _Estimate | Refused:
        views = self._views(rows)
        first = tsai_lenz(views) if method == OWN else by_opencv(views, method)
        if isinstance(first, Refused):
            return first
        return self._bundle(rows, _Estimate(first, target_place(views, first)))

    def _bundle(self, rows: Sequence[int], start: _Estimate) -> _Estimate | Refused:
        """The estimate, refined if every pose has its corners."""
        corners = [self.poses[row].corners for row in rows]
        known = [each for each in corners if each is not None]
        if self.lens is None or len(known) < len(corners):
            return start
        try:
            best = self._refined(self._views(rows), known, self.lens, start)
        except np.linalg.LinAlgError:
            return Refused("the corners of these poses do not determine the camera")
        return _Estimate(best.camera, best.target, best)

    def _refined(
        self, views: Views, corners: Sequence[Corners], lens: Lens, start: _Estimate
    ) -> Refined:
        camera, target, noise = start.camera, start.target, self.noise
        if noise is None and start.refined is not None:  # of all poses, for some of them
            noise = start.refined.noise
        if noise is None:
            return refine_with_noise(views, corners, lens, camera=camera, target=target)
        return refine(views, corners, lens, camera=camera, target=target, noise=noise)

    def _held_out(self, method: str, best: _Estimate) -> HeldOut | None:
        """Every pose predicted once, from the poses of the other groups."""
        missed: list[Residual] = []
        for fold in range(FOLDS):
            out = range(fold, len(self.poses), FOLDS)
            kept = [row for row in range(len(self.poses)) if row % FOLDS != fold]
            if degenerate(self._views(kept)):
                continue
            if best.refined is not None:  # its minimum is found from any start near it
                found = self._bundle(kept, best)
            else:
                found = self._estimate(method, kept)
            if not isinstance(found, Refused):
                missed += residuals(self._views(out), found.camera, found.target)
        if not missed:
            return None
        distances = [each.distance_mm for each in missed]
        angles = [each.angle_deg for each in missed]
        return HeldOut(_rms(distances), max(distances), _rms(angles), len(missed))

    def _spread(self, method: str, camera: Array) -> Array:
        """The covariance by leaving out one pose after the other (jackknife)."""
        closed = replace(self, lens=None)
        back = np.linalg.inv(camera)
        moved, count = [], len(self.poses)
        for left_out in range(count):
            found = closed._estimate(method, [row for row in range(count) if row != left_out])
            if not isinstance(found, Refused):
                moved.append(motion_vector(back @ found.camera))
        if len(moved) < 2:
            return np.full((6, 6), np.inf)
        changes = np.array(moved) - np.mean(moved, axis=0)
        return np.asarray((len(moved) - 1) / len(moved) * changes.T @ changes)
