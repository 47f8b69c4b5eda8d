"""The pick & place page: cycles, misses, pauses, changeovers and refusals, in two browsers.

Time of the cell advances only when a test says so: a cycle takes no wall time."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from tests.browsers import PageServer, Screen, english
from tests.hmi.test_parts_on_page import _At
from tests.jobs.pick_place.pick_cell import TEXT

from understudy.app.stand_in import StandIn
from understudy.hmi.page import STATIC
from understudy.hmi.texts import Texts, cell_text, dictionary
from understudy.jobs.pick_place.state import CYCLE, RUNNING, TRANSITIONS, Event
from understudy.jobs.pick_place.status import (
    ADVICE,
    PickPlaceError,
    PickPlaceMiss,
    PickPlaceReason,
    PickPlaceState,
)
from understudy.ports.modes import CHANGEOVER_STEPS, TargetMode

FACES = "    faces: {hmi_link: {port: 0, status: {port: 0}}}\n"
PARK = "park_joints_deg: {WELDING: [0, -30, 60, 0, 60, 0], PICKPLACE: [20, -30, 60, 0, 60, 0]}"
RULES = """
scenario:
  rules:
    miss: {fault: grip_miss, on: g60.gripper, times: 1}
"""
EYES = """    camera: {}
    vision:
      source: process
      width_px: 640
      height_px: 480
      fx_px: 640
      fy_px: 640
      camera_mm_deg: [70, 0, 30, 0, 0, 0]
      detectors:
        - kind: shapes
          plane_z_mm: 50
          classes: [{name: cube, color: "#c82820", size_mm: [40, 40, 40]}]
