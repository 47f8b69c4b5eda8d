"""Proof that two robots stay apart while both move on time axes of their own.

Each robot has a path q(t). For a *known timing* both are compared at the same time. For *any
timing* within ±S, every pair of times (t, u) with |t - u| ≤ S is compared, except the pairs that a
handshake excludes: a robot that has passed its wait knows that the other has passed its signal.

Time is halved again and again. An interval of one robot, a *node*, has the placement of all its
shapes at the middle, and for each shape a bound of the motion from there to either end
(`world.moved_at_most` of the travel of the joints along the path). A cell is one node of each
robot. A pair of shapes is proven for the whole cell if its distance at the middles, minus both
bounds, keeps the clearance to be proven; other pairs are looked at again in the halves of the cell.
A cell of a known timing has the same interval of both robots; a cell of any timing is a rectangle,
of which the interval with the larger motion is halved.

Why this is sound: a distance is never larger than the true one, the bound of the motion never
smaller, and the cells cover every allowed pair of times. Cells that are excluded lie outside the
allowed set as a whole.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.space.collision.arm_pair import PlacedArm
from understudy.space.collision.distance import Scratch, distance, lent, line_distance, scratch
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
    solids,
)
from understudy.space.collision.sweep import CREEP, ENOUGH, ROUNDING, TIGHT, greatest_slopes
from understudy.space.collision.world import (
    Placement,
    carry,
    distances_from_axes,
    furthest,
    joint_rows,
    moved_at_most,
    shape_contact,
)
from understudy.space.compiled import borrowed, compiled
from understudy.space.kinematics.chain import frame_row
from understudy.space.transform import Array

SHARE_ANY = 0.8
"""Share of the smallest distance found that is proven beyond ENOUGH for any timing; for a known one
it is TIGHT everywhere."""
CREEP_ANY = 5e-5
"""CREEP for any timing, where places that touch lie along curves and not in single points."""
SHIFT_STEP = 1e-3
"""Time (s) to which the smallest shift with a contact is found."""
SHORTEST = 1e-5
"""Time (s) below which a cell is not halved again to find out whether a part of it is allowed."""
WINDOW = 64.0
"""Longest time (s) that one tree of nodes covers."""
LEVELS = 12
NODES = 2 << LEVELS
"""Nodes whose placements are kept; deeper ones are computed when they are needed."""
MOST_FOUND = 256
"""Pairs of lines with a contact that are found in two windows."""
MOST_CELLS = 5_000_000
"""Cells that are looked at in two windows; the rest is undecided."""
MOST_LINES = 16
"""Pairs of lines in a cell of which it is asked whether all touch."""
MOST_DEPTH = 256
LOOK, CLOSE_LOOK = 0.33, 0.02
"""Time (s) between the places that are looked at before anything is proven; the second one if a
contact was found among the first."""
SHIFTS = (0.0, -0.03, 0.03, -0.1, 0.1, -0.3, 0.3, -0.6, 0.6, -1.0, 1.0)
"""Shares of the largest shift at which is looked for contacts."""

FOUND, CELLS, NEAR_I, NEAR_J, UNDECIDED = range(5)
"""Integers of the results."""
PROVEN, SEEN, SEEN_T, SEEN_U = range(4)
"""Numbers of the results."""
T, U, APART, SHIFT = range(4)
"""Columns of the places that were found."""
LINE_T, LINE_U, SHAPE_I, SHAPE_J, TOUCHES = range(5)


class TimedPath(NamedTuple):
    """The joints of a robot over time: it stands before and after."""

    begins: Array
    """(segments + 1,): begin of each segment, and end of the last one; s."""
    piece: Ints
    law: Array
    """(segments, 4): s = law₀ + law₁·τ + law₂·τ²/2 + law₃·τ³/6."""
    shape: Array
    """(pieces, degree + 1, dof): polynomials in s, constant term first."""
    length: Array
    run: Array
    """(pieces, dof): upper bounds of the joints' travel up to the beginning of each piece."""
    slopes: Array
    """(pieces, dof): upper bounds of |dq/ds|."""


class Tree(NamedTuple):
    """A robot in a window of time: its nodes, and working memory."""

    path: TimedPath
    own: Solids
    caps: Array
    rest: Array
    slides: Array
    frames: Array
    window: Array
    """(2,): begin and end, s."""
    lines: Array
    """Begin of every line, s."""
    placed: Array
    """(nodes + 1, shapes, 12); the last one is for nodes that are not kept."""
    ends: Array
    moved: Array
    """(nodes + 1, shapes): motion from the middle to either end of the node."""
    ready: Ints
    work: Array
    """(4, dof): joints, and their travel at the begin, middle and end of a node."""
    radii: Array


class Timing(NamedTuple):
    """Which pairs of times are looked at."""

    together: bool
    """Both times are the same."""
    shift: float
    """Largest difference of both times, s."""
    waits: Array
    """(n, 3): the robot that waits (0 or 1), when it has passed its wait, and when the other one
    gives the signal. The first is not later than its wait unless the other is later than that."""


