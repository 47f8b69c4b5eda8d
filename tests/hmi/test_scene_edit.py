"""The environment is edited in the scene of the cell page: by mouse, numbers and files."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browsers import RunningCell, Screen, WeldingCell
from tests.operator.test_environment_edits import RACK, stl


@pytest.fixture(scope="module")
def screen(welding: WeldingCell, welding_screen: Screen) -> Iterator[Screen]:
    welding_screen.open(welding.url)
    welding_screen.page.keyboard.press("e")
    welding_screen.until(lambda: "fixture" in edit(welding_screen)["names"], "the open editor")
    yield welding_screen
    assert welding_screen.errors == []
    assert welding_screen.violations == []


def edit(screen: Screen) -> dict[str, Any]:
    found: dict[str, Any] = screen.page.evaluate("window.sceneEdit.report()")
    return found


def place(cell: RunningCell, name: str) -> list[float]:
    rows = cell.ask("environment")["objects"]
    return next(([*r["position_mm"], *r["rotation_deg"]] for r in rows if r["name"] == name), [])


def height(cell: RunningCell, name: str) -> float:
    rows = cell.ask("environment")["objects"]
    return float(next(each["dimensions_mm"][2] for each in rows if each["name"] == name))


def choose(screen: Screen, name: str) -> None:
    screen.page.locator(f'[data-object="{name}"]').click()
    screen.until(lambda: edit(screen)["chosen"] == name, name)
    screen.until(lambda: not screen.page.evaluate("understudy.scene.viewport.flight"), "at rest")


def test_an_object_is_dragged_along_one_axis_and_back(screen: Screen, welding: WeldingCell) -> None:
    before = place(welding, "fixture")
    while "50" not in screen.text("edit-snap"):
        screen.press("edit-snap")
    choose(screen, "fixture")
    x, y = edit(screen)["handles"]["y"]
    screen.page.mouse.move(x, y)
    screen.page.mouse.down()
    screen.page.mouse.move(x + 50, y - 20, steps=4)
    assert place(welding, "fixture") == before, "one change, when it is let go"
    screen.page.mouse.up()
    screen.until(lambda: place(welding, "fixture") != before, "the cell has it")
    after = place(welding, "fixture")
    assert after[0::2] == pytest.approx(before[0::2])
    assert after[1] % 50 == pytest.approx(0.0, abs=1e-6), "a multiple of the snap"
    assert [after[3], after[5]] == pytest.approx([0.0, 0.0], abs=1e-9)
    shown = screen.page.locator("[data-field=y]")
    screen.until(lambda: float(shown.input_value()) == after[1], "the numbers")
    screen.page.locator("body").press("u")
    screen.until(lambda: place(welding, "fixture") == before, "undone")
    screen.press("edit-redo")
    screen.until(lambda: place(welding, "fixture") == after, "again")


def test_numbers_are_typed_and_a_click_in_the_scene_selects(
    screen: Screen, welding: WeldingCell
) -> None:
    choose(screen, "fixture")
    screen.page.locator("[data-field=rz]").fill("30")
    screen.page.locator("[data-field=rz]").press("Enter")
    screen.until(lambda: place(welding, "fixture")[5] == pytest.approx(30.0), "turned")
    screen.page.locator("[data-field=dz]").fill("100")
    screen.page.locator("[data-field=dz]").press("Tab")
    screen.until(lambda: height(welding, "fixture") == pytest.approx(100.0), "resized")
    screen.press("edit-box")
    screen.until(lambda: edit(screen)["chosen"] == "box 1", "a box, selected")
    screen.press("edit-remove")
    screen.until(lambda: edit(screen)["chosen"] == "", "gone")
    middle = "understudy.scene.shownObjects().find((o) => o.name === 'table')"
    at = screen.page.evaluate(
        f"""() => {{ const {{ viewport }} = understudy.scene;
        const box = viewport.renderer.domElement.getBoundingClientRect();
        const [x, y] = viewport.onScreen({middle}.object.children[0]);
        return [box.left + (x + 1) / 2 * box.width, box.top + (1 - y) / 2 * box.height]; }}"""
    )
    screen.page.mouse.click(*at)
    screen.until(lambda: edit(screen)["chosen"] in ("table", "fixture"), "what is there")


DROP = """([name, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const area = document.querySelector(".u-scene-area");
  const { left, top, width, height } = area.getBoundingClientRect();
  const at = { clientX: left + width / 2, clientY: top + height * 0.7 };
  const how = { dataTransfer, bubbles: true, cancelable: true, ...at };
  area.dispatchEvent(new DragEvent("drop", how));
}"""


def drop(screen: Screen, name: str, data: bytes) -> None:
    screen.page.evaluate(DROP, [name, b64encode(data).decode()])


def test_dropped_files_become_objects_and_are_saved(screen: Screen, welding: WeldingCell) -> None:
    drop(screen, "cast.stl", stl())
    screen.until(lambda: "cast 1" in edit(screen)["names"], "the mesh")
    drop(screen, "rack.urdf", RACK.encode())
    screen.until(lambda: "rack 1.shelf" in edit(screen)["names"], "the URDF")
    drop(screen, "notes.txt", b"no model")
    screen.page.get_by_text("No mesh (STL").wait_for()
    screen.press("edit-save")
    screen.at("save-as").locator("[data-answer='environment.yaml']").click()
    saved = welding.files / "environment.yaml"
    screen.until(saved.exists, "saved in the folder for files")
    screen.until(lambda: (welding.files / "rack.urdf").exists(), "its models beside it")
    names = edit(screen)["names"]
    welding.ask("clear_environment")
    screen.until(lambda: len(edit(screen)["names"]) < len(names), "another door, seen here")
    welding.ask("load_environment", file=saved.name)
    screen.until(lambda: set(edit(screen)["names"]) == set(names), "all of it again")


def test_two_points_are_measured_and_the_scene_is_captured(screen: Screen, tmp_path: Path) -> None:
    screen.page.locator("body").press("m")
    box = screen.page.locator("#scene canvas").bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"]
    screen.page.mouse.click(x, y)
    screen.page.mouse.click(x + 60, y + 20)
    screen.until(lambda: " mm · Δ" in edit(screen)["said"], "the distance")
    assert float(edit(screen)["said"].split(" mm")[0]) > 1.0
    screen.press("edit-measure")
    for mark, begins in (("capture-picture", b"\x89PNG"), ("capture-video", b"\x1aE\xdf\xa3")):
        if mark == "capture-video":
            screen.press(mark)
            screen.page.wait_for_function("window.capture.recorder?.state === 'recording'")
        with screen.page.expect_download() as download:
            screen.press(mark)
        file = tmp_path / mark
        download.value.save_as(file)
        assert file.read_bytes().startswith(begins)
