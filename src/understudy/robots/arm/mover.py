"""Converts moves of an arm to joint paths, or refuses them; the tip of its tool as a probe."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from understudy.errors import Refused
from understudy.gcode.dialect import Axes
from understudy.gcode.error_numbers import RANGE
from understudy.gcode.requests import (
    ArcMove,
    AxisArc,
    AxisMove,
    JointArc,
    JointMove,
    LineMove,
    Move,
)
from understudy.motion.arcs import CHORDS_AT_ONCE, MOST_CHORDS, chord_count, chords
from understudy.motion.cartesian import Blocked, joint_path, lines_through, traced_arm
from understudy.motion.lines import lines
from understudy.motion.path import Floats, Ints, Limits, Path, empty_path
from understudy.motion.tool_path import ToolArc, ToolLine, ToolPath, with_tip_speed
from understudy.ports.refusals import SOFT_LIMIT
from understudy.simulation.collision.body import Body
from understudy.simulation.collision.watch import PathPlace, beginning_at, sample_places
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.follow import FailureKind
from understudy.space.kinematics.ik import excess, nearest, outside, solve, solve_all, unlimited
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.pose import Pose
from understudy.space.transform import matrices, matrix, pose
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.space.collision.detector import CollisionDetector
    from understudy.space.collision.sweep import Sweeper


UNREACHABLE, WRONG_KIND = 33, 20
"""grblHAL's numbers: alarm 2, error 33 (invalid target), error 20 (unsupported)."""
JOINT_ARC_TOLERANCE = 0.002 * DEG
IN_PLACE = 1e-9
LONGEST_PATH = 10_000.0  # metres; no arm moves farther in one line
ON_LIMIT = 1e-9  # radians that rounding may take a target beyond its limit


class _Chords(NamedTuple):
    """Ends of the chords of an arc, and the speed along each."""

    through: Floats
    paces: Floats


def _chords_of(arc: JointArc) -> int:
    return chord_count(arc.angle, arc.radius, JOINT_ARC_TOLERANCE)


