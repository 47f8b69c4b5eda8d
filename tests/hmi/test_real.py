"""HMI Integration: mode switching, Real ↔ Sim. The "real" robot is another cell's text robot."""

from collections.abc import Callable

import pytest
from tests.hmi.conftest import RunningCell, Screen

CELL = """
description: a text robot with a real one behind it
controller: simulation
hmi: {{}}
robots:
  bench:
    kind: point
    real: {{to: "{address}"}}
    faces:
      hmi_link: {{port: 5560, status: {{port: 5561}}}}
"""


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    robot = start_cell("text_robot", "--no-hmi")
    file = tmp_path_factory.mktemp("real") / "cell.yaml"
    file.write_text(CELL.format(address=robot.endpoints["bench.text_tcp"]))
    return start_cell(str(file), "--real")


def test_mode_switching(cell: RunningCell, open_page: Callable[..., Screen]) -> None:
    screen = open_page(cell)
    assert "SIMULATION" in screen.text("mode")
    change_over(screen)
    screen.until(lambda: screen.text("mode").startswith("REAL"), "REAL on the badge")
    assert screen.text("stop-label") == "software stop, not a safety function"
    assert screen.page.locator(".u-band").evaluate(STRIPES)
    screen.until(lambda: "connected" in screen.text("connection"), "its connection")
    assert screen.page.locator(".u-simulated").first.evaluate(OUT_OF_REACH)
    assert screen.page.locator(".u-only-real").is_visible()
    change_over(screen)
    screen.until(lambda: screen.text("mode").startswith("SIMULATION"), "simulated again")
    assert screen.text("stop-label") == "every robot of the cell stops"
    assert screen.errors == []


STRIPES = "e => getComputedStyle(e).backgroundImage.includes('repeating-linear-gradient')"
OUT_OF_REACH = "e => getComputedStyle(e).pointerEvents === 'none'"


def change_over(screen: Screen) -> None:
    screen.press("mode")
    screen.press("change-over")
