"""The proof that an arm stays clear along a path: a certificate per pair, renewed when it ends.

A pair's distance at one place of the path, less the clearance that is to be proven, is a budget of
motion. As long as the bound on the motion has not used it up, the pair is clear by at least that
clearance, at every place in between, however thin the parts are. The path is walked from
certificate end to certificate end; far pairs are looked at once, near ones often.
"""

import math
from typing import NamedTuple

from understudy.space.compiled import compiled
from understudy.space.motion_bound import distances_from_axes, moved_at_most
from understudy.space.nearest import segment_box, segment_cylinder, segment_segment
from understudy.space.pairs import Scratch, distance
from understudy.space.solids import (
    BODY,
    CYLINDER,
    FAR,
    HALF_X,
    HALF_Y,
    HALF_Z,
    KIND,
    LINE,
    SKIN,
    Ints,
)
from understudy.space.transform import Array
from understudy.space.world import Stand, World, gap_between, gap_to_box, pose

ROUNDING = 1e-9
"""Metres by which rounding may make a distance too great."""
TIGHT = 0.5
"""The share of the least distance met that is proven as clearance, beyond what was asked for."""
LOOSE = 0.2
"""The share of its own distance that every pair is proven to keep."""
CREEP = 1e-5
"""Metres moved between two looks at a pair that is too close."""
USED_UP = 0.75
"""A certificate of which this share is used is renewed when another one ends."""

PROVEN, CONTACT, UNDECIDED = range(3)
BEGUN, END, LAST, FLOOR = range(4)


class Course(NamedTuple):
    """A path of the joints: polynomial pieces in the distance s."""

    shape: Array
    """(pieces, degree + 1, dof), constant term first."""
    start: Array
    """(pieces + 1,): where on the whole path each piece begins; last, the whole length."""
    slopes: Array
    """(pieces, dof): bounds of |dq/ds|."""
    run: Array
    """(pieces + 1, dof): bounds of the way the joints have run where each piece begins."""
    line: Ints
    """(pieces,): 0, 1, 2 …: verdicts are given per line."""


class Watch(NamedTuple):
    """The pairs that are watched, and the certificate of each."""

    pairs: Ints
    """(m, 2)"""
    certificates: Array
    """(m, 4): begun and end on the path, the distance where it begun, the clearance it proves."""
    hints: Ints
    """(m, 2): the nearest triangle; whether the shapes may be hidden in each other."""
    active: Ints
    """The pairs that are not yet proven to the end, first in this list."""
    radii: Array
    """(moving, dof): distances from the axes, where ``stamps`` say they are of now."""
    stamps: Ints
    caps: Array
    q: Array
    now: Array
    way: Array


class Found(NamedTuple):
    """What came out, per line."""

    verdict: Ints
    clearance: Array
    place: Array
    """(lines, 3): piece, s on it, and the distance there: of the contact, or where it is close."""
    pair: Ints


@compiled
def near(  # kernel
    world: World, at: Stand, i: int, j: int,
    enough: float, hint: int, look_inside: bool, scratch: Scratch,
) -> tuple[float, int]:  # fmt: skip
    """As pairs.distance, with a short way for the shapes that arms and cells are mostly made of."""
    traits, sizes = world.solids.traits, world.solids.sizes
    if traits[i, KIND] != LINE:
        i, j = j, i
    kind = traits[j, KIND]
    if traits[i, KIND] != LINE or kind > CYLINDER:
        return distance(world.solids, at.placed, i, j, enough, hint, look_inside, scratch)
    ends, placed = at.ends, at.placed
    px, py, pz = ends[i, 0], ends[i, 1], ends[i, 2]
    ux, uy, uz = ends[i, 3] - px, ends[i, 4] - py, ends[i, 5] - pz
    skins = sizes[i, SKIN] + sizes[j, SKIN]
    if kind == LINE:
        qx, qy, qz = ends[j, 0], ends[j, 1], ends[j, 2]
        vx, vy, vz = ends[j, 3] - qx, ends[j, 4] - qy, ends[j, 5] - qz
        d = segment_segment(px, py, pz, ux, uy, uz, qx, qy, qz, vx, vy, vz)[0]
        return math.sqrt(d) - skins, -1
    px, py, pz = px - placed[j, 9], py - placed[j, 10], pz - placed[j, 11]
    a, b, c = placed[j, 0], placed[j, 3], placed[j, 6]
    x, u = a * px + b * py + c * pz, a * ux + b * uy + c * uz
    a, b, c = placed[j, 1], placed[j, 4], placed[j, 7]
    y, v = a * px + b * py + c * pz, a * ux + b * uy + c * uz
    a, b, c = placed[j, 2], placed[j, 5], placed[j, 8]
    z, w = a * px + b * py + c * pz, a * ux + b * uy + c * uz
    if kind == CYLINDER:
        d = segment_cylinder(x, y, z, u, v, w, sizes[j, HALF_X], sizes[j, HALF_Z])[0]
    else:
        d = segment_box(x, y, z, u, v, w, sizes[j, HALF_X], sizes[j, HALF_Y], sizes[j, HALF_Z])[0]
    return math.sqrt(d) - skins, -1


