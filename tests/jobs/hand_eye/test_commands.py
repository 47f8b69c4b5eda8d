"""The hand-eye calibration at the operator's table, with poses that were captured before."""

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.benches import Bench
from tests.sight.test_calibrator import exact_calibrator

from understudy.app.stand_in import StandIn
from understudy.config.outside_files import FilesFolder
from understudy.jobs.hand_eye.commands import HandEyeCommands, without_picture
from understudy.jobs.hand_eye.job import HandEyeJob
from understudy.jobs.hand_eye.state import Checked, Saved, SavedPose
from understudy.operator.robots import Jobs
from understudy.operator.table import commands_of
from understudy.ports import state as snapshots
from understudy.ports.hmi import FILE_EXISTS
from understudy.space.transform import rows_mm
from understudy.vision.config import read_calibration


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench("calibration")
    calibrator, _ = exact_calibrator(4, "eye_in_hand")
    poses = [
        SavedPose(rows_mm(each.flange), rows_mm(each.target), [], [], (0.1,) * 6)
        for each in calibrator.poses
    ]
    part: Any = bench.live.operator.robots.components["g60"]["g60.hand_eye"]
    snapshots.load(part, msgspec.to_builtins(Saved(poses=poses)))
    yield bench
    bench.close()


def test_the_detectors_are_those_of_the_cell_file(bench: Bench) -> None:
    found = bench.do("vision_detectors")
    assert (found["source"], found["detectors"]) == ("process", [{"kind": "markers"}])
    assert found["settable"] is False
    refused = bench.refusal("set_vision_detectors", detectors=[{"kind": "markers"}])
    assert "calibrates its camera and looks for no objects" in refused
    assert "robot with vision" in bench.refusal("vision_detectors", robot="none")


def test_compute_and_delete(bench: Bench) -> None:
    status = bench.do("hand_eye_status")
    assert (status["state"], status["captured"], status["enough"]) == ("IDLE", 12, True)
    assert status["result"] is None
    done = bench.do("hand_eye_compute", method="horaud")
    assert done["state"] == "DONE"
    assert done["result"]["method"] == "horaud"
    assert done["poses"][0]["residual_mm"] < 1e-3
    assert bench.do("hand_eye_delete_last")["result"] is None
    assert bench.refusal("hand_eye_validate").startswith("compute the calibration first")
    for _ in range(2):
        bench.do("hand_eye_delete_last")
    assert "at least 10 are needed" in bench.refusal("hand_eye_compute")
    assert bench.do("hand_eye_reset")["captured"] == 0
    assert "hand_eye" in bench.refusal("hand_eye_cancel").replace("-", "_")


def test_a_run_needs_the_drives_and_the_process(bench: Bench) -> None:
    assert bench.refusal("hand_eye_start")  # the drives are off
    bench.do("enable", robot="g60")
    started = bench.do("hand_eye_start", poses=12, method="park")
    assert (started["state"], started["wanted"], started["method"]) == ("MOVING", 12, "park")
    assert "calibration is running" in bench.do("mdi", robot="g60", line="G0 A10")["answer"]
    assert bench.do("hand_eye_cancel")["state"] == "IDLE"
    assert bench.refusal("hand_eye_start", robot="none")


def test_the_file_is_written_in_the_folder_of_the_run(bench: Bench, tmp_path: Any) -> None:
    jobs = Jobs(bench.live.operator.robots, HandEyeJob, "hand_eye")
    commands = {
        each.name: each for each in commands_of(HandEyeCommands(jobs, FilesFolder(tmp_path)))
    }
    save = commands["hand_eye_save"]
    assert "hand_eye_compute" in save.run(save.parameters()).reason
    bench.do("hand_eye_compute")
    answer = save.run(save.parameters(file="cell/calib.yaml"))
    text = (tmp_path / "cell" / "calib.yaml").read_text()
    assert answer["text"] == text
    assert read_calibration(text, "calib.yaml").num_poses_used == 12
    assert save.run(save.parameters(file="cell/calib.yaml"))["text"] == text
    for there in ("cell/calib.yaml", str(tmp_path / "cell" / "calib.yaml")):
        assert save.run(save.parameters(file=there, replace=False)).code == FILE_EXISTS
    assert save.run(save.parameters(file="cell/new.yaml", replace=False))["text"] == text
    assert "outside" in save.run(save.parameters(file="../calib.yaml", replace=False)).reason
    (tmp_path / "notes.txt").write_text("mine")
    for wrong in ("notes.txt", "../calib.yaml", "/etc/calib.yaml"):
        assert save.run(save.parameters(file=wrong)).reason
    assert (tmp_path / "notes.txt").read_text() == "mine"
    part: Any = bench.live.operator.robots.components["g60"]["g60.hand_eye"]
    state = msgspec.convert(snapshots.saved(part), Saved)
    state.checked = [Checked(passed=False, distance_mm=2.0, angle_deg=0.0)]
    snapshots.load(part, msgspec.to_builtins(state))
    assert "misses by 2.00 mm" in save.run(save.parameters(file="bad.yaml")).reason
    assert not (tmp_path / "bad.yaml").exists()
    assert save.run(save.parameters(file="bad.yaml", force=True))["text"] == text


@pytest.mark.parametrize("depth", [False, True])
def test_the_view_has_the_picture_and_the_target(depth: bool) -> None:
    with StandIn("calibration") as cell:
        seen = cell.do("hand_eye_view", width=320, depth=depth)
        assert (seen["width"], seen["height"]) == (320, 240)
        assert len(base64.b64decode(seen["data"])) > 1000
        assert seen["found"] is (None if depth else False)  # the arm points elsewhere
        assert ("corners of the board are seen" in seen["reason"]) is not depth
        with pytest.raises(RuntimeError, match="unknown robot"):
            cell.do("hand_eye_view", robot="none")


def test_without_a_virtual_camera_the_corners_of_the_last_pose_are_shown(bench: Bench) -> None:
    part: Any = bench.live.operator.robots.components["g60"]["g60.hand_eye"]
    assert without_picture("g60", part)["found"] is False
    poses = [
        msgspec.structs.replace(each, points=[(0.0, 0.0, 0.0)], pixels=[(7.0, 8.0)])
        for each in msgspec.convert(snapshots.saved(part), Saved).poses
    ]
    snapshots.load(part, msgspec.to_builtins(Saved(poses=poses)))
    seen = without_picture("g60", part)
    assert (seen["found"], seen["corners"], seen["width"]) == (True, [(7.0, 8.0)], 640)
