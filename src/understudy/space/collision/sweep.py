"""Sweeps an arm along a path; verdict per program line: proven clear, contact, or undecided.

The path is q(s), a polynomial on each piece, as `motion` plans it. The verdict is valid for every
speed along the path, stops and braking included. For a straight line of the tool the joint path
that follows it is swept.
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
from understudy.space.collision.pair_store import Pair
from understudy.space.collision.solids import Ints
from understudy.space.collision.world import World, furthest, placement
from understudy.space.transform import Array

EPS = 1e-4
"""Default clearance to prove (m)."""
SLACK = 0.02
"""Share of the requested clearance by which a distance must exceed it to be proven."""
LOOKS = 48
"""Places on the rest of a line at which the depth of a contact is computed."""


class Verdict(StrEnum):
    PROVEN = "proven"
    CONTACT = "contact"
    UNDECIDED = "undecided"


ONE_LINE = np.zeros(1, dtype=np.int64)
VERDICTS = (Verdict.PROVEN, Verdict.CONTACT, Verdict.UNDECIDED)


@dataclass(frozen=True)
class ContactSpot:
    """A place on the path where two shapes touch, or are too close for a proof."""

    piece: int
    s: float
    """Distance along the piece."""
    object1_name: str
    object2_name: str
    point: tuple[float, float, float]
    distance: float
    """Distance of the two shapes there; negative if they overlap."""
    depth: float
    """Largest penetration depth of the two from there to the end of the line."""
    self_collision: bool
    q: tuple[float, ...]
    pair: tuple[int, int] = (-1, -1)
    """Indices of the two shapes in the world."""


class LineResult(Struct, frozen=True, gc=False):
    """Verdict for one line of a path."""

    line: int
    verdict: Verdict
    clearance: float
    """Clearance (m) proven for the whole line; infinite if there are no pairs."""
    seen: float
    """Smallest distance (m) that was computed on the line: the true clearance lies between the
    two."""
    spot: ContactSpot | None = None

    @property
    def proven(self) -> bool:
        return self.verdict is Verdict.PROVEN


def greatest_slopes(shape: Array, length: Array) -> Array:
    """(pieces, dof): upper bounds of |dq/ds| on each piece; exact up to degree 3."""
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
    """Sweeps paths in the world of a detector; follows its changes from the next sweep on."""

    def __init__(self, detector: CollisionDetector) -> None:
        self._detector, self._scratch = detector, scratch()
        self.configurations = 0
        """Number of configurations computed by all sweeps so far."""
        self._read_world()

    def _read_world(self) -> None:
        chain = self._detector.chain
        assert chain is not None, "a sweep needs an arm"
        self._world, self._names = self._detector.world, self._detector.names
        self._at = placement(self._world)
        self._caps = furthest(chain, self._world.solids, self._world.moving)
        self._certificates = _certificates(self._world, self._caps, _pairs(self._world))

    def sweep(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        lines: ArrayLike | None = None,
        clearance: float = EPS,
        slopes: ArrayLike | None = None,
        ignoring: Collection[Pair] = (),
    ) -> tuple[LineResult, ...]:
        """One verdict per line, in the order of the path; the ``ignoring`` pairs do not count.

        shape (pieces, degree + 1, dof) and length (pieces,) as in ``motion.path.Path``; lines: the
        line number of each piece, never decreasing (one line if not given); clearance: metres to
        be proven; slopes: upper bounds of |dq/ds|, if known.
        """
        self._update_world()
        coefficients = np.require(shape, np.float64, ["C", "W"])
        lengths = np.asarray(length, dtype=np.float64)
        if not len(lengths):
            return ()
        named, which = ONE_LINE, np.zeros(len(lengths), dtype=np.int64)
        if lines is not None:
            named, which = np.unique(np.asarray(lines), return_inverse=True)
        path = _sweep_path(coefficients, lengths, which.reshape(-1), slopes)
        certificates = self._without(ignoring)
        found = self._certify(path, certificates, len(named), float(clearance))
        certify.measure_seen(self._world, path, certificates, self._at, self._scratch, found)
        # A dwell at a place that is too close has no certificate of its own.
        found.verdict[(found.verdict == certify.PROVEN) & (found.clearance < clearance)] = (
            certify.UNDECIDED
        )
        return self._results(path, found, named.tolist())

    def pairs(self) -> list[Pair]:
        """All checked pairs, as indices of shapes."""
        self._update_world()
        return [(int(i), int(j)) for i, j in self._certificates.pairs]

    def contacts(
        self,
        shape: ArrayLike,
        length: ArrayLike,
        *,
        most: int,
        known: ContactSpot | None = None,
        meant: Collection[Pair] = (),
    ) -> list[ContactSpot]:
        """The first contact of each pair of names along a path, in its order, at most ``most``;
        ``known``: one that was already found; ``meant``: pairs that do not count. The foot is not
        checked."""
        found = [known] if known else []
        while len(found) < most:
            named = {(spot.object1_name, spot.object2_name) for spot in found}
            names = self._names
            ignoring = {(i, j) for i, j in self.pairs() if (names[i], names[j]) in named}
            ignoring |= set(meant)
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
        """The first contact along a path, except of the ``ignoring`` pairs.

        The foot, whose contacts do not depend on the motion, is not checked. The depth on the rest
        of the path is computed at ``looks`` places.
        """
        self._update_world()
        coefficients = np.require(shape, np.float64, ["C", "W"])
        lengths = np.asarray(length, dtype=np.float64)
        if not len(lengths):
            return None
        certificates = self._without(ignoring)
        path = _sweep_path(coefficients, lengths, np.zeros(len(lengths), dtype=np.int64), None)
        found = self._certify(path, certificates, 1, EPS, measured=False)
        if found.verdict[0] != certify.CONTACT:
            return None
        return self._spot(path, found, 0, looks=looks)

    def _without(self, ignoring: Collection[Pair]) -> PairCertificates:
        """Certificates of all pairs but the ``ignoring`` ones."""
        if not ignoring:
            return self._certificates
        left = [pair for pair in _pairs(self._world).tolist() if tuple(pair) not in ignoring]
        pairs = np.array(left, dtype=np.int64).reshape(-1, 2)
        return _certificates(self._world, self._caps, pairs)

    def _update_world(self) -> None:
        if self._detector.world is not self._world:
            self._read_world()

    def _certify(
        self,
        path: SweepPath,
        certificates: PairCertificates,
        lines: int,
        clearance: float,
        *,
        measured: bool = True,
    ) -> LineResults:
        found = _blank(lines)
        self.configurations += certify.certify(
            self._world,
            path,
            certificates,
            self._at,
            self._scratch,
            clearance,
            SLACK * min(clearance, 10 * EPS),
            float(measured),
            found,
        )
        return found

    def _results(
        self, path: SweepPath, found: LineResults, lines: list[int]
    ) -> tuple[LineResult, ...]:
        """Verdicts for all lines."""
        foot = self._detector.foot_contact
        if foot.collision:
            return tuple(
                LineResult(line, Verdict.CONTACT, 0.0, 0.0, _foot_spot(path, foot, k))
                for k, line in enumerate(lines)
            )
        seen = np.where(found.verdict == certify.CONTACT, found.place[:, 2], found.seen[:, 2])
        columns = (found.verdict.tolist(), found.clearance.tolist(), seen.tolist())
        return tuple(
            LineResult(
                line,
                VERDICTS[verdict],
                clearance,
                distance,
                None
                if verdict == certify.PROVEN or found.pair[k, 0] < 0
                else self._spot(path, found, k),
            )
            for k, (line, verdict, clearance, distance) in enumerate(
                zip(lines, *columns, strict=True)
            )
        )

    def _spot(self, path: SweepPath, found: LineResults, k: int, looks: int = LOOKS) -> ContactSpot:
        piece, s = int(found.place[k, 0]), float(found.place[k, 1])
        i, j = (int(part) for part in found.pair[k])
        q = _at(path, piece, s)
        there = self._detector.contact_between(q, i, j)
        depth = 0.0
        if found.verdict[k] == certify.CONTACT:
            rest = _rest_of_line(path, piece, s, looks)
            depth = max(self._detector.contact_between(row, i, j).penetration_depth for row in rest)
        return ContactSpot(
            piece,
            s,
            self._names[i],
            self._names[j],
            there.contact_point,
            float(found.place[k, 2]),
            depth,
            j < self._world.moving,
            tuple(q.tolist()),
            (i, j),
        )


def sweep(
    detector: CollisionDetector,
    shape: ArrayLike,
    length: ArrayLike,
    *,
    lines: ArrayLike | None = None,
    clearance: float = EPS,
) -> tuple[LineResult, ...]:
    """Sweeps one path; for many paths use a Sweeper."""
    return Sweeper(detector).sweep(shape, length, lines=lines, clearance=clearance)


def straight(start: ArrayLike, end: ArrayLike) -> tuple[Array, Array]:
    """Shape and length of a straight line of the joints."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return np.stack([a, (b - a) / (length or 1.0)])[None], np.array([length])


