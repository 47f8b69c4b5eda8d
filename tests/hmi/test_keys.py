"""The keyboard in a browser: Escape closes what is open and stops otherwise, letters command
nothing while something is open, keys that start a motion need Alt, keys jog while held."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.browsers import RunningCell, Screen

from understudy.hmi.keys import keys_of
from understudy.hmi.page import pages


@pytest.fixture
def cell_page(opened: Screen) -> Screen:
    return on_tab(opened, "cell")


@pytest.fixture
def program_page(opened: Screen) -> Screen:
    return on_tab(opened, "program")


@pytest.fixture
def log_page(opened: Screen) -> Screen:
    return on_tab(opened, "log")


def on_tab(screen: Screen, tab: str) -> Screen:
    if not screen.page.locator(f'[data-page="{tab}"]').count():
        screen.open_tab(tab)
    return screen


@pytest.fixture(autouse=True)
def at_rest(cell: RunningCell) -> None:
    """The robot without an alarm, at zero, its drives on."""
    for command in ("emergency_stop", "reset", "start"):
        cell.ask(command)
    cell.ask("rate", rate=1.0)
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0] * 6)
    cell.ask("enable", robot="g60")


def stopped(cell: RunningCell) -> bool:
    return "emergency stop" in str(robot(cell)["error"])


def robot(cell: RunningCell) -> dict[str, object]:
    found: dict[str, object] = cell.ask("robots")["robots"][0]
    return found


def is_stopped_by_escape(screen: Screen, cell: RunningCell) -> None:
    assert not stopped(cell)
    screen.page.keyboard.press("Escape")
    screen.until(lambda: stopped(cell), "the emergency stop")
    assert screen.errors == []


# ── Escape ──


def answered(screen: Screen) -> None:
    """Waits for an answer of the cell: what an earlier key has sent has arrived."""
    screen.page.evaluate("() => fetch('/api/now').then((answer) => answer.text())")


def is_closed_by_escape(screen: Screen, cell: RunningCell, opened: str) -> None:
    """What is open is closed by the first Escape, which stops nothing; later Escape stops."""
    shown = screen.page.locator(opened)
    shown.first.wait_for()
    screen.until(screen.at("escape-twice").is_visible, "the hint at the stop")
    screen.page.keyboard.press("Escape")
    screen.until(lambda: shown.count() == 0, "closed")
    answered(screen)
    assert not stopped(cell)
    screen.until(lambda: not screen.at("escape-twice").is_visible(), "nothing is open")
    screen.page.keyboard.press("Shift")  # another key: the next Escape is not the second
    is_stopped_by_escape(screen, cell)


def test_escape_closes_a_drop_down_list_and_then_stops(
    cell_page: Screen, cell: RunningCell
) -> None:
    cell_page.page.locator(".u-robot").click()
    is_closed_by_escape(cell_page, cell, ".q-menu")


def test_escape_twice_stops_whatever_is_open(cell_page: Screen, cell: RunningCell) -> None:
    cell_page.page.keyboard.press("?")
    cell_page.page.locator(".u-keys").wait_for()
    twice = """() => ["keydown", "keydown"].forEach((name) => window.dispatchEvent(
      new KeyboardEvent(name, { key: "Escape", bubbles: true, cancelable: true })))"""
    cell_page.page.evaluate(twice)
    cell_page.until(lambda: stopped(cell), "the emergency stop")


def test_escape_stops_with_the_focus_on_a_slider(cell_page: Screen, cell: RunningCell) -> None:
    cell_page.at("time-scale").click()
    assert cell_page.page.evaluate("document.activeElement.type") == "range"
    is_stopped_by_escape(cell_page, cell)


def test_escape_closes_a_dialog_and_then_stops(cell_page: Screen, cell: RunningCell) -> None:
    cell_page.press("tab-faults")
    cell_page.page.get_by_role("button", name="Set parameters").first.click()
    field = cell_page.page.locator(".q-dialog input").first
    field.click()
    is_closed_by_escape(cell_page, cell, ".q-dialog")
    cell_page.press("tab-digital")


@pytest.mark.parametrize("dialog", [".u-keys", ".q-dialog"])
def test_the_mouse_reaches_the_emergency_stop_over_a_dialog(
    cell_page: Screen, cell: RunningCell, dialog: str
) -> None:
    if dialog == ".u-keys":
        cell_page.page.keyboard.press("?")
    else:
        cell_page.press("tab-faults")
        cell_page.page.get_by_role("button", name="Set parameters").first.click()
    cell_page.page.locator(dialog).first.wait_for()
    assert not stopped(cell)
    cell_page.page.locator("[data-key=Escape]").click()
    cell_page.until(lambda: stopped(cell), "the emergency stop")
    cell_page.page.keyboard.press("Escape")
    cell_page.until(lambda: cell_page.page.locator(dialog).count() == 0, "the dialog closed")


def test_escape_closes_the_list_of_keys_and_then_stops(
    cell_page: Screen, cell: RunningCell
) -> None:
    cell_page.page.keyboard.press("?")
    assert "Esc twice always stops" in cell_page.page.locator(".u-keys").inner_text()
    is_closed_by_escape(cell_page, cell, ".u-keys")


def test_letters_search_in_an_open_list_and_command_nothing(
    log_page: Screen, cell: RunningCell
) -> None:
    """The list of robots and faces of the log; Alt with a letter does nothing either."""
    log_page.page.locator('[data-log="where"] button').first.click()
    rows = log_page.page.locator('[data-log="where"] .u-choice-item')
    last = rows.last.inner_text()
    log_page.page.keyboard.type(last, delay=20)
    log_page.page.keyboard.press("Alt+d")
    answered(log_page)
    assert log_page.page.evaluate("document.activeElement.textContent") == last
    assert robot(cell)["enabled"]
    assert log_page.page.locator("[data-log=freeze].u-chosen").count() == 0
    log_page.page.keyboard.press("Enter")
    chosen = log_page.page.locator('[data-log="where"] button').first
    log_page.until(lambda: chosen.inner_text() == last, "chosen by keys")
    chosen.click()
    rows.first.click()


def test_letters_in_the_list_of_robots_command_nothing(
    cell_page: Screen, cell: RunningCell
) -> None:
    cell_page.page.locator(".u-robot").click()
    cell_page.page.locator(".q-menu").wait_for()
    for key in ("g", "h", "s", "z", "Alt+d", "Alt+g"):
        cell_page.page.keyboard.press(key)
    answered(cell_page)
    assert cell.ask("metrics")["state"] == "RUNNING"
    assert robot(cell)["enabled"]
    cell_page.page.keyboard.press("Escape")
    cell_page.until(lambda: cell_page.page.locator(".q-menu").count() == 0, "closed")


def test_keys_that_start_a_motion_need_alt(cell_page: Screen, cell: RunningCell) -> None:
    cell_page.page.keyboard.press("h")
    cell_page.until(lambda: cell.ask("metrics")["state"] == "PAUSED", "paused by a letter")
    for key in ("p", "g", "n", "d"):
        cell_page.page.keyboard.press(key)
    answered(cell_page)
    assert cell.ask("metrics")["state"] == "PAUSED"
    assert robot(cell)["enabled"]
    press_shows(cell_page, cell, "Alt+p", "RUNNING")


def test_the_keys_of_the_pages_open_them_from_a_field(log_page: Screen) -> None:
    log_page.page.locator('[data-log="search"]').focus()
    log_page.page.keyboard.press("F2")
    log_page.page.locator('[data-page="program"] > *').first.wait_for()
    log_page.built()
    log_page.page.locator(".u-name").first.focus()
    log_page.page.keyboard.press("F1")
    log_page.page.locator('[data-page="cell"] > *').first.wait_for()
    log_page.built()


def test_escape_in_the_search_of_the_log_keeps_the_filter(
    log_page: Screen, cell: RunningCell
) -> None:
    search = log_page.page.locator('[data-log="search"]')
    search.fill("stop")
    is_stopped_by_escape(log_page, cell)
    assert search.input_value() == "stop"
    search.fill("")


def test_alarm_and_reset_leave_the_header_readable(cell_page: Screen, cell: RunningCell) -> None:
    """The text of a limit alarm is shown whole, and notices are below the header."""
    cell.ask("mdi", robot="g60", line="G0 B75")
    word = cell_page.page.locator(".u-alarm-word")
    cell_page.until(lambda: "J2 = 75.0° is outside" in word.inner_text(), "the alarm")
    assert word.evaluate(
        "e => e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth"
    )
    cell_page.press("alarm-reset")
    notice = cell_page.page.locator(".q-notification").last
    notice.wait_for()
    header = cell_page.page.locator(".u-header").bounding_box()["height"]
    assert "counters" in notice.inner_text()
    cell_page.until(lambda: notice.bounding_box()["y"] >= header - 1, "a notice below the header")


@pytest.mark.parametrize("page", ["cell_page", "program_page", "log_page"])
def test_no_list_is_a_window_of_its_own(request: pytest.FixtureRequest, page: str) -> None:
    """The list of a native select takes the keys away from the page, Escape among them."""
    assert request.getfixturevalue(page).page.locator("select").count() == 0


def test_the_editor_uses_the_first_escape_and_the_page_shows_it(
    program_page: Screen, cell: RunningCell
) -> None:
    assert not program_page.at("escape-twice").is_visible()
    program_page.page.locator(".cm-content").click()
    program_page.until(program_page.at("escape-twice").is_visible, "the hint at the stop")
    assert program_page.text("escape-twice") == "now: Esc twice"
    program_page.page.keyboard.press("Escape")
    hint = program_page.at("escape-twice")
    program_page.until(lambda: not hint.is_visible(), "the editor left")
    answered(program_page)
    assert not stopped(cell)
    is_stopped_by_escape(program_page, cell)


def test_escape_stops_at_once_from_the_locked_editor(
    program_page: Screen, cell: RunningCell
) -> None:
    """While the program runs the editor takes no text, so the first Escape stops."""
    cell.ask("load_program", robot="g60", text="G4 P600\n", name="wait")
    program_page.until(lambda: "G4 P600" in program_page.page.inner_text(".cm-content"), "the text")
    program_page.page.locator(".cm-content").click()
    cell.ask("run_program", robot="g60")
    locked = "window.program.report().locked"
    program_page.until(lambda: bool(program_page.page.evaluate(locked)), "the lock")
    is_stopped_by_escape(program_page, cell)


def test_a_viewer_stops_nothing(cell: RunningCell, cell_page: Screen) -> None:
    """The stop is inert for viewers; the same key press with the attribute removed stops."""
    stop = cell_page.at("emergency-stop")
    stop.evaluate("e => e.setAttribute('inert', '')")
    cell_page.page.keyboard.press("Escape")
    cell_page.page.evaluate("() => fetch('/api/now')")  # an answer of the cell after the key
    assert not stopped(cell)
    stop.evaluate("e => e.removeAttribute('inert')")
    is_stopped_by_escape(cell_page, cell)


# ── shortcuts after clicks ──


def press_shows(screen: Screen, cell: RunningCell, key: str, state: str) -> None:
    screen.page.keyboard.press(key)
    screen.until(lambda: cell.ask("metrics")["state"] == state, f"{state} by {key}")


CLICKED = {
    "a slider": '[data-mark="time-scale"]',
    "a button": '[data-layer="volumes"]',
    "a step size": '[data-mark="step-size"] button',
    "a tab": '[data-mark="tab-analog"]',
    "a pin": '[data-mark="tab-digital"]',
    "the scene": "#scene",
}


@pytest.mark.parametrize("selector", CLICKED.values(), ids=CLICKED.keys())
def test_shortcuts_work_after_a_click(cell_page: Screen, cell: RunningCell, selector: str) -> None:
    cell_page.page.locator(selector).first.click()
    press_shows(cell_page, cell, "h", "PAUSED")
    press_shows(cell_page, cell, "Alt+p", "RUNNING")


def test_shortcuts_work_after_a_choice_in_a_list_and_with_caps_lock(
    cell_page: Screen, cell: RunningCell
) -> None:
    cell_page.page.locator(".u-robot").click()
    cell_page.page.locator(".q-menu .q-item").first.click()
    cell_page.until(lambda: cell_page.page.locator(".q-menu").count() == 0, "the list closed")
    press_shows(cell_page, cell, "h", "PAUSED")
    caps = "new KeyboardEvent('keydown', {key: 'P', code: 'KeyP', altKey: true})"
    cell_page.page.evaluate(f"window.dispatchEvent({caps})")
    cell_page.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "play with Caps Lock")


def test_space_is_the_shortcut_after_a_click_and_presses_a_button_reached_by_tab(
    program_page: Screen, cell: RunningCell
) -> None:
    cell.ask("load_program", robot="g60", text="G1 A30 F600\nG4 P1\n", name="move")
    report = "window.program.report()"
    program_page.until(
        lambda: 1.0 < program_page.page.evaluate(report)["seconds"] < 60.0, "the preview"
    )
    layer = program_page.page.locator('[data-layer="frames"]')
    layer.click()
    shown = "window.understudy.report().layers.frames"
    before = program_page.page.evaluate(shown)
    program_page.page.keyboard.press(" ")
    program_page.until(lambda: program_page.page.evaluate(report)["at"] > 0, "the ghost plays")
    assert program_page.page.evaluate(shown) == before
    program_page.page.locator('[data-view="follow"]').focus()
    program_page.page.keyboard.press("Tab")
    program_page.page.keyboard.press(" ")
    program_page.until(lambda: program_page.page.evaluate(shown) != before, "the button pressed")


def test_keys_are_text_in_a_field_and_do_nothing_under_a_dialog(
    log_page: Screen, cell: RunningCell
) -> None:
    search = log_page.page.locator('[data-log="search"]')
    search.fill("")
    search.press_sequentially("h")
    assert search.input_value() == "h"
    assert log_page.page.locator("[data-log=freeze].u-chosen").count() == 0
    cell_page = on_tab(log_page, "cell")
    cell_page.page.keyboard.press("?")
    cell_page.page.keyboard.press("Alt+d")
    cell_page.page.locator(".u-keys").click()
    cell_page.page.evaluate("() => fetch('/api/now')")
    assert robot(cell)["enabled"]


# ── jog by keys ──


@contextmanager
def held(screen: Screen, cell: RunningCell, key: str, axis: int) -> Iterator[None]:
    """Shift and a key until the axis moves in a jog; the key is pressed again if a slow machine
    ended the jog."""
    screen.until(lambda: not any(map(round, joints(screen))), "the robot at zero")
    screen.page.keyboard.down("Shift")

    def moved() -> bool:
        state = robot(cell)["state"]
        if state == "Idle":
            screen.page.keyboard.up(key)
            screen.page.keyboard.down(key)
        return state == "Jog" and abs(joints(screen)[axis]) > 0.5

    screen.until(moved, f"axis {axis} moves while {key} is held")
    try:
        yield
    finally:
        screen.page.keyboard.up(key)
        screen.page.keyboard.up("Shift")


def joints(screen: Screen) -> list[float]:
    return [math.degrees(q) for q in screen.scene["robots"]["g60"]["q"]]


def comes_to_rest(screen: Screen, cell: RunningCell) -> None:
    screen.until(lambda: robot(cell)["state"] == "Idle", "the end of the jog")
    assert not robot(cell)["error"]


@pytest.mark.parametrize(("key", "axis", "sign"), [("Q", 0, 1), ("S", 1, -1)])
def test_keys_jog_while_they_are_held(
    program_page: Screen, cell: RunningCell, key: str, axis: int, sign: int
) -> None:
    program_page.page.locator("#scene").click()
    with held(program_page, cell, key, axis):
        assert joints(program_page)[axis] * sign > 0
    comes_to_rest(program_page, cell)


ENDS = {
    "Shift is released": lambda screen: screen.page.keyboard.up("Shift"),
    "the window loses the focus": lambda screen: screen.page.evaluate(
        "window.dispatchEvent(new Event('blur'))"
    ),
    "the focus moves into a field": lambda screen: screen.page.locator(".u-name").first.focus(),
    "the browser hangs": lambda screen: screen.page.evaluate(
        "() => { const end = performance.now() + 1500; while (performance.now() < end); }"
    ),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_jog_by_keys_ends_when(
    program_page: Screen, cell: RunningCell, end: Callable[[Screen], None]
) -> None:
    program_page.page.locator("#scene").click()
    with held(program_page, cell, "Q", 0):
        end(program_page)
        comes_to_rest(program_page, cell)


def test_escape_stops_a_jog_by_keys(program_page: Screen, cell: RunningCell) -> None:
    program_page.page.locator("#scene").click()
    with held(program_page, cell, "Q", 0):
        is_stopped_by_escape(program_page, cell)


@pytest.mark.parametrize("tab", ["cell", "program", "plots", "log"])
def test_the_keys_of_a_page_are_those_of_the_table(opened: Screen, tab: str) -> None:
    page = next(page for page in pages() if page.name == tab)
    screen = on_tab(opened, tab)
    pressed = "[...document.querySelectorAll('[data-key]')].map((button) => button.dataset.key)"
    found = set(screen.page.evaluate(pressed))
    table = {key for key in keys_of(page).values() if not key.startswith("Shift")}
    assert found <= table
    assert {key for key in page.keys.values() if not key.startswith("Shift")} <= found


def test_the_list_of_keys_has_the_jog_keys_only_where_they_work(opened: Screen) -> None:
    for tab, there in (("program", True), ("cell", False)):
        screen = on_tab(opened, tab)
        screen.page.locator("#scene").click()
        screen.page.keyboard.press("?")
        listed = screen.page.locator(".u-keys")
        assert ("⇧ Q" in listed.inner_text()) == there
        listed.click()
