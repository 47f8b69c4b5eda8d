"""Refinement of a hand-eye calibration: the camera that explains the seen corners best.

Bundle adjustment with a prior on the robot (maximum a posteriori). Unknown are the camera, the
target and, for every pose, the error of the robot. The squares of the deviations of all corners in
pixels, and of the errors of the robot in their standard deviations, become smallest. Without the
prior the errors of a robot would be taken for errors of the camera.

The corner P of the target is seen at Q = X⁻¹·M·Y·P. Eye in hand: M = (F·E)⁻¹; eye to hand:
M = F·E, with the reported flange F and the error E of the robot. Small changes ξ = (shift, turn)
act on the right of X, Y and E: X·exp(ξ).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from understudy.sight.camera_place import Views
from understudy.sight.lens import Lens
from understudy.space.transform import Array, axis_angle, inverse, rotation_about
from understudy.units import DEG, MM

MOST_STEPS = 50
SETTLED = 1e-10
"""The search ends when the sum of squares changes by a smaller share."""
LARGEST_DAMPING = 1e12
COMMON = 12
"""Unknowns of camera and target."""
NEARLY_EXACT = (1e-3 * MM, 3e-4 * DEG)
"""Standard deviations of a robot that is exact in its shifts only, or in its turns only."""
MOST_ROUNDS = 40
SAME_NOISE = 0.02
"""The noise is estimated when no deviation changes by a larger share."""
LARGEST_CHANGE = 4.0
"""Factor by which a deviation changes in one round."""
SMALLEST_PIXEL = 0.01
DOUBTFUL = 3.0
"""Standard deviations by which a size must differ for the noise to be estimated with it changed."""
Scale = Literal["target_size", "focal_length"]
SCALES: tuple[Scale, ...] = ("target_size", "focal_length")


class Corners(NamedTuple):
    """Corners of the target that one picture shows: (m, 3) in the frame of the target in metres,
    and (m, 2) pixels."""

    points: Array
    pixels: Array


@dataclass(frozen=True)
class Noise:
    """Standard deviations: of a corner in pixels, of the robot in metres and radians; 0: the robot
    is taken as exact in its shifts, or in its turns."""

    pixel: float = 0.2
    shift: float = 0.1 * MM
    turn: float = 0.03 * DEG

    @property
    def exact_robot(self) -> bool:
        return self.shift <= 0.0 and self.turn <= 0.0


class ScaleError(NamedTuple):
    """A size that was given and that the pictures contradict: the robot measures it.

    `share`: 0.02 if it should be 2 % larger; `deviation`: standard deviation of the share; `gain`:
    by how much half the sum of squares would fall."""

    kind: Scale
    share: float
    deviation: float
    gain: float


@dataclass(frozen=True)
class Refined:
    """The result of the bundle adjustment.

    `covariance`: 6×6 of the camera, in metres and radians, along its own axes; larger by
    `variance`, the mean square of the deviations in standard deviations, if that is above 1.
    `pixel_rms`: of the corners, one for each pose. `errors`: of the robot, (n, 4, 4). `scales`: the
    given sizes, `scale` the one that is contradicted most. `noise`: with which this was computed.
    """

    camera: Array
    target: Array
    errors: Array
    pixel_rms: Array
    covariance: Array
    variance: float
    scale: ScaleError
    steps: int
    noise: Noise
    scales: tuple[ScaleError, ...]

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.pixel_rms**2)))


class Estimate(NamedTuple):
    """The unknowns as matrices."""

    camera: Array
    target: Array
    errors: Array


class Equations(NamedTuple):
    """Normal equations at an estimate, by blocks: camera and target (12; 14 with the logarithms of
    the `SCALES`), each pose (6).

    `cost`: half the sum of squares. The blocks of the poses are empty for an exact robot.
    """

    common: Array
    mixed: Array
    poses: Array
    common_slope: Array
    pose_slopes: Array
    cost: float

    def damped(self, by: float) -> "Equations":
        """The diagonals made larger by a share."""
        common = self.common + by * np.diag(np.diag(self.common))
        poses = self.poses + by * self.poses * np.eye(6)
        return self._replace(common=common, poses=poses)

    def reduced(self) -> tuple[Array, Array]:
        """Curvature and slope of camera and target, with the poses eliminated."""
        through = np.linalg.solve(self.poses, np.swapaxes(self.mixed, 1, 2))
        curvature = self.common - (self.mixed @ through).sum(axis=0)
        slope = self.common_slope - np.einsum("nij,ni->j", through, self.pose_slopes)
        return curvature, slope

    def change(self) -> tuple[Array, Array]:
        """The step to the minimum: of camera and target, and of each pose."""
        curvature, slope = self.reduced()
        common = np.linalg.solve(curvature, -slope)
        right = -self.pose_slopes - np.einsum("nji,j->ni", self.mixed, common)
        return _floats(common), _floats(np.linalg.solve(self.poses, right[..., None])[..., 0])


def refine(
    views: Views,
    corners: Sequence[Corners],
    lens: Lens,
    *,
    camera: Array,
    target: Array,
    noise: Noise | None = None,
) -> Refined:
    """The best camera, from a first estimate of camera and target (Levenberg and Marquardt)."""
    problem = _Problem(views, corners, lens, noise or Noise())
    here = Estimate(camera, target, np.tile(np.eye(4), (len(views), 1, 1)))
    equations, damping, steps = problem.equations(here), 1e-6, 0
    while steps < MOST_STEPS and damping < LARGEST_DAMPING:
        steps += 1
        there = problem.changed(here, *equations.damped(damping).change())
        new = problem.equations(there)
        if not new.cost <= equations.cost:
            damping = max(10.0 * damping, 1e-9)
            continue
        settled = equations.cost - new.cost <= SETTLED * max(equations.cost, 1e-30)
        here, equations, damping = there, new, damping / 10.0
        if settled:
            break
    rms = problem.pixel_rms(here)
    variance = 2.0 * equations.cost / max(problem.count - COMMON, 1)
    covariance = _floats(np.linalg.inv(equations.reduced()[0])[:6, :6]) * max(1.0, variance)
    scales = _scales(problem.equations(here, scales=True), max(1.0, variance))
    return Refined(
        here.camera,
        here.target,
        here.errors,
        rms,
        covariance,
        variance,
        scales[0],
        steps,
        problem.noise,
        scales,
    )


def refine_with_noise(
    views: Views, corners: Sequence[Corners], lens: Lens, *, camera: Array, target: Array
) -> Refined:
    """The best camera where the errors of corners and robot are not known: they are estimated from
    the residuals, by restricted maximum likelihood.

    The estimate of a variance is the sum of the squares of its residuals, divided by the part of
    their number that the pictures determine and not the prior (MacKay's fixed point). A robot
    whose errors shrink to nothing is exact.
    """
    best = _estimated(views, corners, lens, camera=camera, target=target)
    if abs(best.scale.share) <= DOUBTFUL * best.scale.deviation:
        return best
    # What a wrong size does was taken for noise: the share is right, its deviation too large.
    kind, share = best.scale.kind, best.scale.share
    if kind == "target_size":
        corners = [each._replace(points=each.points * (1.0 + share)) for each in corners]
    else:
        lens = replace(lens, fx=lens.fx * (1.0 + share), fy=lens.fy * (1.0 + share))
    changed = _estimated(views, corners, lens, camera=best.camera, target=best.target)
    rest = next(each for each in changed.scales if each.kind == kind)
    surer = best.scale._replace(share=share + rest.share, deviation=rest.deviation)
    return replace(best, scale=surer)


def _estimated(
    views: Views, corners: Sequence[Corners], lens: Lens, *, camera: Array, target: Array
) -> Refined:
    noise = Noise()
    for _ in range(MOST_ROUNDS):
        best = refine(views, corners, lens, camera=camera, target=target, noise=noise)
        camera, target, before = best.camera, best.target, noise
        noise = _noise_of(_Problem(views, corners, lens, noise), best)
        pairs = zip(_deviations(noise), _deviations(before), strict=True)
        if all(abs(new - old) <= SAME_NOISE * old for new, old in pairs):
            break
    if noise.shift <= NEARLY_EXACT[0] and noise.turn <= NEARLY_EXACT[1]:
        noise = Noise(noise.pixel, 0.0, 0.0)
    return refine(views, corners, lens, camera=camera, target=target, noise=noise)


def _deviations(noise: Noise) -> tuple[float, float, float]:
    return noise.pixel, noise.shift, noise.turn


def _noise_of(problem: "_Problem", best: Refined) -> Noise:
    """The next estimate of the noise, from a refinement with the one before."""
    noise = problem.noise
    at = problem.equations(Estimate(best.camera, best.target, best.errors))
    curvature, _ = at.reduced()
    own = np.linalg.inv(at.poses)
    through = at.mixed @ own
    spread = own + np.swapaxes(through, 1, 2) @ np.linalg.solve(curvature, through)
    shares = np.einsum("nii->ni", spread)  # of the errors of each pose, in metres² and rad²
    errors = np.array([motion_vector(each) for each in best.errors])
    count, found = len(errors), []
    determined = float(COMMON)  # unknowns that the corners determine
    for part, given, least in (
        (slice(0, 3), noise.shift, NEARLY_EXACT[0]),
        (slice(3, 6), noise.turn, NEARLY_EXACT[1]),
    ):
        known = 3.0 * count - float(shares[:, part].sum()) / given**2
        determined += max(known, 0.0)
        square = float((errors[:, part] ** 2).sum()) / max(known, 1e-9)
        found.append(max(_limited(np.sqrt(square), given), least))
    missed = float((best.pixel_rms**2) @ [len(each.points) for each in problem.corners])
    pixel = np.sqrt(missed / max(problem.count - determined, 1.0))
    return Noise(max(_limited(pixel, noise.pixel), SMALLEST_PIXEL), *found)


def _limited(new: float, old: float) -> float:
    return float(np.clip(new, old / LARGEST_CHANGE, old * LARGEST_CHANGE))


def _scales(equations: Equations, variance: float) -> tuple[ScaleError, ...]:
    """One Gauss-Newton step for each scale, the one that explains most first."""
    curvature, slope = equations.reduced()
    common, common_slope = curvature[:COMMON, :COMMON], slope[:COMMON]
    found = []
    for kind, row in zip(SCALES, range(COMMON, len(slope)), strict=True):
        through = np.linalg.solve(common, curvature[:COMMON, row])
        own = float(curvature[row, row] - curvature[row, :COMMON] @ through)
        rise = float(slope[row] - through @ common_slope)
        if own <= 0.0:  # the poses do not tell
            found.append(ScaleError(kind, 0.0, np.inf, 0.0))
            continue
        deviation = float(np.sqrt(variance / own))
        found.append(ScaleError(kind, -rise / own, deviation, 0.5 * rise * rise / own))
    return tuple(sorted(found, key=lambda each: -each.gain))


def information(
    views: Views,
    points: Array,
    lens: Lens,
    *,
    camera: Array,
    target: Array,
    noise: Noise | None = None,
) -> Array:
    """(n, 12, 12): what each pose would say about camera and target, if it shows these points."""
    corners = [Corners(points, np.zeros((len(points), 2)))] * len(views)
    problem = _Problem(views, corners, lens, noise or Noise())
    here = Estimate(camera, target, np.tile(np.eye(4), (len(views), 1, 1)))
    return np.array([problem.single(here, number) for number in range(len(views))])


class _Problem:
    """The sum of squares and its derivatives."""

    def __init__(self, views: Views, corners: Sequence[Corners], lens: Lens, noise: Noise) -> None:
        self._views = views
        self.corners = corners
        self._lens = lens
        self.noise = noise
        self.count = sum(2 * len(each.points) for each in corners)
        """Deviations of corners; with errors of the robot there are as many more as unknowns."""

    def changed(self, here: Estimate, common: Array, poses: Array) -> Estimate:
        errors = here.errors
        if len(poses):
            errors = errors @ np.array([small_motion(each) for each in poses])
        camera = here.camera @ small_motion(common[:6])
        return Estimate(camera, here.target @ small_motion(common[6:]), errors)

    def equations(self, here: Estimate, *, scales: bool = False) -> Equations:
        """``scales``: with the sizes of `SCALES` as unknowns."""
        width = COMMON + len(SCALES) * scales
        common, common_slope, cost = np.zeros((width, width)), np.zeros(width), 0.0
        mixed, poses, slopes = [], [], []
        for number in range(len(self._views)):
            rows, missed = self._pose(here, number)
            shared, own = rows[:, :COMMON], rows[:, COMMON:]
            if scales:
                shared = np.hstack([shared, self._by_scales(here, number, len(rows))])
            common += shared.T @ shared
            common_slope += shared.T @ missed
            cost += 0.5 * float(missed @ missed)
            if not self.noise.exact_robot:
                mixed.append(shared.T @ own)
                poses.append(own.T @ own)
                slopes.append(own.T @ missed)
        return Equations(
            common,
            np.array(mixed).reshape(-1, width, 6),
            np.array(poses).reshape(-1, 6, 6),
            common_slope,
            np.array(slopes).reshape(-1, 6),
            cost,
        )

    def single(self, here: Estimate, number: int) -> Array:
        """The curvature of camera and target by one pose, its robot error eliminated."""
        rows, _ = self._pose(here, number)
        shared, own = rows[:, :COMMON], rows[:, COMMON:]
        through = np.linalg.solve(own.T @ own, own.T @ shared)
        return np.asarray(shared.T @ shared - shared.T @ own @ through)

    def pixel_rms(self, here: Estimate) -> Array:
        missed = (self._missed(here, number)[0] for number in range(len(self._views)))
        return np.array([np.sqrt(np.mean(np.sum(each**2, axis=1))) for each in missed])

    def _pose(self, here: Estimate, number: int) -> tuple[Array, Array]:
        """Derivatives and deviations of one pose, in standard deviations."""
        missed, seen, on_flange, inner = self._missed(here, number)
        bend = self._lens.pixel_slopes(seen) / self.noise.pixel
        by_camera = np.concatenate([-_unit(seen), _crosses(seen)], axis=2)
        points = self.corners[number].points
        turn = inverse(here.camera)[:3, :3] @ inner[:3, :3]
        by_target = turn @ np.concatenate([_unit(points), -_crosses(points)], axis=2)
        columns = [by_camera, by_target]
        if not self.noise.exact_robot:
            columns.append(self._by_error(here, number, on_flange))
        rows = (bend @ np.concatenate(columns, axis=2)).reshape(2 * len(points), -1)
        deviations = missed.reshape(-1) / self.noise.pixel
        if self.noise.exact_robot:
            return rows, deviations
        given = np.maximum((self.noise.shift, self.noise.turn), NEARLY_EXACT)
        scale = np.repeat(1.0 / given, 3)
        prior = np.hstack([np.zeros((6, COMMON)), np.diag(scale)])
        return np.vstack([rows, prior]), np.concatenate(
            [deviations, scale * motion_vector(here.errors[number])]
        )

    def _by_scales(self, here: Estimate, number: int, height: int) -> Array:
        """Derivatives of the deviations by the logarithms of the size of the target and of the
        focal length: (height, 2), zero for the prior."""
        missed, seen, _, inner = self._missed(here, number)
        points, pixels = self.corners[number]
        turn = inverse(here.camera)[:3, :3] @ inner[:3, :3]
        by_size = self._lens.pixel_slopes(seen) @ (turn @ points[..., None])
        by_focal = pixels + missed - (self._lens.cx, self._lens.cy)
        out = np.zeros((height, len(SCALES)))
        columns = [by_size.reshape(-1), by_focal.reshape(-1)]
        out[: 2 * len(points)] = np.stack(columns, axis=1) / self.noise.pixel
        return out

    def _by_error(self, here: Estimate, number: int, on_flange: Array) -> Array:
        """Derivatives of the seen points by the error of the robot."""
        back = inverse(here.camera)[:3, :3]
        spin = np.concatenate([_unit(on_flange), -_crosses(on_flange)], axis=2)
        if self._views.mount == "eye_in_hand":
            return np.asarray(-back @ spin)
        robot = self._views.flange[number] @ here.errors[number]
        return np.asarray(back @ robot[:3, :3] @ spin)

    def _missed(self, here: Estimate, number: int) -> tuple[Array, Array, Array, Array]:
        """Deviations in pixels, the corners in the frame of the camera and of the flange, and M."""
        points, pixels = self.corners[number]
        robot = self._views.flange[number] @ here.errors[number]
        inner = inverse(robot) if self._views.mount == "eye_in_hand" else robot
        on_target = _moved(here.target, points)
        through = _moved(inner, on_target)
        seen = _moved(inverse(here.camera), through)
        on_flange = through if self._views.mount == "eye_in_hand" else on_target
        return self._lens.pixels(seen) - pixels, seen, on_flange, inner @ here.target


def small_motion(change: Array) -> Array:
    """exp of a shift and a turn, to the first order in their product."""
    out = np.eye(4)
    angle = float(np.linalg.norm(change[3:]))
    if angle > 0.0:
        out[:3, :3] = rotation_about(change[3:] / angle, angle)
    out[:3, 3] = change[:3]
    return out


def motion_vector(motion: Array) -> Array:
    """Shift, and axis times angle."""
    axis, angle = axis_angle(motion[:3, :3])
    return np.concatenate([motion[:3, 3], angle * axis])


def _floats(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


def _moved(place: Array, points: Array) -> Array:
    return np.asarray(points @ place[:3, :3].T + place[:3, 3])


def _unit(points: Array) -> Array:
    return np.broadcast_to(np.eye(3), (len(points), 3, 3))


def _crosses(points: Array) -> Array:
    """(n, 3, 3): the matrices that take v to p × v."""
    x, y, z = points.T
    none = np.zeros_like(x)
    rows = [[none, -z, y], [z, none, -x], [-y, x, none]]
    return np.ascontiguousarray(np.moveaxis(np.array(rows), 2, 0))
