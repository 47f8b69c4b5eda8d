"""HMI Integration: the cell page in a browser, with a running cell."""

import base64
import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import msgspec
import pytest
from tests.browsers import STARTING_SECONDS, RunningCell, Screen

from understudy.hmi.frame.cell_state import REFRESH_SECONDS

SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()


@pytest.fixture
def screen(opened: Screen, cell: RunningCell) -> Iterator[Screen]:
    """The page of a cell after a reset, its arm at zero."""
    for command in ("emergency_stop", "reset", "start"):
        cell.ask(command)
    cell.ask("rate", rate=1.0)
    cell.ask("set_joint_positions", robot="g60", joints_deg=[0] * 6)
    yield opened
    assert opened.errors == []


# ── the frame ──


def test_the_badge_shows_simulation_and_the_stop_label_what_stops(screen: Screen) -> None:
    assert "SIMULATION" in screen.text("mode")
    assert screen.text("stop-label") == "every robot of the cell stops"
    screen.reads("state", "Idle")


LEGIBLE = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0.8) return color;
    }
    return [0, 0, 0];
  };
  const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().width;
  const hasText = (node) => [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
  const texts = [...document.querySelectorAll("body *")]
    .filter((node) => seen(node) && hasText(node) && !node.closest(".u-notice"));
  return texts.map((node) => {
    const style = getComputedStyle(node);
    const [a, b] = [light(numbers(style.color)), light(ground(node))].sort((x, y) => y - x);
    const [contrast, size] = [(a + 0.05) / (b + 0.05), parseFloat(style.fontSize)];
    return { text: node.textContent.trim().slice(0, 40), contrast, size };
  });
}"""


def legible(screen: Screen) -> list[Any]:
    """Every text, once all have enough contrast and size; waits for texts that fade in or out."""
    found: list[Any] = []

    def fine() -> bool:
        found[:] = screen.page.evaluate(LEGIBLE)
        return not [each for each in found if each["contrast"] < 7.0 or each["size"] < 12]

    screen.until(fine, "texts that are legible")
    return found


def test_every_text_is_large_and_has_contrast(screen: Screen) -> None:
    assert len(legible(screen)) > 40
    for mark in ("state", "mode"):
        words = screen.at(mark).locator("div").first if mark == "mode" else screen.at(mark)
        assert float(words.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")) >= 28


def test_every_button_is_large_enough_for_a_glove(screen: Screen) -> None:
    sizes = screen.page.evaluate(
        """() => [...document.querySelectorAll("button, .q-tab")].filter((b) => b.checkVisibility())
        .map((b) => [b.textContent, b.getBoundingClientRect()])
        .map(([text, box]) => [text, box.width, box.height])"""
    )
    assert len(sizes) > 30
    assert not [each for each in sizes if min(each[1:]) < 48]


def test_everything_comes_from_this_machine(screen: Screen, cell: RunningCell) -> None:
    host = cell.url.split("//")[1]
    foreign = [url for url in screen.requests if url.split("//")[1].split("/")[0] != host]
    assert not [url for url in foreign if not url.startswith(("data:", "blob:"))]
    assert not [url for url in screen.requests if "tailwind" in url], "slows every page down"


def test_the_keyboard_presses_the_buttons(screen: Screen, cell: RunningCell) -> None:
    screen.page.keyboard.press("h")
    screen.until(lambda: cell.ask("metrics")["state"] == "PAUSED", "pause by its key")
    screen.page.keyboard.press("Alt+p")
    screen.until(lambda: cell.ask("metrics")["state"] == "RUNNING", "play by its key")
    screen.page.keyboard.press("?")
    assert "E-STOP" in screen.page.locator(".u-keys").inner_text()
    screen.page.locator(".u-keys").click()
    screen.until(lambda: screen.page.locator(".u-keys").count() == 0, "the list closed")
    assert cell.ask("metrics")["state"] == "RUNNING"


def test_emergency_stop_stops_shows_why_and_is_reset(screen: Screen, cell: RunningCell) -> None:
    cell.ask("enable", robot="g60")
    cell.ask("send_gcode", robot="g60", line="G1 A60 F600")
    screen.press("emergency-stop")
    screen.reads("alarm", "emergency stop")
    assert "Release the emergency stop" in screen.text("alarm")
    screen.reads("state", "Alarm")
    assert not cell.ask("robots")["robots"][0]["enabled"]
    screen.press("alarm-reset")
    screen.until(lambda: screen.text("alarm") == "no alarm", "the reset")


def test_the_page_in_vietnamese(screen: Screen) -> None:
    with screen.page.expect_navigation():
        screen.press("language-vi")
    screen.built()
    assert "MÔ PHỎNG" in screen.text("mode")
    assert screen.text("emergency-stop") == "DỪNG KHẨN"
    for reason, shown in IN_VIETNAMESE.items():
        screen.page.evaluate("reason => window.understudyFrame.refused(reason)", reason)
        screen.page.get_by_text(f"Không thực hiện: {shown}", exact=True).wait_for()
    with screen.page.expect_navigation():
        screen.press("language-en")
    screen.built()


IN_VIETNAMESE = {
    "no program is loaded": "chưa nạp chương trình",
    "kuka: a program is running on $& {x}: no move_to until it ends": (
        "kuka: chương trình đang chạy trên $& {x}: không move_to cho đến khi kết thúc"
    ),
    "A3 = 161.2° is outside -120.0°…158.0°": "A3 = 161.2° nằm ngoài -120.0°…158.0°",
    "no translation of this": "no translation of this",
}
"""Refusal of the cell → what the notice shows."""


# ── time ──


def test_time_control(screen: Screen, cell: RunningCell) -> None:
    screen.press("pause")
    screen.until(lambda: cell.ask("metrics")["state"] == "PAUSED", "pause")
    stood = cell.ask("now")["now_s"]
    screen.press("step")
    screen.until(lambda: cell.ask("now")["now_s"] == pytest.approx(stood + 0.1), "a step of 0.1 s")
    screen.until(lambda: screen.text("simulated-time") == f"{stood + 0.1:.2f} s", "its display")
    screen.press("play")
    screen.until(lambda: cell.ask("now")["now_s"] > stood + 0.2, "time runs")
    turn(screen, "time-scale", 0.01)
    screen.until(lambda: cell.ask("now")["rate"] == pytest.approx(0.1), "ten times slower")
    turn(screen, "time-scale", 0.99)
    screen.until(lambda: cell.ask("now")["rate"] == pytest.approx(10.0), "ten times faster")
    screen.reads("time-scale-value", "10.0×")
    cell.ask("rate", rate=1.0)
    knob = "e => Number(e.value)"
    screen.until(lambda: screen.at("time-scale").evaluate(knob) == 0.0, "what another has set")


def turn(screen: Screen, mark: str, share: float) -> None:
    """Drags a slider to a share of its range, and holds it for some refreshes."""
    track = screen.at(mark).bounding_box()
    screen.page.mouse.move(track["x"] + share * track["width"], track["y"] + track["height"] / 2)
    screen.page.mouse.down()
    screen.page.wait_for_timeout(3 * 1000 * REFRESH_SECONDS)  # refreshes with the former value
    screen.page.mouse.up()


def test_the_metrics_count(screen: Screen, cell: RunningCell) -> None:
    cell.ask("enable", robot="g60")
    cell.ask("send_gcode", robot="g60", line="G1 A5 F6000")
    screen.until(lambda: screen.text("metric-gcodes") == "1", "one block")
    screen.until(lambda: float(screen.text("metric-distance").split()[0]) > 50, "its distance")
    assert screen.text("metric-collisions") == "0"


# ── pins ──


def test_io_injection(screen: Screen, cell: RunningCell) -> None:
    part = screen.page.locator('[data-pin="DI10"]')
    assert part.inner_text() == "PART_DETECTED"
    part.click()
    screen.until(lambda: pin(cell, "digital_inputs", 10)["forced"], "the force")
    screen.until(lambda: part.get_attribute("aria-checked") == "true", "its mark")
    screen.page.locator('[data-release="DI10"]').click()
    screen.until(lambda: not pin(cell, "digital_inputs", 10)["value"], "the release")
    screen.until(lambda: part.get_attribute("aria-checked") == "false", "its mark gone")


def test_an_analog_input_is_forced_and_released(screen: Screen, cell: RunningCell) -> None:
    screen.page.get_by_role("tab", name="Analog").click()
    row = screen.page.locator('[data-pin="AI4"]')
    row.locator("input").click()  # its middle
    screen.until(lambda: pin(cell, "analog_inputs", 4)["forced"], "the force")
    assert 3.0 < pin(cell, "analog_inputs", 4)["value"] < 7.0
    row.get_by_role("button", name="Forced by hand. Release").click()
    screen.until(lambda: not pin(cell, "analog_inputs", 4)["forced"], "the release")
    screen.page.get_by_role("tab", name="Digital I/O").click()


def test_an_output_lights_its_lamp(screen: Screen, cell: RunningCell) -> None:
    lamp = screen.page.locator('[data-pin="DO8"]')
    cell.ask("set_output", robot="g60", pin="GRIPPER_CLOSE", value=True)
    screen.until(lambda: "u-on" in (lamp.get_attribute("class") or ""), "the lamp")
    cell.ask("set_output", robot="g60", pin="GRIPPER_CLOSE", value=False)


def pin(cell: RunningCell, side: str, number: int) -> Any:
    return cell.ask("io", robot="g60")[side][number]


# ── the scene ──


def test_3d_sync(screen: Screen, cell: RunningCell) -> None:
    """The joints of the scene are the cell's; its forward kinematics puts the tip where the cell's
    does."""
    wanted = [20, -30, 40, 50, 60, -70]
    cell.ask("set_joint_positions", robot="g60", joints_deg=wanted)

    def shown() -> list[float]:
        return [math.degrees(q) for q in screen.scene["robots"]["g60"]["q"]]

    screen.until(lambda: shown() == pytest.approx(wanted, abs=1e-9), "the same joints")
    status = cell.ask("sample", robot="g60", count=1)
    assert status
    both = "[understudy.report().robots.g60.tcp, understudy.scene.latest('g60').tcp]"
    tip, reported = screen.page.evaluate(both)
    assert tip[:3] == pytest.approx(reported[:3], abs=1e-6)


def test_a_moving_robot_is_drawn_between_the_frames(screen: Screen, cell: RunningCell) -> None:
    screen.until(lambda: joint_1(screen) == pytest.approx(0.0), "the robot as it stands")
    cell.ask("enable", robot="g60")
    cell.ask("send_gcode", robot="g60", line="G1 A60 F60")  # takes a minute at this rate
    screen.until(lambda: screen.scene["robots"]["g60"]["ghost"], "the ghost at the target")
    angles, between = screen.page.evaluate(WATCHED)
    assert angles == sorted(angles)
    assert between, "a position between two frames"
    cell.ask("rate", rate=10.0)
    screen.until(lambda: joint_1(screen) == pytest.approx(60.0), "the target")
    screen.until(lambda: not screen.scene["robots"]["g60"]["ghost"], "no ghost at rest")


WATCHED = """async () => {
  const [seen, reported] = [[], new Set()];
  const between = () => seen.some((angle) => !reported.has(angle));
  for (let last; seen.length < 6 || (seen.length < 200 && !between()); ) {
    for (const frame of understudy.scene.frames()) reported.add(frame.robots.g60.q[0]);
    const now = understudy.report().robots.g60.q[0];
    if (now !== last) seen.push((last = now));
    await new Promise(requestAnimationFrame);
  }
  return [seen, between()];
}"""


def joint_1(screen: Screen) -> float:
    return math.degrees(screen.scene["robots"]["g60"]["q"][0])


def test_layers_and_views(screen: Screen) -> None:
    layers = screen.scene["layers"]
    assert layers["trail"]
    assert not layers["frames"]
    screen.page.locator('[data-layer="frames"]').click()
    screen.page.locator('[data-layer="workspace"]').click()
    assert screen.scene["layers"] == {**layers, "frames": True, "workspace": True}
    screen.page.locator('[data-layer="frames"]').click()
    screen.page.locator('[data-layer="workspace"]').click()
    for view in ("front", "side", "top", "follow", "iso"):
        screen.page.locator(f'[data-view="{view}"]').click()
        assert screen.scene["view"] == view


def test_clicks_while_the_scene_loads_are_not_lost(screen: Screen, cell: RunningCell) -> None:
    cell.ask("load_program", robot="g60", text=SEAM, name="seam")
    screen.page.reload(wait_until="commit")
    screen.page.locator('[data-layer="volumes"]').click()
    screen.page.locator('[data-view="top"]').click()
    screen.built()
    assert screen.scene["view"] == "top"
    assert screen.scene["layers"]["volumes"]
    screen.until(lambda: screen.scene["preview"]["g60"] > 10, "the path of a program loaded before")
    screen.page.locator('[data-layer="volumes"]').click()
    screen.page.locator('[data-view="iso"]').click()


def test_the_weld_trail_grows_while_the_program_runs_and_can_be_cleared(
    screen: Screen, cell: RunningCell
) -> None:
    cell.ask("enable", robot="g60")
    cell.ask("load_program", robot="g60", text=SEAM, name="seam")
    screen.until(lambda: screen.scene["preview"]["g60"] > 10, "the path of the program")
    cell.ask("rate", rate=5.0)
    cell.ask("run_program", robot="g60")
    screen.until(lambda: screen.scene["trail"]["g60"] > 5, "the first points")
    before = screen.scene["trail"]["g60"]
    screen.until(lambda: screen.scene["trail"]["g60"] > before, "more of them")
    cell.ask("stop", robot="g60")
    screen.page.locator('[data-clear="trail"]').click()
    screen.until(lambda: screen.scene["trail"]["g60"] == 0, "an empty trail")
    screen.page.locator('[data-clear="preview"]').click()
    assert screen.scene["preview"]["g60"] == 0


def test_an_injected_arc_fault_becomes_an_alarm(screen: Screen, cell: RunningCell) -> None:
    cell.ask("enable", robot="g60")
    cell.ask("load_program", robot="g60", text="M7\nG4 P1\nM3\nG1 A30 F6\n", name="arc")
    cell.ask("rate", rate=3.0)
    cell.ask("run_program", robot="g60")
    screen.until(lambda: cell.ask("status")["parts"]["g60.welder"]["arc_on"], "the arc")
    screen.page.get_by_role("tab", name="Faults").click()
    screen.page.locator('[data-fault="arc_fault"]').click()
    screen.reads("alarm", "weld fault")
    assert "arc" in screen.text("alarm")
    screen.page.get_by_role("tab", name="Digital I/O").click()


def test_contacts_are_red_until_they_are_cleared(screen: Screen, cell: RunningCell) -> None:
    block = {"name": "block", "type": "box", "dimensions_mm": [200, 200, 200]}
    cell.ask("add_object", object={**block, "position_mm": [450, 450, 950]})
    screen.until(lambda: "block" in screen.scene["objects"], "the block in the scene")
    cell.ask("enable", robot="g60")
    cell.ask("send_gcode", robot="g60", line="G1 A80 F6000")
    screen.until(lambda: "block" in screen.scene["red"], "the block red")
    assert any(name.startswith("g60/") for name in screen.scene["red"])
    assert screen.scene["contacts"][0]["object"] == "block"
    screen.until(lambda: screen.text("metric-collisions") != "0", "it counts")
    cell.ask("remove_object", name="block")
    screen.until(lambda: "block" not in screen.scene["objects"], "the block gone")
    screen.page.locator('[data-clear="contacts"]').click()
    screen.until(lambda: screen.scene["red"] == screen.scene["contacts"] == [], "nothing red")


def test_a_held_object_moves_with_the_flange(screen: Screen, cell: RunningCell) -> None:
    part = {"name": "part", "type": "box", "dimensions_mm": [40, 40, 40]}
    cell.ask("attach", robot="g60", object={**part, "position_mm": [0, 0, 180]})
    screen.until(lambda: "part" in screen.scene["objects"], "the held part")
    at = "(() => { const p = understudy.scene.objects.get('part').object.children[0];"
    at += "p.updateWorldMatrix(true, false); return p.matrixWorld.elements.slice(12, 15); })()"
    there = pytest.approx([0.8, 0.0, 0.995], abs=1e-6)
    screen.until(lambda: screen.page.evaluate(at) == there, "it, before the arm at zero")
    cell.ask("set_joint_positions", robot="g60", joints_deg=[90, 0, 0, 0, 0, 0])
    screen.until(lambda: joint_1(screen) == pytest.approx(90.0), "a quarter turn")
    assert screen.page.evaluate(at) == pytest.approx([0.0, 0.8, 0.995], abs=1e-6)
    cell.ask("detach", robot="g60", name="part")
    cell.ask("remove_object", name="part")


def test_the_reach_is_computed_and_drawn(screen: Screen) -> None:
    screen.page.locator('[data-layer="reach"]').click()
    screen.until(lambda: screen.scene["cloud"]["g60"] > 500, "the cloud", timeout=STARTING_SECONDS)
    screen.page.locator('[data-layer="reach"]').click()


def test_msgpack_is_decoded(screen: Screen) -> None:
    values = [0, 127, 128, -1, -32, -33, 65535, 65536, -40000, 2**40, -(2**40), 1.5, -2.5e300]
    sent = {
        "numbers": values, "texts": ["", "ö", "x" * 40, "y" * 300, "z" * 70000], "no": None,
        "yes": [True, False], "deep": {str(n): [n] * n for n in range(20)}, "many": [7] * 70000,
    }  # fmt: skip
    read = screen.page.evaluate(
        """async (text) => {
          const { decode } = await import("/static/frame/msgpack.js");
          return JSON.stringify(decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
        }""",
        base64.b64encode(msgspec.msgpack.encode(sent)).decode(),
    )
    assert json.loads(read) == sent


# ── together ──


def test_two_browsers_stay_in_step(
    screen: Screen, cell: RunningCell, open_page: Callable[..., Screen]
) -> None:
    other = open_page(cell)
    screen.page.locator('[data-pin="DI11"]').click()
    seen = other.page.locator('[data-pin="DI11"]')
    other.until(lambda: seen.get_attribute("aria-checked") == "true", "the same pin over there")
    other.press("pause")
    screen.until(lambda: "u-chosen" in (screen.at("pause").get_attribute("class") or ""), "pause")
    other.page.locator('[data-release="DI11"]').click()
    other.press("play")
    other.page.context.close()


def test_stale_data_is_grey_and_an_unconfirmed_stop_is_shown(
    screen: Screen, cell: RunningCell
) -> None:
    """The cell's process is suspended and continued."""
    assert not screen.at("stale").is_visible()
    os.kill(cell.process.pid, signal.SIGSTOP)
    try:
        screen.until(screen.at("stale").is_visible, "the warning")
        grey = screen.page.locator(".u-page").evaluate("e => getComputedStyle(e).filter")
        assert "grayscale(1)" in grey
        assert screen.scene["stale"]
        screen.press("emergency-stop")
        screen.until(screen.at("unstopped").is_visible, "a stop that was not confirmed")
    finally:
        os.kill(cell.process.pid, signal.SIGCONT)
    screen.until(lambda: not screen.at("stale").is_visible(), "fresh data again")
    screen.until(lambda: not screen.at("unstopped").is_visible(), "late, but confirmed")


def test_a_device_has_a_panel_and_its_fault_is_shown(screen: Screen, cell: RunningCell) -> None:
    screen.press("tab-devices")
    panel = screen.page.locator('[data-device="g60.welder"]')
    screen.until(lambda: "Idle" in panel.locator('[data-row="Phase"]').inner_text(), "its phase")
    assert panel.locator('[data-row="Current"]').inner_text().endswith("0.0 A")
    cell.ask("inject", fault="wire_fault", on="g60.welder")
    screen.until(lambda: "weld fault: the wire is stuck" in panel.inner_text(), "its fault")
    screen.reads("alarm", "weld fault: the wire is stuck")
    screen.press("tab-digital")
