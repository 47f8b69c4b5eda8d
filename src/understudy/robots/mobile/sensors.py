"""Lidars and barcode scanners of robots in MOCK mode.

A lidar measures the distances that rays travel from many robots until they meet an obstacle.

An obstacle is a circle (x, y, radius) or a line (x1, y1, x2, y2); a box is four lines. The
obstacles of all worlds stand in two tables; a robot sees a span of rows of each. A ray that begins
inside a circle has the distance 0.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.robots.mobile import drive
from understudy.robots.mobile.config.layout import (
    DeviceRow,
    Layout,
    centre_ahead,
    outlines_of,
    track_of,
)
from understudy.robots.mobile.config.profile import BarcodeMarker, BarcodeScan
from understudy.robots.mobile.config.robot_file import LidarConfig, RobotFile, ScannerConfig
from understudy.robots.mobile.field import (
    CERTIFICATE,
    LEFT,
    NEAR,
    Spans,
    still_free,
    watched_way,
)
from understudy.robots.mobile.hardware_interface import Bools, Floats, LidarReadings, Rows, Scan
from understudy.robots.mobile.tables import Columns, columns, restore
from understudy.robots.mobile.wheels import wrapped
from understudy.robots.mobile.world import Worlds
from understudy.space.compiled import borrowed, compiled
from understudy.units import DEG, LATEST, MM, NS_PER_SECOND

if TYPE_CHECKING:
    from understudy.robots.mobile.other_robots import OtherRobots


@compiled
def scan(
    eyes: Floats,
    angles: Floats,
    longest: float,
    circles: Floats,
    circle_spans: Spans,
    lines: Floats,
    line_spans: Spans,
    distances: Floats,
) -> None:
    """Fills ``distances``, one row for each robot and one column for each ray.

    ``eyes``: x, y and yaw of the lidar; ``angles``: of the rays, seen from the lidar.
    """
    for row in range(eyes.shape[0]):
        x, y, yaw = eyes[row, 0], eyes[row, 1], eyes[row, 2]
        for ray in range(angles.size):
            along, across = math.cos(yaw + angles[ray]), math.sin(yaw + angles[ray])
            nearest = longest
            for n in range(circle_spans[row, 0], circle_spans[row, 1]):
                nearest = min(
                    nearest,
                    to_circle(circles[n, 0] - x, circles[n, 1] - y, circles[n, 2], along, across),
                )
            for n in range(line_spans[row, 0], line_spans[row, 1]):
                nearest = min(
                    nearest,
                    to_line(
                        lines[n, 0] - x,
                        lines[n, 1] - y,
                        lines[n, 2] - x,
                        lines[n, 3] - y,
                        along,
                        across,
                    ),
                )
            distances[row, ray] = nearest


@compiled
def look(
    eyes: Floats,
    views: Floats,
    longest: Floats,
    circles: Floats,
    circle_spans: Spans,
    lines: Floats,
    line_spans: Spans,
    nearest: Floats,
) -> None:
    """Fills ``nearest``: the exact distance of the nearest obstacle in the field of view of each
    lidar; infinite beyond ``longest``. ``views``: half the angle of the field of view."""
    for row in range(eyes.shape[0]):
        x, y, yaw = eyes[row, 0], eyes[row, 1], eyes[row, 2]
        least = math.inf
        for n in range(circle_spans[row, 0], circle_spans[row, 1]):
            dx, dy, radius = circles[n, 0] - x, circles[n, 1] - y, circles[n, 2]
            if math.hypot(dx, dy) - radius < least:
                least = min(least, seen_circle(dx, dy, radius, yaw, views[row]))
        for n in range(line_spans[row, 0], line_spans[row, 1]):
            x1, y1, x2, y2 = lines[n, 0] - x, lines[n, 1] - y, lines[n, 2] - x, lines[n, 3] - y
            least = min(least, seen_line(x1, y1, x2, y2, yaw, views[row], least))
        nearest[row] = least if least <= longest[row] else math.inf


@compiled
def is_seen(x: float, y: float, yaw: float, view: float) -> bool:
    """Whether a point is in the field of view of a lidar in the origin."""
    return abs(wrapped(math.atan2(y, x) - yaw)) <= view


@compiled
def seen_circle(x: float, y: float, radius: float, yaw: float, view: float) -> float:
    """Distance of the nearest point of a circle in the field of view: the one towards its centre,
    else where an edge of the field meets it."""
    if view >= math.pi or is_seen(x, y, yaw, view):
        return max(math.hypot(x, y) - radius, 0.0)
    least = math.inf
    for edge in (yaw - view, yaw + view):
        least = min(least, to_circle(x, y, radius, math.cos(edge), math.sin(edge)))
    return least


@compiled
def seen_line(
    x1: float, y1: float, x2: float, y2: float, yaw: float, view: float, least: float
) -> float:
    """Distance of the nearest point of a line in the field of view, if below ``least``: the foot of
    the perpendicular, else an end, or where an edge of the field meets it."""
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    share = -(x1 * dx + y1 * dy) / square if square > 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    x, y = x1 + share * dx, y1 + share * dy
    distance = math.hypot(x, y)
    if distance >= least or view >= math.pi or is_seen(x, y, yaw, view):
        return min(distance, least)
    if is_seen(x1, y1, yaw, view):
        least = min(least, math.hypot(x1, y1))
    if is_seen(x2, y2, yaw, view):
        least = min(least, math.hypot(x2, y2))
    for edge in (yaw - view, yaw + view):
        least = min(least, to_line(x1, y1, x2, y2, math.cos(edge), math.sin(edge)))
    return least


@compiled
def to_circle(x: float, y: float, radius: float, along: float, across: float) -> float:
    """Distance of a circle around x, y from the origin, in a direction; infinite if missed."""
    behind = x * x + y * y - radius * radius
    if behind <= 0.0:
        return 0.0
    ahead = x * along + y * across
    if ahead <= 0.0:
        return math.inf
    inside = ahead * ahead - behind
    if inside < 0.0:
        return math.inf
    return ahead - math.sqrt(inside)


@compiled
def to_line(x1: float, y1: float, x2: float, y2: float, along: float, across: float) -> float:
    """Distance of the line between two points from the origin, in a direction."""
    dx, dy = x2 - x1, y2 - y1
    turn = along * dy - across * dx
    if turn == 0.0:
        return math.inf
    share = (x1 * across - y1 * along) / turn
    if share < 0.0 or share > 1.0:
        return math.inf
    distance = (x1 * dy - y1 * dx) / turn
    return distance if distance >= 0.0 else math.inf


# ── lidars and scanners ───────────────────────────────────────────────────────────────────────────

# A lidar reports the exact distance of the nearest obstacle in its field of view `scanHz` times a
# second. Its protective field (`ahead`) is evaluated at every tick: obstacles count that the
# outline of the robot would touch on its way, in every direction. The full scan by rays is computed
# when it is asked for.
#
# A scanner reads a marker once each time that the marker comes within its range.

NOTHING = -1.0
"""Stands for an infinite distance in the tables: JSON has no infinite number."""
MORE_AHEAD = 0.5
"""Metres by which the protective field reaches farther than the safety distances and the braking
distance."""


class SensorsState(Struct, frozen=True):
    """State of the sensors. `waiting`: scripted scans of robots that have not ticked since."""

    columns: Columns
    inside: list[int]
    waiting: list[Scan]
    scans: list[Scan]


class MockSensors:
    """`SensorDriver` of all devices of a layout. ``body``: of all robots, as in `drive`.
    ``others``: if the robots see each other."""

    def __init__(
        self, layout: Layout, worlds: Worlds, body: Floats, others: "OtherRobots | None" = None
    ) -> None:
        self._layout = layout
        self._worlds = worlds
        self._others = others
        devices = len(layout.devices)
        self._robot = np.array([row.robot for row in layout.devices], dtype=np.int64)
        self._mounts = np.array([mount_of(layout, row) for row in layout.devices]).reshape(-1, 3)
        self._connected = np.ones(devices, dtype=np.bool_)
        self.outlines = outlines_of(layout)
        self.lidar_rows = _of_type(layout, "LIDAR")
        self._views, self._longest, self._hz = np.zeros((3, devices))
        self._farthest = np.zeros(devices)
        for row in self.lidar_rows:
            config = _lidar(layout, row)
            self._views[row] = config.field_of_view_deg * DEG / 2.0
            self._longest[row] = config.max_range_meters
            self._hz[row] = config.scan_hz
            needed = _needed_ahead(layout.robots[self._robot[row]])
            self._farthest[row] = min(needed, config.max_range_meters)
        self._nearest, self._ahead = np.full((2, devices), NOTHING)
        self._ahead_of_others = np.full(devices, np.inf)
        """As `_ahead`, until the robot touches another one."""
        self._scanned = np.full(devices, -1, dtype=np.int64)
        """Number of the last scan since the time 0."""
        self._scan_poses = np.zeros((devices, 3))
        self._is_fresh = np.zeros(devices, dtype=np.bool_)
        """Whether nothing in the world has changed since the last scan."""
        self._is_measured = np.ones(devices, dtype=np.bool_)
        """Whether `_nearest` is that of the last scan."""
        self._motion = np.zeros((devices, 3))
        self._looked = np.full((devices, 6), np.nan)
        """Pose and motion for which `_ahead` was computed."""
        self._spots = np.full((devices, 3), -1.0)
        self._near = np.zeros((devices, 2 + NEAR), dtype=np.int64)
        """The obstacles near the path of each robot; see `field.watched_way`."""
        self._certificates = np.zeros((devices, CERTIFICATE))
        self._body = body
        self._markers = Markers(layout)
        self._waiting: list[Scan] = []
        self._scans: list[Scan] = []

    @property
    def scanner_rows(self) -> Rows:
        return self._markers.scanners

    # ── SensorDriver ──

    def set_motion(self, rows: Rows, velocity: Floats) -> None:
        moving = np.empty_like(rows)
        count = take_motion(rows, velocity, self._motion, moving)
        self._look_ahead(moving[:count])

    def read_lidars(self, rows: Rows) -> LidarReadings:
        connected = self._connected[rows]
        ahead = _distances(self._ahead[rows], connected)
        if self._others is not None:
            others = self._ahead_of_others[rows]
            ahead = np.minimum(ahead, np.where(connected, others, np.inf))
        return LidarReadings(ahead, connected)

    def nearest(self, rows: Rows) -> Floats:
        self._measure(rows)
        return _distances(self._nearest[rows], self._connected[rows])

    def ranges(self, row: int) -> Floats:
        config = _lidar(self._layout, row)
        if not self._connected[row]:
            return np.full(config.rays, np.inf)
        robot = slice(self._robot[row], self._robot[row] + 1)
        found: Floats = np.zeros((1, config.rays))
        worlds, eye = self._worlds, self._eyes(np.array([row]))
        scan(
            eye,
            ray_angles(config),
            config.max_range_meters,
            worlds.circles,
            worlds.circle_spans[robot],
            worlds.lines,
            worlds.line_spans[robot],
            found,
        )
        if self._others is not None:
            of, longest = int(self._robot[row]), config.max_range_meters
            self._others.scan(of, eye, ray_angles(config), longest, found)
        found[found >= config.max_range_meters] = np.inf
        return found.ravel()

    def take_scans(self) -> Sequence[Scan]:
        taken, self._scans = self._scans, []
        return taken

    def connected(self, rows: Rows) -> Bools:
        return self._connected[rows]

    # ── what happens to them ──

    def connect(self, row: int, connected: bool) -> None:
        self._connected[row] = connected

    def read_code(self, robot: int, code: BarcodeScan) -> None:
        """The first scanner of a robot that is connected reads a code of the script."""
        rows = self.scanner_rows
        for row in rows[(self._robot[rows] == robot) & self._connected[rows]][:1]:
            self._waiting.append(Scan(int(row), code.code, code.type, None))

    def world_changes(self) -> None:
        """The world is about to change: what was seen until now is measured."""
        self._measure(self.lidar_rows)

    def note_change(self) -> None:
        """The world has changed."""
        self._is_fresh[:] = False
        self._looked[:] = np.nan
        self._spots[:, 2] = -1.0
        self._certificates[:, LEFT] = 0.0

    def note_motion(self) -> None:
        """A robot has moved that others see."""
        self._is_fresh[:] = False

    def start(self, body: Floats) -> None:
        """What lidars report before the first tick."""
        self._body = body
        self._scanned[:] = -1
        self._look(self.lidar_rows, 0)

    def step(self, rows: Rows, lidars: Rows, scanners: Rows, body: Floats, now: int) -> None:
        """Looks around; ``rows``: of the robots that moved, ``body``: of all robots."""
        self._body = body
        self._look(lidars, now)
        self._look_ahead(lidars)
        if self._waiting:
            stepped = set(rows.tolist())
            due = [scan for scan in self._waiting if self._robot[scan.row] in stepped]
            self._waiting = [scan for scan in self._waiting if scan not in due]
            self._scans += due
        if scanners.size:
            self._scans += self._markers.read(
                scanners, self._connected, self._robot, self._body, self._mounts
            )

    def _look(self, rows: Rows, now: int) -> None:
        """Notes from where the lidars have scanned; the distances are measured when they are asked
        for, unless other robots are seen, which have moved by then."""
        note_scans(
            rows,
            self._robot,
            self._body,
            self._connected,
            now,
            self._hz,
            self._scanned,
            self._scan_poses,
            self._is_fresh,
            self._is_measured,
        )
        if self._others is not None:
            self._measure(rows)

    def _measure(self, rows: Rows) -> None:
        """Distances of the last scans."""
        due = rows[~self._is_measured[rows]]
        if not due.size:
            return
        robots, worlds = self._robot[due], self._worlds
        eyes, found = np.empty((due.size, 3)), np.empty(due.size)
        place(self._scan_poses[due], self._mounts[due], eyes)
        look(
            eyes,
            self._views[due],
            self._longest[due],
            worlds.circles,
            worlds.circle_spans[robots],
            worlds.lines,
            worlds.line_spans[robots],
            found,
        )
        if self._others is not None:
            self._others.look(robots, eyes, self._views[due], self._longest[due], found)
        self._nearest[due] = np.where(np.isfinite(found), found, NOTHING)
        self._is_measured[due] = True

    def _is_stale(self, rows: Rows) -> Bools:
        """Whether a new scan may differ from the last one: the robot has moved, or the world has
        changed."""
        here = self._body[self._robot[rows], : drive.FORWARD]
        stale: Bools = (self._scan_poses[rows] != here).any(axis=1) | ~self._is_fresh[rows]
        return stale

    def _look_ahead(self, rows: Rows) -> None:
        """Only where the robot has moved, or shall go elsewhere, or the world has changed."""
        worlds = self._worlds
        watch_ahead(
            rows,
            self._robot,
            self._body,
            self.outlines,
            self._motion,
            self._farthest,
            worlds.circles,
            worlds.circle_spans,
            worlds.lines,
            worlds.line_spans,
            self._spots,
            self._near,
            self._certificates,
            self._looked,
            self._ahead,
        )
        if self._others is not None:
            self._others.watch(
                rows, self._robot, self._motion, self._farthest, self._ahead_of_others
            )

    def _eyes(self, rows: Rows) -> Floats:
        """Where sensors are in the world: x, y, yaw."""
        pose, mount = self._body[self._robot[rows], : drive.FORWARD], self._mounts[rows]
        eyes = np.empty((rows.size, 3))
        place(pose, mount, eyes)
        return eyes

    def next_change(self, now: int) -> int:
        """When a lidar has something new to report although its robot stands."""
        rows = self.lidar_rows
        if self._waiting:
            return now
        late = rows[self._is_stale(rows) & self._connected[rows]]
        if not late.size:
            return LATEST
        return int(np.ceil((self._scanned[late] + 1) / self._hz[late] * NS_PER_SECOND).min())

    # ── snapshot ──

    def save(self) -> SensorsState:
        self._measure(self.lidar_rows)
        return SensorsState(
            columns(self._saved()), self._markers.save(), self._waiting, self._scans
        )

    def load(self, state: SensorsState, body: Floats) -> None:
        restore(self._saved(), state.columns)
        self._markers.load(state.inside)
        self._waiting, self._scans = list(state.waiting), list(state.scans)
        self._looked[:] = np.nan
        self._spots[:, 2] = -1.0
        self._certificates[:, LEFT] = 0.0
        self._is_measured[:] = True
        self._body = body

    def _saved(self) -> dict[str, NDArray[Any]]:
        others = {} if self._others is None else {"ahead_of_others": self._ahead_of_others}
        return {
            **others,
            "connected": self._connected,
            "nearest": self._nearest,
            "ahead": self._ahead,
            "scanned": self._scanned,
            "motion": self._motion,
            "is_fresh": self._is_fresh,
            "scan_poses": self._scan_poses,
        }


@compiled
def take_motion(rows: Rows, velocity: Floats, motion: Floats, moving: Rows) -> int:
    """Keeps the speeds of robots that move, and puts their rows into ``moving``; returns how many
    there are."""
    count = 0
    for n in range(rows.size):
        if velocity[n, 0] != 0.0 or velocity[n, 1] != 0.0 or velocity[n, 2] != 0.0:
            row = rows[n]
            for column in range(3):
                motion[row, column] = velocity[n, column]
            moving[count] = row
            count += 1
    return count


@compiled
def note_scans(
    rows: Rows,
    robots: Rows,
    body: Floats,
    connected: Bools,
    now: int,
    hz: Floats,
    scanned: Rows,
    poses: Floats,
    is_fresh: Bools,
    is_measured: Bools,
) -> None:
    """Notes the ``poses`` of scans that are due and may differ from the last ones: the robot has
    moved, or the world has changed."""
    for row in rows:
        number = np.int64(math.floor(now * (hz[row] / NS_PER_SECOND)))
        if number > scanned[row] and connected[row]:
            robot, same = robots[row], is_fresh[row]
            for column in range(3):
                same = same and poses[row, column] == body[robot, column]
            if not same:
                for column in range(3):
                    poses[row, column] = body[robot, column]
                is_fresh[row], is_measured[row] = True, False
        scanned[row] = number


@compiled
def watch_ahead(
    rows: Rows,
    robots: Rows,
    body: Floats,
    outlines: Floats,
    motion: Floats,
    farthest: Floats,
    circles: Floats,
    circle_spans: Rows,
    lines: Floats,
    line_spans: Rows,
    spots: Floats,
    near: Rows,
    certificates: Floats,
    looked: Floats,
    ahead: Floats,
) -> None:
    """Fills ``ahead`` of lidars: how far their robots can go on with ``motion``; `NOTHING` if
    farther than ``farthest``. ``looked``: pose and motion of the last result."""
    for row in rows:
        robot, same = robots[row], True
        for column in range(3):
            same = same and looked[row, column] == body[robot, column]
            same = same and looked[row, 3 + column] == motion[row, column]
        if same:
            continue
        for column in range(3):
            looked[row, column] = body[robot, column]
            looked[row, 3 + column] = motion[row, column]
        certificate = borrowed(certificates[row])
        if still_free(borrowed(body[robot]), borrowed(motion[row]), certificate):
            continue  # `ahead` is `NOTHING` since the certificate was made
        free = watched_way(
            borrowed(body[robot]),
            borrowed(outlines[robot]),
            borrowed(motion[row]),
            farthest[row],
            borrowed(circles),
            borrowed(circle_spans[robot]),
            borrowed(lines),
            borrowed(line_spans[robot]),
            borrowed(spots[row]),
            borrowed(near[row]),
            certificate,
        )
        ahead[row] = free if free <= farthest[row] else NOTHING


# ── markers ─────────────────────────────────────────────────────────────────────────────────────


class Markers:
    """The markers of all scanners as rows: each scanner has those of its robot's world."""

    def __init__(self, layout: Layout) -> None:
        self.scanners = _of_type(layout, "BARCODE_SCANNER")
        self._markers: list[BarcodeMarker] = []
        self._corrects = np.zeros(len(layout.devices), dtype=np.bool_)
        self._ranges = np.zeros(len(layout.devices))
        self._spans = np.zeros((len(layout.devices), 2), dtype=np.int64)
        for row in self.scanners:
            robot, device = layout.devices[row]
            config = device.settings
            assert isinstance(config, ScannerConfig)
            profile = layout.robots[robot].runtime.simulation_profile
            markers = profile.world.barcode_markers if profile else ()
            self._ranges[row], self._corrects[row] = config.range_meters, config.corrects_pose
            self._spans[row] = len(self._markers), len(self._markers) + len(markers)
            self._markers += markers
        self._places = np.array([(each.x, each.y) for each in self._markers]).reshape(-1, 2)
        self._inside = np.zeros(len(self._markers), dtype=np.bool_)
        self._checked = np.zeros((len(layout.devices), 4))
        """The pose of the robot when a scanner looked at all its markers, and how far from there
        nothing changes."""
        self._hits = np.zeros((len(self._markers), 2), dtype=np.int64)

    def read(
        self, rows: Rows, connected: Bools, robots: Rows, body: Floats, mounts: Floats
    ) -> list[Scan]:
        """The markers that have come within range."""
        count = find_markers(
            rows,
            connected,
            robots,
            body,
            mounts,
            self._ranges,
            self._spans,
            self._places,
            self._checked,
            self._inside,
            self._hits,
        )
        if not count:
            return []
        hits = self._hits[:count]
        eyes = np.empty((count, 3))
        place(body[robots[hits[:, 0]], : drive.FORWARD], mounts[hits[:, 0]], eyes)
        return [
            self._scan(row, marker, eye, mounts[row])
            for (row, marker), eye in zip(hits.tolist(), eyes, strict=True)
        ]

    def _scan(self, row: int, marker: int, eye: Floats, mount: Floats) -> Scan:
        found = self._markers[marker]
        if not self._corrects[row]:
            return Scan(row, found.code, found.type, None)
        x, y, yaw = eye.tolist()
        along, across, turned = mount.tolist()
        heading = yaw - turned
        c, s = math.cos(yaw), math.sin(yaw)
        ahead, left = (found.x - x) * c + (found.y - y) * s, (found.y - y) * c - (found.x - x) * s
        c, s = math.cos(turned), math.sin(turned)
        seen = along + ahead * c - left * s, across + ahead * s + left * c
        facing = 0.0 if found.yaw is None else wrapped(found.yaw - heading)
        return Scan(row, found.code, found.type, (found.x, found.y, found.yaw), (*seen, facing))

    def save(self) -> list[int]:
        return list(np.flatnonzero(self._inside).tolist())

    def load(self, inside: list[int]) -> None:
        self._inside[:] = False
        self._inside[inside] = True
        self._checked[:] = 0.0


