"""Shortest paths of a car that drives forwards and backwards with a smallest turning radius.

J. A. Reeds and L. A. Shepp, "Optimal paths for a car that goes both forwards and backwards",
Pacific Journal of Mathematics 145 (1990): a shortest path has at most five segments, each an arc
with the smallest radius or a line, in one of 48 orders. The formulas (8.1) … (8.11) give the
lengths for eight of them; the others are these in mirrored or reversed worlds. Every solution is
followed to its end here and counts only if it ends at the goal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.wheels import moved_on_arc, wrapped
from understudy.space.compiled import compiled

Floats = NDArray[np.float64]
Lengths = tuple[float, float, float, float, float]

SEGMENTS = 5
LEFT, STRAIGHT, RIGHT = 1.0, 0.0, -1.0
WORDS = np.array(
    [
        (LEFT, STRAIGHT, LEFT, 0, 0),
        (LEFT, STRAIGHT, RIGHT, 0, 0),
        (LEFT, RIGHT, LEFT, 0, 0),
        (LEFT, RIGHT, LEFT, RIGHT, 0),
        (LEFT, RIGHT, LEFT, RIGHT, 0),
        (LEFT, RIGHT, STRAIGHT, LEFT, 0),
        (LEFT, RIGHT, STRAIGHT, RIGHT, 0),
        (LEFT, RIGHT, STRAIGHT, LEFT, RIGHT),
    ]
)
"""The segments of each formula."""
QUARTER = math.pi / 2.0
NONE: Lengths = (math.nan, 0.0, 0.0, 0.0, 0.0)
ENDS = 1e-6
"""Radii by which a solution may miss the goal."""
YAWS = 72
"""Final yaws that are tried if any is allowed."""


@compiled
def plan_to_pose(
    x: float, y: float, yaw: float, radius: float, change: float, path: Floats
) -> float:
    """Fills ``path`` with the best way to a pose, seen from the car: for each segment curvature
    (1/m) and length (m; backwards: below 0).

    Returns its cost: its length and ``change`` metres for each segment after the first; infinite
    if there is no way.
    """
    best = math.inf
    trial = np.zeros((SEGMENTS, 2))
    for word in range(WORDS.shape[0]):
        for world in range(8):
            if not _solve(word, world, x / radius, y / radius, yaw, trial):
                continue
            cost = -change
            for n in range(SEGMENTS):
                cost += abs(trial[n, 1]) * radius + (change if trial[n, 1] != 0.0 else 0.0)
            if cost < best:
                best = cost
                for n in range(SEGMENTS):
                    path[n, 0], path[n, 1] = trial[n, 0] / radius, trial[n, 1] * radius
    return best


@compiled
def plan_to_place(x: float, y: float, radius: float, change: float, path: Floats) -> float:
    """As `plan_to_pose`, with the final yaw that makes the best path."""
    best = math.inf
    trial = np.zeros((SEGMENTS, 2))
    for n in range(YAWS + 4):
        yaw = n * 2.0 * math.pi / YAWS if n < YAWS else _tangent(x / radius, y / radius, n)
        cost = plan_to_pose(x, y, yaw, radius, change, trial)
        if cost < best:
            best = cost
            path[:] = trial
    return best


@compiled
def _tangent(x: float, y: float, n: int) -> float:
    """The yaw after an arc and a line to a place, to the left or right, forwards or backwards."""
    mirrored = 1.0 if n % 2 == 0 else -1.0
    backwards = 1.0 if n % 4 < 2 else -1.0
    dx, dy = x * backwards, y * mirrored - 1.0
    square = dx * dx + dy * dy - 1.0
    if square < 0.0:
        return 0.0
    return mirrored * backwards * (math.atan2(dy, dx) + math.atan2(1.0, math.sqrt(square)))


@compiled
def _solve(word: int, world: int, x: float, y: float, yaw: float, path: Floats) -> bool:
    """Fills ``path`` with a word in a world: bit 0 reverses the driving direction, bit 1 swaps left
    and right, bit 2 begins at the goal."""
    drive = -1.0 if world & 1 else 1.0
    side = -1.0 if world & 2 else 1.0
    px, py, turned = x * drive, y * side, yaw * drive * side
    if world & 4:
        along, across = math.cos(turned), math.sin(turned)
        px, py = px * along + py * across, px * across - py * along
    lengths = _lengths(word, px, py, turned)
    if math.isnan(lengths[0]):
        return False
    used = SEGMENTS
    while WORDS[word, used - 1] == 0.0:
        used -= 1
    path[:] = 0.0
    for n in range(used):
        place = used - 1 - n if world & 4 else n
        path[place, 0] = WORDS[word, n] * side
        path[place, 1] = lengths[n] * drive
    ex, ey, end = follow(0.0, 0.0, 0.0, path)
    return math.hypot(ex - x, ey - y) <= ENDS and abs(wrapped(end - yaw)) <= ENDS


@compiled
def follow(x: float, y: float, yaw: float, path: Floats) -> tuple[float, float, float]:
    """The pose at the end of a path."""
    for n in range(path.shape[0]):
        x, y, yaw = moved_on_arc(x, y, yaw, path[n, 1], 0.0, path[n, 0] * path[n, 1])
    return x, y, yaw


# ── the formulas of the paper, radius 1 ─────────────────────────────────────────────────────────


@compiled
def _lengths(word: int, x: float, y: float, yaw: float) -> Lengths:
    """Lengths of the segments; NaN if the word does not lead there."""
    same_x, same_y = x - math.sin(yaw), y - 1.0 + math.cos(yaw)
    other_x, other_y = x + math.sin(yaw), y - 1.0 - math.cos(yaw)
    if word == 0:
        t = math.atan2(same_y, same_x)
        return t, math.hypot(same_x, same_y), wrapped(yaw - t), 0.0, 0.0
    if word == 1:
        return _left_straight_right(other_x, other_y, yaw)
    if word == 2:
        return _left_right_left(same_x, same_y, yaw)
    if word == 3 or word == 4:
        return _four_arcs(word == 3, other_x, other_y, yaw)
    if word == 5:
        return _to_left(same_x, same_y, yaw)
    if word == 6:
        return _to_right(other_x, other_y, yaw)
    return _five(other_x, other_y, yaw)


@compiled
def _left_straight_right(x: float, y: float, yaw: float) -> Lengths:
    """(8.2)"""
    square = x * x + y * y - 4.0
    if square < 0.0:
        return NONE
    u = math.sqrt(square)
    t = wrapped(math.atan2(y, x) + math.atan2(2.0, u))
    return t, u, wrapped(t - yaw), 0.0, 0.0


@compiled
def _left_right_left(x: float, y: float, yaw: float) -> Lengths:
    """(8.3), (8.4)"""
    away = math.hypot(x, y)
    if away > 4.0:
        return NONE
    u = -2.0 * math.asin(away / 4.0)
    t = wrapped(math.atan2(y, x) + u / 2.0 + math.pi)
    return t, u, wrapped(yaw - t + u), 0.0, 0.0


@compiled
def _four_arcs(forwards: bool, x: float, y: float, yaw: float) -> Lengths:
    """(8.7): the second arc is driven forwards; (8.8): backwards."""
    square = x * x + y * y
    rho = (2.0 + math.sqrt(square)) / 4.0 if forwards else (20.0 - square) / 16.0
    if rho < 0.0 or rho > 1.0:
        return NONE
    u = math.acos(rho) if forwards else -math.acos(rho)
    third = -u if forwards else u
    delta = wrapped(u - third)
    a, b = math.sin(u) - math.sin(delta), math.cos(u) - math.cos(delta) - 1.0
    t = math.atan2(y * a - x * b, x * a + y * b)
    if 2.0 * (math.cos(delta) - math.cos(third) - math.cos(u)) + 3.0 < 0.0:
        t += math.pi
    t = wrapped(t)
    return t, u, third, wrapped(t - u + third - yaw), 0.0


@compiled
def _to_left(x: float, y: float, yaw: float) -> Lengths:
    """(8.9)"""
    square = x * x + y * y - 4.0
    if square < 0.0:
        return NONE
    r = math.sqrt(square)
    t = wrapped(math.atan2(y, x) + math.atan2(r, -2.0))
    return t, -QUARTER, 2.0 - r, wrapped(yaw - QUARTER - t), 0.0


@compiled
def _to_right(x: float, y: float, yaw: float) -> Lengths:
    """(8.10)"""
    rho, t = math.hypot(x, y), math.atan2(x, -y)
    return t, -QUARTER, 2.0 - rho, wrapped(t + QUARTER - yaw), 0.0


@compiled
def _five(x: float, y: float, yaw: float) -> Lengths:
    """(8.11)"""
    square = x * x + y * y - 4.0
    if square < 0.0:
        return NONE
    u = 4.0 - math.sqrt(square)
    t = wrapped(math.atan2((4.0 - u) * x - 2.0 * y, -2.0 * x + (u - 4.0) * y))
    return t, -QUARTER, u, -QUARTER, wrapped(t - yaw)
