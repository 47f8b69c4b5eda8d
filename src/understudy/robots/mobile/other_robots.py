"""Robots that see each other: what lidars and protective fields find of others, and contact.

With `fleet.robots_see_each_other` the footprint of each simulated robot, where it is now, is an
obstacle of all the others: four lines. A protective field also keeps off the way on which a robot
that drives can still stop, straight ahead of it: two robots that meet both brake, and neither has
the whole distance. This way does not count if it reaches the robot already, so that a robot is not
stopped by one behind it. Robots are found by a table of square cells (a hash of row and column), so
that a robot looks at those near it alone; the order in which they are found changes no result.

Two footprints that would overlap after a tick are in contact: both robots stay where they were
before the tick, with the speed 0.
"""

import math
from collections.abc import Sequence

import numpy as np

from understudy.robots.mobile import drive
from understudy.robots.mobile.field import (
    AHEAD,
    HALF_LENGTH,
    HALF_WIDTH,
    MARGIN,
    TOUCH,
    WIDENING,
    corner_radius,
    gap_to_swept,
    path_middle,
    path_seconds,
    seconds_to_touch,
    swept_area,
)
from understudy.robots.mobile.hardware_interface import Floats, Rows
from understudy.robots.mobile.sensors import scan, seen_line
from understudy.robots.mobile.wheels import pace
from understudy.space.compiled import borrowed, compiled, inlined

NONE = -1
APART = 1e-9
"""Metres by which footprints overlap that only touch."""
LATE_S = 0.1
"""Seconds until a robot begins to brake."""
CELL = 2.0
"""Metres of a cell, at least; twice the reach of the largest robot if that is more."""


class OtherRobots:
    """The robots of a layout as obstacles of each other. ``robots``: those in MOCK mode;
    ``devices``: the number of all devices; ``figures`` and ``body``: of all, as in `drive`."""

    def __init__(
        self,
        outlines: Floats,
        robots: Sequence[int],
        devices: int,
        figures: Floats,
        body: Floats,
    ) -> None:
        count = len(outlines)
        self._outlines = outlines
        self._robots = np.array(robots, dtype=np.int64)
        reaches = [corner_radius(outlines[row]) for row in robots]
        self._reach = max(reaches, default=0.0)
        self._size = max(CELL, 2.0 * self._reach)
        self._heads = np.full(1 << max(4, (2 * count).bit_length()), NONE)
        """The first robot of each bucket of cells; `_next` has the one after it."""
        self._next = np.full(count, NONE)
        self._sides = np.zeros((count, 4, 4))
        """Sides of each footprint, as lines."""
        self._stopping = np.zeros((count, 4, 4))
        """As `_sides`, with the way on which the robot can stop."""
        self._stops = np.zeros(count)
        self._figures = figures
        self._version = 0
        """Is another number after each motion."""
        self._looked = np.full((devices, 4), np.nan)
        self._pairs = np.zeros((8 * count, 2), dtype=np.int64)
        self._body = body
        self.place(body)
        nowhere, none = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.watch(nowhere, nowhere, np.zeros((0, 3)), none, none)
        # All kernels are compiled before time starts: lidars look at the start, too.

    def place(self, body: Floats) -> None:
        """The robots are here now."""
        self._body = body
        self._version += 1
        place_footprints(
            self._robots,
            body,
            self._outlines,
            self._figures,
            self._size,
            self._heads,
            self._next,
            self._sides,
            self._stopping,
            self._stops,
        )

    def look(
        self, robots: Rows, eyes: Floats, views: Floats, longest: Floats, found: Floats
    ) -> None:
        """Lowers ``found`` of lidars to the distance of the nearest robot in the field of view."""
        see_robots(
            robots,
            eyes,
            views,
            longest,
            self._reach,
            self._body,
            self._size,
            self._heads,
            self._next,
            self._sides,
            found,
        )

    def scan(self, robot: int, eye: Floats, angles: Floats, longest: float, found: Floats) -> None:
        """Lowers ``found`` of the rays of a lidar (1, rays) to the robots that they meet."""
        lines = self._sides[self._robots[self._robots != robot]].reshape(-1, 4)
        away = np.hypot(lines[:, 0] - eye[0, 0], lines[:, 1] - eye[0, 1])
        near = np.ascontiguousarray(lines[away <= longest + 2.0 * self._reach])
        ranges, no_circles = np.empty_like(found), np.zeros((0, 3))
        spans = np.array([[0, 0]]), np.array([[0, len(near)]])
        scan(eye, angles, longest, no_circles, spans[0], near, spans[1], ranges)
        np.minimum(found, ranges, out=found)

    def watch(
        self, rows: Rows, robots: Rows, motion: Floats, farthest: Floats, ahead: Floats
    ) -> None:
        """Fills ``ahead`` of lidars: how far their robots can go on with ``motion`` until they
        touch another robot; infinite if farther than ``farthest``. ``robots``: of all devices."""
        watch_robots(
            rows,
            robots,
            motion,
            farthest,
            self._version,
            self._reach,
            self._outlines,
            self._body,
            self._size,
            self._heads,
            self._next,
            self._sides,
            self._stopping,
            self._stops,
            self._looked,
            ahead,
        )

    def overlaps(self) -> list[tuple[int, int]]:
        """Robots that stand in each other, the lower row first."""
        count = find_overlaps(
            self._robots,
            self._body,
            self._size,
            self._heads,
            self._next,
            self._sides,
            self._pairs,
        )
        return sorted({(one, other) for one, other in self._pairs[:count].tolist()})

    def separate(self, before: Floats, body: Floats) -> list[tuple[int, int]]:
        """Puts robots back that ran into each other; returns these pairs. ``before``: the bodies
        before the tick. A robot that is put back may stand in the way of a third one."""
        met: dict[tuple[int, int], None] = {}
        while True:
            self.place(body)
            pairs = self.overlaps()
            hit = {row for pair in pairs for row in pair}
            back = [row for row in sorted(hit) if (body[row, :3] != before[row, :3]).any()]
            if not back:
                return list(met)
            met |= dict.fromkeys(pair for pair in pairs if not set(pair).isdisjoint(back))
            body[back] = before[back]
            body[back, drive.FORWARD : drive.TURNING + 1] = 0.0


