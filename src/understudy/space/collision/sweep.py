"""Sweeps an arm along a path and says, line by line: proven clear, contact, or too close to tell.

The path is q(s), piece by piece a polynomial, as motion plans it. A verdict counts for every way of
running the path: faster, slower, with stops and braking on it. A straight line of the tool is
bounded through the joint path that follows it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from understudy.space.collision import certify
from understudy.space.collision.certify import LineResults, PairCertificates, SweepPath
from understudy.space.collision.detector import CollisionDetector, CollisionResult
from understudy.space.collision.distance import scratch
from understudy.space.collision.motion_bound import furthest
from understudy.space.collision.self_pairs import Pair
from understudy.space.collision.solids import Ints
from understudy.space.collision.world import World, placement
from understudy.space.transform import Array

EPS = 1e-4
"""Metres of clearance that are proven where nothing else is asked for."""
SLACK = 0.02
"""The share of what is asked for by which a distance must exceed it to be proven without end."""
LOOKS = 48
"""Places on the rest of a line at which the depth of a contact is looked at."""


class Verdict(StrEnum):
    PROVEN = "proven"
    CONTACT = "contact"
    UNDECIDED = "undecided"


ONE_LINE = np.zeros(1, dtype=np.int64)
VERDICTS = (Verdict.PROVEN, Verdict.CONTACT, Verdict.UNDECIDED)


@dataclass(frozen=True)
class ContactSpot:
    """A place on the path where two parts touch, or are too close to prove more."""

    piece: int
    s: float
    """Along the piece."""
    object1_name: str
    object2_name: str
    point: tuple[float, float, float]
    distance: float
    """There; negative where they overlap already."""
    depth: float
    """The deepest overlap of the two from there to the line's end."""
    self_collision: bool
    q: tuple[float, ...]
    pair: tuple[int, int] = (-1, -1)
    """The numbers of the two shapes in the world."""


class LineResult(Struct, frozen=True, gc=False):
    """The verdict on one line of a path."""

    line: int
    verdict: Verdict
    clearance: float
    """Metres that are proven on the whole line; infinite where nothing could touch."""
    spot: ContactSpot | None = None

    @property
    def proven(self) -> bool:
        return self.verdict is Verdict.PROVEN


def greatest_slopes(shape: Array, length: Array) -> Array:
    """(pieces, dof): bounds of |dq/ds| on each piece, the least ones up to degree 3."""
    if shape.shape[1] == 2:
        return np.abs(shape[:, 1])
    h = length[:, None]
    if shape.shape[1] > 4:
        powers = np.arange(1, shape.shape[1])[None, :, None]
        return np.asarray(
            (powers * np.abs(shape[:, 1:]) * h[..., None] ** (powers - 1)).sum(axis=1)
        )
    full = np.zeros((len(shape), 4, shape.shape[2]))
    full[:, : shape.shape[1]] = shape
    _, b, c, d = np.moveaxis(full, 1, 0)
    with np.errstate(all="ignore"):
        turn = np.nan_to_num(np.clip(-c / (3.0 * d), 0.0, h))
    ends = (np.abs(b + s * (2.0 * c + 3.0 * d * s)) for s in (np.zeros_like(h), h, turn))
    return np.asarray(np.maximum.reduce(list(ends)) * (1.0 + 1e-12))


