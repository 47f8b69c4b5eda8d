"""The fleet page in a browser: drive, hold, stop and reset a mobile robot, in two browsers."""

import math
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from tests.browsers import SIZE, RunningCell, Screen, english
from tests.hmi.test_layout import OUTSIDE as OUT_OF_VIEW

NAMES = [f"robot-{number}" for number in range(1, 11)]
FAST = 5.0
"""Times real time, so that robots arrive soon."""
CLIPPED = """() => [...document.querySelectorAll(".u-fleet .u-button, .u-grid-head button")]
  .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.textContent)"""
"""Texts of buttons whose content is wider than they are."""
OUTSIDE = """() => [...document.querySelectorAll(".u-fleet .u-button, #map, .u-grid-head")]
  .filter((element) => element.checkVisibility())
  .map((element) => [element.textContent, element.getBoundingClientRect()])
  .filter(([, { left, top, right, bottom }]) =>
    left < 0 || top < 0 || right > innerWidth + 1 || bottom > innerHeight + 1)
  .map(([text]) => text)"""
"""Texts of elements that are not on the screen."""
COVERED = """() => window.fleet.report().names
  .filter(({ px, at, half }, n, all) => all.slice(0, n).some((other) =>
    Math.abs(other.at - at) < 12 && Math.abs(other.px - px) < half + other.half - 1))
  .map(({ name }) => name)"""
"""Names of robots on the map that cover the name of another one."""
COVERED_IN_SCENE = """() => {
  const names = window.understudy.scene.names;
  return names.filter((one, n) => names.slice(0, n).some((other) =>
    Math.abs(one.x - other.x) < one.half + other.half - 1e-6
      && Math.abs(one.at - other.at) < one.high - 1e-6)).length;
}"""
"""How many names of robots cover another one in the scene."""
NAME_AT = """() => {
  const { names, viewport, robots } = window.understudy.scene;
  const robot = robots.get("robot-10");
  const [x] = viewport.onScreen(robot.marker.labels[robot.marker.ring.visible]);
  return Math.abs(names[[...robots.keys()].indexOf("robot-10")].x - x);
}"""
"""How far the name of robot-10 is from where the camera sees it."""
NOTICED = """(words) => {
  const orders = document.querySelector(".u-fleet-orders").getBoundingClientRect();
  return [...document.querySelectorAll(".q-notification")].some((element) =>
    words.every((word) => element.textContent.includes(word))
      && element.getBoundingClientRect().top >= orders.bottom);
}"""
"""Whether there is a notice with these words that covers none of the orders."""


@pytest.fixture(scope="module")
def cell(start_cell: Callable[..., RunningCell]) -> RunningCell:
    cell = start_cell("fleet")
    cell.ask("rate", rate=FAST)
    return cell


@pytest.fixture(scope="module")
def screen(cell: RunningCell, open_page: Callable[..., Screen]) -> Screen:
    return open_page(cell, "/fleet")


@pytest.fixture(scope="module")
def mixed_cell(start_cell: Callable[..., RunningCell]) -> RunningCell:
    return start_cell("default")


@pytest.fixture
def mixed(mixed_cell: RunningCell, open_page: Callable[..., Screen]) -> Iterator[Screen]:
    """The page of a cell with arms, one of which is chosen."""
    screen = open_page(mixed_cell, "/fleet")
    yield screen
    assert screen.errors == []
    screen.page.close()