# ── kernels ─────────────────────────────────────────────────────────────────────────────────────


@inlined
def bucket(column: int, row: int, buckets: int) -> int:
    """The bucket of a cell; ``buckets`` is a power of 2."""
    return ((column * 73856093) ^ (row * 19349663)) & (buckets - 1)


@compiled
def place_footprints(
    robots: Rows,
    body: Floats,
    outlines: Floats,
    figures: Floats,
    size: float,
    heads: Rows,
    following: Rows,
    sides: Floats,
    stopping: Floats,
    stops: Floats,
) -> None:
    """Fills the sides of all footprints, without and with the way of stopping, these ways, and the
    table of cells."""
    heads[:] = NONE
    for row in robots:
        x, y = body[row, 0], body[row, 1]
        c, s = math.cos(body[row, 2]), math.sin(body[row, 2])
        ahead, half, side = (
            outlines[row, AHEAD],
            outlines[row, HALF_LENGTH],
            outlines[row, HALF_WIDTH],
        )
        forward, sideways = body[row, drive.FORWARD], body[row, drive.SIDEWAYS]
        speed, slower = math.hypot(forward, sideways), figures[row, drive.MAX_DECELERATION]
        seconds = LATE_S + (speed / slower / 2.0 if slower > 0.0 else 0.0)
        stops[row] = speed * seconds
        for n in range(4):
            front, left = n == 0 or n == 3, n < 2
            along, across = ahead + (half if front else -half), side if left else -side
            _set_corner(sides, row, n, x + along * c - across * s, y + along * s + across * c)
            along += seconds * (max(forward, 0.0) if front else min(forward, 0.0))
            across += seconds * (max(sideways, 0.0) if left else min(sideways, 0.0))
            _set_corner(stopping, row, n, x + along * c - across * s, y + along * s + across * c)
        place = bucket(math.floor(x / size), math.floor(y / size), heads.size)
        following[row] = heads[place]
        heads[place] = row