@compiled
def _gap(world: World, at: Stand, i: int, j: int) -> float:
    """Shapes i and j are at least this far apart."""
    around = world.solids.sizes[i, FAR]
    if j >= world.moving:
        return gap_to_box(at.ends, i, around, world.boxes, j - world.moving)
    return gap_between(at.ends, i, j, around + world.solids.sizes[j, FAR])


@compiled
def certified_until(  # kernel
    world: World, course: Course, watch: Watch, i: int, low: int, high: int,
    piece: int, s: float, budget: float,
) -> float:  # fmt: skip
    """Up to where on the path shape i, seen from body ``low``, moves no further than ``budget``.

    It is known that it would, until the path's end.
    """
    radii, caps, way, now, run = watch.radii, watch.caps, watch.way, watch.now, course.run
    slides = world.slides
    # Whole pieces: in steps that double, then by halving.
    done, fails, step = piece - 1, len(course.line) - 1, 1
    while done + 1 < fails:
        middle = done + step if step > 0 else (done + fails) // 2
        middle = min(middle, fails - 1)
        for k in range(low, high):
            way[k] = run[middle + 1, k] - now[k]
        if moved_at_most(radii, caps, slides, i, low, high, way) <= budget:
            done = middle
            step *= 2
        else:
            fails = middle
            step = 0
    slopes = course.slopes
    begin, before = s, 0.0
    if fails > piece:
        begin = course.start[fails]
        for k in range(low, high):
            way[k] = run[fails, k] - now[k]
        before = moved_at_most(radii, caps, slides, i, low, high, way)
    else:
        for k in range(low, high):
            way[k] = 0.0
    # In the piece: the rate at its beginning gives a place too far out, the chord to it one that
    # is safe, since the bound grows ever faster.
    length = course.start[fails + 1] - begin
    rate, moved = 0.0, 0.0
    for k in range(high - 1, low - 1, -1):
        rho = 1.0 if slides[k] != 0.0 else min(radii[i, k] + moved, caps[i, k])
        moved += way[k] * rho
        rate += slopes[fails, k] * rho
    h = length if rate * length <= budget - before else (budget - before) / rate
    left = budget - before
    for k in range(low, high):
        way[k] += slopes[fails, k] * h
    moved = moved_at_most(radii, caps, slides, i, low, high, way) - before
    while moved > left:
        shorter = min(h * left / moved, 0.999 * h)
        for k in range(low, high):
            way[k] -= slopes[fails, k] * (h - shorter)
        h = shorter
        moved = moved_at_most(radii, caps, slides, i, low, high, way) - before
    return begin + h


@compiled
def renew(  # kernel
    world: World, course: Course, watch: Watch, at: Stand, p: int, piece: int, s: float,
    stamp: int, least: float, wanted: float, slack: float, scratch: Scratch,
) -> float:  # fmt: skip
    """A new certificate for pair p from s on; its distance is given back.

    Where the pair is nearer than what is wanted the certificate proves half of that, or nothing.
    """
    i, j = watch.pairs[p, 0], watch.pairs[p, 1]
    mover, low = (j, world.solids.traits[i, BODY]) if j < world.moving else (i, 0)
    high = world.solids.traits[mover, BODY]
    if watch.stamps[mover] != stamp:
        distances_from_axes(world, at, mover, watch.radii)
        watch.stamps[mover] = stamp
    last, total = len(course.line), course.start[len(course.line)]
    for k in range(low, high):
        watch.way[k] = course.run[last, k] - watch.now[k]
    rest = moved_at_most(watch.radii, watch.caps, world.slides, mover, low, high, watch.way)
    mine = watch.certificates
    mine[p, BEGUN], mine[p, END] = s, total
    d = _gap(world, at, i, j) - ROUNDING
    if d - rest >= max(wanted + slack, TIGHT * least):
        mine[p, LAST], mine[p, FLOOR] = d, d - rest
        watch.hints[p, 1] = 0
        return d
    hidden = watch.hints[p, 1] != 0
    d, hint = near(world, at, i, j, rest + least, watch.hints[p, 0], hidden, scratch)
    d -= ROUNDING
    watch.hints[p, 0] = hint
    mine[p, LAST] = d
    clear = d >= wanted + slack
    watch.hints[p, 1] = 0 if clear else 1
    if clear:
        budget = d - max(wanted, TIGHT * min(least, d), LOOSE * d)
    else:
        budget = max(0.5 * d, CREEP)
    mine[p, FLOOR] = max(d - min(budget, rest), 0.0)
    if rest > budget:
        mine[p, END] = certified_until(world, course, watch, mover, low, high, piece, s, budget)
    return d