class Results(NamedTuple):
    """What was found; see the constants for the columns."""

    counts: Ints
    figures: Array
    places: Array
    """(MOST_FOUND, 4): both times, distance, absolute shift."""
    keys: Ints
    """(MOST_FOUND, 5): both lines, both shapes, whether they touch."""
    low: Array
    """(NODES,): clearance that was proven in cells with this node of the first robot."""
    low_other: Array


@compiled
def state_at(path: TimedPath, t: float, q: Array, travel: Array) -> None:  # kernel
    """Joints, and an upper bound of their travel since the beginning of the path, at t."""
    begins = borrowed(path.begins)
    low, high = 0, len(begins) - 2
    while low < high:
        middle = (low + high + 1) >> 1
        if begins[middle] <= t:
            low = middle
        else:
            high = middle - 1
    x = min(max(t, begins[0]), begins[len(begins) - 1]) - begins[low]
    law, piece = borrowed(path.law), path.piece[low]
    s = law[low, 0] + x * (law[low, 1] + x * (0.5 * law[low, 2] + x * law[low, 3] / 6.0))
    s = min(max(s, 0.0), path.length[piece])
    shape, run, slopes = borrowed(path.shape), borrowed(path.run), borrowed(path.slopes)
    degree = shape.shape[1] - 1
    for k in range(shape.shape[2]):
        value = shape[piece, degree, k]
        for d in range(degree - 1, -1, -1):
            value = shape[piece, d, k] + value * s
        q[k] = value
        travel[k] = run[piece, k] + slopes[piece, k] * s


@compiled
def fill_node(tree: Tree, n: int, begin: float, end: float) -> None:  # kernel
    """Placement of the shapes at the middle of a node, and the bounds of their motion in it."""
    own, slides, work = lent(tree.own), borrowed(tree.slides), borrowed(tree.work)
    frames, radii, caps = borrowed(tree.frames), borrowed(tree.radii), borrowed(tree.caps)
    placed, ends, moved = tree.placed[n], tree.ends[n], tree.moved[n]
    q, first, middle, last = work[0], work[1], work[2], work[3]
    state_at(tree.path, begin, q, first)
    state_at(tree.path, end, q, last)
    state_at(tree.path, 0.5 * (begin + end), q, middle)
    joint_rows(q, borrowed(tree.rest), slides, frames)
    carry(own.traits, own.local, own.axes, len(moved), frames, placed, ends)
    for k in range(len(slides)):
        first[k] = max(middle[k] - first[k], last[k] - middle[k])
    for i in range(len(moved)):
        body = own.traits[i, BODY]
        distances_from_axes(frames, ends, slides, own.sizes[i, FAR], i, body, radii)
        moved[i] = moved_at_most(radii, caps, slides, i, 0, body, first)


@compiled
def node_row(tree: Tree, node: int, begin: float, end: float) -> int:
    """The row of a node, which is computed if it is not kept."""
    if node >= NODES:
        fill_node(tree, NODES, begin, end)
        return NODES
    if tree.ready[node] == 0:
        fill_node(tree, node, begin, end)
        tree.ready[node] = 1
    return node


