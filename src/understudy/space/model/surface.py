"""Repairs the surface of a triangle mesh, so that a kernel can decide what is inside.

A surface encloses a volume if it has no boundary: every edge is traversed as often in one
direction as in the other. Files often miss this by little. Two faults are repaired, piece by piece
(a piece is a set of triangles joined by edges): triangles that are wound the other way round than
their neighbours are turned, and small gaps are closed with triangles. A piece with larger openings
(a tube, a bin, a sheet) has no inside: only its surface can be touched.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Edge = tuple[int, int]
Triangle = tuple[int, int, int]

SMALL_GAP = 0.02
"""Largest area of a gap that is closed, as a share of the area of its piece."""


class Surface(NamedTuple):
    """Corners of the triangles (m, 3, 3), and whether they enclose a volume. ``open_pieces``:
    number of pieces with larger openings, which have no inside."""

    corners: Floats
    closed: bool
    open_pieces: int = 0


def repaired(vertices: Floats, triangles: Ints) -> Surface:
    """The surface with consistent winding and without small gaps.

    If some pieces enclose a volume and others do not, the others get a second, opposite side, so
    that they do not count as a part of the boundary of a volume.
    """
    points, merged = np.unique(vertices, axis=0, return_inverse=True)
    corners = merged.reshape(-1)[triangles]
    if _closed(corners):
        return Surface(np.asarray(vertices[triangles]), closed=True)
    pieces = [_Piece(points, piece).repaired() for piece in _pieces(corners.tolist())]
    open_pieces = sum(not closed for _, closed in pieces)
    if open_pieces == len(pieces):
        return Surface(np.asarray(vertices[triangles]), closed=False, open_pieces=open_pieces)
    sides = [
        piece if closed else np.concatenate([piece, piece[:, ::-1]]) for piece, closed in pieces
    ]
    return Surface(np.concatenate(sides), closed=True, open_pieces=open_pieces)


def _closed(triangles: Ints) -> bool:
    """Whether every edge is traversed equally often in both directions."""
    a, b, c = triangles.T
    edges = np.concatenate([np.stack(pair, axis=1) for pair in ((a, b), (b, c), (c, a))])
    edges = edges[edges[:, 0] != edges[:, 1]]
    low, high = edges.min(axis=1), edges.max(axis=1)
    _, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    balance = np.bincount(which.reshape(-1), weights=np.where(edges[:, 0] == low, 1.0, -1.0))
    return bool(len(edges)) and not balance.any()


def _edges(triangle: Iterable[int]) -> list[Edge]:
    a, b, c = triangle
    return [(a, b), (b, c), (c, a)]


def _undirected(edge: Edge) -> Edge:
    return (edge[0], edge[1]) if edge[0] < edge[1] else (edge[1], edge[0])


def _by_edge(triangles: list[Triangle]) -> dict[Edge, list[int]]:
    """The triangles at each edge."""
    found: dict[Edge, list[int]] = defaultdict(list)
    for t, triangle in enumerate(triangles):
        for edge in _edges(triangle):
            found[_undirected(edge)].append(t)
    return found


def _pieces(rows: list[list[int]]) -> list[list[Triangle]]:
    """The triangles of each piece; triangles without area are left out."""
    triangles: list[Triangle] = [(a, b, c) for a, b, c in rows if a != b and b != c and c != a]
    around = _by_edge(triangles)
    left = set(range(len(triangles)))
    found = []
    while left:
        waiting, piece = [left.pop()], []
        while waiting:
            t = waiting.pop()
            piece.append(triangles[t])
            near = {n for edge in _edges(triangles[t]) for n in around[_undirected(edge)]} & left
            left -= near
            waiting += near
        found.append(piece)
    return found


class _Piece:
    """Triangles joined by edges."""

    def __init__(self, points: Floats, triangles: list[Triangle]) -> None:
        self._points, self._triangles = points, triangles

    def repaired(self) -> tuple[Floats, bool]:
        """Corners (m, 3, 3) of the repaired piece, and whether it is closed."""
        turned = self._turn()
        area = float(_areas(self._corners()).sum())
        caps = [self._cap(loop) for loop in self._openings()]
        if any(_areas(cap).sum() > SMALL_GAP * area for cap in caps) or self._twisted():
            return self._corners(), False
        corners = np.concatenate([self._corners(), *caps])
        inwards = turned and np.linalg.det(corners).sum() < 0.0
        return (corners[:, ::-1] if inwards else corners), True

    def _corners(self) -> Floats:
        return np.asarray(self._points[np.array(self._triangles)])

    def _turn(self) -> bool:
        """Winds all triangles like the first one, neighbour by neighbour; whether any changed."""
        around, done, changed = _by_edge(self._triangles), {0}, False
        waiting = [0]
        while waiting:
            t = waiting.pop()
            for edge in _edges(self._triangles[t]):
                beside = around[_undirected(edge)]
                for n in beside if len(beside) == 2 else ():
                    if n in done:
                        continue
                    if edge in _edges(self._triangles[n]):
                        a, b, c = self._triangles[n]
                        self._triangles[n], changed = (a, c, b), True
                    done.add(n)
                    waiting.append(n)
        return changed

    def _balance(self) -> Counter[Edge]:
        """How much more often each edge is traversed than its opposite."""
        counts = Counter(edge for triangle in self._triangles for edge in _edges(triangle))
        return Counter(
            {(a, b): n - counts[b, a] for (a, b), n in list(counts.items()) if n > counts[b, a]}
        )

    def _openings(self) -> list[list[int]]:
        """The vertices around each opening."""
        onwards: dict[int, list[int]] = defaultdict(list)
        for a, b in self._balance().elements():
            onwards[a].append(b)
        loops = []
        for first in list(onwards):
            while onwards[first]:
                loop, here = [first], onwards[first].pop()
                while here != first and onwards[here]:
                    loop.append(here)
                    here = onwards[here].pop()
                loops.append(loop)
        return loops

    def _twisted(self) -> bool:
        """Whether the openings do not add up to closed loops (a surface with one side only)."""
        ends: Counter[int] = Counter()
        for (a, b), n in self._balance().items():
            ends[a] += n
            ends[b] -= n
        return any(ends.values())

    def _cap(self, loop: list[int]) -> Floats:
        """Triangles from the middle of an opening to its edges."""
        rim = self._points[loop]
        middle = np.broadcast_to(rim.mean(axis=0), rim.shape)
        return np.stack([middle, np.roll(rim, -1, axis=0), rim], axis=1)


def _areas(corners: Floats) -> Floats:
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(0.5 * np.linalg.norm(across, axis=1))
