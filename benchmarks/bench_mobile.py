"""Speed of the simulated hardware of mobile robots compared with plain Python objects.

A step is one tick of one robot. Ours is all of it: drive, wheels, gripper, limit switches, battery,
lidar and scanner. The plain robots do less: they only drive and, in the warehouse, measure the
distance to the nearest wall ten times a second. Rounds alternate; CPU time is compared.
"""

import math
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
from tests.robots.mobile.rig import PROFILE, Rig, robot
from tests.robots.mobile.test_drive import PlainRobot

from benchmarks import Row
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.warm import warm
from understudy.robots.mobile.world import Polygon

ROBOTS, PLAIN_ROBOTS = 1000, 20
TICKS = 50
ROUNDS = 5
SPEEDS = (0.5, 0.6)


def shelves() -> tuple[Polygon, ...]:
    """20 shelves of 3 m × 1 m."""
    corners = [(4.0 * column, 3.0 * row) for column in range(5) for row in range(4)]
    return tuple(
        Polygon(f"shelf {n}", ((x, y), (x + 3.0, y), (x + 3.0, y + 1.0), (x, y + 1.0)))
        for n, (x, y) in enumerate(corners)
    )


def rig(solids: tuple[Polygon, ...], *, moving: bool = True) -> Rig:
    markers = [{"code": f"M{n}", "x": n % 8 * 2, "y": n // 8 * 2} for n in range(64)]
    changes = {f"{PROFILE}.world.barcodeMarkers": markers}
    files = [robot(changes, f"robot-{n}") for n in range(ROBOTS)]
    places = [
        Surroundings((n % 20 + 0.2, n // 20 % 15 + 0.3, 0.1 * n), solids) for n in range(ROBOTS)
    ]
    made = Rig(files, places)
    if moving:
        made.speed[:] = np.tile([*SPEEDS, 0.0], ROBOTS)
        made.moving[:], made.target[:] = True, 0.05
        rows = made.hardware.sensors.lidar_rows
        made.hardware.sensors.set_motion(rows, np.tile([0.55, 0.0, 0.2], (ROBOTS, 1)))
    return made


def plain_steps(walls: list[tuple[float, float, float, float]]) -> None:
    """Robots as Python objects, for as many ticks."""
    forward, turning = sum(SPEEDS) / 2, (SPEEDS[1] - SPEEDS[0]) / 0.48
    for _ in range(PLAIN_ROBOTS):
        one = PlainRobot()
        for tick in range(TICKS):
            one.tick(forward, turning, 0.02)
            if walls and tick % 5 == 0:
                min(plain_distance(one.pose[0], one.pose[1], *wall) for wall in walls)


def plain_distance(x: float, y: float, x1: float, y1: float, x2: float, y2: float) -> float:
    dx, dy = x2 - x1, y2 - y1
    share = ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy)
    share = min(max(share, 0.0), 1.0)
    return math.hypot(x1 + share * dx - x, y1 + share * dy - y)


def seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def compare(what: str, made: Rig, walls: list[tuple[float, float, float, float]], aim: str) -> Row:
    made.run(0.2)
    rounds = [
        (
            seconds(lambda: made.run(TICKS * 0.02)) / TICKS / ROBOTS,
            seconds(lambda: plain_steps(walls)) / TICKS / PLAIN_ROBOTS,
        )
        for _ in range(ROUNDS)
    ]
    own, other = (median(column) * 1e9 for column in zip(*rounds, strict=True))
    ratio = median(plain / ours for ours, plain in rounds)
    return Row(what, f"{own:.0f} ns", f"{other:.0f} ns plain objects", f"{ratio:.1f}×", aim)


def rows() -> list[Row]:
    warm()
    made = rig(shelves())
    walls = [tuple(line) for line in made.hardware.obstacles(0).lines.tolist()]
    return [
        compare("step of a robot, 1,000 robots, empty world", rig(()), [], ""),
        compare("the same among 80 walls, with protective field", made, walls, ""),
        compare("robots that stand among 80 walls", rig(shelves(), moving=False), walls, ""),
    ]
