"""Reachability of an arm: single poses, whole programs, a map of the workspace."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import Refused
from understudy.space.collision.detector import CollisionDetector
from understudy.space.compiled import compiled
from understudy.space.given import given_numbers, given_positive, given_row, shown
from understudy.space.kinematics.chain import FOOT_AND_FLANGE, Chain, Frames
from understudy.space.kinematics.ik import (
    BRANCHES,
    SCRATCH,
    branches_at,
    closed_form,
    nearest,
    solve,
    solve_all,
    turned_within,
    unlimited,
)
from understudy.space.pose import Pose
from understudy.space.reach.neighbours import solved_by_direction
from understudy.space.transform import Array, matrix
from understudy.units import MM

MOST_POINTS = 20_000_000
"""Points of a map."""
POINTS_AT_ONCE = 8192
"""Points computed at a time, to limit memory."""


@dataclass(frozen=True)
class ReachabilityResult:
    """Whether a pose can be reached; the configuration (rad), or the reason why not."""

    reachable: bool = False
    has_solution: bool = False
    within_limits: bool = False
    collision_free: bool = False
    joint_solution: tuple[float, ...] = ()
    failure_reason: str = ""


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """A grid of points (m) with the number of tool directions that reach each."""

    points: Array
    """(n, 3)"""
    orientations: NDArray[np.int64]
    """(n,): number of reachable directions among those tried; 0: not reachable."""
    manipulability: Array
    """(n,): Yoshikawa's measure of one solution; 0 if there is none."""
    resolution: float
    tried: int

    @property
    def reachable_points(self) -> Array:
        return np.asarray(self.points[self.orientations > 0])

    @property
    def unreachable_points(self) -> Array:
        return np.asarray(self.points[self.orientations == 0])

    @property
    def workspace_min(self) -> Array:
        """Lower corner of the bounding box of the reachable points; NaN if there are none."""
        found = self.reachable_points
        return np.asarray(found.min(axis=0) if len(found) else np.full(3, math.nan))

    @property
    def workspace_max(self) -> Array:
        found = self.reachable_points
        return np.asarray(found.max(axis=0) if len(found) else np.full(3, math.nan))


@dataclass(frozen=True, eq=False)
class _Grid:
    """What is found for each point. `free_measure`: manipulability of a configuration without
    contact; NaN if the point has none."""

    counts: NDArray[np.int64]
    measure: Array
    free_measure: Array


def _target(pose: "Pose | Array") -> Array:
    """A pose of a caller as a matrix."""
    if isinstance(pose, Pose):
        return matrix(Pose(*given_row(pose, 6, "pose").tolist()))
    if np.shape(pose) != (4, 4):
        raise ValueError(f"pose: a Pose or a 4 x 4 matrix is needed, got {shown(pose)}")
    return given_numbers(pose, 4, "pose")


class TooManyPointsError(ValueError):
    """A grid that is too fine. `finest_mm`: the finest one that is allowed."""

    def __init__(self, side: float, resolution: float, points: int) -> None:
        self.points = points
        steps = (math.floor(MOST_POINTS ** (1 / 3)) - 1) // 2
        self.finest_mm = math.ceil(10.0 * side / steps / MM) / 10.0
        super().__init__(
            f"resolution_mm {resolution / MM:g} gives {points} points, {MOST_POINTS} are allowed: "
            "a coarser resolution or a smaller extent is needed"
        )


def _grid(side: float, resolution: float) -> Array:
    """A cube of points about zero, ±side."""
    steps = math.floor(side / resolution + 1e-9)
    if (2 * steps + 1) ** 3 > MOST_POINTS:
        raise TooManyPointsError(side, resolution, (2 * steps + 1) ** 3)
    axis = np.arange(-steps, steps + 1) * resolution
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


