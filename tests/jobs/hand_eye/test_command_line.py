"""`understudy calibrate`: hand-eye headless with file and report, and the intrinsics."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.cli.running_cell import PATIENCE_SECONDS, RunningCell
from tests.sight.rendered_board import BOARD, LENS, picture_of
from tests.sight.test_intrinsics import places_of_all_kinds
from typer.testing import CliRunner, Result

from understudy import __version__, cli
from understudy.app.ready_file import Ready, read_ready
from understudy.cli.job_client import show_rows
from understudy.config.files import find_cell
from understudy.errors import ConfigError
from understudy.jobs.hand_eye.command_line import picture_of_pose
from understudy.vision.command_line import residual_lines
from understudy.vision.config import read_calibration


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def never(*_: object) -> None:
    pytest.fail("kernels are compiled for a command that is refused")


def called(*words: str) -> Result:
    return CliRunner().invoke(cli.app, ["calibrate", *words])


def test_hand_eye_headless_writes_file_and_report(tmp_path: Path) -> None:
    words = ("--cell", "calibration", "--poses", "10", "--method", "park")
    done = called("hand-eye", *words, "--out", "c.yaml", "--html", "r.html", "--json")
    assert done.exit_code == 0, done.output
    status: dict[str, Any] = json.loads(done.stdout)
    assert (status["state"], status["captured"]) == ("DONE", 10)
    found = read_calibration((tmp_path / "c.yaml").read_text(), "c.yaml")
    assert (found.method, found.num_poses_used, found.refined) == ("park", 10, True)
    assert found.matrix[0][3] == pytest.approx(62.4, abs=0.1)
    page = (tmp_path / "r.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 10
    assert "<svg" in page
    assert "Residual of each pose" in page
    assert "<script" not in page
    assert "<h1>Hand-eye calibration: calibration, g60</h1>" in page
    assert f"· Understudy {__version__}<br>" in page
    made = " ".join(("understudy calibrate hand-eye", *words, "--out c.yaml --html r.html --json"))
    assert f"<code>{made}</code>" in page
    assert "<details><summary>" in page, "messages are folded"


TARGET = "target: {type: charuco, columns: 7, rows: 5, square_mm: 30}"


@pytest.mark.parametrize(
    ("key", "force", "reason"),
    [
        (TARGET.replace("30", "20"), False, "larger than its configured size"),
        (f"{TARGET}\n      tolerance_mm: 0.0001", True, "a pose that was not used misses by"),
    ],
    ids=["the squares are larger", "force"],
)
def test_a_calibration_that_fails_its_check_replaces_a_file_only_by_force(
    key: str, force: bool, reason: str, tmp_path: Path
) -> None:
    cell = find_cell("calibration")[1]
    assert TARGET in cell
    (tmp_path / "cell.yaml").write_text(cell.replace(TARGET, key))
    (tmp_path / "c.yaml").write_text("a good one")
    words = ["hand-eye", "--cell", "cell.yaml", "--poses", "10", "--out", "c.yaml", "--json"]
    done = called(*words, *(["--force"] if force else []))
    assert done.exit_code == 1, done.output
    status = json.loads(done.stdout)
    assert (status["state"], status["captured"]) == ("CHECK_FAILED", 10)
    assert reason in status["error"]
    assert ((tmp_path / "c.yaml").read_text() == "a good one") is not force


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_client_that_is_ended_cancels_the_calibration_of_a_running_cell(
    number: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "calibrate.txt"
    with RunningCell(tmp_path, "calibration", rate="1") as cell, log.open("w") as said:
        words = ("calibrate", "hand-eye", f"--ready-file={cell.ready_file}")
        client = subprocess.Popen([sys.executable, "-m", "understudy", *words], stderr=said)
        cell.wait(lambda: "of 15 poses" in log.read_text())
        client.send_signal(number)
        assert client.wait(PATIENCE_SECONDS) == 1
        status = cell.do("hand_eye_status")
        assert picture_of_pose(read_ready(cell.ready_file), "g60", 99) == ""
    assert "cancelled" in log.read_text()
    assert (status["state"], status["messages"][-1]) == ("IDLE", "cancelled")


@pytest.mark.parametrize(
    ("state", "force", "written"),
    [("DONE", "", True), ("CHECK_FAILED", "", False), ("CHECK_FAILED", "--force", True),
     ("ERROR", "--force", False)],
)  # fmt: skip
def test_the_file_of_a_running_cell_is_written_only_for_a_result(
    state: str, force: str, written: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status = {"robot": "g60", "state": state, "running": False, "captured": 0, "left_out": 0,
              "error": "", "result": None, "checked": []}  # fmt: skip
    answers = {"hand_eye_text": {"text": "the file"}}
    module = "understudy.jobs.hand_eye.command_line"
    monkeypatch.setattr(f"{module}.one_cell", lambda *given: Ready(1, "calibration", 1.0, {}))
    monkeypatch.setattr(f"{module}.ask_job", lambda _, do, *at, **given: answers.get(do, status))
    for name in ("refuse_real", "warn_if_time_stands"):
        monkeypatch.setattr(f"{module}.{name}", lambda *given, **named: None)
    done = called("hand-eye", "--out", "c.yaml", *filter(None, [force]))
    assert done.exit_code == (state != "DONE"), done.output
    assert (tmp_path / "c.yaml").exists() is written


def test_a_cell_without_the_section_is_named() -> None:
    done = called("hand-eye", "--cell", "g60_welding")
    assert isinstance(done.exception, ConfigError)
    assert "`hand_eye`" in str(done.exception)


def test_a_method_that_is_unknown_is_named_before_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("understudy.jobs.hand_eye.command_line.compile_for_cell", never)
    done = called("hand-eye", "--cell", "calibration", "--method", "guess")
    assert isinstance(done.exception, ConfigError)
    assert "hand_eye.method" in str(done.exception)
    assert "tsai_lenz" in str(done.exception)


def test_a_headless_run_is_never_real() -> None:
    done = called("hand-eye", "--cell", "calibration", "--real")
    assert "--cell runs a simulation" in str(done.exception)


def pictures_in(folder: Path) -> None:
    rng = np.random.default_rng(5)
    folder.mkdir()
    for number, seen in enumerate(places_of_all_kinds()):
        picture = picture_of(BOARD, seen, rng)
        cv2.imwrite(str(folder / f"{number:02}.png"), picture[..., ::-1])


def test_intrinsics_from_a_folder_of_pictures(tmp_path: Path) -> None:
    pictures_in(tmp_path / "pictures")
    words = ("--files", "pictures", "--board", "charuco:9x7:23")
    done = called("camera", *words, "--out", "c.yaml", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["fx"] == pytest.approx(LENS.fx, rel=0.003)
    found = read_calibration((tmp_path / "c.yaml").read_text(), "c.yaml").camera_intrinsics
    assert found is not None
    assert (found.width, found.height) == (640, 480)
    text = called("camera", *words, "--out", "c.yaml").stdout  # the file is there already
    assert "residual" in text


def test_intrinsics_of_another_board_are_not_written(tmp_path: Path) -> None:
    pictures_in(tmp_path / "pictures")
    words = ("--files", "pictures", "--board", "chessboard:6x4:30")
    done = called("camera", *words, "--out", "c.yaml")
    assert done.exit_code == 1, done.output
    assert "px rms, 2 px are allowed" in done.stderr
    assert not (tmp_path / "c.yaml").exists()


def test_the_residual_of_every_picture_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    residuals = {number: number / 1000 for number in range(1, 201)}
    show_rows({"of each picture": residual_lines(residuals)})
    shown = capsys.readouterr().out
    for number, rms in residuals.items():
        assert re.search(rf"\b{number}: {rms:.3f}\b", shown), number


def test_all_pictures_of_a_folder_are_used(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for number, seen in enumerate(places_of_all_kinds()):
        picture = picture_of(BOARD, seen, rng)
        for again in range(2):
            cv2.imwrite(str(tmp_path / f"{number:02}{again}.png"), picture[..., ::-1])
    found = json.loads(
        called("camera", "--files", ".", "--board", "charuco:9x7:23", "--json").stdout
    )
    pictures = [int(each) for each in found["picture_rms_px"]]
    assert len(pictures) == len(set(pictures))
    assert max(pictures) > 20, "also those after the usual number"
    assert list(found["deviations"]) == ["fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3"]


@pytest.mark.parametrize(
    ("out", "said"),
    [(".", "is a folder"), ("none/c.yaml", "there is no such folder"), ("b.yaml", "not UTF-8")],
)
def test_a_wrong_place_for_the_file_is_said_before_anything_is_done(
    out: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    done = called("camera", "--camera", "opencv:77", "--out", out)
    assert said in str(done.exception)
    if out != "b.yaml":  # an existing file is replaced
        done = called("hand-eye", "--cell", "calibration", "--out", out)
        assert said in str(done.exception)


@pytest.mark.parametrize("report", ["c.html", "./c.html", "folder/../c.html", "link.html"])
def test_the_report_does_not_overwrite_the_calibration_file(report: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.html").symlink_to("c.html")
    done = called("hand-eye", "--cell", "calibration", "--out", "c.html", "--html", report)
    assert isinstance(done.exception, ConfigError)
    assert "--out and --html name the same file" in str(done.exception)
    assert not (tmp_path / "c.html").exists()


def test_a_broken_picture_of_a_folder_is_named(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((48, 64, 3), dtype=np.uint8))
    (tmp_path / "b.png").write_bytes(b"")
    done = called("camera", "--files", ".")
    assert done.exit_code == 1
    assert "b.png: not a picture" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "give one of --camera and --files"),
        (("--camera", "opencv:0", "--files", "."), "give one of --camera and --files"),
        (("--camera", "x:0"), "unknown kind of camera"),
        (("--files", "."), "the folder has no pictures"),
    ],
)
def test_wrong_cameras_are_errors(words: tuple[str, ...], reason: str) -> None:
    problem = called("camera", *words).exception
    assert isinstance(problem, ConfigError)
    assert reason in str(problem)


def test_a_wrong_board_is_an_error() -> None:
    done = called("camera", "--files", ".", "--board", "paper:7x5")
    assert "charuco:7x5:30" in str(done.exception)


@pytest.mark.parametrize(
    ("board", "said"),
    [
        ("charuco:7x5:1" + 45 * "0", "--board.square_mm: out of range (got 1e+45); allowed: "),
        ("chessboard:7x5:1" + 400 * "0", "--board.square_mm: "),
        ("charuco:7x5:0." + 60 * "0" + "1", "--board.square_mm: out of range"),
        ("charuco:7x5:0", "--board.square_mm: out of range (got 0.0)"),
        ("chessboard:900x6:25", "--board.columns: out of range (got 900); allowed: "),
        ("chessboard:9x2:25", "--board.rows: out of range (got 2)"),
        ("charuco:40x40:5", "--board.columns: DICT_4X4_50 has 50 markers"),
    ],
)
def test_a_board_of_no_possible_size_is_an_error(board: str, said: str, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((48, 64, 3), dtype=np.uint8))
    done = called("camera", "--files", ".", "--board", board)
    assert isinstance(done.exception, ConfigError)
    assert said in str(done.exception)