class Sweeper:
    """Sweeps paths in the world a detector knows; what is changed there counts from the next on."""

    def __init__(self, detector: CollisionDetector) -> None:
        self._detector, self._scratch = detector, scratch()
        self.configurations = 0
        """How many configurations all sweeps so far looked at."""
        self._look_around()

    def _look_around(self) -> None:
        chain = self._detector.chain
        assert chain is not None, "a sweep needs an arm"
        self._world, self._names = self._detector.world, self._detector.names
        self._at = placement(self._world)
        self._caps = furthest(chain, self._world.solids, self._world.moving)
        self._watch = _watch(self._world, self._caps, _pairs(self._world))

    def sweep(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        lines: ArrayLike | None = None,
        clearance: float = EPS,
        slopes: ArrayLike | None = None,
    ) -> tuple[LineResult, ...]:
        """One verdict per line, in the order of the path.

        shape (pieces, degree + 1, dof) and length (pieces,) as in ``motion.path.Path``; lines: the
        number of the line each piece belongs to, never falling (one line if not given);
        clearance: metres that are to be proven; slopes: bounds of |dq/ds| where they are known.
        """
        self._keep_up()
        way = np.require(shape, np.float64, ["C", "W"])
        long = np.asarray(length, dtype=np.float64)
        if not len(long):
            return ()
        named, which = ONE_LINE, np.zeros(len(long), dtype=np.int64)
        if lines is not None:
            named, which = np.unique(np.asarray(lines), return_inverse=True)
        course = _course(way, long, which.reshape(-1), slopes)
        found = self._certify(course, self._watch, len(named), float(clearance))
        # A pause at a place that is too close has no certificate of its own.
        found.verdict[(found.verdict == certify.PROVEN) & (found.clearance < clearance)] = (
            certify.UNDECIDED
        )
        return self._told(course, found, named.tolist())

    def pairs(self) -> list[Pair]:
        """All that are watched, by the numbers of their shapes."""
        self._keep_up()
        return [(int(i), int(j)) for i, j in self._watch.pairs]

    def contacts(
        self, shape: ArrayLike, length: ArrayLike, *, most: int, known: ContactSpot | None = None
    ) -> list[ContactSpot]:
        """The first contact of each two names along a path, in its order, ``most`` at most; of the
        ``known`` one it is known. The foot is not looked at."""
        found = [known] if known else []
        while len(found) < most:
            told = {(spot.object1_name, spot.object2_name) for spot in found}
            ignoring = {(i, j) for i, j in self.pairs() if (self._names[i], self._names[j]) in told}
            spot = self.first_contact(shape, length, ignoring, looks=LOOKS)
            if spot is None:
                break
            found.append(spot)
        return sorted(found, key=lambda spot: (spot.piece, spot.s))

    def first_contact(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        ignoring: Collection[Pair] = (),
        *,
        looks: int = 1,
    ) -> ContactSpot | None:
        """The first place of a path at which two shapes touch, but for pairs that do already.

        The foot, which touches what it touches wherever the arm goes, is not looked at. How deep
        they touch on the rest of it is seen at so many ``looks``.
        """
        self._keep_up()
        way = np.require(shape, np.float64, ["C", "W"])
        long = np.asarray(length, dtype=np.float64)
        if not len(long):
            return None
        watch = self._watch
        if ignoring:
            left = [pair for pair in _pairs(self._world).tolist() if tuple(pair) not in ignoring]
            pairs = np.array(left, dtype=np.int64).reshape(-1, 2)
            watch = _watch(self._world, self._caps, pairs)
        course = _course(way, long, np.zeros(len(long), dtype=np.int64), None)
        found = self._certify(course, watch, 1, EPS)
        if found.verdict[0] != certify.CONTACT:
            return None
        return self._spot(course, found, 0, looks=looks)

    def _keep_up(self) -> None:
        if self._detector.world is not self._world:
            self._look_around()

    def _certify(
        self, course: SweepPath, watch: PairCertificates, lines: int, clearance: float
    ) -> LineResults:
        found = _blank(lines)
        self.configurations += certify.certify(
            self._world, course, watch, self._at, self._scratch,
            clearance, SLACK * min(clearance, 10 * EPS), found,
        )  # fmt: skip
        return found

    def _told(
        self, course: SweepPath, found: LineResults, lines: list[int]
    ) -> tuple[LineResult, ...]:
        """The verdict on every line."""
        foot = self._detector.foot_contact
        if foot.collision:
            return tuple(
                LineResult(line, Verdict.CONTACT, 0.0, _foot_spot(course, foot, k))
                for k, line in enumerate(lines)
            )
        rows = zip(lines, found.verdict.tolist(), found.clearance.tolist(), strict=True)
        return tuple(
            LineResult(line, VERDICTS[verdict], clearance)
            if verdict == certify.PROVEN or found.pair[k, 0] < 0
            else LineResult(line, VERDICTS[verdict], clearance, self._spot(course, found, k))
            for k, (line, verdict, clearance) in enumerate(rows)
        )

    def _spot(
        self, course: SweepPath, found: LineResults, k: int, looks: int = LOOKS
    ) -> ContactSpot:
        piece, s = int(found.place[k, 0]), float(found.place[k, 1])
        i, j = (int(part) for part in found.pair[k])
        q = _at(course, piece, s)
        there = self._detector.contact_between(q, i, j)
        depth = 0.0
        if found.verdict[k] == certify.CONTACT:
            rest = _rest_of_line(course, piece, s, looks)
            depth = max(self._detector.contact_between(row, i, j).penetration_depth for row in rest)
        return ContactSpot(
            piece, s, self._names[i], self._names[j], there.contact_point,
            float(found.place[k, 2]), depth, j < self._world.moving, tuple(q.tolist()), (i, j),
        )  # fmt: skip


