"""Places on the free floor for copies of robots (`run --robots N`).

A place is free if its footprint keeps a clearance from every obstacle and every other footprint,
is on the map, and can be reached from the robots of the cell file. Places are looked for on a grid,
row by row. The largest clearance of `CLEARANCES` at which all copies have a place counts; of more
places than copies every second, third … is taken. All follows from the configuration, so that every
shard of a fleet finds the same places.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from understudy.errors import ConfigError
from understudy.robots.mobile import Config
from understudy.robots.mobile.config.layout import centre_ahead
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.field import corner_radius, outline_clearances
from understudy.robots.mobile.hardware_interface import Bools, Bounds, Floats
from understudy.robots.mobile.planner.grid import grid_clearance
from understudy.robots.mobile.world import Scene, floor_of, map_of, solids_for
from understudy.space.model.environment import Environment
from understudy.units import DEG, MM

CLEARANCES = (1.0, 0.75, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)
"""Metres between footprints, the widest first."""
FINE, MOST_CELLS = 0.05, 250_000
"""The grid: metres of a cell, unless it had more cells."""


class Stand(NamedTuple):
    """A robot where it stands: the centre of its footprint, its yaw, and half of its sides."""

    x: float
    y: float
    yaw: float
    half_length: float
    half_width: float
    ahead: float

    def half_box(self) -> tuple[float, float]:
        """Half of the sides of the upright box around the footprint."""
        c, s = abs(math.cos(self.yaw)), abs(math.sin(self.yaw))
        along, across = self.half_length, self.half_width
        return along * c + across * s, along * s + across * c


class Grid(NamedTuple):
    """Cells by their centres. `clearance`: between a footprint in the cell and the nearest
    obstacle; below 0 where a robot cannot stand or does not get to."""

    low_x: float
    low_y: float
    size: float
    clearance: Floats

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Row and column."""
        return round((y - self.low_y) / self.size), round((x - self.low_x) / self.size)


