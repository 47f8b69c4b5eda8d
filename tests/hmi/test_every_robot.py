"""HMI Integration: every kind of robot on the page."""

import math
import re
from collections.abc import Callable
from importlib.resources import files

import pytest
from tests.browsers import SIZE, RunningCell, Screen

CELL = """
description: one of each kind
hmi: {}
robots:
  g60:
    kind: arm
    model: g60
    faces:
      hmi_link: {port: 5560, status: {port: 5561}}
  bench: {kind: text_robot}
  kuka: {kind: kuka}
  machine: {kind: machine, io: {digital_inputs: 8, digital_input_names: {}}}
  long: {kind: arm, model: long.urdf, base_mm_deg: [0, 3000, 0, 0, 0, 0]}
"""
G60 = files("understudy").joinpath("catalog/robots/g60.urdf").read_text()
SMALL = {"width": 1024, "height": 768}


@pytest.fixture(scope="module")
def cell(
    start_cell: Callable[..., RunningCell], tmp_path_factory: pytest.TempPathFactory
) -> RunningCell:
    """One robot of each kind, and an arm with long names of its joints."""
    file = tmp_path_factory.mktemp("kinds") / "kinds.yaml"
    file.write_text(CELL)
    long_names = re.sub(r'name="J(\d)"', r'name="a_rather_long_joint_name_\1"', G60)
    file.with_name("long.urdf").write_text(long_names)
    return start_cell(str(file))


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell)


def choose(screen: Screen, robot: str) -> None:
    screen.page.locator(".u-robot").click()
    screen.page.get_by_role("option", name=robot, exact=True).click()
    screen.until(lambda: screen.scene["chosen"] == robot, f"{robot} in the scene")


def test_a_kuka_is_chosen_and_moves(screen: Screen, cell: RunningCell) -> None:
    choose(screen, "kuka")
    shown = screen.scene["robots"]
    assert shown["kuka"]["shown"]
    assert not shown["g60"]["shown"], "both stand on one spot"
    joints = screen.page.evaluate("understudy.scene.latest('kuka').q")
    screen.until(lambda: screen.scene["robots"]["kuka"]["q"] == pytest.approx(joints), "its joints")
    screen.until(screen.at("drives").is_hidden, "no drives to switch")


def test_the_chosen_robot_is_marked(screen: Screen) -> None:
    for robot in screen.scene["robots"]:
        screen.page.evaluate(f"window.understudy.choose({robot!r})")
        marked = [name for name, facts in screen.scene["robots"].items() if facts["marked"]]
        assert marked == [robot]


def test_a_text_robot_is_drawn_at_its_pose(screen: Screen, cell: RunningCell) -> None:
    choose(screen, "bench")
    cell.ask("move_to", robot="bench", pose_mm_deg=[100, 50, 200, 0, 0, 90])

    def at() -> list[float]:
        tcp: list[float] = screen.scene["robots"]["bench"]["tcp"]
        return tcp

    wanted = [0.1, 0.05, 0.2, 0.0, 0.0, math.pi / 2]
    screen.until(lambda: at() == pytest.approx(wanted, abs=1e-9), "the pose")
    screen.until(lambda: "90.00°" in screen.page.locator("#readout").inner_text(), "its figures")


def test_a_machine_is_drawn_as_a_tool_and_its_pins_have_numbers(
    screen: Screen, cell: RunningCell
) -> None:
    choose(screen, "machine")
    cell.ask("send_gcode", robot="machine", line="G1 X30 Z-10 F6000")
    screen.until(
        lambda: (
            screen.scene["robots"]["machine"]["tcp"][:3]
            == pytest.approx([0.03, 0.0, -0.01], abs=1e-6)
        ),
        "the tool where it was sent",
    )
    screen.until(lambda: screen.page.locator('[data-pin="DI7"]').is_visible(), "its pins")
    figures = screen.page.locator("#readout")
    screen.until(lambda: figures.inner_text().startswith("X\n30.000 mm"), "its figures")
    names = screen.page.locator("#readout b").all_inner_texts()
    assert names == ["X", "Y", "Z", "A", "B", "C"]
    rows = "new Set([...document.querySelectorAll('#readout div')].map((e) => e.offsetTop)).size"
    assert screen.page.evaluate(rows) == 2  # three in a row have room for three decimals


def test_the_axes_of_a_machine_are_jogged_by_their_letters(
    screen: Screen, cell: RunningCell
) -> None:
    screen.page.goto(f"{cell.url}/program")
    screen.built()
    choose(screen, "machine")
    names = screen.page.locator(".u-axis-name")
    screen.until(lambda: names.all_inner_texts() == ["X", "Y", "Z", "A", "B", "C"], "its letters")


def test_the_browser_remembers_its_robot(screen: Screen) -> None:
    choose(screen, "kuka")
    screen.page.reload()
    screen.built()
    assert screen.scene["chosen"] == "kuka"
    choose(screen, "g60")
    assert screen.errors == []


def test_robots_that_jog_in_steps_only_have_no_hold(screen: Screen, cell: RunningCell) -> None:
    choose(screen, "g60")
    screen.page.goto(f"{cell.url}/program")
    screen.built()
    screen.until(lambda: "hold" in screen.text("jog-step"), "an arm is jogged while held")
    choose(screen, "bench")
    screen.until(lambda: "hold" not in screen.text("jog-step"), "steps alone")
    before = screen.scene["robots"]["bench"]["tcp"][0]
    screen.page.locator('[data-jog="0"][data-direction="1"]').click()
    there = pytest.approx(before + 0.001, abs=1e-9)
    screen.until(lambda: screen.scene["robots"]["bench"]["tcp"][0] == there, "a millimetre on")


def test_long_joint_names_leave_room_for_the_figures(screen: Screen, cell: RunningCell) -> None:
    screen.page.set_viewport_size(SMALL)
    screen.page.context.add_cookies([{"name": "robot", "value": "long", "url": cell.url}])
    screen.open(f"{cell.url}/program")
    figures = screen.page.locator(".u-axis-figure")
    screen.until(lambda: figures.count() == 6, "the axes")
    screen.until(lambda: "rather_long" in figures.first.inner_text(), "those of the long names")
    fits = "(axis) => [axis, axis.lastChild].every((e) => e.scrollWidth <= e.clientWidth)"
    assert all(figures.nth(n).evaluate(fits) for n in range(6))
    screen.page.set_viewport_size(SIZE)