@compiled
def find_markers(
    rows: Rows,
    connected: Bools,
    robots: Rows,
    body: Floats,
    mounts: Floats,
    ranges: Floats,
    spans: Rows,
    places: Floats,
    checked: Floats,
    inside: Bools,
    hits: Rows,
) -> int:
    """Fills ``hits`` with scanner and marker of those that have come within range; returns their
    number. A scanner that has moved less than the distance to the nearest border of a range since
    it last looked at all its markers need not look."""
    count = 0
    for row in rows:
        if not connected[row]:
            continue
        robot = robots[row]
        x, y, yaw = body[robot, 0], body[robot, 1], body[robot, 2]
        along, across = mounts[row, 0], mounts[row, 1]
        turned = abs(yaw - checked[row, 2])
        turned = min(turned, abs(2.0 * math.pi - turned)) * (abs(along) + abs(across))
        if math.hypot(x - checked[row, 0], y - checked[row, 1]) + turned < checked[row, 3]:
            continue
        checked[row, 0], checked[row, 1], checked[row, 2] = x, y, yaw
        c, s = math.cos(yaw), math.sin(yaw)
        x, y = x + along * c - across * s, y + along * s + across * c
        quiet = math.inf
        for marker in range(spans[row, 0], spans[row, 1]):
            beyond = math.hypot(places[marker, 0] - x, places[marker, 1] - y) - ranges[row]
            quiet = min(quiet, abs(beyond))
            if beyond > 0.0:
                inside[marker] = False
            elif not inside[marker]:
                inside[marker] = True
                hits[count] = row, marker
                count += 1
        checked[row, 3] = quiet * (1.0 - 1e-6) - 1e-9
    return count