@dataclass(frozen=True)
class ArmMover:
    """An arm with its limits, its frames, the deviation allowed at corners, and the largest speed
    of the tool's tip (m/s), which no override exceeds."""

    chain: Chain
    limits: Limits
    frames: Frames
    deviation: float
    tip_speed: float = math.inf

    def axes(self, q: Floats) -> Axes:
        """The joints in degrees, or in millimetres if they slide."""
        a, b, c, u, v, w = (q / self.chain.units).tolist()
        return a, b, c, u, v, w

    def flange(self, q: Floats) -> Floats:
        """The flange in the cell, 4×4."""
        return np.asarray(self.frames.foot @ self.chain.flange(q))

    def tip(self, q: Floats) -> Floats:
        """The tip of the tool in the cell, 4×4."""
        return self.frames.tcp(self.chain.flange(q))

    def pose(self, q: Floats) -> Axes:
        """The tip of the tool in millimetres and degrees."""
        tip = pose(self.tip(q))
        x, y, z = (value / MM for value in tip[:3])
        rx, ry, rz = (value / DEG for value in tip[3:])
        return x, y, z, rx, ry, rz

    def reaches(self, poses: Sequence[Pose]) -> list[bool]:
        """Whether the tool can be at each of these poses, in any configuration."""
        found = solve_all(self.chain, matrices(poses), frames=self.frames)
        return [bool(able) for able in np.any(np.all(np.isfinite(found), axis=2), axis=1)]

    def path(self, move: Move, start: Floats, *, line: int, exact: bool = False) -> Path | Refused:
        """The path of a move from ``start``; ``exact``: with a stop at its end."""
        if isinstance(move, JointMove):
            found = self._straight(move, start, line)
        elif isinstance(move, JointArc):
            found = self._round(move, start, line)
        elif isinstance(move, LineMove) and move.speed is None and move.duration is None:
            found = self._rapid(move.target, start, line)
        elif isinstance(move, LineMove | ArcMove):
            found = self._along(move, start, line)
        else:
            assert isinstance(move, AxisMove | AxisArc)
            return Refused("an arm has joints, not linear axes", WRONG_KIND)
        if isinstance(found, Refused):
            return found
        found = self._limited(found)
        return replace(found, junction=np.zeros(len(found))) if exact else found

    def _limited(self, path: Path) -> Path:
        return with_tip_speed(path, self.tip_speed, self.chain, self.frames.tool)

    def tool_lines(
        self, targets: Floats, speeds: Floats, start: Floats, *, line: Ints
    ) -> tuple[Path, int]:
        """The path through targets (lines, 6; m and rad) at m/s, and the number of lines in it.

        It ends before the first line that must be planned alone.
        """
        arm = traced_arm(self.chain, self.limits, self.frames)
        if arm is None:
            return empty_path(self.chain.dof), 0
        ends = self.frames.base @ matrices(targets)
        path, count = lines_through(
            arm, np.array(start), ends, feed=speeds, line=line, deviation=self.deviation
        )
        return self._limited(path), count

    # ── joints ──

    def _straight(self, move: JointMove, start: Floats, line: int) -> Path | Refused:
        target = np.array(move.target)
        if refused := self.beyond(target):
            return refused
        if move.duration is not None:
            pace, timed = 1.0 / move.duration, True
        else:
            pace, timed = self._pace(move.speed, target - start), False
        return lines(
            start,
            target,
            self.limits,
            feed=pace,
            rapid=move.speed is None and move.duration is None,
            inverse_time=timed,
            deviation=self.deviation,
            line=line,
        )

    def _pace(self, speed: float | None, way: Floats) -> float:
        """Speed along a line of the joints."""
        return float(self._paces(speed or math.inf, way[None])[0])

    def _paces(self, speed: float, ways: Floats) -> Floats:
        """Speed along each line of the joints. F counts deg and mm alike, as the firmware does for
        linear and rotary axes; the lines are measured in rad and m."""
        if math.isinf(speed) or not self.chain.linear:
            return np.full(len(ways), speed)
        figures = np.linalg.norm(ways / self.chain.units, axis=1)
        still = figures == 0.0
        scale = np.linalg.norm(ways, axis=1) / np.where(still, 1.0, figures)
        return np.where(still, speed, speed / DEG * scale)

    def stretches(
        self, move: Move, start: Floats, *, line: int, exact: bool = False
    ) -> Iterator[Path] | Refused | None:
        """A joint arc of many chords as consecutive paths, with the same result as `path`."""
        if not isinstance(move, JointArc) or _chords_of(move) <= CHORDS_AT_ONCE:
            return None
        arc = self._chords(move, start)
        return arc if isinstance(arc, Refused) else self._stretches(arc, start, line, exact)

    def _stretches(self, arc: "_Chords", start: Floats, line: int, exact: bool) -> Iterator[Path]:
        for first in range(0, len(arc.through), CHORDS_AT_ONCE):
            rows = slice(first, first + CHORDS_AT_ONCE)
            through, paces = arc.through[rows], arc.paces[rows]
            part = lines(
                start,
                through,
                self.limits,
                feed=paces,
                deviation=self.deviation,
                exact=exact,
                line=line,
            )
            yield self._limited(part)
            start = through[-1]

    def _round(self, move: JointArc, start: Floats, line: int) -> Path | Refused:
        arc = self._chords(move, start)
        if isinstance(arc, Refused):
            return arc
        return lines(
            start, arc.through, self.limits, feed=arc.paces, deviation=self.deviation, line=line
        )

    def _chords(self, move: JointArc, start: Floats) -> "_Chords | Refused":
        """The chords of an arc of the joints, all within the joint limits."""
        count = _chords_of(move)
        if count > MOST_CHORDS:
            return Refused(f"{count} chords are too many for an arc: {MOST_CHORDS} at most", RANGE)
        turns = math.copysign(math.ceil(abs(move.angle) / math.tau - 1e-9) or 1, move.angle)
        scale = self.chain.units / DEG  # round in the figures of the program, mm and deg alike
        through = scale * chords(
            start / scale,
            np.array(move.target) / scale,
            move.centre,
            tolerance=JOINT_ARC_TOLERANCE,
            plane=move.plane,
            turns=int(turns),
        )
        if refused := self.beyond(through):
            return refused
        pace = move.speed or math.inf
        if move.duration is not None:
            pace = abs(move.angle) * move.radius / move.duration
        way = np.diff(through, axis=0, prepend=start[None])
        return _Chords(through, self._paces(pace, way))

    def beyond(self, targets: Floats) -> Refused | None:
        """The refusal of the first target beyond the joint limits; None if all are within them."""
        rows = np.atleast_2d(targets)
        over = np.argwhere(excess(self.chain, rows) > ON_LIMIT)
        if not len(over):
            return None
        row, joint = over[0].tolist()
        return Refused(outside(self.chain, joint, float(rows[row, joint])), SOFT_LIMIT)

    # ── tool ──

    def _rapid(self, target: Pose, start: Floats, line: int) -> Path | Refused:
        """Point to point: every joint moves independently to the nearest solution."""
        found = solve(self.chain, matrix(target), frames=self.frames, near=start)
        if isinstance(found, Refused):
            return Refused(found.reason, UNREACHABLE)
        q = nearest(found, start)
        return lines(start, q, self.limits, rapid=True, deviation=self.deviation, line=line)

    def obstacle(self, move: Move, start: Floats) -> FailureKind | None:
        """Why a move is refused: out of reach, beyond a limit, through a singularity."""
        if isinstance(move, AxisMove | AxisArc):
            return None
        if isinstance(move, JointMove | JointArc):
            return FailureKind.LIMIT
        if isinstance(move, LineMove) and move.speed is None and move.duration is None:
            beyond = self._beyond_reach(move.target, start)
            return beyond.kind if beyond else None
        found = self._followed(move, start, 0)
        return found.kind if isinstance(found, Blocked) else None

    def _beyond_reach(self, target: Pose, start: Floats) -> Blocked | None:
        """Why a pose cannot be reached; None if it can."""
        there = matrix(target)
        found = solve(self.chain, there, frames=self.frames, near=start)
        if not isinstance(found, Refused):
            return None
        known = unlimited(self.chain, there, frames=self.frames, near=start)
        return Blocked(
            FailureKind.LIMIT if len(known) else FailureKind.UNREACHABLE, 1.0, found.reason
        )

    def _along(self, move: LineMove | ArcMove, start: Floats, line: int) -> Path | Refused:
        found = self._followed(move, start, line)
        if isinstance(found, Path):
            return found
        return Refused(f"{found.reason} ({found.share:.0%} of the path)", UNREACHABLE)

    def _followed(self, move: LineMove | ArcMove, start: Floats, line: int) -> Path | Blocked:
        path = self._tool_path(move, start)
        if path.length < IN_PLACE:
            return empty_path(self.chain.dof)
        if not path.length <= LONGEST_PATH:
            far = f"a path of {path.length:.4g} m is longer than {LONGEST_PATH:g} m"
            return Blocked(FailureKind.UNREACHABLE, 0.0, far)
        turning = getattr(move, "turning", None)
        in_place = isinstance(path, ToolLine) and path.distance < IN_PLACE
        feed = (turning if in_place else move.speed) or math.inf
        if move.duration is not None:
            feed = path.length / move.duration
        found = joint_path(
            self.chain, start, path, limits=self.limits, feed=feed, frames=self.frames, line=line
        )
        if isinstance(found, Path):
            return found
        beyond = self._beyond_reach(move.target, start)
        return replace(beyond, share=found.share) if beyond else found

    def _tool_path(self, move: LineMove | ArcMove, start: Floats) -> ToolPath:
        here = self.tip(start)
        there = matrix(move.target)
        if isinstance(move, LineMove):
            return ToolLine(here, there)
        centre = here[:3, 3].copy()
        centre[list(move.plane)] = move.centre
        axis = np.zeros(3)
        axis[3 - sum(move.plane)] = 1.0
        return ToolArc(here, there, centre, axis, move.angle)


