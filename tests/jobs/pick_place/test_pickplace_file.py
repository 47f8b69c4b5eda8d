"""The pickplace.yaml of the design document is read unchanged, as a file and as sections."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.vision.camera_in import camera_in

from understudy.app.build import build_cell, with_options
from understudy.cli.check import check
from understudy.config import CellConfig, load_config
from understudy.errors import ConfigError
from understudy.jobs.headless import run_job
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.status import PickPlaceStatus

PICKPLACE = Path(__file__).with_name("pickplace.yaml").read_text()
CALIBRATION = (Path(__file__).parents[2] / "vision" / "hand_eye_calib.yaml").read_text()
TOOLS = "tool: 2, tools: {2: {tcp_mm_deg: [0, 0, 80, 0, 0, 0]}}"


def cell_text(file: str, more: str = "") -> str:
    return f"include: {{pickplace: {file}}}\nrobots: {{g60: {{kind: arm, {TOOLS}{more}}}}}\n"


def written(folder: Path, text: str = PICKPLACE, *, more: str = "", at: str = "config") -> str:
    """A cell file that includes a pickplace.yaml in a folder beside it."""
    (folder / at).mkdir(exist_ok=True)
    (folder / at / "pickplace.yaml").write_text(text)
    (folder / at / "hand_eye_calib.yaml").write_text(CALIBRATION)
    cell = folder / "cell.yaml"
    cell.write_text(cell_text(f"{at}/pickplace.yaml", more))
    return str(cell)


def loaded(folder: Path, text: str = PICKPLACE, more: str = "") -> CellConfig:
    return load_config(written(folder, text, more=more))


def test_every_key_of_the_document_is_read(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    found = config.robots["g60"].sections
    assert found["pickplace"].scan_position.pose()[:3] == pytest.approx((0.4, 0.0, 0.5))
    assert found["pickplace"].place_position.pose()[:3] == pytest.approx((0.6, -0.2, 0.1))
    assert found["pickplace"].max_scan_retries == 5
    assert (found["pallet"].rows, found["pallet"].layers, found["pallet"].pattern) == (
        4,
        2,
        "SNAKE",
    )
    assert found["vision"].camera_address == "tcp://127.0.0.1:5570"
    assert config.robots["g60"].devices["gripper"].type == "PNEUMATIC_2FINGER"
    assert "safety" not in found
    assert "modes" not in found


def test_the_same_sections_can_be_keys_of_the_robot(tmp_path: Path) -> None:
    included = loaded(tmp_path).robots["g60"]
    cell = tmp_path / "config" / "own.yaml"
    lines = "".join(f"    {line}\n" for line in PICKPLACE.splitlines())
    cell.write_text("robots:\n  g60:\n    kind: arm\n" + lines)
    robot = load_config(str(cell)).robots["g60"]
    assert robot.sections["pallet"] == included.sections["pallet"]
    assert robot.sections["pickplace"] == included.sections["pickplace"]
    assert robot.devices == included.devices


def test_keys_of_the_robot_go_over_those_of_the_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, more=", pallet: {layers: 1}, modes: {start: PICKPLACE}")
    found = config.robots["g60"].sections
    assert (found["pallet"].layers, found["pallet"].rows) == (1, 4)
    assert found["modes"].start == "PICKPLACE"


@pytest.mark.parametrize("at", ["config", "."])
def test_files_are_found_beside_the_file_or_in_the_folder_above(tmp_path: Path, at: str) -> None:
    text = PICKPLACE if at == "config" else PICKPLACE.replace("config/hand", "hand")
    below = tmp_path / "project"
    below.mkdir()
    written(below, text, at=at)
    cell = tmp_path / "cells" / "cell.yaml"
    cell.parent.mkdir()
    cell.write_text(cell_text(f"../project/{at}/pickplace.yaml"))
    vision = load_config(str(cell)).robots["g60"].sections["vision"]
    found = cell.parent / vision.calibration_file
    assert found.resolve() == (below / at / "hand_eye_calib.yaml").resolve()


def test_a_missing_calibration_file_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = loaded(tmp_path)
    camera_in(config)
    assert not caplog.records
    (tmp_path / "config" / "hand_eye_calib.yaml").unlink()
    camera_in(load_config(config.document.file))
    assert "there is no file" in caplog.text
    assert "hand_eye_calib.yaml: its camera is taken to be at the flange" in caplog.text


PARTS = """
parts: [{name: bolt, class: bolt_m8, dimensions_mm: [40, 40, 50], position_mm: [450, 20, 75]}]
environment:
  objects: [{name: table, type: box, position_mm: [500, 0, 25], dimensions_mm: [700, 1000, 50]}]
