"""The proof that an arm stays clear along a path: a certificate per pair, renewed when it ends.

A pair's distance at one place of the path, less the clearance that is to be proven, is a budget of
motion. As long as the bound on the motion has not used it up, the pair is clear by at least that
clearance, at every place in between, however thin the parts are. The path is walked from
certificate end to certificate end; far pairs are looked at once, near ones often.
"""

import math
from typing import NamedTuple

from understudy.space.collision.distance import Scratch, distance, lent, line_distance
from understudy.space.collision.motion_bound import distances_from_axes, moved_at_most
from understudy.space.collision.solids import (
    BODY,
    CYLINDER,
    FAR,
    KIND,
    ROUND,
    SEGMENT,
    SKIN,
    Ints,
    Solids,
)
from understudy.space.collision.world import (
    Placement,
    World,
    carry,
    gap_between,
    gap_to_box,
    joint_rows,
)
from understudy.space.compiled import borrowed, compiled, inlined
from understudy.space.transform import Array

ROUNDING = 1e-9
"""Metres by which rounding may make a distance too great."""
TIGHT = 0.8
"""The share of the least distance met that is proven as clearance, beyond what was asked for."""
MOST_LOOKS = 20
"""A pair that would have to be renewed oftener on the rest of the path is proven less tightly."""
LOOSE = 0.1
"""The share of its own distance that every pair is proven to keep."""
EXACT = 2e-3
"""Metres up to which the distance of a mesh is searched to the end."""
CREEP = 1e-5
"""Metres moved between two looks at a pair that is too close."""
USED_UP = 0.8
"""A certificate of which this share is used is renewed when another one ends."""

PROVEN, CONTACT, UNDECIDED = range(3)
DUE, END, LAST, FLOOR = range(4)


class SweepPath(NamedTuple):
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


class PairCertificates(NamedTuple):
    """The pairs that are watched, and the certificate of each."""

    pairs: Ints
    """(m, 2)"""
    certificates: Array
    """(m, 4), in the order of ``active``: when it is to be renewed and where on the path it ends,
    the distance when it was made, the clearance it proves."""
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


class LineResults(NamedTuple):
    """What came out, per line."""

    verdict: Ints
    clearance: Array
    place: Array
    """(lines, 3): piece, s on it, and the distance there: of the contact, or where it is close."""
    pair: Ints


@inlined
def near(  # kernel
    solids: Solids, traits: Ints, sizes: Array, placed: Array, ends: Array, i: int, j: int,
    enough: float, hint: int, look_inside: bool, scratch: Scratch,
) -> tuple[float, int]:  # fmt: skip
    """As pairs.distance, with a short way for the shapes that arms and cells are mostly made of."""
    one, other = (i, j) if traits[i, KIND] == SEGMENT else (j, i)
    if traits[one, KIND] == SEGMENT and traits[other, KIND] <= CYLINDER:
        skins = sizes[i, SKIN] + sizes[j, SKIN]
        d = line_distance(traits, sizes, placed, ends, one, other) - skins
    else:
        d, hint = distance(
            solids, placed, ends, i, j, enough, EXACT, hint, look_inside, scratch
        )  # fmt: skip
    return d, hint


@inlined
def gap(sizes: Array, ends: Array, boxes: Array, moving: int, i: int, j: int) -> float:
    """Shapes i and j are at least this far apart."""
    if j >= moving:
        least = gap_to_box(ends, i, sizes[i, FAR], boxes, j - moving)
    else:
        least = gap_between(ends, i, j, sizes[i, ROUND] + sizes[j, ROUND])
    return least


