"""Finds the pairs of parts of an arm that can touch each other.

Links joined by a joint overlap by design and are not checked. Of all other pairs

- a pair that is at most 1 mm apart in *every* sampled configuration overlaps by design: left out,
- a pair that touches in a sampled configuration and is apart in another is checked,
- a pair that touches in no sample is left out only if it is *proven* apart: the space of the joints
  between the two is divided into cells until the distance in the middle of each cell exceeds all
  motion inside the cell. Without that proof it is checked.

No distance is computed further than its question needs: sampling asks for contact or 1 mm, a cell
for its own motion. The search trees of two meshes then end at a few nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.space.collision.distance import Scratch, distance, scratch
from understudy.space.collision.pair_store import Pair, SelfPairs, keep, known
from understudy.space.collision.solids import BODY, COUNT, FAR, Ints, Part
from understudy.space.collision.world import (
    Placement,
    World,
    assembled,
    distances_from_axes,
    furthest,
    moved_at_most,
    placement,
    pose,
)
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Sphere
from understudy.space.model.shapes import Hull, TriangleMesh
from understudy.space.transform import Array, translation

Progress = Callable[[float], None]
"""Reports the share that is done, 0…1."""

RULES = 2
"""Version of the rules above; another one makes stored results invalid."""
TRIED = 1500
"""Number of sampled configurations."""
BATCH = 50
"""Configurations, or cells, between two reports of progress."""
MOST_CELLS = 20_000
CLOSE = 0.02
"""Cells with more motion than this (m) are judged by the hulls of the meshes alone."""
MOST_LOOKS, MOST_TRIANGLES = 4000, 2_000_000
"""Distances of meshes in one proof, and their triangles in all of them."""
BY_DESIGN = 1e-3
"""Parts that are never further apart than this (m) overlap by design. A pair that comes as near
somewhere is never proven apart."""
TOUCHED, PARTED = 1, 2
BOTH = TOUCHED | PARTED


def no_report(share: float) -> None:
    """A `Progress` that reports nothing."""


class Bodies(NamedTuple):
    """The parts of an arm twice: as they are, and with convex hulls around their meshes. A hull is
    never further away than what it contains, and its distance costs far less."""

    world: World
    at: Placement
    hulls: World
    around: Placement
    meshed: NDArray[np.bool_]


def bodies(chain: Chain, parts: Sequence[Part]) -> Bodies:
    world = assembled(chain, parts, ())
    hulls = assembled(chain, [_hull(part) for part in parts], ())
    meshed = np.array([isinstance(part.shape, TriangleMesh) for part in parts], dtype=np.bool_)
    return Bodies(world, placement(world), hulls, placement(hulls), meshed)


def _hull(part: Part) -> Part:
    if not isinstance(part.shape, TriangleMesh):
        return part
    return replace(part, shape=part.shape.outer_hull)


def digest(chain: Chain, arm: Sequence[Part]) -> str:
    """Hash of everything that the analysis of an arm reads, and of its rules."""
    rules = (RULES, TRIED, MOST_CELLS, MOST_LOOKS, MOST_TRIANGLES, CLOSE, BY_DESIGN)
    found = sha256(repr(rules).encode())
    for array in (chain.rest, chain.slides, *chain.sampling_range):
        found.update(array.tobytes())
    for part in arm:
        found.update(repr((part.body, part.link, type(part.shape).__name__)).encode())
        found.update(part.place.tobytes())
        match part.shape:
            case TriangleMesh(vertices=vertices, triangles=triangles):
                found.update(vertices.tobytes() + triangles.tobytes())
            case Hull(points=points):
                found.update(points.tobytes())
            case shape:
                found.update(repr(shape).encode())
    return found.hexdigest()


def self_pairs(chain: Chain, arm: Sequence[Part], parts: Sequence[Part]) -> SelfPairs:
    """The pairs of ``parts``: the ``arm``, analysed once for each digest, and what it carries."""
    key = digest(chain, arm)
    own = known(key)
    if own is None:
        own = analysed(chain, arm)
        keep(key, own)
    carried = carried_pairs(chain, arm, parts, key)
    return SelfPairs(own.touchable + carried.touchable, own.overlapping + carried.overlapping)


def analysed(chain: Chain, arm: Sequence[Part], progress: Progress = no_report) -> SelfPairs:
    """The pairs of the arm itself, without what it carries; may take seconds with meshes."""
    body = bodies(chain, arm)
    pairs = np.array(candidates(arm), dtype=np.int64).reshape(-1, 2)
    seen = _sampled(chain, body, pairs, BOTH, lambda share: progress(0.5 * share))
    low, high = chain.sampling_range
    caps = furthest(chain, body.world.solids, len(arm))
    found = []
    for k, (i, j) in enumerate(pairs):
        progress(0.5 + 0.5 * k / len(pairs))
        pair = int(i), int(j)
        unproven = seen[k] == PARTED and not apart_everywhere(body, pair, low, high, caps)
        if seen[k] == BOTH or unproven:
            found.append(pair)
    return SelfPairs(tuple(found), _listed(pairs[seen & PARTED == 0]))


SAME_PLACE = 6
"""Decimals (m) up to which places of carried objects count as the same: far below `BY_DESIGN`, the
distance that every proof keeps."""
MOST_CARRIED = 256
_carried: dict[tuple[str, str], tuple[tuple[int, ...], tuple[int, ...]]] = {}
"""Results for the objects that were carried last: an arm takes many parts in the same way."""


def carried_pairs(chain: Chain, arm: Sequence[Part], parts: Sequence[Part], key: str) -> SelfPairs:
    """The pairs of what the flange carries with the arm; ``parts`` begins with the ``arm``, whose
    digest is ``key``."""
    found: list[Pair] = []
    by_design: list[Pair] = []
    for j in range(len(arm), len(parts)):
        whole = replace(parts[j], place=parts[j].place.round(SAME_PLACE) + 0.0)
        known_as = key, digest(chain, (whole,))
        if known_as not in _carried:
            while len(_carried) >= MOST_CARRIED:
                _carried.pop(next(iter(_carried)), None)
            _carried[known_as] = _links_touched(chain, arm, parts[j])
        touchable, overlapping = _carried[known_as]
        found += ((i, j) for i in touchable)
        by_design += ((i, j) for i in overlapping)
    return SelfPairs(tuple(found), tuple(by_design))


def _links_touched(
    chain: Chain, arm: Sequence[Part], part: Part
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The parts of the arm that a carried one can touch, and those that it overlaps by design."""
    j = len(arm)
    pairs = np.array(
        [(i, j) for i in range(j) if arm[i].body != part.body], dtype=np.int64
    ).reshape(-1, 2)
    body = bodies(chain, (*arm, part))
    seen = _sampled(chain, body, pairs, PARTED, no_report)
    (low, high), caps = chain.sampling_range, furthest(chain, body.world.solids, j + 1)
    pose(body.world, 0.5 * (low + high), body.at)
    found: list[int] = []
    by_design: list[int] = []
    for (i, _), did in zip(_listed(pairs), seen, strict=True):
        if not did & PARTED:
            wrong = misplaced(chain, body.at, i, j, part)
            (found if wrong else by_design).append(i)
        # The link next to the flange is as near in every configuration: it counts if it can touch.
        elif arm[i].body < chain.dof - 1 or not apart_everywhere(body, (i, j), low, high, caps):
            found.append(i)
    return tuple(found), tuple(by_design)


