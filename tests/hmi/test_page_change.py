"""Page changes: the frame and the scene stay, the page inside the frame is replaced."""

from collections.abc import Callable
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.browsers import RunningCell, Screen

SEAM = "G1 X400 F3000\nM3 S150\nG1 Y100 F600\nM5\n"


@pytest.fixture
def screen(opened: Screen, cell: RunningCell) -> Screen:
    """The cell page, loaded anew. One browser page for all tests: each open page costs the others
    processor time."""
    opened.page.goto(cell.url)
    opened.built()
    opened.requests.clear()
    opened.page.evaluate("window.loadedOnce = true")
    return opened


def loaded_once(screen: Screen) -> bool:
    return bool(screen.page.evaluate("window.loadedOnce === true"))


def test_all_pages_are_opened_without_loading_the_frame_again(screen: Screen) -> None:
    frame = screen.page.locator(".u-header").element_handle()
    for tab in ("program", "plots", "log", "cell", "program"):
        screen.open_tab(tab)
        assert screen.page.locator(f'[data-tab="{tab}"].u-chosen').count() == 1
        assert screen.page.locator(".u-tab.u-chosen").count() == 1
    assert screen.page.url.endswith("/program?robot=g60")
    assert loaded_once(screen)
    assert frame.evaluate("(element) => element.isConnected")
    assert screen.errors == []


def test_the_scene_survives_with_its_camera_and_layers(screen: Screen) -> None:
    screen.page.evaluate("window.firstScene = window.understudy.scene")
    screen.page.locator('[data-view="top"]').click()
    screen.page.locator('[data-layer="frames"]').click()
    canvas = screen.page.locator("#scene canvas").element_handle()
    screen.open_tab("log")
    assert not canvas.evaluate("(element) => element.isConnected")
    screen.open_tab("program")
    assert canvas.evaluate("(element) => element.closest('#scene') !== null")
    assert screen.page.evaluate("window.firstScene === window.understudy.scene")
    assert screen.scene["view"] == "top"
    assert screen.scene["layers"]["frames"]
    assert screen.page.locator('[data-view="top"].u-chosen').count() == 1


def test_objects_that_were_added_meanwhile_are_drawn(screen: Screen, cell: RunningCell) -> None:
    screen.open_tab("log")
    box = {
        "name": "crate",
        "type": "box",
        "dimensions_mm": [100, 100, 100],
        "position_mm": [0, 900, 50],
    }
    cell.ask("add_object", object=box)
    screen.open_tab("cell")
    screen.until(lambda: "crate" in screen.scene["objects"], "the crate in the scene")
    cell.ask("remove_object", name="crate")


def test_back_and_forward_change_pages(screen: Screen) -> None:
    screen.open_tab("plots")
    screen.open_tab("log")
    screen.page.go_back()
    screen.page.locator('[data-page="plots"] #plots-page').wait_for()
    screen.page.go_forward()
    screen.page.locator('[data-page="log"] #log-page').wait_for()
    assert loaded_once(screen)


def polls(screen: Screen, address: str) -> int:
    return sum(address in request for request in screen.requests)


def test_a_page_that_was_left_requests_nothing(screen: Screen) -> None:
    screen.open_tab("plots")
    screen.until(lambda: polls(screen, "/api/sample") > 2, "rows of the plots")
    screen.open_tab("log")
    screen.page.wait_for_timeout(500)  # a request under way ends
    asked = polls(screen, "/api/sample")
    logged = polls(screen, "/api/events")
    screen.until(lambda: polls(screen, "/api/events") > logged + 3, "rows of the log")
    assert polls(screen, "/api/sample") == asked


def test_updates_of_pages_that_were_left_end(screen: Screen, cell: RunningCell) -> None:
    """Every visit registers its updates again; each state of the program reaches the page once."""
    for tab in ("program", "cell", "program", "cell", "program"):
        screen.open_tab(tab)
    count = """() => {
        const update = window.program.update.bind(window.program);
        window.updates = [];
        window.program.update = (...args) => {
            window.updates.push(JSON.stringify(args[0]));
            return update(...args);
        };
    }"""
    screen.page.evaluate(count)
    cell.ask("load_program", robot="g60", text=SEAM, name="seam.gcode")
    screen.until(lambda: "seam.gcode" in str(updates(screen)), "the loaded program")
    assert len(set(updates(screen))) == len(updates(screen))