@inlined
def certified_until(  # kernel
    start: Array, slopes: Array, run: Array, radii: Array, caps: Array, slides: Array,
    now: Array, way: Array, i: int, low: int, high: int, piece: int, s: float, budget: float,
) -> float:  # fmt: skip
    """Up to where on the path shape i, seen from body ``low``, moves no further than ``budget``.

    It is known that it would, until the path's end.
    """
    # Whole pieces: in steps that double, then by halving.
    done, fails, step = piece - 1, len(start) - 2, 1
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
    begin = s
    for k in range(low, high):
        way[k] = 0.0
    if fails > piece:
        begin = start[fails]
        for k in range(low, high):
            way[k] = run[fails, k] - now[k]
    # In the piece: the rate at its beginning gives a place too far out, the chord to it one that
    # is safe, since the bound grows ever faster.
    rate, before = 0.0, 0.0
    for k in range(high - 1, low - 1, -1):
        rho = 1.0 if slides[k] != 0.0 else min(radii[i, k] + before, caps[i, k])
        before += way[k] * rho
        rate += slopes[fails, k] * rho
    left, h = budget - before, start[fails + 1] - begin
    if rate * h > left:
        h = left / rate
    for k in range(low, high):
        way[k] += slopes[fails, k] * h
    moved = moved_at_most(radii, caps, slides, i, low, high, way) - before
    while moved > left:
        shorter = min(h * left / moved, 0.999 * h)
        for k in range(low, high):
            way[k] -= slopes[fails, k] * (h - shorter)
        h = shorter
        moved = moved_at_most(radii, caps, slides, i, low, high, way) - before
    return float(begin + h)


@compiled
def certify(  # kernel
    world: World, course: SweepPath, watch: PairCertificates, at: Placement, scratch: Scratch,
    wanted: float, slack: float, found: LineResults,
) -> int:  # fmt: skip
    """Walks the path and fills ``found``; how many configurations it took.

    After a contact the rest of that line is left out.
    """
    solids, moving = lent(world.solids), world.moving
    traits, sizes, local, axes = solids.traits, solids.sizes, solids.local, solids.axes
    scratch = (borrowed(scratch[0]), borrowed(scratch[1]), borrowed(scratch[2]))
    rest_frames, slides, boxes = borrowed(world.rest), borrowed(world.slides), borrowed(world.boxes)
    frames, placed, ends = borrowed(at.frames), borrowed(at.placed), borrowed(at.ends)
    pairs, active = borrowed(watch.pairs), borrowed(watch.active)
    mine, hints = borrowed(watch.certificates), borrowed(watch.hints)
    radii, caps, stamps = borrowed(watch.radii), borrowed(watch.caps), borrowed(watch.stamps)
    q, now, way = borrowed(watch.q), borrowed(watch.now), borrowed(watch.way)
    shape, slopes, run = borrowed(course.shape), borrowed(course.slopes), borrowed(course.run)
    start, lines = borrowed(course.start), borrowed(course.line)
    clearance = borrowed(found.clearance)
    pieces = len(lines)
    total = start[pieces]
    piece, s, line, stamp, count = 0, 0.0, -1, 0, 0
    least, retired, fresh = math.inf, math.inf, True
    while True:
        # Where nothing is known yet, standing still is looked at too.
        while not fresh and piece < pieces - 1 and s >= start[piece + 1]:
            piece += 1
        run_to(shape, slopes, run, piece, s - start[piece], q, now)
        joint_rows(q, rest_frames, slides, frames)
        carry(traits, local, axes, moving, frames, placed, ends)
        stamp += 1
        if fresh:
            least = restart(world, watch, at, s, scratch)
            count, retired, fresh = len(pairs), math.inf, False
        elif lines[piece] > line:
            least = least_of(mine, count, LAST, -math.inf)
        if lines[piece] > line:
            holds = min(retired, least_of(mine, count, FLOOR, -math.inf))
            for between in range(line + 1, lines[piece]):
                clearance[between] = min(clearance[between], holds)
            line = lines[piece]
            holds = min(retired, least_of(mine, count, FLOOR, s))
            clearance[line] = min(clearance[line], holds)
        ahead, k, touched = math.inf, 0, False
        while k < count and not touched:
            end = mine[k, END]
            if mine[k, DUE] <= s:
                p = active[k]
                i, j = pairs[p, 0], pairs[p, 1]
                mover, low = (j, traits[i, BODY]) if j < moving else (i, 0)
                high = traits[mover, BODY]
                if stamps[mover] != stamp:
                    distances_from_axes(frames, ends, slides, sizes[mover, FAR], mover, high, radii)
                    stamps[mover] = stamp
                for m in range(low, high):
                    way[m] = run[pieces, m] - now[m]
                rest = moved_at_most(radii, caps, slides, mover, low, high, way)
                d = gap(sizes, ends, boxes, moving, i, j) - ROUNDING
                floor = max(wanted + slack, TIGHT * least)
                if d - floor < rest:
                    d, hints[p, 0] = near(
                        solids, traits, sizes, placed, ends, i, j,
                        rest + least, hints[p, 0], hints[p, 1] != 0, scratch,
                    )  # fmt: skip
                    d -= ROUNDING
                    least = min(least, max(d, 0.0))
                    tight = min(TIGHT * least, d - rest / MOST_LOOKS)
                    floor = max(wanted, tight, min(0.5 * least, d), LOOSE * d)
                close = d < wanted + slack
                hints[p, 1] = close
                limit = total
                if close:
                    floor = d - max(0.5 * d, CREEP)
                    touched = d <= -ROUNDING
                    # What proves too little for this line shall prove nothing for the next.
                    limit = note(found, watch, course, piece, s, p, d)
                end = total
                if d - floor < rest:
                    end = certified_until(
                        start, slopes, run, radii, caps, slides, now, way,
                        mover, low, high, piece, s, d - floor,
                    )  # fmt: skip
                else:
                    floor = d - rest
                end, floor = min(end, limit), max(floor, 0.0)
                mine[k, DUE], mine[k, END] = s + USED_UP * (end - s), end
                mine[k, LAST], mine[k, FLOOR] = d, floor
                clearance[line] = min(clearance[line], floor)
                if end >= total:
                    retired = min(retired, floor)
                    count -= 1
                    active[k] = active[count]
                    for column in range(4):
                        mine[k, column] = mine[count, column]
                    continue
            ahead = min(ahead, end)
            k += 1
        if touched:
            clearance[line] = 0.0
            fresh = True
            while piece < pieces and lines[piece] == line:
                piece += 1
            if piece == pieces:
                return stamp
            ahead = start[piece]
        elif count == 0:
            for between in range(line + 1, len(clearance)):
                clearance[between] = min(clearance[between], retired)
            return stamp
        s = ahead