def _listed(pairs: Ints) -> tuple[Pair, ...]:
    return tuple((int(i), int(j)) for i, j in pairs)


def candidates(arm: Sequence[Part]) -> list[Pair]:
    """Pairs of parts on links that are neither the same nor joined by a joint."""
    neighbours = {
        frozenset((a.link, b.link)) for a in arm for b in arm if abs(a.body - b.body) <= 1
    }
    return [
        (i, j)
        for j in range(len(arm))
        for i in range(j)
        if frozenset((arm[i].link, arm[j].link)) not in neighbours
    ]


def _sampled(chain: Chain, body: Bodies, pairs: Ints, asked: int, progress: Progress) -> Ints:
    """What each pair did in evenly distributed configurations: TOUCHED, PARTED or both.

    A pair is not looked at again once it did all that is ``asked``.
    """
    low, high = chain.sampling_range
    steps = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0]))
    spread = np.modf(np.outer(np.arange(1, TRIED + 1), np.resize(steps, chain.dof)))[0]
    Q = low + spread * (high - low)
    seen, marks = np.zeros(len(pairs), dtype=np.int64), scratch()
    for first in range(0, TRIED, BATCH):
        if (seen & asked == asked).all():
            break
        progress(first / TRIED)
        look(body, Q[first : first + BATCH], pairs, asked, marks, seen)
    return seen


@compiled
def look(  # kernel
    body: Bodies, Q: Array, pairs: Ints, asked: int, scratch: Scratch, seen: Ints
) -> None:
    """Adds to seen[p] whether pair p touches, and whether it is apart, in any row of Q."""
    for k in range(len(Q)):
        pose(body.hulls, Q[k], body.around)
        placed = False
        for p in range(len(pairs)):
            if seen[p] & asked == asked:
                continue
            i, j = pairs[p, 0], pairs[p, 1]
            d = _gap(body.hulls, body.around, i, j, 2.0 * BY_DESIGN, scratch)
            if d <= BY_DESIGN and (body.meshed[i] or body.meshed[j]):
                if not placed:
                    pose(body.world, Q[k], body.at)
                    placed = True
                d = _gap(body.world, body.at, i, j, 2.0 * BY_DESIGN, scratch)
            if d <= 0.0:
                seen[p] |= TOUCHED
            elif d > BY_DESIGN:
                seen[p] |= PARTED