class ReachabilityAnalyzer:
    """Checks poses with the arm's inverse kinematics and, if given, a collision detector."""

    def __init__(
        self,
        chain: Chain,
        collision: CollisionDetector | None = None,
        *,
        frames: Frames = FOOT_AND_FLANGE,
    ) -> None:
        self._chain, self._collision, self._frames = chain, collision, frames

    def check_pose(
        self, pose: Pose | Array, *, near: ArrayLike | None = None
    ) -> ReachabilityResult:
        """Checks one pose of the tool, Pose or 4×4; the solution nearest to ``near`` is chosen."""
        target = _target(pose)
        dof = self._chain.dof
        start = np.zeros(dof) if near is None else given_row(near, dof, "near")
        found = solve(self._chain, target, frames=self._frames, near=start)
        if isinstance(found, Refused):
            raw = unlimited(self._chain, target, frames=self._frames, near=start)
            return ReachabilityResult(has_solution=len(raw) > 0, failure_reason=found.reason)
        free = found if self._collision is None else found[~self._collision.collides(found)]
        if len(free):
            q = tuple(float(value) for value in nearest(free, start))
            return ReachabilityResult(True, True, True, True, q)
        best = nearest(found, start)
        assert self._collision is not None
        contact = self._collision.check_collision(best)
        why = (
            f"every configuration collides, e.g. {contact.object1_name} with {contact.object2_name}"
        )
        q = tuple(float(value) for value in best)
        return ReachabilityResult(False, True, True, False, q, why)

    def check_program(self, poses: Iterable[Pose | Array]) -> list[ReachabilityResult]:
        """Checks poses in order, each with the solution nearest to the one before."""
        results: list[ReachabilityResult] = []
        near = np.zeros(self._chain.dof)
        for pose in poses:
            results.append(self.check_pose(pose, near=near))
            if results[-1].reachable:
                near = np.array(results[-1].joint_solution)
        return results

    def generate_map(
        self,
        resolution_mm: float = 50.0,
        center: ArrayLike = (0.0, 0.0, 0.0),
        orientations: int = 14,
        *,
        extent: float | None = None,
        avoid_collisions: bool = False,
        progress: Callable[[float], None] = lambda share: None,
    ) -> ReachabilityMap:
        """Maps a cube of points around the centre, ±extent (default: the arm's length), in metres.

        ``resolution_mm``: the distance of neighbouring points, at least 1 mm.

        Every point is tried with the tool along ``orientations`` directions: the 6 faces, then the
        8 corners of a cube. With ``avoid_collisions`` a point counts only if it has a solution
        without contact. ``progress`` is called with the share done, 0…1.
        """
        return self.generate_maps(
            resolution_mm,
            center,
            orientations,
            extent=extent,
            avoid_collisions=avoid_collisions,
            progress=progress,
        )[1]

    def generate_maps(
        self,
        resolution_mm: float = 50.0,
        center: ArrayLike = (0.0, 0.0, 0.0),
        orientations: int = 14,
        *,
        extent: float | None = None,
        avoid_collisions: bool = True,
        progress: Callable[[float], None] = lambda share: None,
    ) -> tuple[ReachabilityMap, ReachabilityMap]:
        """As `generate_map`: the map of what the joints allow, and the part of it without contact.

        Arms without a closed form are solved from point to point (`neighbours.py`); a direction
        that is reached only at the very border of the reach may be missing in their count.
        """
        side = self._length() if extent is None else given_positive(extent, "extent")
        resolution = given_positive(resolution_mm, "resolution_mm") * MM
        if resolution_mm < 1.0:
            raise ValueError(
                f"resolution_mm: at least 1 is needed, got {resolution_mm:g}: it is in millimetres"
            )
        points = _grid(side, resolution) + given_row(center, 3, "center")
        turns = directions(orientations)
        collision = self._collision if avoid_collisions else None
        by_points = closed_form(self._chain) is not None
        solve_some = self._point_by_point if by_points else self._direction_by_direction
        found = _Grid(np.zeros(len(points), dtype=np.int64), *np.zeros((2, len(points))))
        solve_some(points, turns, collision, found, progress)
        blocked = np.isnan(found.free_measure)
        free_counts = np.where(blocked, 0, found.counts)
        free_measure = np.where(blocked, 0.0, found.free_measure)
        return (
            ReachabilityMap(points, found.counts, found.measure, resolution, len(turns)),
            ReachabilityMap(points, free_counts, free_measure, resolution, len(turns)),
        )

    def _point_by_point(
        self,
        points: Array,
        turns: Array,
        collision: CollisionDetector | None,
        found: "_Grid",
        progress: Callable[[float], None],
    ) -> None:
        """Solves all directions of some points at a time, by the arm's closed form."""
        for first in range(0, len(points), POINTS_AT_ONCE):
            some = slice(first, first + POINTS_AT_ONCE)
            counts, q = self._tried(points[some], turns)
            there = np.flatnonzero(counts)
            found.counts[some] = counts
            found.measure[first + there] = self._manipulabilities(q[there])
            if collision is not None and len(there):
                blocked = there[collision.collides(q[there])]
                q[blocked] = self._freed(points[some][blocked], turns, collision)
                clear = ~np.isnan(q[there, 0])
                found.free_measure[first + there[~clear]] = np.nan
                found.free_measure[first + there[clear]] = self._manipulabilities(q[there[clear]])
            progress(min(1.0, (first + POINTS_AT_ONCE) / len(points)))
        if collision is None:
            found.free_measure[:] = found.measure

    def _direction_by_direction(
        self,
        points: Array,
        turns: Array,
        collision: CollisionDetector | None,
        found: "_Grid",
        progress: Callable[[float], None],
    ) -> None:
        """Solves all points with one direction of the tool at a time."""
        blocked = np.ones(len(points), dtype=np.bool_)
        step = 0.025 * self._length()
        solved_ones = solved_by_direction(self._chain, self._frames, points, turns, step)
        for number, (solved, q) in enumerate(solved_ones, 1):
            new = solved & (found.counts == 0)
            np.add(found.counts, solved, out=found.counts)
            for some in _parts(np.flatnonzero(new | (solved & blocked))):
                configurations = q[some].astype(np.float64)
                measure = self._manipulabilities(configurations)
                found.measure[some[new[some]]] = measure[new[some]]
                clear = np.ones(len(some), dtype=np.bool_)
                if collision is not None:
                    clear = ~collision.collides(configurations)
                clear &= blocked[some]
                found.free_measure[some[clear]] = measure[clear]
                blocked[some[clear]] = False
            progress(number / len(turns))
        found.free_measure[blocked] = np.nan

    def _tried(self, points: Array, turns: Array) -> tuple[NDArray[np.int64], Array]:
        """Number of reachable directions per point, and one configuration for it, by the closed
        form: the files whose numbers are rounded are exact enough for a map."""
        counts, q = np.zeros(len(points), dtype=np.int64), np.zeros((len(points), self._chain.dof))
        arm, chain = closed_form(self._chain), self._chain
        assert arm is not None
        left, right = arm.ends(self._frames)
        reach_points(points, turns, left, right, arm.geometry, chain.lower, chain.upper, counts, q)
        return counts, q

    def _manipulabilities(self, q: Array) -> Array:
        """Yoshikawa's measure."""
        J = self._chain.jacobians(q, self._frames.tool)
        gram = J @ np.swapaxes(J, 1, 2) if self._chain.dof >= 6 else np.swapaxes(J, 1, 2) @ J
        return np.asarray(np.sqrt(np.maximum(np.linalg.det(gram), 0.0)))

    def _freed(self, points: Array, turns: Array, collision: CollisionDetector) -> Array:
        """For each point a configuration without contact, NaN if there is none."""
        out = np.full((len(points), self._chain.dof), np.nan)
        for turn in turns:
            left = np.flatnonzero(np.isnan(out[:, 0]))
            if not len(left):
                break
            targets = np.tile(turn, (len(left), 1, 1))
            targets[:, :3, 3] = points[left]
            found = solve_all(self._chain, targets, frames=self._frames)
            row, branch = np.nonzero(~np.isnan(found[:, :, 0]))
            if len(row):
                free = ~collision.collides(found[row, branch])
                out[left[row[free]]] = found[row[free], branch[free]]
        return out

    def _length(self) -> float:
        """Upper bound of the distance of the TCP from the foot."""
        links = np.linalg.norm(self._chain.rest[:, 9:], axis=1).sum()
        ends = sum(np.linalg.norm(end[:3, 3]) for end in (self._chain.tip, self._frames.tool))
        return float(links + ends)


