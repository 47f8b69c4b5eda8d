"""A proof asked for at the desk: the cell that runs, the text in the editor."""

from importlib.resources import files
from typing import Any

import pytest

from understudy.app.background import validate
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.operator.background import KINDS

SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
CELL = load_config("g60_welding")


def asked(text: str, **others: Any) -> dict[str, Any]:
    cell = {"file": "g60_welding", "seed": CELL.head.seed, "digest": CELL.digest}
    return {"cell": cell, "robot": "g60", "text": text, **others}


def test_the_desk_knows_the_proof_as_a_run() -> None:
    assert KINDS["validate"] == f"{validate.__module__}:{validate.__name__}"


def test_a_proof_tells_verdict_clearance_and_progress() -> None:
    told: list[float] = []
    report = validate(asked(SEAM + "\n" * 400, name="seam.gcode"), told.append)
    assert (report["program"], report["verdict"], report["violations"]) == (
        "seam.gcode",
        "pass",
        [],
    )
    assert min(row["clearance_mm"] for row in report["lines"] if row["clearance_mm"]) > 1.0
    assert told == sorted(told)
    assert 0.0 < told[0] <= told[-1] <= 1.0


def test_a_violation_is_told_with_its_line() -> None:
    report = validate(asked(SEAM.replace("G1 Y100 F600", "G1 Y100 Z250 F600")), lambda share: None)
    assert report["verdict"] == "fail"
    assert (report["violations"][0]["line"], report["violations"][0]["kind"]) == (11, "collision")


def test_another_cell_than_the_one_that_runs_is_not_proved_on() -> None:
    parameters = asked(SEAM)
    parameters["cell"]["digest"] = "0" * 16
    with pytest.raises(ConfigError, match="changed since"):
        validate(parameters, lambda share: None)


def test_an_unknown_wish_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="clearence"):
        validate(asked(SEAM, clearence_mm=3), lambda share: None)
