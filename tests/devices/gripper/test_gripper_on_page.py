"""The page moves the fingers of a gripper, and has buttons for it."""

from collections.abc import Callable, Iterator

import pytest
from tests.browsers import PageServer, Screen
from tests.devices.gripper.gripper_cell import cell_text
from tests.hmi.test_figures import CASES, FIGURES
from tests.hmi.test_parts_on_page import _At

from understudy.app.stand_in import StandIn

FINGERS = [
    {
        "name": f"finger_{side}", "type": "box", "dimensions_mm": [20, 10, 60],
        "position_mm": [0, y, 60],
    }
    for side, y in (("left", -45), ("right", 45))
]  # fmt: skip
PALM = {"name": "palm", "type": "box", "dimensions_mm": [60, 90, 40], "position_mm": [0, 0, 20]}

FIXED = f"""async () => {{
  const named = ({{ name }}) => name.includes("/frame/api.js");
  const {{ fixed }} = await import(performance.getEntriesByType("resource").find(named).name);
  return {list(map(list, CASES))}.map(([value, digits]) => fixed(value, digits));
}}"""
"""The function of the page, called with the cases of the one in Python."""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    tool = {"tcp_mm_deg": [0, 0, 80, 0, 0, 0], "shapes": [PALM, *FINGERS]}
    file = tmp_path_factory.mktemp("gripper") / "cell.yaml"
    faces = {"hmi_link": {"port": 0, "status": {"port": 0}}}
    file.write_text(cell_text(robot={"tools": {1: tool}, "faces": faces}))
    with StandIn(str(file), rate=1.0, hmi=True) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def screen(page_process: PageServer, open_page: Callable[..., Screen]) -> Screen:
    return open_page(_At(page_process.url))


def gap_mm(screen: Screen) -> int:
    """Between the middles of the two fingers."""
    fingers = screen.scene["robots"].get("g60", {}).get("fingers", [])
    return round(1000 * abs(fingers[0][1] - fingers[1][1])) if len(fingers) == 2 else -1


def test_fingers_open_and_close(screen: Screen, cell: StandIn) -> None:
    screen.until(lambda: gap_mm(screen) >= 0, "two fingers")
    wide = gap_mm(screen)
    screen.page.locator(".q-tab", has_text="Devices").first.click()
    screen.press("gripper_close")
    screen.until(lambda: gap_mm(screen) in (wide - 80, 80 - wide), "the fingers are closed")
    cell.do("gripper_open")
    screen.until(lambda: gap_mm(screen) == wide, "the fingers are open")
    assert screen.page.evaluate(FIXED) == FIGURES
    assert not screen.errors