def directions(count: int) -> Array:
    """(count, 4, 4): rotations whose z points to the faces (6), then the corners (8) of a cube."""
    faces = [np.eye(3)[k] * sign for k in (2, 0, 1) for sign in (-1.0, 1.0)]
    corners = [
        np.array(corner) / math.sqrt(3.0) for corner in itertools.product((-1.0, 1.0), repeat=3)
    ]
    axes = (faces + corners)[:count]
    out = np.tile(np.eye(4), (len(axes), 1, 1))
    for turn, z in zip(out, axes, strict=True):
        x = np.cross((0.0, 1.0, 0.0), z) if abs(z[1]) < 0.9 else np.cross(z, (0.0, 0.0, 1.0))
        x /= np.linalg.norm(x)
        turn[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return out


def _parts(numbers: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for first in range(0, len(numbers), POINTS_AT_ONCE):
        yield numbers[first : first + POINTS_AT_ONCE]


@compiled
def reach_points(  # kernel
    points: Array,
    turns: Array,
    left: Array,
    right: Array,
    geo: Array,
    lower: Array,
    upper: Array,
    counts: NDArray[np.int64],
    q: Array,
) -> None:
    """counts[k] = number of rotations (4×4) in which point k is reached within the limits.

    q[k]: a configuration that reaches it. A wrist centre outside the arm's span is skipped before
    any angle is computed.
    """
    scratch, found = np.zeros(SCRATCH), np.empty((BRANCHES, 6))
    target, near = np.eye(4), np.zeros(6)
    most = geo[2] + geo[3]
    least = abs(geo[2] - geo[3])
    for k in range(len(points)):
        for o in range(len(turns)):
            for row in range(3):
                target[row, 0], target[row, 1] = turns[o, row, 0], turns[o, row, 1]
                target[row, 2], target[row, 3] = turns[o, row, 2], points[k, row]
            wx, wy, wz = points[k, 0], points[k, 1], points[k, 2]
            for c in range(3):
                wx += turns[o, 0, c] * right[c, 3]
                wy += turns[o, 1, c] * right[c, 3]
                wz += turns[o, 2, c] * right[c, 3]
            px = left[0, 0] * wx + left[0, 1] * wy + left[0, 2] * wz + left[0, 3]
            py = left[1, 0] * wx + left[1, 1] * wy + left[1, 2] * wz + left[1, 3]
            pz = left[2, 0] * wx + left[2, 1] * wy + left[2, 2] * wz + left[2, 3]
            ahead = math.sqrt(max(px * px + py * py - geo[1] * geo[1], 0.0))
            front, back = ahead - geo[0], ahead + geo[0]
            nearer = math.sqrt(min(front * front, back * back) + pz * pz)
            further = math.sqrt(max(front * front, back * back) + pz * pz)
            if nearer > most + 1e-6 or further < least - 1e-6:
                continue
            branches_at(target, left, right, geo, near, found, scratch)
            for b in range(BRANCHES):
                inside = True
                for j in range(6):
                    value = turned_within(found[b, j], 0.0, lower[j], upper[j])
                    if np.isnan(value):
                        inside = False
                        break
                    found[b, j] = value
                if inside:
                    if counts[k] == 0:
                        for j in range(6):
                            q[k, j] = found[b, j]
                    counts[k] += 1
                    break
