"""Objects of a cell as obstacles of mobile robots."""

import math

import numpy as np
import pytest

from understudy.robots.mobile.world import FLOOR, Circle, Polygon, solids_for
from understudy.space.model.environment import Environment, place
from understudy.space.model.shapes import CollisionObject, ObjectType

HEIGHT = 0.35


def around(*things: CollisionObject, height: float = HEIGHT) -> tuple[Circle | Polygon, ...]:
    return solids_for(Environment(things), height)


def box(z_mm: float, turn_deg: float = 0.0) -> CollisionObject:
    where = place((2000.0, 1000.0, z_mm), (0.0, 0.0, turn_deg))
    return CollisionObject(
        type=ObjectType.BOX, name="box", transform=where, dimensions=(1.0, 0.4, 0.2)
    )


def bounds(solid: Circle | Polygon) -> tuple[float, ...]:
    assert isinstance(solid, Polygon)
    corners = np.array(solid.corners)
    return tuple(round(float(v), 9) for v in (*corners.min(axis=0), *corners.max(axis=0)))


def test_a_box_is_met_as_its_four_sides() -> None:
    (found,) = around(box(100.0))
    assert isinstance(found, Polygon)
    assert len(found.corners) == 4
    assert bounds(found) == (1.5, 0.8, 2.5, 1.2)
    (turned,) = around(box(100.0, 90.0))
    assert bounds(turned) == (1.8, 0.5, 2.2, 1.5)


@pytest.mark.parametrize("z_mm", [-100.0, -90.0, 460.0, 1000.0])
def test_what_ends_at_the_floor_or_begins_above_the_robot_is_no_obstacle(z_mm: float) -> None:
    assert around(box(z_mm)) == ()


def test_a_tall_robot_meets_what_a_low_one_drives_under() -> None:
    shelf = box(460.0)
    assert around(shelf) == ()
    assert len(around(shelf, height=0.5)) == 1


def test_columns_and_balls_are_circles() -> None:
    at = place((1000.0, 2000.0, 500.0), (0.0, 0.0, 0.0))
    column = CollisionObject(
        type=ObjectType.CYLINDER, name="column", transform=at, radius=0.1, height=1.0
    )
    assert around(column) == (Circle("column", 1.0, 2.0, 0.1),)
    ball = CollisionObject(type=ObjectType.SPHERE, name="ball", transform=at, radius=0.25)
    (found,) = around(ball)
    assert isinstance(found, Circle)
    assert found.radius == pytest.approx(math.sqrt(0.25**2 - 0.15**2))


def test_a_lying_pipe_is_not_smaller_than_it_is() -> None:
    at = place((0.0, 0.0, 100.0), (0.0, 90.0, 0.0))
    pipe = CollisionObject(
        type=ObjectType.CYLINDER, name="pipe", transform=at, radius=0.05, height=2.0
    )
    (found,) = around(pipe)
    low_x, low_y, high_x, high_y = bounds(found)
    assert low_x == pytest.approx(-1.0)
    assert high_x == pytest.approx(1.0)
    assert -0.0505 < low_y <= -0.05
    assert 0.05 <= high_y < 0.0505


def test_a_leaning_box_is_met_as_far_as_it_reaches_into_the_robots_height() -> None:
    """A bar from the floor at x = 0 up to x = 2, z = 2: only its lower end is an obstacle."""
    at = place((1000.0, 0.0, 1000.0), (0.0, -45.0, 0.0))
    bar = CollisionObject(
        type=ObjectType.BOX, name="bar", transform=at, dimensions=(2.0 * math.sqrt(2.0), 0.1, 0.01)
    )
    (found,) = around(bar)
    low_x, _, high_x, _ = bounds(found)
    assert low_x == pytest.approx(FLOOR, abs=0.01)
    assert high_x == pytest.approx(HEIGHT, abs=0.01)


def test_each_piece_of_a_mesh_has_its_own_outline() -> None:
    cube = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    sides = [
        (0, 1, 3),
        (0, 3, 2),
        (4, 6, 7),
        (4, 7, 5),
        (0, 4, 5),
        (0, 5, 1),
        (2, 3, 7),
        (2, 7, 6),
        (0, 2, 6),
        (0, 6, 4),
        (1, 5, 7),
        (1, 7, 3),
    ]
    both = np.concatenate([cube, cube + np.array((5.0, 0.0, 0.0))])
    indices = [*sides, *[(a + 8, b + 8, c + 8) for a, b, c in sides]]
    mesh = CollisionObject(type=ObjectType.MESH, name="two", vertices=both, indices=indices)
    found = around(mesh)
    assert sorted(bounds(solid) for solid in found) == [(0, 0, 1, 1), (5, 0, 6, 1)]
