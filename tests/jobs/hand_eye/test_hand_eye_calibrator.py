"""`understudy.HandEyeCalibrator`, and the code of docs/jobs/hand_eye.md that uses it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import understudy
from understudy.sight import calibrator

PAGE = Path(__file__).parents[3] / "docs/jobs/hand_eye.md"


def test_the_class_is_offered_and_imported_lazily() -> None:
    assert understudy.HandEyeCalibrator is calibrator.HandEyeCalibrator
    assert "HandEyeCalibrator" in understudy.__all__
    code = (
        "import sys, understudy; assert 'understudy.sight' not in sys.modules; "
        "understudy.HandEyeCalibrator; assert 'cv2' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_section_in_python_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text().partition("\n## In Python\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    assert names["calibrator"].get_pose_count() == 12
    assert names["check"].passed
    assert names["result"].camera == pytest.approx(names["TRUE_CAMERA"], abs=1e-9)
    assert names["camera"] == pytest.approx(names["TRUE_CAMERA"], abs=1e-9)
    assert (tmp_path / "hand_eye_calib.yaml").read_text().startswith("hand_eye_calibration:")