@compiled
def _gap(world: World, at: Placement, i: int, j: int, enough: float, scratch: Scratch) -> float:
    """Distance of shapes i and j; a lower bound of it above ``enough``."""
    d, _ = distance(world.solids, at.placed, at.ends, i, j, enough, np.inf, -1, True, scratch)
    return d


def apart_everywhere(body: Bodies, pair: Pair, low: Array, high: Array, caps: Array) -> bool:
    """Whether the shapes of a pair are proven apart in all configurations from low to high."""
    joints = len(low)
    cells = np.empty((MOST_CELLS + 2, 2 * joints))
    cells[0, :joints], cells[0, joints:] = 0.5 * (low + high), 0.5 * (high - low)
    triangles = int(body.world.solids.traits[list(pair), COUNT].sum()) // 3
    looks = np.array([min(MOST_LOOKS, MOST_TRIANGLES // max(triangles, 1))])
    marks, waiting = scratch(), 1
    for _ in range(MOST_CELLS // BATCH):
        waiting = divide(body, *pair, caps, cells, waiting, looks, marks)
        if waiting <= 0:
            return bool(waiting == 0)
    return False


@compiled
def divide(  # kernel
    body: Bodies,
    i: int,
    j: int,
    caps: Array,
    cells: Array,
    waiting: int,
    looks: Ints,
    scratch: Scratch,
) -> int:
    """Looks at up to BATCH cells: middle and half width of each joint. The first ``waiting`` rows
    are a stack; looks[0] distances of meshes may be computed. Returns how many cells wait then; -1
    if the shapes come within BY_DESIGN, or looks[0] is used up."""
    world, hulls, around = body.world, body.hulls, body.around
    first, last = world.solids.traits[i, BODY], world.solids.traits[j, BODY]
    joints, far = len(world.slides), hulls.solids.sizes[j, FAR]
    radii = np.zeros((world.moving, joints))
    for _ in range(BATCH):
        if waiting == 0:
            break
        waiting -= 1
        middle, half = cells[waiting, :joints].copy(), cells[waiting, joints:].copy()
        pose(hulls, middle, around)
        distances_from_axes(around.frames, around.ends, world.slides, far, j, last, radii)
        moved = moved_at_most(radii, caps, world.slides, j, first, last, half)
        d = _gap(hulls, around, i, j, moved + BY_DESIGN, scratch)
        exact = not (body.meshed[i] or body.meshed[j])
        if not exact and d <= moved < CLOSE:
            looks[0] -= 1
            if looks[0] < 0:
                return -1
            pose(world, middle, body.at)
            d, exact = _gap(world, body.at, i, j, moved + BY_DESIGN, scratch), True
        if d > moved:
            continue
        if moved <= BY_DESIGN or (exact and d <= 0.0):
            return -1
        widest = first
        for k in range(first, last):
            if half[k] * radii[j, k] > half[widest] * radii[j, widest]:
                widest = k
        half[widest] *= 0.5
        for side in range(2):
            cells[waiting, :joints], cells[waiting, joints:] = middle, half
            cells[waiting, widest] += half[widest] * (1 - 2 * side)
            waiting += 1
    return waiting


# ── parts on the flange where no tool belongs ─────────────────────────────────────────────────────
#
# Shapes of links are coarse, so that a tool often overlaps the wrist a little where it is mounted.
# A tool with a wrong sign or a wrong unit overlaps the arm in every configuration, too, but not
# like that: it lies behind the flange, or it contains a link.


POINT = Sphere(1e-6)


def misplaced(chain: Chain, at: Placement, i: int, j: int, carried: Part) -> bool:
    """Whether part j on the flange overlaps link shape i where no tool belongs; ``at``: any
    configuration."""
    flange = _matrix(at.frames[-1]) @ chain.tip
    link, part = (at.ends[k].reshape(2, 3).mean(axis=0) for k in (i, j))
    behind = float((part - flange[:3, 3]) @ (link - flange[:3, 3])) > 0.0
    return behind or _contains(carried, _matrix(at.placed[j]), link)


def _contains(part: Part, place: Array, point: Array) -> bool:
    both = [Part("point", POINT, translation(*point)), Part(part.name, part.shape, place)]
    world = assembled(None, (), both)
    there = placement(world)
    d, _ = distance(
        world.solids, there.placed, there.ends, 0, 1, np.inf, np.inf, -1, True, scratch()
    )
    return bool(d <= 0.0)


def _matrix(row: Array) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = row[:9].reshape(3, 3), row[9:]
    return out