@compiled
def restart(
    world: World, watch: PairCertificates, at: Placement, s: float, scratch: Scratch
) -> float:
    """All pairs are to be looked at again; the distance of the pair that seems nearest."""
    nearest, least = -1, math.inf
    sizes, ends, boxes, moving = world.solids.sizes, at.ends, world.boxes, world.moving
    pairs, mine, hints, active = watch.pairs, watch.certificates, watch.hints, watch.active
    for p in range(len(pairs)):
        active[p] = p
        hints[p, 0], hints[p, 1] = -1, 1
        mine[p, DUE] = mine[p, END] = s
        mine[p, LAST] = mine[p, FLOOR] = math.inf
        d = gap(sizes, ends, boxes, moving, pairs[p, 0], pairs[p, 1])
        if d < least:
            nearest, least = p, d
    watch.stamps[:] = -1
    if nearest < 0:
        return math.inf
    i, j = pairs[nearest, 0], pairs[nearest, 1]
    d, _ = distance(world.solids, at.placed, at.ends, i, j, math.inf, math.inf, -1, True, scratch)
    return max(d, 0.0)


@inlined
def run_to(
    shape: Array, slopes: Array, run: Array, piece: int, x: float, q: Array, now: Array
) -> None:
    """Where the joints are at x along a piece, and how far they have run until there."""
    degree = shape.shape[1] - 1
    for k in range(len(q)):
        value = shape[piece, degree, k]
        for d in range(degree - 1, -1, -1):
            value = shape[piece, d, k] + value * x
        q[k] = value
        now[k] = run[piece, k] + slopes[piece, k] * x


@compiled
def least_of(certificates: Array, count: int, column: int, after: float) -> float:
    """The least number in a column of the active certificates that end after a place."""
    lowest = math.inf
    for k in range(count):
        if certificates[k, END] > after:
            lowest = min(lowest, certificates[k, column])
    return lowest


@compiled
def note(
    found: LineResults,
    watch: PairCertificates,
    course: SweepPath,
    piece: int,
    s: float,
    p: int,
    d: float,
) -> float:
    """The first close place of a line, or its contact; where the line ends is given back."""
    line = course.line[piece]
    verdict = CONTACT if d <= -ROUNDING else UNDECIDED
    if found.verdict[line] != UNDECIDED or verdict == CONTACT:
        found.verdict[line] = verdict
        found.place[line, 0], found.place[line, 1] = piece, s - course.start[piece]
        found.place[line, 2] = d
        found.pair[line, 0], found.pair[line, 1] = watch.pairs[p, 0], watch.pairs[p, 1]
    while piece + 1 < len(course.line) and course.line[piece + 1] == line:
        piece += 1
    return float(course.start[piece + 1])