@compiled
def place(pose: Floats, mount: Floats, eyes: Floats) -> None:
    """Fills ``eyes`` with the places of sensors in the world."""
    for row in range(eyes.shape[0]):
        c, s = math.cos(pose[row, 2]), math.sin(pose[row, 2])
        eyes[row, 0] = pose[row, 0] + mount[row, 0] * c - mount[row, 1] * s
        eyes[row, 1] = pose[row, 1] + mount[row, 0] * s + mount[row, 1] * c
        eyes[row, 2] = pose[row, 2] + mount[row, 2]


# ── from the files ──────────────────────────────────────────────────────────────────────────────


def _of_type(layout: Layout, type_: str) -> Rows:
    rows = [row for row, (_, device) in enumerate(layout.devices) if device.type == type_]
    return np.array(rows, dtype=np.int64)


def mount_of(layout: Layout, row: DeviceRow) -> tuple[float, float, float]:
    """Where a device is mounted, seen from the pose of the robot."""
    mount, ahead = row.device.mount, centre_ahead(layout.robots[row.robot])
    return ahead + mount.x_mm * MM, mount.y_mm * MM, mount.yaw_deg * DEG


def _lidar(layout: Layout, row: int) -> LidarConfig:
    config = layout.devices[row].device.settings
    assert isinstance(config, LidarConfig)
    return config