"""


def outcome_of_a_cycle(folder: Path, text: str) -> PickPlaceStatus:
    """Of one cycle with the gripper of the file, over a table with a part."""
    file = Path(written(folder, text))
    file.write_text(file.read_text() + PARTS)
    cell = build_cell(load_config(str(file)))
    job = cell.components["g60.pick_place"]
    assert isinstance(job, PickPlaceManager)
    assert run_job(cell, "g60", job, 60.0, max_cycles=1) is None
    return job.status(cell.now)


@pytest.mark.parametrize("kind", ["PNEUMATIC_2FINGER", "PNEUMATIC_VACUUM", "ELECTRIC_SERVO"])
def test_another_type_of_gripper_grips_or_names_the_grasp_that_it_needs(
    tmp_path: Path, kind: str
) -> None:
    text = PICKPLACE.replace("PNEUMATIC_2FINGER", kind, 1)
    status = outcome_of_a_cycle(tmp_path, text)
    if kind == "PNEUMATIC_VACUUM":
        assert status.code == "GRIP_FAILED"
        found = re.search(r"; (grasps: .*}}) puts the cup on it", status.last_error)
        assert found is not None, status.last_error
        text = text.replace("pickplace:\n", f"pickplace:\n  {found[1]}\n", 1)
        status = outcome_of_a_cycle(tmp_path, text)
    assert status.reason == "DONE", status.last_error


WRONG = [
    ("scan_position:", "scan_positon:", r"pickplace\.yaml:4: .*scan_positon.*did you mean.*scan_p"),
    ("pallet:", "palet:", r"palet: unknown key.*did you mean.*pallet"),
    ("rows: 4", "rows: 0", r"pallet\.rows"),
    ("pattern: SNAKE", "pattern: ZIG", r"pallet\.pattern"),
    ("close_timeout_ms: 500", "close_timeout_s: 1", r"gripper\.close_timeout_s: unknown key"),
    ("columns: 4", "columns: 3\n  interleave: ROTATE", r"pallet: interleave: ROTATE needs square"),
    ("pattern: SNAKE", "start_corner: TOP_LEF", r"start_corner.*did you mean.*TOP_LEFT"),
    ("min_confidence: 0.8", "min_confidence: 80", r"min_confidence"),
    ("camera_address:", "camera_adress:", r"did you mean.*camera_address"),
    ("x: 400.0", "x: 4.0e+12", r"scan_position\.x: out of range.*allowed"),
    ("rx: 180.0", "rx: 1.0e+300", r"scan_position\.rx: out of range.*allowed"),
    ("move_speed_mm_s: 500.0", "move_speed_mm_s: 1.0e-9", r"move_speed_mm_s: out of range"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_keys_name_file_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in PICKPLACE
    with pytest.raises(ConfigError, match=message):
        loaded(tmp_path, PICKPLACE.replace(old, new, 1))


@pytest.mark.parametrize("section", ["pickplace", "pallet", "safety", "vision", "modes"])
@pytest.mark.parametrize("value", ["[]", "''", "0", "false"])
def test_a_section_that_is_no_mapping_is_an_error(tmp_path: Path, section: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"robots\.g60\.{section}.*allowed: a mapping"):
        loaded(tmp_path, more=f", {section}: {value}")


def test_a_file_without_an_arm_for_it_is_an_error(tmp_path: Path) -> None:
    cell = Path(written(tmp_path))
    cell.write_text(
        "include: {pickplace: config/pickplace.yaml}\nrobots: {t: {kind: text_robot}}\n"
    )
    with pytest.raises(ConfigError, match="0 arms"):
        load_config(str(cell))
    cell.write_text(
        "include: {pickplace: {g61: config/pickplace.yaml}}\nrobots: {g60: {kind: arm}}\n"
    )
    with pytest.raises(ConfigError, match=r"g61.*did you mean.*g60"):
        load_config(str(cell))


def test_check_reads_the_calibration_file_of_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hand_eye_calib.yaml"
    file.write_text(CALIBRATION)
    check(str(file))
    assert "valid as a camera calibration" in capsys.readouterr().out
    file.write_text(CALIBRATION.replace("1.0000", "1.5"))
    with pytest.raises(ConfigError, match=r"hand_eye_calibration\.matrix: not a rotation"):
        check(str(file))


def test_check_reads_the_file_alone_and_in_a_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = written(tmp_path)
    check(str(tmp_path / "config" / "pickplace.yaml"))
    assert "valid as a pickplace file" in capsys.readouterr().out
    check(cell)
    assert "valid (robots: 1" in capsys.readouterr().out
    (tmp_path / "config" / "pickplace.yaml").write_text("gripper: {typ: PNEUMATIC_VACUUM}\n")
    with pytest.raises(ConfigError, match="did you mean"):
        check(str(tmp_path / "config" / "pickplace.yaml"))


def test_empty_sections_have_their_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, "pickplace:\ngripper:\npallet:\n").robots["g60"]
    assert found.sections["pallet"].layers == 3
    build_cell(load_config(str(tmp_path / "cell.yaml")))


# ── rules between sections ──

TOO_FAST = "pickplace: {approach_speed_mm_s: 201}\n"
EMPTY_ZONE = "pickplace: {}\nsafety: {pick_zone: {min: [0, 0, 0], max: [100, 0, 100]}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOO_FAST, r"pickplace\.yaml:1: pickplace\.approach_speed_mm_s.*up to 200"),
        (EMPTY_ZONE, r"pickplace\.yaml:2: safety\.pick_zone: the zone is empty"),
        ("pickplace: {}\nsafety: {pick_zone: {min: [0, 0, 0]}}\n", r"safety\.pick_zone\.max"),
        ("pickplace: {source: fixed}\n", r"pickplace\.yaml:1: pickplace\.pick_position"),
        ("pickplace: {source: pallet}\n", r"pickplace\.yaml:1: pickplace\.source_pallet"),
    ],
)
def test_rules_hold_for_the_file_alone_and_for_the_cell(
    tmp_path: Path, text: str, message: str
) -> None:
    cell = written(tmp_path, text + "gripper: {}\n")
    with pytest.raises(ConfigError, match=message):
        check(str(tmp_path / "config" / "pickplace.yaml"))
    with pytest.raises(ConfigError, match=message):
        load_config(cell)


def test_keys_of_the_robot_can_break_a_rule_of_the_file(tmp_path: Path) -> None:
    cell = written(tmp_path, more=", safety: {max_approach_speed_mm_s: 50}")
    with pytest.raises(ConfigError, match="approach_speed_mm_s"):
        build_cell(load_config(cell))


def test_missing_zones_are_one_warning_each_at_load(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build_cell(loaded(tmp_path))
    zones = [row.message for row in caplog.records if "_zone is not given" in row.message]
    assert len(zones) == 2
    caplog.clear()
    zone = "{min: [-9999, -9999, -9999], max: [9999, 9999, 9999]}"
    build_cell(loaded(tmp_path, more=f", safety: {{pick_zone: {zone}, place_zone: {zone}}}"))
    assert not [row.message for row in caplog.records if "_zone is not given" in row.message]
    again = "in safety.pick_zone: parts that were placed there are picked again"
    assert f"pallet, cell 0 and 31 more {again}" in caplog.text


def test_the_stricter_of_two_keys_counts(tmp_path: Path) -> None:
    more = ", safety: {min_detection_confidence: 0.9, vision_timeout_ms: 700}"
    job: Any = build_cell(loaded(tmp_path, more=more)).components["g60.pick_place"]
    assert (job.safety.min_confidence, job.safety.picture_timeout) == (0.9, 700_000_000)
    more = ", safety: {min_detection_confidence: 0.1, vision_timeout_ms: 60000}"
    job = build_cell(loaded(tmp_path, more=more)).components["g60.pick_place"]
    assert (job.safety.min_confidence, job.safety.picture_timeout) == (0.8, 5_000_000_000)


def test_the_vision_process_has_no_use_in_a_cell_that_looks_for_nothing() -> None:
    config = load_config("g60_welding")
    assert with_options(config, {"vision": "ground_truth"}).robots == config.robots
    with pytest.raises(ConfigError, match=r"g60_welding.yaml.* no robot of this cell looks for"):
        with_options(config, {"vision": "process"})
