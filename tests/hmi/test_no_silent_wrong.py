"""What the page must not hide: a start inside a seam without arc, a collision, paused time, a
connection that is not there, drives that are off."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from tests.browsers import RunningCell, Screen, WeldingCell

SEAM = """\
G21 G90
G0 X450 Y-100 Z450 A180 B0 C0
M7
G1 Z350 F6000
M3
G1 Y0 F3000
G1 Y100
M5
M9
G0 Z450
"""
SEAM_LINE = 7


@pytest.fixture(scope="module")
def opened(cell: RunningCell, welding_screen: Screen) -> Screen:
    welding_screen.open(cell.url + "/program")
    return welding_screen


@pytest.fixture
def screen(opened: Screen, cell: RunningCell) -> Iterator[Screen]:
    for command in ("emergency_stop", "reset", "start", "clear_collisions"):
        cell.ask(command)
    cell.ask("rate", rate=1.0)
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0, 0, 37, 0, 53, 0])
    cell.ask("enable", robot="g60")
    yield opened
    assert opened.errors == []


def part(cell: RunningCell, name: str) -> Any:
    return cell.ask("status")["parts"][name]


# ── a start inside a seam ──


@pytest.fixture
def in_the_seam(screen: Screen, cell: RunningCell) -> Screen:
    """The cursor in the second line of a seam that does not run."""
    cell.ask("load_program", robot="g60", text=SEAM, name="seam")

    def shown() -> bool:
        report = screen.page.evaluate("window.program.report()")
        return bool(report["text"] == SEAM and report["status"]["state"] == "idle")

    screen.until(shown, "the program, and that it does not run")
    screen.page.locator(".cm-line").nth(SEAM_LINE - 1).click()
    screen.page.locator('[data-does-program="runFrom"]').click()
    return screen


def answer(screen: Screen, choice: str) -> None:
    screen.at("restore-process").locator(f'[data-answer="{choice}"]').click()


def test_a_start_inside_a_seam_asks_and_restores_gas_and_arc(
    in_the_seam: Screen, cell: RunningCell
) -> None:
    asked = in_the_seam.text("restore-process")
    assert "Switch on again: gas (M7, line 3), arc (M3, line 5)?" in asked
    assert part(cell, "g60.program")["state"] == "idle"
    before = part(cell, "g60.welder")["total_weld_length_mm"]
    cell.ask("rate", rate=10.0)
    answer(in_the_seam, "restore")
    in_the_seam.until(lambda: part(cell, "g60.program")["state"] == "done", "the end")
    welded = part(cell, "g60.welder")["total_weld_length_mm"] - before
    assert welded == pytest.approx(100.0, abs=1.0)


def test_run_without_is_a_warning_on_the_page(in_the_seam: Screen, cell: RunningCell) -> None:
    before = part(cell, "g60.welder")["total_weld_length_mm"]
    cell.ask("rate", rate=0.5)
    answer(in_the_seam, "leave")
    in_the_seam.reads("run-state", "runs without M7, M3")
    cell.ask("rate", rate=10.0)
    in_the_seam.until(lambda: part(cell, "g60.program")["state"] == "done", "the end")
    assert part(cell, "g60.welder")["total_weld_length_mm"] == before


def test_do_not_start_starts_nothing(in_the_seam: Screen, cell: RunningCell) -> None:
    answer(in_the_seam, "")
    in_the_seam.until(lambda: in_the_seam.at("restore-process").count() == 0, "no question")
    assert part(cell, "g60.program")["state"] == "idle"


# ── collisions ──

POST = {"name": "post", "type": "box", "dimensions_mm": [60, 60, 60]}


@pytest.fixture
def collided(screen: Screen, cell: RunningCell) -> Iterator[Screen]:
    """A program that drives the arm through a post and ends: the contact is over."""
    cell.ask("on_collision", reaction="report", robot="g60")
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0] * 6)
    cell.ask("add_object", object={**POST, "position_mm": [450, 450, 950]})
    cell.ask("load_program", robot="g60", text="G21 G90\nG1 A90 F20000\n", name="swing")
    cell.ask("rate", rate=10.0)
    cell.ask("run_program", robot="g60")
    screen.until(lambda: part(cell, "g60.program")["state"] == "done", "the end")
    assert part(cell, "g60.collision")["contacts"] == []
    yield screen
    cell.ask("remove_object", name="post")
    cell.ask("on_collision", reaction="stop", robot="g60")


def test_a_collision_is_an_alarm_until_it_is_cleared_across_page_changes(
    collided: Screen, cell: RunningCell
) -> None:
    collided.reads("alarm", "collides with post")
    assert ", line 2" in collided.text("alarm"), "the line of the file"
    assert "jog away slowly" in collided.text("alarm")
    for page in ("log", "plots", "cell"):
        collided.open_tab(page)
        assert "u-on" in collided.at("alarm").get_attribute("class")
        assert "collides with post" in collided.text("alarm")
    collided.until(lambda: "post" in collided.scene["red"], "red on a page opened later")
    collided.page.reload()
    collided.built()
    collided.reads("alarm", "collides with post")
    collided.until(lambda: "post" in collided.scene["red"], "red after a reload")
    cell.ask("reset")
    collided.reads("alarm", "collides with post")
    collided.press("alarm-reset")
    collided.until(lambda: collided.text("alarm") == "no alarm", "cleared")
    collided.until(lambda: collided.scene["red"] == [], "nothing red")
    collided.open_tab("program")


def test_the_log_has_the_collision_with_advice_and_clears_it(collided: Screen) -> None:
    collided.open_tab("log")
    card = collided.at("alarms").locator(".u-alarm-card")
    collided.until(lambda: "jog away slowly" in card.first.inner_text(), "what to do")
    card.first.get_by_text("Reset").click()
    collided.reads("alarms", "no alarm")
    collided.open_tab("program")


# ── paused time ──


def test_paused_time_is_said_while_a_program_runs(screen: Screen, cell: RunningCell) -> None:
    assert not screen.at("play-paused").is_visible()
    cell.ask("load_program", robot="g60", text="G4 P0.5\nG4 P30\n", name="waiting")
    cell.ask("run_program", robot="g60")
    cell.ask("pause")
    screen.reads("alarm", "Time is paused: waiting, line")
    screen.press("play-paused")
    screen.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "time runs")
    screen.until(lambda: screen.text("alarm") == "no alarm", "nothing said")
    cell.ask("stop_program", robot="g60")


def test_a_stopped_cell_is_said_with_a_button_that_starts_it(
    screen: Screen, cell: RunningCell
) -> None:
    assert not screen.at("start-stopped").is_visible()
    cell.ask("stop")
    screen.until(lambda: "The cell is stopped" in screen.at("alarm").inner_text(), "the text")
    screen.press("start-stopped")
    screen.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "the cell started")
    screen.until(lambda: not screen.at("start-stopped").is_visible(), "the button went")


def test_paused_time_with_nothing_under_way_is_not_said(screen: Screen, cell: RunningCell) -> None:
    cell.ask("pause")
    screen.until(lambda: cell.ask("metrics")["state"] == "PAUSED", "paused")
    screen.page.wait_for_timeout(600)
    assert screen.text("alarm") == "no alarm"


# ── connection and drives ──


def test_the_page_says_connected_only_if_the_controller_is(
    opened: Screen, welding: WeldingCell
) -> None:
    """A cell that has just started: nothing is connected; the refusal says the same and offers
    drives on."""
    screen, cell = opened, welding
    cell.as_at_start()
    screen.open(f"{cell.url}/program")
    assert screen.text("connection").startswith("not connected · drives off")
    screen.page.locator('[data-jog="0"][data-direction="1"]').click()
    message = screen.page.locator(".q-notification")
    screen.until(lambda: "the controller is not connected" in message.inner_text(), "the refusal")
    message.get_by_text("Drives on").click()
    screen.until(lambda: bool(cell.ask("robots")["robots"][0]["enabled"]), "drives on")
    screen.reads("connection", "connected · drives on")
    assert "not connected" not in screen.text("connection")


def test_with_the_drives_off_the_message_offers_drives_on(
    screen: Screen, cell: RunningCell
) -> None:
    cell.ask("disable", robot="g60")
    screen.press("home")
    message = screen.page.locator(".q-notification").last
    screen.until(lambda: "the drives are not enabled" in message.inner_text(), "the refusal")
    message.get_by_text("Drives on").click()
    screen.until(lambda: bool(cell.ask("robots")["robots"][0]["enabled"]), "drives on")
    screen.until(lambda: screen.page.locator(".q-notification").count() == 0, "the message gone")


def ran(cell: RunningCell) -> bool:
    return cell.ask("program", robot="g60")["state"] in ("running", "paused", "done")


@pytest.mark.parametrize("button", ["run", "runFrom", "step"])
def test_run_asks_once_to_switch_the_drives_on(
    screen: Screen, cell: RunningCell, button: str
) -> None:
    """One click and one answer, also if the cell is stopped as well; *Cancel* does nothing."""
    cell.ask("load_program", robot="g60", text="G4 P600\n", name="wait")
    cell.ask("disable", robot="g60")
    cell.ask("stop")
    asked = screen.at("run-anyway")
    run = screen.page.locator(f'[data-does-program="{button}"]')
    run.click()
    asked.locator('[data-answer=""]').click()
    asked.wait_for(state="detached")
    assert not ran(cell)
    run.click()
    asked.locator('[data-answer="yes"]').click()
    screen.until(lambda: ran(cell), "it runs")
    assert asked.count() == 0
    assert cell.ask("robots")["robots"][0]["enabled"]
    assert screen.page.locator(".q-notification").count() == 0
    cell.ask("stop_program", robot="g60")


def test_the_check_comes_before_the_question(screen: Screen, cell: RunningCell) -> None:
    """A start in a seam asks what to restore only if the start is not refused."""
    text = "G21 G90\nM62 P1\nG4 P600\nG4 P600\n"
    cell.ask("load_program", robot="g60", text=text, name="out")
    cell.ask("emergency_stop", robot="g60")
    screen.page.wait_for_function("window.program.report().text.includes('M62')")
    screen.page.locator(".cm-line").nth(3).click()
    screen.page.keyboard.press("Escape")  # leaves the editor
    screen.page.locator('[data-does-program="runFrom"]').click()
    screen.page.locator(".q-notification").last.wait_for()
    assert screen.at("restore-process").count() == 0
    cell.ask("reset")
    cell.ask("disable", robot="g60")
    screen.page.locator('[data-does-program="runFrom"]').click()
    screen.at("run-anyway").locator('[data-answer="yes"]').click()
    screen.at("restore-process").locator('[data-answer="leave"]').click()
    screen.until(lambda: ran(cell), "it runs")
    assert cell.ask("program", robot="g60")["line"] == 4
    cell.ask("stop_program", robot="g60")


def test_play_lets_time_run_and_starts_no_program(screen: Screen, cell: RunningCell) -> None:
    """*Play* is for time, *Run programs* for programs."""
    cell.ask("load_program", robot="g60", text="G4 P600\n", name="wait")
    screen.open_tab("cell")
    cell.ask("pause")
    screen.press("play")
    screen.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "time runs")
    assert not ran(cell)
    cell.ask("disable", robot="g60")
    screen.press("run-programs")
    screen.until(lambda: ran(cell), "it runs, with its drives on")
    cell.ask("stop_program", robot="g60")
    screen.open_tab("program")


def test_a_stopped_cell_offers_to_start(screen: Screen, cell: RunningCell) -> None:
    cell.ask("stop")
    screen.page.locator('[data-mark="home"]').click()
    message = screen.page.locator(".q-notification").last
    message.get_by_text("Start the cell").click()
    screen.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "started")


def test_without_data_nothing_is_said_to_be_connected(screen: Screen, cell: RunningCell) -> None:
    connection = screen.at("connection")
    assert connection.is_visible()
    os.kill(cell.process.pid, signal.SIGSTOP)
    try:
        screen.until(lambda: not connection.is_visible(), "no claim about the connection")
        assert screen.page.locator(".u-no-data").inner_text() == "no data"
    finally:
        os.kill(cell.process.pid, signal.SIGCONT)
    screen.until(connection.is_visible, "data again")
