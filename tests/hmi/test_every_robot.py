"""HMI Integration: every robot of a cell has its place on the page."""

import math
from collections.abc import Callable

import pytest
from tests.hmi.conftest import RunningCell, Screen


@pytest.fixture(scope="module")
def cell(start_cell: Callable[[str], RunningCell]) -> RunningCell:
    return start_cell("default")


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
    told = screen.page.evaluate("understudy.scene.told('kuka').q")
    assert shown["kuka"]["q"] == pytest.approx(told)
    assert screen.page.locator('[data-mark="drives"]').is_hidden()


def test_a_text_robot_is_a_pose_that_goes_where_it_is_sent(
    screen: Screen, cell: RunningCell
) -> None:
    choose(screen, "bench")
    cell.ask("move_to", robot="bench", pose_mm_deg=[100, 50, 200, 0, 0, 90])

    def at() -> list[float]:
        tcp: list[float] = screen.scene["robots"]["bench"]["tcp"]
        return tcp

    wanted = [0.1, 0.05, 0.2, 0.0, 0.0, math.pi / 2]
    screen.until(lambda: at() == pytest.approx(wanted, abs=1e-9), "the pose")
    assert "90.00°" in screen.page.locator("#readout").inner_text()


def test_the_browser_remembers_its_robot(screen: Screen) -> None:
    choose(screen, "kuka")
    screen.page.reload()
    screen.page.wait_for_function("window.understudy?.report().ready")
    assert screen.scene["chosen"] == "kuka"
    choose(screen, "g60")
    assert screen.errors == []