@inlined
def _set_corner(sides: Floats, row: int, n: int, x: float, y: float) -> None:
    """The beginning of a side, and the end of the one before."""
    sides[row, n, 0], sides[row, n, 1] = x, y
    sides[row, n - 1, 2], sides[row, n - 1, 3] = x, y


@compiled
def see_robots(  # kernel
    robots: Rows,
    eyes: Floats,
    views: Floats,
    longest: Floats,
    reach: float,
    body: Floats,
    size: float,
    heads: Rows,
    following: Rows,
    sides: Floats,
    found: Floats,
) -> None:
    """Lowers ``found`` of lidars to the distance of the nearest other robot in the field of view;
    ``robots``: of the lidars. Cells are searched in rings around the lidar, until all robots of a
    ring are farther than what was found."""
    for n in range(eyes.shape[0]):
        x, y, yaw = eyes[n, 0], eyes[n, 1], eyes[n, 2]
        least = min(found[n], longest[n])
        column, row = math.floor(x / size), math.floor(y / size)
        rings = math.ceil((longest[n] + reach) / size) + 1
        if rings * rings > heads.size:  # fewer robots than cells
            for other in heads:
                while other != NONE:
                    least = _nearer(
                        robots[n], other, x, y, yaw, views[n], reach, body, sides, least
                    )
                    other = following[other]
        else:
            for ring in range(rings + 1):
                if (ring - 1) * size - reach >= least:
                    break
                for across in range(-ring, ring + 1):
                    step = 1 if abs(across) == ring else 2 * ring
                    for along in range(-ring, ring + 1, step):
                        other = heads[bucket(column + along, row + across, heads.size)]
                        while other != NONE:
                            least = _nearer(
                                robots[n], other, x, y, yaw, views[n], reach, body, sides, least
                            )
                            other = following[other]
        if least < longest[n]:
            found[n] = min(found[n], least)


@inlined
def _nearer(
    robot: int,
    other: int,
    x: float,
    y: float,
    yaw: float,
    view: float,
    reach: float,
    body: Floats,
    sides: Floats,
    least: float,
) -> float:
    """The distance of another robot in the field of view of a lidar, if it is below ``least``."""
    if other != robot and math.hypot(body[other, 0] - x, body[other, 1] - y) - reach < least:
        for n in range(4):
            x1, y1 = sides[other, n, 0] - x, sides[other, n, 1] - y
            x2, y2 = sides[other, n, 2] - x, sides[other, n, 3] - y
            least = min(least, seen_line(x1, y1, x2, y2, yaw, view, least))
    return least


