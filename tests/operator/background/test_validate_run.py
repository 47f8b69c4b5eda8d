"""The background run `validate`: a program text on the running cell."""

from importlib.resources import files
from typing import Any

import msgspec
import pytest

from understudy.app import background
from understudy.app.background import validate
from understudy.config import load_config
from understudy.errors import ConfigError, Refused
from understudy.operator.background import KINDS
from understudy.operator.background_worker import Progress

SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
CELL = load_config("g60_welding")


def asked(text: str, **others: Any) -> dict[str, Any]:
    cell = {"file": "g60_welding", "seed": CELL.head.seed, "digest": CELL.digest}
    return {"cell": cell, "robot": "g60", "text": text, **others}


def validated(parameters: dict[str, Any], progress: Progress) -> Any:
    report = validate(parameters, progress)
    assert isinstance(report, msgspec.Raw)
    return msgspec.json.decode(report)


def test_validate_is_a_kind_of_run() -> None:
    assert KINDS["validate"] == f"{validate.__module__}:{validate.__name__}"


def test_a_validation_reports_verdict_clearance_and_progress() -> None:
    reported: list[float] = []
    report = validated(asked(SEAM + "\n" * 400, name="seam.gcode"), reported.append)
    assert (report["program"], report["verdict"], report["violations"]) == (
        "seam.gcode",
        "pass",
        [],
    )
    assert min(row["clearance_mm"] for row in report["lines"] if row["clearance_mm"]) > 1.0
    assert reported == sorted(reported)
    assert 0.0 < reported[0] <= reported[-1] <= 1.0


def test_a_violation_has_its_line() -> None:
    report = validated(asked(SEAM.replace("G1 Y100 F600", "G1 Y100 Z250 F600")), lambda share: None)
    assert report["verdict"] == "fail"
    assert (report["violations"][0]["line"], report["violations"][0]["kind"]) == (11, "collision")


def test_a_report_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LARGEST_REPORT", 2000)
    refused = validate(asked(SEAM), lambda share: None)
    assert isinstance(refused, Refused)
    assert "is longer than 2000 bytes: use `understudy validate --json`" in refused.reason


def test_a_changed_cell_is_refused() -> None:
    parameters = asked(SEAM)
    parameters["cell"]["digest"] = "0" * 16
    with pytest.raises(ConfigError, match="changed since"):
        validate(parameters, lambda share: None)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(ConfigError, match="clearence"):
        validate(asked(SEAM, clearence_mm=3), lambda share: None)
