"""The proof of a whole pick & place job, against the running cell and on cells with one flaw."""

from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.app.validate import Options
from understudy.config import CellConfig, load_config, read_config
from understudy.errors import ConfigError
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.offline import (
    WorkpieceTable,
    WorkpieceTimes,
    job_cycle_time,
    validate_job,
)
from understudy.offline.cycle_time import CycleTime
from understudy.offline.validate.report import Report
from understudy.simulation.cell import Cell
from understudy.simulation.collision.watch import CollisionWatch
from understudy.units import seconds
from understudy.wire.exchange import InProcessCell

CELLS = Path(__file__).parent / "cells"
APART = 1e-6
"""Seconds: times are rounded to nanoseconds at each step."""


def cell(name: str) -> CellConfig:
    return load_config(str(CELLS / f"{name}.yaml"))


def parts_of(report: Report | CycleTime) -> tuple[WorkpieceTimes, ...]:
    """The workpieces of a job one by one; none if no cycle began."""
    assert isinstance(report.job, WorkpieceTable)
    return report.job.parts


def run_live(config: CellConfig) -> tuple[Cell, Any, list[float]]:
    """The running cell with collision checks, its arm, and the end of each cycle in seconds."""
    built = build_cell(config)
    arm: Any = built.components["g60"]
    job = built.components["g60.pick_place"]
    assert isinstance(job, PickPlaceManager)
    ends: list[float] = []
    job.on_cycle(lambda number, success, now: ends.append(seconds(now)))
    arm.connect(0)
    arm.enable(0)
    assert job.start(0) is None
    InProcessCell(built).run_while(job.is_running)
    return built, arm, ends


# ── a cell without a flaw ───────────────────────────────────────────────────────────────────────


def test_a_whole_pallet_is_proven_with_the_carried_and_all_placed_parts() -> None:
    report = validate_job(cell("good"))
    assert report.passed, report.violations
    assert report.table.unproven == 0
    assert report.least_clearance is not None
    assert 0.0005 < report.least_clearance <= 0.001  # parts at rest: the margin of their shapes
    assert [part.placed for part in parts_of(report)] == [True] * 4
    assert [part.cell for part in parts_of(report)] == [
        f"pallet cell {index} (row {row}, column {column}, layer 0)"
        for index, (row, column) in enumerate([(0, 0), (0, 1), (1, 1), (1, 0)])
    ]
    assert len({part.name for part in parts_of(report)}) == 4
    assert all(part.crossing is not None and part.crossing > 0.019 for part in parts_of(report))
    assert report.notes[0] == "4 parts are placed; the run ended with PALLET_FULL"


@pytest.mark.parametrize("name", ["good", "pick_place"])
def test_the_running_cell_has_no_contact_and_takes_the_same_time(name: str) -> None:
    """The times agree exactly, to the rounding of nanoseconds: the job is the same part, and the
    moves are planned by the same planner from the same joints."""
    config = cell(name) if name == "good" else load_config(name)
    report = validate_job(config)
    built, arm, ends = run_live(config)
    assert report.passed, report.violations
    assert arm.tally(built.now).collisions_detected == 0
    parts: Any = built.components["parts"]
    assert parts.status(built.now).dropped == 0
    assert [part.begins + part.seconds for part in parts_of(report)] == pytest.approx(
        ends, abs=APART
    )
    assert report.total_s == pytest.approx(ends[-1], abs=len(report.lines) * APART)
    moves = [row.end_s - row.start_s for row in report.lines if row.kind == "motion"]
    between = len(moves) * seconds(arm.arm.period)  # the job learns of the end one period later
    planned = report.cycle_time["motion_s"]
    assert planned + between == pytest.approx(sum(moves), abs=len(moves) * APART)


def test_cycle_time_is_that_of_the_proof_part_by_part_and_step_by_step() -> None:
    times, report = job_cycle_time(cell("good")), validate_job(cell("good"))
    assert times.total_s == pytest.approx(report.total_s, abs=1e-9)
    assert sum(part.seconds for part in parts_of(times)) == pytest.approx(times.total_s, abs=1e-4)
    for part, proven in zip(parts_of(times), parts_of(report), strict=True):
        assert part.by_state == proven.by_state
        assert sum(part.by_state.values()) == pytest.approx(part.seconds, abs=1e-6)
        assert len(part.by_state) == 10  # every state of the cycle
    assert parts_of(times)[0].by_state["SCANNING"] == pytest.approx(0.05)  # vision_latency_s


def test_a_number_of_cycles_ends_the_proof_early() -> None:
    report = validate_job(cell("good"), cycles=1)
    assert report.passed
    assert [part.number for part in parts_of(report)] == [1]
    assert report.notes[0] == "1 part is placed; the run ended with DONE"


# ── flaws ───────────────────────────────────────────────────────────────────────────────────────


def test_a_cell_of_the_pallet_out_of_reach_is_named() -> None:
    report = validate_job(cell("out_of_reach"))
    (found,) = report.violations
    assert found.kind == "unreachable"
    assert found.message.startswith("part 2, pallet cell 1 (row 0, column 1, layer 0), SCANNING: ")
    assert "J2 = 61.1° is outside -120.0°…60.0°" in found.message
    assert "the arm cannot reach 2 of 4 cells of the pallet: 1 (row 0" in found.message


