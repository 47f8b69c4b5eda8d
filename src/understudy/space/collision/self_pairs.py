"""Finds the pairs of parts of an arm that can touch each other.

Links joined by a joint overlap by design and are not checked, nor are parts that overlap in every
configuration. Pairs that touch in a sampled configuration are checked. A pair that touched in no
sample is left out only if it is *proven* apart: the space of the joints between the two is divided
into cells until the distance in the middle of each cell exceeds all motion inside the cell.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from understudy.space.collision.assembly import assembled
from understudy.space.collision.distance import Scratch, distance, scratch
from understudy.space.collision.motion_bound import distances_from_axes, furthest, moved_at_most
from understudy.space.collision.solids import BODY, FAR, Ints, Part
from understudy.space.collision.world import Placement, World, placement, pose
from understudy.space.compiled import compiled
from understudy.space.kinematics.chain import Chain
from understudy.space.transform import Array

Pair = tuple[int, int]

TRIED = 1500
"""Number of sampled configurations."""
MOST_CELLS = 20_000
BY_DESIGN = 1e-3
"""Parts that are never further apart than this (m) overlap by design."""


def touchable(chain: Chain, arm: Sequence[Part], parts: Sequence[Part]) -> tuple[Pair, ...]:
    """Pairs of indices of ``parts`` that can touch; ``parts`` begins with those of the ``arm``."""
    own = len(arm)
    between_own = _own_pairs(chain, tuple(arm))
    carried = np.array(
        [
            (i, j)
            for j in range(own, len(parts))
            for i in range(own)
            if parts[i].link != parts[j].link
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    world = assembled(chain, parts, ())
    _, most = _sampled(chain, world, carried)
    kept = [(int(i), int(j)) for (i, j), far in zip(carried, most, strict=True) if far > BY_DESIGN]
    return (*between_own, *kept)


@lru_cache(maxsize=16)
def _own_pairs(chain: Chain, arm: tuple[Part, ...]) -> tuple[Pair, ...]:
    world = assembled(chain, arm, ())
    pairs = np.array(_candidates(arm), dtype=np.int64).reshape(-1, 2)
    least, most = _sampled(chain, world, pairs)
    found = []
    for (i, j), near, far in zip(pairs, least, most, strict=True):
        if far <= BY_DESIGN:
            continue
        if near <= 0.0 or not _proven_apart(chain, world, int(i), int(j)):
            found.append((int(i), int(j)))
    return tuple(found)


def _candidates(arm: Sequence[Part]) -> list[Pair]:
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


def _sampled(chain: Chain, world: World, pairs: Ints) -> tuple[Array, Array]:
    """Smallest and largest distance of each pair over evenly distributed configurations."""
    low, high = chain.sampling_range
    steps = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0]))
    spread = np.modf(np.outer(np.arange(1, TRIED + 1), np.resize(steps, chain.dof)))[0]
    out = np.empty((2, len(pairs)))
    out[0], out[1] = np.inf, -np.inf
    extremes(world, low + spread * (high - low), pairs, placement(world), scratch(), out)
    return out[0], out[1]


@compiled
def extremes(
    world: World, Q: Array, pairs: Ints, at: Placement, scratch: Scratch, out: Array
) -> None:
    """out[0], out[1] = smallest and largest distance of each pair over all rows of Q."""
    for k in range(len(Q)):
        pose(world, Q[k], at)
        for p in range(len(pairs)):
            d, _ = distance(
                world.solids,
                at.placed,
                at.ends,
                pairs[p, 0],
                pairs[p, 1],
                np.inf,
                np.inf,
                -1,
                True,
                scratch,
            )
            out[0, p] = min(out[0, p], d)
            out[1, p] = max(out[1, p], d)


def _proven_apart(chain: Chain, world: World, i: int, j: int) -> bool:
    low, high = chain.sampling_range
    caps = furthest(chain, world.solids, world.moving)
    return bool(apart_everywhere(world, i, j, low, high, caps, placement(world), scratch()))


@compiled
def apart_everywhere(  # kernel
    world: World,
    i: int,
    j: int,
    low: Array,
    high: Array,
    caps: Array,
    at: Placement,
    scratch: Scratch,
) -> bool:
    """Whether shapes i and j are proven apart in all configurations from low to high."""
    joints = len(low)
    first, last = world.solids.traits[i, BODY], world.solids.traits[j, BODY]
    cells = np.empty((MOST_CELLS + 2, 2 * joints))
    cells[0, :joints], cells[0, joints:] = 0.5 * (low + high), 0.5 * (high - low)
    radii = np.zeros((world.moving, joints))
    waiting, looked = 1, 0
    while waiting > 0:
        waiting -= 1
        looked += 1
        if looked > MOST_CELLS:
            return False
        middle, half = cells[waiting, :joints].copy(), cells[waiting, joints:].copy()
        pose(world, middle, at)
        d, _ = distance(world.solids, at.placed, at.ends, i, j, np.inf, np.inf, -1, True, scratch)
        if d <= 0.0:
            return False
        around = world.solids.sizes[j, FAR]
        distances_from_axes(at.frames, at.ends, world.slides, around, j, last, radii)
        if moved_at_most(radii, caps, world.slides, j, first, last, half) < d:
            continue
        widest = first
        for k in range(first, last):
            if half[k] * radii[j, k] > half[widest] * radii[j, widest]:
                widest = k
        half[widest] *= 0.5
        for side in range(2):
            cells[waiting, :joints], cells[waiting, joints:] = middle, half
            cells[waiting, widest] += half[widest] * (1 - 2 * side)
            waiting += 1
    return True
