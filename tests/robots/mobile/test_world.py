"""The world of robots: shapes as rows, shared rows, and obstacles that come, move and go."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from understudy.robots.mobile.config.profile import SimulationProfile
from understudy.robots.mobile.world import Circle, Places, Polygon, Worlds
from understudy.units import NS_PER_SECOND

POST = {"id": "post", "shape": "circle", "x": 5.0, "y": 0.0, "radiusMeters": 0.3}
BOX = {
    "id": "box",
    "shape": "box",
    "x": 1.0,
    "y": 2.0,
    "lengthMeters": 2.0,
    "widthMeters": 1.0,
    "yaw": math.pi / 2,
}
RAIL = {"id": "rail", "shape": "segment", "x": 0.0, "y": 1.0, "x2": 3.0, "y2": 1.0}


def profile(*obstacles: Any, script: list[Any] | None = None, walls: Any = ()) -> SimulationProfile:
    return msgspec.convert(
        {
            "world": {"obstacles": list(obstacles), "boundaries": list(walls)},
            "scripts": {"obstacles": script or []},
        },
        SimulationProfile,
    )


def seconds(value: float) -> int:
    return round(value * NS_PER_SECOND)


def test_every_shape_becomes_rows() -> None:
    pillar, table = Circle("pillar", 1.0, 1.0, 0.2), Polygon("table", ((0, 0), (1, 0), (0, 1)))
    worlds = Worlds([(pillar, table)], [profile(POST, BOX, RAIL, walls=[[[0, 0], [9, 0], [9, 9]]])])
    circles, lines = worlds.around(0)
    assert circles.tolist() == [[1.0, 1.0, 0.2], [5.0, 0.0, 0.3]]
    assert lines[:3].tolist() == [[0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0]]
    assert lines[3:6].tolist() == [[0, 0, 9, 0], [9, 0, 9, 9], [9, 9, 0, 0]]
    box = lines[6:10]
    assert (box[:, 0].min(), box[:, 0].max()) == pytest.approx((0.5, 1.5)), "turned by 90°"
    assert (box[:, 1].min(), box[:, 1].max()) == pytest.approx((1.0, 3.0))
    assert lines[10].tolist() == [0, 1, 3, 1]


def test_a_wall_with_two_corners_is_one_line() -> None:
    _, lines = Worlds([()], [profile(walls=[[[0, 0], [9, 0]]])]).around(0)
    assert lines.tolist() == [[0, 0, 9, 0]]


def test_robots_with_the_same_obstacles_share_rows() -> None:
    move = [{"atSeconds": 1, "action": "remove", "id": "post"}]
    profiles = [profile(POST), profile(POST, script=move), profile(POST), profile()]
    worlds = Worlds([(), (), (), ()], profiles)
    assert len(worlds.circles) == 2
    assert worlds.circle_spans.tolist() == [[0, 1], [1, 2], [0, 1], [2, 2]]


def scripted() -> tuple[Worlds, SimulationProfile]:
    script = [
        {"atSeconds": 1, "action": "spawn", "obstacle": {**POST, "id": "cart", "x": 0.0}},
        {"atSeconds": 2, "action": "move", "id": "cart", "x": 4.0, "y": 2.0, "overSeconds": 4},
        {"atSeconds": 4, "action": "move", "id": "cart", "x": 2.0, "y": 5.0, "overSeconds": 1},
        {"atSeconds": 9, "action": "remove", "id": "cart"},
    ]
    made = profile(BOX, script=script)
    return Worlds([(), ()], [profile(BOX), made]), made


def run(worlds: Worlds, made: SimulationProfile, start: float, end: float) -> None:
    """Ticks of 0.1 s, the changes of each just before it."""
    changes = made.scripts.obstacles
    for tick in range(round(start * 10) + 1, round(end * 10) + 1):
        for change in changes:
            if tick - 1 < change.at_seconds * 10 <= tick:
                worlds.change(1, change, seconds(change.at_seconds))
        worlds.refresh(seconds(tick / 10))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0.5, []),
        (1.0, [0, 0]),
        (3.0, [1, 0.5]),
        (4.0, [2, 1]),
        (4.5, [2, 3]),
        (6.0, [2, 5]),
        (9, []),
    ],
)
def test_an_obstacle_comes_moves_in_closed_form_and_goes(at: float, expected: list[float]) -> None:
    worlds, made = scripted()
    run(worlds, made, 0.0, at)
    circles, lines = worlds.around(1)
    assert circles[:, :2].ravel().tolist() == pytest.approx(expected)
    assert len(lines) == 4, "the box stays"
    assert len(worlds.around(0)[0]) == 0, "the other robot sees nothing of it"


def test_the_time_between_two_looks_changes_nothing() -> None:
    often, made = scripted()
    run(often, made, 0.0, 4.5)
    rarely, _ = scripted()
    for change in made.scripts.obstacles[:3]:
        rarely.change(1, change, seconds(change.at_seconds))
    rarely.refresh(seconds(4.5))
    assert rarely.circles.tobytes() == often.circles.tobytes()


def test_a_snapshot_in_a_move_goes_on_as_before() -> None:
    worlds, made = scripted()
    run(worlds, made, 0.0, 3.3)
    state = msgspec.json.decode(msgspec.json.encode(worlds.save()), type=Places)
    other, _ = scripted()
    other.load(state, seconds(3.3))
    for each in (worlds, other):
        run(each, made, 3.3, 4.7)
    assert np.array_equal(worlds.circles, other.circles)
    assert worlds.circles.tobytes() == other.circles.tobytes()
    assert worlds.lines.tobytes() == other.lines.tobytes()


def test_other_objects_of_the_cell_leave_the_obstacles_of_the_profile_where_they_are() -> None:
    worlds, made = scripted()
    run(worlds, made, 0.0, 3.0)
    pillar = Circle("pillar", 8.0, 8.0, 0.5)
    worlds.set_solids([(pillar,), (pillar,)], seconds(3.0))
    assert worlds.around(0)[0].tolist() == [[8.0, 8.0, 0.5]]
    assert worlds.around(1)[0].tolist() == [[8.0, 8.0, 0.5], [1.0, 0.5, 0.3]]
    run(worlds, made, 3.0, 4.0)
    assert worlds.around(1)[0][1].tolist() == pytest.approx([2.0, 1.0, 0.3])
    worlds.set_solids([(), ()], seconds(4.0))
    assert len(worlds.around(0)[0]) == 0
