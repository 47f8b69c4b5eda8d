"""A path: consecutive pieces of geometry, each with the limits of the axes on it.

On a piece the position of every axis is a polynomial in the distance s along it: degree 1 for a
straight line of the axes, degree 3 for a part of a Cartesian line. Paths are generic over axes and
units: positions are in the units of the axes (mm and deg mixed for a grblHAL machine, rad for an
arm); distance is the Euclidean norm over all axes, or metres of the tool if the path follows the
tool. All speeds are per second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = 0
"""Distance is the Euclidean norm over the axes."""
TOOL = 1
"""Distance is the path length of the tool."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of each axis in its own unit: velocity, acceleration, and jerk (infinite: none)."""

    velocity: Floats
    acceleration: Floats
    jerk: Floats

    @staticmethod
    def of(velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike = np.inf) -> "Limits":
        fastest = np.atleast_1d(np.array(velocity, dtype=np.float64))
        axes = len(fastest)
        return Limits(fastest, floats(acceleration, axes).copy(), floats(jerk, axes).copy())


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Pieces as columns; row k of every column belongs to piece k."""

    shape: Floats
    """(pieces, degree + 1, axes): coefficients of the polynomials in s, constant term first."""
    end: Floats
    """(pieces, axes): exact end position of each piece."""
    length: Floats
    acceleration: Floats
    jerk: Floats
    fastest: Floats
    """Largest speed that the axes allow."""
    feed: Floats
    """Programmed speed; infinite for a rapid."""
    rapid: NDArray[np.bool_]
    fixed: NDArray[np.bool_]
    """Whether the piece ignores the feed override."""
    junction: Floats
    """Square of the speed that the corner at the piece's start allows; inf: no corner."""
    dwell: Floats
    """Seconds at rest; such a piece has length 0."""
    measure: NDArray[np.int8]
    block: Ints
    """Number of the block the piece belongs to, never decreasing; look-ahead counts blocks."""
    line: Ints
    """Number given by the caller: a program line, a ticket."""

    def __len__(self) -> int:
        return len(self.length)

    @property
    def axes(self) -> int:
        return int(self.shape.shape[2])

    @property
    def start(self) -> Floats:
        """Position of the axes at the start of the path."""
        return np.asarray(self.shape[0, 0], dtype=np.float64)

    def nominal(self, feed_override: float = 1.0, rapid_override: float = 1.0) -> Floats:
        """Nominal speed of each piece: min(F, fastest)·override, never above fastest."""
        share = np.where(self.fixed, 1.0, feed_override)
        asked = np.minimum(self.feed, self.fastest) * share
        return np.minimum(np.where(self.rapid, self.fastest * rapid_override, asked), self.fastest)

    def position(self, piece: int, s: float) -> Floats:
        """Position at the distance s along a piece; exactly its end at its length."""
        if self.dwell[piece] == 0.0 and s >= self.length[piece]:
            return np.asarray(self.end[piece])
        rows = self.shape[piece]
        return np.asarray(s ** np.arange(len(rows)) @ rows, dtype=np.float64)

    def tangent(self, piece: int, s: float) -> Floats:
        """dq/ds at the distance s along a piece."""
        rows = self.shape[piece]
        if len(rows) == 2:
            return np.asarray(rows[1])
        powers = np.array([k * s ** (k - 1) for k in range(1, len(rows))])
        return np.asarray(powers @ rows[1:], dtype=np.float64)

    def blocks_from(self, piece: int) -> int:
        """Number of blocks from a piece to the end."""
        return int(self.block[-1] - self.block[piece]) + 1 if piece < len(self) else 0

    def rows(self, first: int, last: int) -> "Path":
        """Pieces ``first`` to ``last`` - 1."""
        return Path(*[getattr(self, name)[first:last] for name in COLUMNS])

    def with_entry(self, junction: float) -> "Path":
        """The same path with another ``junction`` (square of the speed) at its start."""
        entries = self.junction.copy()
        entries[:1] = junction
        columns: list[Any] = [getattr(self, name) for name in COLUMNS]
        columns[COLUMNS.index("junction")] = entries
        return Path(*columns)

    def to_state(self) -> dict[str, Any]:
        columns = {name: getattr(self, name).tolist() for name in COLUMNS}
        for name in UNLIMITED:  # JSON has no infinity
            columns[name] = [None if value == np.inf else value for value in columns[name]]
        return columns | {"shape_of_shape": list(self.shape.shape)}

    @staticmethod
    def from_state(state: dict[str, Any]) -> "Path":
        size = tuple(state["shape_of_shape"])
        columns = {c.name: np.array(state[c.name], dtype=KINDS[c.name]) for c in fields(Path)}
        for name in UNLIMITED:  # null is nan here
            columns[name][np.isnan(columns[name])] = np.inf
        columns["shape"] = columns["shape"].reshape(size)
        columns["end"] = columns["end"].reshape(size[0], size[2])
        return Path(**columns)