def sweep(
    detector: CollisionDetector,
    shape: ArrayLike,
    length: ArrayLike,
    *,
    lines: ArrayLike | None = None,
    clearance: float = EPS,
) -> tuple[LineResult, ...]:
    """One path; see Sweeper, which is better for many."""
    return Sweeper(detector).sweep(shape, length, lines=lines, clearance=clearance)


def straight(start: ArrayLike, end: ArrayLike) -> tuple[Array, Array]:
    """Shape and length of a straight line of the joints."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    long = float(np.linalg.norm(b - a))
    return np.stack([a, (b - a) / (long or 1.0)])[None], np.array([long])


def _course(
    shape: Array, length: Array, line: NDArray[np.int64], slopes: ArrayLike | None
) -> SweepPath:
    bounds = greatest_slopes(shape, length) if slopes is None else np.asarray(slopes)
    bounds = np.require(bounds, np.float64, ["C", "W"])
    start = np.concatenate([[0.0], np.cumsum(length)])
    run = np.zeros((len(length) + 1, shape.shape[2]))
    np.cumsum(bounds * np.diff(start)[:, None], axis=0, out=run[1:])
    return SweepPath(shape, start, bounds, run, np.ascontiguousarray(line, dtype=np.int64))


def _pairs(world: World) -> Ints:
    """All that must not touch: what moves with what stands, and parts of the arm."""
    objects = np.arange(world.moving, len(world.solids.traits))
    around = [(i, j) for i in range(world.foot, world.moving) for j in objects]
    return np.concatenate([np.array(around, dtype=np.int64).reshape(-1, 2), world.partners])


def _watch(world: World, caps: Array, pairs: Ints) -> PairCertificates:
    count, joints = len(pairs), len(world.slides)
    return PairCertificates(
        pairs, np.zeros((count, 4)), np.zeros((count, 2), dtype=np.int64),
        np.zeros(count, dtype=np.int64), np.zeros((world.moving, joints)),
        np.zeros(world.moving, dtype=np.int64), caps,
        np.zeros(joints), np.zeros(joints), np.zeros(joints),
    )  # fmt: skip


def _blank(lines: int) -> LineResults:
    return LineResults(
        np.zeros(lines, dtype=np.int64), np.full(lines, np.inf),
        np.zeros((lines, 3)), np.full((lines, 2), -1, dtype=np.int64),
    )  # fmt: skip


def _at(course: SweepPath, piece: int, s: float) -> Array:
    rows = course.shape[piece]
    return np.asarray(s ** np.arange(len(rows)) @ rows)


def _rest_of_line(course: SweepPath, piece: int, s: float, looks: int) -> list[Array]:
    """Configurations from a place to the end of its line, evenly along the path."""
    last = int(np.flatnonzero(course.line == course.line[piece])[-1])
    whole = np.linspace(course.start[piece] + s, course.start[last + 1], looks)
    pieces = np.clip(np.searchsorted(course.start, whole, side="right") - 1, piece, last)
    return [
        _at(course, int(p), float(x - course.start[p])) for p, x in zip(pieces, whole, strict=True)
    ]


def _foot_spot(course: SweepPath, foot: CollisionResult, k: int) -> ContactSpot:
    piece = int(np.flatnonzero(course.line == k)[0])
    depth = foot.penetration_depth
    return ContactSpot(
        piece, 0.0, foot.object1_name, foot.object2_name, foot.contact_point, -depth, depth,
        False, tuple(_at(course, piece, 0.0).tolist()),
    )  # fmt: skip