"""
"""Parts are found in pictures, by the vision server in the process of the cell."""
RED = '    color: "#c82820"\n'
CUBE = {"class": "cube", "dimensions_mm": [40, 40, 40], "color": "#c82820"}
SMALL, SIZE = {"width": 1024, "height": 768}, {"width": 1366, "height": 768}
CLIPPED = """() => [...document.querySelectorAll("#pick-place-page .u-button")]
  .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.textContent)"""
"""Buttons whose text is wider than they are."""
HIDDEN = """() => [...document.querySelectorAll("[data-mark^=pick-]")]
  .filter((element) => element.checkVisibility())
  .filter((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
  }).map((element) => element.dataset.mark)"""
"""Buttons of the cycle that are not on the screen."""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    file = tmp_path_factory.mktemp("pick") / "cell.yaml"
    text = TEXT.replace("    gripper: {}\n", f"    gripper: {{}}\n{EYES}")
    text = text.replace(
        "    dimensions_mm: [40, 40, 40]\n", f"    dimensions_mm: [40, 40, 40]\n{RED}"
    )
    text = text.replace("    modes: {", f"{FACES}    modes: {{{PARK}, ")
    file.write_text(text + RULES)
    with StandIn(str(file), rules=True, hmi=True) as stand_in:
        stand_in.do("enable", robot="g60")
        stand_in.forward(0.1)
        yield stand_in


@pytest.fixture(scope="module")
def screen(page_process: PageServer, open_page: Callable[..., Screen]) -> Screen:
    return open_page(_At(page_process.url), "/pick_place")


@pytest.fixture(scope="module")
def second(screen: Screen, page_process: PageServer, open_page: Callable[..., Screen]) -> Screen:
    return open_page(_At(page_process.url), "/pick_place", beside=screen)


def report(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.pickPlace.report()")
    return found


def shows(screen: Screen, state: str) -> None:
    """Waits until word and diagram show a state."""
    screen.reads("cycle-state", state)
    screen.until(lambda: report(screen)["lit"] == [state], f"{state} lit")


def forward_to(cell: StandIn, state: str) -> None:
    for _ in range(3000):
        if cell.do("pick_place")["state"] == state:
            return
        cell.forward(0.02)
    raise AssertionError(f"no {state}: {cell.do('pick_place')}")


def fill_pallet(screen: Screen, cell: StandIn) -> None:
    """All parts are on the pallet, whichever tests ran before."""
    if screen.text("pallet-count") != "4 / 4":
        screen.press("pick-start")
        shows(screen, "MOVE_TO_SCAN")
        forward_to(cell, "IDLE")
        screen.reads("pallet-count", "4 / 4")


def refused(screen: Screen, reason: str) -> None:
    notice = screen.page.locator(".q-notification", has_text=reason).first
    notice.wait_for()


def sides(screen: Screen) -> dict[str, int]:
    """Y of each part in the scene, in cm."""
    return {name: round(100 * part["at"][1]) for name, part in screen.scene["parts"].items()}


def held(screen: Screen) -> int:
    """The number of parts that the robot holds in the scene."""
    return sum(part["holder"] == "g60" for part in screen.scene["parts"].values())


def settled(cell: StandIn) -> str:
    """The mode of operation a little later."""
    cell.forward(0.2)
    return str(cell.do("operation_mode")["mode"])


def counted(screen: Screen, selector: str, count: int) -> None:
    """Waits until there are as many elements."""
    screen.until(lambda: screen.page.locator(selector).count() == count, f"{count} {selector}")


def dropped(cell: StandIn) -> bool:
    cell.forward(0.1)
    return not cell.do("pick_place")["holding"]


def no_dialog(screen: Screen) -> None:
    """Waits until keys act again."""
    screen.page.wait_for_function("!document.querySelector('.q-dialog__inner')")


def test_the_diagram_is_that_of_the_table(screen: Screen) -> None:
    shown = report(screen)
    assert set(shown["states"]) == {*RUNNING, "IDLE", "PAUSED", "ERROR"}
    drawn = {(e["from"], event): e["to"] for e in shown["edges"] for event in e["events"]}
    assert drawn.items() <= TRANSITIONS.items()
    common = {"stop", "pause", "fault"}
    for (state, event), after in TRANSITIONS.items():
        once = (event in common and state in RUNNING) or event == "go_on"
        assert once or (state, event) in drawn or after in (state, "BEFORE_PAUSE"), (state, event)
    shows(screen, "IDLE")


def test_a_grip_miss_with_retry_then_parts_go_from_pick_to_pallet(
    screen: Screen, second: Screen, cell: StandIn
) -> None:
    screen.until(lambda: len(sides(screen)) == 4, "four parts")
    places = sides(screen)
    screen.press("pick-start")
    shows(screen, "MOVE_TO_SCAN")
    forward_to(cell, "MOVE_TO_PICK")
    for each in (screen, second):
        counted(each, ".u-seen", 4)
        counted(each, ".u-seen-target", 1)
        counted(each, ".u-axis-x", 4)
        label = each.page.locator(".u-seen text").all_text_contents()[:2]
        assert " ".join(label).startswith("cube 100 %")
    forward_to(cell, "RETRACT_PICK")
    forward_to(cell, "MOVE_TO_SCAN")  # the first grip has missed
    screen.reads("cycle-info", "grips missed: 1")
    forward_to(cell, "MOVE_TO_PLACE")
    shows(second, "MOVE_TO_PLACE")
    screen.until(lambda: held(screen) == 1, "a part in the hand")
    forward_to(cell, "IDLE")
    for each in (screen, second):
        shows(each, "IDLE")
        counted(each, ".u-place-full", 4)
        each.reads("pallet-count", "4 / 4")
        each.reads("figure-success_count", "4")
        each.reads("advice", "press New pallet for an empty one")
        counted(each, ".u-bar-done", 4)
    screen.until(lambda: not (places.items() & sides(screen).items()), "all parts have moved")
    screen.until(lambda: screen.scene["pallets"]["g60"] == [[4, 4]], "four places in the scene")
    assert not screen.errors + second.errors


def test_pictures_of_the_camera_and_its_settings(
    screen: Screen, second: Screen, cell: StandIn
) -> None:
    def picture() -> dict[str, Any]:
        return report(screen)["picture"] or {"frame": 0}

    fill_pallet(screen, cell)
    screen.until(lambda: picture()["frame"] == report(screen)["frame"], "the picture of the result")
    counted(screen, ".u-eye-drawing image", 1)
    screen.press("see-live")
    screen.until(lambda: picture()["frame"] is None, "a live picture")
    counted(screen, ".u-seen", 0)
    screen.page.locator('[data-mark="eye-exposure_ms"]').fill("9")
    second.reads("eye-exposure_ms-figure", "9 ms")
    screen.press("see-last")
    screen.until(lambda: picture()["frame"] == report(screen)["frame"], "the result again")


def test_wrong_states_give_a_clear_message(screen: Screen, second: Screen, cell: StandIn) -> None:
    fill_pallet(screen, cell)
    for key, reason in (
        ("Alt+g", "PALLET_FULL"),
        ("h", "pick & place is not running"),
        ("z", "pick & place has no fault to reset"),
    ):
        screen.page.keyboard.press(key)
        refused(screen, reason)
    parts = [part["name"] for part in cell.do("parts")["parts"]]
    second.press("reset-pallet")
    second.press("do-reset-pallet")
    screen.reads("pallet-count", "0 / 4")
    screen.until(lambda: report(screen)["pallet"]["next"] == [0], "the first place is next")
    assert not cell.do("parts")["parts"], "the pallet is empty"
    for name in parts:
        cell.do("add_part", part=CUBE | {"name": name, "position_mm": [400, 0, 400]})
    cell.forward(1.0)


def test_pause_resume_and_stop_by_keyboard(screen: Screen, second: Screen, cell: StandIn) -> None:
    keys = screen.page.keyboard
    for number, part in enumerate(cell.do("parts")["parts"]):  # back under the camera
        cell.do("place_part", name=part["name"], position_mm=(400, 80 * number - 80, 70))
    cell.do("disable", robot="g60")
    keys.press("Alt+n")
    screen.at("run-anyway").locator('[data-answer="yes"]').click()
    shows(second, "MOVE_TO_SCAN")
    forward_to(cell, "MOVE_TO_PLACE")
    keys.press("h")
    shows(second, "PAUSED")
    second.reads("cycle-words", "paused in MOVE_TO_PLACE")
    cell.forward(5.0)
    assert cell.do("pick_place")["state"] == "PAUSED"
    screen.at("pick-resume").wait_for()
    keys.press("Alt+h")
    shows(second, "MOVE_TO_PLACE")
    screen.at("pick-pause").wait_for()
    keys.press("s")
    shows(second, "IDLE")
    second.reads("last-error", "stopped in MOVE_TO_PLACE")
    second.reads("advice", "START goes on with it, PUT BACK returns it")
    cell.forward(1.0)
    second.at("pick-put_back").wait_for()
    screen.press("gripper_open")
    screen.until(lambda: dropped(cell), "an empty hand")
    second.reads("advice", "stopped by a command; START begins a new cycle")
    screen.reads("figure-fail_count", "1")


def test_detectors_are_set_with_a_form(screen: Screen, second: Screen, cell: StandIn) -> None:
    """Refused at the field; with another height of the table no part is found; set back, it is."""

    def height(each: Screen, text: str) -> None:
        field = each.at("detector-0-plane_z_mm")
        each.until(lambda: bool(field.input_value() == text), f"height {text}")

    screen.at("detector-0-min_confidence").fill("-3")
    screen.press("detectors-apply")
    refusal = "min_confidence: out of range (got -3.0); allowed: a number ≥ 0 and ≤ 1"
    problem = screen.page.locator(".u-detector-field", has_text=refusal)
    problem.wait_for()
    screen.at("detector-0-min_confidence").fill("0.9")
    problem.wait_for(state="detached")
    classes = screen.at("detector-0-classes").input_value()
    screen.at("detector-0-classes").fill("[{")
    screen.press("detectors-apply")
    screen.reads("detectors-problem", "Not applied")
    assert not cell.do("vision_detectors")["changed"]
    screen.at("detector-0-classes").fill(classes)
    for shown in ("", "1e999"):
        screen.at("detector-0-plane_z_mm").fill(shown)
        screen.press("detectors-apply")
        screen.page.locator(".u-detector-field", has_text="no valid value; allowed").wait_for()
        assert not cell.do("vision_detectors")["changed"]
        screen.at("detector-0-plane_z_mm").fill("50")
    screen.at("detector-0-plane_z_mm").fill("0")
    second.at("detector-0-size_tolerance_mm").fill("7")
    screen.at("detectors-apply").focus()
    screen.page.keyboard.press("Enter")
    for each in (screen, second):
        each.reads("detectors-state", "changed")
        height(each, "0")
    (now,) = cell.do("vision_detectors")["detectors"]
    assert (now["plane_z_mm"], now["min_confidence"]) == (0, 0.9)
    assert "size_tolerance_mm" not in now, "a default stays out"
    second.reads("detectors-problem", "What you have written here is kept and not applied")
    assert float(second.at("detector-0-size_tolerance_mm").input_value()) == 7
    assert not screen.text("detectors-problem")
    cell.do("single_pick_place")
    cell.forward(20.0)
    screen.reads("last-error", "NO_OBJECT")
    screen.until(lambda: report(screen)["objects"] == 0, "nothing seen")
    second.press("detectors-back")
    for each in (screen, second):
        each.reads("detectors-state", "as in the cell file")
        height(each, "50")
        assert float(each.at("detector-0-size_tolerance_mm").input_value()) != 7
        assert not each.text("detectors-problem")


def test_an_emergency_stop_says_what_to_do(screen: Screen, cell: StandIn) -> None:
    screen.press("pick-single")
    shows(screen, "MOVE_TO_SCAN")
    forward_to(cell, "MOVE_TO_PICK")
    counted(screen, ".u-seen-target", 1)  # the detectors of the cell file find parts again
    screen.press("emergency-stop")
    shows(screen, "ERROR")
    screen.reads("last-error", "EMERGENCY_STOP")
    screen.reads("advice", ADVICE["EMERGENCY_STOP"])
    assert screen.text("last-error").count(ADVICE["EMERGENCY_STOP"]) == 1
    cell.do("reset")
    cell.do("enable", robot="g60")
    cell.forward(0.5)
    screen.press("pick-reset")
    shows(screen, "IDLE")


def test_pictures_of_the_last_misses(screen: Screen, cell: StandIn) -> None:
    for part in cell.do("parts")["parts"]:
        cell.do("remove_part", name=part["name"])
    screen.press("pick-single")
    shows(screen, "MOVE_TO_SCAN")
    forward_to(cell, "SCANNING")
    forward_to(cell, "IDLE")
    for number in (1, 2):
        screen.press("see-miss")
        caption = screen.page.locator(".u-eye-caption", has_text=f"Miss {number}/")
        caption.wait_for(state="attached")
    screen.press("see-last")
    counted(screen, ".u-eye-caption", 0)


def test_a_mode_is_changed_with_its_steps_and_a_confirmation(
    screen: Screen, second: Screen, cell: StandIn
) -> None:
    screen.press("mode-WELDING")
    screen.press("do-change")
    second.reads("operation-mode", "CHANGEOVER → WELDING")
    second.reads("change-step", "PARK_TORCH")
    cell.forward(3.0)
    second.reads("change-step", "CONFIRM_TOOL")
    second.reads("change-words", "mount T1 torch")
    second.press("confirm-tool")
    screen.until(lambda: settled(cell) == "WELDING", "WELDING")
    screen.until(lambda: screen.text("operation-mode") == "WELDING", "WELDING on the page")
    screen.reads("active-tool", "T1 torch")
    no_dialog(screen)
    screen.page.keyboard.press("Alt+g")
    refused(screen, "the mode is WELDING: request the mode PICKPLACE first")
    second.press("mode-PICKPLACE")
    second.press("do-change")
    screen.reads("change-step", "PARK_TORCH")
    second.press("abort-change")
    screen.reads("operation-mode", "WELDING")


@pytest.mark.soak
def test_the_page_fits_small_and_large_screens_in_both_languages(
    second: Screen, page_process: PageServer
) -> None:
    page = second.page
    for language in ("vi", "en"):
        page.context.add_cookies([{"name": "language", "value": language, "url": page_process.url}])
        page.reload()
        second.built()
        for size in (SMALL, SIZE):
            page.set_viewport_size(size)
            assert page.evaluate(CLIPPED) == []
            assert page.evaluate(HIDDEN) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        if language == "vi":
            assert second.text("pick-start").strip().endswith("CHẠY")
    page.set_viewport_size({"width": 3840, "height": 2160})
    page.wait_for_function("document.querySelector('.u-scene').checkVisibility()")
    assert page.locator(".u-eye").is_visible()


SAME_IDS = """async (address) => {
  const { Camera } = await import(address);
  const place = document.createElement("div");
  const camera = new Camera(place, document.createElement("div"));
  const object = (x) =>
    ({ id: 0, class: "block", confidence: 1, bbox: [x, 0, 40, 40], axes_px: [] });
  const objects = [0, 100, 200].map(object);
  camera.show({ frame_id: 1, objects, exposed_at_s: null, age_s: 0 });
  camera.aim(object(100));
  camera.close();
  const boxes = [...place.querySelectorAll(".u-seen-target rect")];
  return boxes.map((box) => box.getAttribute("x"));
}"""


def test_one_of_several_markers_with_the_same_number_is_picked(screen: Screen) -> None:
    found = screen.page.evaluate(SAME_IDS, f"{STATIC}/pages/pick_place/camera.js")
    assert found == ["100"]


def test_scripts_of_other_pages_that_cannot_be_loaded_are_no_error(screen: Screen) -> None:
    """As after the end of a cell whose page was just opened."""
    page = screen.page.context.new_page()
    other, noted = Screen(page), list[str]()
    page.on("console", lambda message: noted.append(message.text))
    page.route("**/pages/plots/*.js*", lambda route: route.abort())
    other.open(screen.page.url)
    missing = "Failed to fetch dynamically imported module"
    other.until(lambda: any(missing in text for text in noted), "a preload that fails")
    assert not other.errors
    page.close()


# ── texts ──


EVENTS = """async ([address, tables, texts]) => {
  const { Diagram } = await import(address);
  const other = document.createElement("div");
  other.dataset.texts = JSON.stringify(texts);
  document.body.prepend(other);
  const place = document.createElement("div");
  new Diagram(place, tables);
  other.remove();
  return [...place.querySelectorAll(".u-cycle-event")].map((label) => label.textContent);
}"""


def test_the_transitions_of_the_diagram_are_in_the_language_of_the_page(screen: Screen) -> None:
    rows = [[state, event, new] for (state, event), new in TRANSITIONS.items()]
    cycle = [[state, event, new] for (state, event), new in CYCLE.items()]
    tables = {"running": RUNNING, "cycle": cycle, "transitions": rows}
    texts = Texts("vi").section("pick_place")
    address = f"{STATIC}/pages/pick_place/diagram.js"
    labels = screen.page.evaluate(EVENTS, [address, tables, texts])
    shown = {word for label in labels for word in label.split(" · ")}
    expected = {texts[f"events.{event}"] for _, event in TRANSITIONS}
    assert shown == expected - {texts["events.done"], texts["events.go_on"]}


def test_texts_are_those_of_the_jobs() -> None:
    texts = dictionary()
    for code, advice in ADVICE.items():
        assert cell_text(texts[f"advice.pick_place.{code}"]) == advice
        assert Texts("vi").translated("advice", advice) != advice  # in the header
    assert ADVICE.keys() == {*get_args(PickPlaceError), *get_args(PickPlaceMiss)} - {""}
    needed = [f"pick_place.states.{state}" for state in get_args(PickPlaceState)]
    needed += [f"pick_place.events.{event}" for event in get_args(Event)]
    ends = {*get_args(PickPlaceReason)} - {"", *ADVICE}
    needed += [f"pick_place.ends.{reason}" for reason in ends]
    needed += [f"pick_place.steps.{step}" for step in (*CHANGEOVER_STEPS, "SETTLED", "FAILED")]
    needed += [f"pick_place.modes.{mode}" for mode in get_args(TargetMode)]
    assert set(needed) <= set(texts)


def test_no_english_is_left_on_the_page_in_vietnamese(
    page_process: PageServer, open_page: Callable[..., Screen]
) -> None:
    screen = open_page(_At(page_process.url), "/pick_place")
    screen.press("language-vi")
    screen.page.wait_for_function("document.documentElement?.lang === 'vi'")
    screen.built()
    found = screen.shown()
    assert len(found) > 60
    assert {text for text in english(found) if not text.isupper()} == set()  # states of the cycle
    screen.page.close()