# ── the tip of the tool as a probe ────────────────────────────────────────────────────────────────


TIP = "tip"
RADIUS = 1e-6
"""Radius of the tip in metres; so small that it counts as a point."""
HALVINGS = 40


class Surroundings(Protocol):
    """The body of the arm, and the objects around it now."""

    @property
    def body(self) -> Body: ...

    @property
    def environment(self) -> Environment: ...


class ToolMover(Protocol):
    """Has the mover of the present tool."""

    @property
    def mover(self) -> Any: ...


class ContactProbe:
    """`Probe` of an arm: the tip of its tool. Zones cannot be touched."""

    def __init__(self, around: Surroundings, tool: ToolMover) -> None:
        self._around = around
        self._tool = tool
        self._known: tuple[Environment, ArmMover] | None = None
        self._sweeper: Sweeper
        self._detector: CollisionDetector

    def touches(self, q: Floats) -> bool:
        self._update()
        return any(self._detector.distance_between(q, *pair) <= 0.0 for pair in self._pairs())

    def trigger_place(self, path: Path, *, toward: bool) -> tuple[int, float] | None:
        self._update()
        found = self._first_touch(path) if toward else self._last_touch(path)
        return None if found is None else (found.piece, found.s)

    def rest_place(self, path: Path, place: tuple[int, float]) -> tuple[int, float]:
        """The touch itself: the move ends there, without overrun."""
        return place

    def _first_touch(self, path: Path) -> PathPlace | None:
        mine = set(self._pairs())
        others = [pair for pair in self._sweeper.pairs() if pair not in mine]
        rest = beginning_at(path, PathPlace(0))
        spot = self._sweeper.first_contact(rest.shape, rest.length, others)
        return None if spot is None else PathPlace(spot.piece, spot.s)

    def _last_touch(self, path: Path) -> PathPlace | None:
        last = PathPlace(0)
        for place in sample_places(path, last, PathPlace(len(path))):
            if not self._touches_at(path, place):
                return self._edge(path, last, place)
            last = place
        return None

    def _edge(self, path: Path, before: PathPlace, after: PathPlace) -> PathPlace:
        low, high = before.s if before.piece == after.piece else 0.0, after.s
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            inside = self._touches_at(path, PathPlace(after.piece, middle))
            low, high = (middle, high) if inside else (low, middle)
        return PathPlace(after.piece, high)

    def _touches_at(self, path: Path, place: PathPlace) -> bool:
        return self.touches(path.position(place.piece, place.s))

    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of the tip with every object."""
        names, moving = self._detector.names, self._detector.world.moving
        tip = names.index(TIP)
        return [(tip, other) for other in range(moving, len(names))]

    def _update(self) -> None:
        """Takes over the present tool and the present objects."""
        from understudy.space.collision.detector import CollisionDetector
        from understudy.space.collision.sweep import Sweeper

        mover, environment = self._tool.mover, self._around.environment
        assert isinstance(mover, ArmMover)
        if self._known is not None and self._known == (environment, mover):
            return
        body = self._around.body
        self._detector = CollisionDetector(
            body.chain,
            environment.objects,
            meshes=body.meshes,
            foot=body.foot,
            check_self_collision=False,
        )
        tip = np.eye(4)
        tip[:3, 3] = mover.frames.tool[:3, 3]
        point = CollisionObject(type=ObjectType.SPHERE, name=TIP, radius=RADIUS, transform=tip)
        self._detector.attach(point)
        self._sweeper = Sweeper(self._detector)
        self._known = environment, mover