@compiled
def watch_robots(  # kernel
    rows: Rows,
    robots: Rows,
    motion: Floats,
    farthest: Floats,
    version: int,
    reach: float,
    outlines: Floats,
    body: Floats,
    size: float,
    heads: Rows,
    following: Rows,
    sides: Floats,
    stopping: Floats,
    stops: Floats,
    looked: Floats,
    ahead: Floats,
) -> None:
    """Fills ``ahead`` of lidars as `sensors.watch_ahead` does, for the other robots: infinite if
    none is within ``farthest``. ``stops``: the way of stopping of each robot. ``looked``: motion of
    the last result, and where the robots were then (``version``)."""
    longest_stop = stops.max()
    for row in rows:
        robot, same = robots[row], looked[row, 3] == version
        for column in range(3):
            same = same and looked[row, column] == motion[row, column]
            looked[row, column] = motion[row, column]
        looked[row, 3] = version
        if same:
            continue
        ahead[row] = math.inf
        pose, outline = borrowed(body[robot]), borrowed(outlines[robot])
        speeds, around = borrowed(motion[row]), corner_radius(outlines[robot])
        metres = pace(speeds[0], speeds[1], speeds[2], around)
        if metres <= 0.0:
            continue
        horizon, growth = path_seconds(speeds, farthest[row] / metres), WIDENING * metres
        x, y, far, fastest = path_middle(pose, outline, speeds, horizon, MARGIN, growth, around)
        swept = swept_area(outline, speeds, horizon, fastest, MARGIN + TOUCH + growth * horizon)
        c, s = math.cos(pose[2]), math.sin(pose[2])
        if swept[3] < 0.0 and -swept[3] < far:  # it goes round within a smaller circle
            x, y = pose[0] + swept[0] * c - swept[1] * s, pose[1] + swept[0] * s + swept[1] * c
            far = -swept[3]
        far += reach + longest_stop
        first = horizon
        for line in range(math.floor((y - far) / size), math.floor((y + far) / size) + 1):
            for column in range(math.floor((x - far) / size), math.floor((x + far) / size) + 1):
                other = heads[bucket(column, line, heads.size)]
                while other != NONE:
                    at, beside = body[other, 0], body[other, 1]
                    size_of = reach + stops[other]
                    gap = gap_to_swept(pose, c, s, swept, at, beside, at, beside, size_of)
                    if other != robot and not gap > 0.0:
                        way = horizon
                        if stops[other] > 0.0:
                            way = _seconds_to_robot(
                                pose,
                                outline,
                                speeds,
                                first,
                                growth,
                                around,
                                fastest,
                                stopping,
                                other,
                            )
                        if way > 0.0:
                            first = min(first, way)
                        first = _seconds_to_robot(
                            pose, outline, speeds, first, growth, around, fastest, sides, other
                        )
                    other = following[other]
        if first < horizon:
            ahead[row] = first * metres


@compiled
def _seconds_to_robot(
    pose: Floats,
    outline: Floats,
    speeds: Floats,
    first: float,
    growth: float,
    around: float,
    fastest: float,
    sides: Floats,
    other: int,
) -> float:
    """Seconds until a robot touches one of these sides of another one, at most ``first``."""
    for n in range(4):
        first = seconds_to_touch(
            pose,
            outline,
            speeds,
            first,
            MARGIN,
            growth,
            around,
            fastest,
            sides[other, n, 0],
            sides[other, n, 1],
            sides[other, n, 2],
            sides[other, n, 3],
            0.0,
        )
    return first


@compiled
def find_overlaps(  # kernel
    robots: Rows,
    body: Floats,
    size: float,
    heads: Rows,
    following: Rows,
    sides: Floats,
    pairs: Rows,
) -> int:
    """Fills ``pairs`` with the robots whose footprints overlap, and returns their number; a pair
    may be there several times. No two robots overlap that are two cells apart."""
    count = 0
    for one in robots:
        column, line = math.floor(body[one, 0] / size), math.floor(body[one, 1] / size)
        for across in range(-1, 2):
            for along in range(-1, 2):
                other = heads[bucket(column + along, line + across, heads.size)]
                while other != NONE:
                    if other > one and count < pairs.shape[0] and _overlap(sides, one, other):
                        pairs[count, 0], pairs[count, 1] = one, other
                        count += 1
                    other = following[other]
    return count


@compiled
def _overlap(sides: Floats, one: int, other: int) -> bool:
    """Whether two rectangles overlap: no side of either has the whole other one beyond it."""
    return not (_beyond(sides, one, other) or _beyond(sides, other, one))


@compiled
def _beyond(sides: Floats, one: int, other: int) -> bool:
    """Whether all corners of another rectangle are on the outer side of a side of this one; the
    corners go round to the left."""
    for n in range(4):
        x, y = sides[one, n, 0], sides[one, n, 1]
        dx, dy = sides[one, n, 2] - x, sides[one, n, 3] - y
        length = math.hypot(dx, dy)
        inside = -math.inf
        for corner in range(4):
            left = dx * (sides[other, corner, 1] - y) - dy * (sides[other, corner, 0] - x)
            inside = max(inside, left)
        if inside <= APART * length:
            return True
    return False
