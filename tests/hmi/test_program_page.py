"""HMI Integration: the program page in a browser, with a running cell."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from typing import Any

import pytest
from tests.browsers import STARTING_SECONDS, RunningCell, Screen, WeldingCell
from tests.hmi.test_hmi_integration import legible, turn

SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
SHORT = """G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
G1 X450 Y100 F6000
G1 X450 Y-100
G0 X500 Y0 Z500 A180 B0 C0
"""
WELD_LINE = 11


@pytest.fixture(scope="module")
def cell(welding: WeldingCell) -> RunningCell:
    welding.ask("preview", robot="g60", text=SHORT)
    return welding


@pytest.fixture(scope="module")
def opened(cell: RunningCell, welding_screen: Screen) -> Screen:
    welding_screen.open(cell.url + "/program")
    return welding_screen


@pytest.fixture
def screen(opened: Screen, cell: RunningCell) -> Iterator[Screen]:
    """The page, its robot at rest with drives on, and the seam loaded."""
    if program(cell)["state"] in ("running", "paused"):
        cell.ask("stop_program", robot="g60")
    cell.ask("stop")
    cell.ask("reset")
    cell.ask("start")
    cell.ask("rate", rate=1.0)
    cell.ask("enable", robot="g60")
    cell.ask("override", robot="g60", feed_percent=100, rapid_percent=100)
    for point in cell.ask("points", robot="g60")["points"]:
        cell.ask("delete_point", robot="g60", name=point["name"])
    load(cell, opened, SEAM)
    yield opened
    cell.ask("stop")
    assert opened.errors == []


def load(cell: RunningCell, screen: Screen, text: str, name: str = "seam.gcode") -> None:
    cell.ask("load_program", robot="g60", text=text, name=name)
    screen.page.evaluate("window.program.revert()")
    screen.until(lambda: shown(screen)["text"] == text, "the robot's program")
    screen.page.evaluate("window.program.clearFindings()")


def shown(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.program.report()")
    return found


def program(cell: RunningCell) -> dict[str, Any]:
    found: dict[str, Any] = cell.ask("program", robot="g60")
    return found


def press(screen: Screen, action: str) -> None:
    screen.page.locator(f'[data-does-program="{action}"]').click()


def click_line(screen: Screen, number: int) -> None:
    """Clicks the beginning of a line; the editor renders every line of a short program."""
    line = screen.page.locator(".cm-line").nth(number - 1)

    def clicked() -> bool:
        line.click(position={"x": 30, "y": 8})
        return bool(screen.page.evaluate("window.program.editor.line") == number)

    screen.until(clicked, "the cursor there")  # a program that arrives moves the cursor to line 1


def last_row(cell: RunningCell) -> dict[str, Any]:
    rows = cell.ask("sample", robot="g60", count=1)["rows"]
    return rows[-1] if rows else {}


def joints(cell: RunningCell) -> list[float]:
    return list(last_row(cell).get("joints_deg", ()))


# ── text and draft ──


def test_the_robots_program_is_shown_in_colours(screen: Screen) -> None:
    assert shown(screen)["text"] == SEAM
    assert shown(screen)["name"] == "seam.gcode"
    colours = (
        "[...document.querySelectorAll('.cm-line span')].map(s => [s.className, s.textContent])"
    )
    found = screen.page.evaluate(colours)
    for word in (["g-rapid", "G0"], ["g-motion", "G1"], ["g-process", "M3"], ["g-axis", "Y100"]):
        assert word in found
    assert any(kind == "g-comment" and "arc" in text for kind, text in found)


def test_the_running_line_moves_with_the_welding_program(screen: Screen, cell: RunningCell) -> None:
    cell.ask("pause")  # from here on time advances by single steps
    screen.page.evaluate("window.program.loadPreview()")
    press(screen, "run")
    screen.until(lambda: program(cell)["state"] == "running", "the run")
    for line, text in ((7, "F6000"), (WELD_LINE, "Y100 F600")):
        while program(cell)["line"] < line:
            cell.ask("advance", seconds=0.1)
        shows_running(screen, text)
        assert shown(screen)["locked"]
    screen.until(lambda: shown(screen)["followed"] == WELD_LINE, "the slider follows the robot")
    put_slider(screen, 1.0)
    cell.ask("advance", seconds=0.5)
    assert shown(screen)["at"] == pytest.approx(1.0), "the user moved it"
    screen.page.locator('[data-preview="close"]').click()
    screen.until(lambda: shown(screen)["followed"] == WELD_LINE, "follows the robot again")
    cell.ask("rate", rate=15.0)
    cell.ask("start")
    screen.until(lambda: shown(screen)["status"]["state"] == "done", "the end")
    assert not shown(screen)["running"]
    assert not shown(screen)["locked"]


def shows_running(screen: Screen, text: str) -> None:
    screen.until(lambda: any(text in line for line in shown(screen)["running"]), text)


def test_a_draft_is_marked_and_another_browser_keeps_in_step(
    screen: Screen, cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    other = open_page(cell, "/program")
    other.until(lambda: shown(other)["text"] == SEAM, "the same program")
    click_line(screen, 17)
    screen.page.keyboard.press("End")
    screen.page.keyboard.insert_text(" ; last")  # keys in a burst may change places
    assert shown(screen)["draft"]
    assert screen.page.locator("[data-program=banner]").is_visible()
    assert not shown(other)["draft"]
    assert shown(screen)["text"].endswith("M2 ; last\n")
    press(screen, "load")
    other.until(lambda: shown(other)["text"].endswith("M2 ; last\n"), "the text loaded elsewhere")
    screen.until(lambda: not shown(screen)["draft"], "no draft any more")
    assert not screen.page.locator("[data-program=banner]").is_visible()
    assert other.errors == []
    other.page.context.close()


# ── editor: lines, check while typing, words, search, breakpoints ──

LINES_IN_VIEW = """() => {
  const view = document.querySelector(".cm-scroller").getBoundingClientRect();
  const lines = [...document.querySelectorAll(".cm-line")];
  const heights = lines.map((line) => line.getBoundingClientRect().height);
  const least = Math.min(...heights);
  return [Math.floor(view.height / least), Math.max(...heights) - least];
}"""


def test_twenty_lines_fit_and_none_is_wrapped(screen: Screen) -> None:
    count, difference = screen.page.evaluate(LINES_IN_VIEW)
    assert count >= 20
    assert difference < 1.0, "the comment in line 1 is longer than the editor is wide"
    click_line(screen, 17)
    screen.page.keyboard.press("End")
    screen.page.keyboard.insert_text(" ; draft")
    screen.until(lambda: shown(screen)["draft"], "a draft")
    assert screen.page.evaluate(LINES_IN_VIEW)[0] >= 20


def test_a_mistake_is_marked_while_typing_and_words_are_offered_and_explained(
    screen: Screen, cell: RunningCell
) -> None:
    screen.until(lambda: shown(screen)["words"] > 50, "the words of the robot's language")
    click_line(screen, 3)
    screen.page.keyboard.press("End")
    screen.page.keyboard.type("\nM6")
    offered = screen.page.locator(".cm-tooltip-autocomplete li")
    screen.until(lambda: offered.count() == 0, "a complete word offers nothing")
    screen.page.keyboard.type("\nM4")
    screen.page.keyboard.press("Control+Space")
    screen.until(lambda: offered.count() >= 3, "M4, M48 …")
    assert "spindle counter-clockwise" in offered.first.inner_text()
    screen.page.keyboard.press("Escape")
    click_line(screen, 5)
    screen.page.keyboard.press("End")
    screen.page.keyboard.type("4 X")
    screen.until(lambda: bool(shown(screen)["problems"]), "checked without a click")
    assert [each["line"] for each in shown(screen)["problems"]] == [5]
    assert screen.page.locator(".u-problem").inner_text() == "M44"
    assert "M44" in screen.page.locator("[data-check=verdict]").inner_text()
    assert program(cell)["text"] == SEAM, "nothing was loaded"
    tip = screen.page.locator(".u-word-tip")
    for line, says in ((5, "not supported"), (9, "straight line at the feed")):
        screen.page.mouse.move(5, 5)
        screen.until(lambda: tip.count() == 0, "no explanation")
        screen.page.locator(".cm-line").nth(line - 1).hover(position={"x": 22, "y": 8})
        screen.until(lambda says=says: says in "".join(tip.all_inner_texts()), says)  # type: ignore[misc]


def test_a_click_in_the_gutter_stops_the_run_before_that_line(
    screen: Screen, cell: RunningCell
) -> None:
    cell.ask("rate", rate=15.0)
    gutter = screen.page.locator(".u-breakpoints .cm-gutterElement:visible")
    gutter.nth(WELD_LINE - 1).click()
    screen.until(lambda: program(cell)["breakpoints"] == [WELD_LINE], "stored in the cell")
    assert screen.page.locator(".u-breakpoint:visible").count() == 1
    press(screen, "run")
    screen.until(lambda: program(cell)["state"] == "paused", "the run stands before the line")
    assert program(cell)["line"] == WELD_LINE
    screen.reads("run-state", "breakpoint")
    cell.ask("set_breakpoints", robot="g60", lines=[])
    screen.until(lambda: shown(screen)["breakpoints"] == [], "removed by another door")
    click_line(screen, 17)
    press(screen, "breakpoint")
    screen.until(
        lambda: program(cell)["breakpoints"] == [17], "the button is for the cursor's line"
    )
    screen.page.locator('[data-does-program="search"]').click()
    screen.page.keyboard.type("F600")
    screen.page.keyboard.press("Enter")
    found = "window.program.editor.view.state.selection.main.from"
    screen.until(lambda: screen.page.evaluate(found) == SEAM.index("F6000"), "found")
    screen.page.keyboard.press("Escape")
    press(screen, "run")
    screen.until(lambda: program(cell)["line"] == 17, "goes on to the next one")


NO_ANSWER = {"status": 504, "body": '{"code": 20, "message": "the cell gave no answer"}'}


@pytest.mark.parametrize("failure", ["no answer", "no connection", "cut off"])
def test_a_text_that_did_not_arrive_is_requested_again(
    screen: Screen, cell: RunningCell, failure: str
) -> None:
    failed: list[Any] = []

    def fail_once(route: Any) -> None:
        if failed:
            route.continue_()
        elif failure == "no connection":
            route.abort("connectionreset")
        else:
            route.fulfill(**NO_ANSWER | ({"body": '{"text": '} if failure == "cut off" else {}))
        failed.append(route)

    screen.page.route("**/api/program", fail_once)
    cell.ask("load_program", robot="g60", text=SHORT, name="short.gcode")
    screen.until(lambda: shown(screen)["text"] == SHORT, "the text, at the second attempt")
    screen.page.unroute("**/api/program")
    assert not shown(screen)["draft"]


def test_of_two_texts_on_their_way_the_later_one_stays(screen: Screen, cell: RunningCell) -> None:
    """The answer with the older text arrives last."""
    held: list[Any] = []
    screen.page.route("**/api/program", lambda route: held.append(route))
    cell.ask("load_program", robot="g60", text=SHORT, name="short.gcode")
    screen.until(lambda: len(held) == 1, "the request of the first text")
    first = held[0].fetch()
    cell.ask("load_program", robot="g60", text=SHORT + "M2\n", name="short.gcode")
    screen.until(lambda: len(held) == 2, "the request of the second text")
    held[1].continue_()
    screen.until(lambda: shown(screen)["text"] == SHORT + "M2\n", "the second text")
    with screen.page.expect_response("**/api/program"):
        held[0].fulfill(response=first)
    screen.page.unroute("**/api/program")
    assert shown(screen)["text"] == SHORT + "M2\n"
    assert not shown(screen)["draft"]


def test_a_file_is_opened_and_downloaded(screen: Screen) -> None:
    with screen.page.expect_file_chooser() as chooser:
        press(screen, "open")
    file = {"name": "short.nc", "mimeType": "text/plain", "buffer": SHORT.encode()}
    chooser.value.set_files(file)
    screen.until(lambda: shown(screen)["text"] == SHORT, "the file's text")
    with screen.page.expect_download() as download:
        press(screen, "download")
    assert download.value.suggested_filename == "short.nc"
    assert download.value.path().read_text() == SHORT
    screen.page.evaluate("window.program.revert()")


# ── validation and preview ──


def test_a_broken_program_is_marked_where_it_is_broken(screen: Screen) -> None:
    click_line(screen, WELD_LINE)
    screen.page.keyboard.press("Home")
    for _ in "G1 Y100":
        screen.page.keyboard.press("ArrowRight")
    screen.page.keyboard.insert_text(" Z250")
    press(screen, "validate")
    found = lambda: bool(shown(screen)["result"] or shown(screen)["error"])  # noqa: E731
    screen.until(found, "a verdict", timeout=STARTING_SECONDS)
    report = shown(screen)
    assert report["error"] == ""
    assert report["result"]["verdict"] == "fail"
    assert {each["line"] for each in report["result"]["violations"]} >= {WELD_LINE}
    assert any("Z250" in line for line in report["bad"])
    row = screen.page.locator(f'.u-violation[data-line="{WELD_LINE}"]').first
    assert "touches fixture" in row.inner_text()
    assert screen.page.locator(".u-clearance").count() > 0
    row.click()
    screen.until(lambda: shown(screen)["line"] == WELD_LINE, "the ghost at the violation")
    screen.page.evaluate("window.program.revert()")
    assert shown(screen)["bad"] == []


FROM_A_SINGULAR_POSE = """G21 G90 G94
G0 A0 B0 C0 U0 V0 W0
G1 X500 Y40 Z900 A180 B0 C0 F6000
"""


def test_warnings_are_listed_and_leave_the_verdict(cell: RunningCell, screen: Screen) -> None:
    load(cell, screen, FROM_A_SINGULAR_POSE, "warned.gcode")
    press(screen, "validate")
    screen.until(lambda: bool(shown(screen)["result"]), "a verdict", timeout=STARTING_SECONDS)
    report = shown(screen)
    assert (report["result"]["verdict"], report["bad"]) == ("pass", [])
    verdict = screen.page.locator("[data-check=verdict]")
    assert "no violations · warnings: 1" in verdict.inner_text()
    (row,) = screen.page.locator(".u-violation.u-warned").all()
    assert "the controller slows down" in row.inner_text()
    row.click()
    screen.until(lambda: shown(screen)["line"] == 3, "the ghost at the warning")


def test_a_long_list_of_findings_is_cut(cell: RunningCell, screen: Screen) -> None:
    load(cell, screen, "G21 G90 G94\n" + "G84 Z1 R2 F100\n" * 310, "tapping.gcode")
    press(screen, "validate")
    screen.until(lambda: bool(shown(screen)["result"]), "a verdict", timeout=STARTING_SECONDS)
    assert screen.page.locator(".u-violation").count() == 300
    assert screen.page.locator(".u-more").inner_text() == "and 10 more"


def test_a_validation_ends_when_it_is_cancelled_or_the_text_changes(screen: Screen) -> None:
    clicks = """for (const which of ["[data-does-program=validate]", "[data-check=cancel]"])
      document.querySelector(which).click()"""
    begun = f"() => {{ {clicks}; return window.program.report().checking; }}"
    assert screen.page.evaluate(begun)  # cancelled before the cell has answered
    screen.until(lambda: shown(screen)["error"] == "cancelled", "the end")
    assert not shown(screen)["checking"]
    press(screen, "validate")
    screen.until(lambda: bool(shown(screen)["checking"]), "another")
    click_line(screen, 17)
    screen.page.keyboard.type(" ")
    assert not shown(screen)["checking"], "the validated text was changed"
    screen.page.evaluate("window.program.revert()")


def test_a_clicked_line_shows_the_ghost_and_the_slider_moves_it(
    screen: Screen, cell: RunningCell
) -> None:
    click_line(screen, 5)
    screen.until(lambda: shown(screen)["ghost"] is not None, "the ghost")
    at_line_5 = shown(screen)["ghost"]
    click_line(screen, WELD_LINE)
    screen.until(lambda: shown(screen)["line"] == WELD_LINE, "the ghost further on")
    ghost = shown(screen)["ghost"]
    assert ghost != at_line_5
    in_scene = "window.understudy.report().robots.g60"
    screen.until(
        lambda: screen.page.evaluate(f"{in_scene}.ghost_q") == pytest.approx(ghost), "it, drawn"
    )
    assert screen.page.evaluate(f"{in_scene}.ghost")
    preview = cell.ask("preview", robot="g60", text=SEAM)
    last = max(n for n, line in enumerate(preview["lines"]) if line == WELD_LINE)
    assert ghost == pytest.approx(preview["q"][last])
    put_slider(screen, 1.0)
    assert shown(screen)["at"] == pytest.approx(1.0)
    assert shown(screen)["line"] in preview["lines"]
    screen.page.locator('[data-preview="close"]').click()
    assert shown(screen)["ghost"] is None


def put_slider(screen: Screen, seconds: float) -> None:
    slider = "document.querySelector('#preview input')"
    move = f"{slider}.value = {seconds}; {slider}.dispatchEvent(new Event('input'))"
    screen.page.evaluate(f"() => {{ {move} }}")


# ── runs ──


def test_a_run_begins_at_the_chosen_line(screen: Screen, cell: RunningCell) -> None:
    load(cell, screen, SHORT)
    cell.ask("rate", rate=5.0)
    click_line(screen, 5)
    press(screen, "runFrom")
    screen.until(lambda: program(cell)["state"] == "done", "the end")
    screen.until(
        lambda: last_row(cell).get("pose_mm_deg", [])[:3] == pytest.approx([500, 0, 500], abs=0.1),
        "where line 5 ends",
    )
    assert cell.ask("metrics")["gcode_executed"] < len(SHORT.splitlines())


def test_a_program_is_stepped_paused_and_stopped(screen: Screen, cell: RunningCell) -> None:
    load(cell, screen, SHORT)
    cell.ask("rate", rate=0.5)
    press(screen, "step")
    screen.until(lambda: program(cell)["state"] == "paused", "the first step")
    press(screen, "step")
    screen.until(
        lambda: program(cell)["state"] == "paused" and program(cell)["line"] == 2, "the second"
    )
    screen.until(lambda: any("G0 X450" in line for line in shown(screen)["running"]), "line 2")
    cell.ask("rate", rate=0.1)
    press(screen, "run")
    screen.until(lambda: shown(screen)["status"]["state"] == "running", "the rest")
    press(screen, "pause")
    screen.until(lambda: shown(screen)["status"]["state"] == "paused", "the pause")
    press(screen, "stop")
    screen.until(lambda: shown(screen)["status"]["state"] == "idle", "the stop")


def test_a_program_that_fails_says_where_and_why(screen: Screen, cell: RunningCell) -> None:
    load(cell, screen, SHORT.replace("X450 Y100 F6000", "X2450 Y100 F6000"))
    press(screen, "run")
    screen.until(lambda: shown(screen)["status"]["state"] == "failed", "the failure")
    assert any("X2450" in line for line in shown(screen)["failed"])
    assert "line 3" in screen.text("run-state")


def test_overrides_are_the_cells(screen: Screen, cell: RunningCell) -> None:
    def percent() -> Any:
        return cell.ask("robots")["robots"][0]["overrides_percent"]

    turn(screen, "feed-override", 0.1)
    screen.until(lambda: percent()["feed"] < 50.0, "a slower feed")
    cell.ask("override", robot="g60", rapid_percent=25)
    screen.until(lambda: screen.text("rapid-override-value") == "25 %", "what another has set")
    screen.press("feed-override-value")
    screen.until(lambda: percent()["feed"] == 100.0, "the programmed feed")


# ── manual operation ──


def test_a_joint_moves_while_its_button_is_held(screen: Screen, cell: RunningCell) -> None:
    joints(cell)
    screen.until(lambda: bool(joints(cell)), "a first row")
    before = joints(cell)[0]
    hold(screen, '[data-jog="0"][data-direction="1"]', lambda: joints(cell)[0] > before + 1.0)
    screen.page.mouse.up()
    screen.until(lambda: not any(last_row(cell)["velocities_deg_s"]), "rest")
    resting = joints(cell)
    screen.page.wait_for_timeout(200)
    assert joints(cell) == pytest.approx(resting, abs=1e-6)


def hold(screen: Screen, button: str, moves: Callable[[], bool]) -> None:
    """Holds a button until the robot moves. A browser that was busy for half a second has released
    the jog (dead-man timeout): then the button is pressed again."""
    for _ in range(10):
        screen.page.locator(button).hover()
        screen.page.mouse.down()
        with suppress(AssertionError):
            return screen.until(moves, "motion", timeout=6.0)
        screen.page.mouse.up()
    pytest.fail("timeout: motion")


def test_a_browser_that_hangs_releases_the_jog(screen: Screen, cell: RunningCell) -> None:
    def state() -> str:
        return str(cell.ask("robots")["robots"][0]["state"])

    hold(screen, '[data-jog="1"][data-direction="-1"]', lambda: state() == "Jog")
    assert screen.page.evaluate(HANGS) == "Idle"
    screen.page.mouse.up()


HANGS = """() => {
  const end = performance.now() + 50000;
  for (let state = ""; ; ) {  // blocks the browser meanwhile
    const ask = new XMLHttpRequest();
    ask.open("POST", "/api/robots", false);
    ask.setRequestHeader("Content-Type", "application/json");
    ask.send("{}");
    state = JSON.parse(ask.responseText).robots[0].state;
    if (state === "Idle" || performance.now() > end) return state;
  }
}"""


def test_a_step_along_an_axis_of_the_base(screen: Screen, cell: RunningCell) -> None:
    put = pytest.approx([0, 10, 40, 0, 40, 0])
    cell.ask("set_joint_positions", robot="g60", joints_deg=put.expected)
    screen.until(lambda: joints(cell) == put, "the robot put there")
    screen.at("jog-frame").get_by_text("Base", exact=True).click()
    screen.at("jog-step").get_by_text("10 mm·°", exact=True).click()
    figure = screen.page.locator('[data-figure="2"]')
    before = last_row(cell)["pose_mm_deg"][2]
    screen.until(lambda: figure.inner_text() == f"{before:.1f} mm", "the tool's figures")
    screen.page.locator('[data-jog="2"][data-direction="1"]').click()
    screen.until(
        lambda: abs(float(figure.inner_text().split()[0]) - before - 10.0) < 0.11, "10 mm up"
    )
    screen.at("jog-step").get_by_text("hold", exact=True).click()
    screen.at("jog-frame").get_by_text("Joints", exact=True).click()


def test_a_point_is_taught_renamed_gone_to_and_inserted(screen: Screen, cell: RunningCell) -> None:
    cell.ask("set_joint_positions", robot="g60", joints_deg=[20, 10, 40, 0, 40, 0])
    screen.press("tab-points")
    screen.at("point-name").fill("corner")
    screen.press("teach")
    screen.until(lambda: screen.page.locator('[data-point="corner"]').count() == 1, "the point")
    screen.at("point-name").fill("edge")
    screen.press("point-rename")
    screen.until(lambda: screen.page.locator('[data-point="edge"]').count() == 1, "its new name")
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0, 10, 40, 0, 40, 0])
    joints(cell)
    screen.press("point-go_joint")
    screen.until(lambda: joints(cell) == pytest.approx([20, 10, 40, 0, 40, 0], abs=1e-3), "there")
    taught = cell.ask("points", robot="g60")["points"][0]["pose_mm_deg"]
    click_line(screen, 17)
    screen.press("point-insert")
    screen.until(lambda: "; edge" in shown(screen)["text"], "the line")
    line = next(each for each in shown(screen)["text"].splitlines() if "; edge" in each)
    assert line.startswith(f"G1 X{taught[0]:g}"[:8])
    assert line.endswith("  ; edge")
    screen.page.evaluate("window.program.revert()")
    screen.press("point-delete")
    screen.until(lambda: not cell.ask("points", robot="g60")["points"], "nothing left")
    screen.press("tab-jog")


def test_three_points_make_a_frame(screen: Screen, cell: RunningCell) -> None:
    for name, posture in (("o", 0), ("x", -10), ("y", 10)):
        cell.ask(
            "set_joint_positions", robot="g60", joints_deg=[posture, 10, 40 + posture, 0, 40, 0]
        )
        cell.ask("teach_point", robot="g60", name=name)
    screen.press("tab-points")
    screen.until(lambda: screen.page.locator("[data-point]").count() == 3, "all of them")
    screen.press("tab-teach")
    for mark, name in (("origin", "o"), ("on_x", "x"), ("on_y", "y")):
        screen.at(f"teach-{mark}").click()
        screen.page.locator(".q-menu .q-item", has_text=name).click()
        screen.until(lambda: screen.page.locator(".q-menu").count() == 0, "the menu closed")
    screen.press("frame")
    screen.reads("frame-result", "|")
    screen.at("origin-only").click()  # it is turned, and G54 turns nothing
    screen.press("use-frame")
    screen.reads("work-offset", screen.text("frame-result").split("|")[0].strip())
    in_scene = "window.understudy.report().robots.g60.works"
    screen.until(lambda: screen.page.evaluate(in_scene) == 1, "its arrows")
    cell.ask("set_work_frame", robot="g60", frame_mm_deg=[0] * 6)
    screen.press("tab-jog")


def test_four_points_make_a_tip_that_is_used(screen: Screen, cell: RunningCell) -> None:
    turns = ((0, 0, 0), (20, 0, 0), (0, 25, 0), (-15, 10, 30))
    start = [450.0, 0.0, 450.0, 180.0, 0.0, 0.0]
    there = pytest.approx(start[:3], abs=1e-3)
    for number, turn_ in enumerate(turns, 1):
        angles = [angle + by for angle, by in zip(start[3:], turn_, strict=True)]
        cell.ask("move_to", robot="g60", pose_mm_deg=[*start[:3], *angles])
        screen.until(lambda: not cell.ask("robots")["robots"][0]["moving"], "rest")
        screen.until(lambda: last_row(cell)["pose_mm_deg"][:3] == there, "the tip on the spot")
        cell.ask("teach_point", robot="g60", name=f"tip {number}")
    screen.press("tab-points")
    screen.until(lambda: screen.page.locator("[data-point]").count() == 4, "all of them")
    screen.press("tab-teach")
    for number in range(1, 5):
        screen.at(f"teach-tip-{number}").click()
        screen.page.locator(".q-menu .q-item", has_text=f"tip {number}").click()
        screen.until(lambda: screen.page.locator(".q-menu").count() == 0, "the menu closed")
    cell.ask("set_tcp", robot="g60", tcp_mm=[0, 0, 10])
    screen.until(lambda: screen.at("measured").is_visible(), "another tip than the file's")
    spot = pytest.approx([each / 1000 for each in start[:3]], abs=1e-5)
    screen.until(lambda: tip(screen)[:3] != spot, "the scene with it")
    screen.press("tip")
    screen.reads("tip-result", "residual 0.0")
    screen.press("use-tip")
    screen.reads("tip-result", "robots.g60.tools.1.tcp_mm_deg: [")
    screen.until(lambda: tip(screen)[:3] == spot, "the tip on the spot")
    screen.press("restore-file")
    screen.until(lambda: not screen.at("measured").is_visible(), "the file's again")
    screen.press("tab-jog")


def tip(screen: Screen) -> list[float]:
    found: list[float] = screen.scene["robots"]["g60"]["tcp"]
    return found


# ── sizes and contrast ──


def test_every_button_is_large_enough_for_a_glove(screen: Screen) -> None:
    sizes = screen.page.evaluate(
        """() => [...document.querySelectorAll("button")].filter((b) => b.checkVisibility())
          .map((b) => [b.textContent, b.getBoundingClientRect()]).filter(([, r]) => r.width)
          .map(([text, r]) => [text, r.width, r.height])"""
    )
    assert len(sizes) > 20
    assert [each for each in sizes if min(each[1:]) < 48] == []


def test_every_text_is_large_and_has_contrast(screen: Screen) -> None:
    click_line(screen, 3)
    assert len(legible(screen)) > 60
