"""The hand-eye calibration as a job: real pixels, the arm of a cell, failures and snapshots."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.jobs.hand_eye.bench import HandEyeBench

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError, Refused
from understudy.jobs.hand_eye.command_line import with_hand_eye
from understudy.jobs.hand_eye.config import MOST_POSES
from understudy.jobs.hand_eye.job import IS_RUNNING, NOT_RUNNING, NOTHING_COMPUTED, TOO_MANY
from understudy.jobs.hand_eye.state import (
    RESTING,
    RUNNING,
    TRANSITIONS,
    Saved,
    SavedPose,
    diagram,
    read_capture,
)
from understudy.ports import state as snapshots
from understudy.space.transform import angle_between
from understudy.units import DEG, MM
from understudy.vision.config import read_calibration


@pytest.fixture(scope="module")
def calibrated() -> HandEyeBench:
    """A cell whose job has run to its end."""
    bench = HandEyeBench()
    assert bench.job.start(bench.now) is None
    bench.run()
    return bench


def test_the_job_finds_the_camera(calibrated: HandEyeBench) -> None:
    status = calibrated.job.status(calibrated.now)
    assert status.state == "DONE", status.error
    assert status.captured == 15
    assert len(status.checked) == 3
    assert all(each.passed for each in status.checked)
    assert not any(each.missing for each in status.coverage)
    found = calibrated.job.result
    assert found is not None
    missed = np.linalg.norm(found.camera[:3, 3] - calibrated.true_camera[:3, 3])
    assert missed < 0.05 * MM
    assert angle_between(found.camera, calibrated.true_camera) < 0.01 * DEG


def test_nothing_is_touched_on_the_way(calibrated: HandEyeBench) -> None:
    assert calibrated.arm.collision is not None
    assert calibrated.arm.collision.detected == 0


def test_the_file_has_the_result(calibrated: HandEyeBench) -> None:
    text = calibrated.job.document("2026-02-03")
    assert isinstance(text, str)
    found = read_calibration(text, "hand_eye_calib.yaml")
    assert calibrated.job.result is not None
    np.testing.assert_allclose(found.place(), calibrated.job.result.camera, atol=1e-12)
    assert (found.mount, found.num_poses_used, found.date) == ("eye_in_hand", 15, "2026-02-03")


def test_a_snapshot_gives_the_same_result(calibrated: HandEyeBench) -> None:
    saved = snapshots.saved(calibrated.job)
    before = calibrated.job.document("")
    snapshots.load(calibrated.job, saved)
    assert calibrated.job.document("") == before
    assert snapshots.saved(calibrated.job) == saved


def test_a_result_of_poses_that_contradict_each_other_is_not_saved(
    calibrated: HandEyeBench,
) -> None:
    job = calibrated.job
    saved = snapshots.saved(job)
    changed = msgspec.to_builtins(saved)
    for pose in changed["poses"][8:]:  # as if the target had been moved by 50 mm
        pose["flange"] = [
            [*row[:3], row[3] + 50.0 * (n == 0)] for n, row in enumerate(pose["flange"])
        ]
    snapshots.load(job, changed)
    assert job.status(calibrated.now).result is not None, "the page shows the residuals"
    refused = job.document("")
    assert isinstance(refused, Refused)
    assert "may have moved" in refused.reason
    snapshots.load(job, saved)


def test_poses_by_hand_and_a_check_where_the_arm_is(calibrated: HandEyeBench) -> None:
    """The buttons of the design document: Capture Pose, Delete Last, Compute, Validate."""
    job = calibrated.job
    saved = snapshots.saved(job)
    assert job.validate(calibrated.now) is None
    calibrated.run()
    assert len(job.status(calibrated.now).checked) == 4
    assert job.capture_here(calibrated.now) is None
    assert job.capture_here(calibrated.now) == IS_RUNNING
    calibrated.run()
    assert calibrated.state == "ERROR"  # the last pose of the run, a second time
    error = job.status(calibrated.now).error
    assert "move it first" in error
    assert job.status(calibrated.now).messages.count(error) == 1
    assert job.delete_last(calibrated.now) is None
    assert job.validate(calibrated.now) == NOTHING_COMPUTED
    assert job.capture_here(calibrated.now) is None
    calibrated.run()
    assert (calibrated.state, job.status(calibrated.now).captured) == ("IDLE", 15)
    assert job.compute(calibrated.now, method="park") is None
    assert calibrated.state == "DONE"
    assert job.status(calibrated.now).result is not None
    assert isinstance(job.compute(calibrated.now, method="magic"), Refused)
    many = msgspec.convert(saved, Saved)
    many.poses, many.computed = [many.poses[0]] * MOST_POSES, ""
    snapshots.load(job, many)
    assert job.capture_here(calibrated.now) == TOO_MANY
    snapshots.load(job, saved)


def shifted(seen: SavedPose, mm: float) -> SavedPose:
    """The same pose of the arm, with the target elsewhere."""
    rows = [list(row) for row in seen.target]
    rows[0][3] += mm
    return msgspec.convert(msgspec.to_builtins(seen) | {"target": rows}, SavedPose)


def test_a_result_whose_check_fails_is_saved_only_by_force(calibrated: HandEyeBench) -> None:
    job = calibrated.job
    saved = snapshots.saved(job)
    moved = msgspec.convert(saved, Saved)
    moved.checks = [shifted(moved.checks[0], 2.0), *moved.checks[1:]]
    snapshots.load(job, msgspec.to_builtins(moved))
    assert job.compute(calibrated.now) is None
    status = job.status(calibrated.now)
    assert (status.state, status.progress) == ("CHECK_FAILED", 1.0)
    assert [each.passed for each in status.checked] == [False, True, True]
    assert "misses by 2.0" in status.error
    assert "capture poses again" in status.advice
    assert job.validate(calibrated.now) is None
    calibrated.run()
    assert job.status(calibrated.now).checked[-1].passed
    assert calibrated.state == "CHECK_FAILED", "the failed check is not forgotten"
    refused = job.document("2026-01-15")
    assert isinstance(refused, Refused)
    assert "force" in refused.reason
    assert isinstance(job.document("2026-01-15", force=True), str)
    snapshots.load(job, saved)
    assert job.validate(calibrated.now) is None
    calibrated.run()
    assert (calibrated.state, job.status(calibrated.now).error) == ("DONE", "")
    snapshots.load(job, saved)


def test_the_first_pose_by_hand() -> None:
    bench = HandEyeBench()
    job = bench.job
    job.may_start = lambda now: Refused("pick & place is running")
    for command in (job.capture_here, job.start):
        assert command(bench.now) == Refused("pick & place is running")
    job.may_start = lambda now: None
    assert job.start(bench.now) is None
    bench.engine.run_while(lambda: bench.state == "MOVING")  # to where the board is seen
    job.cancel(bench.now)
    job.reset(bench.now)
    assert job.capture_here(bench.now) is None
    bench.run()
    status = job.status(bench.now)
    assert (bench.state, status.captured, status.wanted) == ("IDLE", 1, 15), status.error
    assert status.method == job.config.method
    assert status.progress == pytest.approx(1 / 15)
    assert isinstance(job.picture(1), str)
    job.delete_last(bench.now)
    assert not job._pictures, "pictures of deleted poses use memory"


@pytest.mark.parametrize(
    "wrong",
    [
        {"T_base_flange": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 5, 0], [0, 0, 0, 1]]},
        {"T_camera_target": [[0, 0, 0, 0]] * 4},
        {"K": [[0, 0, 320], [0, 600, 240], [0, 0, 1]]},
        {"K": [[600, 0, 320]]},
        {"size": [0, 480]},
        {"corner_pixels": []},
        {"corner_points": [[1e300, 0, 0]]},
    ],
)
def test_wrong_replies_of_a_vision_process_are_refused(wrong: dict[str, Any]) -> None:
    unit = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 400], [0, 0, 0, 1]]
    reply: dict[str, Any] = {
        "T_base_flange": unit,
        "T_camera_target": unit,
        "corner_points": [[0, 0, 0]],
        "corner_pixels": [[320, 240]],
        "K": [[600, 0, 320], [0, 600, 240], [0, 0, 1]],
        "distortion": [0, 0, 0, 0, 0],
        "size": [640, 480],
    }
    assert not isinstance(read_capture(reply), Refused)
    assert isinstance(read_capture(reply | wrong), Refused)


def test_cancel_emergency_stop_and_a_dark_picture() -> None:
    bench = HandEyeBench()
    job = bench.job
    assert job.cancel(bench.now) == NOT_RUNNING
    assert job.start(bench.now) is None
    assert job.start(bench.now) == IS_RUNNING
    bench.run_until(1)
    assert job.cancel(bench.now) is None
    bench.engine.advance(2.0)
    assert bench.state == "IDLE"
    assert not bench.arm.status(bench.now).moving
    assert job.start(bench.now) is None
    bench.arm.emergency_stop(bench.now)
    bench.run()
    assert bench.state == "ERROR"
    bench.arm.reset(bench.now)
    bench.arm.enable(bench.now)
    assert bench.camera.inject("camera_dark", {"share": 0.02}, bench.now) is None
    assert job.start(bench.now) is None
    bench.run()
    assert "the target is not found" in job.status(bench.now).error


def answering(bench: HandEyeBench, answers: Callable[[int], bool]) -> None:
    """Only the questions with these numbers reach the vision process."""
    vision: Any = dict(bench.cell.components)["g60.vision"]
    answer = vision.answered

    def answered(number: int, payload: bytes, now: int) -> None:
        if answers(number):
            answer(number, payload, now)
        else:
            vision.unanswered(number, "nothing answers", now)

    vision.answered = answered


def test_a_question_without_an_answer_is_asked_once_more() -> None:
    bench = HandEyeBench()
    answering(bench, lambda number: number not in (5, 8))
    assert bench.job.start(bench.now) is None
    bench.run(300.0)
    status = bench.job.status(bench.now)
    assert status.state == "DONE"
    assert not any("nothing answers" in each for each in status.messages), "no pose is left out"


def test_a_process_that_stays_silent_ends_the_job() -> None:
    bench = HandEyeBench()
    answering(bench, lambda number: number < 9)
    assert bench.job.start(bench.now) is None
    bench.run(300.0)
    status = bench.job.status(bench.now)
    assert (status.state, status.error) == ("ERROR", "nothing answers")
    assert not bench.arm.status(bench.now).moving


def test_a_target_that_looks_the_same_after_half_a_turn_is_an_error_at_load() -> None:
    target = {"type": "chessboard", "columns": 7, "rows": 5}
    config = with_hand_eye(load_config("calibration"), "g60", target=target)
    with pytest.raises(ConfigError, match=r"hand_eye\.target\.columns: .*7 × 5 .*half a turn"):
        build_cell(config)


def test_a_camera_beside_the_robot_is_found_by_a_board_on_the_tool() -> None:
    cell = Path(__file__).parent / "eye_to_hand.yaml"
    bench = HandEyeBench(load_config(str(cell)))
    assert bench.job.start(bench.now) is None
    bench.run()
    status = bench.job.status(bench.now)
    assert status.state == "DONE", status.error
    assert len(status.checked) == 2
    found, true = bench.job.result, bench.camera.model.at
    assert found is not None
    assert found.mount == "eye_to_hand"
    assert np.linalg.norm(found.camera[:3, 3] - true[:3, 3]) < 0.1 * MM
    assert angle_between(found.camera, true) < 0.02 * DEG


def test_the_table_is_complete() -> None:
    assert {state for state, _ in TRANSITIONS} == {*RESTING, *RUNNING}
    page = Path(__file__).parents[3] / "docs" / "jobs" / "hand_eye.md"
    assert diagram() in page.read_text()