COLUMNS = tuple(column.name for column in fields(Path))
UNLIMITED = ("feed", "jerk", "junction")
"""Columns in which infinity means no limit."""

KINDS: dict[str, Any] = {column.name: np.float64 for column in fields(Path)} | {
    "rapid": np.bool_,
    "fixed": np.bool_,
    "measure": np.int8,
    "block": np.int64,
    "line": np.int64,
}


def floats(value: ArrayLike, count: int) -> Floats:
    """An array of ``count`` numbers, from one number for all or one each."""
    given = np.asarray(value, dtype=np.float64)
    return given if given.shape == (count,) else np.full(count, given)


@dataclass(frozen=True, slots=True, eq=False)
class PerLine:
    """Values of the chosen lines, from one value for all ``total`` lines or one each."""

    chosen: Ints
    total: int

    def number(self, value: ArrayLike) -> Floats:
        return self._of(floats(value, self.total))

    def flag(self, value: ArrayLike) -> NDArray[np.bool_]:
        given = np.asarray(value, dtype=np.bool_)
        return self._of(given if given.shape == (self.total,) else np.full(self.total, given))

    def _of(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if len(self.chosen) == self.total else values[self.chosen]


def joined(paths: Sequence[Path]) -> Path:
    """Concatenates paths; junctions are kept, blocks are numbered consecutively."""
    paths = [path for path in paths if len(path)] or list(paths[:1])
    degree = max(path.shape.shape[1] for path in paths)
    columns = {
        name: np.concatenate([getattr(path, name) for path in paths])
        for name in COLUMNS
        if name not in ("shape", "block")
    }
    numbers = [paths[0].block]
    for path in paths[1:]:
        numbers.append(path.block - path.block[0] + numbers[-1][-1] + 1)
    return Path(
        shape=np.concatenate([_raised(path.shape, degree) for path in paths]),
        block=np.concatenate(numbers),
        **columns,
    )


def _raised(shape: Floats, degree: int) -> Floats:
    missing = degree - shape.shape[1]
    return np.pad(shape, ((0, 0), (0, missing), (0, 0))) if missing else shape


def path_of(**columns: NDArray[Any]) -> Path:
    """A path of the given columns; the others are zero."""
    count = len(columns["length"])
    zeros = {name: np.zeros(count, KINDS[name]) for name in COLUMNS if name not in columns}
    return Path(**zeros, **columns)


def empty_path(axes: int) -> Path:
    """A path without pieces."""
    return path_of(shape=np.zeros((0, 2, axes)), end=np.zeros((0, axes)), length=np.zeros(0))


def dwell_path(position: ArrayLike, seconds: float, *, line: int = 0) -> Path:
    """A dwell of some seconds (G4); the motion before it comes to rest."""
    where = np.asarray(position, dtype=np.float64)
    one = np.ones(1)
    return path_of(
        shape=np.stack([where, np.zeros_like(where)])[None],
        end=where[None].copy(),
        length=np.zeros(1),
        acceleration=one,
        jerk=one * np.inf,
        fastest=one,
        feed=one,
        dwell=np.array([seconds]),
        line=np.array([line], dtype=np.int64),
    )


# ── a path that grows ─────────────────────────────────────────────────────────────────────────────


SPARE = 256
"""Additional capacity (pieces) beyond twice the length."""


class GrowingPath:
    """Concatenates paths like `joined`, but appends in place to a buffer with spare capacity.

    Paths returned earlier are views of the buffer and do not change: only unused rows are written.
    """

    def __init__(self) -> None:
        self._known = empty_path(0)
        self._room = self._known

    def joined(self, known: Path, path: Path) -> Path:
        """Concatenates both paths; blocks are numbered consecutively."""
        if not len(known) or not self._fits(known, path):
            known = joined([known, path])
            self._begin(known)
            return known
        first, last = len(known), len(known) + len(path)
        for name in COLUMNS:
            getattr(self._room, name)[first:last] = getattr(path, name)
        self._room.block[first:last] += known.block[-1] + 1 - path.block[0]
        self._known = self._room.rows(0, last)
        return self._known

    def _fits(self, known: Path, path: Path) -> bool:
        return (
            known is self._known
            and len(known) + len(path) <= len(self._room)
            and path.shape.shape[1] == self._room.shape.shape[1]
        )

    def _begin(self, known: Path) -> None:
        """Allocates a buffer of more than twice the length and copies the path into it."""
        room = 2 * len(known) + SPARE
        columns = []
        for name in COLUMNS:
            column = getattr(known, name)
            columns.append(np.empty((room, *column.shape[1:]), column.dtype))
            columns[-1][: len(known)] = column
        self._known, self._room = known, Path(*columns)