@compiled
def line_of(lines: Array, t: float) -> int:
    """The index of the line at t."""
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if lines[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def kept_node(node: int) -> int:
    """The node itself, or the one above it that is kept."""
    while node >= NODES:
        node >>= 1
    return node


@compiled
def is_allowed(timing: Timing, t: float, u: float) -> bool:
    """Whether the robots can be at these times at once."""
    if timing.together:
        return True
    if abs(t - u) > timing.shift:
        return False
    for k in range(len(timing.waits)):
        who, passed, signal = timing.waits[k, 0], timing.waits[k, 1], timing.waits[k, 2]
        here, there = (t, u) if who == 0.0 else (u, t)
        if here > passed and there < signal:
            return False
    return True


@compiled
def is_excluded(timing: Timing, a: float, b: float, c: float, d: float) -> bool:  # kernel
    """Whether no pair of times in [a, b] × [c, d] is allowed."""
    if a - d > timing.shift or c - b > timing.shift:
        return True
    for k in range(len(timing.waits)):
        who, passed, signal = timing.waits[k, 0], timing.waits[k, 1], timing.waits[k, 2]
        if who == 0.0 and a > passed and d < signal:
            return True
        if who != 0.0 and c > passed and b < signal:
            return True
    return False


@compiled
def find_lines(results: Results, line: int, other: int) -> int:
    """The place that was found for a pair of lines, or -1."""
    for k in range(results.counts[FOUND]):
        if results.keys[k, LINE_T] == line and results.keys[k, LINE_U] == other:
            return k
    return -1


@compiled
def all_touch(
    results: Results,
    lines: Array,
    others: Array,
    a: float,
    b: float,
    c: float,
    d: float,
    shift: float,
    together: bool,
) -> bool:
    """Whether a contact was found of any two lines in a cell, and this cell has none that matters
    more: an earlier one, or one with a smaller ``shift`` than known."""
    if results.counts[FOUND] == 0:
        return False
    first, first_other = line_of(lines, a), line_of(others, c)
    last, last_other = line_of(lines, b - SHORTEST), line_of(others, d - SHORTEST)
    last, last_other = max(first, last), max(first_other, last_other)
    if (last - first + 1) * (last_other - first_other + 1) > MOST_LINES:
        return False
    for line in range(first, last + 1):
        for other in range(first_other, last_other + 1):
            k = find_lines(results, line, other)
            if k < 0 or results.keys[k, TOUCHES] == 0:
                return False
            if not together and shift < results.places[k, SHIFT] - SHIFT_STEP:
                return False
    return True


@compiled
def note_place(
    results: Results,
    line: int,
    other: int,
    t: float,
    u: float,
    apart: float,
    i: int,
    j: int,
    together: bool,
) -> None:
    """Keeps a contact, or the closest place, of a pair of lines."""
    touches, shift = apart <= 0.0, 0.0 if together else abs(t - u)
    k = find_lines(results, line, other)
    if k < 0:
        k = results.counts[FOUND]
        if k >= MOST_FOUND:
            results.counts[UNDECIDED] = 1
            return
        results.counts[FOUND] = k + 1
    elif results.keys[k, TOUCHES] != 0:
        if not touches or shift >= results.places[k, SHIFT]:
            return
    elif not touches and apart >= results.places[k, APART]:
        return
    results.keys[k, LINE_T], results.keys[k, LINE_U] = line, other
    results.keys[k, SHAPE_I], results.keys[k, SHAPE_J] = i, j
    results.keys[k, TOUCHES] = 1 if touches else 0
    results.places[k, T], results.places[k, U] = t, u
    results.places[k, APART], results.places[k, SHIFT] = apart, shift


@compiled
def note_cell(
    results: Results,
    lines: Array,
    others: Array,
    timing: Timing,
    span: tuple[float, float, float, float],
    place: tuple[float, float, float],
    i: int,
    j: int,
) -> None:
    """Keeps a place for all lines of a cell in which the robots hardly move.

    Robots that stand, or nearly so, may do it on several lines.
    """
    a, b, c, d = span
    t, u, apart = place
    first, first_other = line_of(lines, a), line_of(others, c)
    last = max(first, line_of(lines, b - SHORTEST))
    last_other = max(first_other, line_of(others, d - SHORTEST))
    if (last - first + 1) * (last_other - first_other + 1) > MOST_LINES:
        last, last_other = first, first_other
    for line in range(first, last + 1):
        end = min(b, lines[line + 1]) if line + 1 < len(lines) else b
        for other in range(first_other, last_other + 1):
            end_other = min(d, others[other + 1]) if other + 1 < len(others) else d
            x, y = max(a, lines[line]), max(c, others[other])
            if timing.together:
                x = y = max(x, y)
                if x <= min(end, end_other):
                    note_place(results, line, other, x, y, apart, i, j, True)
                continue
            # Where both stand, the place with the smallest shift stands for all.
            near = min(max(u, x), end)
            near_other = min(max(near, y), end_other)
            near = min(max(near_other, x), end)
            if is_allowed(timing, near, near_other):
                note_place(results, line, other, near, near_other, apart, i, j, False)
                continue
            x, y = min(max(t, x), end), min(max(u, y), end_other)
            if is_allowed(timing, x, y) or (line == first and other == first_other):
                note_place(results, line, other, x, y, apart, i, j, False)


@compiled
def pair_distance(
    both: Solids, placed: Array, ends: Array, i: int, j: int, enough: float, scratch: Scratch
) -> float:
    """Lower bound of the distance of two shapes, exact if below ``enough`` and ENOUGH."""
    traits, sizes = both.traits, both.sizes
    one, other = (i, j) if traits[i, KIND] == SEGMENT else (j, i)
    if traits[one, KIND] == SEGMENT and traits[other, KIND] <= CYLINDER:
        d = line_distance(traits, sizes, placed, ends, one, other)
        return float(d - sizes[i, SKIN] - sizes[j, SKIN] - ROUNDING)
    d, _ = distance(both, placed, ends, i, j, max(enough, 0.0), ENOUGH, -1, True, scratch)
    return float(d - ROUNDING)


@compiled
def to_prove(wanted: float, best: float, far_share: float) -> float:
    """The clearance that every pair must keep, from the smallest distance found so far."""
    if best == math.inf:
        return wanted
    return max(wanted, TIGHT * min(best, ENOUGH), far_share * best)


@compiled
def allowed_place(
    timing: Timing, a: float, b: float, c: float, d: float
) -> tuple[bool, float, float]:
    """An allowed pair of times in a cell, and whether one was found."""
    t, u = 0.5 * (a + b), 0.5 * (c + d)
    for k in range(6):
        x = a if k == 1 or k == 2 else (b if k == 3 or k == 4 else t)
        y = c if k == 1 or k == 3 else (d if k == 2 or k == 4 else u)
        y = min(max(y, max(c, x - timing.shift)), min(d, x + timing.shift))
        if k == 5:
            x = min(max(t, max(a, u - timing.shift)), min(b, u + timing.shift))
            y = u
        if a <= x <= b and c <= y <= d and is_allowed(timing, x, y):
            return True, x, y
    return False, t, u


@compiled
def look(  # kernel
    both: Solids,
    one: Tree,
    other: Tree,
    times: Array,
    at: Placement,
    scratch: Scratch,
    note: bool,
    results: Results,
) -> None:
    """Looks at the distance at some pairs of times (n, 2): an upper bound of what can be proven.

    ``note``: also keeps the contacts, with the smallest shift of each two lines.
    """
    both = lent(both)
    placed, ends, sizes = borrowed(at.placed), borrowed(at.ends), borrowed(both.sizes)
    count = len(one.caps)
    figures = results.figures
    for n in range(len(times)):
        fill_node(one, NODES, times[n, 0], times[n, 0])
        fill_node(other, NODES, times[n, 1], times[n, 1])
        placed[:count], placed[count:] = one.placed[NODES], other.placed[NODES]
        ends[:count], ends[count:] = one.ends[NODES], other.ends[NODES]
        for i in range(count):
            for j in range(count, len(sizes)):
                x = ends[i, 0] + ends[i, 3] - ends[j, 0] - ends[j, 3]
                y = ends[i, 1] + ends[i, 4] - ends[j, 1] - ends[j, 4]
                z = ends[i, 2] + ends[i, 5] - ends[j, 2] - ends[j, 5]
                around = sizes[i, ROUND] + sizes[j, ROUND]
                if 0.5 * math.sqrt(x * x + y * y + z * z) - around >= max(figures[SEEN], 0.0):
                    continue
                d = pair_distance(both, placed, ends, i, j, figures[SEEN], scratch)
                if d < figures[SEEN]:
                    figures[SEEN], figures[SEEN_T], figures[SEEN_U] = d, times[n, 0], times[n, 1]
                    results.counts[NEAR_I], results.counts[NEAR_J] = i, j
                if note and d <= 0.0:
                    line, line_other = (
                        line_of(one.lines, times[n, 0]),
                        line_of(other.lines, times[n, 1]),
                    )
                    note_place(results, line, line_other, times[n, 0], times[n, 1], d, i, j, False)


@compiled
def prove(  # kernel
    both: Solids,
    one: Tree,
    other: Tree,
    pairs: Ints,
    timing: Timing,
    wanted: float,
    far_share: float,
    most_cells: int,
    at: Placement,
    lists: Ints,
    scratch: Scratch,
    results: Results,
) -> None:
    """Proves the clearance of two robots in one window of each, and fills ``results``."""
    both, pairs, lists = lent(both), borrowed(pairs), borrowed(lists)
    placed, ends, sizes = borrowed(at.placed), borrowed(at.ends), borrowed(both.sizes)
    counts, figures = borrowed(results.counts), borrowed(results.figures)
    low, low_other = borrowed(results.low), borrowed(results.low_other)
    split, together = len(one.caps), timing.together
    creep = CREEP if together else CREEP_ANY
    cells = np.empty((MOST_DEPTH, 4), dtype=np.int64)
    spans = np.empty((MOST_DEPTH, 4))
    for n in range(len(pairs)):
        lists[n] = n
    cells[0, 0], cells[0, 1], cells[0, 2], cells[0, 3] = 1, 1, 0, len(pairs)
    spans[0, 0], spans[0, 1] = one.window[0], one.window[1]
    spans[0, 2], spans[0, 3] = other.window[0], other.window[1]
    top = 1 if len(pairs) else 0
    row_before, row_other_before = -1, -1
    while top > 0:
        top -= 1
        node, node_other, first, count = cells[top, 0], cells[top, 1], cells[top, 2], cells[top, 3]
        a, b, c, d = spans[top, 0], spans[top, 1], spans[top, 2], spans[top, 3]
        if not together and is_excluded(timing, a, b, c, d):
            continue
        counts[CELLS] += 1
        if counts[CELLS] > most_cells or top + 3 >= MOST_DEPTH:
            counts[UNDECIDED] = 1
            kept, kept_other = kept_node(node), kept_node(node_other)
            low[kept] = low_other[kept_other] = figures[PROVEN] = -math.inf
            continue
        row, row_other = node_row(one, node, a, b), node_row(other, node_other, c, d)
        if row != row_before or row == NODES:
            placed[:split], ends[:split] = one.placed[row], one.ends[row]
        if row_other != row_other_before or row_other == NODES:
            placed[split:], ends[split:] = other.placed[row_other], other.ends[row_other]
        row_before, row_other_before = row, row_other
        t, u = 0.5 * (a + b), 0.5 * (c + d)
        # Distances in a place that is not allowed are no upper bound of what can be proven.
        inside = is_allowed(timing, t, u)
        # ── the pairs of shapes ──
        kept, lowest, nearest, near_i, near_j = 0, math.inf, math.inf, -1, -1
        most, most_other, certain, undecided_low = 0.0, 0.0, True, math.inf
        best = figures[SEEN]
        need = to_prove(wanted, best, far_share)
        for n in range(first, first + count):
            p = lists[n]
            i, j = pairs[p, 0], pairs[p, 1]
            mine, its = one.moved[row, i], other.moved[row_other, j - split]
            moved = mine + its
            x = ends[i, 0] + ends[i, 3] - ends[j, 0] - ends[j, 3]
            y = ends[i, 1] + ends[i, 4] - ends[j, 1] - ends[j, 4]
            z = ends[i, 2] + ends[i, 5] - ends[j, 2] - ends[j, 5]
            centres = 0.5 * math.sqrt(x * x + y * y + z * z)
            least = centres - sizes[i, ROUND] - sizes[j, ROUND] - ROUNDING - moved
            if least >= need:
                lowest = min(lowest, least)
                continue
            # The axes are mostly inside the shapes, so that the distance is not larger than that of
            # their middles: nothing is proven here, and the distance is not worth its time.
            if centres - moved >= need or moved <= 2.0 * creep:
                apart = pair_distance(both, placed, ends, i, j, moved + need, scratch)
                least = apart - moved
                if apart < best and inside:
                    best = max(apart, 0.0)
                    figures[SEEN], figures[SEEN_T], figures[SEEN_U] = best, t, u
                    counts[NEAR_I], counts[NEAR_J] = i, j
                    need = to_prove(wanted, best, far_share)
                if least >= need:
                    lowest = min(lowest, least)
                    continue
                if apart < nearest:
                    nearest, near_i, near_j = apart, i, j
                undecided_low = min(undecided_low, least)
            else:
                certain = False
            most, most_other = max(most, mine), max(most_other, its)
            lists[first + count + kept] = p
            kept += 1
        up, up_other = kept_node(node), kept_node(node_other)
        low[up] = min(low[up], lowest)
        low_other[up_other] = min(low_other[up_other], lowest)
        figures[PROVEN] = min(figures[PROVEN], lowest)
        if kept == 0:
            continue
        least_shift = 0.0 if together else max(0.0, a - d, c - b)
        if all_touch(results, one.lines, other.lines, a, b, c, d, least_shift, together):
            continue
        # ── a contact, a place that is too close, or the halves ──
        if inside and nearest <= 0.0 and not together:
            at_line, at_other = line_of(one.lines, t), line_of(other.lines, u)
            note_place(results, at_line, at_other, t, u, nearest, near_i, near_j, False)
            figures[PROVEN] = min(figures[PROVEN], nearest)
            if all_touch(results, one.lines, other.lines, a, b, c, d, least_shift, False):
                continue
        tiny = most + most_other <= creep
        clear = inside and certain and undecided_low > 0.0 and nearest < wanted
        if tiny or clear:
            done, when, other_when = True, a, c
            if not together:
                done, when, other_when = (
                    (True, t, u) if inside else allowed_place(timing, a, b, c, d)
                )
            if done or max(b - a, d - c) <= SHORTEST:
                if nearest < wanted + creep:
                    span, place = (a, b, c, d), (when, other_when, nearest)
                    note_cell(results, one.lines, other.lines, timing, span, place, near_i, near_j)
                low[up] = min(low[up], undecided_low)
                low_other[up_other] = min(low_other[up_other], undecided_low)
                figures[PROVEN] = min(figures[PROVEN], undecided_low)
                continue
        start = first + count
        if start + 2 * kept > len(lists):
            counts[UNDECIDED] = 1
            low[up] = low_other[up_other] = figures[PROVEN] = -math.inf
            continue
        if together:
            # The earlier half is looked at first: the first contact of two lines is reported.
            for half in range(1, -1, -1):
                cells[top, 0], cells[top, 1] = 2 * node + half, 2 * node_other + half
                cells[top, 2], cells[top, 3] = start, kept
                spans[top, 0] = spans[top, 2] = t if half else a
                spans[top, 1] = spans[top, 3] = b if half else t
                top += 1
            continue
        # The half with the smaller shift is looked at first: the others may not matter then.
        mine_first = most >= most_other if most + most_other > creep else b - a >= d - c
        for half in range(1, -1, -1):
            later = half if (t < u) == (not mine_first) else 1 - half
            if mine_first:
                cells[top, 0], cells[top, 1] = 2 * node + later, node_other
                spans[top, 0], spans[top, 1] = (t, b) if later else (a, t)
                spans[top, 2], spans[top, 3] = c, d
            else:
                cells[top, 0], cells[top, 1] = node, 2 * node_other + later
                spans[top, 0], spans[top, 1] = a, b
                spans[top, 2], spans[top, 3] = (u, d) if later else (c, u)
            cells[top, 2], cells[top, 3] = start, kept
            top += 1


# ── robots on their time axes ─────────────────────────────────────────────────────────────────────


class Placed(NamedTuple):
    """A robot in one outfit (a tool, what it holds): its shapes and the bounds of their motion."""

    arm: PlacedArm
    own: Solids
    caps: Array

    @staticmethod
    def of(arm: PlacedArm) -> "Placed":
        own = solids(arm.parts)
        return Placed(arm, own, furthest(arm.chain, own, len(arm.parts)))


@dataclass(frozen=True, eq=False)
class TimedRobot:
    """A robot with its program on a time axis of its own.

    `outfits`: from when on it has which shapes; the first begins at 0. `lines`: begin of every
    line, the first at 0.
    """

    path: TimedPath
    outfits: Sequence[tuple[float, PlacedArm]]
    lines: Array
    _placed: dict[int, Placed] = field(default_factory=dict, repr=False)
    _trees: "OrderedDict[tuple[int, float, float], Tree]" = field(
        default_factory=OrderedDict, repr=False
    )

    @property
    def ends(self) -> float:
        return float(self.path.begins[-1])

    def windows(self, horizon: float) -> Iterator["Window"]:
        """The windows up to a horizon: one outfit each, and not too long."""
        begins = [max(begin, 0.0) for begin, _ in self.outfits]
        for k, begin in enumerate(begins):
            end = begins[k + 1] if k + 1 < len(begins) else horizon
            end = min(end, horizon)
            count = max(math.ceil((end - begin) / WINDOW), 1)
            cuts = np.linspace(begin, end, count + 1).tolist()
            if end > begin or end == begin == horizon:
                yield from (Window(self, k, a, b) for a, b in pairwise(cuts))

    def placed(self, outfit: int) -> Placed:
        if outfit not in self._placed:
            self._placed[outfit] = Placed.of(self.outfits[outfit][1])
        return self._placed[outfit]

    def tree(self, outfit: int, begin: float, end: float) -> Tree:
        """The nodes of a window; those of the last few windows are kept."""
        key = outfit, begin, end
        if key not in self._trees:
            while len(self._trees) >= MOST_TREES:
                self._trees.popitem(last=False)
            self._trees[key] = _tree(self.path, self.placed(outfit), (begin, end), self.lines)
        self._trees.move_to_end(key)
        return self._trees[key]


MOST_TREES = 3


class Window(NamedTuple):
    robot: TimedRobot
    outfit: int
    begin: float
    end: float

    def tree(self) -> Tree:
        return self.robot.tree(self.outfit, self.begin, self.end)

    def cut(self, begin: float, end: float) -> "Window":
        return self._replace(begin=max(begin, self.begin), end=min(end, self.end))


def _tree(path: TimedPath, placed: Placed, window: tuple[float, float], lines: Array) -> Tree:
    chain, count = placed.arm.chain, len(placed.arm.parts)
    frames = np.zeros((chain.dof + 1, 12))
    frames[0] = frame_row(placed.arm.foot)
    return Tree(
        path,
        placed.own,
        placed.caps,
        chain.rest,
        chain.slides,
        frames,
        np.array(window),
        lines,
        np.empty((NODES + 1, count, 12)),
        np.empty((NODES + 1, count, 6)),
        np.empty((NODES + 1, count)),
        np.zeros(NODES + 1, dtype=np.int64),
        np.zeros((4, chain.dof)),
        np.zeros((count, chain.dof)),
    )


@dataclass(frozen=True, slots=True)
class TimedPieces:
    """A part of a path: polynomial pieces and the segments of their time law."""

    begins: Array
    piece: NDArray[np.int64]
    law: Array
    shape: Array
    length: Array


def timed_path(start: Array, parts: Sequence[TimedPieces]) -> TimedPath:
    """One path of parts in the order of time; the robot stands between them.

    ``start``: where it stands if there are no parts.
    """
    dof = len(start)
    begins: list[Array] = []
    pieces, laws = list[NDArray[np.int64]](), list[Array]()
    shapes, lengths, count, now, last = list[Array](), list[Array](), 0, 0.0, start

    def stand(until: float) -> None:
        """A piece without length, up to a time."""
        nonlocal count, now
        begins.append(np.array([now]))
        pieces.append(np.array([count], dtype=np.int64))
        laws.append(np.zeros((1, 4)))
        shapes.append(np.array(last)[None, None])
        lengths.append(np.zeros(1))
        count, now = count + 1, until

    for part in parts:
        if not len(part.piece):
            continue
        last = part.shape[part.piece[0], 0] if not shapes else last
        if part.begins[0] > now:
            stand(float(part.begins[0]))
        begins.append(part.begins[:-1])
        pieces.append(part.piece + count)
        laws.append(part.law)
        shapes.append(part.shape)
        lengths.append(part.length)
        count, now = count + len(part.length), float(part.begins[-1])
        x, s = part.begins[-1] - part.begins[-2], part.law[-1]
        s = min(max(s[0] + x * (s[1] + x * (0.5 * s[2] + x * s[3] / 6.0)), 0.0), part.length[-1])
        last = np.asarray(s ** np.arange(part.shape.shape[1]) @ part.shape[part.piece[-1]])
    if not shapes:
        stand(1.0)
    degree = max(2, *(shape.shape[1] for shape in shapes))
    shape = np.concatenate(
        [np.pad(each, ((0, 0), (0, degree - each.shape[1]), (0, 0))) for each in shapes]
    )
    length = np.concatenate(lengths)
    slopes = np.require(greatest_slopes(shape, length), np.float64, ["C", "W"])
    ends = np.einsum("pd,pda->pa", length[:, None] ** np.arange(degree), shape)
    jumps = np.abs(shape[1:, 0] - ends[:-1])
    steps = slopes * length[:, None]
    run = np.zeros((len(length), dof))
    np.cumsum(steps[:-1] + jumps, axis=0, out=run[1:])
    return TimedPath(
        np.concatenate([*begins, np.array([now])]),
        np.concatenate(pieces),
        np.ascontiguousarray(np.concatenate(laws)),
        np.ascontiguousarray(shape),
        length,
        run,
        slopes,
    )


# ── the proof ─────────────────────────────────────────────────────────────────────────────────────


class Wait(NamedTuple):
    """A handshake: robot ``waiting`` (0 or 1) has not passed its wait before the other's signal."""

    waiting: int
    passed: float
    signal: float


@dataclass(frozen=True, slots=True)
class CloseLines:
    """Two lines on which the robots touch or are too close. Times are those of the plan.

    `distance`: 0 or less if they touch; `depth` and `point` (m, in the cell) of a contact.
    """

    lines: tuple[int, int]
    times: tuple[float, float]
    names: tuple[str, str]
    distance: float
    depth: float
    point: tuple[float, float, float]

    @property
    def shift(self) -> float:
        """Delay of the second robot, s."""
        return self.times[0] - self.times[1]


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proven of two robots. `clearance`: at every allowed pair of times, 0 if they touch;
    `seen`: the smallest distance that was computed, at ``seen_at``; the true one lies between.
    `by_line`: proven on the lines of each robot. `finished`: nothing is undecided."""

    clearance: float
    seen: float
    seen_at: tuple[float, float]
    names: tuple[str, str]
    places: tuple[CloseLines, ...]
    by_line: tuple[Array, Array]
    finished: bool
    cells: int


EPS = 1e-4


def prove_apart(
    one: TimedRobot,
    other: TimedRobot,
    *,
    shift: float | None = None,
    waits: Sequence[Wait] = (),
    clearance: float = EPS,
    most_cells: int = MOST_CELLS,
) -> Proof:
    """Proves that two robots keep a clearance (m).

    ``shift``: None proves the planned timing; else every timing in which the robots are at most
    this many seconds apart from it, as far as the handshakes allow it.
    """
    timing = Timing(
        shift is None,
        0.0 if shift is None else shift,
        np.array([tuple(map(float, each)) for each in waits]).reshape(-1, 3),
    )
    horizon = max(one.ends, other.ends)
    rooms = [
        (a, b)
        for a in one.windows(horizon)
        for b in other.windows(horizon)
        if not _out_of_reach(a, b, timing)
    ]
    results = _no_results()
    pairs = _Pairs()
    for a, b in rooms:
        a, b = _same_times(a, b) if timing.together else (a, b)
        pairs.look(a, b, timing, results)
    by_line = np.full(len(one.lines), np.inf), np.full(len(other.lines), np.inf)
    share = TIGHT if timing.together else SHARE_ANY
    for a, b in rooms:
        a, b = _same_times(a, b) if timing.together else (a, b)
        pairs.prove(a, b, timing, clearance, share, most_cells, results)
        _lower(by_line[0], results.low, a)
        _lower(by_line[1], results.low_other, b)
    counts, figures = results.counts, results.figures
    proven = min(float(figures[PROVEN]), float(figures[SEEN]))
    i, j = int(counts[NEAR_I]), int(counts[NEAR_J])
    if results.keys[: int(counts[FOUND]), TOUCHES].any():
        proven = 0.0
    return Proof(
        proven,
        float(figures[SEEN]),
        (float(figures[SEEN_T]), float(figures[SEEN_U])),
        pairs.names(one, other, figures[SEEN_T], figures[SEEN_U], i, j),
        tuple(pairs.place(one, other, results, k) for k in range(int(counts[FOUND]))),
        by_line,
        not counts[UNDECIDED],
        int(counts[CELLS]),
    )


def _out_of_reach(a: Window, b: Window, timing: Timing) -> bool:
    if timing.together:
        return not (a.begin < b.end and b.begin < a.end)
    return a.begin - b.end > timing.shift or b.begin - a.end > timing.shift


def _same_times(a: Window, b: Window) -> tuple[Window, Window]:
    return a.cut(b.begin, b.end), b.cut(a.begin, a.end)


def _no_results() -> Results:
    figures = np.zeros(4)
    figures[PROVEN] = figures[SEEN] = np.inf
    return Results(
        np.zeros(5, dtype=np.int64),
        figures,
        np.zeros((MOST_FOUND, 4)),
        np.zeros((MOST_FOUND, 5), dtype=np.int64),
        np.empty(NODES),
        np.empty(NODES),
    )


class _Pairs:
    """The shapes of both robots side by side, for each two outfits."""

    def __init__(self) -> None:
        self._both: dict[tuple[int, int], tuple[Solids, Ints, Placement, Ints]] = {}
        self._scratch: Scratch = scratch()

    def _of(self, a: Window, b: Window) -> tuple[Solids, Ints, Placement, Ints]:
        key = a.outfit, b.outfit
        if key not in self._both:
            one, other = a.robot.placed(a.outfit).arm, b.robot.placed(b.outfit).arm
            parts, split = (*one.parts, *other.parts), len(one.parts)
            pairs = [
                (i, j)
                for i in range(split)
                for j in range(split, len(parts))
                if parts[i].body > 0 or parts[j].body > 0
            ]
            at = Placement(np.zeros((1, 12)), np.zeros((len(parts), 12)), np.zeros((len(parts), 6)))
            found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            lists = np.zeros((MOST_DEPTH + 2) * max(len(pairs), 1), dtype=np.int64)
            self._both[key] = solids(parts), found, at, lists
        return self._both[key]

    def look(self, a: Window, b: Window, timing: Timing, results: Results) -> None:
        both, _, at, _ = self._of(a, b)
        times = np.linspace(a.begin, a.end, _looks(a, LOOK))
        rows = _allowed(timing, times, (-1.0, -0.5, 0.0, 0.5, 1.0), b)
        look(both, a.tree(), b.tree(), rows, at, self._scratch, False, results)
        if results.figures[SEEN] <= 0.0 and not timing.together:
            # Contacts that are known from the beginning save the search for those with more shift.
            times = np.linspace(a.begin, a.end, _looks(a, CLOSE_LOOK))
            rows = _allowed(timing, times, SHIFTS, b)
            look(both, a.tree(), b.tree(), rows, at, self._scratch, True, results)

    def prove(
        self,
        a: Window,
        b: Window,
        timing: Timing,
        wanted: float,
        share: float,
        most_cells: int,
        results: Results,
    ) -> None:
        both, pairs, at, lists = self._of(a, b)
        results.low.fill(np.inf)
        results.low_other.fill(np.inf)
        most = int(results.counts[CELLS]) + most_cells
        prove(
            both,
            a.tree(),
            b.tree(),
            pairs,
            timing,
            wanted,
            share,
            most,
            at,
            lists,
            self._scratch,
            results,
        )

    def names(
        self, one: TimedRobot, other: TimedRobot, t: float, u: float, i: int, j: int
    ) -> tuple[str, str]:
        first, second = _outfit(one, t), _outfit(other, u)
        if not first.parts or not second.parts:
            return "", ""
        return first.parts[i].name, second.parts[j - len(first.parts)].name

    def place(self, one: TimedRobot, other: TimedRobot, results: Results, k: int) -> CloseLines:
        t, u, apart, _ = results.places[k].tolist()
        line, line_other, i, j, touches = results.keys[k].tolist()
        a = next(w for w in one.windows(max(t, one.ends, 1.0)) if w.begin <= t <= w.end)
        b = next(w for w in other.windows(max(u, other.ends, 1.0)) if w.begin <= u <= w.end)
        both, _, at, _ = self._of(a, b)
        split = len(a.robot.placed(a.outfit).arm.parts)
        for window, time, rows in ((a, t, slice(0, split)), (b, u, slice(split, None))):
            tree = window.tree()
            fill_node(tree, NODES, time, time)
            at.placed[rows], at.ends[rows] = tree.placed[NODES], tree.ends[NODES]
        how = shape_contact(both, at, i, j, self._scratch)
        x, y, z = how.point.tolist()
        names = self.names(one, other, t, u, i, j)
        depth = max(how.depth, 0.0) if touches else 0.0
        return CloseLines((line, line_other), (t, u), names, apart, depth, (x, y, z))


def _looks(window: Window, step: float) -> int:
    return max(math.ceil((window.end - window.begin) / step), 1) + 1


def _allowed(timing: Timing, times: Array, steps: Sequence[float], other: Window) -> Array:
    """Allowed pairs of times: some times of a robot, at shifts in shares of the largest one."""
    most = min(timing.shift, WINDOW)
    shifts = np.zeros(1) if timing.together else np.array(steps) * most
    grid = np.stack(np.broadcast_arrays(times[:, None], times[:, None] - shifts), axis=-1)
    rows = grid.reshape(-1, 2)
    rows = rows[(rows[:, 1] >= other.begin) & (rows[:, 1] <= other.end)]
    for who, passed, signal in timing.waits.tolist():
        here, there = (rows[:, 0], rows[:, 1]) if who == 0.0 else (rows[:, 1], rows[:, 0])
        rows = rows[~((here > passed) & (there < signal))]
    return np.ascontiguousarray(rows)


def _outfit(robot: TimedRobot, t: float) -> PlacedArm:
    found = robot.outfits[0][1]
    for begin, arm in robot.outfits:
        if begin <= t:
            found = arm
    return found


def _lower(by_line: Array, low: Array, window: Window) -> None:
    """Lowers what is proven of lines to what is proven of the nodes they share time with."""
    least = low.copy()
    for level in range(1, LEVELS + 1):
        first = 1 << level
        least[first : 2 * first] = np.minimum(
            least[first : 2 * first], np.repeat(least[first // 2 : first], 2)
        )
    leaves = least[NODES // 2 :]
    lines = window.robot.lines
    length = (window.end - window.begin) / len(leaves)
    if length <= 0.0:
        return
    ends = np.append(lines[1:], np.inf)
    chosen = np.flatnonzero((lines <= window.end) & (ends >= window.begin))
    starts = np.clip((lines[chosen] - window.begin) / length - 1e-6, 0, len(leaves) - 1).astype(int)
    stops = np.clip((ends[chosen] - window.begin) / length + 1e-6, 0, len(leaves) - 1).astype(int)
    for k, a, b in zip(chosen.tolist(), starts.tolist(), stops.tolist(), strict=True):
        by_line[k] = min(by_line[k], float(leaves[a : b + 1].min()))