def updates(screen: Screen) -> list[str]:
    return [str(each) for each in screen.page.evaluate("window.updates")]


def test_a_page_change_requests_no_file_again(screen: Screen) -> None:
    """Of a page that was opened before. A full load of it requests its document, the frame, the
    scene and its scripts; those of other pages are loaded ahead, whenever there is time."""
    screen.open_tab("program")
    screen.requests.clear()
    screen.page.reload()
    screen.built()
    document = screen.page.url.rpartition("/")[2]
    needed = {document, "frame.js", "scene.js", "program.js"}
    assert needed <= files(screen)
    screen.open_tab("cell")
    screen.requests.clear()
    screen.open_tab("program")
    screen.open_tab("cell")
    screen.open_tab("program")
    screen.until(lambda: polls(screen, "/api/program") > 0, "the state of the program")
    assert not needed & files(screen)


def files(screen: Screen) -> set[str]:
    """The names of what was requested."""
    return {request.rpartition("/")[2] for request in screen.requests}


NAMES = """async () => {
  const { Marker, separateNames } = await import("/static/scene/marks.js");
  const markers = ["one", "two", "far away"].map((name) => new Marker(name, 0.1));
  markers[2].object.position.set(0, 2, 0);
  for (const marker of markers) marker.object.updateMatrixWorld(true);
  return separateNames(window.understudy.scene.viewport.camera, markers).map(({ at }) => at);
}"""
"""Heights on the screen of the names of three robots, two of them at one place."""


def test_names_of_robots_do_not_cover_each_other(screen: Screen) -> None:
    screen.open_tab("cell")
    one, two, far = screen.page.evaluate(NAMES)
    assert two - one == pytest.approx(0.08, abs=0.04), "one name above the other"
    assert far not in (one, two)


# ── the address of what is shown ──


def test_a_link_shows_the_same_page_robot_view_and_line(
    screen: Screen, cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    cell.ask("load_program", robot="g60", text=SEAM, name="seam.gcode")
    screen.open_tab("program")
    screen.page.wait_for_function("window.program.report().name === 'seam.gcode'")
    screen.page.locator('[data-view="top"]').click()
    screen.page.locator(".cm-line").nth(2).click()
    screen.until(lambda: screen.page.url.endswith("line=3"), "the line in the address")
    link = screen.page.url.removeprefix(cell.url)
    assert link == "/program?robot=g60&view=top&line=3"
    other = open_page(cell, link, beside=screen)
    other.page.wait_for_function("window.program.report().line === 3")
    assert other.scene["view"] == "top"
    chosen = other.page.locator(".u-chosen-line")
    other.until(lambda: chosen.inner_text() == SEAM.splitlines()[2], "the line")

    other.page.mouse.move(700, 400)
    other.page.mouse.wheel(0, 300)
    free = "new URLSearchParams(location.search).get('view').split(',').length === 6"
    other.page.wait_for_function(free)
    camera = "window.understudy.scene.viewport.look()"
    looked = other.page.evaluate("new URLSearchParams(location.search).get('view')")
    other.page.reload()
    other.built()
    other.until(lambda: other.page.evaluate(camera) == looked, "the same camera")
    other.open_tab("log")
    assert "line=" not in other.page.url
    other.page.close()


# ── an address without a page ──


def test_an_unknown_address_shows_the_frame_and_leads_back(
    cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(cell, "/nowhere")
    assert "no page at this address" in screen.text("missing")
    assert screen.text("state")
    screen.page.evaluate("window.loadedOnce = true")
    screen.open_tab("log")
    assert loaded_once(screen)
    screen.page.go_back()
    screen.at("missing").wait_for()


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_an_unknown_address_is_a_404(cell: RunningCell, accept: str) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{cell.url}/nowhere", headers={"Accept": accept}))
    with refused.value as answer:
        assert answer.code == 404
        assert accept in answer.headers["content-type"]