def report(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.fleet.report()")
    return found


def pose(screen: Screen, robot: str) -> list[float]:
    """Where the map shows a robot."""
    found: list[float] = screen.page.evaluate("(name) => window.fleet.poseOf(name)", robot)
    return found


def pixels(screen: Screen, x: float, y: float) -> tuple[float, float]:
    px, py = screen.page.evaluate("([x, y]) => window.fleet.pixelsOf(x, y)", [x, y])
    return px, py


def choose(screen: Screen, robot: str) -> None:
    """By a click on the map, and one more while the robot drives away from it or a notice is over
    it."""

    def clicked() -> bool:
        x, y, _ = pose(screen, robot)
        screen.page.mouse.click(*pixels(screen, x, y))
        return chosen(screen) == {robot}

    screen.until(clicked, f"a click chooses {robot}")


def is_at(
    screen: Screen, robot: str, x: float, y: float, *, within: float = 0.1
) -> Callable[[], bool]:
    return lambda: math.dist(pose(screen, robot)[:2], (x, y)) < within


def true_place(cell: RunningCell, robot: str) -> tuple[float, float]:
    x, y, _ = cell.ask("fleet_robot", robot=robot)["true_pose"]
    return x, y


def word(screen: Screen, robot: str) -> str:
    """The state of a robot in the table."""
    return str(screen.page.evaluate("(name) => window.fleet.wordOf(name)", robot))


def row(screen: Screen, robot: str) -> Any:
    """A row of the table that is in view."""
    return screen.page.locator(f'.u-grid-row[data-robot="{robot}"]:visible')


def pause_while_moving(screen: Screen, cell: RunningCell, robot: str) -> None:
    """Stops the time while the robot is on its way, so that a slow browser does not miss it."""
    screen.until(
        lambda: abs(cell.ask("fleet_robot", robot=robot)["velocity"][0]) > 0.2, f"{robot} moves"
    )
    cell.ask("pause")


def press(screen: Screen, mark: str, command: str) -> None:
    """Presses a button, and waits until the cell has answered."""
    with screen.page.expect_response(f"**/api/{command}"):
        screen.press(mark)


def test_a_cell_of_mobile_robots_opens_on_its_map_and_a_mixed_one_does_not(
    cell: RunningCell, mixed_cell: RunningCell
) -> None:
    for opened, page in ((cell, "/fleet"), (mixed_cell, "/cell")):
        with urlopen(f"{opened.url}/?language=en", timeout=60) as answer:
            assert answer.url == f"{opened.url}{page}?language=en"


def test_a_robot_drives_to_the_place_that_is_clicked_with_the_heading_of_the_drag(
    screen: Screen, cell: RunningCell
) -> None:
    screen.until(lambda: report(screen)["connected"], "NATS")
    choose(screen, "robot-2")
    screen.reads("fleet-chosen", "robot-2")
    screen.until(lambda: "robot-2" in screen.text("robot"), "the frame shows it, too")
    screen.page.keyboard.press("g")
    screen.reads("map-hint", "robot-2")
    x, y = pixels(screen, 3.8, 3.0)
    screen.page.mouse.move(x, y)
    screen.page.mouse.down()
    screen.page.mouse.move(x - 60, y, steps=3)
    screen.page.mouse.up()
    screen.until(is_at(screen, "robot-2", 3.8, 3.0), "it drives there")
    facing = "Math.abs(Math.abs(window.fleet.poseOf('robot-2')[2]) - Math.PI) < 0.05"
    screen.page.wait_for_function(facing)
    done = '[data-fleet=events] [data-type="command.done"]'
    screen.until(lambda: screen.page.locator(done).count() > 0, "its event")
    assert report(screen)["mode"] is None, "one place for each press of the button"


def test_traffic_holds_a_robot_on_its_task_and_two_browsers_see_it(
    screen: Screen, cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    other = open_page(cell, "/fleet", beside=screen)
    screen.page.bring_to_front()
    choose(screen, "robot-9")
    screen.press("fleet-task")
    cell.ask("rate", rate=1.0)
    screen.page.mouse.click(*pixels(screen, 10.5, 12.0))
    pause_while_moving(screen, cell, "robot-9")
    screen.page.locator("[data-part=tasks] [data-does=cancel]").wait_for()
    shown = screen.page.locator('[data-part=figures] [data-row="state"] .u-part-value')
    screen.until(lambda: shown.inner_text() == word(screen, "robot-9") == "Moving", "its state")
    screen.reads("state", "Moving")
    press(screen, "fleet-hold", "fleet_traffic")
    cell.ask("resume")
    cell.ask("rate", rate=FAST)
    screen.until(lambda: word(screen, "robot-9") == "Traffic hold", "it is held")
    screen.reads("fleet-hold", "Release")
    other.page.bring_to_front()
    other.until(lambda: word(other, "robot-9") == "Traffic hold", "the other browser sees it")
    held = cell.ask("fleet_robot", robot="robot-9")
    assert held["hold"]["standing"]
    other.until(is_at(other, "robot-9", *held["true_pose"][:2]), "and where it stands")
    other.page.evaluate("window.fleet.choose('robot-9')")
    other.reads("fleet-hold", "Release")
    other.press("fleet-hold")
    other.until(is_at(other, "robot-9", 10.5, 12.0), "released there, it goes on")
    screen.page.bring_to_front()
    screen.until(is_at(screen, "robot-9", 10.5, 12.0), "in both browsers")
    assert other.errors == []
    other.page.close()


def test_one_robot_is_stopped_and_reset(screen: Screen, cell: RunningCell) -> None:
    choose(screen, "robot-5")
    screen.page.keyboard.press("t")
    cell.ask("rate", rate=1.0)
    screen.page.mouse.click(*pixels(screen, 13.0, 7.25))
    pause_while_moving(screen, cell, "robot-5")
    screen.until(lambda: report(screen)["stop"] == "Moving", "the page shows it")
    press(screen, "fleet-estop", "emergency_stop")
    cell.ask("resume")
    cell.ask("rate", rate=FAST)
    screen.until(lambda: word(screen, "robot-5") == "E-stop", "it is stopped")
    assert "E-stop" in row(screen, "robot-5").inner_text()
    screen.reads("state", "E-stop")
    screen.reads("alarm", "robot-5")
    assert word(screen, "robot-1") == "Ready", "and no other"
    screen.until(
        lambda: not cell.ask("fleet_robot", robot="robot-5")["tasks"], "its task has ended"
    )
    screen.press("fleet-drive")
    screen.page.mouse.click(*pixels(screen, 13.0, 2.6))
    screen.page.get_by_text("SAFETY_STOP_ACTIVE").wait_for()
    screen.page.keyboard.press("k")
    screen.until(lambda: word(screen, "robot-5") == "Ready", "reset")


def test_a_task_without_a_route_is_noticed_with_its_reason(screen: Screen) -> None:
    choose(screen, "robot-6")
    screen.press("fleet-task")
    screen.page.mouse.click(*pixels(screen, 6.5, 4.6))
    screen.page.wait_for_function(NOTICED, arg=["robot-6: the task has failed", "ROUTE_NOT_FOUND"])
    failed = screen.page.locator('[data-fleet=events] [data-type="task.failed"]')
    assert "robot-6" in failed.first.inner_text()


def test_an_emergency_stop_that_does_not_reach_the_cell_is_said_loudly(screen: Screen) -> None:
    notice = screen.page.locator(".u-unstopped")
    choose(screen, "robot-6")
    screen.page.route("**/api/emergency_stop", lambda route: route.abort())
    screen.press("fleet-estop")
    notice.wait_for()
    screen.page.unroute("**/api/emergency_stop")
    press(screen, "fleet-estop", "emergency_stop")
    notice.wait_for(state="hidden")
    screen.until(lambda: "E-stop" in word(screen, "robot-6"), "stopped")
    screen.press("fleet-reset")
    screen.until(lambda: word(screen, "robot-6") == "Ready", "reset")


def test_a_hold_is_shown_and_released_while_the_robot_is_stopped(
    screen: Screen, cell: RunningCell
) -> None:
    choose(screen, "robot-8")
    press(screen, "fleet-hold", "fleet_traffic")
    press(screen, "fleet-estop", "emergency_stop")
    stopped = row(screen, "robot-8")
    screen.until(lambda: "E-stop · Held" in stopped.inner_text(), "both are in the table")
    screen.reads("fleet-hold", "Release")
    hold = screen.page.locator('[data-part=figures] [data-row="hold"]')
    hold.wait_for()
    press(screen, "fleet-hold", "fleet_traffic")
    screen.reads("fleet-hold", "Hold")
    hold.wait_for(state="detached")
    screen.press("fleet-reset")
    screen.until(lambda: word(screen, "robot-8") == "Ready", "nothing holds it")


def test_no_order_is_sent_while_the_robot_of_the_frame_is_an_arm(mixed: Screen) -> None:
    assert report(mixed)["chosen"] == "g60"
    assert mixed.text("fleet-chosen") == ""
    mixed.press("fleet-drive")
    mixed.page.locator(".q-notification", has_text="Choose a robot").first.wait_for()
    assert report(mixed)["mode"] is None
    mixed.press("fleet-estop")
    choose(mixed, "robot-1")
    mixed.reads("fleet-chosen", "robot-1")
    assert not [url for url in mixed.requests if url.endswith("/api/emergency_stop")]


def test_a_reset_that_lets_a_task_begin_is_asked_first(screen: Screen, cell: RunningCell) -> None:
    choose(screen, "robot-10")
    x, y, _ = cell.ask("fleet_robot", robot="robot-10")["true_pose"]
    cell.ask("fleet_traffic", robot="robot-10", hold=True)
    screen.until(lambda: word(screen, "robot-10") == "Traffic hold", "its task will wait")
    cell.ask("fleet_task", robot="robot-10", x_m=x, y_m=y)
    cell.ask("emergency_stop", robot="robot-10")
    screen.until(lambda: word(screen, "robot-10") == "E-stop", "it is stopped")
    screen.press("fleet-reset")
    asked = screen.at("reset-moves")
    asked.wait_for()
    assert "robot-10" in asked.inner_text()
    asked.get_by_text("Close").click()
    asked.wait_for(state="detached")
    assert cell.ask("fleet_robot", robot="robot-10")["estop"]
    screen.at("alarm-reset").wait_for()
    screen.press("alarm-reset")  # of the frame
    screen.reads("reset-moves", "Reset? robot-10 will move.")
    asked.get_by_text("Close").click()
    asked.wait_for(state="detached")
    assert cell.ask("fleet_robot", robot="robot-10")["estop"]
    screen.press("fleet-reset")
    screen.press("do-reset-cell")
    screen.until(lambda: word(screen, "robot-10") == "Traffic hold", "it is reset")
    cell.ask("fleet_traffic", robot="robot-10", hold=False)
    screen.until(lambda: word(screen, "robot-10") == "Ready", "it is as before")


def test_no_name_is_under_the_buttons_of_the_map(mixed: Screen) -> None:
    top = mixed.page.locator(".u-fleet-orders").bounding_box()
    bottom = mixed.page.locator(".u-map-bar").bounding_box()
    canvas = mixed.page.locator("#map").bounding_box()
    names = report(mixed)["names"]
    assert {"robot-1", "robot-2"} <= {each["name"] for each in names}
    for each in names:
        at = canvas["y"] + each["at"]
        assert top["y"] + top["height"] < at - 13 < at < bottom["y"], each
        assert each["half"] < each["px"] < canvas["width"] - each["half"], each


def test_filter_sort_and_a_target_by_keys(screen: Screen, cell: RunningCell) -> None:
    search = screen.at("fleet-search")
    search.fill("robot-1")
    screen.reads("fleet-count", "2 of 10")
    search.fill("")
    screen.page.locator('[data-sort="robot"]').click()
    screen.until(lambda: report(screen)["table"]["first"] == "robot-10", "sorted downwards")
    cell.ask("inject", fault="drive_fault", on="robot-7")
    cell.ask("emergency_stop", robot="robot-7")
    screen.page.locator("[data-filter=faulty]").click()
    screen.until(lambda: report(screen)["table"]["names"] == ["robot-7"], "the faulty one")
    row(screen, "robot-7").click()
    screen.page.locator("[data-does=reset-motor]").first.wait_for()
    screen.reads("state", "Error")
    screen.until(lambda: word(screen, "robot-7") == "Error", "as in the frame")
    both = screen.page.locator('[data-part=figures] [data-row="state"]', has_text="Error · E-stop")
    both.wait_for()
    screen.page.keyboard.press("k")
    screen.reads("fleet-count", "0 of 10")
    screen.page.locator("[data-filter=all]").click()
    search.fill("robot-1")
    row(screen, "robot-1").click()
    x, y, _ = pose(screen, "robot-1")
    screen.page.keyboard.press("g")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"):
        screen.page.keyboard.press(key)
    screen.until(is_at(screen, "robot-1", x, y + 1.0), "a metre on, by keys alone")
    assert screen.errors == []


def test_the_view_is_panned_zoomed_and_fitted(screen: Screen) -> None:
    fitted = report(screen)
    x, y = pixels(screen, 10.5, 7.25)
    screen.page.mouse.move(x, y)
    screen.page.mouse.wheel(0, -400)
    screen.until(lambda: report(screen)["scale"] > 1.5 * fitted["scale"], "zoomed in")
    assert pixels(screen, 10.5, 7.25) == pytest.approx((x, y), abs=0.5), "around the mouse"
    screen.page.mouse.down()
    screen.page.mouse.move(x + 80, y, steps=4)
    screen.page.mouse.up()
    assert pixels(screen, 10.5, 7.25)[0] == pytest.approx(x + 80, abs=0.5)
    screen.page.keyboard.press("f")
    screen.until(lambda: report(screen)["scale"] == pytest.approx(fitted["scale"]), "all of it")


def test_follow_ends_with_the_wheel_and_with_a_drag(screen: Screen) -> None:
    lit = "document.querySelector('[data-mark=follow]').classList.contains('u-chosen')"
    choose(screen, "robot-4")
    x, y = pixels(screen, 10.5, 7.25)
    screen.page.mouse.move(x, y)
    screen.press("follow")
    screen.page.wait_for_function(lit)
    screen.page.mouse.move(x, y)
    screen.page.mouse.wheel(0, -100)
    screen.page.wait_for_function(f"!{lit}")
    screen.press("follow")
    screen.page.wait_for_function(lit)
    screen.page.mouse.move(x, y)
    screen.page.mouse.down()
    screen.page.mouse.move(x + 80, y, steps=4)
    screen.page.mouse.up()
    screen.page.wait_for_function(f"!{lit}")
    screen.press("fit")


@pytest.mark.parametrize(("wide", "high"), [(820, 1180), (390, 844)])
def test_the_map_the_state_and_the_stop_are_on_a_tablet_and_a_phone(
    screen: Screen, wide: int, high: int
) -> None:
    screen.page.set_viewport_size({"width": wide, "height": high})
    screen.page.reload()
    screen.built()
    for mark in ("state", "alarm", "emergency-stop", "map", "fleet-drive", "fleet-estop", "fit"):
        box = screen.at(mark).bounding_box()
        assert box["x"] >= 0, mark
        assert box["x"] + box["width"] <= wide, mark
    assert screen.at("map").bounding_box()["y"] < high / 2
    assert screen.page.evaluate(COVERED) == []
    assert report(screen)["visible"] > 0, "robots on the map"
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= wide
    screen.page.set_viewport_size(SIZE)


@pytest.mark.parametrize(
    ("language", "wide", "high"), [("vi", 1024, 768), ("en", 1024, 768), ("en", 3840, 2160)]
)
def test_everything_is_in_reach_on_small_and_large_screens(
    screen: Screen, cell: RunningCell, language: str, wide: int, high: int
) -> None:
    page = screen.page
    page.context.add_cookies([{"name": "language", "value": language, "url": cell.url}])
    page.set_viewport_size({"width": wide, "height": high})
    page.reload()
    screen.built()
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(COVERED) == []
    assert report(screen)["names"], "names of robots"
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    small = (
        "[...document.querySelectorAll('.u-fleet .u-button')].every((e) => e.clientHeight >= 46)"
    )
    assert page.evaluate(small)
    high = screen.at("fleet-drive").bounding_box()["height"]
    assert high >= (70 if wide == 3840 else 46), "words and buttons grow with a large screen"
    before = report(screen)["scale"]
    page.set_viewport_size(SIZE)
    if wide > 2 * SIZE["width"]:
        screen.until(lambda: report(screen)["scale"] < before / 2, "the map shows all of it again")


def chosen(screen: Screen) -> set[str]:
    return set(report(screen)["selected"])


def test_orders_go_to_all_robots_that_are_chosen(screen: Screen, cell: RunningCell) -> None:
    def held(robot: str) -> bool:
        return "hold" in word(screen, robot)

    screen.at("fleet-search").fill("")
    screen.page.evaluate("window.fleet.choose('robot-1')")  # scrolls the table to it
    row(screen, "robot-1").click()
    assert chosen(screen) == {"robot-1"}
    row(screen, "robot-3").click(modifiers=["Control"])
    screen.reads("fleet-chosen", "2 robots")
    row(screen, "robot-3").locator(".u-grid-pick").click()
    screen.reads("fleet-chosen", "robot-1")
    names = report(screen)["table"]["names"]
    row(screen, names[0]).click()
    row(screen, names[2]).click(modifiers=["Shift"])
    assert chosen(screen) == set(names[:3])
    (x1, y1), (x2, y2) = pixels(screen, 10.2, 0.1), pixels(screen, 19.0, 2.0)
    cell.ask("pause")  # no robot leaves the rectangle while it is drawn
    for name in NAMES:
        screen.until(is_at(screen, name, *true_place(cell, name), within=0.01), "it stands there")
    row(screen, "robot-1").click()
    screen.page.keyboard.down("Shift")
    screen.page.mouse.move(x1, y1)
    screen.page.mouse.down()
    screen.page.mouse.move(x2, y2, steps=3)
    screen.page.mouse.up()
    screen.page.keyboard.up("Shift")
    inside = {
        name
        for name in NAMES
        if 10.2 < pose(screen, name)[0] < 19.0 and 0.1 < pose(screen, name)[1] < 2.0
    }
    assert len(inside) >= 2
    assert chosen(screen) == {"robot-1"} | inside
    cell.ask("resume")
    count = len(inside) + 1
    screen.press("fleet-hold")
    screen.page.wait_for_function(NOTICED, arg=[f"Hold: {count} of {count} robots"])
    screen.until(lambda: all(map(held, chosen(screen))), "all are held")
    screen.reads("fleet-hold", "Release")
    screen.press("fleet-hold")
    screen.until(lambda: not any(map(held, chosen(screen))), "all are released")
    screen.press("fleet-reset")
    screen.at("reset-all").get_by_text("Close").click()
    choose(screen, "robot-1")
    assert screen.errors == []


def test_tasks_that_wait_are_listed_and_canceled(screen: Screen, cell: RunningCell) -> None:
    cell.ask("fleet_traffic", robot="robot-4", hold=True)
    x, y, _ = cell.ask("fleet_robot", robot="robot-4")["true_pose"]
    for _ in range(2):
        cell.ask("fleet_task", robot="robot-4", x_m=x, y_m=y)
    screen.page.locator("[data-list=tasks]").click()
    tasks = screen.at("fleet-tasks").locator("[data-task]")
    screen.until(lambda: tasks.count() == 2, "both are listed")
    assert "robot-4" in tasks.last.inner_text()
    tasks.last.locator("button").click()
    screen.until(lambda: tasks.count() == 1, "one is canceled")
    screen.page.locator("[data-list=events]").click()
    cell.ask("fleet_order", robots=["robot-4"], order="stop")
    cell.ask("fleet_traffic", robot="robot-4", hold=False)


def test_what_a_robot_cannot_do_is_not_offered(screen: Screen) -> None:
    def change(route: Any) -> None:
        floor = route.fetch().json()
        floor["robots"][0]["orders"] = ["stop", "hold"]
        route.fulfill(json=floor)

    screen.page.route("**/api/fleet", change)
    screen.page.reload()
    screen.built()
    screen.until(lambda: report(screen)["ready"], "the map is there")
    offered = screen.page.locator("[data-order]:visible")
    row(screen, "robot-1").click()
    screen.until(lambda: offered.count() == 2, "stop and hold")
    row(screen, "robot-2").click(modifiers=["Control"])
    screen.until(lambda: offered.count() == 6, "one of both robots can do it")
    screen.page.unroute("**/api/fleet")
    screen.page.reload()
    screen.built()
    screen.until(lambda: report(screen)["ready"], "as before")


@pytest.mark.parametrize(("wide", "high"), [(820, 1180), (390, 844)])
def test_an_upright_screen_has_the_map_above_and_scrolls_to_the_table(
    screen: Screen, wide: int, high: int
) -> None:
    page = screen.page
    page.set_viewport_size({"width": wide, "height": high})
    screen.until(lambda: page.locator("#map").bounding_box()["width"] < wide, "laid out")
    fleet = page.locator(".u-fleet")
    assert fleet.evaluate("(element) => element.scrollWidth <= element.clientWidth")
    assert page.evaluate(CLIPPED) == []
    canvas = page.locator("#map").bounding_box()
    assert canvas["height"] >= 250
    for buttons in (".u-fleet-orders .u-button", ".u-map-bar .u-button"):
        for box in (each.bounding_box() for each in page.locator(buttons).all()):
            beside = box["y"] + box["height"] <= canvas["y"] + 1
            assert beside or box["y"] >= canvas["y"] + canvas["height"] - 1, "none is on the map"
            assert box["x"] + box["width"] <= wide
    page.locator(".u-grid-row:visible").first.scroll_into_view_if_needed()
    assert page.locator(".u-grid-row:visible").first.bounding_box()["y"] < high
    page.locator("[data-part=motors]").scroll_into_view_if_needed()
    page.set_viewport_size(SIZE)


def test_mobile_robots_drive_in_the_scene_of_the_cell_page(
    screen: Screen, cell: RunningCell
) -> None:
    screen.page.goto(f"{cell.url}/cell")
    screen.built()
    x, y, yaw = cell.ask("fleet_robot", robot="robot-9")["true_pose"]
    assert y > 10.0, "it is far from where it started"
    there = pytest.approx([x, y, 0.0, 0.0, 0.0, yaw], abs=1e-3)
    screen.until(lambda: screen.scene["robots"]["robot-9"]["tcp"] == there, "where it is")
    label = "window.understudy.scene.robots.get('robot-9').marker.object.position.toArray()"
    assert screen.page.evaluate(label) == pytest.approx([x, y, 0.0], abs=1e-3)
    screen.page.wait_for_function("window.understudy.scene.viewport.flight === null")
    assert screen.page.evaluate(OUT_OF_VIEW) == [], "the view shows the whole hall"
    screen.page.locator('[data-view="front"]').click()
    screen.page.wait_for_function("window.understudy.scene.viewport.flight === null")
    screen.until(lambda: screen.page.evaluate(NAME_AT) < 1e-6, "names are set for this view")
    assert screen.page.evaluate(COVERED_IN_SCENE) == 0
    for of_programs in (
        '[data-tab="program"]',
        '[data-mark="run-programs"]',
        '[data-layer="trail"]',
        '[data-mark="metric-gcodes"]',
    ):
        assert screen.page.locator(of_programs).count() == 0
    assert screen.page.locator('[data-layer="environment"]').count() == 1
    screen.open_tab("plots")
    screen.page.wait_for_function("window.plots.report().rows > 1")
    plots = screen.page.locator("[data-plot]:visible")
    assert [each.get_attribute("data-plot") for each in plots.all()] == ["positions", "velocities"]
    assert screen.errors == []


def test_the_first_view_of_a_cell_shows_its_mobile_robots(
    mixed_cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(mixed_cell, "/")

    def outside() -> list[str]:
        robots = screen.scene["robots"].items()
        return [name for name, each in robots if max(map(abs, each["screen"])) > 1.0]

    screen.until(lambda: outside() == [], "all robots on the screen")
    names = [name for name, each in screen.scene["robots"].items() if each["shown"]]
    assert {"robot-1", "robot-2"} <= set(names)
    screen.page.close()


def test_no_english_is_left_on_the_page_in_vietnamese(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(cell, "/fleet")
    screen.press("language-vi")
    screen.page.wait_for_function("document.documentElement?.lang === 'vi'")
    screen.built()
    row(screen, "robot-2").click()
    screen.reads("fleet-chosen", "robot-2")
    found = screen.shown()
    assert len(found) > 60
    events = {text for text in found if text.startswith("taskId")}
    assert english(found - events) == set()
    screen.page.close()