def place_copies(
    robots: Mapping[str, Config],
    files: Mapping[str, RobotFile],
    copies: Collection[str],
    environment: Environment,
) -> dict[str, Config]:
    """The copies with poses on the free floor; a `ConfigError` if it has not room for all.

    ``files``: of the robots that are no copies, by name.
    """
    stands = {name: _stand(file) for name, file in files.items()}
    by_config = {robots[name]: stand for name, stand in reversed(stands.items())}
    shapes = list(dict.fromkeys(each._replace(x=0.0, y=0.0) for each in by_config.values()))
    circles, lines = _obstacles(files.values(), environment)
    first = next(iter(files.values()))
    profile = first.runtime.simulation_profile
    bounds = map_of(floor_of(environment), profile) if profile is not None else None
    there = list(stands.values())
    for spare in count(1):
        area = bounds or _open_floor(there, len(copies), shapes, circles, lines, spare)
        grid = _grid(area, shapes, there, circles, lines)
        most = 0
        for clearance in CLEARANCES if bounds else CLEARANCES[:1]:
            places = _free_places(grid, shapes, there, clearance)
            most = max(most, len(places))
            if len(places) >= len(copies):
                chosen = [places[n * len(places) // len(copies)] for n in range(len(copies))]
                return {
                    name: _placed(robots[name], by_config[robots[name]], place)
                    for name, place in zip(copies, chosen, strict=True)
                }
        if bounds:
            raise ConfigError(
                f"the floor has room for {len(there) + most} robots, {CLEARANCES[-1]:g} m apart",
                key="--robots",
                value=len(robots),
                allowed=f"1 to {len(there) + most}, or a cell with a larger floor (shipped: hall)",
            )
    raise AssertionError("an open floor has room for all")


def _stand(file: RobotFile) -> Stand:
    profile = file.runtime.simulation_profile
    assert profile is not None
    pose, size, ahead = profile.initial_state.pose, file.dimensions, centre_ahead(file)
    x, y = pose.x + ahead * math.cos(pose.yaw), pose.y + ahead * math.sin(pose.yaw)
    return Stand(x, y, pose.yaw, size.length_mm * MM / 2.0, size.width_mm * MM / 2.0, ahead)


def _placed(config: Config, original: Stand, place: tuple[float, float]) -> Config:
    """A copy of a robot with the centre of its footprint at a place."""
    x = place[0] - original.ahead * math.cos(original.yaw)
    y = place[1] - original.ahead * math.sin(original.yaw)
    return replace(config, pose=(round(x, 3), round(y, 3), original.yaw / DEG))


def _obstacles(files: Collection[RobotFile], environment: Environment) -> tuple[Floats, Floats]:
    """The obstacles of all these robots at the start."""
    profiles = {
        (file.dimensions.height_mm, profile.world.obstacles, profile.world.boundaries): profile
        for file in files
        if (profile := file.runtime.simulation_profile) is not None
    }
    rows = [
        Scene(solids_for(environment, height * MM), profile).rows_at(0)
        for (height, _, _), profile in profiles.items()
    ]
    circles, lines = (np.concatenate(each) for each in zip(*rows, strict=True))
    return np.unique(circles, axis=0), np.unique(lines, axis=0)


def _open_floor(
    there: Sequence[Stand],
    copies: int,
    shapes: Sequence[Stand],
    circles: Floats,
    lines: Floats,
    spare: int,
) -> Bounds:
    """A square around the robots and the obstacles near them that may have room for all copies;
    it grows with ``spare``."""
    x, y = np.mean([each.x for each in there]), np.mean([each.y for each in there])
    half = max(max(abs(each.x - x), abs(each.y - y)) for each in there)
    wide, high = (2.0 * side + CLEARANCES[0] for side in _half_boxes(shapes))
    half += spare * math.sqrt((copies + len(there)) * wide * high) / 2.0 + wide + high
    return Bounds(float(x - half), float(y - half), float(x + half), float(y + half))


def _half_boxes(shapes: Sequence[Stand]) -> tuple[float, float]:
    """Half the sides of the largest robot."""
    wide, high = zip(*(shape.half_box() for shape in shapes), strict=True)
    return max(wide), max(high)


# ── the grid ──────────────────────────────────────────────────────────────────────────────────────


def _grid(
    bounds: Bounds, shapes: Sequence[Stand], there: Sequence[Stand], circles: Floats, lines: Floats
) -> Grid:
    wide, high = bounds.high_x - bounds.low_x, bounds.high_y - bounds.low_y
    narrow = min(min(shape.half_width, shape.half_length) for shape in shapes)
    # Cells no wider than half a robot: it cannot get through a wall between two of them.
    widest = narrow if lines.size or circles.size else CLEARANCES[0]
    size = min(max(FINE, math.sqrt(wide * high / MOST_CELLS)), widest)
    shape = int(high / size) + 1, int(wide / size) + 1
    outlines = np.array([(each.half_length, each.half_width, 0.0) for each in shapes])
    around = max(corner_radius(outline) for outline in outlines)
    seen = around + CLEARANCES[0]
    free = np.empty(shape)
    grid_clearance(bounds.low_x, bounds.low_y, size, circles, lines, seen, free)
    grid = Grid(bounds.low_x, bounds.low_y, size, np.full(shape, -1.0))
    reached = _reached(free >= narrow, [grid.cell(each.x, each.y) for each in there])
    half_x, half_y = _half_boxes(shapes)
    xs, ys = (bounds.low_x + size * np.arange(shape[1]), bounds.low_y + size * np.arange(shape[0]))
    reached &= (xs >= bounds.low_x + half_x) & (xs <= bounds.high_x - half_x)
    reached &= ((ys >= bounds.low_y + half_y) & (ys <= bounds.high_y - half_y))[:, None]
    grid.clearance[reached] = seen
    rows, columns = np.nonzero(reached & (free < seen))
    for each, outline in zip(shapes, outlines, strict=True):
        poses = np.column_stack([xs[columns], ys[rows], np.full(rows.size, each.yaw)])
        found = np.empty(rows.size)
        spans = [np.tile((0, len(table)), (rows.size, 1)) for table in (circles, lines)]
        outlines_of_all = np.tile(outline, (rows.size, 1))
        outline_clearances(poses, outlines_of_all, circles, spans[0], lines, spans[1], found)
        grid.clearance[rows, columns] = np.minimum(grid.clearance[rows, columns], found)
    return grid


def _reached(free: Bools, starts: Sequence[tuple[int, int]]) -> Bools:
    """The free cells that are joined to the ones nearest to the starts, over sides of cells."""
    reached = np.zeros_like(free)
    rows, columns = np.nonzero(free)
    for row, column in starts if rows.size else ():
        nearest = int(np.argmin((rows - row) ** 2 + (columns - column) ** 2))
        reached[rows[nearest], columns[nearest]] = True
    known = -1
    while known != (known := int(reached.sum())):
        for table, open_ in ((reached, free), (reached.T, free.T)):
            run = np.cumsum(~open_, axis=1) + np.arange(len(open_))[:, None] * (open_.shape[1] + 1)
            hit: NDArray[np.bool_] = np.zeros(int(run.max()) + 1, dtype=np.bool_)
            hit[run[table]] = True
            np.logical_and(hit[run], open_, out=table)
    return reached


def _free_places(
    grid: Grid, shapes: Sequence[Stand], there: Sequence[Stand], clearance: float
) -> list[tuple[float, float]]:
    """Places for footprints that keep the clearance from obstacles, from each other and from the
    robots that are there."""
    free = grid.clearance >= clearance
    half_x, half_y = _half_boxes(shapes)
    for each in there:
        beside, above = each.half_box()
        row, column = (each.y - grid.low_y) / grid.size, (each.x - grid.low_x) / grid.size
        high, wide = (
            (above + half_y + clearance) / grid.size,
            (beside + half_x + clearance) / grid.size,
        )
        free[_span(row, high, 0, free), _span(column, wide, 1, free)] = False
    rows = math.ceil((2.0 * half_y + clearance) / grid.size - 1e-9)
    columns = math.ceil((2.0 * half_x + clearance) / grid.size - 1e-9)
    places = []
    for row in np.flatnonzero(free.any(axis=1)).tolist():
        for column in np.flatnonzero(free[row]).tolist():
            if free[row, column]:
                places.append((grid.low_x + column * grid.size, grid.low_y + row * grid.size))
                first = max(column - columns + 1, 0)
                free[row : row + rows, first : column + columns] = False
    return places


def _span(middle: float, reach: float, axis: int, table: Bools) -> slice:
    """The cells nearer to the middle than ``reach``."""
    first = math.floor(middle - reach) + 1
    return slice(max(first, 0), max(min(math.ceil(middle + reach), table.shape[axis]), 0))