@compiled
def _restart(world: World, watch: Watch, at: Stand, s: float, scratch: Scratch) -> float:
    """All pairs are to be looked at again; the distance of the pair that seems nearest."""
    nearest, least = -1, math.inf
    for p in range(len(watch.pairs)):
        watch.active[p] = p
        watch.hints[p, 0], watch.hints[p, 1] = -1, 1
        watch.certificates[p, BEGUN] = watch.certificates[p, END] = s
        watch.certificates[p, LAST] = watch.certificates[p, FLOOR] = math.inf
        gap = _gap(world, at, watch.pairs[p, 0], watch.pairs[p, 1])
        if gap < least:
            nearest, least = p, gap
    if nearest < 0:
        return math.inf
    i, j = watch.pairs[nearest, 0], watch.pairs[nearest, 1]
    return max(near(world, at, i, j, math.inf, -1, True, scratch)[0], 0.0)


@compiled
def _place(world: World, course: Course, watch: Watch, at: Stand, piece: int, s: float) -> None:
    """Moves the arm to the place s of the path and notes how far the joints have run."""
    degree = course.shape.shape[1] - 1
    x = s - course.start[piece]
    for k in range(len(watch.q)):
        value = course.shape[piece, degree, k]
        for d in range(degree - 1, -1, -1):
            value = course.shape[piece, d, k] + value * x
        watch.q[k] = value
        watch.now[k] = course.run[piece, k] + course.slopes[piece, k] * x
    pose(world, watch.q, at)


@compiled
def _least_of(watch: Watch, count: int, column: int) -> float:
    """The least number in a column of the active certificates."""
    least = math.inf
    for k in range(count):
        least = min(least, watch.certificates[watch.active[k], column])
    return least


@compiled
def _note(
    found: Found, watch: Watch, course: Course, piece: int, s: float, p: int, verdict: int
) -> None:
    """The first close place of a line, or its contact."""
    line = course.line[piece]
    if found.verdict[line] >= UNDECIDED and verdict != CONTACT:
        return
    found.verdict[line] = verdict
    found.place[line, 0], found.place[line, 1] = piece, s - course.start[piece]
    found.place[line, 2] = watch.certificates[p, LAST]
    found.pair[line, 0], found.pair[line, 1] = watch.pairs[p, 0], watch.pairs[p, 1]


@compiled
def certify(  # kernel
    world: World, course: Course, watch: Watch, at: Stand, scratch: Scratch,
    wanted: float, slack: float, found: Found,
) -> int:  # fmt: skip
    """Walks the path and fills ``found``; how many configurations it took.

    After a contact the rest of that line is left out.
    """
    pieces, total = len(course.line), course.start[len(course.line)]
    piece, s, line, stamp, count = 0, 0.0, -1, 0, 0
    least, retired, fresh = math.inf, math.inf, True
    while True:
        while piece < pieces - 1 and s >= course.start[piece + 1]:
            piece += 1
        _place(world, course, watch, at, piece, s)
        stamp += 1
        if fresh:
            least = _restart(world, watch, at, s, scratch)
            count, retired, fresh = len(watch.pairs), math.inf, False
        elif course.line[piece] > line:
            least = _least_of(watch, count, LAST)
        holds = min(retired, _least_of(watch, count, FLOOR))
        for between in range(line + 1, course.line[piece] + 1):
            found.clearance[between] = min(found.clearance[between], holds)
        line = course.line[piece]
        ahead, k, touched = math.inf, 0, False
        while k < count and not touched:
            p = watch.active[k]
            begun, end = watch.certificates[p, BEGUN], watch.certificates[p, END]
            if begun + USED_UP * (end - begun) <= s:
                d = renew(
                    world, course, watch, at, p, piece, s, stamp, least, wanted, slack, scratch
                )
                least = min(least, max(d, 0.0))
                touched = d <= -ROUNDING
                if d < wanted + slack:
                    _note(found, watch, course, piece, s, p, CONTACT if touched else UNDECIDED)
                found.clearance[line] = min(
                    found.clearance[line], max(watch.certificates[p, FLOOR], 0.0)
                )
                end = watch.certificates[p, END]
                if end >= total:
                    retired = min(retired, watch.certificates[p, FLOOR])
                    count -= 1
                    watch.active[k], watch.active[count] = watch.active[count], p
                    continue
            ahead = min(ahead, end)
            k += 1
        if touched:
            found.clearance[line] = 0.0
            fresh = True
            while piece < pieces and course.line[piece] == line:
                piece += 1
            if piece == pieces:
                return stamp
            ahead = course.start[piece]
            line = course.line[piece] - 1
        if count == 0 or (ahead >= total and not touched):
            holds = min(retired, _least_of(watch, count, FLOOR))
            for between in range(line + 1, len(found.verdict)):
                found.clearance[between] = min(found.clearance[between], holds)
            return stamp
        s = ahead
