"""HMI Integration: mode switching, Real ↔ Sim. The "real" robot is another cell's text robot."""

from collections.abc import Callable, Iterator
from functools import partial
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.browsers import RunningCell, Screen
from tests.processes import command_lines

from understudy.app.stand_in import StandIn

CELL = """
description: a text robot with a real one behind it
controller: simulation
hmi: {{}}
robots:
  bench:
    kind: text_robot
    real: {{to: "{address}"}}
    faces:
      hmi_link: {{port: 5560, status: {{port: 5561}}}}
"""


@pytest.fixture(scope="module")
def robot() -> Iterator[StandIn]:
    """The "real" robot."""
    with StandIn("text_robot", rate=1.0) as robot:
        yield robot


@pytest.fixture(scope="module")
def cell(
    robot: StandIn,
    start_cell: Callable[..., RunningCell],
    tmp_path_factory: pytest.TempPathFactory,
) -> RunningCell:
    file = tmp_path_factory.mktemp("real") / "cell.yaml"
    file.write_text(CELL.format(address=robot.endpoints["bench.text_tcp"]))
    return start_cell(str(file), "--real")


def test_rest_of_a_cell_with_real_robots_needs_the_secret(cell: RunningCell) -> None:
    """The HMI process knows it, but lends it to no visitor; no command line contains it."""
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{cell.url}/api/now")
    assert refused.value.code == 401
    refused.value.close()
    assert cell.ask("now")["rate"] == 1.0
    found = command_lines(cell.process.pid, recursive=True).values()
    lines = [" ".join(line) for line in found]
    assert any("understudy.hmi" in line for line in lines)
    assert all(cell.secret not in line for line in lines)


def test_mode_switching(cell: RunningCell, open_page: Callable[..., Screen]) -> None:
    screen = open_page(cell)
    assert "SIMULATION" in screen.text("mode")
    change_over(screen)
    screen.until(lambda: screen.text("mode").startswith("REAL"), "REAL on the badge")
    screen.reads("stop-label", "software stop, not a safety function")
    screen.until(lambda: screen.page.locator(".u-band").evaluate(STRIPES), "its stripes")
    screen.reads("connection", "connected")
    simulated = screen.page.locator(".u-simulated").first
    screen.until(lambda: simulated.evaluate(DISABLED), "simulation controls disabled")
    screen.until(screen.page.locator(".u-only-real").is_visible, "why")
    change_over(screen)
    screen.until(lambda: screen.text("mode").startswith("SIMULATION"), "simulated again")
    screen.reads("stop-label", "every robot of the cell stops")
    assert screen.errors == []


STRIPES = "e => getComputedStyle(e).backgroundImage.includes('repeating-linear-gradient')"
DISABLED = "e => getComputedStyle(e).pointerEvents === 'none'"


def change_over(screen: Screen) -> None:
    asks = screen.at("change-over")
    screen.until(lambda: asks.count() == 0, "the last dialog has gone")
    screen.press("mode")
    asks.click()


# ── an arm with a grblHAL controller, which the other cell simulates ──

ARM_CELL = """
description: an arm with a real controller behind it
controller: simulation
hmi: {{}}
robots:
  g60:
    kind: arm
    model: g60
    real: {{to: "{address}"}}
    faces:
      hmi_link: {{port: 5560, status: {{port: 5561}}}}
"""
INERT = "e => e.closest('[inert]') !== null"


@pytest.fixture(scope="module")
def hardware() -> Iterator[StandIn]:
    with StandIn("default", rate=1.0) as hardware:
        yield hardware


def test_inputs_and_faults_are_disabled_on_real(
    hardware: StandIn,
    start_cell: Callable[..., RunningCell],
    open_page: Callable[..., Screen],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("arm") / "cell.yaml"
    file.write_text(ARM_CELL.format(address=hardware.endpoints["g60.grblhal"]))
    screen = open_page(start_cell(str(file), "--real"))
    change_over(screen)
    screen.until(lambda: screen.text("mode").startswith("REAL"), "REAL on the badge")
    simulated = {"digital": "[data-pin=DI10]", "analog": "[data-pin=AI0]", "faults": "[data-fault]"}
    for tab, selector in simulated.items():
        screen.press(f"tab-{tab}")
        place = screen.page.locator(selector).first
        place.wait_for()
        screen.until(partial(place.evaluate, INERT), f"{tab} disabled")
    assert not screen.at("drives").evaluate(INERT)
    assert screen.errors == []