def _sweep_path(
    shape: Array, length: Array, line: NDArray[np.int64], slopes: ArrayLike | None
) -> SweepPath:
    bounds = greatest_slopes(shape, length) if slopes is None else np.asarray(slopes)
    bounds = np.require(bounds, np.float64, ["C", "W"])
    start = np.concatenate([[0.0], np.cumsum(length)])
    run = np.zeros((len(length) + 1, shape.shape[2]))
    np.cumsum(bounds * np.diff(start)[:, None], axis=0, out=run[1:])
    return SweepPath(shape, start, bounds, run, np.ascontiguousarray(line, dtype=np.int64))


def _pairs(world: World) -> Ints:
    """All pairs to check: moving shapes with objects, and shapes of the arm."""
    objects = np.arange(world.moving, len(world.solids.traits))
    around = [(i, j) for i in range(world.foot, world.moving) for j in objects]
    return np.concatenate([np.array(around, dtype=np.int64).reshape(-1, 2), world.partners])


def _certificates(world: World, caps: Array, pairs: Ints) -> PairCertificates:
    count, joints = len(pairs), len(world.slides)
    return PairCertificates(
        pairs,
        np.zeros((count, 4)),
        np.zeros((count, 2), dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros((world.moving, joints)),
        np.zeros(world.moving, dtype=np.int64),
        caps,
        np.zeros(joints),
        np.zeros(joints),
        np.zeros(joints),
    )


def _blank(lines: int) -> LineResults:
    return LineResults(
        np.zeros(lines, dtype=np.int64),
        np.full(lines, np.inf),
        np.zeros((lines, 3)),
        np.full((lines, 2), -1, dtype=np.int64),
        np.full((lines, 3), np.inf),
        np.full(lines, -1, dtype=np.int64),
    )


def _at(path: SweepPath, piece: int, s: float) -> Array:
    rows = path.shape[piece]
    return np.asarray(s ** np.arange(len(rows)) @ rows)


def _rest_of_line(path: SweepPath, piece: int, s: float, looks: int) -> list[Array]:
    """Configurations from a place to the end of its line, evenly spaced along the path."""
    last = int(np.flatnonzero(path.line == path.line[piece])[-1])
    whole = np.linspace(path.start[piece] + s, path.start[last + 1], looks)
    pieces = np.clip(np.searchsorted(path.start, whole, side="right") - 1, piece, last)
    return [_at(path, int(p), float(x - path.start[p])) for p, x in zip(pieces, whole, strict=True)]


def _foot_spot(path: SweepPath, foot: CollisionResult, k: int) -> ContactSpot:
    piece = int(np.flatnonzero(path.line == k)[0])
    depth = foot.penetration_depth
    return ContactSpot(
        piece,
        0.0,
        foot.object1_name,
        foot.object2_name,
        foot.contact_point,
        -depth,
        depth,
        False,
        tuple(_at(path, piece, 0.0).tolist()),
    )