def ray_angles(config: LidarConfig) -> Floats:
    """Rays are spread evenly over the field of view, from right to left; a full circle has no ray
    twice."""
    view, rays = config.field_of_view_deg * DEG, config.rays
    if rays == 1:
        return np.zeros(1)
    step = view / rays if config.field_of_view_deg >= 360.0 else view / (rays - 1)
    return np.arange(rays, dtype=np.float64) * step - view / 2.0


def _needed_ahead(robot: RobotFile) -> float:
    """Metres ahead that safety looks at: its distances, and the longest way of braking; while the
    robot turns on the spot its corners go farther than its wheels."""
    safety, size = robot.safety, robot.dimensions
    limits = [motor.limits.si for motor in robot.motors if motor.role == "DRIVE"]
    braking = max((each.max_speed**2 / 2.0 / each.max_deceleration for each in limits), default=0.0)
    corner = math.hypot(size.length_mm * MM / 2.0 + centre_ahead(robot), size.width_mm * MM / 2.0)
    swing = max(corner / (track_of(robot) / 2.0), 1.0)
    return MORE_AHEAD + max(
        safety.obstacle_warn_distance_meters, safety.obstacle_stop_distance_meters, braking * swing
    )


def _distances(values: Floats, connected: Bools) -> Floats:
    return np.where(connected & (values >= 0.0), values, np.inf)
