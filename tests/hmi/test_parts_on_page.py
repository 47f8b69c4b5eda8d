"""The page draws the parts of a cell: at rest, in the hand, and where they were put down."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.browsers import PageServer, Screen

from understudy.app.live import Live
from understudy.app.stand_in import StandIn
from understudy.operator.workpieces import workpieces_in
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.space.transform import translation

CELL = """
robots:
  g60:
    kind: arm
    model: g60
    start_deg: [0, 0, 37, 0, 53, 0]
    tool: 1
    tools:
      1:
        name: gripper
        tcp_mm_deg: [0, 0, 80, 0, 0, 0]
        shapes:
          - {name: palm, type: box, dimensions_mm: [60, 90, 40], position_mm: [0, 0, 20]}
    faces: {hmi_link: {port: 0, status: {port: 0}}}
environment:
  objects:
    - {name: table, type: box, position_mm: [600, 0, 25], dimensions_mm: [600, 900, 50]}
parts:
  - {name: cube, color: "#2277dd", dimensions_mm: [60, 60, 60], position_mm: [450, 0, 80]}
  - {name: box, color: "#22aa44", dimensions_mm: [80, 60, 40], position_mm: [500, 250, 70],
     grid: {columns: 2, rows: 1, layers: 2, pitch_mm: [100, 0, 40]}}
  - {name: can, type: cylinder, color: "#dd8822", radius_mm: 30, height_mm: 80,
     position_mm: [550, -250, 90]}
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    file = tmp_path_factory.mktemp("parts") / "cell.yaml"
    file.write_text(CELL)
    with StandIn(str(file), rate=1.0, hmi=True) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def screen(page_process: PageServer, open_page: Callable[..., Screen]) -> Screen:
    return open_page(_At(page_process.url))


class _At:
    """Where the page is; no cell of this test has REAL robots."""

    real = False

    def __init__(self, url: str) -> None:
        self.url = url


def act(cell: StandIn, action: Callable[[Workpieces, int], object]) -> None:
    """Does something with the parts, at the present time of the cell."""

    def do(live: Live) -> None:
        parts = workpieces_in(live._cell.components)
        assert parts is not None
        live._pump.act(lambda now: action(parts, now))

    cell._call(do)


def shown(screen: Screen, name: str = "cube") -> tuple[str, list[float]]:
    part = screen.scene["parts"].get(name, {"holder": "", "at": [0.0, 0.0, 0.0]})
    return part["holder"], [round(1000 * value) for value in part["at"]]


def test_parts_are_drawn_at_rest_in_the_hand_and_where_they_land(
    screen: Screen, cell: StandIn
) -> None:
    screen.until(lambda: len(screen.scene["parts"]) == 6, "six parts")
    assert shown(screen) == ("", [450, 0, 80])
    act(cell, take)
    screen.until(lambda: shown(screen)[0] == "g60", "the part in the hand")
    _, before = shown(screen)
    cell.do("set_joint_positions", robot="g60", joints_deg=[40, 0, 37, 0, 53, 0])
    screen.until(lambda: shown(screen)[1][1] > before[1] + 200, "the part moves with the arm")
    act(cell, lambda parts, now: parts.let_go("g60", now))
    screen.until(lambda: shown(screen)[0] == "" and shown(screen)[1][2] == 80, "it has landed")
    assert not screen.errors


def test_a_removed_part_is_not_drawn_any_more(screen: Screen, cell: StandIn) -> None:
    cell.do("remove_part", name="can")
    screen.until(lambda: "can" not in screen.scene["parts"], "the can is gone")


def take(parts: Workpieces, now: int) -> None:
    """The arm holds the cube 120 mm in front of its flange."""
    flange = parts.holders["g60"].flange(now)
    assert parts.move("cube", np.asarray(flange @ translation(0.0, 0.0, 0.12)), now) is None
    parts.take("cube", "g60", now)