def test_a_scan_position_out_of_reach_is_found_before_the_first_step() -> None:
    text = (CELLS / "good.yaml").read_text().replace("x: 390, y: 310", "x: 4000, y: 310")
    report = validate_job(read_config(text, "cell.yaml"))
    (found,) = report.violations
    assert found.kind == "unreachable"
    assert "part 1, pallet cell 0 (row 0, column 0, layer 0), MOVE_TO_SCAN: " in found.message
    assert "scan position: move 1 of 1: " in found.message


def test_a_post_in_the_way_of_the_carried_part_only_is_found_as_in_the_running_cell() -> None:
    report = validate_job(cell("post"))
    first = report.violations[0]
    assert first.kind == "collision"
    assert first.message.startswith(
        "part 1 (box_4), pallet cell 0 (row 0, column 0, layer 0), MOVE_TO_PLACE: "
        "box_4 touches post at ("
    )
    touched = [each.contact for each in report.violations if each.contact]
    assert {contact.objects for contact in touched} == {("box_4", "post"), ("box_2", "post")}
    built = run_live(cell("post"))[0]
    (watch,) = (part for part in built.components.values() if isinstance(part, CollisionWatch))
    live = watch.uncleared()[0]
    assert set(live.names) == {"box_4", "post"}
    assert seconds(live.at) == pytest.approx(first.time_s, abs=1e-3)


def test_parts_that_are_carried_too_low_touch_their_neighbours() -> None:
    report = validate_job(cell("low_approach"))
    assert {found.kind for found in report.violations} == {"collision"}
    first, *_, last = report.violations
    assert "part 1 (box_4), pallet cell 0" in first.message
    assert "MOVE_TO_PLACE: box_4 touches box_2 at (" in first.message
    assert "part 4 (box_1), pallet cell 3 (row 1, column 0, layer 0), MOVE" in last.message
    assert "box_1 touches box_3" in last.message  # box_3 was placed before: cell 2
    assert parts_of(report)[2].name == "box_3"


def test_a_part_that_is_too_heavy_for_the_arm_is_an_overload_while_it_is_carried() -> None:
    report = validate_job(cell("overload"))
    assert {found.kind for found in report.violations} == {"torque"}
    first = report.violations[0].message
    assert first.startswith("part 1 (box_4), pallet cell 0")
    assert "RETRACT_PICK: J2 needs -687.9 Nm, 550.0 are allowed" in first
    states = {found.message.split(": ")[0].rsplit(", ")[-1] for found in report.violations}
    assert states == {"RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE"}


def test_a_cup_that_cannot_hold_the_part_is_reported_with_the_fault_of_the_job() -> None:
    text = (CELLS / "good.yaml").read_text().replace("mass_kg: 0.2", "mass_kg: 20")
    report = validate_job(read_config(text, "cell.yaml"))
    (found,) = report.violations
    assert found.kind == "process"
    assert "RETRACT_PICK: PART_LOST: " in found.message


def test_a_placed_part_that_is_picked_up_again_is_named() -> None:
    text = (CELLS / "good.yaml").read_text()
    text = text.replace("y: 310, z: 500", "y: 100, z: 500").replace("y: -150", "y: 50")
    text = text.replace("retract_distance_mm: 80", "retract_distance_mm: 80\n      order: nearest")
    report = validate_job(read_config(text, "cell.yaml"))
    assert not report.passed
    assert any("is picked up again from pallet cell" in f.message for f in report.violations)


def test_a_part_that_drops_from_its_place_is_a_warning_only_where_no_pallet_is() -> None:
    text = (CELLS / "good.yaml").read_text().replace("y: -150, z: 100", "y: -150, z: 180")
    on_pallet = validate_job(read_config(text, "cell.yaml"), cycles=1)
    assert "(box_4), pallet cell 0" in on_pallet.violations[0].message
    assert "box_4 has dropped 80 mm" in on_pallet.violations[0].message
    loose = "".join(line for line in text.splitlines(True) if "pallet:" not in line)
    into_a_box = validate_job(read_config(loose, "cell.yaml"), cycles=1)
    assert into_a_box.passed
    assert any("box_4 has dropped 80 mm" in each.message for each in into_a_box.warnings)


def test_cycle_time_of_a_job_that_fails_says_why() -> None:
    (found,) = job_cycle_time(cell("out_of_reach")).violations
    assert found.kind == "unreachable"
    assert found.message.startswith("part 2, pallet cell 1 (row 0, column 1, layer 0), SCANNING: ")


@pytest.mark.parametrize("name", ["bin_picking", "sorting", "machine_tending", "assembly"])
def test_the_shipped_jobs_are_proven(name: str) -> None:
    report = validate_job(load_config(name), cycles=2)
    assert report.passed, report.violations
    assert report.table.unproven == 0


# ── options and refusals ────────────────────────────────────────────────────────────────────────


def test_a_larger_clearance_can_be_asked_for() -> None:
    report = validate_job(cell("good"), Options(clearance_mm=5.0))
    assert not report.passed
    assert "APPROACH_PICK" in report.violations[0].message


def test_options_of_programs_are_refused() -> None:
    with pytest.raises(ConfigError, match="only for programs"):
        validate_job(cell("good"), Options(dialect="arm"))


def test_a_mode_that_does_not_allow_the_job_is_an_error() -> None:
    with pytest.raises(ConfigError, match="pick & place cannot start"):
        validate_job(load_config("pick_place"), Options(mode_of_operation="WELDING"))
