"""The cell page: figures of devices whatever tab is open, and the set-up of the cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browsers import RunningCell, Screen, WeldingCell

ENVIRONMENT = """\
objects:
  - {name: crate, type: box, dimensions_mm: [200, 200, 200], position_mm: [900, 900, 100]}
"""


@pytest.fixture(scope="module")
def files(welding: WeldingCell) -> Path:
    return welding.files


@pytest.fixture
def screen(opened: Screen) -> Iterator[Screen]:
    yield opened
    assert opened.errors == []


def figure(screen: Screen, row: str) -> str:
    place = screen.at("device-figures").locator(f'[data-row="{row}"] .u-figure')
    return str(place.inner_text())


def test_the_weld_state_is_shown_while_another_tab_is_open(
    screen: Screen, cell: RunningCell
) -> None:
    assert screen.at("tab-digital").get_attribute("aria-selected") == "true"
    assert figure(screen, "Phase") == "Idle"
    cell.ask("enable", robot="g60")
    cell.ask("load_program", robot="g60", text="M7\nG4 P1\nM3\nG1 A90 F30\n", name="arc")
    cell.ask("rate", rate=3.0)
    cell.ask("run_program", robot="g60")
    screen.until(lambda: figure(screen, "Phase") == "Weld", "the phase")
    for row, unit in (("Current", "A"), ("Voltage", "V"), ("Wire speed", "m/min")):
        number, shown = figure(screen, row).split()
        assert (float(number) > 0, shown) == (True, unit)
    screen.until(lambda: float(figure(screen, "Arc time").split()[0]) > 0, "arc time")
    screen.until(lambda: float(figure(screen, "Seam length").split()[0]) > 0, "seam length")
    cell.ask("stop_program", robot="g60")
    cell.ask("rate", rate=1.0)


def test_the_environment_is_loaded_from_a_file_and_reloaded(
    screen: Screen, cell: RunningCell, files: Path
) -> None:
    own = {each["name"] for each in cell.ask("environment")["objects"]}
    (files / "crate.yaml").write_text(ENVIRONMENT)
    screen.press("tab-setup")
    screen.reads("files-folder", f"Folder on the cell's machine: {files}")
    field = screen.page.locator('[data-mark="environment-file"]')
    field.fill("none.yaml")
    screen.press("environment-load")
    screen.page.locator(".q-notification").get_by_text("none.yaml").wait_for()
    assert {each["name"] for each in cell.ask("environment")["objects"]} == own
    field.fill("crate.yaml")
    screen.press("environment-load")
    screen.reads("environment-count", "1 objects: crate")
    screen.until(lambda: screen.scene["objects"] == ["crate"], "it in the scene")
    screen.press("environment-reload")
    screen.until(lambda: set(screen.scene["objects"]) == own, "the cell's own again")


def test_an_environment_of_the_browsers_machine_is_loaded(
    screen: Screen, cell: RunningCell
) -> None:
    screen.press("tab-setup")
    with screen.page.expect_file_chooser() as chooser:
        screen.press("environment-upload")
    content = {"name": "crate.yaml", "mimeType": "text/yaml", "buffer": ENVIRONMENT.encode()}
    chooser.value.set_files(content)
    screen.reads("environment-count", "1 objects: crate")
    cell.ask("reload_environment")


def degrees(screen: Screen) -> float:
    return round(57.29578 * float(screen.scene["robots"]["g60"]["q"][0]), 1)


def test_a_snapshot_is_saved_and_restored(screen: Screen, cell: RunningCell, files: Path) -> None:
    screen.press("tab-setup")
    cell.ask("reset")
    cell.ask("set_joint_positions", robot="g60", joints_deg=[10, 0, 0, 0, 0, 0])
    screen.page.locator('[data-mark="snapshot-file"]').fill("state.json")
    screen.press("snapshot-save")
    screen.page.locator(".q-notification").get_by_text(str(files / "state.json")).wait_for()
    cell.ask("set_joint_positions", robot="g60", joints_deg=[50, 0, 0, 0, 0, 0])
    screen.press("snapshot-restore")
    screen.page.locator(".q-notification").get_by_text("Restored").first.wait_for()
    screen.until(lambda: degrees(screen) == 10.0, "the position of the snapshot")


def test_a_snapshot_is_downloaded_and_sent_back(screen: Screen, cell: RunningCell) -> None:
    screen.press("tab-setup")
    cell.ask("set_joint_positions", robot="g60", joints_deg=[20, 0, 0, 0, 0, 0])
    with screen.page.expect_download() as download:
        screen.press("snapshot-download")
    assert download.value.suggested_filename == "snapshot.json"
    cell.ask("set_joint_positions", robot="g60", joints_deg=[60, 0, 0, 0, 0, 0])
    with screen.page.expect_file_chooser() as chooser:
        screen.press("snapshot-upload")
    chooser.value.set_files(download.value.path())
    screen.until(lambda: degrees(screen) == 20.0, "the position of the snapshot")


def test_a_file_that_is_no_snapshot_is_named(screen: Screen, tmp_path: Path) -> None:
    (tmp_path / "letter.json").write_text("dear reader")
    screen.press("tab-setup")
    with screen.page.expect_file_chooser() as chooser:
        screen.press("snapshot-upload")
    chooser.value.set_files(tmp_path / "letter.json")
    screen.page.locator(".q-notification").get_by_text("letter.json is no snapshot").wait_for()


def test_a_link_is_added_and_removed(screen: Screen, cell: RunningCell) -> None:
    screen.press("tab-setup")
    choose(screen, "link-output", "GRIPPER_CLOSE")
    choose(screen, "link-input", "PART_DETECTED")
    screen.press("link-add")
    row = screen.page.locator('[data-link="GRIPPER_CLOSE"]')
    screen.until(lambda: row.count() == 1, "the link")
    assert "GRIPPER_CLOSE → PART_DETECTED" in row.inner_text()
    cell.ask("set_output", robot="g60", pin="GRIPPER_CLOSE", value=True)
    levels = cell.ask("io", robot="g60")["digital_inputs"]
    assert next(each["value"] for each in levels if each["name"] == "PART_DETECTED")
    row.get_by_role("button", name="Remove the link").click()
    screen.until(lambda: row.count() == 0, "the link gone")
    cell.ask("set_output", robot="g60", pin="GRIPPER_CLOSE", value=False)


def choose(screen: Screen, mark: str, option: str) -> None:
    screen.press(mark)
    screen.page.locator(".q-menu").get_by_text(option, exact=True).click()
