"""The fault atlas: every declared fault has a row, and every reaction is there."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.campaign import atlas_page
from typer.testing import CliRunner

from understudy.campaign import fault_atlas
from understudy.campaign.fault_atlas import (
    Atlas,
    Outcome,
    Planned,
    as_html,
    as_junit,
    declared_rows,
)
from understudy.cli import app
from understudy.config import load_config, shipped_cells
from understudy.errors import ConfigError
from understudy.html_page import UNKNOWN
from understudy.ports.fault_reactions import Seen

CELLS = Path(__file__).parent / "atlas_cells"
OWN = {name: str(CELLS / f"{name}.yaml") for name in ("servo", "tool_changer", "master")}
PICTURES = ("camera_", "frame_")
TRIED = {
    "text_robot": (),
    "kuka_eki": ("emergency_stop", "emergency_release"),
    "grblhal_6axis": (
        *("limit_switch_stuck", "limit_switch_dead", "probe_dead", "probe_stuck"),
        *("sensors_repaired", "emergency_stop", "emergency_release"),
        *("force_input", "release_input", "pulse_input", "force_analog", "inputs_frozen"),
    ),
    "g60_welding": (
        *("emergency_stop", "emergency_release", "axis_fault", "arc_fault", "wire_fault"),
        *("gas_fault", "ignition_fault", "ignition_failure", "weld_noise"),
    ),
    "calibration": tuple(row.fault for row in declared_rows() if row.fault.startswith(PICTURES)),
    "bin_picking": (
        *("emergency_stop", "axis_fault", "part_sensor_stuck", "valve_stuck", "air_lost"),
        *("vacuum_leak", "slip", "grip_miss"),
        *(row.fault for row in declared_rows() if row.fault.startswith("vision_")),
    ),
    "pick_place": ("closed_sensor_stuck", "opened_sensor_stuck"),
    "mobile_robot": tuple(
        row.fault
        for row in declared_rows()
        if row.acts_on in ("robot mobile", "face fleet") or row.fault == "power_cut"
    ),
    OWN["servo"]: (
        *("finger_blocked", "drive_fault", "cable_cut", "answer_lost", "device_failure"),
        "registers_frozen",
    ),
    OWN["tool_changer"]: (
        *("lock_fails", "unlock_fails", "locked_sensor_stuck", "present_sensor_stuck"),
        "tool_missing",
    ),
    OWN["master"]: ("message_loss", "request_loss", "session_forgotten"),
}
"""Cells and some of their faults, none: all. Together they have every declared fault but these."""
IN_SOAK = {"store_synced", "stream_lost", "stream_purged", "sequence_gap"}
"""`tests/wire/nats/test_lost_streams.py` shows the same with fewer processes."""


def test_every_declared_fault_has_a_row_with_a_reaction() -> None:
    for row in declared_rows():
        assert row.row is not None, f"{row.acts_on} {row.fault}: declare it in REACTIONS"
        assert row.row.seen
        assert row.row.within_s > 0.0
        names = {*row.declared.figures}
        assert row.row.parameters.keys() <= names, f"{row.acts_on} {row.fault}"


def test_the_page_is_the_declarations() -> None:
    expected = atlas_page.text()
    assert atlas_page.FILE.read_text() == expected, (
        "write it anew: python -m tests.campaign.atlas_page"
    )


@pytest.mark.parametrize("cell", TRIED, ids=lambda cell: Path(cell).stem)
def test_the_reactions_to_the_faults_of_a_cell_are_there(cell: str) -> None:
    outcomes = list(Atlas(load_config(cell), TRIED[cell]).outcomes())
    missing = [each for each in outcomes if each.verdict == "missing"]
    assert not missing
    tried = {each.fault for each in outcomes if each.verdict == "seen"}
    assert tried >= set(TRIED[cell])


def test_every_declared_fault_is_tried() -> None:
    """By the cells above: all faults of a cell that names none."""
    tried = {
        planned.fault
        for cell, faults in TRIED.items()
        for planned in Atlas(load_config(cell), faults).planned
    }
    assert {row.fault for row in declared_rows()} <= tried | IN_SOAK


@pytest.mark.soak
@pytest.mark.parametrize("cell", shipped_cells())
def test_all_faults_of_a_shipped_cell(cell: str) -> None:
    outcomes = list(Atlas(load_config(cell)).outcomes())
    assert [each for each in outcomes if each.verdict == "missing"] == []
    print(f"{cell}: {dict(Counter(each.verdict for each in outcomes))}")


def test_a_trial_is_the_same_in_every_repetition() -> None:
    first, second = (
        list(Atlas(load_config("text_robot"), ["position_noise"]).outcomes()) for _ in range(2)
    )
    assert first == second
    assert first[0].rule == {"fault": "position_noise", "on": "bench", "from_s": 0.0}


NEVER = Seen("pigs fly", lambda trial: False)


@pytest.fixture
def outcomes() -> list[Outcome]:
    """A reaction that is seen, one that is missing, one that is not possible."""
    return [
        Outcome("a", "bench", "seen", "at rest", 1, seen={"it stands": 0.5}),
        Outcome("b", "bench", "missing", "at rest", 1, missing=("it stands <here>",)),
        Outcome("c", "bench", "not possible", "at rest", 1, note="there is no job"),
    ]


def test_reports_for_build_servers_and_browsers(outcomes: list[Outcome]) -> None:
    junit = as_junit("cell", outcomes)
    assert 'tests="3" failures="1" skipped="1"' in junit
    assert "it stands &lt;here&gt;" in junit
    page = as_html("cell", outcomes, UNKNOWN)
    assert "1 missing, 1 not possible" in page
    assert page.index("it stands &lt;here&gt;") < page.index("0.5\N{NO-BREAK SPACE}s")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("atlas.json", "atlas.xml", "atlas.html")]
    options = [
        f"--{kind}={file}" for kind, file in zip(("json", "junit", "html"), files, strict=True)
    ]
    command = ["faults", "--run", "--cell", "text_robot", "--fault", "overheat"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output
    assert "1 faults: 1 reactions seen, 0 missing" in result.output
    (outcome,) = json.loads(files[0].read_text())
    assert outcome["verdict"] == "seen"
    assert all(file.read_text() for file in files)

    def with_other_row(planned: Planned) -> Planned:
        assert planned.row is not None
        return replace(planned, row=replace(planned.row, seen=(NEVER,)))

    found = fault_atlas.planned_trials
    monkeypatch.setattr(
        fault_atlas,
        "planned_trials",
        lambda *given: [with_other_row(each) for each in found(*given)],
    )
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "pigs fly" in result.output


def test_a_fault_that_no_part_of_the_cell_has_is_answered_with_those_that_there_are() -> None:
    result = CliRunner().invoke(
        app, ["faults", "--run", "--cell", "text_robot", "--fault", "arc_fault"]
    )
    assert isinstance(result.exception, ConfigError)
    assert "no part of text_robot has such a fault (got 'arc_fault')" in str(result.exception)
    assert "overheat" in result.exception.allowed


def test_options_of_trials_need_run() -> None:
    result = CliRunner().invoke(app, ["faults", "--cell", "text_robot"])
    assert isinstance(result.exception, ConfigError)
